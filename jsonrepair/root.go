package jsonrepair

import (
	"bytes"
	"slices"
	"strings"
)

// reasoning names the tags whose content is not the answer.
var reasoning = []string{"think", "thinking", "reasoning", "thought", "scratchpad", "reflection"}

// stepRoot looks for the beginning of a document.
func (e *engine) stepRoot() bool {
	e.look(e.pos)
	p := e.pos
	c, ok := e.peek(p)
	switch {
	case !ok:
		if e.atEnd(p) {
			e.finish()
		}
		return false
	case isSpace(c):
		e.pos++
		if e.pos-e.done > e.hold {
			e.flush(e.pos)
		}
		return true
	case p == 0 && (e.has(p, "\xff\xfe") || e.has(p, "\xfe\xff") || e.has(p+1, "\x00")):
		e.fail(0, "the text is not UTF-8 but looks like UTF-16", "convert it to UTF-8")
		return false
	case p == 0 && c == 0xef && e.has(p, "\ufeff"):
		e.edit(ByteOrderMark, p, p+3, "")
		e.pos = p + 3
		return true
	}
	t := e.classify(p)
	var begin func()
	switch {
	case t.kind == tOpen && t.frame != tuple && !e.label(p):
		f := e.frameAt(p, t)
		begin = func() { e.begin(p); e.beginContainer(p, t, f) }
	case t.kind == tQuote && e.keyAt(p, false) == yes, t.kind == tWord && e.linesOfKeys(p):
		begin = func() { e.begin(p); e.implicit(p) }
	case (t.quote == backQuote || t.quote == singleQuote) && (e.has(p+t.n, "{") || e.has(p+t.n, "[")):
		begin = func() { e.mode, e.prose = inProse, e.done } // code in a line of text
	case t.kind == tQuote && e.scalarString(p, t):
		begin = func() { e.begin(p); e.beginString(p, t, roleRoot) }
	case (t.kind == tWord || c == '.' && t.kind != tEllipsis) && e.scalarWord(p):
		begin = func() { e.begin(p); e.state = rootValue }
	case t.kind == tOpen && e.tuple(p):
		begin = func() { e.begin(p); e.beginContainer(p, t, tuple) }
	case t.kind == tOpen && e.parenthesized(p+t.n):
		begin = func() { e.edit(SurplusOpener, p, p+t.n, ""); e.pos = p + t.n }
	case t.kind == tWord && e.callOfScalar(p) > 0:
		arg := e.callOfScalar(p)
		begin = func() { e.edit(Call, p, arg, ""); e.pos = arg }
	case t.kind == tSpace, t.kind == tLineComment, t.kind == tBlockComment:
		begin = func() { e.token(t) }
	default:
		begin = func() { e.mode, e.prose = inProse, e.done }
	}
	if e.starved {
		return false
	}
	begin()
	return true
}

// implicit begins an object that has no brace.
func (e *engine) implicit(p int) {
	e.edit(MissingOpener, p, p, "{")
	e.flush(p)
	e.push(object, p)
	e.implied = 1
	e.endValue(objStart, p)
}

// begin begins a document at p.
func (e *engine) begin(p int) {
	if n := len(e.docs); n > 0 {
		e.held = e.held[:0]
		e.edit(SeveralValues, e.done, p, "\n")
	} else if e.prose != none {
		e.drop(proseKind(e.text(e.done, p)), p)
	}
	e.flush(p)
	e.prose, e.comma = none, none
	if e.log.full {
		e.docs = e.docs[:0] // of a stream only the last one counts
	}
	e.enclosed = e.classify(p).kind == tOpen
	e.docs = append(e.docs, doc{start: p, end: p, from: e.committed()})
}

// committed is how much has been committed, in bytes of output.
func (e *engine) committed() int { return e.taken + len(e.out) }

// endDocument notes that a document ended at p.
func (e *engine) endDocument(p int) {
	d := &e.docs[len(e.docs)-1]
	d.end, d.to = p, e.committed()
	e.implied = 0
	e.endValue(rootAfter, p)
}

// finishDocument ends the document before p, where something stands that ends
// the JSON around it.
func (e *engine) finishDocument(p int) {
	if e.stack.n > 0 {
		e.settle(p)
		e.closeAll(MissingCloser)
	}
	e.prose, e.mode = e.done, inProse
}

// stepAfter reads what follows a document.
func (e *engine) stepAfter(c byte) bool {
	p := e.pos
	t := e.classify(p)
	var act func()
	switch {
	case t.kind == tLineComment && c == '#':
		act = func() { e.prose, e.mode = e.done, inProse }
	case t.kind == tSpace, t.kind == tEscape, t.kind == tEllipsis, t.kind == tLineComment, t.kind == tBlockComment:
		act = func() { e.token(t) }
	case t.kind == tComma && e.comma == none:
		act = func() { e.comma, e.pos = p, p+t.n; e.edit(SurplusComma, p, p+t.n, "") }
	case t.kind == tClose && t.frame != tuple:
		act = func() { e.pos = p + t.n; e.edit(SurplusCloser, p, p+t.n, "") }
	case t.kind == tOpen && (e.comma != none && t.frame != tuple || e.plausible(p, t)):
		act = func() { e.state = rootStart }
	case (t.kind == tQuote || t.kind == tWord) && e.scalarFollows(p, t):
		act = func() { e.state = rootStart }
	default:
		act = func() { e.prose, e.mode = e.done, inProse }
	}
	if e.starved {
		return false
	}
	act()
	return true
}

// label reports whether a word in brackets stands at p, and a document behind it,
// as in "[TOOL_CALLS] [".
func (e *engine) label(p int) bool {
	if c, _ := e.peek(p + 1); isDigit(c) || c == '-' {
		return false // a stream need not wait to show a number
	}
	r := e.wordEnd(p + 1)
	if !e.has(p, "[") || r == p+1 || !e.has(r, "]") || r > e.end() {
		return false
	}
	t := e.classify(e.skip(r + 1))
	if isScalar(e.source(p+1, r)) {
		return false
	}
	if t.kind == tOpen {
		return true
	}
	for r = e.blanks(r + 1); t.kind == tWord; r++ {
		switch c, ok := e.peek(r); {
		case !ok || c == '\n':
			return false
		case c == '{':
			return true
		}
	}
	return false
}

// scalarFollows reports whether a scalar document may follow another one.
func (e *engine) scalarFollows(p int, t token) bool {
	if e.enclosed {
		return false
	}
	if t.kind == tQuote {
		return e.scalarString(p, t)
	}
	return e.scalarWord(p)
}

// scalarString reports whether the string at p is all of a document.
func (e *engine) scalarString(p int, t token) bool {
	r, ok := e.stringEnd(p+t.n, t.quote)
	if !ok {
		return e.prose == none
	}
	n := e.classify(e.skip(r))
	_, more := e.peek(e.skip(r))
	if !more || n.kind == tComma || n.kind == tQuote || n.kind == tPlus || n.kind == tClose && n.frame == tuple {
		return true
	}
	// Marks inside, where the last one ends the input.
	return e.prose == none && e.laterMark(r, t.quote)
}

// scalarWord reports whether the number or literal at p is all of a document.
func (e *engine) scalarWord(p int) bool {
	for {
		t := e.classify(p)
		c, ok := e.peek(p)
		switch {
		case !ok:
			return true
		case t.kind == tComma, t.kind == tClose:
			p += t.n
		case t.kind == tQuote:
			if p, ok = e.stringEnd(p+t.n, t.quote); !ok {
				return true
			}
		case t.kind == tWord || c == '.':
			r := e.wordEnd(p)
			if r > e.end() || !isScalar(e.in[p-e.base:r-e.base]) {
				return false
			}
			p = r
		default:
			return false
		}
		p = e.skip(p)
	}
}

// isScalar reports whether a word is a literal, or has the signs of numbers only.
func isScalar(word []byte) bool {
	if _, ok := literals[string(word)]; ok {
		return true
	}
	digit := false
	for _, c := range word {
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case c != '.' && c != '+' && c != '-' && c != 'e' && c != 'E' && c != '_':
			return false
		}
	}
	return digit
}

// callOfScalar returns the offset behind the parenthesis of a call at p whose one
// argument is a scalar, or 0.
func (e *engine) callOfScalar(p int) int {
	r := e.wordEnd(p)
	if !e.has(r, "(") || !e.parenthesized(r+1) {
		return 0
	}
	return r + 1
}

// maxTuples is how deep tuples are looked into.
const maxTuples = 8

// tuple reports whether values between commas and in parentheses stand at p.
func (e *engine) tuple(p int) bool {
	depth, commas := 0, 0
	for {
		p = e.skip(p)
		c, ok := e.peek(p)
		switch t := e.classify(p); {
		case !ok:
			return commas > 0 && !e.atEnd(p)
		case t.kind == tOpen && t.n == 1 && (c == '(' || depth > 0):
			if depth++; depth > maxTuples {
				return false
			}
			p++
		case t.kind == tClose && t.n == 1:
			p++
			if depth--; depth == 0 {
				return commas > 0 && c == ')'
			}
		case c == ',':
			if depth == 1 {
				commas++
			}
			p++
		case c == ':' && depth > 1:
			p++
		case t.kind == tQuote:
			if p, ok = e.stringEnd(p+t.n, t.quote); !ok {
				return false
			}
		default:
			r := e.wordEnd(p)
			if r == p || r > e.end() || !isScalar(e.in[p-e.base:r-e.base]) {
				return false
			}
			p = r
		}
	}
}

// linesOfKeys reports whether bare keys with values stand at p, in at least two
// lines or between commas, as in YAML.
func (e *engine) linesOfKeys(p int) bool {
	for n := 0; ; n++ {
		if e.keyAt(p, true) != yes {
			return false
		}
		if n > 0 {
			return true
		}
		value := false
		for {
			c, ok := e.peek(p)
			if !ok || c == '{' || c == '[' || c == '`' || c == '<' {
				return false
			}
			p++
			if c == '\n' || c == ',' && value {
				break
			}
			value = value || c == ':'
			if c == ':' && n == 0 {
				if next := e.blanks(p); e.classify(next).kind == tOpen {
					return false
				}
			}
		}
		p = e.skip(p)
	}
}

// stepProse drops text up to where a document may begin.
func (e *engine) stepProse() bool {
	for {
		if e.pos >= e.done+maxDropped {
			e.drop(Prose, e.done+maxDropped)
		}
		if e.pos >= e.end() {
			if e.eof {
				e.finish()
			}
			return false
		}
		c := e.in[e.pos-e.base]
		if c != '{' && c != '[' && c != '<' && c != '(' && c < 0x80 {
			e.pos++
			continue
		}
		e.look(e.pos)
		p := e.pos
		switch t := e.classify(p); {
		case c == '<':
			if name := e.tag(p); name != "" && !e.starved {
				return e.stepReasoning(p, name)
			}
		case t.kind == tOpen && !e.label(p) && e.plausible(p, t) && !e.starved:
			e.mode, e.state = tokens, rootStart
			return true
		}
		if e.starved {
			return false
		}
		e.pos++
	}
}

// tag returns the name of the reasoning tag at p, or "".
func (e *engine) tag(p int) string {
	for _, name := range reasoning {
		if e.has(p, "<"+name+">") {
			return name
		}
	}
	return ""
}

// stepReasoning drops a reasoning part, if it ends within what may be held.
func (e *engine) stepReasoning(p int, name string) bool {
	body := e.in[p-e.base:]
	body = body[:min(len(body), maxReasoning)]
	closer := "</" + name + ">"
	from := max(0, e.scanned-p-len(closer))
	i := bytes.Index(body[from:], []byte(closer))
	e.scanned = p + len(body)
	switch {
	case i >= 0:
		i += from
		e.scanned = 0
		if p > e.done {
			e.drop(Prose, p)
		}
		e.drop(Reasoning, p+i+len(closer))
		e.pos = e.done
	case len(body) >= maxReasoning || e.eof:
		e.pos++ // it never ends: the tag alone is dropped
	default:
		return false
	}
	return true
}

// plausible reports whether a document may begin at an opener inside prose. It
// looks ahead.
func (e *engine) plausible(p int, t token) bool {
	lineStart := true
	for i := p; i > e.base && e.in[i-1-e.base] != '\n'; i-- {
		lineStart = lineStart && isSpace(e.in[i-1-e.base])
		if p-i > lookBehind {
			lineStart = false
			break
		}
	}
	lineStart = lineStart || e.before(p) == '(' || e.before(p) == '>'
	if t.frame == tuple {
		return lineStart && e.tuple(p)
	}
	r := e.skip(p + t.n)
	for {
		c, ok := e.peek(r)
		if !ok {
			return e.atEnd(r) && lineStart || !e.atEnd(r)
		}
		in := e.classify(r)
		switch {
		case t.frame == object && in.kind == tClose && in.frame == object:
			return true
		case t.frame == object:
			return e.keyAt(r, true) != no
		case in.kind == tOpen && in.frame != tuple:
			t = in
			r = e.skip(r + in.n)
			continue
		case in.kind == tClose:
			return lineStart
		case in.kind == tQuote:
			return e.elementString(r, in)
		case c == '-' || e.wordByte(r) > 0:
			return e.elementWord(r, lineStart)
		}
		return false
	}
}

// elementString reports whether a string at r is an element of an array.
func (e *engine) elementString(r int, t token) bool {
	for i := r + t.n; ; i++ {
		c, ok := e.peek(i)
		if !ok {
			return true
		}
		if c == '\n' {
			return false
		}
		if c == '\\' {
			i++
			continue
		}
		if q, n := e.quoteAt(i); n > 0 && t.quote.endedBy(q) {
			c, ok := e.peek(e.skip(i + n))
			return !ok || c == ',' || c == ']'
		}
	}
}

// elementWord reports whether a number or literal at r is an element of an array.
// A lone number in brackets inside a line is a reference of prose.
func (e *engine) elementWord(r int, lineStart bool) bool {
	from := r
	r = e.wordEnd(r)
	if r > e.end() {
		return false
	}
	word := e.in[from-e.base : min(r, e.end())-e.base]
	if _, ok := literals[string(word)]; !ok && scanNumber(word) != len(word) {
		return false
	}
	c, ok := e.peek(e.skip(r))
	return !ok || c == ',' || c == ']' && lineStart
}

// proseKind tells a code fence from other text around the JSON.
func proseKind(text string) Kind {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "```"); ok && !strings.ContainsAny(rest, " \n") {
		return Fence
	}
	return Prose
}

// maxReasoning is the most bytes of a reasoning part.
const maxReasoning = 1 << 20

// finish ends everything at the end of the input.
func (e *engine) finish() {
	end := e.end()
	switch {
	case e.mode == inProse:
		if len(e.docs) == 0 || end > e.done {
			e.drop(proseKind(e.text(e.done, end)), end)
		}
	case e.state == rootStart:
		e.drop(Prose, end)
	case e.state == rootAfter:
		e.flush(end)
	default:
		e.cutOff(end)
	}
	e.mode = stopped
}

// cutOff closes what is open where the input breaks off.
func (e *engine) cutOff(end int) {
	e.cut = e.stack.n > e.implied
	switch {
	case (e.state == objKey || e.state == objValue) && e.done > e.keyStart:
		e.insertNull(end)
	case e.state == objKey || e.state == objValue:
		kind := "key"
		if e.state == objValue {
			kind = "value"
		}
		e.cut = true
		e.open = e.opened(kind, e.keyStart)
		e.drop(Cut, end)
	case e.comma >= 0:
		e.drop(Cut, end)
	}
	if e.cut {
		e.closeAll(Cut)
	} else {
		e.closeAll(MissingCloser)
	}
	e.flush(end)
}

// closeAll ends all containers behind the last value.
func (e *engine) closeAll(k Kind) {
	if e.gone {
		e.replaceGone()
	}
	at := max(e.valueEnd, e.done)
	e.flush(at)
	if e.cut && e.open == nil {
		e.open = e.opened("", 0)
	}
	var closers strings.Builder
	closers.Grow(e.stack.n)
	if !e.counts {
		e.out = slices.Grow(e.out, e.stack.n)
	}
	for e.stack.n > 0 {
		closers.WriteByte(e.stack.at(0).closer())
		e.pop()
	}
	e.edit(k, at, at, closers.String())
	e.flush(at)
	e.endDocument(at)
}
