package tokenizer

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// matchOrder says which of the added tokens that overlap in a text win.
type matchOrder uint8

const (
	// longestFirst is llama.cpp's order: the longest token, wherever it stands,
	// takes all its places from left to right, then the next token those that
	// are left. Of tokens of one length the lowest ID goes first.
	longestFirst matchOrder = iota
	// leftmostLongest is the order of Hugging Face's tokenizers: the first
	// place where a token begins, the longest token there, and on from its end.
	// It is tiktoken's too, as far as that has one: where a token begins with
	// another, tiktoken takes any of them.
	leftmostLongest
)

// addedToken is a token that is recognized as it stands in the text, before
// anything else is done to it. The flags are Hugging Face's and of effect in
// order leftmostLongest only. The text of a token that has one is UTF-8, as all
// of a JSON file is: it begins and ends with a whole character.
type addedToken struct {
	text []byte
	id   vocab.ID
	// singleWord gives a match up where a word character (\w) adjoins it. The
	// text of such a match is not searched again.
	singleWord bool
	// lstrip and rstrip make the white space before and after part of a match.
	lstrip, rstrip bool
}

// match is an occurrence in a text, with the white space it takes in.
type match struct {
	start, end int
	id         vocab.ID
	token      int32 // its place in matcher.tokens
}

// matcher finds added tokens. Finding them takes time linear in the text, and
// for longestFirst n log n in the n bytes of a stretch of overlapping ones.
type matcher struct {
	order  matchOrder
	tokens []addedToken // in byte order, no two with the same text
	maxLen int          // bytes of the longest
	// flagged is whether any token has a flag that is of effect, stripping one
	// that has lstrip.
	flagged   bool
	stripping int
	// lonely has the bytes that tokens with singleWord begin with, if there are
	// any.
	lonely *[256]bool
	// marksSpace says that a space stands for U+2581, which is not white space.
	marksSpace bool

	first   [256]bool    // the bytes that tokens begin with
	pairs   [1024]uint64 // bit b<<8|c: tokens begin with b and c, or are b
	only    int          // the byte they all begin with, or -1
	trie    *trie        // of the tokens
	back    func() *trie
	choices sync.Pool // of *choice
}

// newAddedMatcher finds tokens in an order. Those without text are never
// found. Of tokens with the same text the first is, with longestFirst the one
// with the lowest ID.
func newAddedMatcher(tokens []addedToken, order matchOrder) *matcher {
	m := &matcher{order: order, only: -1, stripping: -1}
	for _, t := range tokens {
		if len(t.text) > 0 {
			m.tokens = append(m.tokens, t)
		}
	}
	slices.SortStableFunc(m.tokens, func(a, b addedToken) int {
		c := bytes.Compare(a.text, b.text)
		if c == 0 && order == longestFirst {
			return cmp.Compare(a.id, b.id)
		}
		return c
	})
	m.tokens = slices.CompactFunc(m.tokens, func(a, b addedToken) bool { return bytes.Equal(a.text, b.text) })
	words := make([][]byte, len(m.tokens))
	for i := range m.tokens {
		t := &m.tokens[i]
		words[i] = t.text
		m.maxLen = max(m.maxLen, len(t.text))
		m.mark(t.text)
		if order == longestFirst {
			t.singleWord, t.lstrip, t.rstrip = false, false, false
		}
		m.flagged = m.flagged || t.singleWord || t.lstrip || t.rstrip
		if t.lstrip && m.stripping < 0 {
			m.stripping = i
		}
		if t.singleWord {
			if m.lonely == nil {
				m.lonely = new([256]bool)
			}
			m.lonely[t.text[0]] = true
		}
	}
	if n := len(words); n > 0 && words[0][0] == words[n-1][0] {
		m.only = int(words[0][0])
	}
	m.trie = newTrie(words)
	m.back = sync.OnceValue(func() *trie { return newBackwardTrie(words) })
	return m
}

// mark notes how a token begins.
func (m *matcher) mark(text []byte) {
	m.first[text[0]] = true
	pair := int(text[0]) << 8
	if len(text) > 1 {
		pair |= int(text[1])
		m.pairs[pair>>6] |= 1 << (pair & 63)
		return
	}
	for i := range 4 {
		m.pairs[pair>>6+i] = ^uint64(0)
	}
}

// overlaps reports whether a token of m holds one of other, or ends with what
// one of other begins with.
func (m *matcher) overlaps(other *matcher) bool {
	for _, t := range m.tokens {
		for i := range t.text {
			if _, found := other.longest(t.text, i, len(t.text)); found {
				return true
			}
			k, _ := slices.BinarySearchFunc(other.tokens, t.text[i:], func(a addedToken, b []byte) int { return bytes.Compare(a.text, b) })
			if k < len(other.tokens) && bytes.HasPrefix(other.tokens[k].text, t.text[i:]) {
				return true
			}
		}
	}
	return false
}

// empty reports whether there is nothing to find.
func (m *matcher) empty() bool { return len(m.tokens) == 0 }

// matches reports whether any token is found in text.
func (m *matcher) matches(text []byte) bool {
	if m.flagged {
		return len(m.appendMatches(nil, text)) > 0
	}
	return m.leftmost(text, 0) < len(text)
}

// appendMatches appends the matches that win, in the order of the text. They do
// not overlap.
func (m *matcher) appendMatches(dst []match, text []byte) []match {
	first := len(dst)
	if m.order == longestFirst {
		dst = m.occurrences(dst, text)
		return append(dst[:first], m.choose(dst[first:], text)...)
	}
	dst = m.appendLeftmost(dst, text)
	if !m.flagged {
		return dst
	}
	return m.strip(dst[:first], dst[first:], text)
}

// nextStart gives the first place at or after i where a token may begin, or
// len(text).
func (m *matcher) nextStart(text []byte, i int) int {
	for ; i < len(text); i++ {
		if m.only >= 0 {
			k := bytes.IndexByte(text[i:], byte(m.only))
			if k < 0 {
				return len(text)
			}
			i += k
		} else if !m.first[text[i]] {
			continue
		}
		if i+1 == len(text) {
			break
		}
		if pair := int(text[i])<<8 | int(text[i+1]); m.pairs[pair>>6]>>(pair&63)&1 != 0 {
			break
		}
	}
	return i
}

// leftmost gives the first place at or after i where a token stands, or
// len(text).
func (m *matcher) leftmost(text []byte, i int) int {
	for spent := 0; i < len(text); i++ {
		i = m.nextStart(text, i)
		if i == len(text) {
			break
		}
		word, _, steps := m.trie.longest(text[i:])
		if word >= 0 {
			break
		}
		if spent += steps; spent > patience(i) {
			all := m.appendBack(nil, text, i+1, len(text))
			if len(all) == 0 {
				return len(text)
			}
			return all[0].start
		}
	}
	return i
}

// patience is how many steps may be spent on looking from each place of text[:i]
// on by itself. A text that takes more is read backward, which takes one step a
// byte whatever it holds but cannot skip from one possible start to the next.
func patience(i int) int { return 8*i + 1<<12 }

// longest gives the longest token that begins at i and ends at limit or before.
func (m *matcher) longest(text []byte, i, limit int) (c match, ok bool) {
	word, _, _ := m.trie.longest(text[i:limit])
	if word < 0 {
		return match{}, false
	}
	return m.at(i, word), true
}

// at is a token that stands at i.
func (m *matcher) at(i int, word int32) match {
	t := &m.tokens[word]
	return match{i, i + len(t.text), t.id, word}
}

// occurrences appends the longest token of each place where one begins. Those
// are enough for [matcher.choose], and all of them would be too many: where
// tokens are runs of one character, as in vocabularies for code, a text has
// many times more than it has bytes.
func (m *matcher) occurrences(dst []match, text []byte) []match {
	if m.empty() {
		return dst
	}
	spent := 0
	for i := m.nextStart(text, 0); i < len(text); i = m.nextStart(text, i+1) {
		word, _, steps := m.trie.longest(text[i:])
		if word >= 0 {
			dst = append(dst, m.at(i, word))
		}
		if spent += steps; spent > patience(i) {
			return m.appendBack(dst, text, i+1, len(text))
		}
	}
	return dst
}

// appendBack appends what occurrences does for places from lo to hi, which it
// finds by reading backward.
func (m *matcher) appendBack(dst []match, text []byte, lo, hi int) []match {
	back, first := m.back(), len(dst)
	n := int32(0)
	for i := min(len(text), hi+m.maxLen-1) - 1; i >= lo; i-- {
		n = back.next(n, text[i])
		if word := back.nodes[n].longest; word >= 0 && i < hi {
			dst = append(dst, m.at(i, word))
		}
	}
	slices.Reverse(dst[first:])
	return dst
}

// appendLeftmost appends the leftmost-longest tokens, before flags.
func (m *matcher) appendLeftmost(dst []match, text []byte) []match {
	if m.empty() {
		return dst
	}
	spent := 0
	for i := m.nextStart(text, 0); i < len(text); i = m.nextStart(text, i) {
		word, _, steps := m.trie.longest(text[i:])
		if word >= 0 {
			dst = append(dst, m.at(i, word))
			i = dst[len(dst)-1].end
		} else {
			i++
		}
		if spent += steps; spent > patience(i) {
			return m.appendLeftmostBack(dst, text, i)
		}
	}
	return dst
}

// appendLeftmostBack is appendLeftmost from i on by reading windows backward.
func (m *matcher) appendLeftmostBack(dst []match, text []byte, i int) []match {
	window := max(1<<14, m.maxLen)
	for lo := i; lo < len(text); lo = max(lo+window, i) {
		n := len(dst)
		dst = m.appendBack(dst, text, lo, min(lo+window, len(text)))
		all := dst[n:]
		dst = dst[:n]
		for _, c := range all {
			if c.start >= i {
				dst = append(dst, c)
				i = c.end
			}
		}
	}
	return dst
}

// choose gives the occurrences that win by longestFirst, in the order of the
// text. It reuses all, which holds the longest token of each place. One that
// overlaps what is taken already gives way to the next shorter of its place.
func (m *matcher) choose(all []match, text []byte) []match {
	won := all[:0]
	for lo := 0; lo < len(all); {
		hi, end := lo+1, all[lo].end
		for hi < len(all) && all[hi].start < end {
			end = max(end, all[hi].end)
			hi++
		}
		if hi-lo == 1 {
			won = append(won, all[lo])
		} else {
			won = m.chooseOverlapping(won, all[lo:hi], text, end)
		}
		lo = hi
	}
	return won
}

// choice is the working memory of chooseOverlapping.
type choice struct {
	open  []match
	next  []int32 // links the places of open with matches of one length
	heads []int32 // the first of each length plus one, or 0
	round []match
	taken []byte // 1 for each byte that is
}

// chooseOverlapping is choose for matches, in a stretch that goes on to end, of
// which each overlaps another. It appends to won, which may share memory with
// all, up to where all begins.
func (m *matcher) chooseOverlapping(won, all []match, text []byte, end int) []match {
	s, ok := m.choices.Get().(*choice)
	if !ok {
		s = new(choice)
	}
	base, first, longest := all[0].start, len(won), 0
	s.open = append(s.open[:0], all...)
	for _, c := range all {
		longest = max(longest, c.end-c.start)
	}
	s.next = append(s.next[:0], make([]int32, len(all))...)
	s.heads = append(s.heads[:0], make([]int32, longest+1)...)
	s.taken = append(s.taken[:0], make([]byte, end-base)...)
	for i, c := range slices.Backward(s.open) {
		s.link(i, c.end-c.start)
	}
	for length := longest; length > 0; length-- {
		s.round = s.round[:0]
		for i := s.heads[length]; i > 0; i = s.next[i-1] {
			s.round = append(s.round, s.open[i-1])
		}
		slices.SortFunc(s.round, func(a, b match) int {
			return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.start, b.start))
		})
		for _, c := range s.round {
			place := s.taken[c.start-base : c.end-base]
			free := bytes.IndexByte(place, 1)
			if free < 0 {
				won = append(won, c)
				for i := range place {
					place[i] = 1
				}
			} else if free > 0 {
				// The next shorter one is half as long at most when that
				// happens to it again.
				if c, ok := m.longest(text, c.start, c.start+free); ok {
					s.open = append(s.open, c)
					s.next = append(s.next, 0)
					s.link(len(s.open)-1, c.end-c.start)
				}
			}
		}
	}
	if cap(s.open) < 1<<16 {
		m.choices.Put(s)
	}
	slices.SortFunc(won[first:], func(a, b match) int { return cmp.Compare(a.start, b.start) })
	return won
}

// link adds open[i] to those of a length.
func (s *choice) link(i, length int) {
	s.next[i] = s.heads[length]
	s.heads[length] = int32(i) + 1
}

// lookup finds the token with exactly this text. It does not find one that its
// neighbours may make text.
func (m *matcher) lookup(text []byte) (vocab.ID, bool) {
	if word, n, _ := m.trie.longest(text); word >= 0 && n == len(text) && !m.tokens[word].singleWord {
		return m.tokens[word].id, true
	}
	return vocab.None, false
}

// longer gives the tokens that go on after a node of the trie.
func (m *matcher) longer(n int32) []addedToken {
	node := &m.trie.nodes[n]
	lo := node.lo
	if node.word >= 0 {
		lo++
	}
	return m.tokens[lo:node.hi]
}

// occurrencesBefore gives what occurrences would in text[:end], where all are
// those of text.
func (m *matcher) occurrencesBefore(all []match, text []byte, end int) []match {
	var out []match
	for _, c := range all {
		if c.start >= end {
			break
		}
		ok := c.end <= end
		if !ok {
			c, ok = m.longest(text, c.start, end)
		}
		if ok {
			out = append(out, c)
		}
	}
	return out
}

// stripper applies the flags of tokens, as find_matches in Hugging Face's
// added_vocabulary.rs does, to matches in the order of the text. There a token
// found in white space that the one before has taken in is one nevertheless,
// and the text goes on after it: here the one before then ends where it begins.
type stripper struct {
	m    *matcher
	text []byte
	won  []match
	from int // end of the last of won, before it lost anything to the next

	blankStart, blankEnd int // white space found last after a match
}

// strip appends to won what is left of all by the flags. They may share memory.
func (m *matcher) strip(won, all []match, text []byte) []match {
	s := stripper{m: m, text: text, won: won}
	for _, c := range all {
		if s.alone(c.token, c.start) && s.aloneAfter(c) {
			s.add(c)
		}
	}
	return s.won
}

// alone reports whether a token may stand at start by what precedes it.
func (s *stripper) alone(token int32, start int) bool {
	if !s.m.tokens[token].singleWord {
		return true
	}
	r, n := utf8.DecodeLastRune(s.text[:start])
	return n == 0 || !isWord(r, n)
}

// startsAfresh reports whether tokens are found from byte at of text on as if
// nothing stood before it. No match reaches across that place.
func (m *matcher) startsAfresh(text []byte, at int) bool {
	if !m.flagged {
		return true
	}
	if m.lonely != nil && (at == len(text) || m.lonely[text[at]]) {
		if r, n := utf8.DecodeLastRune(text[:at]); n > 0 && isWord(r, n) {
			return false
		}
	}
	// The text of a match that is given up is not searched again, and one with
	// lstrip may begin in white space that the match before takes in.
	for i := max(0, at-m.maxLen+1); i < at; i++ {
		if c, ok := m.longest(text, i, len(text)); ok && c.end > at {
			return false
		}
	}
	return true
}

// aloneAfter reports whether a match may stand by what follows it.
func (s *stripper) aloneAfter(c match) bool {
	if !s.m.tokens[c.token].singleWord {
		return true
	}
	r, n := utf8.DecodeRune(s.text[c.end:])
	return n == 0 || !isWord(r, n)
}

// add adds a match that stands, and the white space that it takes in. One that
// would take white space in but is itself white space taken in already is none.
func (s *stripper) add(c match) {
	if s.m.tokens[c.token].lstrip && c.end <= s.from {
		return
	}
	c.start = s.begin(c.token, c.start)
	c.end = max(c.end, s.stripRight(c))
	if c.start < s.from {
		s.won[len(s.won)-1].end = c.start
	}
	s.won = append(s.won, c)
	s.from = c.end
}

// begin gives the place from which a token that stands at start takes the text.
func (s *stripper) begin(token int32, start int) int {
	switch {
	case !s.m.tokens[token].lstrip:
		return start
	case start < s.from:
		return s.from // it begins with white space that is taken in already
	}
	return s.m.blankBefore(s.text, s.from, start)
}

// stripRight gives the end of a match that has rstrip, c.end for others.
func (s *stripper) stripRight(c match) int {
	if !s.m.tokens[c.token].rstrip {
		return c.end
	}
	if c.end < s.blankStart || c.end >= s.blankEnd {
		s.blankStart, s.blankEnd = c.end, s.m.blankAfter(s.text, c.end)
	}
	return s.blankEnd
}

// blankBefore gives where the white space that ends at i begins, from at least.
func (m *matcher) blankBefore(text []byte, from, i int) int {
	for i > from {
		r, n := utf8.DecodeLastRune(text[from:i])
		if !m.isBlank(r) {
			break
		}
		i -= n
	}
	return i
}

// blankAfter gives where the white space that begins at i ends.
func (m *matcher) blankAfter(text []byte, i int) int {
	for i < len(text) {
		r, n := utf8.DecodeRune(text[i:])
		if !m.isBlank(r) {
			break
		}
		i += n
	}
	return i
}

// isBlank is \s of the Rust crate regex: White_Space, the same in all versions
// of Unicode since 6.3.
func (m *matcher) isBlank(r rune) bool {
	switch {
	case r == ' ':
		return !m.marksSpace
	case r < utf8.RuneSelf:
		return '\t' <= r && r <= '\r'
	}
	return r == 0x85 || r == 0xa0 || r == 0x1680 || 0x2000 <= r && r <= 0x200a ||
		r == 0x2028 || r == 0x2029 || r == 0x202f || r == 0x205f || r == 0x3000
}

// blanks has every way in which the UTF-8 of white space of several bytes begins.
var blanks = []string{"\u0085", "\u00a0", "\u1680", "\u2003", "\u205f", "\u3000"}

// maybeBlank reports whether part, an incomplete character, may become white
// space.
func maybeBlank(part []byte) bool {
	return slices.ContainsFunc(blanks, func(s string) bool { return strings.HasPrefix(s, string(part)) })
}

// isWord is \w of the Rust crate regex, which is at Unicode 16, for a character
// of n bytes: not for a byte that is no UTF-8.
func isWord(r rune, n int) bool {
	if r < utf8.RuneSelf {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return !(r == utf8.RuneError && n == 1) && unicode.In(r, unicode.L, unicode.M, unicode.Nl, unicode.Nd, unicode.Pc,
		unicode.Other_Alphabetic, unicode.Join_Control, wordsSince15)
}

// wordsSince15 has the word characters of Unicode 16 that 15.0, the version of
// package unicode, has not.
var wordsSince15 = &unicode.RangeTable{
	R16: []unicode.Range16{{0x897, 0x897, 1}, {0x1c89, 0x1c8a, 1}, {0xa7cb, 0xa7cd, 1}, {0xa7da, 0xa7dc, 1}},
	R32: []unicode.Range32{
		{0x105c0, 0x105f3, 1}, {0x10d40, 0x10d65, 1}, {0x10d69, 0x10d6d, 1}, {0x10d6f, 0x10d85, 1},
		{0x10ec2, 0x10ec4, 1}, {0x10efc, 0x10efc, 1}, {0x11380, 0x11389, 1}, {0x1138b, 0x1138b, 1},
		{0x1138e, 0x1138e, 1}, {0x11390, 0x113b5, 1}, {0x113b7, 0x113c0, 1}, {0x113c2, 0x113c2, 1},
		{0x113c5, 0x113c5, 1}, {0x113c7, 0x113ca, 1}, {0x113cc, 0x113d3, 1}, {0x113e1, 0x113e2, 1},
		{0x116d0, 0x116e3, 1}, {0x11bc0, 0x11be0, 1}, {0x11bf0, 0x11bf9, 1}, {0x11f5a, 0x11f5a, 1},
		{0x13460, 0x143fa, 1}, {0x16100, 0x16139, 1}, {0x16d40, 0x16d6c, 1}, {0x16d70, 0x16d79, 1},
		{0x18cff, 0x18cff, 1}, {0x1ccf0, 0x1ccf9, 1}, {0x1e5d0, 0x1e5fa, 1}, {0x2ebf0, 0x2ee5d, 1},
	},
}
