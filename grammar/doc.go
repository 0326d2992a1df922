// Package grammar holds generated text to a grammar, byte by byte and token by
// token.
//
//   - A [Grammar] is made of GBNF, of a regular expression or of a JSON Schema.
//     All three become one form: a context-free grammar over bytes.
//   - A [State] is a place in a text. It is never dead while some text of the
//     grammar begins with the bytes so far, so a generation that keeps to the
//     masks can always end.
//   - [State.Mask] gives the tokens that can come next. States and masks are
//     kept as they are met, within bounds, and shared by goroutines.
//   - [Grammar.WithPrefix] puts bytes before a grammar: those of a prompt that
//     are to be generated again.
//   - Hostile grammars and texts take linear memory, or are refused:
//     [ErrTooLarge] when they are read, [ErrTooComplex] when a text has too many
//     readings.
//
// # Machine
//
// Rules are programs that read bytes, branch, call rules and return. A state is
// the set of all places that the bytes so far can have led to. Each place knows
// the frame to return to; calls of one rule at one place of the text share a
// frame (a graph-structured stack), so that ambiguity costs no more than
// distinct places. A call at the end of a rule takes no frame: right recursion
// has constant memory, nesting that of its depth. Left recursion is an error.
// What can never be completed is taken out when the grammar is read.
//
// Equal states are one, and each keeps its successors by class of bytes. After
// the first texts a step is therefore one load, and a mask a copy.
//
// # GBNF
//
// Rules, strings, classes and their escapes, `.`, groups, `* + ? {n} {n,}
// {n,m}` and comments are as in llama.cpp. A rule that is defined twice, or not
// at all, is an error. Literals of tokens are not supported.
//
// # JSON Schema
//
// These keywords of draft 2020-12 are kept: type, enum, const, properties,
// required, additionalProperties, items, prefixItems, minItems, maxItems,
// minLength, maxLength, pattern, format (date, time, date-time, duration, uuid,
// ipv4, ipv6, email, hostname), minimum, maximum, exclusiveMinimum,
// exclusiveMaximum, allOf, anyOf, oneOf (taken as anyOf), and $ref to a JSON
// pointer in the same schema, recursion included. Annotations and keywords that
// no draft knows are ignored. All others are errors where they restrict.
//
// Where a schema leaves a choice, the grammar has made some, as others do:
//
//   - Members come in the order of properties, then other members.
//   - With properties, other members come only if additionalProperties says so.
//     After prefixItems, other items come only if items says so.
//   - A schema without type means the types that its keywords speak of; where
//     they speak of none, any.
//   - Whitespace is none, one blank, or one or two ends of lines and up to 20
//     blanks. There is none around the whole.
//   - Numbers have up to 16 digits before the point and after it. Numbers with
//     bounds have no exponent, and their bounds are integers.
//   - The names of other members have no escapes where they must differ from
//     those of properties. Strings with a pattern have them only where needed.
//
// Patterns are in the language of Go's regexp package and match anywhere unless
// anchored.
package grammar
