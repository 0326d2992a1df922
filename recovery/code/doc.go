// Package code checks the structure of code that a language model wrote, and closes
// code that was cut.
//
//   - [Check] tells whether code is whole, broken or cut, and where: Go, JSON and
//     YAML by parsers, other languages by lexical rules for their strings, comments,
//     brackets and blocks. Where the rules are not sure they say so.
//   - [Close] ends what is open at the true end of cut code. Nothing else is changed.
//   - [Detect] names the language, by the word behind a fence or by clear evidence.
//   - [CloseFence] ends a Markdown code fence that is open at the end of a text.
//
// No regular expression of a highlighter is run: each byte is read a bounded number of
// times, whatever the text, and nothing recurses.
package code
