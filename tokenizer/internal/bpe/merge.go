package bpe

import (
	"slices"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// shortPiece is the number of bytes up to which searching all pairs for the
// best is faster than keeping them in a heap.
const shortPiece = 96

// A key is the order of a merge and the place of its left symbol, so that the
// least of them is the merge to do next. keyBits is the room for the place.
const (
	keyBits = 7
	noKey   = ^uint32(0)
)

// AppendPiece appends the tokens of one piece of text. It does without the
// piece cache.
func (m *Model) AppendPiece(dst []vocab.ID, piece []byte, s *Scratch) []vocab.ID {
	if m.whole {
		if id, ok := m.vocab.Lookup(piece); ok && m.vocab.Kind(id) == vocab.Normal {
			return append(dst, id)
		}
	}
	if len(piece) > shortPiece && m.direct {
		if out, ok := m.appendWindows(dst, piece, s); ok {
			return out
		}
	}
	return m.appendAtOnce(dst, piece, s)
}

// appendAtOnce is AppendPiece without the Whole rule, for the whole piece as
// it is.
func (m *Model) appendAtOnce(dst []vocab.ID, piece []byte, s *Scratch) []vocab.ID {
	if s.owner != m {
		s.adopt(m)
	}
	s.syms = slices.Grow(s.syms[:0], len(piece)+1)
	var syms []symbol
	switch short := len(piece) <= shortPiece; {
	case short && m.allBytes:
		m.startBytes(s, piece)
		syms = m.mergeShort(s)
	case short:
		s.syms = m.appendStart(s.syms, piece)
		m.startPairs(s)
		syms = m.mergeShort(s)
	default:
		s.syms = m.appendStart(s.syms, piece)
		syms = m.mergeLong(s)
	}
	dst = m.appendTokens(dst, syms)
	s.trim()
	return dst
}

// appendStart appends the symbols that the merging of a piece starts from.
func (m *Model) appendStart(syms []symbol, piece []byte) []symbol {
	if m.chars != nil {
		return m.appendChars(syms, piece)
	}
	return m.appendBytes(syms, piece)
}

// result gives the symbol made by the merge of an order.
func (m *Model) result(order uint32) symbol {
	if m.results == nil {
		return order
	}
	return m.results[order]
}

// startBytes is appendBytes that also looks up the pairs of a short piece: two
// bytes side by side have a table of their own.
func (m *Model) startBytes(s *Scratch, piece []byte) {
	syms, keys := s.syms[:len(piece)], &s.keys
	n := uint32(0)
	last := -1 // the byte before, if it stands there as such
	for i := 0; i < len(piece); {
		c := piece[i]
		if c >= utf8.RuneSelf || c == ' ' {
			if from, size := m.seedAt(piece, i); size > 0 {
				for ; from != noSeed; from >>= symbolBits {
					sym := symbol(from & noOrder)
					if n > 0 {
						keys[n-1] = m.pairs.find(syms[n-1], sym)<<keyBits | (n - 1)
					}
					syms[n] = sym
					n++
				}
				last = -1
				i += size
				continue
			}
		}
		syms[n] = m.byteSymbols[c]
		if last >= 0 {
			keys[n-1] = m.bytePairs[last<<8|int(c)]<<keyBits | (n - 1)
		} else if n > 0 {
			keys[n-1] = m.pairs.find(syms[n-1], syms[n])<<keyBits | (n - 1)
		}
		n++
		last = int(c)
		i++
	}
	s.syms = syms[:n]
}

// startPairs looks up the pairs of a short piece.
func (m *Model) startPairs(s *Scratch) {
	for i := range len(s.syms) - 1 {
		s.keys[i] = m.pairs.find(s.syms[i], s.syms[i+1])<<keyBits | uint32(i)
	}
}

// mergeShort merges the symbols in s.syms, at most shortPiece, whose pairs are
// in s.keys.
func (m *Model) mergeShort(s *Scratch) []symbol {
	n := len(s.syms)
	if n < 2 {
		return s.syms
	}
	syms := append(s.syms, noSymbol) // stands before the first and after the last
	keys, links, pairs := s.keys[:n+1], &s.links, &m.pairs
	for i := range n + 1 {
		links[i] = link{uint8(i - 1), uint8(i + 1)}
	}
	links[0].prev = uint8(n)
	keys[n-1] = noKey
	for {
		best := noKey
		for _, k := range keys[:n] {
			best = min(best, k)
		}
		if best>>keyBits >= noOrder {
			break
		}
		if m.ties != nil {
			best = m.leftmostTied(keys[:n], best)
		}
		i := best & (1<<keyBits - 1)
		sym := m.result(best >> keyBits)
		gone := uint32(links[i].next)
		before, after := uint32(links[i].prev), uint32(links[gone].next)
		syms[i], links[i].next, links[after].prev = sym, uint8(after), uint8(i)
		keys[gone] = noKey
		left, right := pairKey(syms[before], sym), pairKey(sym, syms[after])
		mayLeft, mayRight := pairs.mayHold(left), pairs.mayHold(right)
		keys[before], keys[i] = noKey, noKey
		if mayLeft {
			keys[before] = pairs.probe(left)<<keyBits | before
		}
		if mayRight {
			keys[i] = pairs.probe(right)<<keyBits | i
		}
	}
	out := 0
	for i := 0; i < n; i = int(links[i].next) {
		syms[out] = syms[i]
		out++
	}
	return syms[:out]
}

// leftmostTied gives the key of the leftmost merge that has the same rank as
// that of best.
func (m *Model) leftmostTied(keys []uint32, best uint32) uint32 {
	order := best >> keyBits
	rank := m.ties[order]
	if next := int(order) + 1; rank == order && (next == len(m.ties) || m.ties[next] != rank) {
		return best // no other merge has it
	}
	for _, k := range keys {
		if k>>keyBits < noOrder && m.ties[k>>keyBits] == rank {
			return k
		}
	}
	return best
}

// link is the neighbours of a symbol of a short piece.
type link struct{ prev, next uint8 }

// node is a symbol of a long piece.
type node struct {
	sym        symbol
	rank       uint32 // of the merge with the next; noOrder if there is none
	order      uint32
	prev, next int32 // next is -1 once merged into prev
}

// pairAt looks up the merge of the node at i with the next.
func (m *Model) pairAt(nodes []node, i int32) {
	n := &nodes[i]
	n.order, n.rank = noOrder, noOrder
	if int(n.next) == len(nodes) {
		return
	}
	n.order = m.pairs.find(n.sym, nodes[n.next].sym)
	n.rank = n.order
	if m.ties != nil && n.order != noOrder {
		n.rank = m.ties[n.order]
	}
}

// mergeLong is mergeShort in O(n log n): the symbols are a linked list, the
// pairs a heap by rank and then place.
func (m *Model) mergeLong(s *Scratch) []symbol {
	syms, _, _ := m.mergeTraced(s)
	return syms
}

// mergeTraced is mergeLong that tells which two symbols it merged last.
func (m *Model) mergeTraced(s *Scratch) (syms []symbol, left, right symbol) {
	nodes := slices.Grow(s.nodes[:0], len(s.syms))
	for i, sym := range s.syms {
		nodes = append(nodes, node{sym: sym, prev: int32(i - 1), next: int32(i + 1)})
	}
	h := slices.Grow(s.heap[:0], len(nodes))
	for i := range nodes {
		m.pairAt(nodes, int32(i))
		if nodes[i].rank != noOrder {
			h = append(h, heapEntry(nodes, int32(i)))
		}
	}
	h.init()
	for len(h) > 0 {
		top := h.pop()
		i := int32(uint32(top))
		// An entry that is out of date either names a symbol merged away or a rank
		// that has changed since; if the rank is the same, it is as good as fresh.
		if nodes[i].next < 0 || uint64(nodes[i].rank) != top>>32 {
			continue
		}
		gone := nodes[i].next
		after := nodes[gone].next
		left, right = nodes[i].sym, nodes[gone].sym
		nodes[i].sym, nodes[i].next = m.result(nodes[i].order), after
		nodes[gone].next = -1
		if int(after) != len(nodes) {
			nodes[after].prev = i
		}
		if m.pairAt(nodes, i); nodes[i].rank != noOrder {
			h.push(heapEntry(nodes, i))
		}
		if before := nodes[i].prev; before >= 0 {
			if m.pairAt(nodes, before); nodes[before].rank != noOrder {
				h.push(heapEntry(nodes, before))
			}
		}
	}
	s.nodes, s.heap = nodes, h[:0]
	syms = s.syms[:0]
	for i := 0; i < len(nodes); i = int(nodes[i].next) {
		syms = append(syms, nodes[i].sym)
	}
	return syms, left, right
}

func heapEntry(nodes []node, i int32) uint64 { return uint64(nodes[i].rank)<<32 | uint64(i) }

// appendTokens appends the tokens of what merging left.
func (m *Model) appendTokens(dst []vocab.ID, syms []symbol) []vocab.ID {
	if m.direct {
		for _, sym := range syms {
			if int(sym) >= m.tokens {
				sym = symbol(m.fallback[m.extras[int(sym)-m.tokens][0]])
			}
			dst = append(dst, vocab.ID(sym))
		}
		return dst
	}
	first := len(dst)
	for _, sym := range syms {
		dst = m.appendSymbol(dst, first, sym)
	}
	return dst
}

// appendSymbol appends the tokens of a symbol to those of its piece, which
// begin at first.
func (m *Model) appendSymbol(dst []vocab.ID, first int, sym symbol) []vocab.ID {
	switch {
	case sym == noSymbol:
		return dst
	case int(sym) >= m.tokens:
		return m.appendExtra(dst, first, m.extras[int(sym)-m.tokens])
	}
	id := vocab.ID(sym)
	if m.unused && m.vocab.Kind(id) == vocab.Unused {
		if left, right, ok := m.parts(sym); ok {
			return m.appendSymbol(m.appendSymbol(dst, first, left), first, right)
		}
	}
	if m.fuse && id == m.unknown && len(dst) > first && dst[len(dst)-1] == id {
		return dst
	}
	return append(dst, id)
}

// appendExtra appends the tokens of the characters (bytes) of a string that is
// no token.
func (m *Model) appendExtra(dst []vocab.ID, first int, b []byte) []vocab.ID {
	for len(b) > 0 {
		size, sym := 1, noSymbol
		if m.chars == nil {
			sym = m.byteSymbols[b[0]]
		} else {
			var valid bool
			if size, valid = charSize(b); valid {
				sym = m.charSymbol(b[:size])
			}
		}
		if sym == noSymbol || int(sym) >= m.tokens {
			var lost [4]symbol
			for _, sym := range m.appendLost(lost[:0], b[:size]) {
				dst = m.appendSymbol(dst, first, sym)
			}
		} else {
			dst = m.appendSymbol(dst, first, sym)
		}
		b = b[size:]
	}
	return dst
}
