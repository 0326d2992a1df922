package replay

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

func BenchmarkSweepMooncake(b *testing.B) {
	capacities := []int{22, 44, 88, 176, 352, 704, 1409, 2818, 5637, 11275, 22550, 45100, 90200}
	for _, name := range []string{"conversation", "synthetic"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r := sharedData(b, "mooncake-"+name+".jsonl.gz")
				if _, err := Sweep(b.Context(), r, SweepOptions{Measure: MeasureTail, Capacities: capacities}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Losses told apart too: three caches of vLLM's kind.
func BenchmarkRunMooncake(b *testing.B) {
	for b.Loop() {
		r := sharedData(b, "mooncake-conversation.jsonl.gz")
		if _, err := Run(b.Context(), r, Options{NewCache: paged(512, 10_000), NewUnlimited: paged(512, 0), Workers: 2, Routing: PrefixAware}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAccount enters conversations of random tokens of four bytes that grow
// by 200 tokens to 4,000. It reports time for each token of the prompts, and
// memory for each token that is new.
func BenchmarkAccount(b *testing.B) {
	const words, turns, turn = 50_000, 20, 200
	var tokens [][]byte
	for i := range words {
		tokens = append(tokens, fmt.Appendf(nil, "%c%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26, 'a'+i/17576%26))
	}
	v, err := vocab.New(tokens, make([]vocab.Kind, words), vocab.NoSpecials())
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(size, " new tokens"), func(b *testing.B) {
			var held int64
			added := 0
			for b.Loop() {
				rng := rand.New(rand.NewPCG(1, 1))
				a := newAccount(v)
				added = 0
				for n := 0; n < size; n += turns * turn {
					var prompt []vocab.ID
					for range turns {
						for range turn {
							prompt = append(prompt, vocab.ID(rng.IntN(words)))
						}
						a.add(&prefixcache.Keys{}, prompt, nil)
						added += len(prompt)
					}
				}
				held = a.bytes()
				runtime.KeepAlive(a)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(added), "ns/token")
			b.ReportMetric(float64(held)/float64(size), "B/new-token")
			b.ReportMetric(0, "ns/op")
		})
	}
}
