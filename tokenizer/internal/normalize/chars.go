package normalize

import (
	"unicode/utf8"
)

// charStep rewrites each character by itself.
type charStep struct {
	name string
	charMap
	ascii [utf8.RuneSelf]bool // changes
}

// charMap is what to do with a character. Bytes that are no UTF-8 are not asked
// about.
type charMap struct {
	changes func(r rune) bool
	// rewrite appends what a character that changes becomes.
	rewrite func(dst []byte, r rune) []byte
}

func newCharStep(name string, m charMap) *charStep {
	s := &charStep{name: name, charMap: m}
	for r := range s.ascii {
		s.ascii[r] = m.changes(rune(r))
	}
	return s
}

// next finds the first character at or after from that changes.
func (s *charStep) next(src []byte, from int) (at int, r rune, size int) {
	for i := from; i < len(src); {
		if b := src[i]; b < utf8.RuneSelf {
			if s.ascii[b] {
				return i, rune(b), 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(src[i:])
		if size > 1 && s.changes(r) {
			return i, r, size
		}
		i += size
	}
	return len(src), 0, 0
}

func (s *charStep) append(dst, src []byte) []byte {
	for i := 0; ; {
		at, r, size := s.next(src, i)
		dst = append(dst, src[i:at]...)
		if size == 0 {
			return dst
		}
		dst = s.rewrite(dst, r)
		i = at + size
	}
}

func (s *charStep) same(src []byte) bool {
	_, _, size := s.next(src, 0)
	return size == 0
}

func (s *charStep) cuts(src []byte, c []cut) []cut {
	b := bufferPool.Get().(*buffers)
	defer b.free()
	out := 0
	c = append(c, cut{})
	for i, end := 0, completeLen(src); i < end; {
		r, size := utf8.DecodeRune(src[i:])
		if (size > 1 || r < utf8.RuneSelf) && s.changes(r) {
			b.text[0] = s.rewrite(b.text[0][:0], r)
			out += len(b.text[0])
		} else {
			out += size
		}
		i += size
		c = append(c, cut{i, out})
	}
	return c
}

func (s *charStep) inert(r rune) bool { return !s.changes(r) }
func (s *charStep) joins() bool       { return false }

func (s *charStep) String() string { return s.name }

// lowercase is the full mapping of Unicode without context: a final sigma is
// written as any other.
var lowercase = charMap{
	changes: func(r rune) bool { return lowerCases().at.at(r) != 0 },
	rewrite: func(dst []byte, r rune) []byte {
		t := lowerCases()
		return append(dst, t.lower[t.at.at(r)]...)
	},
}

func drop(dst []byte, _ rune) []byte { return dst }

// dropSet drops the characters of a set.
func dropSet(set uint8) charMap {
	return charMap{func(r rune) bool { return charSets().at(r)&set != 0 }, drop}
}

// nmt drops control characters and makes others that stand for a space one, as
// Google's machine translation did.
var nmt = dropOrBlank(nmtDropSet, nmtBlankSet)

// dropOrBlank drops the characters of one set and makes those of another a
// space.
func dropOrBlank(dropped, blank uint8) charMap {
	return charMap{
		changes: func(r rune) bool { return charSets().at(r)&(dropped|blank) != 0 },
		rewrite: func(dst []byte, r rune) []byte {
			if charSets().at(r)&dropped != 0 {
				return dst
			}
			return append(dst, ' ')
		},
	}
}

// chinese puts spaces around what BERT takes for Chinese characters.
var chinese = charMap{
	changes: func(r rune) bool { return charSets().at(r)&chineseSet != 0 },
	rewrite: func(dst []byte, r rune) []byte {
		return append(utf8.AppendRune(append(dst, ' '), r), ' ')
	},
}

// bertSteps are the parts of a BertNormalizer, in its order.
func bertSteps(s Step) []step {
	var steps []step
	if s.CleanText {
		steps = append(steps, newCharStep("clean_text", dropOrBlank(controlSet, blankSet)))
	}
	if s.ChineseChars {
		steps = append(steps, newCharStep("handle_chinese_chars", chinese))
	}
	if s.StripAccents {
		steps = append(steps, newFormStep(0), newCharStep("strip_accents", dropSet(nonspacingSet)))
	}
	if s.Lowercase {
		steps = append(steps, newCharStep("lowercase", lowercase))
	}
	return steps
}

// strip drops white space at the ends.
type strip struct{ left, right bool }

func isWhite(r rune) bool { return charSets().at(r)&whiteSet != 0 }

// bounds gives what stays of src. Bytes that are no UTF-8 are no white space.
func (s *strip) bounds(src []byte) (lo, hi int) {
	hi = len(src)
	for s.left && lo < hi {
		r, size := utf8.DecodeRune(src[lo:])
		if !isWhite(r) {
			break
		}
		lo += size
	}
	for s.right && hi > lo {
		r, size := utf8.DecodeLastRune(src[lo:hi])
		if !isWhite(r) {
			break
		}
		hi -= size
	}
	return lo, hi
}

func (s *strip) append(dst, src []byte) []byte {
	lo, hi := s.bounds(src)
	return append(dst, src[lo:hi]...)
}

func (s *strip) same(src []byte) bool {
	lo, hi := s.bounds(src)
	return lo == 0 && hi == len(src)
}

func (s *strip) cuts(src []byte, c []cut) []cut {
	c = append(c, cut{})
	out, inside := 0, !s.left
	for i, end := 0, completeLen(src); i < end; {
		r, size := utf8.DecodeRune(src[i:])
		i += size
		white := isWhite(r)
		inside = inside || !white
		if inside {
			out += size
			if !white || !s.right {
				c = append(c, cut{i, out})
			}
		}
	}
	return c
}

func (s *strip) inert(r rune) bool { return !isWhite(r) }
func (s *strip) joins() bool       { return false }

func (s *strip) String() string { return Step{Type: "Strip", Left: s.left, Right: s.right}.name() }
