package boundary_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// benchTokenizer is o200k's if the vocabularies are there, else the model's.
func benchTokenizer(b *testing.B) *tokenizer.Tokenizer {
	dir := os.Getenv("UNFRAY_TEST_VOCABS")
	if dir == "" {
		return realTokenizer(b)
	}
	tok, err := tokenizer.Open(filepath.Join(dir, "o200k_base.tiktoken"))
	if err != nil {
		b.Fatal(err)
	}
	return tok
}

// BenchmarkCut measures prompts of 1,500 bytes that end at random places of real
// text, and as a yardstick the encoding of 1,000 bytes of the same text. Each
// figure is the median over the cuts. A "grown" text had all but its last 16
// bytes before the clock starts.
func BenchmarkCut(b *testing.B) {
	tok := benchTokenizer(b)
	text := realText(b, 400_000)
	r := rand.New(rand.NewPCG(1, 2))
	const promptBytes, grown, cuts = 1500, 16, 1000
	ends := make([]int, cuts)
	for i := range ends {
		ends[i] = promptBytes + r.IntN(len(text)-promptBytes)
	}
	var ids []vocab.ID
	x := tok.NewText(false)
	setup := func(prompt []byte) {
		x.Reset()
		x.Append(prompt[:promptBytes-grown])
		boundary.Stable(x)
	}
	for _, bm := range []struct {
		name  string
		setup func(prompt []byte)
		run   func(prompt []byte)
	}{
		{"encode 1000 bytes", nil, func(p []byte) { ids = tok.Encode(ids[:0], p[promptBytes-1000:]) }},
		{"grown: tokens", setup, func(p []byte) { x.Append(p[promptBytes-grown:]); x.IDs() }},
		{"grown: tail", setup, func(p []byte) { x.Append(p[promptBytes-grown:]); x.Tail(&tail) }},
		{"grown: stable", setup, func(p []byte) { x.Append(p[promptBytes-grown:]); boundary.Stable(x) }},
		{"grown: branches", setup, func(p []byte) { x.Append(p[promptBytes-grown:]); boundary.AnalyzeText(x) }},
		{"grown: covers counted", setup, func(p []byte) {
			x.Append(p[promptBytes-grown:])
			boundary.AnalyzeText(x).Count()
		}},
		{"whole: report", nil, func(p []byte) { boundary.Analyze(tok, p) }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			times := make([]time.Duration, cuts)
			best := time.Duration(1 << 62)
			for b.Loop() {
				for i, end := range ends {
					prompt := text[end-promptBytes : end]
					if bm.setup != nil {
						bm.setup(prompt)
					}
					start := time.Now()
					bm.run(prompt)
					times[i] = time.Since(start)
				}
				slices.Sort(times)
				best = min(best, times[cuts/2])
			}
			b.ReportMetric(float64(best.Nanoseconds()), "ns/cut")
			b.ReportMetric(0, "ns/op")
		})
	}
}

var tail tokenizer.Tail

// BenchmarkLong reports on long single pretokens, which cost most: their time for each byte
// shows that it is linear.
func BenchmarkLong(b *testing.B) {
	tok := benchTokenizer(b)
	for _, bm := range []struct {
		name string
		text []byte
	}{
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

// TestStableAllocations: a stable prefix allocates nothing in steady state.
func TestStableAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tok := toy(t, "smollm", [][2]string{{"a", "b"}, {" ", "ab"}, {"e", "r"}})
	x := tok.NewText(false)
	x.Append([]byte("The first words, then some ab"))
	size := len(x.Bytes())
	if n := testing.AllocsPerRun(200, func() {
		x.Truncate(size)
		x.Append([]byte(" aber"))
		boundary.Stable(x)
	}); n > 0 {
		t.Errorf("%.1f allocations", n)
	}
}
