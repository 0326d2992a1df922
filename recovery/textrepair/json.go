package textrepair

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
)

// RepairJSON mends the strings of a JSON document: each string's value is taken for a text of its own, and what changes
// in it is written as JSON has it. Keys stay, but for Options.Keys. Everything else keeps its bytes, and the document
// stays JSON. Offsets are those of the document. Where it is no JSON, nothing changes and Result.Err says where.
func RepairJSON(doc []byte, o Options) *Result {
	if err := jsonrepair.Check(doc, 0); err != nil {
		return &Result{Text: doc, Err: &jsonrepair.Error{
			Offset: err.Offset, Cause: err.Cause, Tried: "nothing: repair the syntax first, by package jsonrepair",
		}}
	}
	e := newEngine(o)
	var text []byte
	for i := 0; !e.full(); i++ {
		n := bytes.IndexByte(doc[i:], '"')
		if n < 0 {
			break
		}
		i += n
		end, plain := stringEnd(doc, i)
		if o.Keys || !isKey(doc, end) {
			e.raw, e.fence = 0, fence{}
			if plain {
				if at, _ := e.scan(doc[i+1:end-1], 0, true); at < end-i-2 {
					plain = false
				}
				e.raw = 0
			}
			if !plain {
				text = e.repairString(doc, i+1, end-1, text[:0])
			}
		}
		i = end - 1
	}
	return e.result(doc)
}

// stringEnd returns where the string that begins at doc[i] ends, and whether it can be looked at as it is written: its
// escapes stand for nothing that may be changed, or be part of what is.
func stringEnd(doc []byte, i int) (end int, plain bool) {
	plain = true
	for i++; doc[i] != '"'; i++ {
		if doc[i] == '\\' {
			i++
			plain = plain && doc[i] != 'u' && doc[i] != 'r' && doc[i] != 'b'
		}
	}
	return i + 1, plain
}

// isKey reports whether a colon is the next token.
func isKey(doc []byte, i int) bool {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\t' || doc[i] == '\n' || doc[i] == '\r') {
		i++
	}
	return i < len(doc) && doc[i] == ':'
}

// repairString mends the string whose characters are doc[lo:hi]. It returns its text, to be used again as memory.
func (e *engine) repairString(doc []byte, lo, hi int, text []byte) []byte {
	whole := true
	for i := lo; i < hi; {
		c := readJSON(doc, i, hi)
		text = utf8.AppendRune(text, c.r)
		whole = whole && c.kind == ""
		i = c.end
	}
	if at, _ := e.scan(text, 0, true); at == len(text) && whole {
		return text
	}
	e.raw = 0
	e.input, e.base, e.quoted, e.floor = doc, 0, true, 0
	start := 0 // in text
	for i := lo; i < hi && !e.full(); {
		cells, size := e.cells[:0], 0
		for i < hi && size < MaxLine {
			c := readJSON(doc, i, hi)
			i = c.end
			if !e.does(Surrogate) {
				c.kind = ""
			}
			cells = append(cells, c)
			size += utf8.RuneLen(c.r)
			if c.r == '\n' {
				break
			}
		}
		e.cells = cells
		segment := text[start : start+size]
		e.raw |= rawIn(segment)
		e.context = text[max(0, start-contextSize):start]
		e.code = e.options.Kind == Code || e.options.Kind == Auto && e.fence.open()
		e.dropped = e.dropped[:0]
		e.mend(cells)
		e.fence.line(segment)
		start += size
	}
	return text
}

var shortEscapes = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '/': '/'}

// readJSON reads one character of a valid string at doc[i].
func readJSON(doc []byte, i, hi int) cell {
	if doc[i] != '\\' {
		r, n := decodeRune(doc[i:hi])
		return cell{r: r, start: i, end: i + n}
	}
	if doc[i+1] != 'u' {
		return cell{r: rune(shortEscapes[doc[i+1]]), start: i, end: i + 2}
	}
	r := hex4(doc[i+2:])
	if !utf16.IsSurrogate(r) {
		return cell{r: r, start: i, end: i + 6}
	}
	if i+12 <= hi && doc[i+6] == '\\' && doc[i+7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(doc[i+8:])); pair != utf8.RuneError {
			return cell{r: pair, start: i, end: i + 12}
		}
	}
	return cell{r: utf8.RuneError, start: i, end: i + 6, kind: Surrogate} // half of a pair
}

func hex4(b []byte) (r rune) {
	for _, d := range b[:4] {
		switch {
		case d <= '9':
			d -= '0'
		default:
			d = d | 0x20 - 'a' + 10
		}
		r = r<<4 | rune(d)
	}
	return r
}

const hexDigits = "0123456789abcdef"

// appendJSON appends a character as it stands in a JSON string; escaped asks for ASCII.
func appendJSON(b []byte, r rune, escaped bool) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(b, '\\', byte(r))
	case r == '\n':
		return append(b, `\n`...)
	case r == '\t':
		return append(b, `\t`...)
	case r == '\r':
		return append(b, `\r`...)
	case r >= ' ' && (r < utf8.RuneSelf || !escaped):
		return utf8.AppendRune(b, r)
	case r > 0xFFFF:
		high, low := utf16.EncodeRune(r)
		return appendEscape(appendEscape(b, high), low)
	}
	return appendEscape(b, r)
}

func appendEscape(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}
