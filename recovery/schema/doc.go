// Package schema holds JSON to a JSON Schema: it says where a value is not valid,
// chooses among several readings of an answer the one that is, and makes a value fit by
// a table of coercions, each with a cost and each told. What fits as it is comes back
// byte for byte, ties are refused, and nothing is invented.
//
//   - [Parse] reads drafts 2020-12, 2019-09, 7, 6 and 4, what requests carry a schema
//     in, and OpenAPI's nullable. Nothing is ever loaded from elsewhere.
//   - [Schema.Validate] lists what is wrong, structure before content.
//   - [Schema.Fit] chooses and coerces. Its edits, applied to the reading, give the value;
//     all other bytes stay, numbers and white space among them. The value is valid by the
//     schema in every case.
//   - [Schema.Score] ranks candidates, [Schema.IncompleteFields] says what a truncated
//     value lacks.
//
// All work is counted in steps, so that a hostile schema or value ends in a clear failure
// ([Options].MaxSteps). Patterns are those of package regexp, which takes linear time.
//
// # The table
//
// Costs add up over a value. The least sum wins; where that of another value is less than
// two more ([FitOptions].Margin), both are told and none is taken. A value whose type is allowed is never turned
// into one of another type, but for listed values (enum and const): that would be a way
// around what is demanded of it.
//
//	| kind              | from                        | to                  | cost  |
//	|-------------------|-----------------------------|---------------------|-------|
//	| key_name          | "userName": "user\_name":   | "user_name":        | 1     |
//	| spelling          | "In Progress" "`done`."     | "in_progress" "done"| 1     |
//	| drop_null         | null, optional              | (absent)            | 1     |
//	|                   | "N/A", optional             | (absent)            | 3     |
//	| add_null          | (absent), required          | null                | 2     |
//	| string_to_null    | "None" "N/A" "null" ""      | null                | 2     |
//	| string_to_number  | "42" "-1.5e3"               | 42 -1.5e3           | 2     |
//	|                   | " 42 " "+7" ".5" "42." "007"| 42 7 0.5 42 7       | 3     |
//	|                   | "1,234,567" "1.234,5" "1 234"| 1234567 1234.5 1234| 4     |
//	|                   | "$5" "5 €" "USD 5"          | 5                   | 5     |
//	|                   | "45%"                       | 45 or 0.45          | 6     |
//	| string_to_boolean | "true" "False"              | true false          | 2     |
//	|                   | yes y on 1, no n off 0      | true, false         | 4     |
//	| number_to_boolean | 1 0                         | true false          | 4     |
//	| to_string         | 1.10 true                   | "1.10" "true"       | 2     |
//	|                   | true, of "yes" and "no"     | "yes"               | 4     |
//	| to_array          | x                           | [x]                 | 3     |
//	| split_text        | "1, 2"                      | [1, 2]              | 3     |
//	| from_array        | [x]                         | x                   | 3     |
//	| json_text         | "{\"a\": 1}"                | {"a": 1}            | 3     |
//	| unwrap            | {"result": x}               | x                   | 3     |
//	|                   | {"name": "f", "arguments": x}| x                  | 4     |
//	| implied_key       | x                           | {"key": x}          | 4     |
//	| extra_key         | a member that may not be    | (absent)            | 4     |
//	| pairs_to_object   | [["a", 1], ["b", 2]]        | {"a": 1, "b": 2}    | 5     |
//	| label             | "high: the disk is full"    | "high"              | 5     |
//	| misspelling       | "complted"                  | "completed"         | 4 + 2 |
//	| add_default       | (absent), if asked for      | the default         | 8     |
//
// What the table does not say:
//
//   - Numbers: 1,234 is 1234 to some and 1.234 to others, and 45% is 45 or 0.45; both are
//     tried, the schema may leave one, else it is a tie. 3.0 is an integer, 3.7 never
//     becomes one. Units, ranges, dates, fractions and NaN are no numbers.
//   - "false", "no" and "0" are false. A string is never true because it is not empty.
//   - Listed values are found by case, by what separates words (1.5 is not 15, C is not
//     C++), by accents, then by edit distance: one letter in words of five letters, two from twelve on; a
//     letter for another counts as two, unless these are easily mixed up (a vowel for
//     another, c and s, m and n). The runner-up must be two further away, and neither
//     the first letter nor a digit may differ, nor a word or prefix that negates (in-, un-,
//     not). A part of a text never counts; only a label before a colon or dash does, where an
//     explanation follows that names no other value and casts no doubt.
//   - null stands for a required member only where the schema allows null by name. null
//     for a required member that may not be null fails, and so does null in an array.
//     Nor does it where a member that is dropped could be the one that is missing.
//   - Members are renamed by case, style and accents alone, and only where the name is required or
//     where they may not stay. Members that may stay, stay.
//   - No item of an array is ever dropped, and of several values none is taken for one.
//   - A text with commas where an array of strings is wanted is a tie: one item or several.
//   - JSON in a string is read where all of it is JSON, no string is wanted, and once.
//   - An object is unwrapped if it has one member, or if the others are an envelope (type,
//     name, status and the like); not if the name is error or the like, and for scalars only
//     under a name that says answer, or if the value is a listed one. A schema in place of an answer is no answer.
//   - One value takes at most two changes of structure at one place.
package schema
