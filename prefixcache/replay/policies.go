package replay

import "math/bits"

// A tally is what a policy gave.
type tally struct {
	hit       int64 // tokens, of requests that are measured
	evictions int64 // blocks
}

// fifo replays p with a queue of blocks. A block is cached as long as fewer than
// capacity blocks were stored after it, so the queue itself is not needed.
func (p *plan) fifo(capacity, measured int) (t tally) {
	// How many had been stored when a node was, itself included.
	stored := zeroed(&p.stored, len(p.trie.ids))
	room := uint32(capacity)
	count := room // so that 0 is long gone
	for n := range p.requests {
		r := &p.requests[n]
		known := p.path[r.first : r.first+r.seen]
		hit := 0
		for hit < len(known) && count-stored[known[hit]] < room {
			hit++
		}
		for _, node := range known[hit:] {
			if count-stored[node] >= room {
				count++
				stored[node] = count
			}
		}
		if r.seen < p.blocks(r) {
			first := p.path[r.first+r.seen]
			for i := range stored[first:][:p.blocks(r)-r.seen] {
				count++
				stored[int(first)+i] = count
			}
		}
		if n >= measured {
			t.hit += int64(p.tokensIn(r, hit))
		}
	}
	t.evictions = max(0, int64(count)-2*int64(capacity))
	return t
}

// zeroed gives n zeros, in the memory of an earlier call.
func zeroed[T any](s *[]T, n int) []T {
	if len(*s) == n {
		clear(*s)
	} else {
		*s = make([]T, n)
	}
	return *s
}

// A stretch is of the blocks above+1 to depth of a path.
type stretch struct{ above, depth uint32 }

// lru replays p with eviction of the least recently used leaf. A request uses
// its blocks from the root on, so the block used longest ago, and of those of
// one request the deepest, is a leaf always: what is left of the blocks that
// request r used last is a stretch of its path, which loses its start to later
// requests and its end to eviction.
//
// A prompt larger than the cache is stored as kvcache-simulator does it: where
// only its own blocks are left to throw away, the one stored last goes, unless
// it was found, and nothing more is stored.
func (p *plan) lru(capacity, measured int) (t tally) {
	stretches := zeroed(&p.stretches, len(p.requests))
	size, oldest := 0, 0
	for n := range p.requests {
		r := &p.requests[n]
		used := p.last[r.last.first:r.last.end]
		hit := 0
		for _, u := range used {
			hit = max(hit, int(min(u.depth, stretches[u.request].depth)))
			if hit < int(u.depth) {
				break
			}
		}
		for _, u := range used {
			stretches[u.request].above = u.depth
		}
		if n >= measured {
			t.hit += int64(p.tokensIn(r, hit))
		}
		need := p.blocks(r) - hit
		room := min(need, capacity-size)
		have := hit + room
		size += room
		for need -= room; need > 0; {
			for oldest < n && stretches[oldest].depth <= stretches[oldest].above {
				oldest++
			}
			if oldest == n {
				if have > hit {
					have--
					size--
					t.evictions++
				}
				break
			}
			s := &stretches[oldest]
			k := min(need, int(s.depth-s.above))
			s.depth -= uint32(k)
			have += k
			need -= k
			t.evictions += int64(k)
		}
		stretches[n] = stretch{0, uint32(have)}
	}
	return t
}

// optimal replays p with Belady's rule on leaves: throw away what is used again
// last, and do not store what is used again no sooner than all that is cached. A
// block is used again no sooner than those above it, so the rule itself chooses
// leaves, and the cached blocks that request r uses next are the start of what
// it will find: their number is all that has to be kept.
func (p *plan) optimal(capacity, measured int) (t tally) {
	next := newCounts(len(p.requests) + 1)
	size := 0
	for n := range p.requests {
		r := &p.requests[n]
		hit := next.clear(n)
		if n >= measured {
			t.hit += int64(p.tokensIn(r, hit))
		}
		above := 0
		for _, u := range p.next[r.next.first:r.next.end] {
			use := int(min(u.request, uint32(len(p.requests))))
			found := max(0, min(hit, int(u.depth))-above)
			need := int(u.depth) - above - found
			room := min(need, capacity-size)
			size += room
			next.add(use, found+room)
			for need -= room; need > 0; {
				latest := next.max()
				if latest <= use {
					break
				}
				k := next.take(latest, need)
				next.add(use, k)
				need -= k
				t.evictions += int64(k)
			}
			if need > 0 {
				break // what follows is used no sooner, and was not cached
			}
			above = int(u.depth)
		}
	}
	return t
}

// counts are numbers under keys, the largest key of which that is not 0 is found
// in time that does not grow with them.
type counts struct {
	n      []uint32
	levels [][]uint64 // bits: of keys that are not 0, of words of those, …
}

func newCounts(keys int) *counts {
	c := &counts{n: make([]uint32, keys)}
	for size := keys; ; size = len(c.levels[len(c.levels)-1]) {
		c.levels = append(c.levels, make([]uint64, (size+63)/64))
		if size <= 64 {
			return c
		}
	}
}

func (c *counts) add(key, k int) {
	if k == 0 {
		return
	}
	was := c.n[key]
	c.n[key] += uint32(k)
	if was == 0 {
		for _, level := range c.levels {
			old := level[key/64]
			level[key/64] |= 1 << (key % 64)
			if old != 0 {
				break
			}
			key /= 64
		}
	}
}

// take takes at most k away, and gives how many.
func (c *counts) take(key, k int) int {
	k = min(k, int(c.n[key]))
	c.n[key] -= uint32(k)
	if c.n[key] == 0 {
		for _, level := range c.levels {
			level[key/64] &^= 1 << (key % 64)
			if level[key/64] != 0 {
				break
			}
			key /= 64
		}
	}
	return k
}

// clear takes all away.
func (c *counts) clear(key int) int { return c.take(key, int(c.n[key])) }

// max is the largest key that is not 0; -1 if there is none.
func (c *counts) max() int {
	key := 0
	for i := len(c.levels) - 1; i >= 0; i-- {
		w := c.levels[i][key]
		if w == 0 {
			return -1
		}
		key = key*64 + bits.Len64(w) - 1
	}
	return key
}
