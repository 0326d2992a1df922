//go:build llama

package ttfb

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/engine"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
)

// BenchmarkParallel runs 32 streams at once, healed and unhealed in turn, and
// compares tokens a second. The passes are those of a prompt that has the engine
// to itself: how many more healing took for the same number of tokens.
func BenchmarkParallel(b *testing.B) {
	lib, path := os.Getenv("UNFRAY_TEST_LIB"), os.Getenv("UNFRAY_TEST_MODEL")
	if lib == "" || path == "" {
		b.Skip("UNFRAY_TEST_LIB and UNFRAY_TEST_MODEL are not set: make bench sets them")
	}
	tok, err := tokenizer.OpenGGUF(path)
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.Open(engine.Options{ModelPath: path, LibraryPath: lib, ContextTokens: 512, CacheTokens: 16384, Parallel: 32, Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	m, err := unfray.NewModel(e, tok)
	if err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		b.Fatal(err)
	}
	serial := 0
	prompt := func(i int) []byte {
		at := (i * 577) % (len(text) - 300)
		serial++
		return []byte(fmt.Sprintf("%06d\n%s", serial*7919%1_000_000, strings.TrimRight(string(text[at:at+300]), " \t\n")))
	}
	run := func(mode heal.Mode, t float64) (tokens int, took time.Duration) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		start := time.Now()
		for i := range 32 {
			p := prompt(i)
			wg.Go(func() {
				seed := uint64(i)
				r, err := m.Complete(b.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: p}, Heal: mode, MaxTokens: 32, Sampling: backend.Sampling{Temperature: t, Seed: &seed}})
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				tokens += r.Usage.CompletionTokens
				mu.Unlock()
			})
		}
		wg.Wait()
		return tokens, time.Since(start)
	}
	for _, t := range []float64{0, 1} {
		b.Run(fmt.Sprintf("temperature %v", t), func(b *testing.B) {
			var ratios []float64
			for i := 0; b.Loop(); i++ {
				modes := []heal.Mode{heal.Off, heal.Exact}
				speed := map[heal.Mode]float64{}
				for k := range modes {
					mode := modes[(i+k)%2]
					n, took := run(mode, t)
					speed[mode] = float64(n) / took.Seconds()
				}
				ratios = append(ratios, speed[heal.Exact]/speed[heal.Off])
			}
			b.ReportMetric(median(ratios), "exact/off")
		})
		b.Run(fmt.Sprintf("extra passes, temperature %v", t), func(b *testing.B) {
			extra, n := 0, 0
			for i := 0; b.Loop(); i++ {
				for k := range 20 {
					p := prompt(20*i + k)
					passes := func(mode heal.Mode) (int, int) {
						seed := uint64(k)
						r, err := m.Complete(b.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: p}, Heal: mode, MaxTokens: 4, Sampling: backend.Sampling{Temperature: t, Seed: &seed}})
						if err != nil {
							b.Fatal(err)
						}
						return r.Healing.ForwardPasses, r.Usage.CompletionTokens
					}
					// The first of the two finds no prefix in the cache, the second does: warm it.
					passes(heal.Off)
					healed, a := passes(heal.Exact)
					plain, c := passes(heal.Off)
					if a == c {
						extra += healed - plain
						n++
					}
				}
			}
			b.ReportMetric(float64(extra)/float64(max(1, n)), "extra-passes")
		})
	}
}
