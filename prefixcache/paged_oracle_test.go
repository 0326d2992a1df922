package prefixcache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// A naiveEngine is vLLM with full attention, written as its documentation
// (docs/design/prefix_caching.md) tells it: a queue that is a slice, contents
// that are strings, every search a scan.
type naiveEngine struct {
	block     int
	queue     []int
	content   map[int]string // by block
	refs      map[int]int
	order     []int // blocks with content, in the order in which it was cached
	running   map[int][]int
	evictions int
}

func newNaiveEngine(blocks, block int) *naiveEngine {
	e := &naiveEngine{block: block, content: map[int]string{}, refs: map[int]int{}, running: map[int][]int{}}
	for b := 1; b < blocks; b++ {
		e.queue = append(e.queue, b)
	}
	return e
}

func (e *naiveEngine) find(content string) int {
	for _, b := range e.order {
		if e.content[b] == content {
			return b
		}
	}
	return 0
}

func (e *naiveEngine) take(request int) {
	b := e.queue[0]
	e.queue = e.queue[1:]
	if _, ok := e.content[b]; ok {
		delete(e.content, b)
		e.order = slices.DeleteFunc(e.order, func(o int) bool { return o == b })
		e.evictions++
	}
	e.refs[b] = 1
	e.running[request] = append(e.running[request], b)
}

func (e *naiveEngine) prefix(key string, ids []vocab.ID, blocks int) string {
	return key + fmt.Sprint(ids[:blocks*e.block])
}

// cache enters the full blocks of ids that the request holds.
func (e *naiveEngine) cache(request int, key string, ids []vocab.ID) {
	for k := range len(ids) / e.block {
		b := e.running[request][k]
		if _, ok := e.content[b]; !ok {
			e.content[b] = e.prefix(key, ids, k+1)
			e.order = append(e.order, b)
		}
	}
}

// begin returns the tokens found, -1 if there is no room.
func (e *naiveEngine) begin(request int, key string, ids []vocab.ID, bypass bool) int {
	var found []int
	for !bypass && (len(found)+1)*e.block < len(ids) {
		b := e.find(e.prefix(key, ids, len(found)+1))
		if b == 0 {
			break
		}
		found = append(found, b)
	}
	all := (len(ids) + e.block - 1) / e.block
	need := all - len(found)
	for _, b := range found {
		if e.refs[b] == 0 {
			need++
		}
	}
	if need > len(e.queue) {
		return -1
	}
	for _, b := range found {
		if e.refs[b] == 0 {
			e.queue = slices.DeleteFunc(e.queue, func(q int) bool { return q == b })
		}
		e.refs[b]++
	}
	e.running[request] = found
	for len(e.running[request]) < all {
		e.take(request)
	}
	e.cache(request, key, ids)
	return len(found) * e.block
}

func (e *naiveEngine) end(request int, key string, prompt, output []vocab.ID) {
	ids := slices.Clone(prompt)
	for k := 0; k+1 < len(output); k++ {
		if len(ids)%e.block == 0 {
			if len(e.queue) == 0 {
				break
			}
			e.take(request)
		}
		ids = append(ids, output[k])
		e.cache(request, key, ids)
	}
	var bare, full []int
	for _, b := range slices.Backward(e.running[request]) {
		if e.refs[b]--; e.refs[b] > 0 {
			continue
		}
		if _, ok := e.content[b]; ok {
			full = append(full, b)
		} else {
			bare = append(bare, b)
		}
	}
	e.queue = slices.Concat(bare, e.queue, full)
	delete(e.running, request)
}

// checkPaged fails if the cache's books do not balance.
func checkPaged(t *testing.T, p *Paged) {
	t.Helper()
	pool := &p.pool
	cached, queued, bare := 0, 0, 0
	for i := range pool.fresh {
		b := pool.at(int32(i))
		if b.newer != 0 {
			cached++
			if pool.at(b.newer).older != int32(i) || pool.at(b.older).newer != int32(i) {
				t.Fatalf("block %d is in a broken ring", i)
			}
			if o := pool.find(b.id); o == 0 {
				t.Fatalf("block %d is cached and not found", i)
			}
		}
	}
	for i := pool.at(0).next; i != 0; i = pool.at(i).next {
		if b := pool.at(i); b.refs != 0 || b.newer == 0 {
			t.Fatalf("block %d is queued: %+v", i, *b)
		}
		queued++
	}
	for i := pool.bare; i != 0; i = pool.at(i).next {
		if b := pool.at(i); b.refs != 0 || b.newer != 0 {
			t.Fatalf("block %d is on the stack: %+v", i, *b)
		}
		bare++
	}
	if cached != pool.cached || queued+bare+pool.total-pool.fresh != pool.free {
		t.Fatalf("%d cached, %d queued, %d on the stack, %d fresh; counted %d and %d free",
			cached, queued, bare, pool.total-pool.fresh, pool.cached, pool.free)
	}
}

func TestPagedIsTheNaiveEngine(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	for seed := range uint64(rounds) {
		comparePaged(t, rand.New(rand.NewPCG(seed, 9)))
	}
}

func comparePaged(t *testing.T, r *rand.Rand) {
	block, blocks := 1+r.IntN(6), 2+r.IntN(40)
	p := mustPaged(t, PagedOptions{BlockSize: block, Blocks: blocks})
	naive := newNaiveEngine(blocks, block)
	type running struct {
		number int
		lease  Lease
		key    string
		prompt []vocab.ID
	}
	var active []running
	seen := [][]vocab.ID{nil}
	for number := range 120 {
		if len(active) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(active))
			a := active[i]
			active = slices.Delete(active, i, i+1)
			output := randomIDs(r, r.IntN(4*block))
			p.Generated(a.lease, output[:r.IntN(len(output)+1)])
			p.End(a.lease, output)
			naive.end(a.number, a.key, a.prompt, output)
			seen = append(seen, slices.Concat(a.prompt, output))
		} else {
			old := seen[r.IntN(len(seen))]
			prompt := slices.Concat(old[:r.IntN(len(old)+1)], randomIDs(r, 1+r.IntN(3*block)))
			key := []string{"", "salt"}[r.IntN(2)]
			bypass := r.IntN(10) == 0
			want := naive.begin(number, key, prompt, bypass)
			l, err := p.Begin(&Request{Prompt: prompt, Keys: Keys{Salt: key}, Bypass: bypass})
			got := l.Cached
			if errors.Is(err, ErrNoRoom) || errors.Is(err, ErrTooLarge) {
				got = -1
				if tooLarge := len(prompt) > (blocks-1)*block; tooLarge != errors.Is(err, ErrTooLarge) {
					t.Fatalf("a prompt of %d tokens, %d blocks of %d: %v", len(prompt), blocks, block, err)
				}
			} else if err != nil {
				t.Fatal(err)
			} else {
				active = append(active, running{number, l, key, prompt})
			}
			if got != want {
				t.Fatalf("request %d: found %d tokens, want %d", number, got, want)
			}
		}
		s := p.Stats()
		if int(s.Blocks) != len(naive.order) || int(s.Evictions) != naive.evictions {
			t.Fatalf("request %d: %d blocks, %d evictions; want %d, %d",
				number, s.Blocks, s.Evictions, len(naive.order), naive.evictions)
		}
	}
	checkPaged(t, p)
}

func randomIDs(r *rand.Rand, n int) []vocab.ID {
	s := make([]vocab.ID, n)
	for i := range s {
		s[i] = vocab.ID(r.IntN(2))
	}
	return s
}

// TestPagedBlocksAreTokens feeds one cache with tokens and one with numbers for
// their prefixes.
func TestPagedBlocksAreTokens(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	groups := []LayerGroup{{BlockSize: 8}, {Kind: SlidingWindow, BlockSize: 4, Window: 11}}
	for _, o := range []PagedOptions{{BlockSize: 4, Blocks: 60}, {BlockSize: 4}, {Groups: groups, Blocks: 150}} {
		const block = 4
		byTokens, byBlocks := mustPaged(t, o), mustPaged(t, o)
		numbers := map[string]uint64{}
		number := func(ids []vocab.ID) []uint64 {
			var blocks []uint64
			for end := block; end < len(ids)+block; end += block {
				key := fmt.Sprint(ids[:min(end, len(ids))])
				if numbers[key] == 0 {
					numbers[key] = uint64(len(numbers) + 1)
				}
				blocks = append(blocks, numbers[key])
			}
			return blocks
		}
		seen := [][]vocab.ID{nil}
		for range 500 {
			old := seen[r.IntN(len(seen))]
			prompt := slices.Concat(old[:r.IntN(len(old)+1)], randomIDs(r, 1+r.IntN(20)))
			if len(prompt) > 100 {
				prompt = prompt[:5]
			}
			output := randomIDs(r, r.IntN(20))
			all := slices.Concat(prompt, output)
			a := beginPaged(t, byTokens, &Request{Prompt: prompt})
			b, err := byBlocks.BeginBlocks(number(prompt), len(prompt))
			if err != nil {
				t.Fatal(err)
			}
			byTokens.End(a, output)
			byBlocks.EndBlocks(b, number(all)[len(prompt)/block:], len(output))
			if a.Cached != b.Cached || byTokens.Stats() != byBlocks.Stats() {
				t.Fatalf("found %d and %d tokens; %+v and %+v", a.Cached, b.Cached, byTokens.Stats(), byBlocks.Stats())
			}
			seen = append(seen, all)
		}
		checkPaged(t, byTokens)
		checkPaged(t, byBlocks)
	}
}

// FuzzPaged drives engines of all kinds with requests from the fuzzer.
func FuzzPaged(f *testing.F) {
	f.Add([]byte{3, 20, 0, 0, 1, 2, 9, 200, 7, 7, 1, 30, 3})
	f.Add([]byte{7, 90, 1, 3, 10, 1, 40, 2, 5, 60, 0, 1, 80, 3, 4})
	f.Add([]byte{1, 9, 2, 2, 50, 250, 0, 7, 5, 3, 9, 9, 9, 9, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		at := 0
		next := func(n int) int {
			if at >= len(data) {
				return 0
			}
			at++
			return int(data[at-1]) % n
		}
		o := PagedOptions{BlockSize: 1 + next(8), Blocks: 2 + next(200), Lookahead: next(4), Eagle: next(2) == 1}
		if next(3) == 0 {
			o.Retention = Dense
		}
		for range next(4) {
			o.Groups = append(o.Groups, LayerGroup{Kind: LayerKind(next(3)), Window: 1 + next(30), BlockSize: o.BlockSize * (1 + next(2))})
		}
		o.BatchTokens = next(20)
		p, err := NewPaged(o)
		if err != nil {
			return
		}
		var leases []Lease
		for at < len(data) {
			if len(leases) > 0 && next(2) == 0 {
				i := next(len(leases))
				p.End(leases[i], make([]vocab.ID, next(40)))
				leases = slices.Delete(leases, i, i+1)
				continue
			}
			prompt := make([]vocab.ID, 1+next(100))
			if n := next(len(prompt)); n > 0 {
				prompt[n] = vocab.ID(next(3))
			}
			l, err := p.Begin(&Request{Prompt: prompt})
			if err == nil {
				leases = append(leases, l)
			}
			if l.Cached >= len(prompt) {
				t.Fatalf("found %d of %d tokens", l.Cached, len(prompt))
			}
		}
		for _, l := range leases {
			p.End(l, nil)
		}
		if p.pool.free != p.pool.total-1 {
			t.Fatalf("%d blocks free of %d after all requests ended", p.pool.free, p.pool.total-1)
		}
		checkPaged(t, p)
	})
}
