// Package textindex finds the ID of a token by its text and, while that is
// built, texts that two tokens have.
package textindex

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// Index is a hash table from text to ID: open addressing, at most half full.
// It keeps no texts but asks for them by ID. Hashes are seeded at random, so
// that no file can choose texts that collide.
type Index struct {
	text  func(id int) []byte
	seed  maphash.Seed
	slots []uint64 // upper half of the text's hash, then ID + 1; 0 is free
}

// New makes an index for at most n IDs, each below 1<<32 - 1. text gives the
// text of an ID that was added.
func New(n int, text func(id int) []byte) Index {
	return Index{
		text:  text,
		seed:  maphash.MakeSeed(),
		slots: make([]uint64, 2<<bits.Len(uint(max(n, 1)-1))),
	}
}

const upper = ^uint64(1<<32 - 1)

// find gives the slot of a text, or the free one where it belongs.
func (x *Index) find(text []byte) (slot, hash uint64) {
	hash = maphash.Bytes(x.seed, text)
	mask := uint64(len(x.slots) - 1)
	for slot = hash & mask; x.slots[slot] != 0; slot = (slot + 1) & mask {
		if (x.slots[slot]^hash)&upper == 0 && bytes.Equal(x.text(int(uint32(x.slots[slot]))-1), text) {
			break
		}
	}
	return slot, hash
}

// Add adds an ID, unless another one has the same text: it is returned.
func (x *Index) Add(id int) (first int, dup bool) {
	slot, hash := x.find(x.text(id))
	if x.slots[slot] != 0 {
		return int(uint32(x.slots[slot])) - 1, true
	}
	x.slots[slot] = hash&upper | uint64(id+1)
	return id, false
}

// Lookup finds the ID of a text. The zero Index has none.
func (x *Index) Lookup(text []byte) (id int, ok bool) {
	if len(x.slots) == 0 {
		return 0, false
	}
	slot, _ := x.find(text)
	if x.slots[slot] == 0 {
		return 0, false
	}
	return int(uint32(x.slots[slot])) - 1, true
}
