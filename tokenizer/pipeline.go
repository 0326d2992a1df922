package tokenizer

import (
	"bytes"

	"github.com/unfray/unfray/vocab"
)

// prefixRule says where a space that is not in the text is put before it.
type prefixRule struct {
	when prefixWhen
	// unlessSpace leaves text alone that begins with a space.
	unlessSpace bool
	// early puts the space in before added tokens of the normalized text are
	// looked for: once a segment, even before such a token.
	early bool
	// bare puts it there too if the normalizer leaves nothing of a text.
	bare bool
}

type prefixWhen uint8

const (
	prefixNever    prefixWhen = iota
	prefixSegments            // before each stretch of text between added tokens
	prefixFirst               // before the first, if no added token precedes it
	prefixText                // before the text, even if an added token begins it
)

// dummyPrefix is what a prefixRule puts before text.
const dummyPrefix = " "

// position is what stands before a text.
type position uint8

const (
	atStart    position = iota // nothing, or what the template puts there
	afterToken                 // an added token
	inside                     // text of the same segment
)

// applies reports whether the dummy prefix goes before normalized text.
func (p *prefixRule) applies(text []byte, pos position) bool {
	switch {
	case p.when == prefixNever || pos == inside || len(text) == 0:
		return false
	case p.when != prefixSegments && pos != atStart:
		return false
	}
	return !(p.unlessSpace && text[0] == ' ')
}

// addedTokens are the tokens recognized as they stand: first those looked for
// in the raw text, then, in what lies between them, those in the normalized.
type addedTokens struct{ raw, normalized *matcher }

// segment is the raw text between two added tokens.
type segment struct {
	raw  []byte
	at   int  // offset of raw in the whole text
	same bool // it normalizes to itself
	// offsets has where the bytes of the normal form stem from, once an endSink
	// has asked.
	offsets []int
}

// sink takes what a text is made of, in order.
type sink interface {
	// stretch takes normalized text that no added token is in. Its first prefix
	// bytes do not stem from the segment, the others begin at offset from of
	// the segment's normal form.
	stretch(norm []byte, prefix, from int, seg *segment)
	// token takes an added token and the raw bytes that it takes up. Where it is
	// in the normal form of a segment that the normalizer rewrites, only an
	// endSink is told: for others start and end are both the segment's end.
	token(id vocab.ID, start, end int)
}

// walk hands the parts of a text at pos to out.
func (t *Tokenizer) walk(text []byte, set *addedTokens, pos position, s *scratch, out sink) {
	s.matches = set.raw.appendMatches(s.matches[:0], text)
	if len(s.matches) > 0 && t.prefixAlone(s.matches[0].start, pos) {
		s.segment = segment{same: true}
		out.stretch([]byte(dummyPrefix), len(dummyPrefix), 0, &s.segment)
	}
	at := 0
	for _, m := range s.matches {
		t.walkSegment(text, at, m.start, set, pos, s, out)
		out.token(m.id, m.start, m.end)
		at, pos = m.end, afterToken
	}
	t.walkSegment(text, at, len(text), set, pos, s, out)
}

// prefixAlone reports whether the dummy prefix stands by itself before an added
// token that begins at start.
func (t *Tokenizer) prefixAlone(start int, pos position) bool {
	return start == 0 && pos == atStart && t.prefix.when == prefixText
}

func (t *Tokenizer) walkSegment(text []byte, at, end int, set *addedTokens, pos position, s *scratch, out sink) {
	raw := text[at:end]
	if len(raw) == 0 {
		return
	}
	s.segment = segment{raw: raw, at: at, same: t.same(raw)}
	norm := raw
	if !s.segment.same {
		s.norm = t.norm.Append(s.norm[:0], raw)
		norm = s.norm
	}
	if len(norm) == 0 && t.prefix.bare && pos == atStart {
		out.stretch([]byte(dummyPrefix), len(dummyPrefix), 0, &s.segment)
		return
	}
	if set.normalized.empty() {
		t.walkStretch(norm, 0, pos, s, out)
		return
	}
	early := 0
	if t.prefix.early && t.prefix.applies(norm, pos) {
		s.early = append(append(s.early[:0], dummyPrefix...), norm...)
		norm = s.early
		early = len(dummyPrefix)
		pos = inside
	}
	s.inner = set.normalized.appendMatches(s.inner[:0], norm)
	from := 0
	for _, m := range s.inner {
		t.walkInner(norm, from, m.start, early, pos, s, out)
		if o, ok := out.(*endSink); ok || s.segment.same { // others do not ask
			out.token(m.id, o.origin(&s.segment, m.start-early), o.origin(&s.segment, m.end-early))
		} else {
			out.token(m.id, end, end)
		}
		from = m.end
		if !t.prefix.early {
			pos = afterToken
		}
	}
	t.walkInner(norm, from, len(norm), early, pos, s, out)
}

// walkInner hands on norm[from:to], of which the first early bytes are the
// prefix.
func (t *Tokenizer) walkInner(norm []byte, from, to, early int, pos position, s *scratch, out sink) {
	switch {
	case from == to:
	case from < early:
		out.stretch(norm[:to], early, 0, &s.segment)
	default:
		t.walkStretch(norm[from:to], from-early, pos, s, out)
	}
}

// walkStretch hands on a stretch that begins at offset from of the segment's
// normal form.
func (t *Tokenizer) walkStretch(norm []byte, from int, pos position, s *scratch, out sink) {
	if t.prefix.applies(norm, pos) {
		s.text = append(append(s.text[:0], dummyPrefix...), norm...)
		out.stretch(s.text, len(dummyPrefix), from, &s.segment)
	} else if len(norm) > 0 {
		out.stretch(norm, 0, from, &s.segment)
	}
}

// same reports whether text normalizes to itself.
func (t *Tokenizer) same(text []byte) bool { return t.norm == nil || t.norm.Same(text) }

// idSink collects token IDs.
type idSink struct {
	t   *Tokenizer
	s   *scratch
	ids []vocab.ID
}

func (o *idSink) token(id vocab.ID, _, _ int) { o.ids = append(o.ids, id) }

func (o *idSink) stretch(norm []byte, _, _ int, _ *segment) {
	o.ids = o.t.appendStretch(o.ids, norm, o.s)
}

// appendStretch appends the tokens of normalized text that no added token is in.
func (t *Tokenizer) appendStretch(dst []vocab.ID, norm []byte, s *scratch) []vocab.ID {
	for from := 0; from < len(norm); {
		n := t.split.Scan(s.ends[:], norm, from)
		dst = t.model.appendPieces(dst, norm, from, s.ends[:n], s)
		from = s.ends[n-1]
	}
	return dst
}

func (t *Tokenizer) encode(dst []vocab.ID, text []byte, set *addedTokens, pos position) []vocab.ID {
	s := t.scratches.get()
	s.ids = idSink{t, s, dst}
	t.walk(text, set, pos, s, &s.ids)
	dst = s.ids.ids
	s.ids = idSink{}
	t.scratches.put(s)
	return dst
}

// endSink collects token IDs and where each ends in the raw text.
type endSink struct {
	idSink
	ends []int
}

func (o *endSink) token(id vocab.ID, start, end int) {
	o.idSink.token(id, start, end)
	o.ends = append(o.ends, end)
}

func (o *endSink) stretch(norm []byte, prefix, from int, seg *segment) {
	n := len(o.ids)
	o.idSink.stretch(norm, prefix, from, seg)
	o.ends = o.t.appendEnds(o.ends, o.ids[n:], norm, func(pos int) int {
		return o.origin(seg, max(0, pos-prefix)+from)
	})
}

// origin gives the offset in the text of what a place in the normal form of a
// segment stems from.
func (o *endSink) origin(seg *segment, pos int) int {
	pos = max(0, pos) // the prefix is of the start
	if !seg.same {
		if seg.offsets == nil {
			seg.offsets = o.t.offsets(seg.raw)
		}
		pos = seg.offsets[pos]
	}
	return seg.at + pos
}

// appendEnds appends, for each of ids, which are the tokens of norm, the place
// in the text that original gives for its end in norm.
func (t *Tokenizer) appendEnds(dst []int, ids []vocab.ID, norm []byte, original func(int) int) []int {
	pos := 0
	unknown := 0 // tokens just before that stand for what lies before the next
	for _, id := range ids {
		if !t.vocab.IsText(id) {
			dst = append(dst, original(pos))
			unknown++
			continue
		}
		b := t.spelt(id)
		window := norm[pos:min(len(norm), pos+len(b)+maxSkipped)]
		if k := bytes.Index(window, b); k >= 0 {
			for i := len(dst) - unknown; i < len(dst); i++ {
				dst[i] = original(pos + k)
			}
			pos += k + len(b)
		}
		unknown = 0
		dst = append(dst, original(pos))
	}
	for i := len(dst) - unknown; i < len(dst); i++ {
		dst[i] = original(len(norm))
	}
	return dst
}

// maxSkipped bounds the bytes without a token of their own, between two tokens,
// that appendEnds looks over.
const maxSkipped = 4096

// offsets gives, for each byte of a segment's normal form and for its end, the
// place in the segment that it stems from. The normal form of what lies between
// two places where the normalizer starts afresh stems from it as a whole.
func (t *Tokenizer) offsets(raw []byte) []int {
	var starts []int // descending
	for at := len(raw); at > 0; {
		at = t.norm.Restart(raw, at-1)
		starts = append(starts, at)
	}
	var all []int
	var norm []byte
	for i := len(starts) - 1; i >= 0; i-- {
		lo, hi := starts[i], len(raw)
		if i > 0 {
			hi = starts[i-1]
		}
		norm = t.norm.Append(norm[:0], raw[lo:hi])
		same := string(norm) == string(raw[lo:hi])
		for k := range norm {
			switch {
			case same:
				all = append(all, lo+k)
			case k == 0:
				all = append(all, lo)
			default:
				all = append(all, hi)
			}
		}
	}
	return append(all, len(raw))
}
