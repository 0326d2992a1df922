package tokenizer

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// matcher finds tokens that are recognized as they stand in the text, before
// anything else is done to it. As in llama.cpp the longest token goes first,
// wherever it stands: it takes all its places from left to right, then the
// next token those that are left. Of tokens of one length the lowest ID goes
// first.
type matcher struct {
	tokens []addedToken // in byte order
	starts [256]span    // of those that begin with a byte
	only   int          // the byte they all begin with, or -1
	maxLen int          // bytes of the longest
}

type addedToken struct {
	text []byte
	id   vocab.ID
}

// span is a run of matcher.tokens.
type span struct{ lo, hi int32 }

// match is an occurrence in a text.
type match struct {
	start, end int
	id         vocab.ID
}

func newMatcher(v *vocab.Vocab, ids []vocab.ID) *matcher {
	m := &matcher{only: -1}
	for _, id := range ids {
		if b := v.Bytes(id); len(b) > 0 {
			m.tokens = append(m.tokens, addedToken{b, id})
		}
	}
	slices.SortFunc(m.tokens, func(a, b addedToken) int {
		return cmp.Or(bytes.Compare(a.text, b.text), cmp.Compare(a.id, b.id))
	})
	m.tokens = slices.CompactFunc(m.tokens, func(a, b addedToken) bool { return bytes.Equal(a.text, b.text) })
	for i, t := range m.tokens {
		m.maxLen = max(m.maxLen, len(t.text))
		s := &m.starts[t.text[0]]
		if s.hi == 0 {
			s.lo = int32(i)
		}
		s.hi = int32(i) + 1
	}
	if n := len(m.tokens); n > 0 && m.tokens[0].text[0] == m.tokens[n-1].text[0] {
		m.only = int(m.tokens[0].text[0])
	}
	return m
}

// nextStart gives the first place at or after i where a token may begin, or
// len(text).
func (m *matcher) nextStart(text []byte, i int) int {
	if m.only >= 0 {
		if k := bytes.IndexByte(text[i:], byte(m.only)); k >= 0 {
			return i + k
		}
		return len(text)
	}
	for i < len(text) && m.starts[text[i]].hi == 0 {
		i++
	}
	return i
}

// walk follows the tokens along text, which must not be empty. It calls full
// for each token that text begins with, the shortest first, and gives the
// tokens that go on beyond the end of text.
func (m *matcher) walk(text []byte, full func(addedToken)) []addedToken {
	s := m.starts[text[0]]
	tokens := m.tokens[s.lo:s.hi]
	for n := 1; len(tokens) > 0; n++ {
		// All tokens here begin with text[:n].
		if len(tokens[0].text) == n {
			if full != nil {
				full(tokens[0])
			}
			tokens = tokens[1:]
		}
		if n == len(text) || len(tokens) == 0 {
			break
		}
		b := text[n]
		lo, _ := slices.BinarySearchFunc(tokens, b, func(t addedToken, b byte) int { return cmp.Compare(t.text[n], b) })
		tokens = tokens[lo:]
		hi, _ := slices.BinarySearchFunc(tokens, b, func(t addedToken, b byte) int {
			if t.text[n] <= b {
				return -1
			}
			return 1
		})
		tokens = tokens[:hi]
	}
	return tokens
}

// occurrences appends the longest token of each place where one begins. Those
// are enough for [matcher.choose], and all of them would be too many: where
// tokens are runs of one character, as in vocabularies for code, a text has
// many times more than it has bytes.
func (m *matcher) occurrences(dst []match, text []byte) []match {
	if len(m.tokens) == 0 {
		return dst
	}
	for i := m.nextStart(text, 0); i < len(text); i = m.nextStart(text, i+1) {
		if c, ok := m.longest(text, i, len(text)); ok {
			dst = append(dst, c)
		}
	}
	return dst
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

// longest gives the longest token that begins at i and ends at limit or before.
func (m *matcher) longest(text []byte, i, limit int) (c match, ok bool) {
	m.walk(text[i:limit], func(t addedToken) {
		c, ok = match{i, i + len(t.text), t.id}, true
	})
	return c, ok
}

// choose gives the occurrences that win, in the order of the text. It reuses
// all, which holds the longest token of each place. One that overlaps what is
// taken already gives way to the next shorter of its place.
func (m *matcher) choose(all []match, text []byte) []match {
	overlap := false
	for i := 1; i < len(all) && !overlap; i++ {
		overlap = all[i].start < all[i-1].end
	}
	if !overlap {
		return all
	}
	base, size := all[0].start, 0
	for _, c := range all {
		size = max(size, c.end-base)
	}
	taken := make([]bool, size)
	won := all[:0]
	open := slices.Clone(all)
	for len(open) > 0 {
		length := 0
		for _, c := range open {
			length = max(length, c.end-c.start)
		}
		var round []match
		rest := open[:0]
		for _, c := range open {
			if c.end-c.start == length {
				round = append(round, c)
			} else {
				rest = append(rest, c)
			}
		}
		slices.SortFunc(round, func(a, b match) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.start, b.start)) })
		for _, c := range round {
			free := slices.Index(taken[c.start-base:c.end-base], true)
			if free < 0 {
				won = append(won, c)
				for i := c.start; i < c.end; i++ {
					taken[i-base] = true
				}
			} else if free > 0 {
				if c, ok := m.longest(text, c.start, c.start+free); ok {
					rest = append(rest, c)
				}
			}
		}
		open = rest
	}
	slices.SortFunc(won, func(a, b match) int { return cmp.Compare(a.start, b.start) })
	return won
}

// lookup finds the token with exactly this text.
func (m *matcher) lookup(text []byte) (vocab.ID, bool) {
	if s := m.starts[text[0]]; s.hi == 0 {
		return vocab.None, false
	}
	i, ok := slices.BinarySearchFunc(m.tokens, text, func(t addedToken, b []byte) int { return bytes.Compare(t.text, b) })
	if !ok {
		return vocab.None, false
	}
	return m.tokens[i].id, true
}
