package loop

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// A class is what a unit was taken for.
type class struct {
	context Context
	limit   limit
	single  bool // one character
}

// sample is how much of a unit is looked at, in bytes.
const sample = 4 << 10

// classify judges the unit that the tail repeats from start on.
func (d *Detector) classify(start, period int) class {
	unit := rotate(d.tail[start:], min(period, sample))
	before := d.tail[max(0, start-sample):start]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	t := survey(unit)
	c := t.class(unit, line)
	c.single = period <= utf8.UTFMax && utf8.RuneCount(unit) == 1
	c.limit = c.limit.or(t.wordless(c, period, before))
	if c.limit == prose && period >= longUnit {
		c.limit = longProse
	}
	return d.known(c, period, before)
}

// rotate returns n bytes of a run, those of a unit that begins with a line, or else
// with a word.
func rotate(run []byte, n int) []byte {
	head := run[:min(n, len(run)-n)]
	i := bytes.IndexByte(head, '\n')
	if i < 0 {
		i = bytes.IndexFunc(head, unicode.IsSpace)
	}
	if i < 0 {
		i = bytes.IndexFunc(head, func(r rune) bool { return r < utf8.RuneSelf && !isAlphanumeric(byte(r)) }) - 1
	}
	if i++; i <= 0 {
		for i = 0; i < len(head)-1 && i < utf8.UTFMax && !utf8.RuneStart(head[i]); {
			i++
		}
	}
	return run[i:][:n]
}

// wordless is what a unit needs that has no words one could read.
func (t *census) wordless(c class, period int, before []byte) limit {
	switch {
	case c.context != Prose || t.letters == 0:
	case (c.single || t.longest >= 40 || t.spaces == 0) && looksEncoded(before), t.longest >= 40 && t.spaces == 0 && t.plain:
		return encoded
	case !c.single && t.bases == t.letters:
		return encoded
	case c.single:
		return letterRun.or(limit{128 * period, 0})
	case t.words == 0 || period < 8 && t.longest < 3:
		return templates
	case period < 8 && t.spaces+t.newlines == 0:
		return syllables
	}
	return limit{}
}

// known applies what is known from the caller and from the text before.
func (d *Detector) known(c class, period int, before []byte) class {
	words := c.context == Prose || c.context == List
	judged := d.o.Context == "" || d.o.Context == Reasoning
	switch {
	case d.o.Context == Code || judged && d.lines.fenced():
		if words || c.context == JSON && !d.lines.json {
			c.context, c.limit = Code, c.limit.or(codeLimit(period))
		}
	case d.o.Context == Reasoning || d.o.Context == "" && d.lines.reasoning:
		if words {
			c.context = Reasoning
		}
	case d.o.Context != "":
		c.context, c.limit = d.o.Context, c.limit.or(limitOf(d.o.Context, period))
	case words && len(before) >= 200:
		// A string of many words in a program is no prose.
		if t := survey(before[max(0, len(before)-512):]); 12*t.marks >= t.letters+t.digits+t.others {
			c.context, c.limit = Code, c.limit.or(codeLimit(period))
		}
	}
	return c
}

func codeLimit(period int) limit {
	if period >= longLines {
		return longCode
	}
	return code
}

// limitOf is the least that a context known beforehand asks for.
func limitOf(c Context, period int) limit {
	switch c {
	case List:
		return listItems
	case Table:
		return rows
	case Code:
		return codeLimit(period)
	case Numbers:
		return numbers
	case JSON:
		return objects
	}
	return limit{}
}

// A census counts what a unit consists of, in characters.
type census struct {
	letters, digits, spaces, newlines, others int
	marks                                     int // that are frequent in code and rare in prose
	quotes, colons, commas, parens            int
	bases                                     int // letters of a genome, upper case
	words                                     int // of letters, two at least
	scalars                                   int // letters of true, null and the like
	lines, rows, items, indented              int
	opcodes                                   int  // lines that look like instructions of an assembler
	longest                                   int  // word, in bytes
	plain                                     bool // all letters are ASCII
}

func survey(unit []byte) (t census) {
	word := 0 // where the word begins
	t.plain = true
	endWord := func(i int) {
		if w := unit[word:i]; len(w) > 0 {
			t.longest = max(t.longest, len(w))
			if isScalar(w) {
				for _, c := range w {
					if c > '9' {
						t.scalars++
					}
				}
			} else if len(w) > 1 {
				t.words++
			}
		}
	}
	for i := 0; i < len(unit); {
		if i == 0 || unit[i-1] == '\n' {
			t.line(unit[i:])
		}
		r, n := utf8.DecodeRune(unit[i:])
		letter := unicode.IsLetter(r) || unicode.IsMark(r) || r == utf8.RuneError
		if !letter && !unicode.IsDigit(r) {
			endWord(i)
			word = i + n
		}
		switch {
		case letter:
			t.letters++
			t.plain = t.plain && n == 1
			switch r {
			case 'A', 'C', 'G', 'T', 'U', 'N':
				t.bases++
			}
		case unicode.IsDigit(r):
			t.digits++
		case r == '\n':
			t.newlines++
		case unicode.IsSpace(r):
			t.spaces++
		default:
			t.others++
			t.mark(r)
		}
		i += n
	}
	endWord(len(unit))
	return t
}

func (t *census) mark(r rune) {
	switch r {
	case '{', '}', '[', ']', ';', '=', '<', '>', '/', '\\', '$', '@', '&', '+', '^', '%', '~', '_', '|', ')':
		t.marks++
	case '"':
		t.quotes++
	case '(':
		t.parens++
		t.marks++
	case ':':
		t.colons++
	case ',':
		t.commas++
	}
	if r > unicode.MaxASCII && unicode.IsSymbol(r) && r >= 0x1f000 {
		t.letters++ // an emoji says something
		t.others--
	}
}

// line looks at the beginning of a line.
func (t *census) line(s []byte) {
	t.lines++
	if len(s) > 0 && s[0] == '\t' || bytes.HasPrefix(s, []byte("    ")) {
		t.indented++
		if len(s) > 2 && s[1] >= 'A' && s[1] <= 'Z' && s[2] >= 'A' && s[2] <= 'Z' {
			t.opcodes++
		}
	}
	s = bytes.TrimLeft(s, " \t>")
	switch {
	case len(s) == 0:
	case s[0] == '|' || bytes.HasPrefix(s, []byte("│")) || bytes.HasPrefix(s, []byte("+-")):
		t.rows++
	case isItem(s):
		t.items++
	}
}

// isItem reports whether a line begins with the marker of a list.
func isItem(s []byte) bool {
	if len(s) > 1 && (s[0] == '-' || s[0] == '*' || s[0] == '+') {
		return s[1] == ' '
	}
	if bytes.HasPrefix(s, []byte("•")) {
		return true
	}
	i := 0
	for i < len(s) && i < 9 && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i > 0 && i+1 < len(s) && (s[i] == '.' || s[i] == ')') && s[i+1] == ' '
}

var scalars = map[string]bool{
	"true": true, "false": true, "null": true, "nil": true, "none": true, "nan": true,
	"inf": true, "x": true, "e": true, "undefined": true, "na": false,
}

// isScalar reports whether a word is a literal, or a number in hexadecimal.
func isScalar(w []byte) bool {
	if len(w) > len("undefined") {
		return isHex(w)
	}
	return scalars[string(bytes.ToLower(w))] || isHex(w)
}

// isHex reports whether w is written with digits of base 16, one of which at least is
// a decimal one, with or without 0x.
func isHex(w []byte) bool {
	decimal := len(w) > 1 && bytes.Count(w, w[:1]) == len(w) // ffff
	for i, c := range w {
		switch {
		case i == 0 && c == 'x' && len(w) == 3: // of \x00
		case c >= '0' && c <= '9':
			decimal = true
		case c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
		case i == 1 && (c == 'x' || c == 'X') && w[0] == '0':
		case i > 0 && i == len(w)-1 && (c == 'L' || c == 'u' || c == 'h'):
		default:
			return false
		}
	}
	return decimal
}

// class judges a unit by its census, and by the beginning of the line where it
// begins, which is used if it has no line end itself.
func (t *census) class(unit, line []byte) class {
	line = bytes.TrimLeft(line, " \t>")
	printed := t.letters + t.digits + t.others
	switch letters := t.letters - t.scalars; {
	case bytes.IndexByte(unit, 0) >= 0: // a table of strings
		return class{context: Code, limit: encoded}
	case 2*t.rows > t.lines, t.newlines == 0 && len(line) > 0 && line[0] == '|':
		return class{context: Table, limit: rows}
	case isTag(unit):
		return class{context: Prose, limit: tags}
	case t.letters == 0 && t.digits == 0:
		if t.newlines > 0 && t.others > 0 {
			return class{context: Prose, limit: marks}
		}
		return class{context: Prose, limit: ruler}
	case letters <= 0 && t.spaces+t.newlines+t.others == 0:
		return class{context: Numbers, limit: digits}
	case letters <= 0:
		return class{context: Numbers, limit: numbers}
	case 10*letters < 3*printed:
		return class{context: Code, limit: templates}
	case t.quotes > 1 && (t.colons > 0 || t.commas > 0) && t.parens == 0 && 20*(t.quotes+t.marks) >= printed && t.marks+t.commas > 0:
		return class{context: JSON, limit: objects}
	case t.opcodes > 0 && t.opcodes == t.lines:
		return class{context: Code, limit: listing}
	case 25*t.marks >= printed && t.others > 0, 2*t.indented > t.lines && t.newlines > 0:
		return class{context: Code, limit: codeLimit(len(unit))}
	case 2*t.items > t.lines && t.newlines > 0:
		return class{context: List, limit: listItems}
	}
	return class{context: Prose, limit: prose}
}

// isTag reports whether the unit is one tag of the kind that models end sections
// with, such as </think> or <|im_end|>, and white space. Documents nest <div>s.
func isTag(unit []byte) bool {
	s := bytes.TrimSpace(unit)
	i := bytes.IndexByte(s, '<')
	if i < 0 || len(s) > 64 {
		return false
	}
	// Any rotation of it will do.
	s = append(append([]byte(nil), s[i:]...), s[:i]...)
	s = bytes.TrimSpace(s)
	if bytes.IndexByte(s, '>') != len(s)-1 {
		return false
	}
	name := bytes.Trim(s, "<>/|｜[] \n")
	if len(s) > 2 && s[1] == '|' || bytes.HasPrefix(s, []byte("<｜")) {
		return len(name) > 0
	}
	switch string(bytes.ToLower(name)) {
	case "think", "thinking", "reasoning", "thought", "analysis", "reflection", "answer", "final", "response",
		"tool_call", "tool_response", "tool_calls", "function_call", "scratchpad", "output", "s", "eos", "bos", "pad", "unk", "eot":
		return true
	}
	return false
}

// looksEncoded reports whether a text ends in data rather than words: 40 characters at
// least without a space, with letters of both cases or digits.
func looksEncoded(text []byte) bool {
	const least = 40
	text = text[max(0, len(text)-512):]
	text = text[bytes.LastIndexAny(text, " \t")+1:]
	var lower, upper, digit int
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z':
			lower++
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= '0' && c <= '9':
			digit++
		}
	}
	return lower+upper+digit >= least && (digit > 0 || lower > 0 && upper > 0)
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
