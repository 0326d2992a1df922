package normalize

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"unicode/utf8"
)

// charsmap is SentencePiece's precompiled_charsmap: rules that replace byte
// strings, as a double-array trie (darts-clone) whose values are offsets in a
// text of replacements, each ended by a zero byte. It starts with the size of
// the trie in bytes.
type charsmap struct {
	units   []uint32
	content []byte

	// plain has the characters that, before another of ASCII, begin no rule.
	plain plainSet
	// inner has the first bytes of characters that stand in a rule after its
	// first character. It is made when asked for.
	inner func() *[4]uint64
}

// maxRule is how many bytes a rule may replace or write: a damaged trie may have
// no end. The longest of SentencePiece's own are below 100.
const maxRule = 1 << 10

// Parts of a unit of the double array.
func hasLeaf(u uint32) bool  { return u>>8&1 != 0 }
func label(u uint32) uint32  { return u & (1<<31 | 0xff) }
func offset(u uint32) uint32 { return u >> 10 << (u & (1 << 9) >> 6) }

func newCharsmap(blob []byte) (*charsmap, error) {
	if len(blob) < 4 {
		return nil, fmt.Errorf("the precompiled charsmap has %d bytes, not even those of its size", len(blob))
	}
	size := binary.LittleEndian.Uint32(blob)
	blob = blob[4:]
	if uint64(size) > uint64(len(blob)) || size < 4 {
		return nil, fmt.Errorf("the precompiled charsmap has a trie of %d bytes in %d", size, len(blob))
	}
	m := &charsmap{units: make([]uint32, size/4)}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(blob[4*i:])
	}
	m.content = bytes.Clone(blob[len(m.units)*4:])
	for v := range bytes.SplitSeq(m.content, []byte{0}) {
		if len(v) > maxRule {
			return nil, fmt.Errorf("the precompiled charsmap has a replacement of %d bytes; at most %d are supported", len(v), maxRule)
		}
	}
	m.inner = sync.OnceValue(m.findInner)
	for b := range m.plain {
		m.plain[b] = m.isPlain(byte(b))
	}
	return m, nil
}

func (m *charsmap) isPlain(b byte) bool {
	at, leaf, ok := m.step(m.root(), b)
	if !ok || leaf {
		return !ok
	}
	for c := range byte(utf8.RuneSelf) {
		if _, _, ok := m.step(at, c); ok {
			return false
		}
	}
	return true
}

// plainSet is a set of ASCII characters that a step leaves as they are before
// others of ASCII.
type plainSet [utf8.RuneSelf]bool

// plainLen is how many bytes text begins with that stay, as far as that can be
// told at once.
func (p *plainSet) plainLen(text []byte) int {
	for i, b := range text {
		if b >= utf8.RuneSelf {
			return max(0, i-1)
		}
		if !p[b] {
			return i
		}
	}
	return max(0, len(text)-1)
}

// root is the place in units that the first byte leads on from.
func (m *charsmap) root() uint32 { return offset(m.units[0]) }

// step follows one byte from a place. ok is false if no rule goes on with it.
// leaf is whether a rule ends with it: value gives what by.
func (m *charsmap) step(at uint32, b byte) (to uint32, leaf, ok bool) {
	at ^= uint32(b)
	if uint64(at) >= uint64(len(m.units)) {
		return 0, false, false
	}
	u := m.units[at]
	if label(u) != uint32(b) {
		return 0, false, false
	}
	at ^= offset(u)
	return at, hasLeaf(u) && uint64(at) < uint64(len(m.units)), true
}

// value gives the replacement of the rule that ends at a place.
func (m *charsmap) value(at uint32) []byte {
	from := m.units[at] & (1<<31 - 1)
	if uint64(from) >= uint64(len(m.content)) {
		return nil
	}
	v := m.content[from:]
	if i := bytes.IndexByte(v, 0); i >= 0 {
		v = v[:i:i]
	}
	return v
}

// longest gives the replacement and the length of the longest rule that text
// begins with, 0 for none. open reports that the end of text was reached while
// longer rules were possible.
func (m *charsmap) longest(text []byte) (v []byte, n int, open bool) {
	at, found := m.root(), uint32(0)
	if len(text) > maxRule {
		text = text[:maxRule]
	}
	for i, b := range text {
		to, leaf, ok := m.step(at, b)
		if !ok {
			if n > 0 {
				v = m.value(found)
			}
			return v, n, false
		}
		if at = to; leaf {
			n, found = i+1, at
		}
	}
	if n > 0 {
		v = m.value(found)
	}
	return v, n, len(text) < maxRule
}

// shortest gives the replacement of the shortest rule that text begins with.
func (m *charsmap) shortest(text []byte) (v []byte, ok bool) {
	at := m.root()
	for _, b := range text {
		to, leaf, ok := m.step(at, b)
		if !ok || b == 0 {
			return nil, false
		}
		if at = to; leaf {
			return m.value(at), true
		}
	}
	return nil, false
}

// findInner visits each place that can be reached once.
func (m *charsmap) findInner() *[4]uint64 {
	inner := new([4]uint64)
	seen := make([]uint64, len(m.units)/64+1)
	queue := []uint32{m.root()}
	for depth := 0; len(queue) > 0; depth++ {
		var next []uint32
		for _, at := range queue {
			for b := range 256 {
				to, _, ok := m.step(at, byte(b))
				if !ok {
					continue
				}
				if depth > 0 {
					inner[b>>6] |= 1 << (b & 63)
				}
				if i := at ^ uint32(b); seen[i>>6]>>(i&63)&1 == 0 {
					seen[i>>6] |= 1 << (i & 63)
					next = append(next, to)
				}
			}
		}
		queue = next
	}
	return inner
}

// unmoved reports whether a character is in no rule but perhaps at the start of
// longer ones.
func (m *charsmap) unmoved(r rune) bool {
	var buf [utf8.UTFMax]byte
	text := utf8.AppendRune(buf[:0], r)
	if inner := m.inner(); inner[text[0]>>6]>>(text[0]&63)&1 != 0 {
		return false
	}
	_, n, _ := m.longest(text)
	return n == 0
}

// sentencePiece is SentencePiece's normalizer without the prefix: at each place
// the longest rule of the charsmap, or one character. Spaces are those that it
// then writes as U+2581, which comes out as a space too.
type sentencePiece struct {
	charsmap *charsmap // nil for none
	collapse bool
	plain    plainSet
}

func newSentencePiece(m *charsmap, collapse bool) *sentencePiece {
	s := &sentencePiece{charsmap: m, collapse: collapse}
	for b := range s.plain {
		s.plain[b] = (m == nil || m.plain[b]) && !(collapse && b == ' ')
	}
	return s
}

// next gives what the normalizer makes of the beginning of a text, and of how
// many bytes. open reports that this may change if the text goes on.
func (s *sentencePiece) next(text []byte) (v []byte, n int, open bool) {
	if s.charsmap != nil {
		if v, n, open = s.charsmap.longest(text); n > 0 {
			return v, n, open
		}
	}
	_, n = utf8.DecodeRune(text)
	return text[:n:n], n, open || !utf8.FullRune(text)
}

// scan normalizes src. With c it notes the cuts and stops where the end of src
// decides.
func (s *sentencePiece) scan(dst, src []byte, c *[]cut) []byte {
	start, space := len(dst), s.collapse
	for i := 0; i < len(src); {
		if n := s.plain.plainLen(src[i:]); n > 0 && c == nil {
			dst = append(dst, src[i:i+n]...)
			i, space = i+n, false
		}
		v, n, open := s.next(src[i:])
		if c != nil && open {
			break
		}
		for space && len(v) > 0 && v[0] == ' ' {
			v = v[1:]
		}
		if len(v) > 0 {
			dst = appendUnescaped(dst, v)
			space = s.collapse && v[len(v)-1] == ' '
		}
		i += n
		if c != nil && (!s.collapse || len(dst) == start && !space || len(dst) > start && dst[len(dst)-1] != ' ') {
			*c = append(*c, cut{i, len(dst) - start})
		}
	}
	if s.collapse {
		for len(dst) > start && dst[len(dst)-1] == ' ' {
			dst = dst[:len(dst)-1]
		}
	}
	return dst
}

// appendUnescaped appends v with U+2581 as a space.
func appendUnescaped(dst, v []byte) []byte {
	if len(v) == len(metaSpace) && string(v) == metaSpace {
		return append(dst, ' ')
	}
	for {
		i := bytes.Index(v, []byte(metaSpace))
		if i < 0 {
			return append(dst, v...)
		}
		dst = append(append(dst, v[:i]...), ' ')
		v = v[i+len(metaSpace):]
	}
}

func (s *sentencePiece) append(dst, src []byte) []byte { return s.scan(dst, src, nil) }

func (s *sentencePiece) same(src []byte) bool {
	if s.charsmap == nil && !s.collapse {
		return !bytes.Contains(src, []byte(metaSpace))
	}
	return sameAs(s, src)
}

// sameAs compares a text with what a step makes of it.
func sameAs(s step, src []byte) bool {
	b := bufferPool.Get().(*buffers)
	defer b.free()
	b.text[0] = s.append(b.text[0][:0], src)
	return bytes.Equal(b.text[0], src)
}

func (s *sentencePiece) cuts(src []byte, c []cut) []cut {
	b := bufferPool.Get().(*buffers)
	defer b.free()
	c = append(c, cut{})
	b.text[0] = s.scan(b.text[0][:0], src, &c)
	return c
}

func (s *sentencePiece) inert(r rune) bool {
	return r != ' ' && string(r) != metaSpace && (s.charsmap == nil || s.charsmap.unmoved(r))
}

func (s *sentencePiece) joins() bool { return true }

func (s *sentencePiece) String() string { return "SentencePiece" }
