package boundary

import (
	"slices"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// canon tries whether token paths are canonical. Paths start where the first
// pretoken that may move does.
type canon struct {
	t *tokenizer.Tokenizer
	// long says that paths are too long to tokenize their text at every trial.
	// Then only the pair of tokens at a path's end is looked at, which misses
	// what the pre-tokenizer forbids: more paths than there are, never fewer.
	long bool

	text []byte     // scratch
	ids  []vocab.ID // scratch
}

// maxCanonBytes is the text up to which whole paths are tried. Moving pretokens
// longer than this are runs of blanks, rules of stars, encoded data.
const maxCanonBytes = 192

// newCanon is for paths over n bytes and one token.
func newCanon(t *tokenizer.Tokenizer, n int) *canon {
	return &canon{t: t, long: n > maxCanonBytes}
}

// probes follow a path when it is tried: what a pre-tokenizer does to a text's
// end depends on the class of what follows (nothing, a letter, a digit, a
// blank, a newline, punctuation) and on contractions being completed.
var probes = []string{"", "x", "1", " ", "\n", "!", "e", "l", "'"}

// canonical reports whether path is how the tokenizer begins some text that
// goes on with one of the probes. A path that ends inside a character counts
// as canonical: its class is still open.
func (c *canon) canonical(path []vocab.ID) bool {
	if c.long {
		return len(path) < 2 || c.apart(path[len(path)-2], path[len(path)-1])
	}
	c.text = c.t.Decode(c.text[:0], path)
	if incomplete(c.text) > 0 {
		return true
	}
	for _, probe := range probes {
		c.ids = c.t.Encode(c.ids[:0], append(c.text, probe...))
		if len(c.ids) >= len(path) && slices.Equal(c.ids[:len(path)], path) {
			return true
		}
	}
	return false
}

// apart reports whether byte-pair encoding leaves a and b as they are when
// they stand side by side in a pretoken.
func (c *canon) apart(a, b vocab.ID) bool {
	v := c.t.Vocab()
	c.text = append(append(c.text[:0], v.Bytes(a)...), v.Bytes(b)...)
	c.ids = c.t.EncodePiece(c.ids[:0], c.text)
	return len(c.ids) == 2 && c.ids[0] == a && c.ids[1] == b
}

// maxTried bounds the extensions that live tries.
const maxTried = 256

// live reports whether some token that extends the branch's rest can follow
// its path. A branch with many extensions is taken for live without a trial:
// one branch too many costs a token of stability at worst, one too few would
// be wrong. joined says that the token before stands in the same pretoken.
func (c *canon) live(b Branch, joined bool) bool {
	v := c.t.Vocab()
	if extensions(v, b.Rest).Len() > maxTried {
		return true
	}
	// Only the end of a long path is looked at.
	path := b.Path[max(0, len(b.Path)-1):]
	if !c.long {
		path = b.Path
	}
	path = append(slices.Clip(path), vocab.None)
	for id := range b.Extensions(v) {
		path[len(path)-1] = id
		// The pair is quickly ruled out, the whole path is not.
		if joined && !c.apart(path[len(path)-2], id) {
			continue
		}
		if c.canonical(path) {
			return true
		}
	}
	return false
}
