package audit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// BenchmarkAudit is of 10,000 prompts of about 2,000 tokens: a clock before a
// system prompt, then 30 lines drawn from a text.
func BenchmarkAudit(b *testing.B) {
	tok := open(b, "qwen3")
	text := tokenizertest.Corpus(b, "go")
	system := string(text[:6000])
	lines := strings.SplitAfter(string(text[6000:200_000]), "\n")
	rng := rand.New(rand.NewPCG(1, 1))
	prompts := make([]Prompt, 10_000)
	size := 0
	for i := range prompts {
		var s strings.Builder
		fmt.Fprintf(&s, "<|im_start|>system\nTime: 2026-11-30T10:%02d:%02dZ\n%s<|im_end|>\n<|im_start|>user\n", i/60%60, i%60, system)
		for range 30 {
			s.WriteString(lines[rng.IntN(len(lines))])
		}
		s.WriteString("<|im_end|>\n" + open4)
		prompts[i].Text = []byte(s.String())
		size += s.Len()
	}
	for _, suggestions := range []bool{false, true} {
		b.Run(fmt.Sprintf("suggestions=%v", suggestions), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				rep, err := Audit(prompts, Options{Tokenizer: tok, Special: true, NoSuggestions: !suggestions})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(rep.PromptTokens), "tokens")
			}
		})
	}
}
