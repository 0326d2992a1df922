// Package boundary says which of a prompt's tokens can still change once more
// text follows, which token paths could take their place, and why.
//
//   - [Analyze] and its variants report on one prompt, [AnalyzeText] and [Stable]
//     on a text that grows, at the cost of its end.
//   - [Prove] says which next bytes change the tokens of a text at all.
//
// The answers rest on two facts about the tokens of a pretoken, for BPE and
// Unigram alike:
//
//   - If the tokenization of text+s has a token boundary at byte p of text, it
//     begins with the tokenization of text[:p] (a run of tokens cut out of a
//     canonical sequence is canonical, and a canonical sequence is unique).
//   - Its last boundary at or before len(text) lies at a p for which text[p:]
//     is empty or a proper prefix of a token.
//
// So the few such p are all there is to look at: each gives a [Branch], and the
// tokens that all branches begin with are the stable prefix. A branch is dead if
// no token can leave the prompt by it: BPE leaves two neighbours apart or not
// ([tokenizer.Tokenizer.Apart]), Unigram is tried. What pretokens can do to each
// other at the end of the text comes from the tokenizer's [tokenizer.Reading]
// values; each contributes its own branches, and forbids tokens that the
// pre-tokenizer would cut. A reading of less than the whole text is one whose
// end a normalizer may rewrite: its branches limit what is stable but are no
// covers.
//
// The rule is sound: no continuation, of whatever bytes, changes a stable
// token. Where the work of ruling a branch out would be long it stays, which
// costs a token of stability at worst. Of models that decide on whole words
// (WordPiece), of merges that make no token, of unknown pre-tokenizer patterns
// and of text that tokens do not spell, only pretokens that are closed count as
// stable, and there are no branches.
package boundary
