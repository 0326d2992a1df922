package prefixcache

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// TGIOptions are the settings of text-generation-inference. The zero value is
// the cache of a server with FlashInfer, without a limit.
type TGIOptions struct {
	// BlockSize is in tokens; 0 means 1. The attention sets it: 1 with FlashInfer,
	// 256 with flashdecoding, 64 on Intel.
	BlockSize int
	// Capacity is --max-batch-total-tokens, in tokens, of which whole blocks count;
	// the server keeps one of them for itself. 0: no limit.
	Capacity int
	// Output is the max_new_tokens of the requests, in tokens: each holds the room
	// for it from the beginning. 0 means 1.
	Output int
}

// A TGI simulates the prefix cache of text-generation-inference: RadixAllocator
// and RadixTrie of its last version (backends/v3/src/radix.rs, commit db931fcf).
// It keeps prompts, never output, and puts a prompt into its trie when the
// request ends, so that requests that run together share only what was there
// before. [Keys] play no part: TGI has no salts, and switches the cache off for
// models with adapters or images.
type TGI struct {
	o       TGIOptions
	running map[uint64]*tgiRun
	lastID  uint64
	free    int // blocks; math.MaxInt without a limit
	stats   Stats
	cutter  cutter
	syms    []uint64 // scratch: a symbol per token

	kids   map[radixEdge]*tgiNode
	leaves leafHeap[*tgiNode]
	root   *tgiNode
	slots  []uint64 // of nodes that are gone, the next to use last
	last   uint64   // the highest slot ever used
	clock  int64
	size   int // blocks held
}

// A tgiNode holds the blocks between its parent's end and its own.
type tgiNode struct {
	slot     uint64 // decides between nodes accessed at the same time
	parent   *tgiNode
	edge     []uint64 // a block each
	slack    int      // blocks before edge that its array still holds
	refs     int      // children, and running requests
	accessed int64
	pos      int // in TGI.leaves; -1: not there
}

type tgiRun struct {
	node   *tgiNode
	prompt []uint64 // its whole blocks
	blocks int      // that it holds, those of the trie included
	cached int      // blocks of the trie among them
	known  bool     // all of its tokens were in the trie
}

// NewTGI returns an empty cache. The error names the option that cannot be.
func NewTGI(o TGIOptions) (*TGI, error) {
	if o.BlockSize == 0 {
		o.BlockSize = 1
	}
	if o.Output == 0 {
		o.Output = 1
	}
	switch {
	case o.BlockSize < 0:
		return nil, fmt.Errorf("prefixcache: block size %d is negative: give it in tokens, or 0 for 1", o.BlockSize)
	case o.Output < 0:
		return nil, fmt.Errorf("prefixcache: an output of %d tokens is negative: give the requests' max_new_tokens", o.Output)
	case o.Capacity < 0 || o.Capacity > 0 && o.Capacity < 2*o.BlockSize:
		return nil, fmt.Errorf("prefixcache: a capacity of %d tokens holds no block of %d besides the server's own: give at least two, or 0 for no limit", o.Capacity, o.BlockSize)
	}
	c := &TGI{o: o, cutter: newCutter(o.BlockSize)}
	c.Reset()
	return c, nil
}

// Reset implements [Cache].
func (c *TGI) Reset() {
	c.running = make(map[uint64]*tgiRun)
	c.kids = make(map[radixEdge]*tgiNode)
	c.leaves = leafHeap[*tgiNode]{inOrder: (*tgiNode).before}
	c.slots, c.last = nil, 1
	c.root = &tgiNode{slot: 1, pos: -1}
	c.clock, c.size = 0, 0
	c.stats = Stats{}
	c.free = math.MaxInt
	if c.o.Capacity > 0 {
		c.free = c.blocks() - 1
	}
}

// blocks are those of a limited cache.
func (c *TGI) blocks() int { return c.o.Capacity / c.o.BlockSize }

// Stats implements [Cache].
func (c *TGI) Stats() Stats {
	s := c.stats
	s.Unit = c.o.BlockSize
	s.Blocks = int64(c.size)
	return s
}

// Begin implements [Cache]. A request with Bypass is not kept either.
func (c *TGI) Begin(q *Request) (Lease, error) {
	if q.Bypass {
		return c.begin(nil, len(q.Prompt))
	}
	c.syms = c.cutter.symbols(c.syms[:0], q.Prompt, nil)
	return c.begin(c.cutter.cut(nil, c.syms), len(q.Prompt))
}

// BeginBlocks admits a prompt of tokens tokens of which only the identities of
// its blocks are known; see [Radix.BeginBlocks]. The cache must have been made
// with the block's size as BlockSize.
func (c *TGI) BeginBlocks(blocks []uint64, tokens int) (Lease, error) {
	b := c.o.BlockSize
	if tokens < 0 || ceilDiv(tokens, b) > len(blocks) {
		return Lease{}, fmt.Errorf("prefixcache: %d tokens are not in %d blocks of %d: give the prompt's length, and make the cache with the trace's block size", tokens, len(blocks), b)
	}
	return c.begin(slices.Clone(blocks[:tokens/b]), tokens)
}

// begin admits a prompt of n tokens with those whole blocks, which it keeps.
func (c *TGI) begin(prompt []uint64, n int) (Lease, error) {
	b := c.o.BlockSize
	need := ceilDiv(max(n+c.o.Output-1, 0), b)
	if c.o.Capacity > 0 && need > c.blocks()-1 {
		return Lease{}, fmt.Errorf("%w: %d blocks of %d tokens, of %d", ErrTooLarge, need, b, c.blocks()-1)
	}
	run := &tgiRun{prompt: prompt, node: c.root, blocks: need}
	if prompt != nil {
		run.node, run.cached = c.find(prompt)
	}
	c.incref(run.node)
	if !c.reclaim(need - run.cached) {
		c.decref(run.node)
		return Lease{}, ErrNoRoom
	}
	cached := run.cached * b
	if run.known = cached == n; run.known {
		// The last token is computed again, for its logits.
		cached = max(n-1, 0)
	}
	c.lastID++
	c.running[c.lastID] = run
	c.stats.Requests++
	c.stats.PromptTokens += int64(n)
	c.stats.HitTokens += int64(cached)
	return Lease{Cached: cached, id: c.lastID}, nil
}

// reclaim takes so many blocks, and evicts some where too few are free.
func (c *TGI) reclaim(blocks int) bool {
	if c.o.Capacity == 0 {
		return true
	}
	if c.free < blocks {
		// What was evicted stays so even if it is not enough.
		n := c.evict(blocks - c.free)
		c.free += n
		c.stats.Evictions += int64(n)
	}
	if c.free < blocks {
		return false
	}
	c.free -= blocks
	return true
}

// End implements [Cache]. A lease that has ended is ignored.
func (c *TGI) End(l Lease, _ []vocab.ID) {
	run := c.running[l.id]
	if run == nil {
		return
	}
	delete(c.running, l.id)
	c.decref(run.node)
	added := 0
	if len(run.prompt) > 0 && !run.known {
		added = c.insert(run.prompt)
	}
	if c.o.Capacity > 0 {
		c.free += run.blocks - run.cached - added
	}
}

// find returns the node in which the longest held prefix of key ends, and the
// blocks of that prefix. The whole node is in use then, also what does not match.
func (c *TGI) find(key []uint64) (*tgiNode, int) {
	c.clock++
	node, found := c.root, 0
	for len(key) > 0 {
		child := c.kids[radixEdge{node.slot, key[0]}]
		if child == nil {
			break
		}
		c.access(child)
		n := common(child.edge, key)
		node, key, found = child, key[n:], found+n
		if n < len(child.edge) {
			break
		}
	}
	return node, found
}

// insert holds key and returns how many of its blocks were not there.
func (c *TGI) insert(key []uint64) int {
	c.clock++
	node := c.root
	for {
		child := c.kids[radixEdge{node.slot, key[0]}]
		if child == nil {
			c.add(node, slices.Clone(key))
			c.size += len(key)
			return len(key)
		}
		c.access(child)
		n := common(child.edge, key)
		if n == len(key) {
			return 0
		}
		if n < len(child.edge) {
			child = c.split(child, n)
		}
		node, key = child, key[n:]
	}
}

// split cuts a node after n of its blocks and returns the new one, which holds
// them. The old one keeps its slot and its uses.
func (c *TGI) split(node *tgiNode, n int) *tgiNode {
	top := c.add(node.parent, slices.Clone(node.edge[:n]))
	top.parent.refs-- // it had node as its child before
	node.edge = dropFront(node.edge, n, &node.slack)
	node.parent = top
	c.kids[radixEdge{top.slot, node.edge[0]}] = node
	c.incref(top)
	return top
}

// add makes a node under parent.
func (c *TGI) add(parent *tgiNode, edge []uint64) *tgiNode {
	n := &tgiNode{parent: parent, edge: edge, accessed: c.clock, pos: -1}
	if last := len(c.slots) - 1; last >= 0 {
		n.slot, c.slots = c.slots[last], c.slots[:last]
	} else {
		c.last++
		n.slot = c.last
	}
	c.kids[radixEdge{parent.slot, edge[0]}] = n
	c.incref(parent)
	c.leaves.add(n)
	return n
}

// evict throws away so many blocks, or all that it can, and returns how many: of
// the leaf that was accessed first, and of that one the end.
func (c *TGI) evict(blocks int) int {
	evicted := 0
	for evicted < blocks && len(c.leaves.nodes) > 0 {
		n := c.leaves.nodes[0]
		if want := blocks - evicted; want < len(n.edge) {
			n.edge = n.edge[:len(n.edge)-want]
			if cap(n.edge) > 2*len(n.edge) {
				n.edge = slices.Clone(n.edge)
			}
			evicted = blocks
			break
		}
		c.leaves.take()
		evicted += len(n.edge)
		delete(c.kids, radixEdge{n.parent.slot, n.edge[0]})
		c.slots = append(c.slots, n.slot)
		c.decref(n.parent)
	}
	c.size -= evicted
	return evicted
}

func (c *TGI) incref(n *tgiNode) {
	if n.refs++; n.pos >= 0 {
		c.leaves.remove(n)
	}
}

func (c *TGI) decref(n *tgiNode) {
	if n.refs--; n.refs == 0 && n != c.root {
		c.leaves.add(n)
	}
}

func (c *TGI) access(n *tgiNode) {
	n.accessed = c.clock
	c.leaves.fix(n)
}

func (n *tgiNode) position() *int { return &n.pos }

func (n *tgiNode) before(m *tgiNode) bool {
	return cmp.Or(cmp.Compare(n.accessed, m.accessed), cmp.Compare(n.slot, m.slot)) < 0
}
