package tokenizer

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// Tail is the end of a text that goes on in ways unknown: what follows may
// still change how it is divided into pretokens, and so its tokens.
type Tail struct {
	// Start is the byte of the text at which the tail begins: whatever follows,
	// the first Tokens tokens of the text stay, and they take up the bytes
	// before Start.
	Start, Tokens int
	// Text is what the tokens of the tail spell: the text from Start on after
	// normalization. Its first Prefix bytes do not stem from the text.
	Text   []byte
	Prefix int
	// Stretch is the byte of Text at which its last part without an added token
	// begins. What stands before has no part in how that is divided.
	Stretch int
	// Composes says that the normalizer is NFC or NFKC: what follows rewrites the
	// end of Text only by putting characters together or in order.
	Composes bool
	// Readings are the ways in which Text may be divided into pretokens. The
	// first is what comes of the text if nothing follows. There are none if
	// Opaque says so.
	Readings []Reading
	// Opaque says in words why the tokens of the tail cannot be foreseen; empty
	// if they can.
	Opaque string

	ends []int // holds what Readings[i].Closed are parts of

	// Working memory of openEnds.
	seg     []byte
	tried   []int
	closing []bool
}

// Reading is one way in which a tail may be divided into pretokens once more
// text follows it. Offsets are bytes of [Tail.Text].
type Reading struct {
	// Closed holds the ends of the pretokens up to Open, ascending. The last
	// one is Open.
	Closed []int
	// Open is where the last pretoken starts. The bytes from there to Until,
	// possibly none, belong to a pretoken that may end there or go on. If there
	// are none, the next one starts here.
	Open int
	// Until is how much of the tail the reading speaks of: all of it, or, where
	// what follows may make the normalizer rewrite the end, what comes before.
	Until int
	// Added, if not vocab.None, is an added token of which the bytes from Open
	// on, at least one, are a proper prefix: what follows may complete it. Of
	// several such tokens it is the first in byte order.
	Added vocab.ID
}

// Tail analyzes the end of the text. For every continuation, which may begin
// inside a character, the pretokens of the whole, cut off at the end of the
// tail, are those of one of the readings; nothing following at all counts too,
// and is the first reading. There may be readings that no continuation leads to.
// It overwrites tail, whose memory it reuses.
func (x *Text) Tail(tail *Tail) {
	s := x.t.scratches.get()
	defer x.t.scratches.put(s)
	m := x.last()
	if m.size < len(x.text) {
		x.ids, m = x.t.settle(x.ids[:m.ids], x.text, m, x.set, s)
		m.size = len(x.text)
		x.recent = m
		x.dirty = true
	}
	*tail = Tail{Start: m.at, Tokens: m.ids, Text: tail.Text[:0], Readings: tail.Readings[:0], ends: tail.ends[:0], seg: tail.seg, tried: tail.tried, closing: tail.closing}
	b := tailBuilder{t: x.t, s: s, set: x.set, tail: tail}
	b.build(x.text[m.at:], m.pos)
}

// tailBuilder makes the readings of a tail.
type tailBuilder struct {
	t    *Tokenizer
	s    *scratch
	set  *addedTokens
	tail *Tail
	spelling
}

// spelling is a sink for what the tokens of a text spell.
type spelling struct {
	t    *Tokenizer
	s    *scratch
	text []byte
	ends []int // of pretokens in text

	// The last stretch: where it begins in text, the bytes of prefix in it, its
	// place in its segment's normal form. After an added token it is empty.
	last, prefix, from int
	raw                []byte // its segment
	same               bool   // its segment normalizes to itself
	firstPrefix        int
}

func (sp *spelling) token(id vocab.ID, _, _ int) {
	sp.text = append(sp.text, sp.t.vocab.Bytes(id)...)
	sp.ends = append(sp.ends, len(sp.text))
	sp.last, sp.prefix, sp.from, sp.raw, sp.same = len(sp.text), 0, 0, nil, true
}

func (sp *spelling) stretch(norm []byte, prefix, from int, seg *segment) {
	if len(sp.text) == 0 {
		sp.firstPrefix = prefix
	}
	sp.last, sp.prefix, sp.from, sp.raw, sp.same = len(sp.text), prefix, from, seg.raw, seg.same
	sp.text = append(sp.text, norm...)
	sp.ends = sp.t.appendPretokens(sp.ends, norm, sp.last, sp.s)
}

// appendPretokens appends the ends of the pretokens of a stretch that begins at
// base.
func (t *Tokenizer) appendPretokens(dst []int, norm []byte, base int, s *scratch) []int {
	for from := 0; from < len(norm); {
		n := t.split.Scan(s.ends[:], norm, from)
		for _, end := range s.ends[:n] {
			dst = append(dst, base+end)
		}
		from = s.ends[n-1]
	}
	return dst
}

// Texts of Tail.Opaque.
const (
	opaquePattern = "the pre-tokenizer is a regular expression that is not known here, so nor is how what follows changes the last pretokens"
	opaqueAdded   = "an added token at the end may take in white space that follows, or cease to match"
	opaqueInner   = "an added token that may still be completed changes how the text before it is normalized"
)

func (b *tailBuilder) build(rest []byte, pos position) {
	tail := b.tail
	trunk := &b.s.spelling
	*trunk = spelling{t: b.t, s: b.s, text: tail.Text, ends: trunk.ends[:0], same: true}
	b.t.walk(rest, b.set, pos, b.s, trunk)
	tail.Text, tail.Prefix, tail.Stretch = trunk.text, trunk.firstPrefix, trunk.last
	tail.Opaque = b.t.model.opaque()
	tail.Composes = b.t.composes()
	if !b.t.split.Exact() {
		tail.Opaque = opaquePattern
		return
	}
	b.openEnds(trunk, len(tail.Text))
	if q := b.unwritten(trunk); q < len(tail.Text) {
		b.openEnds(trunk, q)
	}
	starts, ok := b.openStarts(rest, pos)
	if !ok {
		tail.Opaque, tail.Readings = opaqueAdded, nil
		return
	}
	for _, o := range starts {
		before := spelling{t: b.t, s: b.s, same: true}
		if b.t.prefixAlone(o.start, pos) {
			before.stretch([]byte(dummyPrefix), len(dummyPrefix), 0, &segment{same: true})
		}
		b.t.walk(rest[:o.start], b.set, pos, b.s, &before)
		if open, ok := bytes.CutPrefix(tail.Text, before.text); !ok || len(open) == 0 || !bytes.HasPrefix(b.t.vocab.Bytes(o.id), open) {
			tail.Opaque, tail.Readings = opaqueInner, nil
			return
		}
		b.add(before.ends, len(before.text), len(tail.Text), o.id)
	}
	at := 0
	for i := range tail.Readings {
		r := &tail.Readings[i]
		r.Closed = tail.ends[at : at+len(r.Closed) : at+len(r.Closed)]
		at += len(r.Closed)
	}
}

// openStarts gives the places at which an added token begins that what follows
// may complete. It reports false if added tokens may do anything else.
func (b *tailBuilder) openStarts(rest []byte, pos position) ([]openStart, bool) {
	own, starts := b.set.raw.openStarts(rest)
	starts = slices.DeleteFunc(starts, func(o openStart) bool { return o.whole })
	at := 0 // of the last segment
	if len(own) > 0 {
		at, pos = own[len(own)-1].end, afterToken
	}
	if seg := rest[at:]; len(seg) > 0 && !b.set.normalized.empty() {
		same := b.t.same(seg)
		norm := seg
		if !same {
			norm = b.t.norm.Append(nil, seg)
		}
		if b.t.prefix.early && b.t.prefix.applies(norm, pos) {
			norm = slices.Concat([]byte(dummyPrefix), norm)
			at -= len(dummyPrefix)
		}
		within, inner := b.set.normalized.openStarts(norm)
		if len(inner) > 0 && !same || b.rewrittenStarts(seg, within, pos) {
			return nil, false
		}
		for _, o := range inner {
			if o.start += at; o.whole {
				continue
			}
			if o.start < 0 { // it would begin with the prefix
				return nil, false
			}
			starts = append(starts, o)
		}
	}
	for _, o := range starts {
		if o.id == vocab.None || !bytes.HasPrefix(b.t.vocab.Bytes(o.id), rest[o.start:]) {
			return nil, false
		}
	}
	return starts, true
}

// rewrittenStarts reports whether what follows may complete an added token, or
// undo one, once the normalizer has rewritten the end of a segment: half a ▁
// becomes a space. within are the added tokens in its normal form.
func (b *tailBuilder) rewrittenStarts(seg []byte, within []match, pos position) bool {
	if b.t.norm == nil {
		return false
	}
	q := b.t.norm.Settled(seg)
	if q == len(seg) {
		return false
	}
	norm := b.t.norm.Append(nil, seg[:q])
	if b.t.prefix.early && b.t.prefix.applies(seg, pos) {
		norm = slices.Concat([]byte(dummyPrefix), norm)
	}
	if n := len(within); n > 0 && within[n-1].end > len(norm) {
		return true
	}
	_, open := b.set.normalized.openStarts(norm)
	return slices.ContainsFunc(open, func(o openStart) bool { return !o.whole })
}

// add adds a reading unless it is there. Until build ends only the length of
// Closed is right.
func (b *tailBuilder) add(closed []int, open, until int, added vocab.ID) {
	at := 0
	for i := range b.tail.Readings {
		r := &b.tail.Readings[i]
		if r.Until == until && r.Added == added && slices.Equal(b.tail.ends[at:at+len(r.Closed)], closed) {
			return
		}
		at += len(r.Closed)
	}
	b.tail.ends = append(b.tail.ends, closed...)
	b.tail.Readings = append(b.tail.Readings, Reading{Closed: closed, Open: open, Until: until, Added: added})
}

// composes reports whether the normalizer is a composed Unicode form.
func (t *Tokenizer) composes() bool {
	if t.norm == nil {
		return false
	}
	name := t.norm.String()
	return name == "NFC" || name == "NFKC"
}

// unwritten gives how much of the tail's text the normalizer leaves as it is
// whatever follows.
func (b *tailBuilder) unwritten(sp *spelling) int {
	if b.t.norm == nil || len(sp.raw) == 0 {
		return len(sp.text)
	}
	q := b.t.norm.Settled(sp.raw)
	if !sp.same {
		q = len(b.t.norm.Append(nil, sp.raw[:q]))
	}
	return min(len(sp.text), max(sp.last, sp.last+sp.prefix+q-sp.from))
}

// openEnds adds the readings of text[:until], which ends in a stretch that goes
// on.
func (b *tailBuilder) openEnds(sp *spelling, until int) {
	closed, _ := slices.BinarySearch(sp.ends, sp.last+1)
	before := sp.ends[:closed]
	stretch := sp.text[sp.last:until]
	if len(stretch) == 0 {
		b.add(before, sp.last, until, vocab.None)
		return
	}
	first := len(b.tail.Readings)
	closing := b.tail.closing[:0] // of Readings[first:]: everything that follows ends a pretoken at until
	ends := append(b.tail.tried[:0], before...)
	try := func(rest, probe string) {
		b.tail.seg = append(append(append(b.tail.seg[:0], stretch...), rest...), probe...)
		ends = b.t.appendPretokens(ends[:len(before)], b.tail.seg, sp.last, b.s)
		inner, found := slices.BinarySearch(ends, until)
		open := sp.last
		if inner > len(before) {
			open = ends[inner-1]
		}
		n := len(b.tail.Readings)
		b.add(ends[:inner], open, until, vocab.None)
		if len(b.tail.Readings) > n {
			closing = append(closing, found)
			return
		}
		at := len(b.tail.ends)
		for i := n - 1; i >= first; i-- {
			r := &b.tail.Readings[i]
			at -= len(r.Closed)
			if slices.Equal(b.tail.ends[at:at+len(r.Closed)], ends[:inner]) {
				closing[i-first] = closing[i-first] && found
			}
		}
	}
	part := incomplete(stretch)
	for _, probe := range b.t.split.Probes(stretch, 0) {
		try("", probe)
	}
	if len(part) > 0 {
		for _, rest := range b.t.split.Completions(part) {
			for _, probe := range b.t.split.Probes(append(slices.Clone(stretch), rest...), 0) {
				try(rest, probe)
			}
		}
	}
	b.tail.tried, b.tail.closing = ends, closing
	for i, c := range closing {
		if c {
			b.close(first+i, until)
		}
	}
}

// close ends the last pretoken of a reading at until.
func (b *tailBuilder) close(reading, until int) {
	at := 0
	for i := range reading + 1 {
		at += len(b.tail.Readings[i].Closed)
	}
	b.tail.ends = slices.Insert(b.tail.ends, at, until)
	r := &b.tail.Readings[reading]
	r.Closed = append(slices.Clip(r.Closed), until)
	r.Open = until
}

// Trial tries how the last pretoken of a reading, which must not have an added
// token, may go on. It is for one goroutine; its zero value is ready for Set.
type Trial struct {
	t      *Tokenizer
	seg    []byte // the last stretch of the tail, and what is tried
	base   int    // its length
	open   int    // where the last pretoken starts in it
	closed []int  // ends of pretokens in it up to open
	ends   [16]int
}

// Set makes the trial one of a reading of the tail. It keeps the reading.
func (u *Trial) Set(t *Tokenizer, tail *Tail, r *Reading) {
	u.t = t
	u.seg = append(u.seg[:0], tail.Text[tail.Stretch:r.Until]...)
	u.base, u.open = len(u.seg), r.Open-tail.Stretch
	u.closed = u.closed[:0]
	for _, end := range r.Closed {
		if end > tail.Stretch {
			u.closed = append(u.closed, end-tail.Stretch)
		}
	}
}

// GoesOn reports whether some continuation that begins with more divides the
// text as the reading does and has all from Open to the end of more in one
// pretoken.
func (u *Trial) GoesOn(more []byte) bool {
	u.seg = append(u.seg[:u.base], more...)
	if len(u.closed) == 0 {
		if end, _ := u.t.split.Next(u.seg, u.open); end == len(u.seg) {
			return true
		}
	}
	return u.any(false)
}

// Ends reports whether some continuation divides the text as the reading does
// and has a pretoken end where the reading does.
func (u *Trial) Ends() bool {
	u.seg = u.seg[:u.base]
	return u.any(true)
}

// any tries continuations of seg.
func (u *Trial) any(ends bool) bool {
	size := len(u.seg)
	part := incomplete(u.seg)
	for _, probe := range u.t.split.Probes(u.seg, 0) {
		u.seg = append(u.seg[:size], probe...)
		if u.fits(size, ends) {
			return true
		}
	}
	if len(part) == 0 {
		return false
	}
	for _, rest := range u.t.split.Completions(part) {
		u.seg = append(u.seg[:size], rest...)
		for _, probe := range u.t.split.Probes(u.seg, 0) {
			u.seg = append(u.seg[:size+len(rest)], probe...)
			if u.fits(size, ends) {
				return true
			}
		}
	}
	return false
}

// fits reports whether the pretokens of seg are the closed ones and one that
// reaches size, or, with ends, ends there.
func (u *Trial) fits(size int, ends bool) bool {
	closed, at := u.closed, 0
	for at < size {
		n := u.t.split.Scan(u.ends[:], u.seg, at)
		for _, end := range u.ends[:n] {
			at = end
			if len(closed) > 0 {
				if end != closed[0] {
					return false
				}
				closed = closed[1:]
			} else if end < size {
				return false
			}
			if end >= size {
				return len(closed) == 0 && (!ends || end == size)
			}
		}
	}
	return false
}

// incomplete gives the bytes at the end of text that begin a character without
// ending it.
func incomplete(text []byte) []byte {
	for n := 1; n <= min(len(text), utf8.UTFMax-1); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return nil
			}
			return last
		}
	}
	return nil
}
