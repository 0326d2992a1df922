package replay

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/trace"
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

// growing makes conversations of hashed blocks, twenty at a time, that grow to
// about 50 blocks each; a third of the blocks are new.
type growing struct {
	rng     *rand.Rand
	left    int // blocks to come
	known   uint64
	running [20][]uint64
	req     trace.Request
}

func (g *growing) Next() (*trace.Request, error) {
	if g.left <= 0 {
		return nil, io.EOF
	}
	c := &g.running[g.rng.IntN(len(g.running))]
	if len(*c) > 48 || g.rng.IntN(3) == 0 {
		*c = nil
	}
	for range 1 + g.rng.IntN(16) {
		g.known++
		*c = append(*c, g.known*0x9e3779b97f4a7c15)
	}
	g.left -= len(*c)
	g.req = trace.Request{Blocks: *c, BlockTokens: 16, PromptTokens: len(*c) * 16}
	return &g.req, nil
}

// BenchmarkSweepSizes reports the time to read a block and to replay it by each
// policy, and the memory held for a prefix that is new.
func BenchmarkSweepSizes(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(size, " blocks"), func(b *testing.B) {
			var read, fifo, lru, optimal time.Duration
			var held, unique int
			since := func(d *time.Duration, start time.Time) { *d += time.Since(start) }
			for b.Loop() {
				start := time.Now()
				p, _, err := readPlan(b.Context(), &growing{rng: rand.New(rand.NewPCG(1, 2)), left: size})
				if err != nil {
					b.Fatal(err)
				}
				since(&read, start)
				unique = len(p.trie.ids) - 1
				held = cap(p.trie.ids)*8 + cap(p.trie.first)*4 + len(p.trie.table)*8 + cap(p.path)*4 + (cap(p.last)+cap(p.next))*8 +
					cap(p.requests)*int(unsafe.Sizeof(planned{})) + cap(p.unique)*8
				start = time.Now()
				p.fifo(unique/10, 0)
				since(&fifo, start)
				start = time.Now()
				p.lru(unique/10, 0)
				since(&lru, start)
				start = time.Now()
				p.optimal(unique/10, 0)
				since(&optimal, start)
			}
			per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.N) / float64(size) }
			b.ReportMetric(per(read), "read-ns/block")
			b.ReportMetric(per(fifo), "fifo-ns/block")
			b.ReportMetric(per(lru), "lru-ns/block")
			b.ReportMetric(per(optimal), "optimal-ns/block")
			b.ReportMetric(float64(held)/float64(unique), "B/prefix")
			b.ReportMetric(0, "ns/op")
		})
	}
}
