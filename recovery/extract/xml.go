package extract

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ReadXML reads an answer made of XML elements, in a fence or bare, as a JSON object:
//
//	<name>Ann</name><age>3</age>            {"name":"Ann","age":"3"}
//	<person><name>Ann</name></person>       {"name":"Ann"}, Root is person
//	<tags><tag>a</tag><tag>b</tag></tags>   {"tags":["a","b"]}
//	<m id="1"><n>x</n></m><q/>              {"m":{"id":"1","n":"x"},"q":null}
//
// Text stays text: numbers are strings of JSON. White space around it is dropped,
// but not in CDATA. A bare & or < in text is text. An element with attributes has
// them as members, and its text as "#text"; an attribute that is named as a child is
// "@name". Elements of the same name become an array, and an element that holds
// nothing but items, by the names (<tags> of <tag>, or <item>, <li>, <entry>,
// <element>, <value>), is that array itself. Elements that are open at the end are
// closed, and the result is Truncated.
//
// Lines of prose before and behind are dropped. Text beside elements is not XML of
// this kind, nor are the elements of HTML at the top: both are refused, and so are
// document types.
//
// The error is a *NotationError.
func ReadXML(text []byte, o Options) (*Converted, error) {
	// Only what no answer has for a name is reasoning here: <reasoning> may be a
	// member that was asked for.
	o.unwrapped = true
	if o.Tags == nil {
		for _, t := range DefaultTags() {
			if name, ok := xmlName(t.Open); !ok || t.Unopened || name == "" {
				o.Tags = append(o.Tags, t)
			}
		}
	}
	n := &notation{name: "XML"}
	if err := n.find(text, o, "xml"); err != nil {
		return nil, err
	}
	if !n.fenced {
		n.elements()
	}
	x := &xmlReader{notation: n, depth: or(o.MaxDepth, 64), out: &Converted{}}
	x.read()
	if x.err == nil && x.out.Truncated && !n.fenced && !x.closed {
		x.stop(0, "no element is closed")
	}
	if x.err != nil {
		return nil, x.err
	}
	c := x.out
	c.JSON = x.object()
	c.Truncated = c.Truncated || n.cut
	n.edits(c, text, KindXML)
	return c, nil
}

// XML is [ReadXML] for who wants the JSON alone.
func XML(text []byte, o Options) ([]byte, error) {
	c, err := ReadXML(text, o)
	if err != nil {
		return nil, err
	}
	return c.JSON, nil
}

// elements drops the lines before the first element and behind the last one.
func (n *notation) elements() {
	from, to := 0, len(n.body)
	if k := bytes.IndexByte(n.body, '<'); k > 0 {
		if line := bytes.LastIndexByte(n.body[:k], '\n'); line >= 0 && len(bytes.TrimSpace(n.body[line:k])) == 0 && isProse(n.body[:line]) {
			from = line + 1
		}
	}
	if k := bytes.LastIndexByte(n.body, '>'); k >= from {
		rest := n.body[k+1:]
		if line := bytes.IndexByte(rest, '\n'); line >= 0 && len(bytes.TrimSpace(rest[:line])) == 0 && isProse(rest) && n.over(n.body[from:k+1]) {
			to = k + 1 + line
		}
	}
	n.narrow(from, to)
}

// over reports whether body ends with the closing tag of the element that it begins
// with, or of one beside it: what follows is no text of an element.
func (n *notation) over(body []byte) bool {
	x := xmlReader{notation: &notation{name: n.name, body: body, cannotMove: true}, depth: 1 << 20, out: &Converted{}}
	x.read()
	return x.err == nil && !x.out.Truncated
}

// An element of XML is kept until its end, because elements of the same name need
// not stand together.
type element struct {
	name     string
	attrs    []element // with text
	children []element
	text     []byte
	raw      bool // text is of CDATA: white space counts
	empty    bool // <name/>
	off      int  // in body
}

type xmlReader struct {
	*notation
	i      int
	depth  int
	stack  []element // open, the innermost last; the first is what is around all
	open   map[string]int
	closed bool // an element has been closed
	out    *Converted
	err    *NotationError
}

func (x *xmlReader) stop(off int, format string, args ...any) {
	if x.err == nil {
		x.err = x.fail(x.offset(off), fmt.Sprintf(format, args...))
	}
}

// read takes the whole body.
func (x *xmlReader) read() {
	x.stack = []element{{}}
	x.open = map[string]int{}
	for x.i < len(x.body) && x.err == nil {
		if x.body[x.i] == '<' && x.markup() {
			continue
		}
		x.content()
	}
	if x.err == nil && len(x.stack) == 1 && len(x.stack[0].children) == 0 {
		x.stop(0, "there is no element")
	}
	for x.err == nil && len(x.stack) > 1 {
		x.out.Truncated = true
		e := x.stack[len(x.stack)-1]
		x.finding(x.out, OpenTag, e.off, len(e.name)+1, "the element is not closed")
		x.close()
	}
}

// markup reads what begins with < and reports false if that is text.
func (x *xmlReader) markup() bool {
	rest := x.body[x.i:]
	top := len(x.stack) == 1
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		x.skip("-->", len("<!--"))
	case bytes.HasPrefix(rest, []byte("<![CDATA[")) && !top:
		x.cdata()
	case bytes.HasPrefix(rest, []byte("<?")) && (top || bytes.HasPrefix(rest, []byte("<?xml"))):
		x.skip("?>", len("<?"))
	case bytes.HasPrefix(rest, []byte("<!")) && top:
		x.stop(x.i, "document types are not read")
	case len(rest) > 2 && rest[1] == '/' && isNameStart(rest[2]):
		return x.closing()
	case len(rest) > 1 && isNameStart(rest[1]):
		return x.opening()
	case len(rest) == 1 || len(rest) == 2 && rest[1] == '/':
		x.i, x.out.Truncated = len(x.body), true // a tag that was cut
	default:
		return false
	}
	return true
}

func isNameStart(c byte) bool { return isLetter(c) || c == '_' || c >= 0x80 }

// skip passes what ends with end; the first n bytes are no part of that.
func (x *xmlReader) skip(end string, n int) {
	if k := bytes.Index(x.body[x.i+n:], []byte(end)); k >= 0 {
		x.i += n + k + len(end)
		return
	}
	x.i, x.out.Truncated = len(x.body), true
}

func (x *xmlReader) cdata() {
	e := &x.stack[len(x.stack)-1]
	from := x.i + len("<![CDATA[")
	to := len(x.body)
	if k := bytes.Index(x.body[from:], []byte("]]>")); k >= 0 {
		to = from + k
		x.i = to + len("]]>")
	} else {
		x.i, x.out.Truncated = to, true
	}
	if len(bytes.TrimSpace(e.text)) == 0 {
		e.text = nil
	}
	e.text, e.raw = append(e.text, x.body[from:to]...), true
}

// name returns the name at i, in body.
func (x *xmlReader) nameAt(i int) string {
	from := i
	for i < len(x.body) && (isName(x.body[i]) || x.body[i] >= 0x80) {
		i++
	}
	return string(x.body[from:i])
}

// opening reads an opening tag and reports false if it is text: "a <b or c".
func (x *xmlReader) opening() bool {
	name := x.nameAt(x.i + 1)
	e := element{name: name, off: x.i}
	i := x.i + 1 + len(name)
	for {
		for i < len(x.body) && isSpace(x.body[i]) {
			i++
		}
		if i >= len(x.body) {
			x.i, x.out.Truncated = i, true // cut inside the tag
			return true
		}
		switch c := x.body[i]; {
		case c == '>':
			x.push(e, i+1)
			return true
		case c == '/' && i+1 < len(x.body) && x.body[i+1] == '>':
			e.empty = true
			x.push(e, i+2)
			if x.err == nil {
				x.close()
			}
			return true
		case c == '/' && i+1 == len(x.body):
			x.i, x.out.Truncated = i+1, true
			return true
		case !isNameStart(c) || i == x.i+1+len(name):
			return false
		}
		a, end, ok := x.attribute(i)
		if !ok {
			return false
		}
		e.attrs = append(e.attrs, a)
		i = end
	}
}

// attribute reads name="value" at i, in body.
func (x *xmlReader) attribute(i int) (a element, end int, ok bool) {
	a.name = x.nameAt(i)
	i += len(a.name)
	for i < len(x.body) && isBlank(x.body[i]) {
		i++
	}
	if i >= len(x.body) {
		return a, i, true
	}
	if x.body[i] != '=' {
		return a, i, false
	}
	i++
	for i < len(x.body) && isBlank(x.body[i]) {
		i++
	}
	if i >= len(x.body) {
		return a, i, true
	}
	mark := x.body[i]
	if mark != '"' && mark != '\'' {
		return a, i, false
	}
	k := bytes.IndexByte(x.body[i+1:], mark)
	if k < 0 {
		return a, len(x.body), bytes.IndexByte(x.body[i:], '>') < 0
	}
	a.text = x.entities(nil, x.body[i+1:i+1+k], i+1)
	return a, i + k + 2, true
}

func (x *xmlReader) push(e element, end int) {
	if len(x.stack) > x.depth {
		x.stop(e.off, "it is nested deeper than MaxDepth")
		return
	}
	if p := &x.stack[len(x.stack)-1]; len(bytes.TrimSpace(p.text)) > 0 {
		x.stop(e.off, "there is text beside the element <%s>", e.name)
		return
	}
	if len(x.stack) == 1 && isHTML(e.name) {
		x.stop(e.off, "<%s> is HTML", e.name)
		return
	}
	x.stack = append(x.stack, e)
	x.open[e.name]++
	x.i = end
}

// close ends the innermost element.
func (x *xmlReader) close() {
	n := len(x.stack) - 1
	e := x.stack[n]
	if !e.raw {
		e.text = bytes.TrimSpace(e.text)
	}
	x.stack = x.stack[:n]
	x.stack[n-1].children = append(x.stack[n-1].children, e)
	x.open[e.name]--
}

// closing reads a closing tag. It ends the elements inside its own, too. It reports
// false if it is text.
func (x *xmlReader) closing() bool {
	name := x.nameAt(x.i + 2)
	i := x.i + 2 + len(name)
	for i < len(x.body) && isSpace(x.body[i]) {
		i++
	}
	switch {
	case i >= len(x.body):
		x.i, x.out.Truncated = i, true
		return true
	case x.body[i] != '>':
		return false
	case x.open[name] == 0:
		x.stop(x.i, "</%s> closes nothing", name)
		return true
	}
	x.closed = true
	for done := false; !done; {
		e := x.stack[len(x.stack)-1]
		if done = e.name == name; !done {
			x.finding(x.out, OpenTag, e.off, len(e.name)+1, "the element is not closed")
		}
		x.close()
	}
	x.i = i + 1
	return true
}

// content reads text up to the next markup.
func (x *xmlReader) content() {
	e := &x.stack[len(x.stack)-1]
	end := len(x.body)
	if k := bytes.IndexByte(x.body[x.i+1:], '<'); k >= 0 {
		end = x.i + 1 + k
	}
	part := x.body[x.i:end]
	if len(bytes.TrimSpace(part)) > 0 {
		switch {
		case len(x.stack) == 1:
			x.stop(x.i, "there is text outside the elements")
			return
		case len(e.children) > 0:
			x.stop(x.i, "there is text beside elements")
			return
		}
	} else if e.raw || len(e.children) > 0 || len(x.stack) == 1 {
		x.i = end
		return
	}
	e.text = x.entities(e.text, part, x.i)
	x.i = end
}

// entities appends s, which stands at off, with the entities of XML replaced.
func (x *xmlReader) entities(to, s []byte, off int) []byte {
	for i := 0; i < len(s); {
		k := bytes.IndexByte(s[i:], '&')
		if k < 0 {
			return append(to, s[i:]...)
		}
		to = append(to, s[i:i+k]...)
		i += k
		r, n := entity(s[i:])
		switch {
		case r != 0:
			to = utf8.AppendRune(to, r)
		default:
			if n > 1 {
				x.finding(x.out, Entity, off+i, n, "it is left as it is")
			}
			to = append(to, s[i:i+n]...)
		}
		i += n
	}
	return to
}

// entity returns the character that the entity at the beginning of s stands for,
// and its length: 1 if it is only an ampersand. Unknown ones have no character.
func entity(s []byte) (rune, int) {
	end := bytes.IndexByte(s[:min(len(s), 12)], ';')
	if end < 2 {
		return 0, 1
	}
	name := string(s[1:end])
	switch name {
	case "lt":
		return '<', end + 1
	case "gt":
		return '>', end + 1
	case "amp":
		return '&', end + 1
	case "quot":
		return '"', end + 1
	case "apos":
		return '\'', end + 1
	}
	digits, base := strings.TrimPrefix(name, "#"), 10
	if digits == name {
		for i := range name {
			if !isLetter(name[i]) && !isDigit(name[i]) {
				return 0, 1
			}
		}
		return 0, end + 1
	}
	if hex := strings.TrimLeft(digits, "xX"); hex != digits {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || n == 0 || !utf8.ValidRune(rune(n)) {
		return 0, 1
	}
	return rune(n), end + 1
}

// object writes what was read.
func (x *xmlReader) object() []byte {
	top := x.stack[0].children
	if len(top) == 1 && len(top[0].children) > 0 && (len(top[0].attrs) > 0 || !isList(top[0])) {
		x.out.Root = top[0].name
		return members(nil, top[0].attrs, top[0].children, nil)
	}
	return members(nil, nil, top, nil)
}

// members writes an object of attributes, children and text.
func members(b []byte, attrs, children []element, text []byte) []byte {
	groups := map[string][]int{}
	for i, c := range children {
		groups[c.name] = append(groups[c.name], i)
	}
	b = append(b, '{')
	sep := func(name string) {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(appendString(b, []byte(name)), ':')
	}
	seen := map[string]bool{}
	for _, a := range attrs {
		name := a.name
		if groups[name] != nil {
			name = "@" + name
		}
		if !seen[name] {
			seen[name] = true
			sep(name)
			b = appendString(b, a.text)
		}
	}
	for i, c := range children {
		group := groups[c.name]
		if group[0] != i {
			continue
		}
		name := c.name
		if seen[name] {
			name = "#" + name
		}
		sep(name)
		if len(group) == 1 {
			b = value(b, c)
			continue
		}
		b = append(b, '[')
		for n, k := range group {
			if n > 0 {
				b = append(b, ',')
			}
			b = value(b, children[k])
		}
		b = append(b, ']')
	}
	if len(text) > 0 {
		sep("#text")
		b = appendString(b, text)
	}
	return append(b, '}')
}

// value writes the value of an element.
func value(b []byte, e element) []byte {
	switch {
	case len(e.attrs) == 0 && len(e.children) > 0 && isList(e):
		b = append(b, '[')
		for i, c := range e.children {
			if i > 0 {
				b = append(b, ',')
			}
			b = value(b, c)
		}
		return append(b, ']')
	case len(e.attrs) > 0 || len(e.children) > 0:
		return members(b, e.attrs, e.children, e.text)
	case e.empty:
		return append(b, "null"...)
	}
	return appendString(b, e.text)
}

// isList reports whether the children of e are items of a list, by the names.
func isList(e element) bool {
	item := strings.ToLower(e.children[0].name)
	for _, c := range e.children {
		if c.name != e.children[0].name {
			return false
		}
	}
	switch item {
	case "item", "li", "entry", "element", "value":
		return true
	}
	list := strings.ToLower(e.name)
	return list == item+"s" || list == item+"es" || list == strings.TrimSuffix(item, "y")+"ies" ||
		list == item+"list" || list == item+"_list" || list == item+"-list"
}

// isHTML reports whether name is an element of HTML that is written into prose or
// begins a page.
func isHTML(name string) bool {
	switch strings.ToLower(name) {
	case "html", "head", "body", "div", "span", "p", "br", "hr", "b", "i", "u", "s", "em", "strong", "small", "sub", "sup",
		"a", "img", "ul", "ol", "li", "dl", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr",
		"td", "th", "pre", "code", "kbd", "blockquote", "script", "style", "link", "meta", "form", "input", "button", "select",
		"option", "label", "textarea", "section", "article", "header", "footer", "nav", "main", "aside", "details", "svg",
		"video", "audio", "iframe", "canvas", "mark", "font", "center":
		return true
	}
	return false
}
