package replay

import (
	"hash/maphash"
	"math/bits"
)

// An index numbers 64-bit keys in the order in which they come, from 0. It holds
// 8 bytes for a key and a table of 4-byte places, 3/8 to 3/4 of them in use.
type index struct {
	keys  []uint64
	table []uint32 // numbers plus one; 0 is free
	seed  uint64
}

func newIndex() *index {
	return &index{table: make([]uint32, 64), seed: maphash.Comparable(maphash.MakeSeed(), 0)}
}

// place is where the key is in the table, or the free place where it would be.
func (x *index) place(key uint64) uint32 {
	mask := uint32(len(x.table) - 1)
	for i := uint32(mix(key, x.seed)) & mask; ; i = (i + 1) & mask {
		if n := x.table[i]; n == 0 || x.keys[n-1] == key {
			return i
		}
	}
}

// find gives the number of a key, -1 if it has none.
func (x *index) find(key uint64) int { return int(x.table[x.place(key)]) - 1 }

// add gives the number of a key, and whether it is new.
func (x *index) add(key uint64) (n int, isNew bool) {
	place := x.place(key)
	if n := x.table[place]; n != 0 {
		return int(n - 1), false
	}
	x.keys = append(x.keys, key)
	x.table[place] = uint32(len(x.keys))
	if len(x.keys)*4 > len(x.table)*3 {
		x.table = make([]uint32, 2*len(x.table))
		for i, key := range x.keys {
			x.table[x.place(key)] = uint32(i + 1)
		}
	}
	return len(x.keys) - 1, true
}

// mix hashes two words; who does not know one of them cannot choose the result
// by the other.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^b, 0x9e3779b97f4a7c15)
	return hi ^ lo
}
