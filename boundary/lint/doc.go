// Package lint finds what is wrong with prompts and prompt templates before a
// model sees them: ends that cut a token, control tokens with a typo, characters
// that nobody sees but the model.
//
// A rule names a suspicion; the tokenizer decides. A trailing blank is a finding
// only where package boundary says that the tokens at the prompt's end may still
// move, an odd space only where the tokens differ from those of a plain one. So
// the findings hold for one vocabulary, and their messages say what it does.
//
//   - Offsets and lengths are bytes of the linted text.
//   - A text's own control tokens are taken for control tokens: a prompt file may
//     give the model instructions.
//   - A rule reports at most [MaxPerRule] places of a text.
package lint
