package prefixcache

import (
	"fmt"
	"math"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// Policy is the order in which a [Radix] throws away leaves. The names are those
// of SGLang's --radix-eviction-policy.
type Policy string

// The policies of SGLang 0.5.23.
const (
	LRU        Policy = "lru"      // least recently used first
	LFU        Policy = "lfu"      // least often inserted first, then LRU
	FIFO       Policy = "fifo"     // oldest first
	MRU        Policy = "mru"      // most recently used first
	FILO       Policy = "filo"     // youngest first
	ByPriority Policy = "priority" // lowest priority of request first, then LRU
	SLRU       Policy = "slru"     // what was inserted seldom before the rest, then LRU
	TLRU       Policy = "tlru"     // the ends of long conversations before the rest, then LRU
)

// Policies are all of them, the default first.
var Policies = []Policy{LRU, LFU, FIFO, MRU, FILO, ByPriority, SLRU, TLRU}

// RadixOptions are SGLang's settings. The zero value is a cache of single tokens
// without a limit.
type RadixOptions struct {
	// PageSize is --page-size, in tokens; 0 means 1. Attention kernels force
	// others: 64 for FlashMLA, 128 for CUTLASS MLA.
	PageSize int
	// Capacity is max_total_num_tokens, in tokens, of which whole pages count; 0:
	// no limit.
	Capacity int
	// Policy is --radix-eviction-policy; "" means [LRU].
	Policy Policy
	// Protect is how many requests must insert a node before SLRU protects it
	// (protected_threshold); 0 means 2.
	Protect int
	// Prefill and NextPrompt are for TLRU, in tokens: how much of a conversation may
	// be computed again within the time that is aimed at (threshold), and by how
	// much the next prompt is expected to grow (next_prompt_estimate).
	Prefill, NextPrompt int
	// Chunk is --chunked-prefill-size, in tokens, a multiple of PageSize: a longer
	// prompt is computed and kept in pieces, which are evicted one by one. 0: in
	// one piece.
	Chunk int
	// Bigrams is set for EAGLE's speculative decoding, under which SGLang keys its
	// tree by pairs of adjacent tokens.
	Bigrams bool
}

// A Radix simulates the prefix cache of SGLang, as version 0.5.23 runs it for
// models with full attention: UnifiedRadixCache (mem_cache/unified_radix_cache.py).
// RadixCache, which came before it, does the same, except that under FIFO and
// FILO it dates a node that is cut off another anew.
//
// It takes requests as the scheduler does that runs one at a time: each is
// looked up when it is admitted, and its prompt is in the tree before the next
// one is looked up. SGLang finds less where it admits requests that share a new
// prefix into one batch. What a request generates takes its room when
// [Radix.Generated] tells of it, and at the end.
type Radix struct {
	o       RadixOptions
	tree    *radixTree
	running map[uint64]*radixRun
	lastID  uint64
	pages   int // of the capacity; math.MaxInt: no limit
	private int // pages that running requests hold outside of the tree
	stats   Stats
	cutter  cutter
	syms    []uint64 // scratch: a symbol per token
	atoms   []uint64 // scratch: an atom per page
}

// A radixRun is a running request.
type radixRun struct {
	space    radixSpace
	node     *radixNode // the end of its prompt in the tree, locked; nil: the root
	tail     []uint64   // symbols from the first token on that no page holds
	tokens   int        // of the prompt
	inserted int        // pages that it put or found in the tree
	private  int        // pages that it holds outside of the tree
	fed      int        // tokens generated and fed back
	priority int
	blocks   bool // its tokens are not known
}

// NewRadix returns an empty cache. The error names the option that cannot be.
func NewRadix(o RadixOptions) (*Radix, error) {
	if o.PageSize == 0 {
		o.PageSize = 1
	}
	if o.Policy == "" {
		o.Policy = LRU
	}
	if o.Protect == 0 {
		o.Protect = 2
	}
	switch {
	case o.PageSize < 0:
		return nil, fmt.Errorf("prefixcache: page size %d is negative: give it in tokens, or 0 for 1", o.PageSize)
	case o.Capacity < 0 || o.Capacity > 0 && o.Capacity < o.PageSize:
		return nil, fmt.Errorf("prefixcache: a capacity of %d tokens holds no page of %d: give at least one page, or 0 for no limit", o.Capacity, o.PageSize)
	case o.Chunk < 0 || o.Chunk%o.PageSize != 0:
		return nil, fmt.Errorf("prefixcache: a chunk of %d tokens is no multiple of the page size %d: round it, or give 0 for prompts in one piece", o.Chunk, o.PageSize)
	case o.Protect < 0 || o.Prefill < 0 || o.NextPrompt < 0:
		return nil, fmt.Errorf("prefixcache: the policy's parameters %d, %d and %d must not be negative", o.Protect, o.Prefill, o.NextPrompt)
	case !slices.Contains(Policies, o.Policy):
		return nil, fmt.Errorf("prefixcache: no policy %q: use one of %q", o.Policy, Policies)
	}
	r := &Radix{o: o, pages: math.MaxInt, cutter: newCutter(o.PageSize)}
	if o.Bigrams {
		r.cutter.more = 1
	}
	if o.Capacity > 0 {
		r.pages = o.Capacity / o.PageSize
	}
	r.Reset()
	return r, nil
}

// Begin implements [Cache]. As SGLang's scheduler does, it wants a page more than
// the prompt needs, but nothing for the output.
func (r *Radix) Begin(q *Request) (Lease, error) {
	space := radixSpace{q.Keys.Salt, q.Keys.LoRA, q.Keys.Extra}
	r.syms = r.cutter.symbols(r.syms[:0], q.Prompt, q.Keys.Media)
	r.atoms = r.cutter.cut(r.atoms[:0], r.syms)
	run := &radixRun{space: space, tokens: len(q.Prompt), priority: q.Priority}
	l, err := r.begin(run, q.Bypass)
	if err == nil {
		run.tail = slices.Clone(r.syms[run.inserted*r.o.PageSize:])
	}
	return l, err
}

// BeginBlocks admits a prompt of which only the identities of its blocks are
// known, as the traces of Mooncake give them. A block is a page: the cache must
// have been made with the block's size as PageSize, and without Bigrams. An
// identity stands for all of the prompt up to the block's end. tokens is the
// length of the prompt, the last block of which may be part of one and is then
// not kept. End keeps nothing of the output; [Radix.EndBlocks] does.
func (r *Radix) BeginBlocks(blocks []uint64, tokens int) (Lease, error) {
	p := r.o.PageSize
	if r.o.Bigrams {
		return Lease{}, fmt.Errorf("prefixcache: blocks have no bigrams: make the cache without them")
	}
	if tokens < 0 || ceilDiv(tokens, p) > len(blocks) {
		return Lease{}, fmt.Errorf("prefixcache: %d tokens are not in %d blocks of %d: give the prompt's length, and make the cache with the trace's block size as its page size", tokens, len(blocks), p)
	}
	r.atoms = append(r.atoms[:0], blocks[:tokens/p]...)
	return r.begin(&radixRun{tokens: tokens, blocks: true}, false)
}

// begin admits run, whose pages are r.atoms.
func (r *Radix) begin(run *radixRun, bypass bool) (Lease, error) {
	p, n := r.o.PageSize, run.tokens
	if r.limited() && n+p >= r.pages*p {
		return Lease{}, fmt.Errorf("%w: %d tokens and a page, of %d", ErrTooLarge, n, r.pages*p)
	}
	// The last token is computed again, for its logits.
	if limit := min(len(r.atoms), max(n-1-r.cutter.more, 0)/p); !bypass {
		run.node = r.tree.match(run.space, r.atoms[:limit])
	}
	cached := 0
	if run.node != nil {
		cached = run.node.end * p
	}
	r.tree.lock(run.node)
	if room := r.free() + r.tree.size - r.tree.locked; r.limited() && n-cached+p >= room*p {
		r.tree.unlock(run.node)
		return Lease{}, ErrNoRoom
	}
	r.prefill(run, cached)
	r.lastID++
	r.running[r.lastID] = run
	r.stats.Requests++
	r.stats.PromptTokens += int64(n)
	r.stats.HitTokens += int64(cached)
	return Lease{Cached: cached, id: r.lastID}, nil
}

// prefill computes the prompt from token cached on and puts its pages into the
// tree, piece by piece. Source: SGLang 0.5.23, alloc_paged_token_slots_extend
// (mem_cache/allocation.py) and checkpoint_into_tree (unified_radix_cache.py).
func (r *Radix) prefill(run *radixRun, cached int) {
	p, n := r.o.PageSize, run.tokens
	counted, kept := 0, cached/p
	for at := cached; at < n; {
		end := n
		if r.o.Chunk > 0 {
			end = min(n, at+r.o.Chunk)
		}
		want := ceilDiv(end-at, p)
		if p > 1 {
			want = ceilDiv(end-at+p, p)
		}
		r.makeRoom(want)
		r.hold(run, ceilDiv(end, p)-ceilDiv(at, p))

		pages := max(end-r.cutter.more, 0) / p
		from := 0
		if run.node != nil {
			from = run.node.end
		}
		node := r.tree.insert(run.space, run.node, r.atoms[from:pages], run.priority, counted)
		r.hold(run, kept-pages)
		r.tree.unlock(run.node)
		r.tree.lock(node)
		run.node, kept, counted, at = node, pages, pages, end
	}
	run.inserted = kept
}

// Generated tells how far a running request has come; output is all that it has
// generated. Nobody has to, as End takes all of it. But a request takes its room
// while it runs, and a caller that knows its progress gets closer to the engine
// where room is scarce.
func (r *Radix) Generated(l Lease, output []vocab.ID) {
	if run := r.running[l.id]; run != nil {
		r.decode(run, len(output))
	}
}

// End implements [Cache]. Of an output that finds no room, what fits is kept;
// SGLang would have stopped a request and started it again. A lease that has
// ended is ignored.
func (r *Radix) End(l Lease, output []vocab.ID) {
	run := r.running[l.id]
	if run == nil {
		return
	}
	r.decode(run, len(output))
	r.atoms = r.atoms[:0]
	if !run.blocks {
		run.tail = r.cutter.symbols(run.tail, output[:min(run.fed, len(output))], nil)
		r.atoms = r.cutter.cut(r.atoms, run.tail)
	}
	r.finish(l.id, run, r.atoms)
}

// EndBlocks is End for a request that began with [Radix.BeginBlocks] and
// generated output tokens. blocks are the identities of those that follow the
// last whole one of the prompt; of the ones that are not told nothing is kept.
func (r *Radix) EndBlocks(l Lease, blocks []uint64, output int) {
	run := r.running[l.id]
	if run == nil {
		return
	}
	r.decode(run, output)
	whole := (run.tokens+run.fed)/r.o.PageSize - run.inserted
	r.finish(l.id, run, blocks[:min(whole, len(blocks))])
}

// finish puts key, the pages after the prompt's, into the tree, and frees what
// the request held.
func (r *Radix) finish(id uint64, run *radixRun, key []uint64) {
	delete(r.running, id)
	r.tree.insert(run.space, run.node, key, run.priority, run.inserted)
	if len(key) > 0 && run.inserted > 0 {
		// SGLang cuts at the end of the prompt, so that the output can go alone, and
		// ranks the prompt above it.
		r.tree.insert(run.space, run.node, nil, run.priority+1, run.inserted)
	}
	r.hold(run, -run.private)
	r.tree.unlock(run.node)
}

// decode takes the room of an output of so many tokens, as far as there is some:
// for all but the last, which was not fed back. Source: SGLang 0.5.23,
// alloc_token_slots and alloc_paged_token_slots_decode (mem_cache/allocation.py).
func (r *Radix) decode(run *radixRun, output int) {
	p, want := r.o.PageSize, 1
	if p > 1 {
		// All running requests take a step at once, and a page of each is wanted,
		// also where it takes none.
		want = len(r.running)
	}
	for n := output - 1; run.fed < n; {
		r.makeRoom(want)
		if at := run.tokens + run.fed; at%p > 0 {
			run.fed = min(n, run.fed+p-at%p) // to the next one that does
			continue
		}
		if r.free() < 1 {
			return
		}
		r.hold(run, 1)
		run.fed++
	}
}

// Stats implements [Cache].
func (r *Radix) Stats() Stats {
	s := r.stats
	s.Unit = r.o.PageSize
	s.Blocks = int64(r.tree.size)
	return s
}

// Reset implements [Cache].
func (r *Radix) Reset() {
	r.tree = newRadixTree(r.o)
	r.running = make(map[uint64]*radixRun)
	r.private = 0
	r.stats = Stats{}
}

func (r *Radix) limited() bool { return r.pages != math.MaxInt }

func (r *Radix) free() int { return r.pages - r.tree.size - r.private }

// hold adds pages to what run holds outside of the tree.
func (r *Radix) hold(run *radixRun, pages int) {
	run.private += pages
	r.private += pages
}

// makeRoom evicts leaves until so many pages are free or none is left.
func (r *Radix) makeRoom(pages int) {
	for r.free() < pages {
		n := r.tree.evict()
		if n == 0 {
			return
		}
		r.stats.Evictions += int64(n)
	}
}
