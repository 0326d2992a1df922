package jsonrepair

import "strings"

// The functions of this file judge marks, commas and colons that do not stand where
// they belong. They look ahead, unless they say what they do.

// maxKey is the most bytes of a key that is looked for in an array.
const maxKey = 64

// doubled reports whether the mark at p is written twice, as in ""key"":.
func (e *engine) doubled(p int, t token) bool {
	if t.quote != doubleQuote && t.quote != singleQuote || t.n != 1 {
		return false
	}
	q, n := e.quoteAt(p + 1)
	if q != t.quote || n != 1 {
		return false
	}
	if c, _ := e.peek(p + 2); c == ' ' {
		r := e.blanks(p + 2)
		return e.wordEnd(r) > r && e.keyGoesOnAfter(r, t.quote)
	}
	if c, ok := e.peek(p + 2); !ok || strings.IndexByte(",:}]\n\r\t\"'", c) >= 0 {
		return false
	}
	end, ok := e.stringEnd(p+2, t.quote)
	if !ok {
		return true
	}
	q, _ = e.quoteAt(end)
	return q == t.quote || e.plainEnd(end) || e.colonAt(e.skip(end)) == yes
}

// keyGoesOnAfter reports whether a mark and a colon end what stands at r.
func (e *engine) keyGoesOnAfter(r int, q quote) bool {
	end, ok := e.stringEnd(r, q)
	return ok && e.colonAt(e.skip(end)) == yes
}

// tripled reports whether three marks at p begin a string: three end it.
func (e *engine) tripled(p int) bool {
	r := e.skip(p + 3)
	c, ok := e.peek(r)
	return !ok || c != ',' && c != '}' && c != ']' && c != ':'
}

// keyInArray reports whether a key and its colon stand at p.
func (e *engine) keyInArray(p int) bool {
	limit := e.limit
	e.limit = min(e.limit, p+maxKey)
	k := e.keyAt(p, false)
	if k == yes {
		// A colon at the end of a line stands for a comma.
		if q, n := e.quoteAt(p); n > 0 {
			if end, ok := e.stringEnd(p+n, q); ok {
				r := e.skip(end) + 1
				if next := e.blanks(r); strings.Contains(e.text(r, min(next, e.end())), "\n") {
					k = no
				}
			}
		}
	}
	e.limit = limit
	return k == yes
}

// leaveArray makes room for a key that stands in an array at p: the array should
// have ended, if that makes it a member, or an object should have begun.
func (e *engine) leaveArray(p int, opens bool) {
	if e.state == arrAfter && e.stack.n > 1 && e.stack.at(1).isObject() && !opens {
		comma := e.comma
		e.comma = none
		e.insertCloser(e.valueEnd)
		e.comma = comma
		return
	}
	e.value(p)
	e.implicit(p)
	e.implied = 0
}

// concatenated returns the offset behind the mark of a string that is joined to
// the one that ends at p, or -1.
func (e *engine) concatenated(p int) (int, quote) {
	e.limit = p + e.window
	r := e.skip(p)
	if !e.has(r, "+") {
		return none, 0
	}
	r = e.skip(r + 1)
	if q, n := e.quoteAt(r); n > 0 {
		return r + n, q
	}
	return none, 0
}

// movedMark returns the offset behind the one letter that follows the mark at p,
// if the mark should stand behind it, or 0.
func (e *engine) movedMark(p, n int) int {
	k := e.wordByte(p + n)
	if k == 0 || e.str.quote == noQuote || e.str.inner > 0 || e.wordByte(p+n+k) > 0 || p == e.str.start {
		return 0
	}
	end := p + n + k
	if e.str.role == roleKey {
		if e.colonAt(end) == yes {
			return end
		}
		return 0
	}
	if c, ok := e.peek(end); ok && (c == ',' || c == '\n' || c == '}' || c == ']') && e.stack.n > 0 && e.plainEnd(end) {
		return end
	}
	return 0
}

// movedComma reports whether the comma at p, the last of the string, should stand
// behind its mark: a member or element follows on another line, without one.
func (e *engine) movedComma(p int) bool {
	mark, n := e.quoteAt(p + 1)
	if n == 0 || !e.str.quote.endedBy(mark) || e.stack.n == 0 {
		return false
	}
	r := e.blanks(p + 1 + n)
	q, w := e.quoteAt(r)
	if w == 0 || !e.onNewLine(p, r) {
		return false
	}
	if e.stack.at(0).isObject() {
		return e.keyAt(r, false) == yes
	}
	end, ok := e.stringEnd(r+w, q)
	return ok && e.plainEnd(end)
}

// mixedEnd reports whether a string that q began ends before p with another mark:
// what follows may follow a string, and no mark of its own is left for it.
func (e *engine) mixedEnd(p int, q quote) bool {
	if e.str.role == roleKey {
		if e.colonAt(e.skip(p)) != yes {
			return false
		}
	} else if !e.plainEnd(p) {
		return false
	}
	for {
		c, ok := e.peek(p)
		if !ok || c == '\n' {
			return true
		}
		if mark, n := e.quoteAt(p); mark == q {
			if e.plainEnd(p+n) || e.colonAt(e.skip(p+n)) == yes {
				return false
			}
		}
		p++
	}
}

// nextMarkIsNoEnd reports whether the next double mark behind p stands where no key
// ends.
func (e *engine) nextMarkIsNoEnd(p int) bool {
	end, ok := e.stringEnd(p, doubleQuote)
	return ok && e.colonAt(e.skip(end)) == no
}

// curlyEnd reports whether a curly mark before p ends a string that a straight one
// began: a comma and a key follow, whose mark does not end it.
func (e *engine) curlyEnd(p int) bool {
	r := e.blanks(p)
	if !e.has(r, ",") || e.stack.n == 0 || !e.stack.at(0).isObject() {
		return false
	}
	r = e.blanks(r + 1)
	return e.has(r, `"`) && e.keyAt(r, false) == yes && !e.plainEnd(r+1)
}

// lostKey returns the offset of the colon where a key that reaches to p should
// have ended: its mark is missing. -1: it is not.
func (e *engine) lostKey(p int) int {
	if e.done > e.keyStart {
		return none
	}
	text := e.in[e.str.start-e.base : p-e.base]
	i := 0
	for i < len(text) && (isWordByte(text[i]) || text[i] == '-' || text[i] == '.') {
		i++
	}
	atEnd := p == e.end() && e.eof
	if n := len(text); !atEnd && n > 1 && text[n-1] == ':' && e.endsWithColon(p) {
		return p - 1
	}
	if !atEnd && i > 0 && i < len(text) && text[i] == ':' && len(strings.TrimSpace(string(text[i+1:]))) == 0 {
		return e.str.start + i
	}
	if i == 0 || i+1 >= len(text) || text[i] != ':' || !isSpace(text[i+1]) && i+1 < len(text) && text[i+1] == '/' {
		return none
	}
	colon := e.str.start + i
	if atEnd {
		e.limit = p + 1
		from := e.blanks(colon + 1)
		r := e.wordEnd(from)
		word := e.text(from, r)
		_, ok := literals[word]
		if (ok || scanNumber([]byte(word)) == len(word)) && r > from && e.closedAtEnd(e.blanks(r)) {
			return colon
		}
		return none
	}
	if rest := strings.TrimSpace(string(text[i+1:])); strings.HasSuffix(rest, ",") || strings.HasSuffix(rest, "{") || strings.HasSuffix(rest, "[") || strings.HasSuffix(string(text), "\n") {
		return colon
	}
	return none
}

// endsWithColon reports whether the string that ends at p ends with a colon that
// should stand behind its mark: a value follows.
func (e *engine) endsWithColon(p int) bool {
	if e.before(p) != ':' {
		return false
	}
	_, n := e.quoteAt(p)
	r := e.skip(p + n)
	return r > p+n && e.valueAt(r)
}

// endKeyAt ends the open key before a colon that has been read as part of it.
func (e *engine) endKeyAt(colon int) {
	e.unhold(colon)
	e.endString(colon, 0)
}

// endKeyAround ends the open key before a colon that the mark at p should have
// stood before.
func (e *engine) endKeyAround(colon, p, n int) {
	e.endKeyAt(colon)
	e.state, e.colon = objValue, colon
	e.edit(Junk, p, p+n, "")
	e.pos = p + n
}

// valueAt reports whether a value that is no word begins at p, behind white space
// or not.
func (e *engine) valueAt(p int) bool {
	r := e.skip(p)
	t := e.classify(r)
	if t.kind == tOpen || t.kind == tQuote {
		return true
	}
	end := e.wordEnd(r)
	return end > r && end <= e.end() && isScalar(e.in[r-e.base:end-e.base])
}

// unhold forgets the edits that are held from p on.
func (e *engine) unhold(p int) {
	for len(e.held) > 0 && e.held[len(e.held)-1].from >= p {
		e.held = e.held[:len(e.held)-1]
	}
}

// endsBefore reports whether the string ended before the comma at p: a mark
// follows that does not end it, and begins a key or an element.
func (e *engine) endsBefore(p int) bool {
	if e.str.role != roleValue || e.stack.n == 0 {
		return false
	}
	r := e.blanks(p + 1)
	mark, n := e.quoteAt(r)
	if n == 0 || !e.str.quote.endedBy(mark) {
		return false
	}
	if e.plainEnd(r+n) || e.starved || e.str.braces > 0 && e.inner(p, 0) {
		return false
	}
	if e.stack.at(0).isObject() {
		return e.keyAt(r, false) == yes
	}
	end, ok := e.stringEnd(r+n, mark)
	return ok && !e.atEnd(end) && e.plainEnd(end) && !isSpace(e.in[min(r+n, e.end()-1)-e.base])
}

// endsAtLine returns the offset where the string ended before the end of line
// at p, or -1: what follows is a key, or closers and the end.
func (e *engine) endsAtLine(p int) int {
	if e.str.quote == noQuote {
		return p
	}
	if e.str.role != roleValue || e.stack.n == 0 {
		return none
	}
	r := e.blanks(p)
	c, ok := e.peek(r)
	if !ok {
		return none
	}
	if mark, n := e.quoteAt(r); n > 0 {
		if e.str.quote.endedBy(mark) && e.stack.at(0).isObject() && e.keyAt(r, false) == yes && !e.plainEnd(r+n) && (e.str.braces == 0 || !e.inner(p, 0)) {
			return p
		}
		return none
	}
	if (c == '}' || c == ']') && e.str.braces == 0 && (e.closedAtEnd(r) || e.closedBeforeKey(r)) {
		return p
	}
	return none
}

// closedAtEnd reports whether nothing but the closers of all open containers
// stand from p to the end of the input.
func (e *engine) closedAtEnd(p int) bool {
	for i := 0; ; {
		c, ok := e.peek(p)
		switch {
		case !ok:
			return e.atEnd(p) && i == e.stack.n
		case i == e.stack.n && e.has(p, "```"):
			return e.atEnd(e.blanks(p + 3))
		case isSpace(c), c == ',':
		case (c == '}' || c == ']') && i < e.stack.n && e.stack.at(i).closer() == c:
			i++
		default:
			return false
		}
		p++
	}
}

// closedBeforeKey reports whether closers stand at p, and behind them a comma and
// a key whose mark does not end the string.
func (e *engine) closedBeforeKey(p int) bool {
	if e.str.role != roleValue {
		return false
	}
	i := 0
	for ; ; p = e.blanks(p + 1) {
		c, _ := e.peek(p)
		if c != '}' && c != ']' || i >= e.stack.n || e.stack.at(i).closer() != c {
			break
		}
		i++
	}
	if !e.has(p, ",") || i == 0 || i >= e.stack.n {
		return false
	}
	r := e.blanks(p + 1)
	if !e.stack.at(i).isObject() {
		// An element: an object with a key.
		if !e.has(r, "{") {
			return false
		}
		r = e.blanks(r + 1)
	}
	mark, n := e.quoteAt(r)
	return n > 0 && e.str.quote.endedBy(mark) && e.keyAt(r, false) == yes && !e.plainEnd(r+n)
}

// bareGoesOn reports whether a comma is part of a string without marks: words
// follow it that are no key, or a mark that ends the string.
func (e *engine) bareGoesOn(p int) bool {
	if e.stack.n > 0 && e.stack.at(0).isObject() {
		if r := e.skip(p + 1); e.wordByte(r) > 0 && e.keyAt(r, true) == no {
			return true
		}
	}
	for r := p + 1; ; r++ {
		c, ok := e.peek(r)
		if !ok || c == '\n' || c == '{' || c == '[' {
			return false
		}
		if c == '"' {
			return !e.startsKey(r, 1) && e.plainEnd(r+1) && !isSpace(e.before(r))
		}
	}
}
