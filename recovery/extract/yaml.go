package extract

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// ReadYAML reads an answer that is YAML, in a fence or bare, as JSON.
//
// The notation is what models write of YAML 1.2: block mappings and sequences,
// flow collections, plain, quoted and block scalars, comments. There are no
// anchors, aliases, merge keys and other tags than !!str, !!int, !!float, !!bool
// and !!null: a text with these, with a name twice or with several documents is
// refused.
//
// A plain scalar is a number if JSON writes it so, and keeps its digits; true and
// false, null and ~ as in the core schema of YAML 1.2. Everything else is text:
// yes and no, dates, 007, 0x1F, 1_000, 12:30, with a finding. A plain value may
// hold a colon and a space, which YAML forbids and models write.
//
// Of a bare answer paragraphs before and behind it are dropped. Its names must be
// names: of a few words, and two of them, or a lower-case one. So "Note: this is
// so." stays text.
//
// The error is a *NotationError.
func ReadYAML(text []byte, o Options) (*Converted, error) {
	n := &notation{name: "YAML"}
	if err := n.find(text, o, "yaml", "yml"); err != nil {
		return nil, err
	}
	if !n.fenced {
		n.paragraphs()
	}
	y := &yamlReader{notation: n, depth: or(o.MaxDepth, 64), out: &Converted{}}
	if err := y.split(); err != nil {
		return nil, err
	}
	y.document()
	if y.err == nil && !n.fenced {
		y.bare()
	}
	if y.err != nil {
		return nil, y.err
	}
	c := y.out
	c.JSON = y.b
	c.Truncated = c.Truncated || n.cut
	n.edits(c, text, KindYAML)
	return c, nil
}

// YAML is [ReadYAML] for who wants the JSON alone.
func YAML(text []byte, o Options) ([]byte, error) {
	c, err := ReadYAML(text, o)
	if err != nil {
		return nil, err
	}
	return c.JSON, nil
}

// paragraphs drops those before and behind that hold no line with a key, two at
// most: what one says around an answer, and not a document that YAML is part of.
func (n *notation) paragraphs() {
	from, to := trim(n.body, 0, len(n.body))
	for range 2 {
		end := bytes.Index(n.body[from:to], []byte("\n\n"))
		if end < 0 {
			break
		}
		p, next := n.body[from:from+end], n.body[from+end+2]
		lead := isProse(p) && p[len(p)-1] == ':' && !bytes.Contains(p, []byte("\n")) && !isSpace(next) && next != '-'
		if !isProse(p) || !lead && hasKey(p) {
			break
		}
		from, _ = trim(n.body, from+end+2, to)
	}
	for range 2 {
		start := bytes.LastIndex(n.body[from:to], []byte("\n\n"))
		if start < 0 || bytes.HasPrefix(n.body[from:], []byte("---")) {
			break
		}
		p := n.body[from+start+2 : to]
		if !isProse(p) || hasKey(p) {
			break
		}
		_, to = trim(n.body, from, from+start)
	}
	n.narrow(from, to)
}

// maxProse is the most bytes of prose before or behind an answer in another
// notation.
const maxProse = 300

// isProse reports whether p is a paragraph of sentences.
func isProse(p []byte) bool {
	p = bytes.TrimSpace(p)
	return len(p) > 0 && len(p) <= maxProse && (isLetter(p[0]) || p[0] >= 0x80) && (p[len(p)-1] >= 0x80 || bytes.IndexByte([]byte(".:!?)"), p[len(p)-1]) >= 0)
}

// hasKey reports whether a line of p begins with a name and a colon.
func hasKey(p []byte) bool {
	for line := range bytes.Lines(p) {
		if k := bytes.IndexByte(line, ':'); k > 0 && isKey(string(bytes.Trim(line[:k], ` "'`))) && (k+1 == len(line) || isSpace(line[k+1])) {
			return true
		}
	}
	return false
}

// A yamlReader goes from line to line; a line that has been read in part
// is left with what follows and a deeper indentation.
type yamlReader struct {
	*notation
	lines []yamlLine
	at    int
	depth int // levels left
	b     []byte
	out   *Converted
	err   *NotationError

	keys []string // of the outermost mapping
	// sentences counts its values that are sentences, nested those that are
	// containers.
	sentences, nested int
}

type yamlLine struct {
	off    int // in body
	indent int
	text   []byte // without indentation, line break and white space before that
	full   []byte // with that
}

// split makes lines, and drops the marks of a document around them.
func (y *yamlReader) split() error {
	off := 0
	for line := range bytes.Lines(y.body) {
		text := bytes.TrimRight(line, "\r\n \t")
		indent := 0
		for indent < len(text) && text[indent] == ' ' {
			indent++
		}
		full := bytes.TrimRight(line, "\r\n")
		y.lines = append(y.lines, yamlLine{off: off + indent, indent: indent, text: text[indent:], full: full[indent:]})
		off += len(line)
	}
	begun := false
	for i, l := range y.lines {
		mark := l.indent == 0 && (string(l.text) == "---" || string(l.text) == "...")
		switch {
		case mark && !begun && string(l.text) == "---":
			y.lines[i].text = nil
		case mark:
			for _, rest := range y.lines[i+1:] {
				if len(rest.text) > 0 {
					return y.fail(y.offset(rest.off), "it has several documents")
				}
			}
			y.lines = y.lines[:i]
			return nil
		case len(l.text) > 0 && l.text[0] != '#':
			begun = true
		}
	}
	return nil
}

// stop notes the first error.
func (y *yamlReader) stop(off int, format string, args ...any) {
	if y.err == nil {
		y.err = y.fail(y.offset(off), fmt.Sprintf(format, args...))
	}
}

// next returns the next line that holds something, without taking it; nil at the
// end.
func (y *yamlReader) next() *yamlLine {
	for ; y.at < len(y.lines); y.at++ {
		if l := &y.lines[y.at]; len(l.text) > 0 && l.text[0] != '#' {
			return l
		}
	}
	return nil
}

// document reads the whole text.
func (y *yamlReader) document() {
	l := y.next()
	switch {
	case l == nil:
		y.stop(0, "there is nothing in it")
		return
	case l.text[0] == '{' || l.text[0] == '[' || l.text[0] == '<':
		y.stop(l.off, "it looks like another notation")
		return
	case l.text[0] == '%':
		y.stop(l.off, "directives are not read")
		return
	}
	_, _, key := y.key(l.text)
	if !key && !(y.fenced && isDash(l.text)) {
		y.stop(l.off, "it does not begin with a name and a colon")
		return
	}
	y.block(l.indent, true)
	if l := y.next(); l != nil {
		y.stop(l.off, "a line is indented less than what it belongs to, or is neither a member nor an item")
	}
}

func isDash(text []byte) bool {
	return len(text) > 0 && text[0] == '-' && (len(text) == 1 || text[1] == ' ')
}

// block reads the mapping or sequence whose lines are indented by indent.
func (y *yamlReader) block(indent int, top bool) {
	if y.depth == 0 {
		y.stop(y.lines[y.at].off, "it is nested deeper than MaxDepth")
	}
	if y.err != nil {
		return
	}
	y.depth--
	if l := y.next(); isDash(l.text) {
		y.sequence(indent)
	} else {
		y.mapping(indent, top)
	}
	y.depth++
}

func (y *yamlReader) sequence(indent int) {
	y.b = append(y.b, '[')
	for n := 0; y.err == nil; n++ {
		l := y.next()
		if l == nil || l.indent != indent || !isDash(l.text) {
			break
		}
		if n > 0 {
			y.b = append(y.b, ',')
		}
		rest := bytes.TrimLeft(l.text[1:], " ")
		shift := len(l.text) - len(rest)
		if len(rest) == 0 || rest[0] == '#' {
			y.at++
			y.below(indent, false)
			continue
		}
		if _, _, key := y.key(rest); key || isDash(rest) {
			l.indent, l.off, l.text = l.indent+shift, l.off+shift, rest
			y.block(l.indent, false)
			continue
		}
		y.at++
		y.value(rest, l.off+shift, indent)
	}
	y.b = append(y.b, ']')
}

func (y *yamlReader) mapping(indent int, top bool) {
	y.b = append(y.b, '{')
	seen := map[string]bool{}
	for n := 0; y.err == nil; n++ {
		l := y.next()
		if l == nil || l.indent != indent || isDash(l.text) {
			break
		}
		name, rest, ok := y.key(l.text)
		switch {
		case !ok:
			y.stop(l.off, "a line has no name and colon")
			return
		case seen[name]:
			y.stop(l.off, "the name %q comes twice", name)
			return
		case name == "<<":
			y.stop(l.off, "merge keys are not read")
			return
		}
		seen[name] = true
		if n > 0 {
			y.b = append(y.b, ',')
		}
		y.b = append(appendString(y.b, []byte(name)), ':')
		from := len(y.b)
		value := bytes.TrimLeft(rest, " \t")
		off := l.off + len(l.text) - len(value)
		y.at++
		if len(value) == 0 || value[0] == '#' {
			y.below(indent, true)
		} else {
			y.value(value, off, indent)
		}
		if top {
			y.note(name, y.b[from:])
		}
	}
	y.b = append(y.b, '}')
}

// note remembers what [yamlReader.bare] judges by.
func (y *yamlReader) note(name string, value []byte) {
	y.keys = append(y.keys, name)
	switch {
	case len(value) == 0:
	case value[0] == '{' || value[0] == '[':
		y.nested++
	case value[0] == '"' && len(value) > 2 && strings.IndexByte(".!?", value[len(value)-2]) >= 0 && bytes.Count(value, []byte(" ")) >= 3:
		y.sentences++
	}
}

// below reads the value of a key or dash that has none in its line. Behind a key
// the items of a sequence may be indented as the key is.
func (y *yamlReader) below(indent int, key bool) {
	l := y.next()
	switch {
	case l == nil || l.indent < indent || l.indent == indent && !(key && isDash(l.text)):
		y.b = append(y.b, "null"...)
		return
	case isDash(l.text):
		y.block(l.indent, false)
		return
	}
	if _, _, ok := y.key(l.text); ok {
		y.block(l.indent, false)
		return
	}
	y.at++
	y.value(l.text, l.off, indent)
}

// key splits a line that begins with a name and a colon.
func (y *yamlReader) key(text []byte) (name string, rest []byte, ok bool) {
	if q := text[0]; q == '"' || q == '\'' {
		s, n, ok := unquote(text)
		if !ok {
			return "", nil, false
		}
		rest = bytes.TrimLeft(text[n:], " ")
		if len(rest) == 0 || rest[0] != ':' || len(rest) > 1 && !isSpace(rest[1]) {
			return "", nil, false
		}
		return string(s), rest[1:], true
	}
	if strings.IndexByte("{}[],&*!|>%@`#?\t", text[0]) >= 0 || isDash(text) {
		return "", nil, false
	}
	k := bytes.Index(text, []byte(": "))
	if k < 0 && text[len(text)-1] == ':' {
		k = len(text) - 1
	}
	if t := bytes.Index(text, []byte(":\t")); t >= 0 && (k < 0 || t < k) {
		k = t
	}
	if k <= 0 || k > maxTag || bytes.Contains(text[:k], []byte(" #")) {
		return "", nil, false
	}
	return string(bytes.TrimRight(text[:k], " ")), text[k+1:], true
}

// keywords are names that stand before a colon in code.
var keywords = []string{"try", "except", "else", "finally", "default", "public", "private", "protected"}

// bare refuses what has the form of YAML and is prose.
func (y *yamlReader) bare() {
	lowerCase := true
	for _, k := range y.keys {
		if !isKey(k) || slices.Contains(keywords, k) {
			y.stop(0, "%q is no name of a member", k)
			return
		}
		lowerCase = lowerCase && k == strings.ToLower(k) && !strings.Contains(k, " ")
	}
	switch {
	case len(y.keys) == 1 && !lowerCase && y.nested == 0:
		y.stop(0, "one line with a colon is prose")
	case !lowerCase && y.sentences == len(y.keys):
		y.stop(0, "it is sentences with a word before them")
	}
}
