package bpe

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// names finds symbols by their bytes while a model is built: a hash table with
// linear probing. Its hash is a polynomial, so that those of all parts of a
// string follow from those of its beginnings.
type names struct {
	vocab  *vocab.Vocab
	chars  bool
	extras [][]byte
	slots  []uint64 // high half of the mixed hash<<32 | symbol+1; 0 is empty
	used   int
	twins  bool // some tokens have the same bytes

	powers []uint64 // of hashBase
	hashes []uint64 // of the beginnings of one string
	homes  []uint64
}

const (
	hashBase = 0x9e3779b97f4a7c15
	hashMix  = 0xd6e8feb86659fd93
)

func hashOf(b []byte) uint64 {
	h := uint64(0)
	for _, c := range b {
		h = h*hashBase + uint64(c) + 1
	}
	return h
}

// newNames lists the tokens that merges can speak of. Of those with the same
// bytes it takes Normal ones before UserDefined ones before the rest, and then
// the lowest ID, as vocab.Lookup does.
func newNames(c *Config) *names {
	v := c.Vocab
	n := &names{vocab: v, chars: c.Chars, slots: make([]uint64, 1<<bits.Len(uint(v.Len()+v.Len()/2+512)))}
	kinds := []vocab.Kind{vocab.Normal}
	if !c.ByID {
		kinds = append(kinds, vocab.UserDefined)
	}
	if !c.ByID && !c.Chars {
		kinds = append(kinds, vocab.Byte)
	}
	if c.Unused {
		kinds = append(kinds, vocab.Unused)
	}
	for _, kind := range kinds {
		for i := range v.Len() {
			if id := vocab.ID(i); v.Kind(id) == kind && len(v.Bytes(id)) > 0 && (c.Added == nil || !c.Added(id)) {
				n.insert(v.Bytes(id), symbol(i))
			}
		}
	}
	return n
}

func (n *names) bytes(s symbol) []byte {
	if int(s) < n.vocab.Len() {
		return n.vocab.Bytes(vocab.ID(s))
	}
	return n.extras[int(s)-n.vocab.Len()]
}

func (n *names) insert(b []byte, s symbol) {
	if 3*(n.used+1) > 2*len(n.slots) {
		n.grow()
	}
	h := hashOf(b) * hashMix
	for i := h >> n.shift(); ; i = (i + 1) & uint64(len(n.slots)-1) {
		slot := n.slots[i]
		if slot == 0 {
			n.slots[i] = h&^0xffffffff | uint64(s+1)
			n.used++
			return
		}
		if (slot^h)>>32 == 0 && bytes.Equal(n.bytes(uint32(slot)-1), b) {
			n.twins = true
			return
		}
	}
}

func (n *names) shift() int { return 64 - bits.TrailingZeros(uint(len(n.slots))) }

func (n *names) grow() {
	old := n.slots
	n.slots, n.used = make([]uint64, 2*len(old)), 0
	for _, slot := range old {
		if slot != 0 {
			s := uint32(slot) - 1
			n.insert(n.bytes(s), s)
		}
	}
}

func (n *names) find(b []byte) (symbol, bool) { return n.findHash(b, hashOf(b)) }

func (n *names) findHash(b []byte, hash uint64) (symbol, bool) {
	h := hash * hashMix
	for i := h >> n.shift(); ; i = (i + 1) & uint64(len(n.slots)-1) {
		slot := n.slots[i]
		if slot == 0 {
			return noSymbol, false
		}
		if (slot^h)>>32 == 0 && bytes.Equal(n.bytes(uint32(slot)-1), b) {
			return uint32(slot) - 1, true
		}
	}
}

// of gives the symbol of a string of bytes, which it makes if need be.
func (n *names) of(b []byte) symbol { return n.ofHash(b, hashOf(b)) }

func (n *names) ofHash(b []byte, hash uint64) symbol {
	if s, ok := n.findHash(b, hash); ok {
		return s
	}
	s := symbol(n.vocab.Len() + len(n.extras))
	n.extras = append(n.extras, bytes.Clone(b))
	n.insert(n.extras[len(n.extras)-1], s)
	return s
}

// mergeList is the merges of a model, not in any order, without duplicates
// only once they are in a pairTable. The order of a pair says which merges
// come first.
type mergeList struct {
	pairs   []pair
	results []symbol // by order; nil: the order is the symbol
	ties    []uint32 // ranks by order; nil: the order is the rank
}

type pair struct {
	left, right symbol
	order       uint32
}

// made lists the symbols that merges make, some more than once.
func (l *mergeList) made() []symbol {
	if l.results != nil {
		return l.results
	}
	var made []symbol
	for i, p := range l.pairs {
		if i == 0 || p.order != l.pairs[i-1].order {
			made = append(made, p.order)
		}
	}
	return made
}

func (n *names) merges(c *Config) (*mergeList, error) {
	given := 0
	for _, is := range []bool{c.Merges != nil, c.ByID, c.Scores != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("bpe: needs one of a list of merges, ranks by ID, and scores")
	}
	switch {
	case c.ByID:
		return n.byID(), nil
	case c.Scores != nil:
		if len(c.Scores) != c.Vocab.Len() {
			return nil, fmt.Errorf("bpe: %d scores for %d tokens", len(c.Scores), c.Vocab.Len())
		}
		return n.byScore(c), nil
	}
	return n.listed(c)
}

// listed reads a list of merges. Those with an empty side match nothing.
func (n *names) listed(c *Config) (*mergeList, error) {
	l := &mergeList{pairs: make([]pair, 0, 2*c.Vocab.Len()), results: make([]symbol, 0, 2*c.Vocab.Len())}
	result := noSymbol
	var b batch
	flush := func() {
		b.fetch(n)
		for i := range b.n {
			line := &b.lines[i]
			both := b.text[line.start:line.end]
			result = n.near(both, result)
			l.pairs = append(l.pairs, pair{
				left:  n.ofHash(both[:line.mid-line.start], line.left),
				right: n.ofHash(both[line.mid-line.start:], line.right),
				order: uint32(len(l.pairs)),
			})
			l.results = append(l.results, result)
		}
		b.n, b.text = 0, b.text[:0]
	}
	for left, right := range c.Merges {
		if len(left) == 0 || len(right) == 0 {
			continue
		}
		if len(l.pairs)+b.n == int(noOrder) {
			return nil, fmt.Errorf("bpe: more than %d merges are not supported", noOrder)
		}
		if b.add(left, right) {
			flush()
		}
	}
	flush()
	return l, nil
}

// batch is some merges of a list. Their symbols are found together: the memory
// that each look-up waits for is asked for before the first of them.
type batch struct {
	n     int
	lines [64]struct {
		start, mid, end int // of the parts, in text
		left, right     uint64
	}
	text  []byte
	homes [2 * 64]uint64
	seen  byte
}

// add enters a merge and reports whether the batch is full.
func (b *batch) add(left, right []byte) bool {
	line := &b.lines[b.n]
	line.start = len(b.text)
	b.text = append(b.text, left...)
	line.mid = len(b.text)
	b.text = append(b.text, right...)
	line.end = len(b.text)
	line.left, line.right = hashOf(left), hashOf(right)
	b.n++
	return b.n == len(b.lines)
}

// fetch touches what the look-ups will read.
func (b *batch) fetch(n *names) {
	homes := b.homes[:2*b.n]
	for i := range b.n {
		homes[2*i] = n.slots[b.lines[i].left*hashMix>>n.shift()]
		homes[2*i+1] = n.slots[b.lines[i].right*hashMix>>n.shift()]
	}
	for _, slot := range homes {
		if slot != 0 {
			b.seen ^= n.bytes(uint32(slot) - 1)[0]
		}
	}
}

// near is of, which first tries the symbol found last and the one after it:
// lists of merges mostly go by the IDs of what they make.
func (n *names) near(b []byte, last symbol) symbol {
	for s := last; s <= last+1 && int(s) < n.vocab.Len() && !n.twins; s++ {
		if id := vocab.ID(s); n.vocab.Kind(id) == vocab.Normal && bytes.Equal(n.vocab.Bytes(id), b) {
			return s
		}
	}
	return n.of(b)
}

// byID makes a merge of each split of a Normal token into two of them (or
// single bytes).
func (n *names) byID() *mergeList {
	for b := range 256 {
		n.of([]byte{byte(b)})
	}
	l := &mergeList{pairs: make([]pair, 0, 2*n.vocab.Len())}
	for i := range n.vocab.Len() {
		id := vocab.ID(i)
		if n.vocab.Kind(id) == vocab.Normal {
			n.splits(l, n.vocab.Bytes(id), uint32(i))
		}
	}
	return l
}

// byScore makes a merge of each split of a token into two symbols: tokens or
// single characters, or with Unused pieces these.
func (n *names) byScore(c *Config) *mergeList {
	var made []symbol
	for i := range c.Vocab.Len() {
		id := vocab.ID(i)
		b := c.Vocab.Bytes(id)
		switch c.Vocab.Kind(id) {
		case vocab.Normal, vocab.UserDefined:
		case vocab.Unused:
			if !c.Unused {
				continue
			}
		default:
			continue
		}
		if s, ok := n.find(b); ok && s == symbol(i) {
			made = append(made, s)
			n.nameChars(b)
		}
	}
	slices.SortStableFunc(made, func(a, b symbol) int {
		return cmp.Compare(c.Scores[b], c.Scores[a])
	})
	l := &mergeList{pairs: make([]pair, 0, 2*len(made)), results: made}
	ranks := make([]uint32, len(made))
	tied := false
	for order, s := range made {
		if order > 0 && c.Scores[s] == c.Scores[made[order-1]] {
			ranks[order] = ranks[order-1]
			tied = true
		} else {
			ranks[order] = uint32(order)
		}
		n.splits(l, n.vocab.Bytes(vocab.ID(s)), uint32(order))
	}
	if tied {
		l.ties = ranks
	}
	return l
}

// nameChars makes symbols of the characters (bytes) of a piece.
func (n *names) nameChars(b []byte) {
	for len(b) > 0 {
		size, valid := 1, true
		if n.chars {
			size, valid = charSize(b)
		}
		if valid {
			n.of(b[:size])
		}
		b = b[size:]
	}
}

// splits adds all splits of b into two symbols.
func (n *names) splits(l *mergeList, b []byte, order uint32) {
	if len(n.powers) == 0 {
		n.powers = append(n.powers, 1)
	}
	for len(n.powers) <= len(b) {
		n.powers = append(n.powers, n.powers[len(n.powers)-1]*hashBase)
	}
	n.hashes = append(n.hashes[:0], 0)
	for _, c := range b {
		n.hashes = append(n.hashes, n.hashes[len(n.hashes)-1]*hashBase+uint64(c)+1)
	}
	// Most splits fail at the first look. As in a batch, all of these looks are
	// on their way together.
	n.homes = n.homes[:0]
	whole, shift := n.hashes[len(b)], n.shift()
	for i := 1; i < len(b); i++ {
		left := n.hashes[i]
		right := whole - left*n.powers[len(b)-i]
		n.homes = append(n.homes, min(n.slots[left*hashMix>>shift], n.slots[right*hashMix>>shift]))
	}
	for i := 1; i < len(b); i++ {
		if n.homes[i-1] == 0 {
			continue
		}
		left, ok := n.findHash(b[:i], n.hashes[i])
		if !ok {
			continue
		}
		right, ok := n.findHash(b[i:], whole-n.hashes[i]*n.powers[len(b)-i])
		if ok {
			l.pairs = append(l.pairs, pair{left, right, order})
		}
	}
}
