package jsonrepair

import (
	"strconv"
	"unicode/utf8"
)

// maxOpen is the most containers that Result.Open names, from the outermost.
const maxOpen = 100

// level is an open container, for what it is called.
type level struct {
	object bool
	at     int    // offset in the input
	index  int    // of the last element
	indent int    // of the line that it begins in, in bytes; none, as below
	column int    // of its members and elements that begin a line
	key    []byte // last key, as JSON without its marks
}

func (e *engine) push(f frame, p int) {
	e.stack.push(f)
	if n := e.stack.n; n <= maxOpen {
		if n > cap(e.levels) {
			e.levels = append(e.levels[:n-1], level{})
		}
		e.levels = e.levels[:n]
		l := &e.levels[n-1]
		*l = level{f.isObject(), p, -1, none, none, l.key[:0]}
		if e.o.layout {
			l.indent = e.indent(p)
		}
	}
	if e.o.MaxDepth > 0 && e.stack.n > e.o.MaxDepth {
		e.fail(p, "more containers are open than allowed", "raise MaxDepth")
	}
}

func (e *engine) pop() {
	e.stack.pop()
	if e.stack.n < len(e.levels) {
		e.levels = e.levels[:e.stack.n]
	}
}

// level returns the innermost container, or nil if it is too deep to be named.
func (e *engine) level() *level {
	if n := e.stack.n; n > 0 && n == len(e.levels) {
		return &e.levels[n-1]
	}
	return nil
}

// nameKey notes the held key, which ends at end, marks included.
func (e *engine) nameKey(end int) {
	l := e.level()
	if l == nil {
		return
	}
	l.key = l.key[:0]
	if e.done > e.keyStart {
		return
	}
	at := e.keyStart
	for _, c := range e.held {
		if c.from < at || c.from >= end && c.to > c.from {
			continue
		}
		l.key = append(l.key, e.in[at-e.base:c.from-e.base]...)
		l.key = append(l.key, c.after...)
		at = c.to
	}
	if at < end {
		l.key = append(l.key, e.in[at-e.base:end-e.base]...)
	}
	if n := len(l.key); n >= 2 {
		l.key = l.key[1 : n-1]
	}
}

// opened lists the open containers, and what is open in the innermost.
func (e *engine) opened(kind string, at int) []Open {
	var list []Open
	var path []byte
	for i := range e.levels {
		l := &e.levels[i]
		c := "array"
		if l.object {
			c = "object"
		}
		list = append(list, Open{string(path), c, l.at})
		switch {
		case !l.object:
			n := l.index
			if i == len(e.levels)-1 && kind != "string" {
				n++ // it has not been counted
			}
			path = strconv.AppendInt(append(path, '/'), int64(n), 10)
		case i < len(e.levels)-1 || kind != "key":
			path = appendPointer(append(path, '/'), l.key)
		}
	}
	if kind != "" && e.stack.n == len(e.levels) {
		list = append(list, Open{string(path), kind, at})
	}
	return list
}

// appendPointer appends the text of a JSON string, given without its marks, as a
// part of a JSON Pointer.
func appendPointer(out, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		r, n := utf8.DecodeRune(s[i:])
		if s[i] == '\\' && i+1 < len(s) {
			r, n = decodeEscape(s[i:])
		}
		switch r {
		case '~':
			out = append(out, "~0"...)
		case '/':
			out = append(out, "~1"...)
		default:
			out = utf8.AppendRune(out, r)
		}
		i += n - 1
	}
	return out
}

// decodeEscape decodes the escape that s begins with and returns its length.
func decodeEscape(s []byte) (rune, int) {
	switch s[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		if len(s) < 6 {
			return utf8.RuneError, len(s)
		}
		v, err := strconv.ParseUint(string(s[2:6]), 16, 32)
		if err != nil {
			return utf8.RuneError, 2
		}
		if v >= 0xd800 && v < 0xdc00 && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
			if low, err := strconv.ParseUint(string(s[8:12]), 16, 32); err == nil && low >= 0xdc00 && low < 0xe000 {
				return rune((v-0xd800)<<10|(low-0xdc00)) + 0x10000, 12
			}
		}
		return rune(v), 6
	}
	return rune(s[1]), 2
}
