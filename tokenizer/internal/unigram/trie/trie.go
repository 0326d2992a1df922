// Package trie finds the pieces of a vocabulary that a text begins with.
package trie

import (
	"bytes"
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// Trie is a double array (Aoe 1989, with the exclusive or of darts-clone): the
// child of a node along a byte is the slot base^byte if that holds this byte.
// No two nodes have the same base, so that the byte alone tells whose child a
// slot is. It does not change after it is made.
type Trie struct {
	slots []Slot
	root  Base
}

// Base stands for a node: it leads to the node's children.
type Base uint32

// Slot is what the trie holds of a node.
type Slot struct {
	// node is base<<9 | used | byte; base 0 for nodes without children: the
	// first block has no slots in use.
	node  uint32
	ID    int32   // of the piece that ends here, -1 for none
	Score float64 // of that
}

// Base leads on from a slot.
func (s *Slot) Base() Base { return Base(s.node >> baseShift) }

// Root is where every text begins.
func (t *Trie) Root() Base { return t.root }

// Child follows one byte. It is nil if no piece goes on with that.
func (t *Trie) Child(base Base, c byte) *Slot {
	s := &t.slots[uint32(base)^uint32(c)]
	if s.node&(used|0xff) != used|uint32(c) {
		return nil
	}
	return s
}

const (
	used      = 1 << 8
	baseShift = 9
	maxSlots  = 1 << (32 - baseShift)
	blockSize = 256
)

// Entry is a piece and what the trie is to hold of it.
type Entry struct {
	Text  []byte
	ID    int32
	Score float64
}

// openBlocks is in how many of the last blocks a place for children is looked
// for. More packs the slots tighter and takes longer.
const openBlocks = 8

// builder lays out a trie.
type builder struct {
	slots []Slot
	taken []bitset // slots in use, by block
	bases []bitset // bases in use, by block
	free  []int    // number of free slots, by block
	open  []uint32 // blocks that are looked at
	// labels are the bytes of the children of the nodes on the way down.
	labels []byte
}

// bitset is a set of bytes.
type bitset [blockSize / 64]uint64

func (b *bitset) has(i byte) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b *bitset) set(i byte)      { b[i>>6] |= 1 << (i & 63) }

// New makes a trie of entries. Of those with the same text the one with the
// highest ID counts; empty ones are left out.
func New(entries []Entry) (*Trie, error) {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(bytes.Compare(a.Text, b.Text), cmp.Compare(b.ID, a.ID))
	})
	entries = slices.CompactFunc(entries, func(a, b Entry) bool { return bytes.Equal(a.Text, b.Text) })
	if len(entries) > 0 && len(entries[0].Text) == 0 {
		entries = entries[1:]
	}
	b := new(builder)
	b.grow()
	b.open = b.open[:0] // the first block stays empty
	if len(entries) == 0 {
		return &Trie{b.slots, 0}, nil
	}
	root, err := b.place(entries, 0)
	return &Trie{b.slots, Base(root)}, err
}

var emptyBlock = func() (b [blockSize]Slot) {
	for i := range b {
		b[i].ID = -1
	}
	return b
}()

// grow adds a block.
func (b *builder) grow() uint32 {
	block := uint32(len(b.taken))
	b.taken = append(b.taken, bitset{})
	b.bases = append(b.bases, bitset{})
	b.free = append(b.free, blockSize)
	b.slots = append(b.slots, emptyBlock[:]...)
	b.open = append(b.open, block)
	if len(b.open) > openBlocks {
		b.open = b.open[1:]
	}
	return block
}

// place lays out the children of the node that all entries pass at a depth, and
// what is below them, and gives the node's base.
func (b *builder) place(entries []Entry, depth int) (uint32, error) {
	mark := len(b.labels)
	defer func() { b.labels = b.labels[:mark] }()
	for i, e := range entries {
		if i == 0 || e.Text[depth] != entries[i-1].Text[depth] {
			b.labels = append(b.labels, e.Text[depth])
		}
	}
	base := b.find(b.labels[mark:])
	if len(b.slots) > maxSlots {
		return 0, fmt.Errorf("trie: the pieces need a trie of more than %d nodes, which is not supported", maxSlots)
	}
	b.bases[base/blockSize].set(byte(base))
	for _, c := range b.labels[mark:] {
		at := base ^ uint32(c)
		b.taken[at/blockSize].set(byte(at))
		b.free[at/blockSize]--
		b.slots[at].node = used | uint32(c)
	}
	for i, lo := mark, 0; lo < len(entries); i++ {
		at := base ^ uint32(b.labels[i])
		hi := lo + 1
		for hi < len(entries) && entries[hi].Text[depth] == b.labels[i] {
			hi++
		}
		if e := entries[lo]; len(e.Text) == depth+1 {
			b.slots[at].ID, b.slots[at].Score = e.ID, e.Score
			lo++
		}
		if lo < hi {
			child, err := b.place(entries[lo:hi], depth+1)
			if err != nil {
				return 0, err
			}
			b.slots[at].node |= child << baseShift
		}
		lo = hi
	}
	return base, nil
}

// find gives a base that no node has and for which all slots of the labels are
// free.
func (b *builder) find(labels []byte) uint32 {
	for _, block := range b.open {
		if b.free[block] < len(labels) {
			continue
		}
		taken, bases := &b.taken[block], &b.bases[block]
		for w, word := range taken {
			for free := ^word; free != 0; free &= free - 1 {
				low := byte(w<<6|bits.TrailingZeros64(free)) ^ labels[0]
				if !bases.has(low) && fits(taken, low, labels[1:]) {
					return block*blockSize + uint32(low)
				}
			}
		}
	}
	return b.grow() * blockSize
}

func fits(taken *bitset, low byte, labels []byte) bool {
	for _, c := range labels {
		if taken.has(low ^ c) {
			return false
		}
	}
	return true
}

// Find gives the ID of the piece with exactly this text.
func (t *Trie) Find(text []byte) (id int32, ok bool) {
	if len(text) == 0 {
		return -1, false
	}
	base := t.root
	for _, c := range text {
		s := t.Child(base, c)
		if s == nil {
			return -1, false
		}
		base, id = s.Base(), s.ID
	}
	return id, id >= 0
}
