package bpe

import (
	"sync/atomic"
	"unicode/utf8"
)

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
	// to three bytes, and 0 until the character is first met: a text has few of
	// them, and to work all out takes a twentieth of loading.
	inner, first []atomic.Int64
	near         neighbours
}

// seed is up to three symbols, symbolBits each, the first lowest. Ones fill it up,
// so that noSymbol follows, and noSeed has none. It is negative.
type seed int64

const noSeed seed = -1

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

func (m *Model) newSeeds(list *mergeList) *seeds {
	if !m.allBytes || m.ties != nil {
		return nil
	}
	return &seeds{
		inner: make([]atomic.Int64, 1<<16),
		first: make([]atomic.Int64, 1<<16),
		near:  m.findNeighbours(list),
	}
}

func (m *Model) findNeighbours(list *mergeList) neighbours {
	// What is asked of a symbol for each of its merges, in memory that fits into
	// a core's cache: whether the end of a character may be its first byte or its
	// last, and whether it may stand in a seed.
	const (
		begins = 1 << iota
		ends
		inSeed
	)
	n := m.tokens + len(m.extras)
	is := make([]uint8, n)
	near := neighbours{make([]uint32, n), make([]uint32, n)}
	for i := range n {
		near.toLeft[i], near.toRight[i] = noOrder, noOrder
		b := m.symbolBytes(symbol(i))
		if len(b) == 0 {
			continue
		}
		if first := b[0]; beside[first] && first&0xc0 != 0x80 {
			is[i] |= begins
		}
		if beside[b[len(b)-1]] {
			is[i] |= ends
		}
		if len(b) <= utf8.UTFMax && (b[0] == ' ' || b[0] >= utf8.RuneSelf) {
			is[i] |= inSeed
		}
	}
	for _, p := range list.pairs {
		left, right := is[p.left], is[p.right]
		if left&ends != 0 && right&inSeed != 0 {
			near.toLeft[p.right] = min(near.toLeft[p.right], p.order)
		}
		if right&begins != 0 && left&inSeed != 0 {
			near.toRight[p.left] = min(near.toRight[p.left], p.order)
		}
	}
	return near
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

// seedOf takes the steps of a character as far as they can be taken. If
// leftOpen is not set, nothing stands on its left.
func (m *Model) seedOf(char []byte, leftOpen bool) seed {
	if !m.anyPair(char) {
		return noSeed
	}
	near := &m.seeds.near
	var syms [4]symbol
	taken, n, last := noSeed, len(char), uint32(0)
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
			taken = noSeed
			for i := n - 1; i >= 0; i-- {
				taken = taken<<symbolBits | seed(syms[i])
			}
		}
		if best == noOrder || !safe(best) {
			return taken
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
		if from, size := m.seedAt(piece, i); size > 0 {
			for ; from != noSeed; from >>= symbolBits {
				syms = append(syms, symbol(from&noOrder))
			}
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

// seedAt gives what the text of a piece at i starts from, and its length in
// bytes: 0 if that is its bytes.
func (m *Model) seedAt(piece []byte, i int) (seed, int) {
	switch c := piece[i]; {
	case m.seeds == nil:
	case c >= utf8.RuneSelf:
		if i == 0 || beside[piece[i-1]] {
			return m.seedOfFirst(m.seeds.inner, piece[i:], 0)
		}
	case c == ' ' && i == 0 && len(piece) > 2 && piece[1] >= utf8.RuneSelf:
		return m.seedOfFirst(m.seeds.first, piece, 1)
	}
	return noSeed, 0
}

// seedOfFirst gives what the character at text[blank:] starts from, with the
// blank before it, by one of the tables, and the length in bytes: 0 if that is
// its bytes.
func (m *Model) seedOfFirst(table []atomic.Int64, text []byte, blank int) (seed, int) {
	b := text[blank:]
	if len(b) < 2 {
		return noSeed, 0
	}
	c := b[0]
	size := 2
	r := int(c&0x1f)<<6 | int(b[1]&0x3f)
	switch {
	case b[1]&0xc0 != 0x80 || c < 0xc2 || c >= 0xf0:
		return noSeed, 0
	case c >= 0xe0:
		if len(b) < 3 || b[2]&0xc0 != 0x80 {
			return noSeed, 0
		}
		size = 3
		if r = int(c&0x0f)<<12 | int(b[1]&0x3f)<<6 | int(b[2]&0x3f); r < 0x800 {
			return noSeed, 0
		}
	}
	if size < len(b) && (!beside[b[size]] || b[size]&0xc0 == 0x80) {
		return noSeed, 0
	}
	size += blank
	known := seed(table[r].Load())
	if known == 0 {
		known = m.seedOf(text[:size], blank == 0)
		table[r].Store(int64(known))
	}
	if known == noSeed {
		return noSeed, 0
	}
	return known, size
}
