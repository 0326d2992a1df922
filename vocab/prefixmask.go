package vocab

import (
	"sync"
	"sync/atomic"
)

// The masks of ranges that hold this many tokens are kept: to copy one is
// faster than to set its bits one by one.
const keptRange = 320

const (
	maxMasks     = 512      // that are kept at most
	maxMaskBytes = 32 << 20 // that they take at most
)

// maskCache keeps the masks of large ranges, as they are asked for: the first
// ones until it is full. Trained vocabularies of 200,000 tokens have some 250
// such ranges, so that it never is. Readers do not wait for anything.
type maskCache struct {
	// slots is a hash table with open addressing: nil where it is free. It has
	// twice the slots that are filled at most.
	slots  []atomic.Pointer[rangeMask]
	filled atomic.Int32
	limit  int32
	once   sync.Once
}

// rangeMask is the mask of a range. Neither changes.
type rangeMask struct {
	of   Range
	mask Mask
}

// PrefixMask makes m the set of all text tokens that begin with prefix. Those
// that m, made by NewMask(v.Len()), has no room for are left out.
func (v *Vocab) PrefixMask(m Mask, prefix []byte) {
	r := v.PrefixRange(prefix)
	if r.Len() < keptRange {
		clear(m)
		m.SetIDs(v.Sorted(r))
		return
	}
	kept := v.masks.find(r)
	if kept == nil {
		kept = NewMask(v.Len())
		kept.SetIDs(v.Sorted(r))
		v.masks.keep(v, r, kept)
	}
	clear(m[copy(m, kept):])
}

func (r Range) hash() uint64 {
	return (uint64(r.Lo)<<32 | uint64(r.Hi)) * 0x9e3779b97f4a7c15 >> 32
}

// find gives the mask of a range, or nil.
func (c *maskCache) find(r Range) Mask {
	if c.filled.Load() == 0 {
		return nil
	}
	for i := r.hash(); ; i++ {
		e := c.slots[i%uint64(len(c.slots))].Load()
		if e == nil {
			return nil
		}
		if e.of == r {
			return e.mask
		}
	}
}

// keep adds a mask, if there is room for it.
func (c *maskCache) keep(v *Vocab, r Range, mask Mask) {
	c.once.Do(func() {
		c.limit = int32(min(maxMasks, maxMaskBytes/(4*len(mask))))
		c.slots = make([]atomic.Pointer[rangeMask], 2*c.limit+1)
	})
	if c.filled.Add(1) > c.limit {
		c.filled.Add(-1)
		return
	}
	e := &rangeMask{r, mask}
	for i := r.hash(); ; i++ {
		slot := &c.slots[i%uint64(len(c.slots))]
		if slot.CompareAndSwap(nil, e) {
			return
		}
		if slot.Load().of == r {
			c.filled.Add(-1)
			return
		}
	}
}
