package prefixcache

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// A radixSpace separates entries that never share a node, although their tokens
// may be equal.
type radixSpace struct{ salt, lora, extra string }

// A radixNode holds the pages between its parent's end and its own.
//
// The rules of order are those of SGLang 0.5.23, UnifiedTreeNode and
// UnifiedTreeCore (mem_cache/unified_cache/unified_tree_core.py): a counter is
// the clock, and every event takes its own tick, so no two nodes tie.
type radixNode struct {
	id     uint64
	parent *radixNode  // nil in the root of a space
	space  *radixSpace // of a root
	edge   []uint64    // a page each
	slack  int         // pages before edge that its array still holds
	end    int         // pages from the root to the end of edge
	reach  int         // the highest end that there ever was under the node
	kids   int         // children
	locks  int         // running requests whose path passes here

	access, created int64 // ticks of the clock
	hits            int64 // requests that inserted their tokens over this node
	priority        int   // the highest of those requests
	pos             int   // in radixTree.leaves; -1: not there
}

type radixEdge struct {
	parent uint64
	page   uint64 // the first of the child's edge
}

// A radixTree is a compressed trie of pages with the leaves that may be evicted
// in the order of a policy. Its memory is linear in the pages it holds.
type radixTree struct {
	o      RadixOptions
	roots  map[radixSpace]*radixNode
	kids   map[radixEdge]*radixNode // of all nodes, to spare a map in each
	leaves leafHeap[*radixNode]
	path   []*radixNode // scratch of insert
	clock  int64
	lastID uint64
	size   int // pages held
	locked int // of them, in nodes with locks
}

func newRadixTree(o RadixOptions) *radixTree {
	t := &radixTree{
		o:     o,
		roots: make(map[radixSpace]*radixNode),
		kids:  make(map[radixEdge]*radixNode),
	}
	t.leaves.inOrder = t.less
	return t
}

func (t *radixTree) tick() int64 {
	t.clock++
	return t.clock
}

func (t *radixTree) newNode(parent *radixNode) *radixNode {
	t.lastID++
	n := &radixNode{id: t.lastID, parent: parent, pos: -1}
	n.access = t.tick()
	n.created = t.tick()
	return n
}

// common is the length of the longest common prefix.
func common(a, b []uint64) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// match returns the node at which the longest held prefix of key ends, which it
// splits off where it ends inside of one; nil if nothing matches. The path is
// accessed now, the end latest.
func (t *radixTree) match(space radixSpace, key []uint64) *radixNode {
	root := t.roots[space]
	if root == nil {
		return nil
	}
	node, depth := root, int64(0)
	for len(key) > 0 {
		child := t.kids[radixEdge{node.id, key[0]}]
		if child == nil {
			break
		}
		n := common(child.edge, key)
		if n < len(child.edge) {
			child = t.split(child, n)
			key = key[:n]
		}
		node, key = child, key[n:]
		depth++
	}
	if node == root {
		return nil
	}
	t.clock += depth
	at := t.clock
	for n := node; n != root; n = n.parent {
		n.access = at
		at--
		t.leaves.fix(n)
	}
	return node
}

// insert holds key under from, the end of a held path (nil: the root), and
// returns the node at which it ends; from if key is empty. The path is accessed
// from the root on; its nodes are raised to priority, and get a hit where they
// end after counted pages, which is what the same request has inserted before.
func (t *radixTree) insert(space radixSpace, from *radixNode, key []uint64, priority, counted int) *radixNode {
	if from == nil && len(key) == 0 {
		return nil
	}
	node := t.retrace(from, priority, counted)
	if node == nil {
		if node = t.roots[space]; node == nil {
			node = t.newNode(nil)
			own := space // so that only this moves to the heap
			node.space = &own
			t.roots[space] = node
		}
	}
	for len(key) > 0 {
		child := t.kids[radixEdge{node.id, key[0]}]
		if child == nil {
			break
		}
		child.access = t.tick()
		n := common(child.edge, key)
		if n < len(child.edge) {
			child = t.split(child, n)
		}
		t.visit(child, priority, counted)
		node, key = child, key[n:]
	}
	if len(key) == 0 {
		return node
	}
	leaf := t.newNode(node)
	leaf.edge = slices.Clone(key)
	leaf.end = node.end + len(key)
	for n := leaf; n != nil && n.reach < leaf.end; n = n.parent {
		n.reach = leaf.end
	}
	t.kids[radixEdge{node.id, key[0]}] = leaf
	node.kids++
	t.size += len(key)
	t.place(node)
	t.visit(leaf, priority, counted)
	t.place(leaf)
	return leaf
}

// retrace is insert's walk over the path that ends at from, which it returns.
func (t *radixTree) retrace(from *radixNode, priority, counted int) *radixNode {
	if from == nil {
		return nil
	}
	t.path = t.path[:0]
	for n := from; n.parent != nil; n = n.parent {
		t.path = append(t.path, n)
	}
	for _, n := range slices.Backward(t.path) {
		n.access = t.tick()
		t.visit(n, priority, counted)
	}
	return from
}

func (t *radixTree) visit(n *radixNode, priority, counted int) {
	n.priority = max(n.priority, priority)
	if n.end > counted {
		n.hits++
	}
	t.leaves.fix(n)
}

// split cuts child after n of its pages and returns the new node, which holds
// them. The child keeps its identity and its end.
func (t *radixTree) split(child *radixNode, n int) *radixNode {
	top := t.newNode(child.parent)
	top.priority = child.priority
	top.hits = child.hits
	top.created = child.created
	top.locks = child.locks
	top.kids = 1
	top.reach = child.reach
	top.edge = slices.Clone(child.edge[:n])
	top.end = child.end - len(child.edge) + n
	t.kids[radixEdge{top.parent.id, top.edge[0]}] = top

	child.parent = top
	child.edge = dropFront(child.edge, n, &child.slack)
	t.kids[radixEdge{top.id, child.edge[0]}] = child
	child.access = t.tick()
	t.leaves.fix(child)
	return top
}

// dropFront cuts n pages off. It copies what remains where slack, the pages that
// were cut off before, outweighs it: always would take quadratic time, never
// would keep what nobody needs.
func dropFront(edge []uint64, n int, slack *int) []uint64 {
	edge = edge[n:]
	if *slack += n; *slack > len(edge) {
		*slack = 0
		return slices.Clone(edge)
	}
	return edge
}

// lock keeps the path that ends at n; nil is the root, which is never evicted.
func (t *radixTree) lock(n *radixNode) {
	for ; n != nil && n.parent != nil; n = n.parent {
		if n.locks++; n.locks == 1 {
			t.locked += len(n.edge)
			t.place(n)
		}
	}
}

func (t *radixTree) unlock(n *radixNode) {
	for ; n != nil && n.parent != nil; n = n.parent {
		if n.locks--; n.locks == 0 {
			t.locked -= len(n.edge)
			t.place(n)
		}
	}
}

// evict throws away the policy's first leaf, whole, and returns its pages; 0 if
// there is none.
func (t *radixTree) evict() int {
	if len(t.leaves.nodes) == 0 {
		return 0
	}
	n := t.leaves.take()
	delete(t.kids, radixEdge{n.parent.id, n.edge[0]})
	t.size -= len(n.edge)
	n.parent.kids--
	t.place(n.parent)
	if n.parent.kids == 0 && n.parent.space != nil {
		delete(t.roots, *n.parent.space)
	}
	return len(n.edge)
}

// place puts n among the leaves that may be evicted, or takes it away.
func (t *radixTree) place(n *radixNode) {
	leaf := n.kids == 0 && n.locks == 0 && n.parent != nil
	switch {
	case leaf && n.pos < 0:
		t.leaves.add(n)
	case !leaf && n.pos >= 0:
		t.leaves.remove(n)
	}
}

// rank is the order of eviction, lowest first. Source: SGLang 0.5.23,
// mem_cache/evict_policy.py.
func (t *radixTree) rank(n *radixNode) (int64, int64) {
	switch t.o.Policy {
	case LFU:
		return n.hits, n.access
	case FIFO:
		return n.created, n.access
	case MRU:
		return -n.access, 0
	case FILO:
		return -n.created, n.access
	case ByPriority:
		return int64(n.priority), n.access
	case SLRU:
		if n.hits >= int64(t.o.Protect) {
			return 1, n.access
		}
	case TLRU:
		budget := max(n.reach*t.o.PageSize+t.o.NextPrompt-t.o.Prefill, 0)
		if (n.end-len(n.edge))*t.o.PageSize >= budget {
			return -1, n.access
		}
	}
	return 0, n.access
}

func (t *radixTree) less(a, b *radixNode) bool {
	a1, a2 := t.rank(a)
	b1, b2 := t.rank(b)
	return cmp.Or(cmp.Compare(a1, b1), cmp.Compare(a2, b2)) < 0
}

func (n *radixNode) position() *int { return &n.pos }

// A leafHeap is a heap whose elements know their index, which is -1 outside.
type leafHeap[N interface{ position() *int }] struct {
	nodes   []N // the next victim first
	inOrder func(a, b N) bool
}

func (h *leafHeap[N]) add(n N)    { heap.Push(h, n) }
func (h *leafHeap[N]) take() N    { return heap.Pop(h).(N) }
func (h *leafHeap[N]) remove(n N) { heap.Remove(h, *n.position()) }

// fix restores the order after a change of n's place in it.
func (h *leafHeap[N]) fix(n N) {
	if i := *n.position(); i >= 0 {
		heap.Fix(h, i)
	}
}

func (h *leafHeap[N]) Len() int           { return len(h.nodes) }
func (h *leafHeap[N]) Less(i, j int) bool { return h.inOrder(h.nodes[i], h.nodes[j]) }

func (h *leafHeap[N]) Swap(i, j int) {
	h.nodes[i], h.nodes[j] = h.nodes[j], h.nodes[i]
	*h.nodes[i].position(), *h.nodes[j].position() = i, j
}

func (h *leafHeap[N]) Push(x any) {
	n := x.(N)
	*n.position() = len(h.nodes)
	h.nodes = append(h.nodes, n)
}

func (h *leafHeap[N]) Pop() any {
	last := len(h.nodes) - 1
	n := h.nodes[last]
	clear(h.nodes[last:])
	h.nodes = h.nodes[:last]
	*n.position() = -1
	return n
}

// A cutter makes of tokens the atoms that a tree holds: one for a page.
type cutter struct {
	size int // of a page, in tokens
	more int // tokens after the page that its atom covers, too
	seed maphash.Seed
	page []byte // scratch
}

func newCutter(size int) cutter { return cutter{size: size, seed: maphash.MakeSeed()} }

// symbols appends a number for each token to dst. The placeholders of an item
// stand for its content.
func (c *cutter) symbols(dst []uint64, ids []vocab.ID, media []Media) []uint64 {
	first := len(dst)
	for _, id := range ids {
		dst = append(dst, uint64(uint32(id)))
	}
	syms, at := dst[first:], 0
	for _, m := range media {
		sym := maphash.String(c.seed, m.Hash) | 1<<63
		for at = max(at, m.Offset); at < min(m.Offset+m.Length, len(syms)); at++ {
			syms[at] = sym
		}
	}
	return dst
}

// cut appends an atom for each whole page of syms. A page of several tokens is
// known by a hash of 64 bits under a random seed.
func (c *cutter) cut(dst, syms []uint64) []uint64 {
	if c.size == 1 && c.more == 0 {
		return append(dst, syms...)
	}
	for ; len(syms) >= c.size+c.more; syms = syms[c.size:] {
		c.page = c.page[:0]
		for _, s := range syms[:c.size+c.more] {
			c.page = binary.LittleEndian.AppendUint64(c.page, s)
		}
		dst = append(dst, maphash.Bytes(c.seed, c.page))
	}
	return dst
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
