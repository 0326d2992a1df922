package bpe

import "unicode/utf8"

// seeds start the merging of a byte-level piece from characters instead of
// bytes where that cannot make a difference.
//
// The bytes of a character, alone, merge in steps of ranks r1, r2, … A number
// of these steps can be done before all else if
//
//   - before each step k, no merge of the first symbol of the character with
//     what may stand on its left, nor of its last with what may stand on its
//     right, has a rank as low as rk, so that nothing else happens to it
//     meanwhile, and
//   - after the last step taken, no such merge of the symbols there then, nor
//     the next step, has a rank as low as any of the steps, so that nothing
//     happens earlier than it would have.
//
// For then each merge of the usual order is either one of those steps or the
// first of all also where those steps are done.
type seeds struct {
	// inner is for characters with no ASCII beside them, first for those after a
	// blank that begins the piece, that blank included. They are by code point up
	// to three bytes: place in syms<<3 | number of symbols, 0 for none.
	inner, first []uint32
	syms         []symbol
}

// beside says which bytes may stand beside a seed.
var beside = func() (is [256]bool) {
	for c := range is {
		is[c] = c >= utf8.RuneSelf || 'a' <= c|0x20 && c|0x20 <= 'z'
	}
	return is
}()

// neighbours holds, by symbol, the lowest rank of the merges with what may
// stand beside a seed.
type neighbours struct{ toLeft, toRight []uint32 }

func (m *Model) findSeeds(list *mergeList) *seeds {
	s := &seeds{inner: make([]uint32, 1<<16), first: make([]uint32, 1<<16)}
	if !m.allBytes || m.ties != nil {
		return s
	}
	near := neighbours{make([]uint32, m.tokens+len(m.extras)), make([]uint32, m.tokens+len(m.extras))}
	for i := range near.toLeft {
		near.toLeft[i], near.toRight[i] = noOrder, noOrder
	}
	for _, p := range list.pairs {
		if left := m.symbolBytes(p.left); beside[left[len(left)-1]] {
			near.toLeft[p.right] = min(near.toLeft[p.right], p.order)
		}
		if right := m.symbolBytes(p.right)[0]; beside[right] && right&0xc0 != 0x80 {
			near.toRight[p.left] = min(near.toRight[p.left], p.order)
		}
	}
	buf := []byte{' '}
	for r := rune(utf8.RuneSelf); int(r) < len(s.inner); r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		buf = utf8.AppendRune(buf[:1], r)
		if m.anyPair(buf[1:]) {
			s.inner[r] = s.add(m.seedOf(buf[1:], near, true))
		}
		if m.anyPair(buf) {
			s.first[r] = s.add(m.seedOf(buf, near, false))
		}
	}
	return s
}

// anyPair reports whether any two neighbours among some bytes merge.
func (m *Model) anyPair(text []byte) bool {
	for i := range len(text) - 1 {
		if m.bytePairs[int(text[i])<<8|int(text[i+1])] != noOrder {
			return true
		}
	}
	return false
}

// add enters what a character starts from.
func (s *seeds) add(syms []symbol) uint32 {
	if len(syms) == 0 {
		return 0
	}
	s.syms = append(s.syms, syms...)
	return uint32(len(s.syms)-len(syms))<<3 | uint32(len(syms))
}

// seedOf takes the steps of a character as far as they can be taken. If
// leftOpen is not set, nothing stands on its left.
func (m *Model) seedOf(char []byte, near neighbours, leftOpen bool) []symbol {
	var syms, seed [4]symbol
	n, taken, last := len(char), 0, uint32(0)
	for i, b := range char {
		syms[i] = m.byteSymbols[b]
	}
	// safe: no merge with the neighbours has a rank as low as this.
	safe := func(rank uint32) bool {
		return rank < near.toRight[syms[n-1]] && (!leftOpen || rank < near.toLeft[syms[0]])
	}
	for {
		best, at := uint32(noOrder), 0
		for i := range n - 1 {
			if order := m.pairs.find(syms[i], syms[i+1]); order < best {
				best, at = order, i
			}
		}
		if n < len(char) && last < best && safe(last) {
			seed, taken = syms, n
		}
		if best == noOrder || !safe(best) {
			return seed[:taken]
		}
		last = max(last, best)
		syms[at] = m.result(best)
		copy(syms[at+1:], syms[at+2:])
		n--
	}
}

// appendBytes appends the symbols of the bytes of a piece, or what the
// characters start from.
func (m *Model) appendBytes(syms []symbol, piece []byte) []symbol {
	for i := 0; i < len(piece); {
		if seed, size := m.seeds.at(piece, i); size > 0 {
			syms = append(syms, seed...)
			i += size
			continue
		}
		if sym := m.byteSymbols[piece[i]]; sym != noSymbol || !m.dropFirst {
			syms = append(syms, sym)
		}
		i++
	}
	return syms
}

// at gives what the text of a piece at i starts from, and its length in bytes:
// 0 if that is its bytes.
func (s *seeds) at(piece []byte, i int) ([]symbol, int) {
	switch c := piece[i]; {
	case c >= utf8.RuneSelf:
		if i == 0 || beside[piece[i-1]] {
			return s.find(s.inner, piece[i:])
		}
	case c == ' ' && i == 0 && len(piece) > 2 && piece[1] >= utf8.RuneSelf:
		if seed, size := s.find(s.first, piece[1:]); size > 0 {
			return seed, 1 + size
		}
	}
	return nil, 0
}

// find gives what the character at the beginning of text starts from, by one
// of the tables, and its length in bytes: 0 if that is its bytes.
func (s *seeds) find(table []uint32, text []byte) ([]symbol, int) {
	if len(text) < 2 {
		return nil, 0
	}
	c := text[0]
	size := 2
	r := int(c&0x1f)<<6 | int(text[1]&0x3f)
	switch {
	case text[1]&0xc0 != 0x80 || c < 0xc2 || c >= 0xf0:
		return nil, 0
	case c >= 0xe0:
		if len(text) < 3 || text[2]&0xc0 != 0x80 {
			return nil, 0
		}
		size = 3
		if r = int(c&0x0f)<<12 | int(text[1]&0x3f)<<6 | int(text[2]&0x3f); r < 0x800 {
			return nil, 0
		}
	}
	if size < len(text) && (!beside[text[size]] || text[size]&0xc0 == 0x80) {
		return nil, 0
	}
	seed := table[r]
	if seed == 0 {
		return nil, 0
	}
	at := seed >> 3
	return s.syms[at : at+seed&7], size
}
