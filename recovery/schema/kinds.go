package schema

import "github.com/unfray/unfray/jsonrepair"

// Kinds of edits and coercions. The package comment has the table.
const (
	KeyName         jsonrepair.Kind = "key_name"          // a name in another case or style
	ExtraKey        jsonrepair.Kind = "extra_key"         // a member that may not be there, dropped
	DropNull        jsonrepair.Kind = "drop_null"         // null for an optional member, dropped
	AddNull         jsonrepair.Kind = "add_null"          // null for a required member that may be null
	AddDefault      jsonrepair.Kind = "add_default"       // the schema's default for a required member
	StringToNumber  jsonrepair.Kind = "string_to_number"  // "42"
	StringToBoolean jsonrepair.Kind = "string_to_boolean" // "true"
	StringToNull    jsonrepair.Kind = "string_to_null"    // "N/A"
	ToString        jsonrepair.Kind = "to_string"         // a number or boolean where a string is wanted
	NumberToBoolean jsonrepair.Kind = "number_to_boolean" // 1 or 0
	Spelling        jsonrepair.Kind = "spelling"          // a listed value in another case or with other punctuation
	Misspelling     jsonrepair.Kind = "misspelling"       // a listed value with a letter wrong
	Label           jsonrepair.Kind = "label"             // a listed value with an explanation behind it
	ToArray         jsonrepair.Kind = "to_array"          // a value where an array of such values is wanted
	FromArray       jsonrepair.Kind = "from_array"        // an array of one value where the value is wanted
	SplitText       jsonrepair.Kind = "split_text"        // "a, b" where an array is wanted
	JSONText        jsonrepair.Kind = "json_text"         // JSON in a string
	Unwrap          jsonrepair.Kind = "unwrap"            // a value in an object around it
	ImpliedKey      jsonrepair.Kind = "implied_key"       // a value where an object with one member is wanted
	PairsToObject   jsonrepair.Kind = "pairs_to_object"   // an array of keys with values where an object is wanted
)

// What coercions cost: the more is assumed, the more. A cost is a sum over the
// whole value.
const (
	costKeyName      = 1
	costExtraKey     = 4
	costDropNull     = 1
	costDropNullText = 3 // "N/A" for an optional member
	costAddNull      = 2
	costAddDefault   = 8
	costNumberPlain  = 2 // "42"
	costNumberStyle  = 3 // " +.5 ", "42."
	costNumberGroups = 4 // "1,234,567.8"
	costCurrency     = 5 // "$5"
	costPercent      = 6 // "45%"
	costTrueFalse    = 2
	costYesNo        = 4 // "yes", "off", 1
	costNullText     = 2
	costToString     = 2
	costSpelling     = 1 // "In Progress" for in_progress
	costMisspelling  = 4 // and 2 for each letter
	costLabel        = 5
	costToArray      = 3
	costFromArray    = 3
	costSplitText    = 3
	costJSONText     = 3
	costUnwrap       = 3
	costUnwrapMore   = 4 // and other members are dropped
	costImpliedKey   = 4
	costPairs        = 5
)
