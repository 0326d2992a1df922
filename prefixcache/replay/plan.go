package replay

import (
	"hash/maphash"
	"math"
	"slices"
)

// A plan is a trace of block identities made ready for replays: a trie of the
// prompts, and for each prompt where its blocks were used before and will be
// used next.
//
// A block that was used has had its whole prefix used with it. So of the blocks
// on one prompt's path, those last used by request r stand next to each other,
// deeper ones were last used no later than those above them, and used next no
// earlier. Runs of equal requests tell all of it: there are few, however long
// prompts are.
//
// It holds 12 bytes for each distinct prefix (16 while it is made), those of a
// branch (11 to 22) for one that is not the first after its parent, and 4 bytes
// for each block of a prompt.
type plan struct {
	blockTokens int
	trie        trie
	requests    []planned
	path        []uint32 // nodes of all prompts, one after the other
	last, next  []run
	unique      []int // prefixes known after each request

	// What policies note while they run, kept for the next one.
	stored    []uint32
	stretches []stretch
}

// A planned request has its blocks in path[first:end].
type planned struct {
	first, end int
	tokens     int
	whole      int // blocks that tokens need
	seen       int // blocks at its start that an earlier request had; the others are the newest nodes, in order
	last, next runs
}

type runs struct{ first, end int }

// A run says that the blocks of a path up to a depth, counted from 1, and behind
// the run before it were last used, or are used next, by a request.
type run struct{ request, depth uint32 }

// never is the request of a run that no request uses next.
const never = math.MaxUint32

func (p *plan) blocks(r *planned) int { return r.end - r.first }

// tokensIn is how many tokens the first n of a request's blocks have. As in
// kvcache-simulator (0.1.3, trace.py: block_tokens), the last block has what is
// left, and blocks beyond the prompt's length have a token each.
func (p *plan) tokensIn(r *planned, n int) int {
	return min(n*p.blockTokens, r.tokens) + max(0, n-r.whole)
}

// add appends a request.
func (p *plan) add(blocks []uint64, tokens int) {
	n := uint32(len(p.requests))
	r := planned{first: len(p.path), tokens: tokens, whole: (tokens-1)/p.blockTokens + 1, seen: -1, last: runs{first: len(p.last)}}
	at := uint32(0)
	for i, id := range blocks {
		child, isNew := p.trie.child(at, id)
		if isNew {
			if r.seen < 0 {
				r.seen = i
			}
		} else if used := p.trie.used[child]; len(p.last) > r.last.first && p.last[len(p.last)-1].request == used {
			p.last[len(p.last)-1].depth = uint32(i + 1)
		} else {
			room(&p.last)
			p.last = append(p.last, run{used, uint32(i + 1)})
		}
		p.trie.used[child] = n
		room(&p.path)
		p.path = append(p.path, child)
		at = child
	}
	if r.seen < 0 {
		r.seen = len(blocks)
	}
	r.end, r.last.end = len(p.path), len(p.last)
	room(&p.requests)
	p.requests = append(p.requests, r)
	room(&p.unique)
	p.unique = append(p.unique, len(p.trie.ids)-1)
}

// finish finds the next uses, when all requests are there.
func (p *plan) finish() {
	next := p.trie.used
	for i := range next {
		next[i] = never
	}
	for n := len(p.requests) - 1; n >= 0; n-- {
		r := &p.requests[n]
		r.next.first = len(p.next)
		for i, node := range p.path[r.first:r.end] {
			if len(p.next) > r.next.first && p.next[len(p.next)-1].request == next[node] {
				p.next[len(p.next)-1].depth = uint32(i + 1)
			} else {
				room(&p.next)
				p.next = append(p.next, run{next[node], uint32(i + 1)})
			}
			next[node] = uint32(n)
		}
		r.next.end = len(p.next)
	}
	p.trie.used = nil
}

// A trie numbers prefixes of block identities. The first block that follows a
// prefix is found without a search.
type trie struct {
	ids   []uint64 // of the block that each node adds to its parent; node 0 is the root
	first []uint32 // child of each node; 0: none
	used  []uint32 // by which request last

	table []branch // finds children that are not the first
	held  int
	seed  uint64
}

// A branch is a node and its parent; node 0 is a free place.
type branch struct{ parent, node uint32 }

func newTrie() trie {
	return trie{ids: make([]uint64, 1), first: make([]uint32, 1), used: make([]uint32, 1), table: make([]branch, 64), seed: maphash.Comparable(maphash.MakeSeed(), 0)}
}

// child gives the node that a block leads to, and whether it is new.
func (t *trie) child(at uint32, id uint64) (node uint32, isNew bool) {
	first := t.first[at]
	if first == 0 {
		t.first[at] = t.grow(id)
		return t.first[at], true
	}
	if t.ids[first] == id {
		return first, false
	}
	place := t.place(at, id)
	if node := t.table[place].node; node != 0 {
		return node, false
	}
	node = t.grow(id)
	t.table[place] = branch{at, node}
	if t.held++; t.held*4 > len(t.table)*3 {
		old := t.table
		t.table = make([]branch, 2*len(old))
		for _, b := range old {
			if b.node != 0 {
				t.table[t.place(b.parent, t.ids[b.node])] = b
			}
		}
	}
	return node, true
}

// place is where a branch is in the table, or the free place where it would be.
func (t *trie) place(parent uint32, id uint64) uint32 {
	mask := uint32(len(t.table) - 1)
	for i := uint32(mix(mix(id, t.seed)+uint64(parent), t.seed)) & mask; ; i = (i + 1) & mask {
		if b := t.table[i]; b.node == 0 || b.parent == parent && t.ids[b.node] == id {
			return i
		}
	}
}

func (t *trie) grow(id uint64) uint32 {
	room(&t.ids)
	t.ids = append(t.ids, id)
	room(&t.first)
	t.first = append(t.first, 0)
	room(&t.used)
	t.used = append(t.used, 0)
	return uint32(len(t.ids) - 1)
}

// room makes s ready for an append to what will become large: it doubles it, where
// append adds a quarter and so touches more memory in all.
func room[T any](s *[]T) {
	if len(*s) == cap(*s) {
		*s = slices.Grow(*s, max(len(*s), 64))
	}
}
