package jsonrepair

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// role is what a string is.
type role uint8

const (
	roleRoot role = iota
	roleKey
	roleValue // of a key, or an element
)

// str is the open string.
type str struct {
	quote  quote
	role   role
	start  int  // offset of its content
	from   int  // offset of its mark
	braces int  // unmatched openers in it
	parens int  // unmatched parentheses, in a string without marks
	drive  bool // begins as a Windows path whose backslashes were not escaped
	path   bool // and is one
	math   bool // a dollar sign is open
	inner  int  // marks that are part of it
	double bool // its marks are doubled
}

// openString reads the beginning of a string.
func (e *engine) openString(t token) bool {
	r := roleValue
	switch e.state {
	case objStart, objAfter:
		r = roleKey
	}
	if t.quote == doubleQuote && e.has(e.pos, `"""`) && e.tripled(e.pos, `"""`) {
		t.quote, t.n = tripleDouble, 3
	} else if t.quote == singleQuote && e.has(e.pos, "'''") {
		t.quote, t.n = tripleSingle, 3
	}
	double := e.doubled(e.pos, t)
	if double {
		t.n *= 2
	}
	broken := r == roleValue && (e.state == arrStart || e.state == arrAfter) && e.keyInArray(e.pos)
	opener := e.state == objValue && e.onNewLine(e.colon+1, e.pos) && e.keyInArray(e.pos)
	drive, path := e.drive(e.pos + t.n)
	if e.starved {
		return false
	}
	switch {
	case broken:
		e.leaveArray(e.pos, e.state == arrAfter && e.closed && e.doubt(DoubtfulBracket, e.pos, 0, "a brace is missing here, not a bracket before"))
		r = roleKey
	case opener:
		e.value(e.pos)
		e.implicit(e.pos)
		e.implied = 0
		r = roleKey
	}
	e.beginString(e.pos, t, r)
	e.str.double = double
	e.str.drive, e.str.path = drive, path
	return true
}

// tripled reports whether three marks at p begin a string: three end it.
func (e *engine) tripled(p int, marks string) bool {
	r := e.skip(p + 3)
	c, ok := e.peek(r)
	return !ok || c != ',' && c != '}' && c != ']' && c != ':'
}

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

// onNewLine reports whether a line ends between two offsets.
func (e *engine) onNewLine(from, to int) bool {
	return from > e.base && from < to && strings.Contains(e.text(from, to), "\n")
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

// maxKey is the most bytes of a key that is looked for in an array.
const maxKey = 64

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

// beginString begins a string at p.
func (e *engine) beginString(p int, t token, r role) {
	if r == roleKey {
		e.separate(p)
		e.keyStart = p
	} else {
		e.value(p)
	}
	switch {
	case t.n == 0:
		e.insertAfter(MissingQuote, p, `"`)
	case t.quote != doubleQuote || t.n > 1:
		e.edit(Quote, p, p+t.n, `"`)
	}
	e.pos = p + t.n
	e.mode = inString
	e.str = str{quote: t.quote, role: r, start: e.pos, from: p}
	if r != roleKey {
		e.flush(e.pos)
	}
}

// insertAfter holds an insertion behind what is held at the same place.
func (e *engine) insertAfter(k Kind, at int, text string) { e.edit(k, at, at, text) }

// endString ends the open string: its mark, if it has one, is the n bytes at p.
func (e *engine) endString(p, n int) {
	switch {
	case n == 0:
		e.insertAfter(MissingQuote, p, `"`)
	case e.in[p-e.base] != '"' || n > 1:
		e.edit(Quote, p, p+n, `"`)
	}
	e.str.quote = noQuote
	e.mode, e.pos = tokens, p+n
	if e.str.role == roleKey {
		e.keyEnded(e.pos)
		return
	}
	e.flush(e.pos)
	e.endValue(e.after(), e.pos)
	if e.stack.n == 0 {
		e.endDocument(e.pos)
	}
}

// quiet tells the bytes of a string that need no look.
var quiet = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c < utf8.RuneSelf
	}
	for _, c := range "\"'`\\,{}[]&()$" {
		t[c] = false
	}
	return t
}()

// stepString reads a part of a string.
func (e *engine) stepString() bool {
	b := e.in[e.pos-e.base:]
	i := 0
	for i < len(b) && quiet[b[i]] {
		i++
	}
	if i > 0 {
		e.pos += i
		e.progress()
		if e.mode == stopped {
			return false
		}
	}
	if i == len(b) {
		switch {
		case !e.eof:
			return false
		case e.str.quote == noQuote && e.stack.n == e.implied && e.str.role != roleKey:
			e.endBare(e.pos) // it ends where the text does
		default:
			e.cutString(e.pos)
		}
		return true
	}
	e.look(e.pos)
	seen, held := e.seen(), len(e.held)
	act := e.stringByte(e.pos)
	if e.starved {
		e.unsee(seen)
		e.held = e.held[:held]
		return false
	}
	e.act(&act)
	if e.mode == inString {
		e.progress()
	}
	return e.mode != stopped
}

// progress commits what has been read of a string, unless it is a key, or white
// space that may be behind it.
func (e *engine) progress() {
	if e.str.role == roleKey && e.pos-e.done <= e.hold {
		return
	}
	if e.str.role == roleKey {
		e.gone = false
	}
	to := e.pos
	for e.str.quote == noQuote && to > e.done && e.pos-to < e.hold && isSpace(e.in[to-1-e.base]) {
		to--
	}
	e.flush(to)
}

// action is what is to be done about a special byte of a string.
type action struct {
	do    doing
	at, n int
	kind  Kind
	after string
	run   func()
}

type doing uint8

const (
	copyIt    doing = iota // n bytes
	replaceIt              // n bytes, by after
	endIt                  // at a mark of n bytes
	runIt                  // anything else
)

func (e *engine) act(a *action) {
	switch a.do {
	case copyIt:
		e.pos += a.n
	case replaceIt:
		e.edit(a.kind, e.pos, e.pos+a.n, a.after)
		e.pos += a.n
	case endIt:
		e.endString(a.at, a.n)
	default:
		a.run()
	}
}

func (e *engine) copy(n int) action { return action{n: n} }

func (e *engine) replaceString(k Kind, n int, after string) action {
	return action{do: replaceIt, n: n, kind: k, after: after}
}

// stringByte judges the byte at p, which is special, and returns what is to be
// done. It looks ahead.
func (e *engine) stringByte(p int) action {
	c, _ := e.peek(p)
	if mark, n := e.mark(p); n > 0 {
		return e.markInString(p, mark, n)
	}
	switch {
	case c == '"':
		return e.replaceString(InnerQuote, 1, `\"`)
	case c == '\\':
		return e.escape(p)
	case c < ' ':
		if c == '\n' || c == '\r' {
			if end := e.endsAtLine(p); end >= 0 {
				return action{do: endIt, at: end, n: 0}
			}
		}
		return e.replaceString(ControlCharacter, 1, controlEscape(c))
	case c >= utf8.RuneSelf:
		return e.runeInString(p)
	case e.str.quote == noQuote:
		if act, ok := e.bareByte(p, c); ok {
			return act
		}
	case c == ',':
		if e.endsBefore(p) {
			return action{do: endIt, at: p, n: 0}
		}
		if e.str.braces == 0 && e.closedAtEnd(p) {
			return action{do: runIt, run: func() { e.cutString(p) }}
		}
		if e.movedComma(p) {
			return e.replaceString(SurplusComma, 1, "")
		}
	}
	switch c {
	case '$':
		return action{do: runIt, run: func() { e.str.math = !e.str.math; e.pos++ }}
	case '{', '[':
		return action{do: runIt, run: func() { e.str.braces++; e.pos++ }}
	case '}', ']':
		if e.str.quote != noQuote && e.str.braces == 0 && e.closedAtEnd(p) {
			return action{do: runIt, run: func() { e.cutString(p) }}
		}
		if e.str.quote != noQuote && e.str.braces == 0 && e.closedBeforeKey(p) {
			return action{do: endIt, at: p, n: 0}
		}
		return action{do: runIt, run: func() { e.str.braces = max(0, e.str.braces-1); e.pos++ }}
	}
	return e.copy(1)
}

// mark returns the mark at p if it may end the open string.
func (e *engine) mark(p int) (quote, int) {
	switch q := e.str.quote; q {
	case tripleDouble:
		if e.has(p, `"""`) && !e.has(p, `""""`) {
			return q, 3
		}
		return 0, 0
	case tripleSingle:
		if e.has(p, "'''") {
			return q, 3
		}
		return 0, 0
	default:
		mark, n := e.quoteAt(p)
		switch {
		case n == 0, q == noQuote && e.str.parens > 0:
			return 0, 0
		case q.endedBy(mark):
			return mark, n
		case q == singleQuote && mark == doubleQuote && e.mixedEnd(p+n, singleQuote):
			return mark, n
		case q == doubleQuote && mark == singleQuote && (e.str.role == roleKey && e.colonAt(e.skip(p+n)) == yes && e.nextMarkIsNoEnd(p+n) || e.curlyEnd(p+n)):
			return mark, n
		}
		return 0, 0
	}
}

// markInString judges a mark that may end the string.
func (e *engine) markInString(p int, mark quote, n int) action {
	if mark == tripleDouble || mark == tripleSingle {
		return action{do: endIt, at: p, n: n}
	}
	if e.str.role == roleKey && e.colonAt(e.skip(p+n)) != yes {
		if colon := e.lostKey(p); colon >= e.done {
			if e.text(colon, p) == ":" && e.valueAt(p+n) {
				return action{do: runIt, run: func() { e.endKeyAround(colon, p, n) }}
			}
			return action{do: runIt, run: func() { e.endKeyAt(colon) }}
		}
	}
	if e.str.quote == noQuote && p-e.str.start == 1 && mark == doubleQuote && !isSpace(e.before(p)) {
		if end, ok := e.stringEnd(p+n, mark); ok && e.plainEnd(end) && !e.ends(p, n) {
			return action{do: runIt, run: func() { // it should stand one byte before
				e.edit(Quote, p, p+n, "")
				e.str.quote = mark
				e.pos = p + n
			}}
		}
	}
	if e.str.quote == noQuote && e.keyAt(p, false) == yes {
		return action{do: runIt, run: func() { e.endBare(p) }}
	}
	if next, k := e.quoteAt(p + n); next == mark && n == k && (e.str.double || e.str.role == roleKey && e.colonAt(e.skip(p+n+k)) == yes) {
		return action{do: endIt, at: p, n: n + k}
	}
	if end := e.movedMark(p, n); end > 0 {
		return action{do: runIt, run: func() {
			e.edit(Quote, p, p+n, "")
			e.pos = end
			e.endString(end, 0)
		}}
	}
	if next, k := e.quoteAt(p + n); next == mark && k == n && e.str.role == roleValue && e.str.inner%2 == 0 && p > e.str.start && e.inches(p) == no && e.str.quote != noQuote && e.plainEnd(p+n+k) && !e.atEnd(e.blanks(p+n+k)) {
		return action{do: endIt, at: p, n: n + k}
	}
	if e.ends(p, n) {
		if next, q := e.concatenated(p + n); next >= 0 {
			return action{do: runIt, run: func() {
				e.edit(Concatenation, p, next, "")
				e.str.quote = q
				e.pos = next
			}}
		}
		return action{do: endIt, at: p, n: n}
	}
	if e.starved {
		return action{}
	}
	after := e.text(p, p+n)
	switch mark {
	case doubleQuote, escapedDouble, entityDouble:
		after = `\"`
	default:
		return action{do: runIt, run: func() { e.str.inner++; e.pos += n }}
	}
	return action{do: runIt, run: func() {
		e.str.inner++
		e.edit(InnerQuote, p, p+n, after)
		e.pos += n
	}}
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
	if n := len(text); n > 1 && text[n-1] == ':' && e.endsWithColon(p) {
		return p - 1
	}
	if i > 0 && i < len(text) && text[i] == ':' && len(strings.TrimSpace(string(text[i+1:]))) == 0 {
		return e.str.start + i
	}
	if i == 0 || i+1 >= len(text) || text[i] != ':' || !isSpace(text[i+1]) && i+1 < len(text) && text[i+1] == '/' {
		return none
	}
	colon := e.str.start + i
	if p == e.end() && e.eof {
		e.limit = p
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
	if e.plainEnd(r+n) || e.starved {
		return false
	}
	if e.stack.at(0).isObject() {
		return e.keyAt(r, false) == yes
	}
	end, ok := e.stringEnd(r+n, mark)
	return ok && !e.atEnd(end) && e.plainEnd(end) && !isSpace(e.in[min(r+n, e.end()-1)-e.base])
}

// movedComma reports whether the comma at p, the last of the string, should stand
// behind its mark: a member or element follows on another line, without one.
func (e *engine) movedComma(p int) bool {
	mark, n := e.quoteAt(p + 1)
	if n == 0 || !e.str.quote.endedBy(mark) {
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

// blanks returns the offset behind white space. It looks ahead.
func (e *engine) blanks(p int) int {
	for c, ok := e.peek(p); ok && isSpace(c); c, ok = e.peek(p) {
		p++
	}
	return p
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
		if e.str.quote.endedBy(mark) && e.stack.at(0).isObject() && e.keyAt(r, false) == yes && !e.plainEnd(r+n) {
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

// bareByte judges a byte of a string without marks, or returns nil.
func (e *engine) bareByte(p int, c byte) (a action, ok bool) {
	switch c {
	case '(':
		return action{do: runIt, run: func() { e.str.parens++; e.pos++ }}, true
	case ')':
		if e.str.parens == 0 {
			return action{do: runIt, run: func() { e.endBare(p) }}, true
		}
		return action{do: runIt, run: func() { e.str.parens--; e.pos++ }}, true
	case '}', ']':
		if e.str.braces > 0 {
			return a, false
		}
		return action{do: runIt, run: func() { e.endBare(p) }}, true
	case ',':
		if e.str.parens > 0 || e.str.braces > 0 || e.bareGoesOn(p) {
			return a, false
		}
		return action{do: runIt, run: func() { e.endBare(p) }}, true
	case '\'', '`', '&':
		return a, false
	}
	return a, false
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

// endBare ends a string without marks before p and the white space there.
func (e *engine) endBare(p int) {
	for p > e.done && p > e.str.start && isSpace(e.in[p-1-e.base]) {
		p--
	}
	if p > e.str.start {
		e.unhold(p)
	}
	e.endString(p, 0)
}

// runeInString reads a rune beyond ASCII.
func (e *engine) runeInString(p int) action {
	r, n := e.runeAt(p)
	if r == utf8.RuneError && n <= 1 {
		if e.atEnd(p+n) || !utf8.FullRune(e.in[p-e.base:]) {
			return action{do: runIt, run: func() { e.cutString(p) }}
		}
		e.find(InvalidUTF8, p, 1, "this byte is not part of any UTF-8 sequence")
		return e.replaceString(InvalidUTF8, 1, "\ufffd")
	}
	if e.str.quote == doubleQuote && e.str.role == roleValue && (r == '”' || r == '“') && e.curlyEnd(p+n) {
		return action{do: endIt, at: p, n: n}
	}
	if t := wideTokens[r]; e.str.quote == noQuote && (t.kind == tComma || t.kind == tClose) && e.str.parens == 0 {
		return action{do: runIt, run: func() { e.endBare(p) }}
	}
	return e.copy(n)
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

// cutString ends the open string at p, where the input breaks off, and drops
// what is behind.
func (e *engine) cutString(p int) {
	end := e.end()
	if e.str.role == roleKey {
		if colon := e.lostKey(end); colon >= e.done {
			e.endKeyAt(colon)
			return
		}
		if e.done <= e.keyStart {
			e.open = e.opened("key", e.keyStart)
			e.mode = tokens
			e.cut = true
			e.drop(Cut, end)
			e.closeAll(Cut)
			e.mode = stopped
			return
		}
	}
	e.cut = true
	e.open = e.opened("string", e.str.from)
	if p < end {
		e.edit(Cut, p, end, `"`)
	} else {
		e.edit(Cut, p, p, `"`)
	}
	e.mode, e.pos = tokens, end
	if e.str.role == roleKey {
		e.state = objKey
		e.valueEnd = end
		e.insertNull(end)
	}
	e.flush(end)
	e.endValue(e.after(), end)
	if e.stack.n > 0 {
		e.closeAll(Cut)
	} else {
		e.endDocument(end)
	}
	e.mode = stopped
}

func controlEscape(c byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	return fmt.Sprintf(`\u%04x`, c)
}
