package vocab

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// lookup is a hash table from the bytes of text tokens to their IDs, with open
// addressing. The seed is drawn anew for each table, so that no file can be
// made whose tokens collide.
type lookup struct {
	seed maphash.Seed
	// slots holds a token's ID plus one in the low bits and bits of its hash in
	// those above, which tell most others apart without reading their bytes.
	// Zero is a free slot. At most half of them are taken.
	slots  []uint32
	idMask uint32
	maxLen int // bytes of the longest text token
}

func newLookup(v *Vocab) lookup {
	l := lookup{
		seed:   maphash.MakeSeed(),
		slots:  make([]uint32, max(2, 1<<bits.Len(uint(2*len(v.kinds))))),
		idMask: 1<<bits.Len(uint(len(v.kinds))) - 1,
	}
	for i := range v.kinds {
		if id := ID(i); v.IsText(id) {
			l.maxLen = max(l.maxLen, len(v.Bytes(id)))
			l.add(v, id)
		}
	}
	return l
}

// add enters a token, unless one with the same bytes is preferred to it. IDs
// come in ascending order.
func (l *lookup) add(v *Vocab, id ID) {
	b := v.Bytes(id)
	at, tag := l.start(b)
	for ; l.slots[at] != 0; at = l.next(at) {
		if l.slots[at]&^l.idMask != tag {
			continue
		}
		if other := ID(l.slots[at]&l.idMask) - 1; bytes.Equal(v.Bytes(other), b) {
			if preference(v.kinds[other]) <= preference(v.kinds[id]) {
				return
			}
			break
		}
	}
	l.slots[at] = tag | uint32(id+1)
}

// start gives the slot to look at first and the hash bits that a token's slot
// has.
func (l *lookup) start(b []byte) (at int, tag uint32) {
	h := maphash.Bytes(l.seed, b)
	return int(h>>32) & (len(l.slots) - 1), uint32(h) &^ l.idMask
}

func (l *lookup) next(at int) int { return (at + 1) & (len(l.slots) - 1) }

// MaxLen is the number of bytes of the longest text token.
func (v *Vocab) MaxLen() int { return v.lookup.maxLen }

// Lookup finds the text token with exactly these bytes. If there are several,
// a Normal one is preferred to UserDefined and that to Byte, then the lowest
// ID. No token has no bytes.
func (v *Vocab) Lookup(b []byte) (ID, bool) {
	l := &v.lookup
	if len(b) == 0 || len(b) > l.maxLen {
		return None, false
	}
	at, tag := l.start(b)
	for ; l.slots[at] != 0; at = l.next(at) {
		if l.slots[at]&^l.idMask == tag {
			id := ID(l.slots[at]&l.idMask) - 1
			if lo, hi := v.starts[id], v.starts[id+1]; string(v.blob[lo:hi]) == string(b) {
				return id, true
			}
		}
	}
	return None, false
}

// preference orders the kinds of text tokens for Lookup.
func preference(k Kind) int {
	switch k {
	case Normal:
		return 0
	case UserDefined:
		return 1
	}
	return 2
}
