package tokenizer

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// openStart is a way in which added tokens may divide a text once more text
// follows it, other than if nothing does.
type openStart struct {
	// The first same of the text's own matches and then those of more win.
	same int
	more []match
	// The bytes from start on belong to one more match, of a token that what
	// follows completes, or of which it ends the white space. If there are none,
	// start is the end of the text: what is left after the matches is no match.
	start int
	// id is that of the token, of several the first in byte order; None if
	// start is the end of the text.
	id vocab.ID
	// whole says that all the token's own bytes are in the text.
	whole bool
}

// openStarts gives the matches that win in text, as appendMatches does, and
// how others may win once more text follows. For every continuation, which may
// begin inside a character, the matches of the whole that end in text, and the
// start of the one that goes on beyond its end, if any, are those of text alone
// or of one of the open starts. There may be open starts that no continuation
// leads to. Without flags, the matches before a start are those of text[:start].
func (m *matcher) openStarts(text []byte) (own []match, open []openStart) {
	if m.order == longestFirst {
		return m.openLongest(text)
	}
	raw := m.appendLeftmost(nil, text)
	if !m.flagged {
		m.pending(text, func(p int, n int32) {
			if k := before(raw, p); k == 0 || raw[k-1].end <= p {
				open = append(open, openStart{same: k, start: p, id: m.longer(n)[0].id})
			}
		})
		return raw, open
	}
	o := opener{m: m, text: text, settled: len(text) - len(incomplete(text))}
	o.own = m.strip(nil, raw, text)
	o.divide(raw, len(text), nil)
	m.pending(text, func(p int, n int32) {
		if k := before(raw, p); k == 0 || raw[k-1].end <= p {
			o.divide(raw[:k], p, m.longer(n))
		}
	})
	return o.own, o.open
}

// settled gives how much of text is divided by added tokens in the same way
// whatever follows: a match that begins before that place ends before or there.
func (m *matcher) settled(text []byte) int {
	own, open := m.openStarts(text)
	end := len(text)
	for _, o := range open {
		end = min(end, o.start)
		if o.same < len(own) {
			end = min(end, own[o.same].start)
		}
		if len(o.more) > 0 {
			end = min(end, o.more[0].start)
		}
	}
	if m.flagged {
		// See startsAfresh.
		m.pending(text, func(p int, _ int32) { end = min(end, p) })
	}
	return end
}

// before gives how many of all, in the order of the text, begin before p.
func before(all []match, p int) int {
	k, _ := slices.BinarySearchFunc(all, p, func(c match, p int) int { return cmp.Compare(c.start, p) })
	return k
}

// pending calls f for each place p, the last first, from which text is a proper
// prefix of a token, with the node of the trie for text[p:].
func (m *matcher) pending(text []byte, f func(p int, n int32)) {
	if m.empty() {
		return
	}
	n := int32(0)
	for _, b := range text[max(0, len(text)-m.maxLen+1):] {
		n = m.trie.next(n, b)
	}
	var chain []int32
	for ; n > 0; n = m.trie.nodes[n].fail {
		chain = append(chain, n)
	}
	for _, n := range slices.Backward(chain) {
		if len(m.longer(n)) > 0 {
			f(len(text)-int(m.trie.nodes[n].depth), n)
		}
	}
}

// openLongest is openStarts for longestFirst. If a token that is pending at p
// is completed and wins, no other that wins reaches across p, so that those
// before it are what they would be if the text ended there. If none wins, those
// in text are what they are without continuation.
func (m *matcher) openLongest(text []byte) (own []match, open []openStart) {
	all := m.occurrences(nil, text)
	own = m.choose(slices.Clone(all), text)
	m.pending(text, func(p int, n int32) {
		// Only matches that p's stretch of overlapping ones holds change.
		lo := 0
		for i, end := 0, 0; i < len(all) && all[i].start < p; i++ {
			if all[i].start >= end {
				lo = i
			}
			end = max(end, all[i].end)
		}
		o := openStart{start: p, id: m.longer(n)[0].id}
		if len(all) > 0 {
			o.same = before(own, all[lo].start)
			o.more = m.choose(m.occurrencesBefore(all[lo:], text, p), text)
		}
		o.trim(own)
		open = append(open, o)
	})
	return own, open
}

// trim counts with same what more repeats of own.
func (o *openStart) trim(own []match) {
	for len(o.more) > 0 && o.same < len(own) && o.more[0] == own[o.same] {
		o.same++
		o.more = o.more[1:]
	}
}

// opener finds the open starts of a text by leftmostLongest with flags.
type opener struct {
	m       *matcher
	text    []byte
	settled int // len(text) less an incomplete character
	own     []match
	open    []openStart
}

// divide adds the ways to divide the text where raw are its matches before
// flags and one of longer may be pending at p; none is if p is its end.
func (o *opener) divide(raw []match, p int, longer []addedToken) {
	s := stripper{m: o.m, text: o.text}
	for i, c := range raw {
		if !s.alone(c.token, c.start) {
			continue
		}
		// What follows the last match decides whether it stands, unless that
		// is in the text.
		if i == len(raw)-1 && c.end >= o.settled && o.m.tokens[c.token].singleWord {
			without := s
			without.won = slices.Clone(s.won)
			o.finish(&without, p, longer)
		} else if !s.aloneAfter(c) {
			continue
		}
		s.add(c)
	}
	o.finish(&s, p, longer)
}

// finish is divide once it is known which matches stand: those of s.
func (o *opener) finish(s *stripper, p int, longer []addedToken) {
	if len(longer) == 0 {
		o.finishWithout(s)
		return
	}
	var seen [4]bool // by lstrip and whether the token stands
	given := false   // up
	lo := int32(o.m.index(longer[0]))
	for i := range longer {
		t := &longer[i]
		kind := 0
		if t.lstrip {
			kind = 1
		}
		if !s.alone(lo+int32(i), p) {
			given = true
			continue
		}
		// One in white space that is taken in may yet turn out to be none.
		given = given || t.singleWord || t.lstrip && p < s.from
		if seen[kind] {
			continue
		}
		seen[kind] = true
		start := s.begin(lo+int32(i), p)
		won := slices.Clone(s.won)
		if start < s.from {
			won[len(won)-1].end = start
		}
		id := t.id
		if start >= len(o.text) {
			start, id = len(o.text), vocab.None
		}
		o.add(openStart{more: won, start: start, id: id})
	}
	if given {
		o.finishWithout(s)
	}
}

// index gives the place in tokens of a token with text.
func (m *matcher) index(t addedToken) int {
	i, _ := slices.BinarySearchFunc(m.tokens, t.text, func(a addedToken, b []byte) int { return bytes.Compare(a.text, b) })
	return i
}

// finishWithout is finish where no token is pending.
func (o *opener) finishWithout(s *stripper) {
	end := len(o.text)
	o.add(openStart{more: slices.Clone(s.won), start: end, id: vocab.None})
	blankEnd := o.m.blankAfter(o.text, s.from)
	if blankEnd < o.settled || blankEnd < end && !maybeBlank(o.text[o.settled:]) {
		blankEnd = -1
	}
	// The last match may take in white space that follows.
	if k := len(s.won); k > 0 && blankEnd >= 0 && o.m.tokens[s.won[k-1].token].rstrip {
		last := s.won[k-1]
		o.add(openStart{more: slices.Clone(s.won[:k-1]), start: last.start, id: last.id, whole: true})
	}
	// A token that follows may take in the white space before it.
	if o.m.stripping < 0 {
		return
	}
	start := o.m.blankBefore(o.text, s.from, o.settled)
	if o.settled < end && !maybeBlank(o.text[o.settled:]) {
		return
	}
	if start < end {
		o.add(openStart{more: slices.Clone(s.won), start: start, id: o.m.tokens[o.m.stripping].id})
	}
}

// add adds a way to divide the text, unless it is that of the text alone or
// there already.
func (o *opener) add(a openStart) {
	a.trim(o.own)
	if a.start == len(o.text) && a.same == len(o.own) && len(a.more) == 0 {
		return
	}
	if !slices.ContainsFunc(o.open, func(b openStart) bool {
		return a.same == b.same && a.start == b.start && a.id == b.id && a.whole == b.whole && slices.Equal(a.more, b.more)
	}) {
		o.open = append(o.open, a)
	}
}
