package bpe

import (
	"encoding/binary"
	"math/bits"

	"github.com/unfray/unfray/vocab"
)

const (
	keyBytes   = 15 // bytes of the longest piece that the cache holds
	entryIDs   = 6  // tokens of such a piece, at most
	minEntries = 1 << 10
	maxEntries = 1 << 16

	keptBytes = 1 << 16 // length of a piece up to which working memory is kept
)

// entry is a piece and its tokens, two to a cache line.
type entry struct {
	// head is bytes 0-7 of the piece, tail its bytes 8-14 and, as the highest
	// byte, its length | number of tokens<<4. An entry that was never filled has
	// no tokens, and no piece has length 0.
	head, tail uint64
	// ids are the tokens, three to a word, 21 bits each.
	ids [2]uint64
}

const countMask = 0x70 << 56

const (
	wideKeyBytes   = 31
	wideEntryIDs   = 10
	minWideEntries = 1 << 8
	maxWideEntries = 1 << 14
)

// wideEntry is an entry for longer pieces, one to a cache line.
type wideEntry struct {
	key [4]uint64 // the bytes of the piece and, as the highest byte, its length-16
	ids [4]uint64 // three to a word; the number of tokens<<60 in the last
}

// Scratch is the working memory and piece cache of one goroutine. The zero
// value is ready to use. It grows to at most 3 MB of cache, and lets go of what
// a long piece took. One Scratch may serve several models in turn, but begins
// anew with each.
type Scratch struct {
	owner *Model

	entries []entry
	shift   uint8 // of a hash, to a place in entries
	filled  int   // entries written since the cache last grew

	wide       []wideEntry
	wideShift  uint8
	wideFilled int

	syms    []symbol
	keys    [shortPiece + 1]uint32
	links   [shortPiece + 1]link
	nodes   []node
	heap    mergeHeap
	piece   []byte
	window  []vocab.ID
	both    []byte
	pair    []vocab.ID
	memos   [8]memo
	borders [1 << logBorders]border
	ids     []vocab.ID
}

// adopt begins anew for a model.
func (s *Scratch) adopt(m *Model) {
	s.owner = m
	s.entries, s.wide = nil, nil
	s.memos = [len(s.memos)]memo{}
	for i := range s.borders {
		s.borders[i] = border{a: vocab.None}
	}
}

// grow makes the cache larger, with the entries that are there.
func (s *Scratch) grow() {
	old := s.entries
	n := max(minEntries, 4*len(old))
	s.entries, s.filled = make([]entry, n), 0
	s.shift = uint8(64 - bits.TrailingZeros(uint(n)))
	for i := range old {
		if e := &old[i]; e.tail != 0 {
			s.enter(keyHash(e.head, e.tail&^countMask)>>s.shift, e)
		}
	}
}

// enter puts an entry in its place. The one that was there moves to the place
// beside it, on the same cache line: without that, one miss in three would be of
// a piece that another has just displaced.
func (s *Scratch) enter(at uint64, e *entry) {
	if first := &s.entries[at]; first.tail != 0 {
		s.entries[at^1] = *first
	}
	s.entries[at] = *e
}

// growWide is grow for the entries of longer pieces.
func (s *Scratch) growWide() {
	old := s.wide
	n := max(minWideEntries, 4*len(old))
	s.wide, s.wideFilled = make([]wideEntry, n), 0
	s.wideShift = uint8(64 - bits.TrailingZeros(uint(n)))
	for _, e := range old {
		if e.ids[3] != 0 {
			s.wide[wideHash(&e.key)>>s.wideShift] = e
		}
	}
}

// trim lets go of the memory that a long piece took.
func (s *Scratch) trim() {
	if cap(s.syms) > keptBytes {
		s.syms, s.nodes, s.heap = nil, nil, nil
	}
}

func keyHash(head, tail uint64) uint64 {
	hi, lo := bits.Mul64(head^0x9e3779b97f4a7c15, tail^0xd6e8feb86659fd93)
	return hi ^ lo
}

func wideHash(key *[4]uint64) uint64 {
	return keyHash(key[0], key[1]) ^ keyHash(key[2], key[3])
}

// byteMasks keep the first bytes of a little-endian word.
var byteMasks = func() (masks [keyBytes + 1][2]uint64) {
	for n := range masks {
		masks[n] = [2]uint64{1<<(8*min(n, 8)) - 1, 1<<(8*max(n-8, 0)) - 1}
	}
	return masks
}()

// AppendPieces appends the tokens of the pieces of text that end at ends, the
// first of which begins at from, each other where the one before it ends.
func (m *Model) AppendPieces(dst []vocab.ID, text []byte, from int, ends []int, s *Scratch) []vocab.ID {
	if s.owner != m {
		s.adopt(m)
	}
	if s.entries == nil {
		s.grow()
	}
	entries, shift := s.entries, s.shift
	for _, end := range ends {
		n := uint(end - from)
		start := from
		from = end
		if n-1 >= keyBytes {
			dst = m.appendWide(dst, text[start:], int(n), s)
			continue
		}
		var head, tail uint64
		if rest := text[start:]; len(rest) >= 16 {
			mask := &byteMasks[n&15]
			head = binary.LittleEndian.Uint64(rest) & mask[0]
			tail = binary.LittleEndian.Uint64(rest[8:]) & mask[1]
		} else {
			head, tail = shortKey(rest[:n])
		}
		tail |= uint64(n) << 56
		e := &entries[keyHash(head, tail)>>shift]
		if e.head != head || (e.tail^tail)&^countMask != 0 {
			dst = m.appendMissed(dst, text[start:end], head, tail, s)
			entries, shift = s.entries, s.shift
			continue
		}
		dst = e.appendIDs(dst)
	}
	return dst
}

// appendWide appends the tokens of the piece of n bytes at the beginning of
// text, which is empty or longer than keyBytes.
func (m *Model) appendWide(dst []vocab.ID, text []byte, n int, s *Scratch) []vocab.ID {
	if n == 0 {
		return dst
	}
	if n > wideKeyBytes {
		return m.AppendPiece(dst, text[:n], s)
	}
	var key [4]uint64
	key[0], key[1] = binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
	if len(text) >= 32 {
		mask := &byteMasks[n-16]
		key[2] = binary.LittleEndian.Uint64(text[16:]) & mask[0]
		key[3] = binary.LittleEndian.Uint64(text[24:]) & mask[1]
	} else {
		key[2], key[3] = shortKey(text[16:n])
	}
	key[3] |= uint64(n-16) << 56
	if s.wide == nil {
		s.growWide()
	}
	e := &s.wide[wideHash(&key)>>s.wideShift]
	if e.key == key {
		for i := range int(e.ids[3] >> 60) {
			dst = append(dst, vocab.ID(e.ids[i/3]>>(i%3*symbolBits)&noOrder))
		}
		return dst
	}
	first := len(dst)
	dst = m.AppendPiece(dst, text[:n], s)
	ids := dst[first:]
	if len(ids) == 0 || len(ids) > wideEntryIDs {
		return dst
	}
	if s.wideFilled++; s.wideFilled > len(s.wide)/2 && len(s.wide) < maxWideEntries {
		s.growWide()
	}
	e = &s.wide[wideHash(&key)>>s.wideShift]
	*e = wideEntry{key: key}
	for i, id := range ids {
		e.ids[i/3] |= uint64(id) << (i % 3 * symbolBits)
	}
	e.ids[3] |= uint64(len(ids)) << 60
	return dst
}

// shortKey is the key of a piece so near the text's end that 16 bytes cannot
// be read.
func shortKey(piece []byte) (head, tail uint64) {
	var b [16]byte
	copy(b[:], piece)
	return binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
}

// appendRest appends all tokens of an entry but the first.
func (e *entry) appendRest(dst []vocab.ID, count int) []vocab.ID {
	dst = append(dst, vocab.ID(e.ids[0]>>symbolBits&noOrder))
	for i := 2; i < count; i++ {
		dst = append(dst, vocab.ID(e.ids[i/3]>>(i%3*symbolBits)&noOrder))
	}
	return dst
}

// appendIDs appends all tokens of an entry.
func (e *entry) appendIDs(dst []vocab.ID) []vocab.ID {
	dst = append(dst, vocab.ID(e.ids[0]&noOrder))
	if count := int(e.tail >> 60 & 7); count > 1 {
		return e.appendRest(dst, count)
	}
	return dst
}

// appendMissed appends the tokens of a piece that is not in its place in the
// cache and puts it there.
func (m *Model) appendMissed(dst []vocab.ID, piece []byte, head, tail uint64, s *Scratch) []vocab.ID {
	at := keyHash(head, tail) >> s.shift
	if e := s.entries[at^1]; e.head == head && (e.tail^tail)&^countMask == 0 {
		s.entries[at], s.entries[at^1] = e, s.entries[at]
		return e.appendIDs(dst)
	}
	first := len(dst)
	dst = m.AppendPiece(dst, piece, s)
	ids := dst[first:]
	if len(ids) == 0 || len(ids) > entryIDs {
		return dst
	}
	if s.filled++; s.filled > len(s.entries)/2 && len(s.entries) < maxEntries {
		s.grow()
	}
	e := entry{head: head, tail: tail | uint64(len(ids))<<60}
	for i, id := range ids {
		e.ids[i/3] |= uint64(id) << (i % 3 * symbolBits)
	}
	s.enter(keyHash(head, tail)>>s.shift, &e)
	return dst
}
