// Package boundary says which of a prompt's tokens can still change once more
// text follows, and which token paths could take their place.
//
// The answer rests on two facts about byte-pair encoding inside a pretoken:
//
//   - If the tokenization of text+s has a token boundary at byte p of text, it
//     begins with the tokenization of text[:p] (a run of tokens cut out of a
//     canonical sequence is canonical, and a canonical sequence is unique).
//   - Its last boundary at or before len(text) lies at a p for which text[p:]
//     is empty or a proper prefix of a token.
//
// So the few such p are all there is to look at: each gives a [Branch], and the
// tokens that all branches begin with are the stable prefix. What pretokens can
// do to each other at the end of the text comes from the tokenizer's
// [tokenizer.Reading] values; each reading contributes its own branches.
//
// The rule is sound: no continuation, of whatever bytes, changes a stable
// token. It needs no knowledge of the continuation: trial encodings only drop
// branches that no token can leave the prompt by. It needs a vocabulary in which
// every merge makes a token; of any other the report is cautious.
package boundary
