package boundary_test

import (
	"math/rand/v2"
	"testing"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// FuzzAnalyze continues any text with any other: no stable token changes, and
// the cover taken is one the branches allow.
func FuzzAnalyze(f *testing.F) {
	r := rand.New(rand.NewPCG(9, 9))
	alphabet := []string{"a", "b", " ", "\n", "'", "s", "r", "e", "1", "é", "\u2003", "<"}
	toks := []*tokenizer.Tokenizer{
		tokenizertest.BPE(f, gguftest.BPE{Merges: randomMerges(r, alphabet, 60)}),
		tokenizertest.BPE(f, gguftest.BPE{Pre: "smollm", Merges: randomMerges(r, alphabet, 60, "<a>"), Added: []string{"<a>"}}),
	}
	for _, seed := range [][2]string{
		{"const userNa", "me"}, {"a  ", "b"}, {"a \n", "\n"}, {"it'", "s"}, {"'r", "e"}, {"12", "3"},
		{"x\xe2\x80", "\x83"}, {"\xf0\x9f", "\x98\x80"}, {"<a", ">"}, {"", "a"}, {"\x00", "\xff"},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, text, s []byte) {
		for _, tok := range toks {
			rep := boundary.Analyze(tok, text)
			if err := checkContinuation(tok, rep, text, s, nil, nil); err != nil {
				t.Error(err)
			}
			if len(text) < 64 {
				rep.Covers(4)
			}
		}
	})
}
