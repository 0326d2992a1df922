package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/trace"
)

// requests is a Source.
type requests []trace.Request

func (s *requests) Next() (*trace.Request, error) {
	if len(*s) == 0 {
		return nil, io.EOF
	}
	r := &(*s)[0]
	*s = (*s)[1:]
	return r, nil
}

// sharedData opens a trace that was handed to the project.
func sharedData(t testing.TB, name string) *trace.Reader {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs %s: %v", name, err)
	}
	r, err := trace.Open(path, trace.Options{BlockTokens: 512})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// A recorded sweep of kvcache-simulator.
type recorded struct {
	File        string
	BlockTokens int `json:"block_tokens"`
	Prompts     [][]uint64
	Requests    int64
	Blocks      int64
	Unique      int64
	Tokens      int64
	Ceiling     int64
	Points      [][4]*int64 // capacity, and hits by policy; nil: underfilled
}

func (rec *recorded) check(t *testing.T, src Source) {
	t.Helper()
	opt := SweepOptions{Measure: MeasureTail}
	for _, p := range rec.Points {
		opt.Capacities = append(opt.Capacities, int(*p[0]))
	}
	res, err := Sweep(t.Context(), src, opt)
	if err != nil {
		t.Fatal(err)
	}
	if res.Requests != rec.Requests || res.Blocks != rec.Blocks || res.UniqueBlocks != rec.Unique || res.PromptTokens != rec.Tokens || res.Ceiling.HitTokens != rec.Ceiling {
		t.Errorf("%d requests, %d blocks, %d unique, %d tokens, %d at most; kvcache-simulator has %d, %d, %d, %d, %d",
			res.Requests, res.Blocks, res.UniqueBlocks, res.PromptTokens, res.Ceiling.HitTokens, rec.Requests, rec.Blocks, rec.Unique, rec.Tokens, rec.Ceiling)
	}
	for i, pt := range res.Points {
		want := rec.Points[i/3][1+i%3]
		if pt.Underfilled != (want == nil) || want != nil && *want != pt.HitTokens {
			text := "underfilled"
			if want != nil {
				text = fmt.Sprint(*want)
			}
			t.Errorf("%s at %d blocks: %d hits, underfilled %t; kvcache-simulator has %s", pt.Policy, pt.Blocks, pt.HitTokens, pt.Underfilled, text)
		}
	}
}

func TestSweepEqualsKVCacheSimulator(t *testing.T) {
	text, err := os.ReadFile("testdata/kvcache-simulator.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Files, Traces []recorded }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for i, rec := range all.Traces {
		t.Run(fmt.Sprint("made up ", i), func(t *testing.T) {
			var src requests
			for _, p := range rec.Prompts {
				src = append(src, trace.Request{Blocks: p[1:], PromptTokens: int(p[0]), BlockTokens: rec.BlockTokens})
			}
			rec.check(t, &src)
		})
	}
	for _, rec := range all.Files {
		t.Run(rec.File, func(t *testing.T) { rec.check(t, sharedData(t, rec.File)) })
	}
}

// slow replays requests as the policies' definitions say, block by block. Blocks
// are named by their whole prefix.
func slow(policy string, reqs requests, capacity int) (hit, evictions int64) {
	type block struct {
		key    int // LRU: when it was used; Optimal: by which request it is next
		parent string
		order  int
	}
	names := make([][]string, len(reqs))
	seen := map[string]int{}
	for n, r := range reqs {
		for i := range r.Blocks {
			name := fmt.Sprint(r.Blocks[:i+1])
			names[n] = append(names[n], name)
			if _, ok := seen[name]; !ok {
				seen[name] = len(seen)
			}
		}
	}
	next := func(n int, name string) int {
		for m := n + 1; m < len(reqs); m++ {
			for _, other := range names[m] {
				if other == name {
					return m
				}
			}
		}
		return len(reqs)
	}
	cached := map[string]block{}
	clock := 0
	for n := range reqs {
		found := 0
		for found < len(names[n]) && cached[names[n][found]].order > 0 {
			name := names[n][found]
			b := cached[name]
			clock++
			if b.key = clock; policy == Optimal {
				b.key = next(n, name)
			}
			cached[name] = b
			found++
		}
		hit += int64(min(found*reqs[n].BlockTokens, reqs[n].PromptTokens))
		mine := map[string]bool{}
		for _, name := range names[n][:found] {
			mine[name] = true
		}
	store:
		for i := found; i < len(names[n]); i++ {
			name, parent := names[n][i], ""
			if i > 0 {
				parent = names[n][i-1]
				if _, ok := cached[parent]; !ok {
					break
				}
			}
			clock++
			b := block{clock, parent, seen[name] + 1}
			if policy == Optimal {
				b.key = next(n, name)
			}
			if len(cached) == capacity {
				worst := ""
				for candidate, c := range cached {
					leaf := true
					for _, other := range cached {
						leaf = leaf && other.parent != candidate
					}
					w := cached[worst]
					if !leaf || mine[candidate] {
						continue
					}
					if worst == "" || policy == LRU && c.key < w.key || policy == Optimal && (c.key > w.key || c.key == w.key && c.order > w.order) {
						worst = candidate
					}
				}
				if worst == "" || policy == Optimal && cached[worst].key <= b.key {
					break store
				}
				delete(cached, worst)
				evictions++
				if worst == parent {
					break store
				}
			}
			cached[name] = b
		}
	}
	return hit, evictions
}

// randomBlocks makes growing and branching prompts.
func randomBlocks(rng *rand.Rand, n, most int) (reqs requests) {
	paths := [][]uint64{nil}
	for range n {
		path := paths[rng.IntN(len(paths))]
		if rng.IntN(3) == 0 {
			path = path[:rng.IntN(len(path)+1)]
		}
		path = path[:len(path):len(path)]
		for range 1 + rng.IntN(4) {
			path = append(path, uint64(rng.IntN(4)))
		}
		path = path[:min(len(path), most)]
		paths = append(paths, path)
		reqs = append(reqs, trace.Request{Blocks: path, BlockTokens: 4, PromptTokens: len(path)*4 - rng.IntN(4)})
	}
	return reqs
}

func TestSweepEqualsDefinitions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		reqs := randomBlocks(rng, 1+rng.IntN(30), 1+rng.IntN(9))
		src := reqs
		res, err := Sweep(t.Context(), &src, SweepOptions{Policies: []string{LRU, Optimal}, Capacities: []int{1, 2, 3, 5, 9, 20, 100}})
		if err != nil {
			t.Fatal(err)
		}
		for _, pt := range res.Points {
			if hit, evictions := slow(pt.Policy, reqs, pt.Blocks); pt.HitTokens != hit || pt.Evictions != evictions {
				t.Fatalf("%s with %d blocks on %v: %d hits, %d evictions; by definition %d, %d", pt.Policy, pt.Blocks, reqs, pt.HitTokens, pt.Evictions, hit, evictions)
			}
		}
	}
}

// Nothing beats Optimal, and more room is never worse for it and for LRU but
// where prompts are larger than the cache.
func TestSweepOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		src := randomBlocks(rng, 100, 8)
		opt := SweepOptions{}
		for c := 8; c < 60; c++ {
			opt.Capacities = append(opt.Capacities, c)
		}
		res, err := Sweep(t.Context(), &src, opt)
		if err != nil {
			t.Fatal(err)
		}
		before := [3]int64{}
		for i := 0; i < len(res.Points); i += 3 {
			fifo, lru, optimal := res.Points[i].HitTokens, res.Points[i+1].HitTokens, res.Points[i+2].HitTokens
			if fifo > optimal || lru > optimal || optimal > res.Ceiling.HitTokens || lru < before[1] || optimal < before[2] {
				t.Fatalf("%d blocks: fifo %d, lru %d (before %d), optimal %d (before %d), ceiling %d",
					res.Points[i].Blocks, fifo, lru, before[1], optimal, before[2], res.Ceiling.HitTokens)
			}
			before = [3]int64{fifo, lru, optimal}
		}
	}
}

func TestSweepRefuses(t *testing.T) {
	one := trace.Request{Line: 1, Blocks: []uint64{1}, BlockTokens: 16, PromptTokens: -1}
	tests := []struct {
		name string
		src  requests
		opt  SweepOptions
		want string
	}{
		{"no blocks", requests{{Text: []byte("x")}}, SweepOptions{}, ErrNoContent.Error()},
		{"mixed", requests{one, {Line: 2, Blocks: []uint64{1}, BlockTokens: 8}}, SweepOptions{}, "replay: request at line 2 has blocks of 8 tokens, those before it of 16; split the trace by the size of the blocks"},
		{"no size", requests{{Line: 7, Blocks: []uint64{1}}}, SweepOptions{}, "replay: request at line 7 names blocks and not how many tokens they have"},
		{"policy", requests{one}, SweepOptions{Policies: []string{"mru"}}, `replay: unknown policy "mru": want fifo, lru or optimal, or an engine`},
		{"measure", requests{one}, SweepOptions{Measure: "head"}, `replay: unknown measure "head": want all or tail`},
		{"capacity", requests{one}, SweepOptions{Capacities: []int{-1}}, "replay: a capacity of -1 blocks: there must be 0 to 2147483646"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Sweep(t.Context(), &tt.src, tt.opt); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	failing := errors.New("line 3 is cut")
	if _, err := Sweep(t.Context(), source(func() (*trace.Request, error) { return nil, failing }), SweepOptions{}); !errors.Is(err, failing) {
		t.Errorf("error %v, want the source's", err)
	}
}

type source func() (*trace.Request, error)

func (f source) Next() (*trace.Request, error) { return f() }

// Engines in a sweep give what a replay through each of them does.
func TestSweepEngines(t *testing.T) {
	engines := []Engine{
		{"vllm", func(blocks, blockTokens int) (BlockCache, error) {
			return prefixcache.NewPaged(prefixcache.PagedOptions{BlockSize: blockTokens, Blocks: blocks + 1})
		}},
		{"sglang", func(blocks, blockTokens int) (BlockCache, error) {
			return prefixcache.NewRadix(prefixcache.RadixOptions{PageSize: blockTokens, Capacity: blocks * blockTokens})
		}},
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		reqs := prefixed(randomBlocks(rng, 80, 9))
		src := reqs
		res, err := Sweep(t.Context(), &src, SweepOptions{Policies: []string{LRU}, Engines: engines, Capacities: []int{3, 12, 30}})
		if err != nil {
			t.Fatal(err)
		}
		for i, pt := range res.Points {
			if i%3 == 0 {
				continue
			}
			src := reqs
			run, err := Run(t.Context(), &src, Options{NewCache: func() (prefixcache.Cache, error) { return engines[i%3-1].New(pt.Blocks, 4) }})
			if err != nil {
				t.Fatal(err)
			}
			if pt.Policy != engines[i%3-1].Name || pt.HitTokens != run.HitTokens || pt.Evictions != run.Evictions || pt.PromptTokens != res.PromptTokens {
				t.Errorf("%+v; a replay gives %d hits, %d evictions", pt, run.HitTokens, run.Evictions)
			}
		}
	}
	src := randomBlocks(rng, 3, 3)
	bad := Engine{"bad", func(int, int) (BlockCache, error) { return nil, errors.New("no such option") }}
	if _, err := Sweep(t.Context(), &src, SweepOptions{Engines: []Engine{bad}, Policies: []string{}, Capacities: []int{2}}); err == nil || err.Error() != "replay: bad with 2 blocks: no such option" {
		t.Errorf("error %v", err)
	}
}

// prefixed gives blocks identities of whole prefixes.
func prefixed(reqs requests) requests {
	for i := range reqs {
		reqs[i].Blocks = slices.Clone(reqs[i].Blocks)
		h := uint64(1)
		for k, b := range reqs[i].Blocks {
			h = mix(h, b+1)
			reqs[i].Blocks[k] = h
		}
	}
	return reqs
}
