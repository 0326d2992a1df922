package normalize

import (
	"bytes"
	"slices"
	"sync"
	"unicode/utf8"
)

// The normalization forms of Unicode Standard Annex 15, as Hugging Face
// tokenizers has them: of Unicode 9.0. Later characters stay as they are.

// Hangul syllables are composed by arithmetic: The Unicode Standard, 3.12.
const (
	hangulBase  = 0xac00
	leadBase    = 0x1100
	vowelBase   = 0x1161
	tailBase    = 0x11a7
	leadCount   = 19
	vowelCount  = 21
	tailCount   = 28
	hangulCount = leadCount * vowelCount * tailCount
)

func isHangul(r rune) bool { return hangulBase <= r && r < hangulBase+hangulCount }

// formRecord is what the forms want to know of a character. Characters that
// nothing is special about share record 0.
type formRecord struct {
	class  uint8 // canonical combining class
	first  bool  // begins a pair that composes
	second bool  // ends one
	// What a character is decomposed into, as runs of formTable.runes; empty
	// for itself. Hangul syllables have none: they go by arithmetic.
	canonical, compat struct{ from, to uint16 }
	forms             [4]formFlags
}

// formFlags is what holds of a character in one form.
type formFlags uint8

const (
	changes formFlags = 1 << iota // alone it becomes something else
	joinsOn                       // it may be moved by or joined with what stands before it
)

type formTable struct {
	at      *runeTable[uint16] // index in records
	records []formRecord
	runes   []rune
	pairs   map[[2]rune]rune
}

// form is one of the four forms: an index in formRecord.forms.
type form uint8

const (
	composed   form = 1 // NFC, NFKC
	compatible form = 2 // NFKC, NFKD
)

func (f form) String() string {
	return [...]string{"NFD", "NFC", "NFKD", "NFKC"}[f]
}

var formTables = sync.OnceValue(newFormTable)

func newFormTable() *formTable {
	t := &formTable{at: newRuneTable[uint16](), records: make([]formRecord, 1), pairs: make(map[[2]rune]rune)}
	record := func(r rune) *formRecord {
		i := t.at.ref(r)
		if *i == 0 {
			*i = uint16(len(t.records))
			t.records = append(t.records, formRecord{})
		}
		return &t.records[*i]
	}
	rows(func(name string, p []rune) {
		switch name {
		case "class":
			for r := p[1]; r <= p[2]; r++ {
				record(r).class = uint8(p[0])
			}
		case "pair":
			t.pairs[[2]rune{p[1], p[2]}] = p[0]
			record(p[1]).first = true
			record(p[2]).second = true
		default:
			d := &record(p[0]).canonical
			if name == "compat" {
				d = &record(p[0]).compat
			}
			d.from = uint16(len(t.runes))
			t.runes = append(t.runes, p[1:]...)
			d.to = uint16(len(t.runes))
		}
	}, "class", "pair", "canonical", "compat")

	lead, vowel, tail := formRecord{first: true}, formRecord{second: true}, formRecord{second: true}
	share := func(lo, count rune, rec formRecord) {
		for r := lo; r < lo+count; r++ {
			*t.at.ref(r) = uint16(len(t.records))
		}
		t.records = append(t.records, rec)
	}
	share(leadBase, leadCount, lead)
	share(vowelBase, vowelCount, vowel)
	share(tailBase+1, tailCount-1, tail)
	share(hangulBase, hangulCount, formRecord{})
	open := uint16(len(t.records)) // syllables without a tail
	t.records = append(t.records, formRecord{first: true})
	for r := rune(hangulBase); r < hangulBase+hangulCount; r += tailCount {
		*t.at.ref(r) = open
	}
	t.setFlags()
	return t
}

// setFlags derives the flags of all records.
func (t *formTable) setFlags() {
	var seg segment
	for b, block := range t.at.index {
		if block == 0 {
			continue
		}
		for i, rec := range t.at.blocks[block] {
			if rec == 0 {
				continue
			}
			r := rune(b<<blockBits | i)
			for f := range form(4) {
				seg.reset()
				seg.add(t, f, r)
				first, class := seg.runes[0], seg.classes[0]
				var flags formFlags
				if class != 0 || f&composed != 0 && t.record(first).second {
					flags |= joinsOn
				}
				seg.finish(t, f)
				if len(seg.runes) != 1 || seg.runes[0] != r {
					flags |= changes
				}
				t.records[rec].forms[f] = flags
			}
		}
	}
}

func (t *formTable) record(r rune) *formRecord { return &t.records[t.at.at(r)] }

// closed reports whether nothing that follows changes a normal form that ends
// in r: r is decomposed into something that ends in a starter, so that no mark
// moves into it, and composes with nothing.
func (t *formTable) closed(f form, r rune) bool {
	rec := t.record(r)
	if rec.class != 0 {
		return false
	}
	if f&composed == 0 {
		return true
	}
	if d := rec.canonical; d.from < d.to && t.record(t.runes[d.to-1]).class != 0 {
		return false
	}
	return !rec.first
}

// compose gives the character that a pair composes to.
func (t *formTable) compose(a, b rune) (rune, bool) {
	switch {
	case leadBase <= a && a < leadBase+leadCount:
		if v := b - vowelBase; 0 <= v && v < vowelCount {
			return hangulBase + ((a-leadBase)*vowelCount+v)*tailCount, true
		}
		return 0, false
	case isHangul(a):
		if v := b - tailBase; (a-hangulBase)%tailCount == 0 && 0 < v && v < tailCount {
			return a + v, true
		}
		return 0, false
	}
	if !t.record(a).first || !t.record(b).second {
		return 0, false
	}
	r, ok := t.pairs[[2]rune{a, b}]
	return r, ok
}

// segment is a stretch of text that the forms treat as one: a character that
// does not join on to what stands before it, and all that do.
type segment struct {
	runes   []rune
	classes []uint8
	spare   struct {
		runes   []rune
		classes []uint8
	}
}

var segments = sync.Pool{New: func() any { return new(segment) }}

// maxKept is the length in code points up to which a segment is kept for
// reuse.
const maxKept = 1 << 12

func (s *segment) free() {
	if cap(s.runes) <= maxKept {
		segments.Put(s)
	}
}

func (s *segment) reset() { s.runes, s.classes = s.runes[:0], s.classes[:0] }

func (s *segment) push(t *formTable, r rune) {
	s.runes = append(s.runes, r)
	s.classes = append(s.classes, t.record(r).class)
}

// add appends the decomposition of a character.
func (s *segment) add(t *formTable, f form, r rune) {
	if isHangul(r) {
		i := r - hangulBase
		s.push(t, leadBase+i/(vowelCount*tailCount))
		s.push(t, vowelBase+i/tailCount%vowelCount)
		if i%tailCount > 0 {
			s.push(t, tailBase+i%tailCount)
		}
		return
	}
	rec := t.record(r)
	d := rec.canonical
	if f&compatible != 0 && rec.compat.from < rec.compat.to {
		d = rec.compat
	}
	if d.from == d.to {
		s.push(t, r)
		return
	}
	for _, r := range t.runes[d.from:d.to] {
		s.push(t, r)
	}
}

// finish brings a segment into canonical order and, for NFC and NFKC, composes
// it.
func (s *segment) finish(t *formTable, f form) {
	s.order()
	if f&composed == 0 {
		return
	}
	starter, out := -1, 0
	for i, r := range s.runes {
		class := s.classes[i]
		// r is next to the starter if nothing between them blocks it.
		if starter >= 0 && (out == starter+1 || s.classes[out-1] < class) {
			if c, ok := t.compose(s.runes[starter], r); ok {
				s.runes[starter] = c
				continue
			}
		}
		if class == 0 {
			starter = out
		}
		s.runes[out], s.classes[out] = r, class
		out++
	}
	s.runes, s.classes = s.runes[:out], s.classes[:out]
}

// order sorts each run of marks by class, those of one class as they stand.
func (s *segment) order() {
	for lo := 0; lo < len(s.runes); {
		if s.classes[lo] == 0 {
			lo++
			continue
		}
		hi := lo + 1
		for hi < len(s.runes) && s.classes[hi] != 0 {
			hi++
		}
		if hi-lo > 32 {
			s.countingSort(lo, hi)
		} else {
			for i := lo + 1; i < hi; i++ {
				for j := i; j > lo && s.classes[j-1] > s.classes[j]; j-- {
					s.classes[j-1], s.classes[j] = s.classes[j], s.classes[j-1]
					s.runes[j-1], s.runes[j] = s.runes[j], s.runes[j-1]
				}
			}
		}
		lo = hi
	}
}

// countingSort is order for long runs, in linear time.
func (s *segment) countingSort(lo, hi int) {
	var next [256]int
	for _, c := range s.classes[lo:hi] {
		next[c]++
	}
	sum := 0
	for c, n := range next {
		next[c] = sum
		sum += n
	}
	s.spare.runes = slices.Grow(s.spare.runes[:0], hi-lo)[:hi-lo]
	s.spare.classes = slices.Grow(s.spare.classes[:0], hi-lo)[:hi-lo]
	for i := lo; i < hi; i++ {
		c := s.classes[i]
		s.spare.runes[next[c]], s.spare.classes[next[c]] = s.runes[i], c
		next[c]++
	}
	copy(s.runes[lo:hi], s.spare.runes)
	copy(s.classes[lo:hi], s.spare.classes)
}

// formStep is NFC, NFD, NFKC or NFKD.
type formStep struct {
	form
	t *formTable
}

func newFormStep(f form) *formStep { return &formStep{f, formTables()} }

// decode gives the character that text begins with, its length and its flags.
// Bytes that are no UTF-8 are characters that nothing joins.
func (n *formStep) decode(text []byte) (r rune, size int, flags formFlags) {
	if b := text[0]; b < utf8.RuneSelf {
		return rune(b), 1, 0
	}
	r, size = utf8.DecodeRune(text)
	if size == 1 {
		return r, 1, 0
	}
	return r, size, n.t.record(r).forms[n.form]
}

// normal finds the first segment at or after from that may not be normal, by
// the quick check of UAX 15: its start, or len(src).
func (n *formStep) normal(src []byte, from int) int {
	start, last := from, uint8(0)
	for i := from; i < len(src); {
		if ascii := asciiLen(src[i:]); ascii > 0 {
			i += ascii
			start, last = i-1, 0
			continue
		}
		r, size, flags := n.decode(src[i:])
		if flags&changes != 0 {
			if flags&joinsOn == 0 {
				return i
			}
			return start
		}
		if flags&joinsOn == 0 {
			start, last = i, 0
		} else {
			rec := n.t.record(r)
			if rec.class < last || rec.class == 0 || n.form&composed != 0 && rec.second {
				return start
			}
			last = rec.class
		}
		i += size
	}
	return len(src)
}

// read puts the normal form of the segment at from in seg and gives the
// segment's end. ok is false for a byte that is no UTF-8, which stays.
func (n *formStep) read(seg *segment, src []byte, from int) (end int, ok bool) {
	seg.reset()
	r, size, _ := n.decode(src[from:])
	end = from + size
	if r == utf8.RuneError && size == 1 {
		return end, false
	}
	seg.add(n.t, n.form, r)
	for end < len(src) {
		r, size, flags := n.decode(src[end:])
		if flags&joinsOn == 0 {
			break
		}
		seg.add(n.t, n.form, r)
		end += size
	}
	seg.finish(n.t, n.form)
	return end, true
}

func (n *formStep) append(dst, src []byte) []byte {
	seg := segments.Get().(*segment)
	defer seg.free()
	for i := 0; i < len(src); {
		start := n.normal(src, i)
		dst = append(dst, src[i:start]...)
		if start == len(src) {
			break
		}
		end, ok := n.read(seg, src, start)
		if ok {
			for _, r := range seg.runes {
				dst = utf8.AppendRune(dst, r)
			}
		} else {
			dst = append(dst, src[start:end]...)
		}
		i = end
	}
	return dst
}

func (n *formStep) same(src []byte) bool {
	i := n.normal(src, 0)
	if i == len(src) {
		return true
	}
	seg := segments.Get().(*segment)
	defer seg.free()
	for i < len(src) {
		end, ok := n.read(seg, src, i)
		if ok && !equalRunes(src[i:end], seg.runes) {
			return false
		}
		i = n.normal(src, end)
	}
	return true
}

func equalRunes(text []byte, runes []rune) bool {
	var buf [utf8.UTFMax]byte
	for _, r := range runes {
		rest, ok := bytes.CutPrefix(text, utf8.AppendRune(buf[:0], r))
		if !ok {
			return false
		}
		text = rest
	}
	return len(text) == 0
}

// cuts are the ends of segments, as far as something follows or cannot change
// them, and in the last segment the end of its first character on the same
// condition.
func (n *formStep) cuts(src []byte, c []cut) []cut {
	seg := segments.Get().(*segment)
	defer seg.free()
	src = src[:completeLen(src)]
	c = append(c, cut{})
	out := 0
	for i := 0; i < len(src); {
		if i > 0 {
			c = append(c, cut{i, out})
		}
		end, ok := n.read(seg, src, i)
		if !ok {
			out += end - i
			if end == len(src) {
				c = append(c, cut{end, out})
			}
			i = end
			continue
		}
		last := seg.runes[len(seg.runes)-1]
		if end == len(src) && !n.t.closed(n.form, last) {
			_, size, _ := n.decode(src[i:])
			first, _ := n.read(seg, src[:i+size], i)
			if n.t.closed(n.form, seg.runes[len(seg.runes)-1]) {
				c = append(c, cut{first, out + runesLen(seg.runes)})
			}
			return c
		}
		out += runesLen(seg.runes)
		if end == len(src) {
			c = append(c, cut{end, out})
		}
		i = end
	}
	return c
}

func runesLen(runes []rune) int {
	n := 0
	for _, r := range runes {
		n += utf8.RuneLen(r)
	}
	return n
}

func (n *formStep) inert(r rune) bool {
	return n.t.record(r).forms[n.form]&(changes|joinsOn) == 0
}

func (n *formStep) joins() bool { return true }
