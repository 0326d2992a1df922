// Package continuation goes on with an answer that broke off, and joins what comes
// to it only where the seam is proven.
//
// A model that is asked to go on does one of many things: it goes on where the
// text ended, repeats a part of it first, starts again, opens another fence, says
// that it goes on, or says nothing. And text that was cut at a place where the
// model's own tokens have no boundary is continued badly. So
//
//   - [Detect] says whether a text breaks off, from its structure, its length and
//     its finish reason together, and tells that from text that is malformed;
//   - [Plan] cuts the text back to a strong boundary. What was cut off must be
//     produced again: that proves the seam;
//   - [Join] finds the seam in what came, or returns a [*SeamError]; [Joiner] does
//     the same while it comes, and only ever adds to what was sent;
//   - [Run] asks, joins and asks again, within limits;
//   - [Reserve] keeps a share of the tokens for it.
//
// The text never changes: a join appends, and a join that fails leaves the text
// byte for byte as it was. No overlap means no splice.
package continuation
