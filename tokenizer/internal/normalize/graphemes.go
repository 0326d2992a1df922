package normalize

import (
	"sync"
	"unicode/utf8"
)

// graphemeClass is what a character means for the end of a grapheme cluster:
// Unicode Standard Annex 29, version 17.0.
type graphemeClass = uint8

const (
	anyClass graphemeClass = iota
	crClass
	lfClass
	controlClass
	extendClass
	joinerClass // zero width joiner
	regionalClass
	prependClass
	spacingClass
	leadClass
	vowelClass
	tailClass
	syllableClass     // Hangul without a tail
	tailSyllableClass // Hangul with a tail
	pictureClass
	consonantClass // of the scripts whose conjuncts hold together

	classMask graphemeClass = 15
	// Marks that a conjunct may have between its consonants; linkers are the
	// ones it must have.
	conjunctExtend graphemeClass = 1 << 4
	conjunctLinker graphemeClass = 1 << 5
)

var graphemeClasses = sync.OnceValue(func() *runeTable[uint8] {
	classes := map[string]graphemeClass{
		"grapheme-CR": crClass, "grapheme-LF": lfClass, "grapheme-Control": controlClass,
		"grapheme-Extend": extendClass, "grapheme-ZWJ": joinerClass,
		"grapheme-Regional_Indicator": regionalClass, "grapheme-Prepend": prependClass,
		"grapheme-SpacingMark": spacingClass, "grapheme-L": leadClass, "grapheme-V": vowelClass,
		"grapheme-T": tailClass, "grapheme-Extended_Pictographic": pictureClass,
		"grapheme-InCB_Consonant": consonantClass, "joiner": conjunctExtend, "linker": conjunctLinker,
	}
	var names []string
	for name := range classes {
		names = append(names, name)
	}
	t := newRuneTable[uint8]()
	rows(func(name string, p []rune) {
		for r := p[0]; r <= p[1]; r++ {
			*t.ref(r) |= classes[name]
		}
	}, names...)
	for r := rune(hangulBase); r < hangulBase+hangulCount; r++ {
		*t.ref(r) = tailSyllableClass
		if (r-hangulBase)%tailCount == 0 {
			*t.ref(r) = syllableClass
		}
	}
	return t
})

// graphemeState is what has to be known of the text before a character.
type graphemeState struct {
	before   graphemeClass
	flags    int  // regional indicators just before
	picture  bool // a picture and any Extend stand just before, or before a joiner
	conjunct bool // a consonant and any marks of a conjunct stand just before
	linked   bool // with a linker among them
}

// joins moves on by one character and reports whether it belongs to the cluster
// before it. The first character of a text does not.
func (s *graphemeState) joins(class graphemeClass) bool {
	before, after := s.before&classMask, class&classMask
	joins := joinsClass(before, after) ||
		after == consonantClass && s.conjunct && s.linked ||
		before == joinerClass && after == pictureClass && s.picture ||
		before == regionalClass && after == regionalClass && s.flags%2 == 1

	s.before = class
	s.picture = after == pictureClass || s.picture && (after == extendClass || after == joinerClass && before != joinerClass)
	if after == regionalClass {
		s.flags++
	} else {
		s.flags = 0
	}
	switch {
	case after == consonantClass:
		s.conjunct, s.linked = true, false
	case class&conjunctLinker != 0:
		s.linked = true
	case class&conjunctExtend == 0:
		s.conjunct = false
	}
	return joins
}

// joinsClass has the rules that look at two characters only.
func joinsClass(before, after graphemeClass) bool {
	isEnd := func(c graphemeClass) bool { return c == crClass || c == lfClass || c == controlClass }
	switch {
	case before == crClass && after == lfClass:
		return true
	case isEnd(before) || isEnd(after):
		return false
	case after == extendClass || after == joinerClass || after == spacingClass || before == prependClass:
		return true
	}
	switch before {
	case leadClass:
		return after == leadClass || after == vowelClass || after == syllableClass || after == tailSyllableClass
	case syllableClass, vowelClass:
		return after == vowelClass || after == tailClass
	case tailSyllableClass, tailClass:
		return after == tailClass
	}
	return false
}

// precompiled is a charsmap as Hugging Face applies it: to each grapheme
// cluster of less than 6 bytes the shortest rule that it begins with, which
// replaces all of it; else to each character.
type precompiled struct {
	m       *charsmap
	classes *runeTable[uint8]
	// plain has printing characters only: those are clusters of their own before
	// others of ASCII.
	plain plainSet
}

func newPrecompiled(m *charsmap) *precompiled {
	p := &precompiled{m: m, classes: graphemeClasses()}
	for b := ' '; b < 0x7f; b++ {
		p.plain[b] = m.plain[b]
	}
	return p
}

// maxCluster is the size in bytes from which on a cluster is taken apart.
const maxCluster = 6

// class gives the class of the character that text begins with, and its size.
// Bytes that are no UTF-8 are as controls: clusters by themselves.
func (p *precompiled) class(text []byte) (graphemeClass, int) {
	if b := text[0]; ' ' <= b && b < 0x7f {
		return anyClass, 1
	}
	r, size := utf8.DecodeRune(text)
	if r == utf8.RuneError && size == 1 {
		return controlClass, 1
	}
	return p.classes.at(r), size
}

// next gives the end of the cluster that a text begins with. It depends on
// nothing before it.
func (p *precompiled) next(src []byte) int {
	var s graphemeState
	class, at := p.class(src)
	s.before = controlClass
	s.joins(class)
	for at < len(src) {
		class, size := p.class(src[at:])
		if !s.joins(class) {
			break
		}
		at += size
	}
	return at
}

// appendCluster appends what becomes of a cluster.
func (p *precompiled) appendCluster(dst, cluster []byte) []byte {
	if len(cluster) < maxCluster {
		if v, ok := p.m.shortest(cluster); ok {
			return append(dst, v...)
		}
	}
	for len(cluster) > 0 {
		_, size := utf8.DecodeRune(cluster)
		if v, ok := p.m.shortest(cluster[:size]); ok {
			dst = append(dst, v...)
		} else {
			dst = append(dst, cluster[:size]...)
		}
		cluster = cluster[size:]
	}
	return dst
}

func (p *precompiled) append(dst, src []byte) []byte {
	for {
		n := p.plain.plainLen(src)
		dst = append(dst, src[:n]...)
		if src = src[n:]; len(src) == 0 {
			return dst
		}
		end := p.next(src)
		dst = p.appendCluster(dst, src[:end])
		src = src[end:]
	}
}

func (p *precompiled) same(src []byte) bool { return sameAs(p, src) }

func (p *precompiled) joins() bool { return true }

func (p *precompiled) cuts(src []byte, c []cut) []cut {
	c = append(c, cut{})
	src = src[:completeLen(src)]
	b := bufferPool.Get().(*buffers)
	defer b.free()
	out := 0
	for from := 0; from < len(src); {
		to := from + p.next(src[from:])
		if to == len(src) && !p.closed(src[from:]) {
			break
		}
		b.text[0] = p.appendCluster(b.text[0][:0], src[from:to])
		out += len(b.text[0])
		c = append(c, cut{to, out})
		from = to
	}
	return c
}

// closed reports whether what becomes of a cluster at the end of a text stays,
// also if marks follow: if none can belong to it, if it has been taken apart, or
// if no rule begins as it does.
func (p *precompiled) closed(cluster []byte) bool {
	class, size := p.class(cluster)
	if size == len(cluster) && (class == controlClass || class == lfClass) || len(cluster) >= maxCluster {
		return true
	}
	_, n, open := p.m.longest(cluster)
	return n == 0 && !open
}

func (p *precompiled) inert(r rune) bool {
	var buf [utf8.UTFMax]byte
	text := utf8.AppendRune(buf[:0], r)
	_, changes := p.m.shortest(text)
	return p.classes.at(r) == anyClass && !changes
}

func (p *precompiled) String() string { return "Precompiled" }
