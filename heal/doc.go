// Package heal turns a prompt that ends in the middle of a token into one that
// does not, and steers generation over the bytes it took away.
//
// A [Plan] says how far to roll a prompt back and which bytes are pending. A
// [Session] follows one generation: it gives the mask for each token until the
// pending bytes are produced again, and then none.
//
//   - The text produced always begins with exactly the pending bytes: the mask
//     is hard.
//   - Control tokens are never rolled back and never in a mask.
//   - A prompt whose tokens no continuation can change is left alone.
//   - What could not be done as asked is said in a [Note].
//
// heal knows tokens, not models: what runs the plan is up to the caller.
package heal
