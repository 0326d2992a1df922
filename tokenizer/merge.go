package tokenizer

import (
	"bytes"
	"math"
	"math/bits"
	"slices"

	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/vocab"
)

// symbol is a string of bytes that merging can make. Symbols below the size of
// the vocabulary are its tokens, the others strings that stand in the list of
// merges but are no token for text.
type symbol = uint32

// noRank is the rank of pairs that do not merge.
const noRank = math.MaxUint32

// merges is byte-pair encoding's table: which neighbours merge, in which order
// and into what. It is a hash table with linear probing, at most half full.
type merges struct {
	slots []mergeSlot
	shift uint8 // of a hash, to a place in slots

	tokens  int               // symbols below are tokens
	extras  [][]byte          // bytes of the symbols from tokens on
	byByte  [256]symbol       // the symbols of single bytes
	byteIDs [256]vocab.ID     // their tokens, None where there is none
	byBytes map[string]symbol // the extras by their bytes, while building

	improper bool // some merge makes a string that is no text token
}

type mergeSlot struct {
	pair   uint64 // left<<32 | right
	rank   uint32 // the lowest merges first; noRank in an empty slot
	result symbol
}

// newMerges reads the list of merges: two strings with a space between, spelt
// as tokens are. The place in the list is the rank, the first of equal pairs
// counts. Lines that cannot match anything are passed over.
func newMerges(v *vocab.Vocab, list gguf.StringArray) *merges {
	size := max(16, 1<<bits.Len(uint(2*list.Len())))
	m := &merges{
		slots:   make([]mergeSlot, size),
		shift:   uint8(64 - bits.TrailingZeros(uint(size))),
		tokens:  v.Len(),
		byBytes: map[string]symbol{},
	}
	for i := range m.slots {
		m.slots[i].rank = noRank
	}
	for b := range m.byByte {
		one := []byte{byte(b)}
		m.byByte[b] = m.symbolOf(v, one)
		m.byteIDs[b], _ = v.Lookup(one)
	}
	var both []byte
	for rank := range list.Len() {
		line := list.At(rank)
		// A string may begin with the separator itself.
		at := bytes.IndexByte(line[min(1, len(line)):], ' ') + 1
		if at == 0 {
			continue
		}
		var okLeft, okRight bool
		both, okLeft = appendSpelled(both[:0], line[:at])
		left := len(both)
		both, okRight = appendSpelled(both, line[at+1:])
		if !okLeft || !okRight || left == len(both) {
			continue
		}
		m.add(mergeSlot{
			pair:   pairOf(m.symbolOf(v, both[:left]), m.symbolOf(v, both[left:])),
			rank:   uint32(rank),
			result: m.symbolOf(v, both),
		})
		if _, ok := v.Lookup(both); !ok {
			m.improper = true
		}
	}
	m.byBytes = nil
	return m
}

// symbolOf gives the symbol of a string of bytes, which it makes if need be.
func (m *merges) symbolOf(v *vocab.Vocab, b []byte) symbol {
	if id, ok := v.Lookup(b); ok {
		return symbol(id)
	}
	if s, ok := m.byBytes[string(b)]; ok {
		return s
	}
	s := symbol(m.tokens + len(m.extras))
	m.extras = append(m.extras, bytes.Clone(b))
	m.byBytes[string(b)] = s
	return s
}

func pairOf(left, right symbol) uint64 { return uint64(left)<<32 | uint64(right) }

// place is where the search for a pair begins.
func (m *merges) place(pair uint64) uint64 {
	// 2^64 divided by the golden ratio spreads the high bits of the product.
	return pair * 0x9e3779b97f4a7c15 >> m.shift
}

func (m *merges) add(s mergeSlot) {
	for i := m.place(s.pair); ; i = (i + 1) & uint64(len(m.slots)-1) {
		switch {
		case m.slots[i].rank == noRank:
			m.slots[i] = s
			return
		case m.slots[i].pair == s.pair:
			return
		}
	}
}

// find gives the merge of two neighbours; its rank is noRank if there is none.
func (m *merges) find(left, right symbol) mergeSlot {
	pair := pairOf(left, right)
	for i := m.place(pair); ; i = (i + 1) & uint64(len(m.slots)-1) {
		if s := m.slots[i]; s.pair == pair || s.rank == noRank {
			return s
		}
	}
}

// shortPiece is the bytes up to which searching all ranks for the lowest is
// faster than keeping them in a heap.
const shortPiece = 48

// append merges the bytes of a piece until no neighbours merge, the lowest
// rank first, the leftmost of equal ones, and appends the tokens.
func (m *merges) append(dst []vocab.ID, piece []byte, s *scratch) []vocab.ID {
	if len(piece) > shortPiece {
		return m.appendLong(dst, piece, s)
	}
	syms, pairs := &s.syms, &s.pairs
	n := len(piece)
	for i, b := range piece {
		syms[i] = m.byByte[b]
	}
	for i := range n - 1 {
		pairs[i] = m.find(syms[i], syms[i+1])
	}
	for n > 1 {
		best := 0
		for i := 1; i < n-1; i++ {
			if pairs[i].rank < pairs[best].rank {
				best = i
			}
		}
		if pairs[best].rank == noRank {
			break
		}
		syms[best] = pairs[best].result
		n--
		copy(syms[best+1:n], syms[best+2:n+1])
		copy(pairs[best:n-1], pairs[best+1:n])
		if best > 0 {
			pairs[best-1] = m.find(syms[best-1], syms[best])
		}
		if best < n-1 {
			pairs[best] = m.find(syms[best], syms[best+1])
		}
	}
	for _, sym := range syms[:n] {
		dst = m.appendSymbol(dst, sym)
	}
	return dst
}

// appendLong is append in O(n log n): the symbols are a linked list, the pairs
// a heap by rank and then place.
func (m *merges) appendLong(dst []vocab.ID, piece []byte, s *scratch) []vocab.ID {
	nodes := slices.Grow(s.nodes[:0], len(piece))
	for i, b := range piece {
		nodes = append(nodes, node{m.byByte[b], int32(i - 1), int32(i + 1)})
	}
	s.nodes = nodes
	last := int32(len(nodes))
	h := slices.Grow(s.heap[:0], len(piece))
	for i := range nodes[1:] {
		if mg := m.find(nodes[i].sym, nodes[i+1].sym); mg.rank != noRank {
			h = append(h, uint64(mg.rank)<<32|uint64(i))
		}
	}
	h.init()
	for len(h) > 0 {
		top := h.pop()
		i := int32(uint32(top))
		right := nodes[i].next
		if right < 0 || right == last {
			continue // merged into its left neighbour, or nothing follows it
		}
		// A rank names one pair of symbols: if it is still the rank of what
		// stands here, the entry is as good as fresh.
		mg := m.find(nodes[i].sym, nodes[right].sym)
		if uint64(mg.rank) != top>>32 {
			continue
		}
		after := nodes[right].next
		nodes[i].sym, nodes[i].next = mg.result, after
		nodes[right].next = -1
		if after != last {
			nodes[after].prev = i
			if mg := m.find(nodes[i].sym, nodes[after].sym); mg.rank != noRank {
				h.push(uint64(mg.rank)<<32 | uint64(i))
			}
		}
		if before := nodes[i].prev; before >= 0 {
			if mg := m.find(nodes[before].sym, nodes[i].sym); mg.rank != noRank {
				h.push(uint64(mg.rank)<<32 | uint64(before))
			}
		}
	}
	s.heap = h[:0]
	for i := int32(0); i != last; i = nodes[i].next {
		dst = m.appendSymbol(dst, nodes[i].sym)
	}
	return dst
}

// appendSymbol appends the token of a symbol. One that is no token goes byte
// by byte, and bytes that are none are left out. (llama.cpp then keeps only
// the printable ASCII bytes; no vocabulary in use has merges that lead there.)
func (m *merges) appendSymbol(dst []vocab.ID, sym symbol) []vocab.ID {
	if int(sym) < m.tokens {
		return append(dst, vocab.ID(sym))
	}
	for _, b := range m.extras[int(sym)-m.tokens] {
		if id := m.byteIDs[b]; id != vocab.None {
			dst = append(dst, id)
		}
	}
	return dst
}

// node is a symbol of a long piece. The first byte's place is its name.
type node struct {
	sym        symbol
	prev, next int32 // next is -1 once merged into prev
}

// rankHeap is a binary heap of rank<<32 | place, the least on top.
type rankHeap []uint64

func (h rankHeap) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *rankHeap) push(x uint64) {
	*h = append(*h, x)
	s := *h
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if s[parent] <= x {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = x
}

func (h *rankHeap) pop() uint64 {
	s := *h
	top := s[0]
	s[0] = s[len(s)-1]
	*h = s[:len(s)-1]
	h.down(0)
	return top
}

func (h rankHeap) down(i int) {
	if len(h) == 0 {
		return
	}
	x := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[child] >= x {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = x
}
