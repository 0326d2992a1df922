package toolcall

import (
	"bytes"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
)

// maxPyDepth is how deep a Python value may be nested.
const maxPyDepth = 200

// pyReader turns a Python literal into JSON. JSON's own literals are read too.
type pyReader struct {
	src []byte
	p   int
	cut bool // the source breaks off: a string may lack its end
}

func (v *pyReader) blank() {
	for v.p < len(v.src) && isSpace(v.src[v.p]) {
		v.p++
	}
}

func (v *pyReader) peek() byte {
	if v.p < len(v.src) {
		return v.src[v.p]
	}
	return 0
}

// value appends the value at p as JSON.
func (v *pyReader) value(dst []byte, depth int) ([]byte, bool) {
	v.blank()
	switch c := v.peek(); {
	case depth > maxPyDepth:
		return dst, false
	case c == '{':
		return v.dict(dst, depth)
	case c == '[':
		return v.items(dst, ']', depth)
	case c == '(':
		return v.items(dst, ')', depth)
	case v.atString():
		return v.strings(dst)
	default:
		return v.word(dst)
	}
}

// items appends the elements of a list or tuple. A value alone in parentheses is itself.
func (v *pyReader) items(dst []byte, end byte, depth int) ([]byte, bool) {
	v.p++
	from := len(dst)
	dst = append(dst, '[')
	comma, n := false, 0
	for {
		v.blank()
		if v.peek() == end {
			v.p++
			break
		}
		if n > 0 {
			if !comma {
				return dst, false
			}
			dst = append(dst, ", "...)
		}
		var ok bool
		if dst, ok = v.value(dst, depth+1); !ok {
			return dst, false
		}
		n++
		v.blank()
		if comma = v.peek() == ','; comma {
			v.p++
		}
	}
	if end == ')' && n == 1 && !comma {
		return append(dst[:from], dst[from+1:]...), true
	}
	return append(dst, ']'), true
}

// dict appends the members of a dictionary. Keys that are no strings become strings.
func (v *pyReader) dict(dst []byte, depth int) ([]byte, bool) {
	v.p++
	dst = append(dst, '{')
	comma := false
	for n := 0; ; n++ {
		v.blank()
		if v.peek() == '}' {
			v.p++
			return append(dst, '}'), true
		}
		if n > 0 {
			if !comma {
				return dst, false
			}
			dst = append(dst, ", "...)
		}
		key, ok := v.value(nil, depth+1)
		if !ok || len(key) == 0 || key[0] == '{' || key[0] == '[' {
			return dst, false
		}
		if key[0] != '"' {
			key = appendString(nil, key)
		}
		dst = append(append(dst, key...), ": "...)
		if v.blank(); v.peek() != ':' {
			return dst, false
		}
		v.p++
		if dst, ok = v.value(dst, depth+1); !ok {
			return dst, false
		}
		v.blank()
		if comma = v.peek() == ','; comma {
			v.p++
		}
	}
}

// word appends a number or literal.
func (v *pyReader) word(dst []byte) ([]byte, bool) {
	from := v.p
	for v.p < len(v.src) && (isWord(v.src[v.p]) || strings.IndexByte("+-.", v.src[v.p]) >= 0) {
		v.p++
	}
	w := string(v.src[from:v.p])
	switch w {
	case "True", "true":
		return append(dst, "true"...), !v.cut
	case "False", "false":
		return append(dst, "false"...), !v.cut
	case "None", "null":
		return append(dst, "null"...), !v.cut
	}
	n, ok := pyNumber(w)
	return append(dst, n...), ok && !v.cut
}

// pyNumber returns a Python number as JSON spells it. The text of a decimal one is kept.
func pyNumber(w string) (string, bool) {
	sign := ""
	if strings.HasPrefix(w, "-") {
		sign, w = "-", w[1:]
	} else {
		w = strings.TrimPrefix(w, "+")
	}
	if w == "" || strings.IndexByte("0123456789.", w[0]) < 0 || strings.HasSuffix(w, "_") || strings.Contains(w, "__") {
		return "", false
	}
	w = strings.ReplaceAll(w, "_", "")
	if len(w) > 2 && w[0] == '0' && strings.IndexByte("xXoObB", w[1]) >= 0 {
		n, ok := new(big.Int).SetString(w, 0)
		if !ok || len(w) > 1000 {
			return "", false
		}
		return sign + n.String(), true
	}
	if w[0] == '.' {
		w = "0" + w
	}
	for _, s := range []string{".e", ".E"} {
		w = strings.Replace(w, s, ".0e", 1)
	}
	if strings.HasSuffix(w, ".") {
		w += "0"
	}
	return sign + w, jsonrepair.Check([]byte(w), 0) == nil
}

// atString reports whether a string begins at p, with or without a prefix.
func (v *pyReader) atString() bool {
	for i := v.p; i < len(v.src) && i < v.p+3; i++ {
		switch c := v.src[i]; {
		case c == '"' || c == '\'':
			return true
		case strings.IndexByte("rRuUbBfF", c) < 0:
			return false
		}
	}
	return false
}

// strings appends adjacent strings as one.
func (v *pyReader) strings(dst []byte) ([]byte, bool) {
	var text []byte
	for v.atString() {
		var ok bool
		if text, ok = v.string(text); !ok {
			return dst, false
		}
		v.blank()
	}
	return appendString(dst, text), true
}

// string appends the text of the string at p.
func (v *pyReader) string(text []byte) ([]byte, bool) {
	raw := false
	for ; v.src[v.p] != '"' && v.src[v.p] != '\''; v.p++ {
		raw = raw || v.src[v.p]|0x20 == 'r'
	}
	quote := v.src[v.p : v.p+1]
	if long := bytes.Repeat(quote, 3); bytes.HasPrefix(v.src[v.p:], long) {
		quote = long
	}
	v.p += len(quote)
	for v.p < len(v.src) {
		switch c := v.src[v.p]; {
		case bytes.HasPrefix(v.src[v.p:], quote):
			v.p += len(quote)
			return text, true
		case c == '\\' && v.p+1 < len(v.src):
			if raw {
				text = append(text, v.src[v.p:v.p+2]...)
				v.p += 2
			} else {
				text = v.escape(text)
			}
		case c == '\\' && v.cut:
			v.p++
		default:
			text = append(text, c)
			v.p++
		}
	}
	if n := wholeCharacters(text); v.cut {
		text = text[:n]
	}
	return text, v.cut
}

var pyEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'a': "\a", 'v': "\v", '\\': "\\", '\'': "'", '"': "\"", '\n': ""}

// escape appends what the escape at p stands for. An unknown one is itself, as in Python.
func (v *pyReader) escape(text []byte) []byte {
	c := v.src[v.p+1]
	if s, ok := pyEscapes[c]; ok {
		v.p += 2
		return append(text, s...)
	}
	digits, base := 0, 16
	from := v.p + 2
	switch {
	case c == 'x':
		digits = 2
	case c == 'u':
		digits = 4
	case c == 'U':
		digits = 8
	case c >= '0' && c <= '7':
		from, base = v.p+1, 8
		for digits < 3 && from+digits < len(v.src) && v.src[from+digits] >= '0' && v.src[from+digits] <= '7' {
			digits++
		}
	}
	if digits == 0 || from+digits > len(v.src) {
		if digits > 0 && v.cut {
			v.p = len(v.src)
			return text
		}
		v.p += 2
		return append(text, '\\', c)
	}
	n, err := strconv.ParseUint(string(v.src[from:from+digits]), base, 32)
	if err != nil || n > utf8.MaxRune {
		v.p += 2
		return append(text, '\\', c)
	}
	v.p = from + digits
	if n >= 0xd800 && n < 0xdc00 && bytes.HasPrefix(v.src[v.p:], []byte(`\u`)) && v.p+6 <= len(v.src) {
		if low, err := strconv.ParseUint(string(v.src[v.p+2:v.p+6]), 16, 32); err == nil && low >= 0xdc00 && low < 0xe000 {
			v.p += 6
			n = 0x10000 + (n-0xd800)<<10 + low - 0xdc00
		}
	}
	return utf8.AppendRune(text, rune(n))
}
