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
	if t.quote == doubleQuote && e.has(e.pos, `"""`) && e.tripled(e.pos) {
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

// onNewLine reports whether a line ends between two offsets.
func (e *engine) onNewLine(from, to int) bool {
	return from > e.base && from < to && strings.Contains(e.text(from, to), "\n")
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
	if e.str.role == roleKey {
		b = b[:min(len(b), max(1, e.done+e.hold+1-e.pos))] // see progress
	}
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
		case e.pos < e.end():
			return true
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

// blanks returns the offset behind white space. It looks ahead.
func (e *engine) blanks(p int) int {
	for c, ok := e.peek(p); ok && isSpace(c); c, ok = e.peek(p) {
		p++
	}
	return p
}

// bareByte judges a byte of a string without marks. It reports false for those
// that mean nothing there.
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
	}
	return a, false
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
		if !utf8.FullRune(e.in[p-e.base:]) {
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
