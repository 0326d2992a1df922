// Package loop finds where a language model has fallen into repeating itself.
//
// A [Detector] reads a text in pieces, and [Find] a whole one; both tell the same.
//
//   - Exact: the smallest period of the text's tail is computed by the prefix
//     function of the reversed tail, so the unit is primitive and each of its
//     copies has been compared byte for byte.
//   - Careful: a loop must have so many copies and cover so many bytes. What
//     repeats itself for good reasons (tables, number lists, rulers, code, JSON)
//     needs far more of both than prose does.
//   - Bounded: a few hundred kilobytes for each detector, constant amortized time
//     for each byte, and never more than 2·64 Ki comparisons at one.
//
// What only resembles a loop, the same sentences with other numbers, is reported
// and not cut.
package loop
