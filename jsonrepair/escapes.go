package jsonrepair

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// escape judges a backslash in a string. It looks ahead.
func (e *engine) escape(p int) action {
	c, ok := e.peek(p + 1)
	if !ok {
		return action{do: runIt, run: func() { e.cutString(p) }}
	}
	if e.str.quote == escapedDouble && c == '\\' {
		return e.escapedTwice(p)
	}
	if e.str.path && (c != '"' || e.plainEnd(p+2)) {
		if c == '\\' {
			return e.copy(2)
		}
		return e.replaceString(InvalidEscape, 1, `\\`)
	}
	switch c {
	case '"', '\\', '/':
		return e.copy(2)
	case 'b', 'f', 'n', 'r', 't':
		return e.suspicious(p, c)
	case 'u':
		return e.unicodeEscape(p)
	case '\n':
		return e.replaceString(InvalidEscape, 1, "")
	case '\'', '_', '`', '*', '~':
		return e.replaceString(InvalidEscape, 1, "")
	case 'x':
		if v, ok := e.hex(p+2, 2); ok {
			return e.replaceString(InvalidEscape, 4, fmt.Sprintf(`\u%04x`, v))
		}
	case 'U':
		if v, ok := e.hex(p+2, 8); ok && utf8.ValidRune(rune(v)) {
			after := string(rune(v))
			if v < ' ' || v == '"' || v == '\\' {
				after = fmt.Sprintf(`\u%04x`, v)
			}
			return e.replaceString(InvalidEscape, 10, after)
		}
	case '0':
		if d, _ := e.peek(p + 2); d < '0' || d > '9' {
			return e.replaceString(InvalidEscape, 2, `\u0000`)
		}
	}
	if c < ' ' {
		return e.replaceString(InvalidEscape, 2, controlEscape(c))
	}
	if q, n := e.quoteAt(p + 1); n > 1 && (q == smartDouble || q == smartSingle) {
		return e.replaceString(InvalidEscape, 1, "")
	}
	return e.replaceString(InvalidEscape, 1, `\\`)
}

// escapedTwice judges two backslashes in a string of a text that was escaped as a
// whole: they stand for one, that of an escape.
func (e *engine) escapedTwice(p int) action {
	once := action{do: runIt, run: func() { e.edit(Quote, p, p+1, ""); e.pos = p + 3 }}
	switch c, ok := e.peek(p + 2); {
	case !ok:
		return action{do: runIt, run: func() { e.cutString(p) }}
	case e.has(p+2, `\\`), e.has(p+2, `\"`):
		return action{do: runIt, run: func() {
			e.edit(Quote, p, p+1, "")
			e.edit(Quote, p+2, p+3, "")
			e.pos = p + 4
		}}
	case c == 'b', c == 'f', c == 'n', c == 'r', c == 't', c == '/', c == '"':
		return once
	case c == 'u':
		if _, ok := e.hex(p+3, 4); ok {
			return once
		}
	}
	return e.copy(2)
}

// hex reads n hexadecimal digits at p. It looks ahead.
func (e *engine) hex(p, n int) (uint64, bool) {
	var b [8]byte
	for i := range n {
		c, ok := e.peek(p + i)
		if !ok {
			return 0, false
		}
		b[i] = c
	}
	v, err := strconv.ParseUint(string(b[:n]), 16, 64)
	return v, err == nil && b[0] != '+' && b[0] != '-'
}

// unicodeEscape judges \u.
func (e *engine) unicodeEscape(p int) action {
	digits := 0
	for digits < 4 {
		c, ok := e.peek(p + 2 + digits)
		if !ok {
			return action{do: runIt, run: func() { e.cutString(p) }}
		}
		if !isHex(c) {
			return e.replaceString(InvalidEscape, 1, `\\`)
		}
		digits++
	}
	v, _ := e.hex(p+2, 4)
	if !utf16.IsSurrogate(rune(v)) {
		return e.copy(6)
	}
	if v < 0xdc00 {
		const next = `\u`
		for i := range 6 {
			c, ok := e.peek(p + 6 + i)
			switch {
			case !ok:
				return action{do: runIt, run: func() { e.cutString(p) }}
			case i < 2 && c != next[i], i >= 2 && !isHex(c):
				return e.loneSurrogate(p)
			}
		}
		if low, _ := e.hex(p+8, 4); low >= 0xdc00 && low < 0xe000 {
			return e.copy(12)
		}
	}
	return e.loneSurrogate(p)
}

func (e *engine) loneSurrogate(p int) action {
	return action{do: runIt, run: func() {
		e.find(LoneSurrogate, p, 6, "half of a surrogate pair stands for no character")
		e.pos += 6
	}}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// drive reports whether the string whose content begins at p begins as a Windows
// path does whose backslashes were not escaped, and whether that is certain: one
// of them begins no escape. It looks ahead.
func (e *engine) drive(p int) (shape, certain bool) {
	c, _ := e.peek(p)
	if c < 'A' || c > 'Z' && c < 'a' || c > 'z' || !e.has(p+1, `:\`) {
		return false, false
	}
	for r := p + 2; ; r++ {
		c, ok := e.peek(r)
		if !ok || c == '"' || c == '\n' {
			return r > p+2, false
		}
		if c != '\\' {
			continue
		}
		r++
		switch c, ok := e.peek(r); {
		case !ok, c == '\\':
			return false, false
		case c == '"' || c == '/' || c == 'b' || c == 'f' || c == 'n' || c == 'r' || c == 't':
		case c == 'u':
			if _, ok := e.hex(r+1, 4); !ok {
				return true, true
			}
		default:
			return true, true
		}
	}
}

// latex holds beginnings of LaTeX commands that a JSON escape would swallow, by the
// escape's letter.
var latex = map[byte][]string{
	'b': {"ar", "egin", "eta", "ecause", "ig", "inom", "ldot", "m", "oldsymbol", "ot", "owtie", "ox", "ullet", "f", "ackslash"},
	'f': {"box", "lat", "orall", "rac", "rown", "ootnote"},
	'n': {"abla", "e", "eg", "eq", "ewcommand", "ewline", "exists", "i", "ot", "otin", "u", "parallel", "rightarrow", "leq", "geq"},
	'r': {"angle", "bar", "ceil", "ef", "floor", "ho", "ight", "ightarrow", "m"},
	't': {"ag", "an", "anh", "au", "ext", "extbf", "extit", "extrm", "frac", "heta", "hetas", "hickapprox", "hicksim", "ilde", "imes", "o", "op", "riangle"},
}

// suspicious judges an escape that is valid, and may yet be the beginning of a
// LaTeX command or part of a path. It looks ahead.
func (e *engine) suspicious(p int, c byte) action {
	if e.str.drive {
		return e.suspect(p, "it may be a backslash of a path", e.o.Paths)
	}
	if command := e.latexAt(p+2, c); command != "" {
		return e.suspect(p, `it may begin \`+command+` of LaTeX`, e.o.LaTeX)
	}
	return e.copy(2)
}

func (e *engine) suspect(p int, what string, mend bool) action {
	if mend {
		return action{do: runIt, run: func() {
			e.edit(SuspiciousEscape, p, p+1, `\\`)
			e.pos = p + 2
		}}
	}
	return action{do: runIt, run: func() {
		e.find(SuspiciousEscape, p, 2, "this escape is valid, but "+what)
		e.pos = p + 2
	}}
}

// latexAt returns the LaTeX command whose first letter is c and whose others stand
// at p. Commands that begin with n, r or t count inside dollar signs only: a line
// may well begin with the rest of one.
func (e *engine) latexAt(p int, c byte) string {
	if c != 'b' && c != 'f' && !e.str.math {
		return ""
	}
	var word []byte
	for len(word) < 12 {
		d, ok := e.peek(p + len(word))
		if !ok || d < 'A' || d > 'Z' && d < 'a' || d > 'z' {
			break
		}
		word = append(word, d)
	}
	for _, rest := range latex[c] {
		if string(word) == rest {
			return string(c) + rest
		}
	}
	return ""
}
