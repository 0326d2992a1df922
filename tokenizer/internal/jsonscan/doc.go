// Package jsonscan reads JSON at the speed of memory: a scanner for programs
// that know what they expect, such as the readers of tokenizer files.
//
//   - Nothing is allocated but for errors and for the names of objects with
//     more than 16 members. Strings are decoded where they stand, so that the
//     data is changed.
//   - Errors tell the path in the file and the byte offset.
//   - Depth, lengths and sizes have limits; invalid UTF-8, lone surrogates,
//     names that come twice in an object and what follows the end are errors.
package jsonscan
