package jsonrepair

// Kind names a kind of edit or finding. Scripts may rely on the values.
type Kind string

// Kinds of edits.
const (
	ByteOrderMark     Kind = "byte_order_mark"     // dropped
	SpecialSpace      Kind = "special_space"       // white space that JSON does not know
	Comment           Kind = "comment"             // dropped
	Prose             Kind = "prose"               // text around the JSON, dropped
	Fence             Kind = "fence"               // the lines of a Markdown code fence, dropped
	Reasoning         Kind = "reasoning"           // <think>…</think>, dropped
	Ellipsis          Kind = "ellipsis"            // dropped
	Junk              Kind = "junk"                // what cannot stand there, dropped
	LiteralEscape     Kind = "literal_escape"      // \n between tokens, dropped
	MissingComma      Kind = "missing_comma"       // inserted
	SurplusComma      Kind = "surplus_comma"       // leading, doubled or trailing, dropped
	MissingColon      Kind = "missing_colon"       // inserted
	SurplusColon      Kind = "surplus_colon"       // dropped
	Separator         Kind = "separator"           // ; = => or a full-width mark for a comma or colon
	MissingValue      Kind = "missing_value"       // null inserted
	MissingKey        Kind = "missing_key"         // inserted
	MissingOpener     Kind = "missing_opener"      // bracket or brace inserted
	MissingCloser     Kind = "missing_closer"      // inserted
	SurplusOpener     Kind = "surplus_opener"      // dropped
	SurplusCloser     Kind = "surplus_closer"      // dropped
	WrongCloser       Kind = "wrong_closer"        // replaced
	Bracket           Kind = "bracket"             // parenthesis, set brace or full-width bracket replaced
	Quote             Kind = "quote"               // other quotes for "
	MissingQuote      Kind = "missing_quote"       // inserted
	InnerQuote        Kind = "inner_quote"         // escaped
	Concatenation     Kind = "concatenation"       // "a" + "b" joined
	InvalidEscape     Kind = "invalid_escape"      // mended
	ControlCharacter  Kind = "control_character"   // escaped
	InvalidUTF8       Kind = "invalid_utf8"        // replaced by U+FFFD
	Number            Kind = "number"              // spelled as JSON does
	Literal           Kind = "literal"             // True, None, undefined, NaN, …
	Call              Kind = "call"                // ObjectId("x"): the name dropped
	Cut               Kind = "cut"                 // dropped because it had not ended, or closed where the text breaks off
	SeveralValues     Kind = "several_values"      // put into an array
	Placeholder       Kind = "placeholder"         // an empty value beside others, dropped
	SuspiciousEscape  Kind = "suspicious_escape"   // finding: a valid escape that may be LaTeX or a path
	LoneSurrogate     Kind = "lone_surrogate"      // finding: half of a pair
	NotANumber        Kind = "not_a_number"        // finding: NaN or Infinity became null
	DoubtfulQuote     Kind = "doubtful_quote"      // finding: it ends the string in one reading, not in another
	DoubtfulBracket   Kind = "doubtful_bracket"    // finding: it may be of the wrong kind
	DoubtfulComma     Kind = "doubtful_comma"      // finding: it may be part of a number
	UndecidedInWindow Kind = "undecided_in_window" // finding: the window ended before the doubt did
)
