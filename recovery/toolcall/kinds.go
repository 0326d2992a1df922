package toolcall

import "github.com/unfray/unfray/jsonrepair"

// Kinds of edits and findings.
const (
	ToolCall         jsonrepair.Kind = "tool_call"           // removed: a call
	Separator        jsonrepair.Kind = "tool_call_separator" // removed: what stands between calls
	CutCall          jsonrepair.Kind = "cut_tool_call"       // removed: a call that breaks off before its name ends
	EmptyArguments   jsonrepair.Kind = "empty_arguments"     // {} for nothing
	DoubleEncoded    jsonrepair.Kind = "double_encoded"      // an object written as a string
	Placeholder      jsonrepair.Kind = "placeholder"         // {} beside the arguments, dropped
	SeveralArguments jsonrepair.Kind = "several_arguments"   // finding: several objects for one name, each a call
	DoubledName      jsonrepair.Kind = "doubled_name"        // finding: mended
	EscapedName      jsonrepair.Kind = "escaped_name"        // Markdown escapes in a name or key, dropped
	QualifiedName    jsonrepair.Kind = "qualified_name"      // finding: functions.NAME, mended
	MissingEnd       jsonrepair.Kind = "missing_end"         // finding: the end marker of a call is not there
	UnreadableCall   jsonrepair.Kind = "unreadable_call"     // finding: no function's name is in it; it was removed
	FencedCall       jsonrepair.Kind = "fenced_call"         // finding: a call in a code fence, left alone
	DoubtfulValue    jsonrepair.Kind = "doubtful_value"      // finding: it is not of the type that the schema has
	UnnamedArgument  jsonrepair.Kind = "unnamed_argument"    // finding: dropped, or taken for all arguments
)
