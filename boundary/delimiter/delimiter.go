// Package delimiter says which separators keep their tokens whatever stands
// around them, for one tokenizer.
//
//   - What may follow is proved, behind each of some texts: [boundary.Prove]
//     speaks of every continuation. Where it cannot decide about characters
//     beyond ASCII, many are tried, and the verdict says so.
//   - What may precede is proved for added tokens, and for others where no
//     pre-tokenizer divides text; else it is searched, and says in how many texts.
//   - What fails comes with a text that was encoded and shows it.
//   - No claim is a plain yes or no: it names the first bytes of what follows, or
//     the last of what precedes, that change the tokens.
package delimiter

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/vocab"
)

// A Candidate is a separator to look at.
type Candidate struct {
	Text   string `json:"text"`
	Family string `json:"family,omitempty"`
	// Special says that control tokens are recognized in the separator and
	// around it, as they are in a chat template.
	Special bool `json:"special,omitempty"`
}

// Texts makes candidates of texts in which control tokens are not recognized.
func Texts(texts ...string) []Candidate {
	list := make([]Candidate, len(texts))
	for i, s := range texts {
		list[i] = Candidate{Text: s, Family: "own"}
	}
	return list
}

// Options say what the separators are for. The zero value is ready for use.
type Options struct {
	// Contexts are texts that stand before the separator: what may follow is
	// proved after each of them. Empty: after a word, a digit, a punctuation mark,
	// a blank and a newline.
	Contexts []string
	// Parts are samples of what follows a separator, as a prompt's parts begin.
	// They weigh the first bytes that break a separator; empty: all first bytes
	// of a character that is printed, and of white space, count alike.
	Parts [][]byte
	// Search bounds the texts before a separator that are tried; 0: 12,000. The
	// beginnings of tokens that go on as the separator does are tried beyond that.
	Search int
}

// Proof is how a claim was found.
type Proof string

const (
	// Proved: no text contradicts the claim.
	Proved Proof = "proved"
	// Searched: none of [Side.Tried] texts contradicts the claim.
	Searched Proof = "searched"
)

// A Verdict is what is known of a separator.
type Verdict struct {
	Candidate
	// Rank is the place among those that were judged together, from 1.
	Rank int `json:"rank"`
	// IDs are its tokens inside a text, where nothing joins them.
	IDs []vocab.ID `json:"ids"`
	// Kind is "text", "added" (one token that plain text spells too) or
	// "control" (one token that plain text never becomes).
	Kind Kind `json:"kind"`
	// After is what may follow: which first bytes of the next text change tokens
	// of the text that ends with the separator.
	After Side `json:"after"`
	// Before is what may precede: after which last bytes the separator has
	// other tokens than IDs.
	Before Side `json:"before"`
	// Trim is what becomes of the separator at the end of a message whose chat
	// template strips white space; nil if nothing does.
	Trim *Trim `json:"trim,omitempty"`
	// Hygiene is what makes the separator unconditional, each rule verified
	// against After or Before. Empty if nothing is needed or no rule is known.
	Hygiene []Rule `json:"hygiene,omitempty"`
	// Summary is the verdict in one sentence.
	Summary string `json:"summary"`
}

// Kind is what a separator is made of.
type Kind string

// The kinds.
const (
	Text    Kind = "text"
	Added   Kind = "added"
	Control Kind = "control"
)

// A Side is a claim about what stands on one side of a separator.
type Side struct {
	// Always says that no text on that side changes the tokens.
	Always bool  `json:"always"`
	Proof  Proof `json:"proof"`
	// Why says what the proof rests on.
	Why string `json:"why"`
	// Tried is how many texts were encoded in the search.
	Tried int `json:"tried,omitempty"`
	// Bytes is the set of bytes next to the separator that some text has which
	// changes the tokens.
	Bytes boundary.ByteSet `json:"-"`
	// Share is how often the condition bites, from 0 to 1: the weight of Bytes
	// among the bytes that may stand there.
	Share float64 `json:"share"`
	// Start says, of Before, that the separator has other tokens at the start
	// of a text.
	Start bool `json:"start,omitempty"`
	// Changes are the bytes by kind, each with a text that shows the change.
	Changes []Change `json:"changes,omitempty"`
	// Statement is the claim in words: "unless the next text begins with a
	// newline".
	Statement string `json:"statement"`
}

// A Change is a kind of bytes beside a separator, and a text that changes it.
type Change struct {
	Kind string `json:"kind"`  // in words: "a newline"
	Set  string `json:"bytes"` // the bytes, as characters and ranges
	// Context is the text before the separator in the example, and Next the one
	// after it. In JSON what is not UTF-8 is escaped as in a Go string, without
	// quotation marks around it.
	Context string `json:"context"`
	Next    string `json:"next"`
	// Becomes are the tokens that the separator, or what it was joined to,
	// has in the example. It is nil if no example was found: then nothing proves
	// that the bytes are harmless.
	Becomes []vocab.ID `json:"becomes,omitempty"`

	bytes boundary.ByteSet
}

// MarshalJSON escapes texts that are not UTF-8.
func (c Change) MarshalJSON() ([]byte, error) {
	type plain Change // without this method
	p := plain(c)
	p.Context, p.Next = escaped(c.Context), escaped(c.Next)
	return json.Marshal(p)
}

// escaped is a text as it is if it is UTF-8, else with escapes.
func escaped(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// A Trim is what is left of a separator that a template strips.
type Trim struct {
	Text string `json:"text"` // what is left
	// After is what may follow that; nil if nothing is left.
	After *Side `json:"after,omitempty"`
}

// A Rule is something to do with the parts of a prompt.
type Rule struct {
	Do string `json:"do"` // "strip leading newlines of the next part"
	// Side is "after" or "before": which of the claims holds always with it.
	Side string `json:"side"`
}
