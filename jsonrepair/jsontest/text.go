package jsontest

import (
	"fmt"
	"unicode/utf8"
)

// text appends a string of about size bytes.
func (g *Generator) text(size int) {
	g.put(`"`)
	defer g.put(`"`)
	if size <= 2 && g.one(2) || size < 200 && g.one(25) {
		return
	}
	e := &encoded[g.below(len(encoded))]
	words := e.words
	if g.one(2) {
		words = e.frays
	}
	if size < 200 && g.one(3) { // nothing else: the shortest inputs are the hardest
		g.put(g.pick(e.frays))
		return
	}
	spaced := !g.one(3)
	length := size - 2
	if size < 200 {
		length = g.log(length)
	}
	for end := len(g.dst) + length; ; {
		switch n := g.below(32); {
		case n < 16:
			g.put(g.pick(words))
		case n < 25:
			g.put(g.pick(e.frays))
		case n < 27:
			g.put(g.pick(escapes))
		case n < 28:
			g.rune(e.escape)
		default:
			g.put(g.pick(e.words))
		}
		if len(g.dst) >= end {
			return
		}
		if spaced && !g.one(4) {
			g.put(" ")
		}
	}
}

// key appends a member's name.
func (g *Generator) key() {
	if g.below(10) < 7 {
		g.put(`"`)
		g.put(g.pick(names))
		g.put(`"`)
		return
	}
	g.text(24)
}

// rune appends any character, from all planes.
func (g *Generator) rune(escape func([]byte, rune) []byte) {
	var r rune
	switch g.below(5) {
	case 0:
		r = rune(g.below(0x80))
	case 1:
		r = rune(g.below(0x800))
	case 2:
		r = rune(0x2000 + g.below(0x400)) // punctuation, arrows, signs
	case 3:
		r = rune(0x1f300 + g.below(0x400)) // pictures
	default:
		r = rune(g.below(utf8.MaxRune + 1))
	}
	if !utf8.ValidRune(r) {
		r = 0xfffd
	}
	g.dst = escape(g.dst, r)
}

// An encoding is a way to write strings, with the pieces written in it.
type encoding struct {
	escape       func([]byte, rune) []byte
	words, frays []string
}

// encoded are the ways in which serializers differ.
var encoded = [...]encoding{
	newEncoding(escapeFew),
	newEncoding(escapeFew),
	newEncoding(escapeFew),
	newEncoding(escapeSlash),
	newEncoding(escapeASCII),
	newEncoding(escapeHTML),
	newEncoding(escapeHex),
}

func newEncoding(escape func([]byte, rune) []byte) encoding {
	all := func(pieces []string) (out []string) {
		for _, p := range pieces {
			var b []byte
			for _, r := range p {
				b = escape(b, r)
			}
			out = append(out, string(b))
		}
		return out
	}
	return encoding{escape, all(words), all(frays)}
}

// escapeFew escapes what must be.
func escapeFew(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	if r < ' ' {
		return fmt.Appendf(dst, `\u%04x`, r)
	}
	return utf8.AppendRune(dst, r)
}

// escapeSlash is as PHP does.
func escapeSlash(dst []byte, r rune) []byte {
	if r == '/' {
		return append(dst, `\/`...)
	}
	return escapeFew(dst, r)
}

// escapeASCII is as Python does.
func escapeASCII(dst []byte, r rune) []byte {
	if r < 0x80 && r != 0x7f {
		return escapeFew(dst, r)
	}
	return escapeUnits(dst, r, `\u%04x`)
}

// escapeHTML is as Go does.
func escapeHTML(dst []byte, r rune) []byte {
	switch r {
	case '<', '>', '&', '\u2028', '\u2029':
		return escapeUnits(dst, r, `\u%04x`)
	}
	return escapeFew(dst, r)
}

// escapeHex writes everything but letters, digits and spaces as UTF-16, in
// capitals.
func escapeHex(dst []byte, r rune) []byte {
	if r == ' ' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
		return append(dst, byte(r))
	}
	return escapeUnits(dst, r, `\u%04X`)
}

func escapeUnits(dst []byte, r rune, format string) []byte {
	if r < 0x10000 {
		return fmt.Appendf(dst, format, r)
	}
	r -= 0x10000
	return fmt.Appendf(fmt.Appendf(dst, format, 0xd800+r>>10), format, 0xdc00+r&0x3ff)
}
