package replay

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"

	"github.com/unfray/unfray/vocab"
)

// A tree holds sequences and tells how long a prefix of another they contain.
// It is a radix tree whose edges are stretches of one arena, so that it holds
// each distinct prefix's symbols once: a sequence costs its new symbols and at
// most two nodes, of 16 bytes and a place in a hash table, whose load is between
// 3/8 and 3/4, of 4. Its time is linear in the sequences' lengths, whatever they
// contain.
type tree[S symbol] struct {
	arena []S
	nodes []node
	// table finds a child by its parent and its edge's first symbol. It holds
	// nodes' numbers plus one; 0 is free.
	table []uint32
	held  int // places of table in use
	seed  uint64
}

// A symbol is a byte of a text or a token of one.
type symbol interface{ byte | vocab.ID }

// A node is the edge that leads to it. A root has no edge, and is not in the
// table.
type node struct {
	start  int64 // of its edge in the arena
	len    int32 // of its edge
	parent uint32
}

func newTree[S symbol]() *tree[S] {
	return &tree[S]{table: make([]uint32, 64), seed: maphash.Comparable(maphash.MakeSeed(), 0)}
}

// newRoot starts an empty set of sequences, which shares nothing with others in
// the tree.
func (t *tree[S]) newRoot() uint32 {
	t.nodes = append(t.nodes, node{})
	return uint32(len(t.nodes) - 1)
}

// slot is where the search for a child starts.
func (t *tree[S]) slot(parent uint32, first S) uint32 {
	hi, lo := bits.Mul64(uint64(parent)<<32|uint64(uint32(first))^t.seed, 0x9e3779b97f4a7c15)
	return uint32(hi^lo) & uint32(len(t.table)-1)
}

// find gives the place of a child in the table, or the free place where it would
// be.
func (t *tree[S]) find(parent uint32, first S) uint32 {
	for i := t.slot(parent, first); ; i = (i + 1) & uint32(len(t.table)-1) {
		n := t.table[i]
		if n == 0 || t.nodes[n-1].parent == parent && t.arena[t.nodes[n-1].start] == first {
			return i
		}
	}
}

// put enters a node that the table does not hold.
func (t *tree[S]) put(n uint32) {
	if t.held++; t.held*4 > len(t.table)*3 {
		old := t.table
		t.table = make([]uint32, 2*len(old))
		for _, n := range old {
			if n != 0 {
				nd := t.nodes[n-1]
				t.table[t.find(nd.parent, t.arena[nd.start])] = n
			}
		}
	}
	nd := t.nodes[n]
	t.table[t.find(nd.parent, t.arena[nd.start])] = n + 1
}

// walk follows seq from a root as far as the tree goes. It gives the node on
// whose edge it ended, how many symbols of that edge it followed, and how many
// symbols of seq it followed in all.
func (t *tree[S]) walk(root uint32, seq []S) (at uint32, along, n int) {
	at = root
	for n < len(seq) {
		child := t.table[t.find(at, seq[n])]
		if child == 0 {
			return at, int(t.nodes[at].len), n
		}
		at = child - 1
		nd := t.nodes[at]
		edge := t.arena[nd.start : nd.start+int64(nd.len)]
		along = common(edge, seq[n:])
		n += along
		if along < len(edge) {
			return at, along, n
		}
	}
	return at, int(t.nodes[at].len), n
}

// match is the length of the longest prefix of seq that begins a sequence of
// root.
func (t *tree[S]) match(root uint32, seq []S) int {
	_, _, n := t.walk(root, seq)
	return n
}

// insert adds a sequence, and gives what match gave before.
func (t *tree[S]) insert(root uint32, seq []S) int {
	at, along, n := t.walk(root, seq)
	if n == len(seq) {
		return n
	}
	if along < int(t.nodes[at].len) {
		at = t.split(at, along)
	}
	start := int64(len(t.arena))
	t.arena = append(t.arena, seq[n:]...)
	t.nodes = append(t.nodes, node{start: start, len: int32(len(seq) - n), parent: at})
	t.put(uint32(len(t.nodes) - 1))
	return n
}

// split puts a new node into n's edge after its first k symbols, and gives it.
func (t *tree[S]) split(n uint32, k int) uint32 {
	nd := t.nodes[n]
	place := t.find(nd.parent, t.arena[nd.start])
	t.nodes = append(t.nodes, node{start: nd.start, len: int32(k), parent: nd.parent})
	top := uint32(len(t.nodes) - 1)
	t.table[place] = top + 1
	t.nodes[n] = node{start: nd.start + int64(k), len: nd.len - int32(k), parent: top}
	t.put(n)
	return top
}

// bytes is the memory that the tree holds, in bytes.
func (t *tree[S]) bytes() int64 {
	size := int64(1)
	if _, ok := any(t).(*tree[vocab.ID]); ok {
		size = 4
	}
	return int64(cap(t.arena))*size + int64(cap(t.nodes))*16 + int64(len(t.table))*4
}

// common is the length of the longest common prefix.
func common[S symbol](a, b []S) int {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	i := 0
	if a, ok := any(a).([]byte); ok {
		b := any(b).([]byte)
		for ; i+8 <= n; i += 8 {
			if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
				return i + bits.TrailingZeros64(x)/8
			}
		}
	}
	for ; i < n; i++ {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
