package boundary_test

import (
	"bytes"
	"testing"

	"github.com/unfray/unfray/boundary"
)

// BenchmarkAnalyze reports on prompts of an editor's size, and on long single
// pretokens, which cost most: their time for each byte shows that it is linear.
func BenchmarkAnalyze(b *testing.B) {
	tok := realTokenizer(b)
	text := realText(b, 200_000)
	for _, bm := range []struct {
		name string
		text []byte
	}{
		{"prompt 1.5 KB", text[40_000:41_500]},
		{"prompt 60 KB", text[:60_000]},
		{"letter 20 KB", bytes.Repeat([]byte("a"), 20_000)},
		{"letter 200 KB", bytes.Repeat([]byte("a"), 200_000)},
		{"blanks 200 KB", bytes.Repeat([]byte(" "), 200_000)},
		{"stars 200 KB", bytes.Repeat([]byte("*"), 200_000)},
		{"newlines 200 KB", bytes.Repeat([]byte("\n"), 200_000)},
		{"ab 200 KB", bytes.Repeat([]byte("ab"), 100_000)},
		{"halves 200 KB", bytes.Repeat([]byte("\xf0\x9f"), 100_000)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(int64(len(bm.text)))
			for b.Loop() {
				boundary.Analyze(tok, bm.text)
			}
		})
	}
}
