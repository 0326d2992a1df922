package boundary_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// FuzzStable continues any text with any other, in a toy of each family: no
// stable token changes, the cover taken is one of the report's, and a text that
// grew has the report of one made at once. In families where the analysis is
// cautious, how much it keeps back depends on where the tail begins: there what
// grew must be sound by itself.
func FuzzStable(f *testing.F) {
	fams := families()
	var toks []*tokenizer.Tokenizer
	for i, fam := range fams {
		r := rand.New(rand.NewPCG(9, uint64(i)))
		toks = append(toks, fam.open(f, r, fam.alphabet))
	}
	for _, seed := range [][2]string{
		{"const userNa", "me"}, {"a  ", "b"}, {"a \n", "\n"}, {"it'", "s"}, {"'r", "e"}, {"12", "3"}, {"e", "\u0327\u0301"},
		{"x\xe2\x80", "\x83"}, {"\xf0\x9f", "\x98\x80"}, {"<a", ">"}, {"", "a"}, {"\x00", "\xff"}, {"ab a", "ba ▁"},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, text, s []byte) {
		for i, tok := range toks {
			rep := boundary.Analyze(tok, text)
			if _, err := check(tok, rep, text, s); err != nil {
				t.Errorf("family %d: %v", i, err)
			}
			x := tok.NewText(false)
			x.Append(text[:len(text)/2])
			boundary.Stable(x)
			x.Append(text[len(text)/2:])
			n, b := boundary.Stable(x)
			if fams[i].loose == 100 {
				own, more := tok.Encode(nil, text), tok.Encode(nil, slices.Concat(text, s))
				if vocab.CommonPrefix(own, more) < n {
					t.Errorf("family %d, text %q: grown, %d tokens are stable; followed by %q it has %v instead of %v", i, text, n, s, more, own)
				}
			} else if n != rep.Stable || b != rep.StableBytes {
				t.Errorf("family %d, text %q: grown, %d tokens and %d bytes are stable; at once %d and %d", i, text, n, b, rep.Stable, rep.StableBytes)
			}
			if len(text) < 64 {
				rep.Covers(4)
			}
		}
	})
}
