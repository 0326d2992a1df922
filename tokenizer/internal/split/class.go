package split

//go:generate go run gen_classes.go

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is what pre-tokenizers want to know of a character: one kind and flags.
// Bytes that are not UTF-8 are characters of one byte and class other.
type class uint8

// Kinds. White space is first of all white space: tab, U+0085 and the like are
// control characters, U+2028 a separator.
const (
	other   class = iota // categories C and Z but for white space: controls, formats, unassigned
	upper                // Lu, Lt
	lower                // Ll
	uncased              // Lm, Lo
	mark                 // M
	number               // N
	space                // White_Space but for newline
	newline              // \r and \n
	punct                // P
	symbol               // S
	end                  // no character: the end of the segment

	kinds = 0x0f
)

// Flags.
const (
	han  class = 0x10 // script Han
	kana class = 0x20 // [一-龥぀-ゟ゠-ヿ], which the DeepSeek vocabularies set apart
	word class = 0x40 // \w of the Rust crate regex: Alphabetic, M, Nd, Pc, Join_Control
	bert class = 0x80 // punctuation to Hugging Face's Punctuation and BertPreTokenizer
)

// set is a set of kinds: bit k for kind k, bit k+16 for kind k with flag han.
type set uint32

func kindSet(kinds ...class) set {
	var s set
	for _, k := range kinds {
		s |= 0x10001 << k
	}
	return s
}

func (s set) has(c class) bool { return s>>(c&31)&1 != 0 }

// notHan gives s less the characters of script Han.
func (s set) notHan() set { return s & 0xffff }

var (
	letters  = kindSet(upper, lower, uncased)
	spaces   = kindSet(space, newline)
	newlines = kindSet(newline)
	numbers  = kindSet(number)
	// symbols is [^\s\p{L}\p{N}]
	symbols = kindSet(other, mark, punct, symbol)
)

// table gives the class of every code point, by its bytes: blocks of the 64
// code points that differ in the last byte of their UTF-8 only.
type table struct {
	ascii  [utf8.RuneSelf]class
	index  [(unicode.MaxRune + 1) / 64]uint16
	blocks [][64]class
}

// classRange is a run of code points of one class.
type classRange struct {
	lo, hi rune
	class  class
}

func newTable(edit func(r rune, c class) class, lists ...[]classRange) *table {
	flat := make([]class, unicode.MaxRune+1)
	for _, list := range lists {
		for _, s := range list {
			for r := s.lo; r <= s.hi; r++ {
				flat[r] = s.class
			}
		}
	}
	t := new(table)
	seen := map[[64]class]uint16{}
	for i := range t.index {
		var block [64]class
		copy(block[:], flat[i*64:])
		if edit != nil {
			for k := range block {
				block[k] = edit(rune(i*64+k), block[k])
			}
		}
		n, ok := seen[block]
		if !ok {
			n = uint16(len(t.blocks))
			seen[block] = n
			t.blocks = append(t.blocks, block)
		}
		t.index[i] = n
	}
	for r := range t.ascii {
		t.ascii[r] = t.of(rune(r))
	}
	return t
}

// unicode160 is what the regular expressions of Hugging Face tokenizers
// (Oniguruma 6.9.10) and of tiktoken (Rust regex 1.11 and later) go by.
var unicode160 = sync.OnceValue(func() *table { return newTable(nil, ranges160) })

// unicode170Numbers is for the Digits of Hugging Face tokenizers, which are
// Rust's: since Rust 1.92 those of Unicode 17.0, 13 more.
var unicode170Numbers = sync.OnceValue(func() *table {
	return newTable(nil, ranges160, []classRange{{0x11de0, 0x11de9, number}, {0x16ff4, 0x16ff6, number}})
})

// unicode151 is llama.cpp's version.
var unicode151 = sync.OnceValue(func() *table { return newTable(nil, ranges160, unassigned151) })

// asciiCase is llama.cpp's notion of the cased letters of o200k and tekken: only
// ASCII letters have case, and marks are no part of words.
var asciiCase = sync.OnceValue(func() *table { return newTable(withoutCase, ranges160, unassigned151) })

// asciiCaseAndMarks is asciiCase with marks in words.
var asciiCaseAndMarks = sync.OnceValue(func() *table {
	return newTable(func(r rune, c class) class {
		if c&kinds == mark {
			return c
		}
		return withoutCase(r, c)
	}, ranges160, unassigned151)
})

func withoutCase(r rune, c class) class {
	switch {
	case r >= utf8.RuneSelf && letters.has(c):
		return c&^kinds | uncased
	case c&kinds == mark:
		return c &^ kinds
	}
	return c
}

// asciiPunctuation counts the symbols of ASCII as punctuation.
var asciiPunctuation = sync.OnceValue(func() *table {
	return newTable(func(r rune, c class) class {
		if r < utf8.RuneSelf && c&kinds == symbol {
			return c&^kinds | punct
		}
		return c
	}, ranges160, unassigned151)
})

// llamaHan is for llama.cpp's version of the pattern of Kimi K2, where letters
// have no case, marks are no part of words, and Han are some blocks.
var llamaHan = sync.OnceValue(func() *table {
	return newTable(func(r rune, c class) class {
		c &^= han
		switch {
		case letters.has(c):
			c = c&^kinds | uncased
		case c&kinds == mark:
			c &^= kinds
		}
		if r >= 0x4e00 && r <= 0x9fff || r >= 0x3400 && r <= 0x4dbf || r >= 0x20000 && r <= 0x2a6df ||
			r >= 0x2a700 && r <= 0x2ebef || r >= 0xf900 && r <= 0xfaff || r >= 0x2f800 && r <= 0x2fa1f {
			c |= han
		}
		return c
	}, ranges160, unassigned151)
})

func (t *table) of(r rune) class { return t.blocks[t.index[r>>6]][r&63] }

// at gives the class and the length in bytes of the character at b[i:], end for
// none.
func (t *table) at(b []byte, i int) (class, int) {
	if i >= len(b) {
		return end, 0
	}
	if b[i] < utf8.RuneSelf {
		return t.ascii[b[i]], 1
	}
	return t.wide(b[i:])
}

// wide is at for a character that is not ASCII.
func (t *table) wide(b []byte) (class, int) {
	if len(b) >= 2 && b[1]&0xc0 == 0x80 {
		if b[0]&0xe0 == 0xc0 && b[0] >= 0xc2 {
			return t.blocks[t.index[b[0]&0x1f]][b[1]&0x3f], 2
		}
		if b[0]&0xf0 == 0xe0 && len(b) >= 3 && b[2]&0xc0 == 0x80 {
			i := int(b[0]&0x0f)<<6 | int(b[1]&0x3f)
			if i >= 0x800>>6 && i&^0x1f != 0xd800>>6 { // neither overlong nor a surrogate
				return t.blocks[t.index[i]][b[2]&0x3f], 3
			}
			return other, 1
		}
	}
	if r, n := utf8.DecodeRune(b); n > 1 {
		return t.of(r), n
	}
	return other, 1
}

// run gives the end of the characters of s that begin at b[i:].
func (t *table) run(b []byte, i int, s set) int {
	for i < len(b) {
		if c := b[i]; c < utf8.RuneSelf {
			if !s.has(t.ascii[c]) {
				return i
			}
			i++
			continue
		}
		c, n := t.wide(b[i:])
		if !s.has(c) {
			return i
		}
		i += n
	}
	return i
}

// settled gives the length of b less an incomplete UTF-8 sequence at its end.
func settled(b []byte) int {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax+1; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}
