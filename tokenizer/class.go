package tokenizer

//go:generate go run gen_classes.go

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is what a pre-tokenizer wants to know of a character. Bytes that are
// no UTF-8 are characters of one byte and class other, as U+FFFD is.
type class uint8

const (
	other  class = iota
	letter       // \p{L}
	number       // \p{N}
	space        // \s: White_Space
	end          // no character: the end of the segment
)

// classTable has two bits for each code point: 272 KiB.
type classTable [(unicode.MaxRune + 1) / 4]uint8

func (t *classTable) at(r rune) class { return class(t[r>>2]>>(r&3*2)) & 3 }

func (t *classTable) set(r rune, c class) { t[r>>2] |= uint8(c) << (r & 3 * 2) }

// classRange is a run of code points of one class.
type classRange struct {
	lo, hi rune
	class  class
}

// classes are llama.cpp's, which decide the IDs: package unicode changes with
// the Go release.
var classes = sync.OnceValue(func() *classTable {
	t := new(classTable)
	for _, s := range classRanges {
		for r := s.lo; r <= s.hi; r++ {
			t.set(r, s.class)
		}
	}
	return t
})

// classOf gives the class and the length in bytes of the character that b
// begins with, end for none.
func (t *classTable) classOf(b []byte) (class, int) {
	if len(b) == 0 {
		return end, 0
	}
	if b[0] < utf8.RuneSelf {
		return t.at(rune(b[0])), 1
	}
	r, n := utf8.DecodeRune(b)
	if n == 1 {
		return other, 1
	}
	return t.at(r), n
}
