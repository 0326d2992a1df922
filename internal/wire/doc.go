// Package wire reads and writes the JSON objects and the event streams of
// OpenAI's API. It holds no policy: it says what a request contains, not
// whether it is honored.
//
//   - Decoding is bounded and linear: a body is scanned once for encoding and
//     depth, once for syntax, and once per level of the objects it knows.
//   - Errors say where: a [*DecodeError] names the field by its path and what
//     was expected, or the byte offset of a syntax error.
//   - Nothing is mended silently. Bytes that are no UTF-8, halves of surrogate
//     pairs and fields given twice are errors, since a decoder that replaces
//     or drops them changes what the user wrote.
//   - Unknown fields are ignored, as OpenAI's clients send new ones every
//     month, and listed, so that the server can say so.
package wire
