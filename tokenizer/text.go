package tokenizer

import (
	"slices"
	"sort"

	"github.com/unfray/unfray/vocab"
)

// Text is a text that grows or is edited, with its tokens. A change costs what
// it moves, not the length of the text: encoding goes on from the last place
// that the change cannot reach.
//
// A Text is not for concurrent use.
type Text struct {
	t   *Tokenizer
	set *addedTokens

	text  []byte
	ids   []vocab.ID // up to settled, then those of the rest
	marks []mark     // ascending in size and in at; the first is the start
	// recent is the mark that the last Tail found. Only one such is kept: a text
	// that grows by single bytes would have as many.
	recent mark
	dirty  bool // the tokens after the last mark are not in ids
}

// mark is a place that what follows cannot reach: given text[:size], the tokens
// of any text that begins with it are ids tokens for text[:at], and then those
// of text[at:] at pos.
type mark struct {
	size, at, ids int
	pos           position
}

// markEvery is the bytes of text between two marks, where they can be settled.
const markEvery = 1 << 10

// NewText makes an empty text. With special, control tokens spelled in it are
// those tokens, as in [Tokenizer.EncodeSpecial].
func (t *Tokenizer) NewText(special bool) *Text {
	x := &Text{t: t, set: &t.plain, marks: make([]mark, 1)}
	if special {
		x.set = &t.all
	}
	return x
}

// NewTextAfter makes an empty text that follows other tokens, as in
// [Tokenizer.EncodeAfter].
func (t *Tokenizer) NewTextAfter(before []vocab.ID) *Text {
	x := t.NewText(false)
	x.marks[0].pos = t.positionAfter(before)
	return x
}

// Tokenizer is what encodes the text.
func (x *Text) Tokenizer() *Tokenizer { return x.t }

// Special reports whether control tokens are recognized in the text.
func (x *Text) Special() bool { return x.set == &x.t.all }

// Reset empties the text.
func (x *Text) Reset() {
	x.text, x.ids, x.marks, x.recent, x.dirty = x.text[:0], x.ids[:0], x.marks[:1], mark{}, false
}

// Bytes is the text. It must not be modified, and is valid until the next
// change.
func (x *Text) Bytes() []byte { return x.text }

// Append adds bytes at the end, which may begin or end inside a character.
func (x *Text) Append(b []byte) {
	if len(b) == 0 {
		return
	}
	s := x.t.scratches.get()
	for len(b) > 0 {
		n := min(len(b), max(1, x.due()-len(x.text)))
		x.text = append(x.text, b[:n]...)
		b = b[n:]
		if len(x.text) >= x.due() {
			x.settle(s)
		}
	}
	x.t.scratches.put(s)
	x.dirty = true
}

// due is the length of text at which the next mark is looked for: one that grows
// with what is not settled, so that a long pretoken is not gone through again
// for every few bytes.
func (x *Text) due() int {
	last := x.marks[len(x.marks)-1]
	return last.size + max(markEvery, last.size-last.at)
}

// last is the last mark that is known, kept or not.
func (x *Text) last() mark {
	if m := x.marks[len(x.marks)-1]; x.recent.size <= m.size {
		return m
	}
	return x.recent
}

// settle adds the mark that the whole text allows.
func (x *Text) settle(s *scratch) {
	m := x.last()
	x.ids = x.ids[:m.ids]
	x.ids, m = x.t.settle(x.ids, x.text, m, x.set, s)
	m.size = len(x.text)
	x.marks = append(x.marks, m)
	x.dirty = true
}

// Truncate drops all but the first n bytes.
func (x *Text) Truncate(n int) {
	x.text = x.text[:n]
	k := sort.Search(len(x.marks), func(i int) bool { return x.marks[i].size > n })
	x.marks = x.marks[:k]
	if x.recent.size > n {
		x.recent = mark{}
	}
	x.ids = x.ids[:x.last().ids]
	x.dirty = true
}

// Replace puts b in the place of the bytes from lo to hi. After the edit it
// encodes anew only up to the first mark that comes out as before.
func (x *Text) Replace(lo, hi int, b []byte) {
	rest := slices.Clone(x.text[hi:])
	first := sort.Search(len(x.marks), func(i int) bool { return x.marks[i].at >= hi })
	old := slices.Clone(x.marks[first:])
	oldIDs := slices.Clone(x.ids)
	settled := x.marks[len(x.marks)-1].ids
	x.Truncate(lo)
	x.Append(b)
	delta := lo + len(b) - hi
	s := x.t.scratches.get()
	defer x.t.scratches.put(s)
	at := hi // rest[at-hi:] is still to come
	for i, m := range old {
		if last := x.marks[len(x.marks)-1]; m.size+delta < x.due() && last.size-last.at > markEvery {
			continue // in a long pretoken, which each trial would go through
		}
		x.text = append(x.text, rest[at-hi:m.size-hi]...)
		at = m.size
		x.settle(s)
		now := &x.marks[len(x.marks)-1]
		if now.at != m.at+delta || now.pos != m.pos {
			continue
		}
		// From here on nothing differs.
		x.ids = append(x.ids[:now.ids], oldIDs[m.ids:settled]...)
		moved := now.ids - m.ids
		for _, m := range old[i+1:] {
			x.marks = append(x.marks, mark{m.size + delta, m.at + delta, m.ids + moved, m.pos})
		}
		x.text = append(x.text, rest[at-hi:]...)
		return
	}
	x.dirty = true
	x.text = append(x.text, rest[at-hi:]...)
}

// IDs gives the tokens of the text. They must not be modified and are valid
// until the next change.
func (x *Text) IDs() []vocab.ID {
	if x.dirty {
		m := x.last()
		x.ids = x.t.encode(x.ids[:m.ids], x.text[m.at:], x.set, m.pos)
		x.dirty = false
	}
	return x.ids
}

// settle finds the last place of text, from m on, that no continuation reaches.
// It appends the tokens up to there to ids.
func (t *Tokenizer) settle(ids []vocab.ID, text []byte, m mark, set *addedTokens, s *scratch) ([]vocab.ID, mark) {
	rest := text[m.at:]
	limit := set.raw.settled(rest)
	s.matches = set.raw.appendMatches(s.matches[:0], rest)
	at := 0
	s.ids = idSink{t, s, ids}
	end := limit
	if len(s.matches) > 0 && s.matches[0].end <= limit && t.prefixAlone(s.matches[0].start, m.pos) {
		s.text = append(s.text[:0], dummyPrefix...)
		s.ids.ids = t.appendStretch(s.ids.ids, s.text, s)
	}
	fresh := m // the last place at which added tokens are found afresh
	for _, c := range s.matches {
		if c.end > limit {
			end = min(end, c.start)
			break
		}
		t.walkSegment(rest, at, c.start, set, m.pos, s, &s.ids)
		s.ids.token(c.id, c.start, c.end)
		at = c.end
		m.pos = afterToken
		if set.raw.startsAfresh(rest, at) {
			fresh = mark{at: m.at + at, ids: len(s.ids.ids), pos: afterToken}
		}
	}
	ids = s.ids.ids
	s.ids = idSink{}
	m.at += at
	m.ids = len(ids)
	ids, last := t.settleSegment(ids, rest[at:max(at, end)], m, set, s)
	if last.at == m.at {
		return ids[:fresh.ids], fresh
	}
	return ids, last
}

// fixedPart is a part of normalized text that no continuation changes: an added
// token, or pretokens that begin at from.
type fixedPart struct {
	from int
	last int      // number of ends in scratch.fixed up to the part's last
	id   vocab.ID // None for pretokens
}

// settleSegment is settle inside a segment that goes on after seg.
func (t *Tokenizer) settleSegment(ids []vocab.ID, seg []byte, m mark, set *addedTokens, s *scratch) ([]vocab.ID, mark) {
	if len(seg) == 0 {
		return ids, m
	}
	limit, norm := len(seg), seg
	if t.norm != nil {
		limit = t.norm.Settled(seg)
		norm = seg[:limit]
		if !t.norm.Same(norm) {
			s.norm = t.norm.Append(s.norm[:0], norm)
			norm = s.norm
		}
	}
	prefix := 0
	if t.prefix.applies(norm, m.pos) {
		if !set.normalized.empty() && !t.prefix.early {
			return ids, m // what stands between added tokens has a prefix of its own
		}
		s.text = append(append(s.text[:0], dummyPrefix...), norm...)
		norm, prefix = s.text, len(dummyPrefix)
	}
	t.fix(norm, set.normalized, s)
	if len(s.inner) > 0 && t.prefix.when == prefixSegments && !t.prefix.early {
		return ids, m // likewise
	}
	at, n := t.restart(seg, norm, limit, prefix, set, s)
	if n == 0 {
		return ids, m
	}
	first := 0
	for _, p := range s.parts {
		last := min(p.last, n)
		if p.id != vocab.None {
			ids = append(ids, p.id)
			m.pos = afterToken
		} else {
			ids = t.model.appendPieces(ids, norm, p.from, s.fixed[first:last], s)
			m.pos = inside
		}
		if first = p.last; first >= n {
			break
		}
	}
	if t.prefix.early {
		m.pos = inside
	}
	return ids, mark{at: m.at + at, ids: len(ids), pos: m.pos}
}

// fix finds the parts of normalized text that no continuation changes.
func (t *Tokenizer) fix(norm []byte, added *matcher, s *scratch) {
	s.fixed, s.parts, s.inner = s.fixed[:0], s.parts[:0], s.inner[:0]
	limit := len(norm)
	if !added.empty() {
		s.inner = added.appendMatches(s.inner, norm)
		limit = added.settled(norm)
	}
	at := 0
	for _, c := range s.inner {
		if c.end > limit {
			limit = min(limit, c.start)
			break
		}
		if c.start > at {
			s.fixed = t.appendPretokens(s.fixed, norm[at:c.start], at, s)
			s.parts = append(s.parts, fixedPart{at, len(s.fixed), vocab.None})
		}
		s.fixed = append(s.fixed, c.end)
		s.parts = append(s.parts, fixedPart{c.start, len(s.fixed), c.id})
		at = c.end
	}
	norm = norm[:max(at, limit)]
	for from, fixed := at, true; from < len(norm); {
		if from, fixed = t.split.Next(norm, from); !fixed {
			break
		}
		s.fixed = append(s.fixed, from)
	}
	s.parts = append(s.parts, fixedPart{at, len(s.fixed), vocab.None})
}

// maxRestarts is how many places restart tries.
const maxRestarts = 32

// restart finds the last place in a segment, up to limit, at which the
// normalizer may start afresh, added tokens are found afresh and a pretoken ends
// for good. norm is the segment's normal form up to limit, with the prefix. It
// gives the place's offset in the segment and how many of s.fixed end up to
// there.
func (t *Tokenizer) restart(seg, norm []byte, limit, prefix int, set *addedTokens, s *scratch) (at, n int) {
	if len(s.fixed) == 0 {
		return 0, 0
	}
	same := t.same(seg[:limit])
	at = limit
	if same {
		at = min(at, s.fixed[len(s.fixed)-1]-prefix)
	}
	for range maxRestarts {
		if t.norm != nil {
			at = t.norm.Restart(seg, at)
		}
		if at <= 0 {
			break
		}
		end := at
		if !same {
			end = len(t.norm.Append(nil, seg[:at]))
		}
		i, ok := slices.BinarySearch(s.fixed, end+prefix)
		if ok && set.raw.startsAfresh(seg, at) && set.normalized.startsAfresh(norm, end+prefix) {
			return at, i + 1
		}
		if at--; t.norm == nil && i > 0 {
			at = s.fixed[i-1] - prefix
		}
	}
	return 0, 0
}
