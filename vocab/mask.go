package vocab

import (
	"iter"
	"math/bits"
)

// Mask is a set of IDs, one bit each: bit id%32 of word id/32, which is the
// layout of XGrammar and llguidance.
type Mask []uint32

// NewMask makes an empty mask for the IDs from 0 to n-1.
func NewMask(n int) Mask { return make(Mask, (n+31)/32) }

// Set adds id. An ID outside the mask is ignored.
func (m Mask) Set(id ID) {
	if w := uint32(id) / 32; int64(w) < int64(len(m)) {
		m[w] |= 1 << (uint32(id) % 32)
	}
}

// SetIDs adds all ids. Those outside the mask are ignored.
func (m Mask) SetIDs(ids []ID) {
	for _, id := range ids {
		m.Set(id)
	}
}

// Remove takes id out.
func (m Mask) Remove(id ID) {
	if w := uint32(id) / 32; int64(w) < int64(len(m)) {
		m[w] &^= 1 << (uint32(id) % 32)
	}
}

// Clear empties the mask.
func (m Mask) Clear() { clear(m) }

// Has reports whether id is in the mask.
func (m Mask) Has(id ID) bool {
	w := uint32(id) / 32
	return int64(w) < int64(len(m)) && m[w]>>(uint32(id)%32)&1 != 0
}

// Count is the number of IDs in the mask.
func (m Mask) Count() int {
	n := 0
	for _, w := range m {
		n += bits.OnesCount32(w)
	}
	return n
}

// Empty reports whether the mask holds no ID.
func (m Mask) Empty() bool {
	for _, w := range m {
		if w != 0 {
			return false
		}
	}
	return true
}

// All gives the IDs in ascending order.
func (m Mask) All() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		for i, w := range m {
			for ; w != 0; w &= w - 1 {
				if !yield(ID(i*32 + bits.TrailingZeros32(w))) {
					return
				}
			}
		}
	}
}
