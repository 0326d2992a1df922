package bpe

import (
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// chars finds the symbols that merging starts from by code point.
type chars struct {
	basic  []symbol // of the Basic Multilingual Plane; noSymbol if none
	astral map[rune]symbol
}

func newChars(m *Model, names *names) *chars {
	c := &chars{basic: make([]symbol, 1<<16), astral: map[rune]symbol{}}
	for i := range c.basic {
		c.basic[i] = noSymbol
	}
	for i := range m.tokens + len(names.extras) {
		b := names.bytes(symbol(i))
		if len(b) == 0 || len(b) > utf8.UTFMax {
			continue
		}
		if size, valid := charSize(b); !valid || size != len(b) {
			continue
		}
		if sym, ok := names.find(b); !ok || sym != symbol(i) {
			continue
		}
		if r, _ := utf8.DecodeRune(b); r < 1<<16 {
			c.basic[r] = symbol(i)
		} else {
			c.astral[r] = symbol(i)
		}
	}
	return c
}

func (c *chars) of(r rune) symbol {
	if uint32(r) < 1<<16 {
		return c.basic[r]
	}
	if sym, ok := c.astral[r]; ok {
		return sym
	}
	return noSymbol
}

// charSize is the length of the first character of b in bytes. A byte that is
// not part of valid UTF-8 is a character of its own.
func charSize(b []byte) (size int, valid bool) {
	r, size := utf8.DecodeRune(b)
	return size, r != utf8.RuneError || size > 1
}

// appendChars appends the symbols of the characters of a piece: never more
// than it has bytes.
func (m *Model) appendChars(syms []symbol, piece []byte) []symbol {
	for len(piece) > 0 {
		size, valid := 1, true
		var sym symbol
		if b := piece[0]; b < utf8.RuneSelf {
			sym = m.chars.basic[b]
		} else {
			var r rune
			r, size = utf8.DecodeRune(piece)
			if valid = r != utf8.RuneError || size > 1; valid {
				sym = m.chars.of(r)
			}
		}
		if valid && sym != noSymbol {
			syms = append(syms, sym)
		} else {
			syms = m.appendLost(syms, piece[:size])
		}
		piece = piece[size:]
	}
	return syms
}

// appendLost appends what stands for a character without a symbol.
func (m *Model) appendLost(syms []symbol, char []byte) []symbol {
	switch {
	case m.hasFallback(char):
		for _, b := range char {
			syms = append(syms, symbol(m.fallback[b]))
		}
	case m.unknown != vocab.None:
		syms = append(syms, symbol(m.unknown))
	case !m.dropFirst:
		syms = append(syms, noSymbol)
	}
	return syms
}

func (m *Model) hasFallback(char []byte) bool {
	for _, b := range char {
		if m.fallback[b] == vocab.None {
			return false
		}
	}
	return true
}
