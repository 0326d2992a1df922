package bpe

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// derivation says how merging makes a symbol when its bytes stand alone. They
// are made in the same way wherever the symbol ends up in a piece, because the
// lowest and leftmost of all pairs is also that of the part it stands in.
type derivation struct {
	left, right symbol // of the last merge
	// birth is 1 + the rank of the last merge, 0 for symbols to start from. It is
	// above that of the parts: so what happens inside of a symbol happens in order
	// of rank, and from left to right among equal ranks, and ranks serve as time.
	birth uint32
}

// What birth is instead of a rank.
const (
	never = math.MaxUint32     // merging the bytes alone does not lead to the symbol
	late  = math.MaxUint32 - 1 // perhaps it does, but out of order: only merging tells
)

// derivations are those of all symbols.
type derivations struct{ of []derivation }

// derived gives the derivations, which the first caller makes: most models are
// only asked to encode.
func (m *Model) derived() *derivations {
	m.derive.Do(func() { m.tree = m.newDerivations() })
	return &m.tree
}

func (m *Model) newDerivations() derivations {
	t := derivations{of: make([]derivation, m.tokens+len(m.extras))}
	for i := range t.of {
		t.of[i].birth = never
	}
	m.eachStart(func(s symbol) { t.of[s] = derivation{s, s, 0} })

	pairs := m.pairs.byOrder()
	for _, p := range pairs {
		made := &t.of[m.result(p.order)]
		if made.birth != never || t.of[p.left].birth == never || t.of[p.right].birth == never {
			continue
		}
		// Of all the ways to cut a symbol in two, the one that counts is that whose
		// parts are there before anything merges across the cut.
		if !m.crossedBefore(&t, p.left, p.right) {
			*made = derivation{p.left, p.right, m.rank(p.order) + 1}
		}
	}
	t.findLate(m, pairs)
	return t
}

// findLate marks the symbols that may be made by a merge of which a part is
// born only after what it makes could be: vocabularies have a handful.
func (t *derivations) findLate(m *Model, pairs []pair) {
	for range 10 {
		more := false
		for _, p := range pairs {
			made := &t.of[m.result(p.order)]
			left, right := t.of[p.left].birth, t.of[p.right].birth
			if made.birth != never || left == never || right == never {
				continue
			}
			if left == late || right == late || !m.crossedBefore(t, p.left, p.right) {
				made.birth = late
				more = true
			}
		}
		if !more {
			return
		}
	}
	// One after the other is late: this list of merges is no vocabulary's.
	for i := range t.of {
		t.of[i].birth = late
	}
}

// eachStart calls f with the symbols that merging starts from, those of Byte
// tokens for characters excepted.
func (m *Model) eachStart(f func(symbol)) {
	starts := m.byteSymbols[:]
	if m.chars != nil {
		starts = m.chars.basic
		for _, s := range m.chars.astral {
			f(s)
		}
	}
	for _, s := range starts {
		if s != noSymbol && (m.unknown == vocab.None || s != symbol(m.unknown)) {
			f(s)
		}
	}
}

// rank gives the rank of a merge by its order.
func (m *Model) rank(order uint32) uint32 {
	if m.ties == nil {
		return order
	}
	return m.ties[order]
}

// crossedBefore reports whether merging the bytes of two symbols side by side
// joins something across the border between them before both are made. It goes
// back in time, undoing of the two symbols at the border the one born last,
// and looks at each step whether the two then at the border would have merged
// before that birth. (That the pairs at the border decide is how the bpe crate
// of rust-gems tests pairs of tokens.)
func (m *Model) crossedBefore(t *derivations, left, right symbol) bool {
	for {
		l, r := &t.of[left], &t.of[right]
		var limit uint32 // a merge across the border comes first if it is born before
		switch {
		case l.birth > r.birth:
			// What made the left symbol stands to the left of the border: of equal
			// ranks it comes first.
			left, limit = l.right, l.birth
		case r.birth > 0:
			right, limit = r.left, r.birth+1
		default:
			return false
		}
		if order := m.pairs.find(left, right); order != noOrder && m.rank(order)+1 < limit {
			return true
		}
	}
}

// Apart reports whether two tokens side by side in a piece stay as they are:
// whether the piece of the bytes of both gives these two tokens, the Whole rule
// aside. It is false if one of them is not a token that merging makes: then it
// is never beside another. It takes a few table look-ups for each merge along
// the border.
func (m *Model) Apart(a, b vocab.ID) bool {
	if !m.vocab.IsText(a) || !m.vocab.IsText(b) {
		return false
	}
	if m.chars != nil && (m.isFallback(a) || m.isFallback(b)) {
		return m.apartBytes(a, b)
	}
	t := m.derived()
	left, right := symbol(a), symbol(b)
	first, second := t.of[left].birth, t.of[right].birth
	switch {
	case !m.proper:
		return m.apartByMerging(a, b)
	case first == never || second == never:
		return false
	case first == late || second == late:
		return m.apartByMerging(a, b)
	}
	return m.pairs.find(left, right) == noOrder && !m.crossedBefore(t, left, right)
}

// isFallback reports whether a token of a model of characters stands for a
// byte.
func (m *Model) isFallback(id vocab.ID) bool { return m.vocab.Kind(id) == vocab.Byte }

// apartBytes is Apart where a or b is the Byte token of a byte that is not a
// character.
func (m *Model) apartBytes(a, b vocab.ID) bool {
	if m.mergesAsChar(a) || m.mergesAsChar(b) {
		return m.apartByMerging(a, b)
	}
	for _, id := range []vocab.ID{a, b} {
		one := m.vocab.Bytes(id)
		switch {
		case !m.isFallback(id):
			if !m.Reaches(id) {
				return false
			}
		case len(one) != 1 || m.fallback[one[0]] != id || m.Known(one):
			return false
		}
	}
	if !m.isFallback(a) || !m.isFallback(b) {
		return true
	}
	both := [2]byte{m.vocab.Bytes(a)[0], m.vocab.Bytes(b)[0]}
	return !m.Known(both[:])
}

// mergesAsChar reports whether a token is the Byte token of an ASCII character
// that is no token by itself, but part of longer ones.
func (m *Model) mergesAsChar(id vocab.ID) bool {
	b := m.vocab.Bytes(id)
	if !m.isFallback(id) || len(b) != 1 || b[0] >= utf8.RuneSelf {
		return false
	}
	sym := m.chars.of(rune(b[0]))
	return sym != noSymbol && int(sym) >= m.tokens
}

// scratch takes a Scratch for questions that only merging answers.
func (m *Model) scratch() *Scratch {
	if s, ok := m.scratches.Get().(*Scratch); ok {
		return s
	}
	return new(Scratch)
}

func (m *Model) apartByMerging(a, b vocab.ID) bool {
	s := m.scratch()
	defer m.scratches.Put(s)
	s.piece = append(append(s.piece[:0], m.vocab.Bytes(a)...), m.vocab.Bytes(b)...)
	s.ids = m.appendAtOnce(s.ids[:0], s.piece, s)
	return len(s.ids) == 2 && s.ids[0] == a && s.ids[1] == b
}

// Reaches reports whether merging the bytes of a token gives the token. Others
// come only from the Whole rule, or never.
func (m *Model) Reaches(id vocab.ID) bool {
	if !m.vocab.IsText(id) {
		return false
	}
	if m.chars != nil && m.isFallback(id) {
		one := m.vocab.Bytes(id)
		return len(one) == 1 && m.fallback[one[0]] == id && !m.Known(one)
	}
	if birth := m.derived().of[id].birth; m.proper && birth != late {
		return birth != never
	}
	s := m.scratch()
	defer m.scratches.Put(s)
	s.ids = m.appendAtOnce(s.ids[:0], m.vocab.Bytes(id), s)
	return len(s.ids) == 1 && s.ids[0] == id
}

// parts gives the two symbols whose merge makes another when its bytes stand
// alone; false if it is not made by merging.
func (m *Model) parts(sym symbol) (left, right symbol, ok bool) {
	if d := m.derived().of[sym]; d.birth != late {
		return d.left, d.right, d.birth != never && d.birth > 0
	}
	s := new(Scratch)
	b := m.vocab.Bytes(vocab.ID(sym))
	s.syms = m.appendStart(slices.Grow(s.syms, len(b)), b)
	last := s.syms[0]
	if syms, l, r := m.mergeTraced(s); len(syms) == 1 && syms[0] == sym && sym != last {
		return l, r, true
	}
	return 0, 0, false
}

// charSymbol is the symbol of a valid character.
func (m *Model) charSymbol(char []byte) symbol {
	r, _ := utf8.DecodeRune(char)
	return m.chars.of(r)
}

// byOrder lists the pairs of the table, by order.
func (t *pairTable) byOrder() []pair {
	var counts []uint32
	n := 0
	for _, slot := range t.slots {
		if slot == 0 {
			continue
		}
		n++
		order := int(slot & noOrder)
		for len(counts) <= order+1 {
			counts = append(counts, make([]uint32, order+2-len(counts))...)
		}
		counts[order+1]++
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	pairs := make([]pair, n)
	for _, slot := range t.slots {
		if slot == 0 {
			continue
		}
		p := slotPair(slot)
		pairs[counts[p.order]] = p
		counts[p.order]++
	}
	return pairs
}
