// Package eval measures what healing does to real cuts: texts broken off at a
// place of which it is known what came next.
//
//   - [Read] takes cuts from a file and says which are dirty: those whose
//     boundary falls inside a token that the truth needs.
//   - [Weigher.Bits] is how many bits the truth costs under a way of healing,
//     from rows of logits, summed over all ways to tokenize it.
//   - [Summarize] makes figures of what the modes wrote, with bootstrap
//     intervals from a fixed seed: the same results give the same report.
//   - [Report.Markdown] and [Report.SVG] show them.
//
// It runs no model: the caller hands it continuations and a source of logits.
package eval
