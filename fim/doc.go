// Package fim puts together prompts for filling in the middle: text before the
// cursor (the prefix), text after it (the suffix), and a model that writes what
// is between.
//
//   - The layout is found in the vocabulary: no model is known by its name.
//     Where there are no tokens for it, [Find] says what it looked for.
//   - The sections are tokenized apart and are plain text: what spells a marker
//     in them stays text. The markers are never part of a boundary.
//   - The prefix section may end early, with its stable tokens: in every layout
//     the generated text follows the prefix, so that it begins by producing the
//     rest. [Layout.Arrange] says where the section ends.
//   - [Join] ends a middle where it would repeat the suffix. It never cuts what
//     does not stand at the suffix's start, and holds back at most [MaxHeld]
//     bytes.
package fim
