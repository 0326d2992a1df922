// Package backendtest holds the conformance suite that every backend runs, and
// a backend for tests of everything that stands on one.
//
//   - [Run] checks each guarantee that package backend documents, one subtest
//     each.
//   - [Toy] is an in-memory model with deterministic logits. It can know texts
//     by heart, be slowed down, and be moved one decode step at a time.
//   - [Vocabulary] and [GGUF] are its vocabulary, as a value and as a file to
//     open a tokenizer from.
package backendtest
