package extract

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
)

// value reads a value that begins with text, in a line that has been taken, of a
// member or item that is indented by indent.
func (y *yamlReader) value(text []byte, off, indent int) {
	text, off = y.tag(text, off)
	if y.err != nil {
		return
	}
	switch c := text[0]; {
	case c == '|' || c == '>':
		if y.blockScalar(text, indent) {
			return
		}
	case c == '"' || c == '\'':
		if y.quotedScalar(text, off, indent) {
			return
		}
	case c == '[' || c == '{':
		if y.flowValue(text, off, indent) {
			return
		}
	case (c == '&' || c == '*') && len(text) > 1 && isWord(text[1]) && (c == '&' || !bytes.ContainsAny(text[1:], " *")):
		y.stop(off, "anchors and aliases are not read")
		return
	}
	y.plain(text, off, indent)
}

// tag passes a tag of the core schema.
func (y *yamlReader) tag(text []byte, off int) ([]byte, int) {
	if text[0] != '!' {
		return text, off
	}
	for _, t := range []string{"!!str ", "!!int ", "!!float ", "!!bool "} {
		if rest, ok := bytes.CutPrefix(text, []byte(t)); ok {
			rest = bytes.TrimLeft(rest, " ")
			if t == "!!str " && rest[0] != '"' && rest[0] != '\'' && rest[0] != '|' && rest[0] != '>' {
				rest = appendString(nil, rest)
			}
			return rest, off + len(text) - len(rest)
		}
	}
	if string(text) != "!" && text[1] != ' ' {
		y.stop(off, "tags are not read")
	}
	return text, off
}

// more reports whether the next line goes on with a scalar of a member that is
// indented by indent: it is indented deeper, or empty. It takes comments for text.
func (y *yamlReader) more(indent int) (*yamlLine, bool) {
	if y.at >= len(y.lines) {
		return nil, false
	}
	l := &y.lines[y.at]
	return l, len(l.text) == 0 || l.indent > indent
}

// plain reads a plain scalar, which may go on in the lines below.
func (y *yamlReader) plain(text []byte, off, indent int) {
	text = uncomment(text)
	var s []byte
	breaks := 0
	for {
		l, ok := y.more(indent)
		if !ok {
			break
		}
		if len(l.text) == 0 {
			breaks++
			y.at++
			continue
		}
		if l.text[0] == '#' {
			break
		}
		if _, _, key := y.key(l.text); key || isDash(l.text) {
			y.stop(l.off, "a member has a value and members of its own")
			return
		}
		if s == nil {
			s = append(s, text...)
		}
		s = fold(s, breaks)
		s = append(s, uncomment(l.text)...)
		breaks = 0
		y.at++
	}
	y.at -= breaks
	if s != nil {
		y.b = appendString(y.b, s)
		return
	}
	if bytes.Contains(text, []byte(": ")) {
		y.finding(y.out, PlainText, off, len(text), "a colon in a plain value, which YAML forbids, is part of it")
	}
	y.scalar(text, off)
}

// fold appends what breaks empty lines and one line break stand for.
func fold(s []byte, breaks int) []byte {
	if breaks == 0 {
		return append(s, ' ')
	}
	return append(s, bytes.Repeat([]byte{'\n'}, breaks)...)
}

// uncomment drops a comment at the end of a line.
func uncomment(text []byte) []byte {
	if k := bytes.Index(text, []byte(" #")); k >= 0 {
		text = text[:k]
	}
	return bytes.TrimRight(text, " \t")
}

// scalar writes what a plain scalar stands for.
func (y *yamlReader) scalar(text []byte, off int) {
	switch s := string(text); s {
	case "", "~", "null", "Null", "NULL":
		y.b = append(y.b, "null"...)
		return
	case "true", "True", "TRUE", "false", "False", "FALSE":
		y.b = append(y.b, strings.ToLower(s)...)
		return
	}
	switch {
	case (isDigit(text[0]) || text[0] == '-') && jsonrepair.IsValid(text):
		y.b = append(y.b, text...)
		return
	case len(text) > 1 && text[0] == '.' && jsonrepair.IsValid(append([]byte{'0'}, text...)):
		y.b = append(append(y.b, '0'), text...)
		return
	case elsewhere(string(text)):
		y.finding(y.out, PlainText, off, len(text), "it is text here; other readers of YAML take it for a truth value, a number or a date")
	}
	y.b = appendString(y.b, text)
}

// elsewhere reports whether YAML 1.1 or a lenient reader makes something else than
// text of s.
func elsewhere(s string) bool {
	switch strings.ToLower(s) {
	case "yes", "no", "on", "off", "y", "n", ".inf", "-.inf", "+.inf", ".nan":
		return true
	}
	digits := 0
	for i, c := range []byte(s) {
		switch {
		case isDigit(c):
			digits++
		case strings.IndexByte("+-._:xXoOeETZ ", c) < 0 && !(digits > 0 && 'a' <= c && c <= 'f' || digits > 0 && 'A' <= c && c <= 'F'):
			return false
		case i == 0 && c != '+' && c != '-' && c != '.':
			return false
		}
	}
	return digits > 0
}

// blockScalar reads a literal or folded scalar whose head is text. It reports
// false if text is no head.
func (y *yamlReader) blockScalar(text []byte, indent int) bool {
	head := uncomment(text)
	keep, width := byte(0), 0
	for _, c := range head[1:] {
		switch {
		case c == '+' || c == '-':
			keep = c
		case '1' <= c && c <= '9':
			width = indent + int(c-'0')
		default:
			return false
		}
	}
	var lines []yamlLine
	for {
		l, ok := y.more(indent)
		if !ok || width > 0 && len(l.text) > 0 && l.indent < width {
			break
		}
		if width == 0 && len(l.text) > 0 {
			width = l.indent
		}
		lines = append(lines, *l)
		y.at++
	}
	trailing := 0
	for n := len(lines); trailing < n && len(lines[n-1-trailing].text) == 0; {
		trailing++
	}
	s := blockText(lines[:len(lines)-trailing], width, head[0] == '>')
	switch {
	case keep == '+':
		s = append(s, bytes.Repeat([]byte{'\n'}, trailing+min(len(s), 1))...)
	case keep == 0 && len(s) > 0:
		s = append(s, '\n')
	}
	y.b = appendString(y.b, s)
	return true
}

// blockText joins the lines of a block scalar.
func blockText(lines []yamlLine, width int, folded bool) []byte {
	var s []byte
	breaks, more := 0, true // more: the line before is indented deeper, or there is none
	for i, l := range lines {
		if len(l.text) == 0 {
			breaks++
			continue
		}
		deeper := l.indent > width
		switch {
		case i == breaks: // nothing before but empty lines
			s = append(s, bytes.Repeat([]byte{'\n'}, breaks)...)
		case folded && !deeper && !more:
			s = fold(s, breaks)
		default:
			s = append(s, bytes.Repeat([]byte{'\n'}, breaks+1)...)
		}
		s = append(s, bytes.Repeat([]byte{' '}, l.indent-width)...)
		s = append(s, l.full...)
		breaks, more = 0, deeper
	}
	return s
}

// join returns text and the lines below it that a quoted scalar or a flow
// collection may go on in, up to and with the one for which done reports true.
func (y *yamlReader) join(text []byte, indent int, done func([]byte) bool) ([]byte, int) {
	if done(text) {
		return text, 0
	}
	s := bytes.Clone(text)
	breaks := 0
	for i := y.at; i < len(y.lines); i++ {
		l := y.lines[i]
		if len(l.text) == 0 {
			breaks++
			continue
		}
		if l.indent <= indent && !(len(l.text) == 1 && (l.text[0] == ']' || l.text[0] == '}')) {
			break
		}
		from := len(s)
		s = append(fold(s, breaks), l.text...)
		breaks = 0
		if done(s[from:]) {
			return s, i + 1 - y.at
		}
	}
	return s, -1
}

// quotedScalar reads a scalar in quotation marks. It reports false if that is only
// the beginning of a plain one.
func (y *yamlReader) quotedScalar(text []byte, off, indent int) bool {
	mark, skip, begun := text[0], false, false
	s, n := y.join(text, indent, func(part []byte) bool {
		for _, c := range part {
			switch {
			case skip:
				skip = false
			case c == '\\' && mark == '"':
				skip = true
			case c == mark && !begun:
				begun = true
			case c == mark:
				return true
			}
		}
		return false
	})
	if n < 0 {
		y.stop(off, "a quotation mark is not closed")
		return true
	}
	v, end, ok := unquote(s)
	rest := bytes.TrimLeft(s[end:], " ")
	if !ok || len(rest) > 0 && rest[0] != '#' {
		if n == 0 {
			y.finding(y.out, PlainText, off, len(text), "text follows the closing quotation mark: all of it is the value")
			return false
		}
		y.stop(off, "a quoted value does not end where its line does")
		return true
	}
	y.at += n
	y.b = appendString(y.b, v)
	return true
}

// unquote reads the scalar in quotation marks at the beginning of text and returns
// where it ends.
func unquote(text []byte) (s []byte, end int, ok bool) {
	mark := text[0]
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == mark && mark == '\'' && i+1 < len(text) && text[i+1] == mark:
			s = append(s, c)
			i++
		case c == mark:
			return s, i + 1, true
		case c == '\\' && mark == '"':
			n := 0
			if s, n = unescape(s, text[i:]); n == 0 {
				return s, 0, false
			}
			i += n - 1
		default:
			s = append(s, c)
		}
	}
	return s, 0, false
}

// unescape appends what the escape at the beginning of text stands for, and returns
// its length, 0 for what is none.
func unescape(s, text []byte) ([]byte, int) {
	if len(text) < 2 {
		return s, 0
	}
	const from, to = `0abtnvfre "/\N_LP`, "\x00\a\b\t\n\v\f\r\x1b \"/\\\u0085\u00a0\u2028\u2029"
	if k := strings.IndexByte(from, text[1]); k >= 0 {
		return utf8.AppendRune(s, []rune(to)[k]), 2
	}
	width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[1]]
	if width == 0 || len(text) < 2+width {
		return s, 0
	}
	r, err := strconv.ParseUint(string(text[2:2+width]), 16, 32)
	if err != nil {
		return s, 0
	}
	n := 2 + width
	if 0xd800 <= r && r < 0xdc00 && len(text) >= n+6 && text[n] == '\\' && text[n+1] == 'u' {
		if low, err := strconv.ParseUint(string(text[n+2:n+6]), 16, 32); err == nil && 0xdc00 <= low && low < 0xe000 {
			r, n = 0x10000+(r-0xd800)<<10|(low-0xdc00), n+6
		}
	}
	return utf8.AppendRune(s, rune(r)), n
}

// flowValue reads a flow collection. It reports false if text is a plain scalar
// that begins with a bracket, as a link does.
func (y *yamlReader) flowValue(text []byte, off, indent int) bool {
	level, mark, skip, last := 0, byte(0), false, byte(0)
	s, n := y.join(text, indent, func(part []byte) bool {
		for _, c := range part {
			switch {
			case skip:
				skip = false
			case mark != 0 && c == '\\' && mark == '"':
				skip = true
			case mark != 0:
				if c == mark {
					mark = 0
				}
			case (c == '"' || c == '\'') && strings.IndexByte("[{,: ", last) >= 0:
				mark = c
			case c == '[' || c == '{':
				level++
			case c == ']' || c == '}':
				if level--; level == 0 {
					return true
				}
			}
			last = c
		}
		return false
	})
	f := flow{y: y, s: s, off: off}
	b, found := len(y.b), len(y.out.Findings)
	if n >= 0 && f.value(y.depth) {
		f.space()
		if f.i == len(s) || s[f.i] == '#' {
			y.at += n
			return true
		}
	}
	y.b, y.out.Findings = y.b[:b], y.out.Findings[:found]
	if n == 0 || n < 0 && !bytes.ContainsAny(text, `,"'`) {
		y.finding(y.out, PlainText, off, len(text), "brackets that hold no list or object are text")
		return false
	}
	y.stop(off, "a list or object in brackets cannot be read")
	return true
}

// A flow reads a flow collection that has been put into one line.
type flow struct {
	y   *yamlReader
	s   []byte
	i   int
	off int
}

func (f *flow) space() {
	for f.i < len(f.s) && isSpace(f.s[f.i]) {
		f.i++
	}
}

func (f *flow) peek() byte {
	f.space()
	if f.i < len(f.s) {
		return f.s[f.i]
	}
	return 0
}

// value reads a value with depth levels at most.
func (f *flow) value(depth int) bool {
	y := f.y
	switch c := f.peek(); {
	case c == 0 || depth == 0:
		return false
	case c == '[':
		f.i++
		y.b = append(y.b, '[')
		for n := 0; f.peek() != ']'; n++ {
			if n > 0 {
				y.b = append(y.b, ',')
			}
			if !f.value(depth-1) || !f.separated(']') {
				return false
			}
		}
		f.i++
		y.b = append(y.b, ']')
	case c == '{':
		return f.object(depth)
	case c == '"' || c == '\'':
		s, n, ok := unquote(f.s[f.i:])
		f.i += n
		y.b = appendString(y.b, s)
		return ok
	default:
		from := f.i
		for f.i < len(f.s) && strings.IndexByte(",]}[{", f.s[f.i]) < 0 {
			f.i++
		}
		text := bytes.TrimSpace(f.s[from:f.i])
		if len(text) == 0 || strings.IndexByte("&*!", text[0]) >= 0 || bytes.Contains(text, []byte(": ")) {
			return false
		}
		y.scalar(text, f.off+from)
	}
	return true
}

// separated passes a comma, or finds the closer.
func (f *flow) separated(closer byte) bool {
	switch f.peek() {
	case ',':
		f.i++
		return true
	case closer:
		return true
	}
	return false
}

func (f *flow) object(depth int) bool {
	y := f.y
	f.i++
	y.b = append(y.b, '{')
	seen := map[string]bool{}
	for n := 0; f.peek() != '}'; n++ {
		name := ""
		if c := f.peek(); c == '"' || c == '\'' {
			s, end, ok := unquote(f.s[f.i:])
			if !ok {
				return false
			}
			name = string(s)
			f.i += end
		} else {
			k := bytes.IndexAny(f.s[f.i:], ":,{}[]")
			if k <= 0 {
				return false
			}
			name = string(bytes.TrimSpace(f.s[f.i : f.i+k]))
			f.i += k
		}
		if f.peek() != ':' || seen[name] || f.i+1 < len(f.s) && !isSpace(f.s[f.i+1]) && f.s[f.i-1] != '"' && f.s[f.i-1] != '\'' {
			return false
		}
		seen[name] = true
		f.i++
		if n > 0 {
			y.b = append(y.b, ',')
		}
		y.b = append(appendString(y.b, []byte(name)), ':')
		if c := f.peek(); c == ',' || c == '}' {
			y.b = append(y.b, "null"...)
		} else if !f.value(depth - 1) {
			return false
		}
		if !f.separated('}') {
			return false
		}
	}
	f.i++
	y.b = append(y.b, '}')
	return true
}
