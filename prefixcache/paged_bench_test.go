package prefixcache

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// BenchmarkPagedBlocks measures the cache that a replay of hashed traces
// drives, full from the start: half of the requests repeat a random prompt of
// the younger half of those cached, the other half are new and evict. ns/block counts a request's
// looking up, taking, caching and freeing; B/block is the heap of a full cache.
func BenchmarkPagedBlocks(b *testing.B) {
	const prompt = 64 // blocks
	for _, size := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			before := heapBytes()
			p := mustPaged(b, PagedOptions{Blocks: size + 1})
			blocks := make([]uint64, prompt)
			request := func(conversation uint64) {
				for k := range blocks {
					blocks[k] = conversation<<8 | uint64(k)
				}
				l, err := p.BeginBlocks(blocks, prompt*DefaultBlockSize)
				if err != nil {
					b.Fatal(err)
				}
				p.EndBlocks(l, nil, 0)
			}
			next := uint64(0)
			for ; p.Stats().Evictions == 0; next++ {
				request(next)
			}
			held := heapBytes() - before
			random := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			warm := p.Stats()
			n := 0
			for b.Loop() {
				if n++; n%2 == 0 {
					request(next - 1 - random.Uint64N(uint64(size/prompt/2)))
				} else {
					request(next)
					next++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/prompt, "ns/block")
			b.ReportMetric(float64(held)/float64(size), "B/block")
			s := p.Stats()
			b.ReportMetric(float64(s.HitTokens-warm.HitTokens)/float64(s.PromptTokens-warm.PromptTokens)*100, "%hit")
		})
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkPagedTokens is a growing conversation by its tokens.
func BenchmarkPagedTokens(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	prompt := make([]vocab.ID, 8192)
	for i := range prompt {
		prompt[i] = vocab.ID(random.IntN(150_000))
	}
	p := mustPaged(b, PagedOptions{Blocks: 100_000})
	b.ReportAllocs()
	tokens := 0
	for b.Loop() {
		prompt[random.IntN(len(prompt))]++
		p.End(beginPaged(b, p, &Request{Prompt: prompt}), prompt[:100])
		tokens += len(prompt)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tokens), "ns/token")
}
