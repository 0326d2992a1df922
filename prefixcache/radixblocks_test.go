package prefixcache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// A cache that is told the identities of pages does what one does that is told
// their tokens.
func TestRadixBlocks(t *testing.T) {
	for _, policy := range Policies {
		for _, page := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s/page=%d", policy, page), func(t *testing.T) {
				o := RadixOptions{PageSize: page, Capacity: 60 * page, Policy: policy, Chunk: 8 * page}
				byTokens, err := NewRadix(o)
				if err != nil {
					t.Fatal(err)
				}
				byBlocks, err := NewRadix(o)
				if err != nil {
					t.Fatal(err)
				}
				testBlocks(t, byTokens, byBlocks, page)
			})
		}
	}
}

func testBlocks(t *testing.T, byTokens, byBlocks *Radix, page int) {
	rng := rand.New(rand.NewPCG(7, uint64(page)))
	names := make(map[string]uint64)
	blocks := func(ids []vocab.ID) []uint64 {
		var all []uint64
		for end := page; end < len(ids)+page; end += page {
			key := fmt.Sprint(ids[:min(end, len(ids))])
			if names[key] == 0 {
				names[key] = rng.Uint64()
			}
			all = append(all, names[key])
		}
		return all
	}
	type run struct {
		a, b   Lease
		prompt []vocab.ID
	}
	var running []run
	var old [][]vocab.ID
	for i := range 2000 {
		if len(running) > 0 && (len(running) > 2 || rng.IntN(2) == 0) {
			x := running[0]
			running = running[1:]
			output := make([]vocab.ID, 1+rng.IntN(4*page))
			for j := range output {
				output[j] = vocab.ID(rng.IntN(2))
			}
			all := append(x.prompt[:len(x.prompt):len(x.prompt)], output...)
			if some := output[:rng.IntN(len(output))]; rng.IntN(2) == 0 {
				byTokens.Generated(x.a, some)
				byBlocks.Generated(x.b, some)
			}
			byTokens.End(x.a, output)
			byBlocks.EndBlocks(x.b, blocks(all)[len(x.prompt)/page:], len(output))
			old = append(old, all)
		} else {
			var prompt []vocab.ID
			if len(old) > 0 && rng.IntN(4) > 0 {
				from := old[max(0, len(old)-10)+rng.IntN(min(10, len(old)))]
				prompt = append(prompt, from[:rng.IntN(len(from)+1)]...)
			}
			for range 1 + rng.IntN(6*page) {
				prompt = append(prompt, vocab.ID(rng.IntN(2)))
			}
			a, errA := byTokens.Begin(&Request{Prompt: prompt})
			b, errB := byBlocks.BeginBlocks(blocks(prompt), len(prompt))
			if a != b || fmt.Sprint(errA) != fmt.Sprint(errB) {
				t.Fatalf("step %d: %v, %v by tokens, %v, %v by blocks", i, a, errA, b, errB)
			}
			if errA == nil {
				running = append(running, run{a, b, prompt})
			} else if errors.Is(errA, ErrTooLarge) {
				old = nil
			}
		}
		checkRadix(t, byBlocks)
		if a, b := byTokens.Stats(), byBlocks.Stats(); a != b {
			t.Fatalf("step %d: %+v by tokens, %+v by blocks", i, a, b)
		}
	}
	if s := byTokens.Stats(); s.HitTokens == 0 || s.Evictions == 0 {
		t.Errorf("nothing was found or nothing was evicted: %+v", s)
	}
}

func TestRadixBlocksErrors(t *testing.T) {
	r, err := NewRadix(RadixOptions{PageSize: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []int{-1, 9, 100} {
		if _, err := r.BeginBlocks([]uint64{1, 2}, tokens); err == nil {
			t.Errorf("%d tokens in two blocks of four were accepted", tokens)
		}
	}
	if r, err = NewRadix(RadixOptions{Bigrams: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.BeginBlocks([]uint64{1}, 1); err == nil {
		t.Error("blocks were accepted by a cache of bigrams")
	}
}

// blockTrace is conversations that grow: request i asks for what a random one of
// the last thousand had, and 20 blocks more; every tenth starts with nothing.
func blockTrace(blocks int) [][]uint64 {
	rng := rand.New(rand.NewPCG(3, 4))
	var all [][]uint64
	next := uint64(0)
	for n := 0; n < blocks; {
		var prompt []uint64
		if len(all) > 0 && rng.IntN(10) > 0 {
			prompt = append(prompt, all[max(0, len(all)-1000)+rng.IntN(min(1000, len(all)))]...)
		}
		if len(prompt) > 200 {
			prompt = prompt[:100]
		}
		for range 20 {
			next++
			prompt = append(prompt, next*0x9e3779b97f4a7c15)
		}
		all = append(all, prompt)
		n += len(prompt)
	}
	return all
}

// The figures are of blocks that requests ask for; capacity is what share of the
// distinct ones the cache holds. bytes/held is the heap per block held.
func BenchmarkRadixBlocks(b *testing.B) {
	for _, blocks := range []int{1e4, 1e5, 1e6, 1e7} {
		trace := blockTrace(blocks)
		for _, capacity := range []int{0, blocks / 20} {
			b.Run(fmt.Sprintf("blocks=%d/capacity=%d", blocks, capacity), func(b *testing.B) {
				asked := 0
				for _, prompt := range trace {
					asked += len(prompt)
				}
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				var r *Radix
				for b.Loop() {
					var err error
					if r, err = NewRadix(RadixOptions{PageSize: 512, Capacity: 512 * capacity}); err != nil {
						b.Fatal(err)
					}
					for _, prompt := range trace {
						l, err := r.BeginBlocks(prompt, 512*len(prompt))
						if err != nil {
							b.Fatal(err)
						}
						r.End(l, nil)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*asked), "ns/block")
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(r.Stats().Blocks), "bytes/held")
				b.ReportMetric(r.Stats().HitRate(), "hits")
			})
		}
	}
}
