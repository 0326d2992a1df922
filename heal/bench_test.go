package heal_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// BenchmarkRows makes the first masks of 32 prompts, cut at random bytes of
// real text, in one block, beside clearing the block.
func BenchmarkRows(b *testing.B) {
	const rows = 32
	for _, name := range []string{"o200k_base.tiktoken", "llama3"} {
		tok, err := tokenizer.Open(tokenizertest.Path(b, name))
		if err != nil {
			b.Fatal(err)
		}
		text, err := os.ReadFile("plan.go")
		if err != nil {
			b.Fatal(err)
		}
		n := tok.Vocab().Len()
		block := make([]uint32, rows*((n+31)/32))
		r := rand.New(rand.NewPCG(1, 2))
		for _, mode := range []heal.Mode{heal.Stable, heal.Last} {
			sessions := make([]*heal.Session, 0, rows)
			for len(sessions) < rows {
				at := 1000 + r.IntN(len(text)-1000)
				p := heal.New(tok, tok.Encode(nil, text[at-1000:at]), mode)
				sessions = append(sessions, p.NewSession())
			}
			b.Run(name+" "+string(mode), func(b *testing.B) {
				for b.Loop() {
					for i, m := range heal.Rows(block, n) {
						sessions[i].FillMask(m)
					}
				}
			})
		}
		b.Run(name+" clear", func(b *testing.B) {
			for b.Loop() {
				clear(block)
			}
		})
	}
}
