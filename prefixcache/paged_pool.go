package prefixcache

import (
	"math"
	"math/rand/v2"
)

// A blockID stands for everything that a block depends on: its tokens, all
// tokens before them, the keys of the request, and the group of layers. What
// [Paged.Begin] makes has the top bit of hi set, what [Paged.BeginBlocks] is
// given has not.
type blockID struct{ lo, hi uint64 }

// ofGroup tells the blocks of one group of layers from those of another.
func (id blockID) ofGroup(group int) blockID {
	id.hi ^= uint64(group) << 40
	return id
}

// A pagedBlock is the place of a block of tokens. The zero block stands for none
// (vLLM's null block) and heads the queue.
//
// The size matters: a simulated cache has up to 10^7 of them. It holds no
// pointers, so the garbage collector does not look inside.
type pagedBlock struct {
	id blockID // of what is cached in it; only where newer is set
	// Neighbours in the queue of free blocks that hold something. In a free
	// block that holds nothing, next is the one below it on the stack.
	prev, next int32
	// Ring of the blocks that hold the same, in the order in which they were
	// cached; the oldest one's older is the newest. 0: nothing cached.
	older, newer int32
	refs         int32 // running requests that hold it
}

const (
	pagedChunkBits = 10
	pagedChunkSize = 1 << pagedChunkBits
	pagedChunkMask = pagedChunkSize - 1
)

// A pagedPool hands out blocks in vLLM's order. vLLM 0.32.0 has one queue of free
// blocks (v1/core/kv_cache_utils.py, FreeKVCacheBlockQueue), at first in the
// order of their numbers. What is freed goes to its front if nothing is cached
// in it, else to its end (block_pool.py, free_blocks); only what is cached is
// ever taken from the middle (touch). So the queue is always a stack of used
// blocks without content, then blocks never used, then the cached ones from
// the least recently freed on: three parts, of which the second is a number.
type pagedPool struct {
	chunks [](*[pagedChunkSize]pagedBlock)
	total  int   // blocks, the null block included
	once   bool  // equal content is cached once
	fresh  int   // blocks from this number on were never used
	bare   int32 // top of the stack of free blocks without content
	free   int
	cached int // blocks that hold something

	evictions int64
	warmed    uint32 // keeps the reads of warm
	table     pagedTable
}

func newPagedPool(total int) pagedPool {
	once := total == 0
	if once {
		total = math.MaxInt32
	}
	p := pagedPool{total: total, once: once, fresh: 1, free: total - 1, table: newPagedTable()}
	p.grow()
	return p
}

// at returns block i. The pointer stays valid: chunks never move.
func (p *pagedPool) at(i int32) *pagedBlock { return &p.chunks[i>>pagedChunkBits][i&pagedChunkMask] }

func (p *pagedPool) grow() { p.chunks = append(p.chunks, new([pagedChunkSize]pagedBlock)) }

// find returns the block that holds id, the one cached first if several do, or
// 0 (block_pool.py, get_one_block).
func (p *pagedPool) find(id blockID) int32 {
	t := &p.table
	tag := t.tag(id)
	for at := tag & t.mask; ; at = (at + 1) & t.mask {
		s := t.slots[at]
		if s.block == 0 {
			return 0
		}
		if s.tag == tag && p.at(s.block).id == id {
			return s.block
		}
	}
}

// beside returns the neighbour of block near that holds id, and no other block
// does; 0 if there is none. What one request computed lies side by side, so that
// near being the block found before, the table is seldom needed.
func (p *pagedPool) beside(near int32, id blockID) int32 {
	for _, i := range [2]int32{near + 1, near - 1} {
		if i <= 0 || int(i) >= p.fresh {
			continue
		}
		if b := p.at(i); b.id == id && b.newer == i {
			return i
		}
	}
	return 0
}

// warm reads where the table has the identities. Memory is slow, but these
// reads do not wait for each other, as those of the work that follows do.
func (p *pagedPool) warm(ids []blockID) {
	t := &p.table
	sum := uint32(0)
	for i := range ids {
		sum += t.slots[t.tag(ids[i])&t.mask].tag
	}
	p.warmed += sum
}

// warmEvictions is warm for the n blocks that are evicted next.
func (p *pagedPool) warmEvictions(n int) {
	t := &p.table
	sum := uint32(0)
	for i := p.at(0).next; n > 0 && i != 0; n-- {
		b := p.at(i)
		sum += t.slots[t.tag(b.id)&t.mask].tag
		i = b.next
	}
	p.warmed += sum
}

// cache enters block i as one that holds id, and nothing else. Equal content is
// kept twice, as the engine does not move a request to another block; but not
// where there is no limit, as nothing that is found would depend on it.
func (p *pagedPool) cache(i int32, id blockID) {
	p.forget(i)
	b := p.at(i)
	b.id = id
	oldest := p.table.place(p, id, i)
	if oldest == i {
		p.cached++
		b.older, b.newer = i, i
		return
	}
	if p.once {
		return
	}
	p.cached++
	o := p.at(oldest)
	newest := o.older
	b.older, b.newer = newest, oldest
	p.at(newest).newer = i
	o.older = i
}

// forget removes what is cached in block i.
func (p *pagedPool) forget(i int32) {
	b := p.at(i)
	if b.newer == 0 {
		return
	}
	p.cached--
	if b.newer == i {
		p.table.remove(p.table.tag(b.id), i)
	} else {
		p.at(b.older).newer = b.newer
		p.at(b.newer).older = b.older
		p.table.replace(p.table.tag(b.id), i, b.newer)
	}
	b.older, b.newer = 0, 0
}

// take returns the first free block for one request, without its content.
// There must be one.
func (p *pagedPool) take() int32 {
	p.free--
	var i int32
	switch {
	case p.bare != 0:
		i = p.bare
		p.bare = p.at(i).next
	case p.fresh < p.total:
		i = int32(p.fresh)
		p.fresh++
		if int(i>>pagedChunkBits) == len(p.chunks) {
			p.grow()
		}
	default:
		i = p.at(0).next
		p.unlink(i)
		p.forget(i)
		p.evictions++
	}
	b := p.at(i)
	b.refs, b.prev, b.next = 1, 0, 0
	return i
}

// hold adds a request to those that hold the cached block i.
func (p *pagedPool) hold(i int32) {
	b := p.at(i)
	if b.refs == 0 {
		p.unlink(i)
		p.free--
	}
	b.refs++
}

func (p *pagedPool) unlink(i int32) {
	b := p.at(i)
	p.at(b.prev).next = b.next
	p.at(b.next).prev = b.prev
	b.prev, b.next = 0, 0
}

// release gives back what one request held, in the order of its tokens; zeros
// are skipped. The last block is the first to be used again.
func (p *pagedPool) release(blocks []int32) {
	head := p.at(0)
	for k := len(blocks) - 1; k >= 0; k-- {
		i := blocks[k]
		if i == 0 {
			continue
		}
		b := p.at(i)
		b.refs--
		if b.refs > 0 {
			continue
		}
		p.free++
		if b.newer == 0 {
			continue
		}
		last := head.prev
		b.prev, b.next = last, 0
		p.at(last).next = i
		head.prev = i
	}
	for _, i := range blocks {
		if i == 0 {
			continue
		}
		if b := p.at(i); b.refs == 0 && b.newer == 0 {
			b.next = p.bare
			p.bare = i
		}
	}
}

// A pagedTable finds blocks by identity: open addressing, linear probing, removal
// by shifting back, at most three quarters full. A slot carries 32 bits of the
// hash, which tell where it belongs, so growing looks at no block.
type pagedTable struct {
	slots []pagedSlot
	mask  uint32
	used  int
	seed  uint64
}

type pagedSlot struct {
	tag   uint32
	block int32 // 0: empty
}

const pagedLeastSlots = 64

// newPagedTable draws a seed: identities in a trace may be chosen by someone else.
func newPagedTable() pagedTable {
	return pagedTable{slots: make([]pagedSlot, pagedLeastSlots), mask: pagedLeastSlots - 1, seed: rand.Uint64() | 1}
}

func (t *pagedTable) tag(id blockID) uint32 {
	// Steele and Vigna, "Computationally easy, spectrally good multipliers".
	h := (id.lo ^ t.seed) * 0xd1342543de82ef95
	h ^= h >> 32
	h = (h + id.hi) * t.seed
	h ^= h >> 29
	h *= 0xaf251af3b0f025b5
	return uint32(h >> 32)
}

// place enters block i for id, unless a block has it already. It returns the
// one that has it then.
func (t *pagedTable) place(p *pagedPool, id blockID, i int32) int32 {
	if (t.used+1)*4 > len(t.slots)*3 {
		t.double()
	}
	tag := t.tag(id)
	for at := tag & t.mask; ; at = (at + 1) & t.mask {
		s := &t.slots[at]
		if s.block == 0 {
			*s = pagedSlot{tag, i}
			t.used++
			return i
		}
		if s.tag == tag && p.at(s.block).id == id {
			return s.block
		}
	}
}

func (t *pagedTable) double() {
	old := t.slots
	t.slots = make([]pagedSlot, 2*len(old))
	t.mask = uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.block == 0 {
			continue
		}
		at := s.tag & t.mask
		for t.slots[at].block != 0 {
			at = (at + 1) & t.mask
		}
		t.slots[at] = s
	}
}

// seek returns the slot of block, or false if it has none.
func (t *pagedTable) seek(tag uint32, block int32) (uint32, bool) {
	for at := tag & t.mask; t.slots[at].block != 0; at = (at + 1) & t.mask {
		if t.slots[at].block == block {
			return at, true
		}
	}
	return 0, false
}

// replace makes the slot of block point to with, if block has one.
func (t *pagedTable) replace(tag uint32, block, with int32) {
	if at, ok := t.seek(tag, block); ok {
		t.slots[at].block = with
	}
}

func (t *pagedTable) remove(tag uint32, block int32) {
	hole, ok := t.seek(tag, block)
	if !ok {
		return
	}
	t.used--
	for at := hole; ; {
		at = (at + 1) & t.mask
		s := t.slots[at]
		if s.block == 0 {
			break
		}
		// A slot may move back to the hole if it belongs there or before it.
		if (at-s.tag)&t.mask >= (at-hole)&t.mask {
			t.slots[hole] = s
			hole = at
		}
	}
	t.slots[hole] = pagedSlot{}
}
