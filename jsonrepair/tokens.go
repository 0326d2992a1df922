package jsonrepair

import (
	"unicode/utf8"
)

// step reads one token, or a part of one, and reports whether it could.
func (e *engine) step() bool {
	switch e.mode {
	case inString:
		return e.stepString()
	case inLineComment, inBlockComment:
		return e.stepComment()
	case inProse:
		return e.stepProse()
	}
	seen := e.seen()
	ok := false
	if e.state == rootStart {
		ok = e.stepRoot()
	} else {
		ok = e.stepToken()
	}
	if !ok && e.starved {
		e.unsee(seen)
	}
	return ok
}

func (e *engine) stepToken() bool {
	e.look(e.pos)
	c, ok := e.peek(e.pos)
	if !ok {
		if e.atEnd(e.pos) {
			e.finish()
		}
		return false
	}
	if e.pos == e.done && e.pos == e.valueEnd && len(e.held) == 0 && e.state >= objStart && e.fast() {
		return e.mode != stopped
	}
	if e.pos-e.done > e.hold {
		e.overflow()
	}
	if isSpace(c) {
		for p, end := e.pos+1, min(e.end(), e.done+e.hold+1); ; p++ {
			if p >= end || !isSpace(e.in[p-e.base]) {
				e.pos = p
				return true
			}
		}
	}
	if e.state == rootAfter {
		return e.stepAfter(c)
	}
	if k := e.classify(e.pos); e.starved {
		return false
	} else {
		return e.token(k)
	}
}

// token kinds
type tokenKind uint8

const (
	tWord tokenKind = iota // anything that is not one of the others
	tOpen
	tClose
	tComma
	tColon
	tQuote
	tSpace // that JSON does not know
	tLineComment
	tBlockComment
	tEllipsis
	tEscape // \n, \t or \r as letters
	tPlus   // + before a string
	tEnd    // a code fence or closing tag: the end of the JSON
)

// token is what stands at an offset.
type token struct {
	kind  tokenKind
	n     int   // bytes
	frame frame // of tOpen and tClose
	quote quote // of tQuote
	exact bool  // is spelled as JSON does
}

var asciiTokens = [128]token{
	'{': {tOpen, 1, object, 0, true}, '[': {tOpen, 1, array, 0, true}, '(': {tOpen, 1, tuple, 0, false},
	'}': {tClose, 1, object, 0, true}, ']': {tClose, 1, array, 0, true}, ')': {tClose, 1, tuple, 0, false},
	',': {tComma, 1, 0, 0, true}, ';': {tComma, 1, 0, 0, false},
	':': {tColon, 1, 0, 0, true}, '=': {tColon, 1, 0, 0, false},
}

// wideTokens are those beyond ASCII: full-width marks, by rune.
var wideTokens = map[rune]token{
	'｛': {tOpen, 3, object, 0, false}, '［': {tOpen, 3, array, 0, false}, '（': {tOpen, 3, tuple, 0, false}, '【': {tOpen, 3, array, 0, false},
	'｝': {tClose, 3, object, 0, false}, '］': {tClose, 3, array, 0, false}, '）': {tClose, 3, tuple, 0, false}, '】': {tClose, 3, array, 0, false},
	'，': {tComma, 3, 0, 0, false}, '；': {tComma, 3, 0, 0, false}, '、': {tComma, 3, 0, 0, false},
	'：': {tColon, 3, 0, 0, false}, '＝': {tColon, 3, 0, 0, false},
	'…':      {tEllipsis, 3, 0, 0, false},
	'\u00a0': {tSpace, 2, 0, 0, false}, '\u1680': {tSpace, 3, 0, 0, false}, '\u180e': {tSpace, 3, 0, 0, false},
	'\u2028': {tSpace, 3, 0, 0, false}, '\u2029': {tSpace, 3, 0, 0, false}, '\u202f': {tSpace, 3, 0, 0, false},
	'\u205f': {tSpace, 3, 0, 0, false}, '\u2060': {tSpace, 3, 0, 0, false}, '\u3000': {tSpace, 3, 0, 0, false}, '\ufeff': {tSpace, 3, 0, 0, false},
}

// classify returns the token at p. It looks ahead.
func (e *engine) classify(p int) token {
	c, _ := e.peek(p)
	if q, n := e.quoteAt(p); n > 0 {
		return token{tQuote, n, 0, q, q == doubleQuote}
	}
	if c >= utf8.RuneSelf {
		r, n := e.runeAt(p)
		if t, ok := wideTokens[r]; ok {
			return t
		}
		if r >= '\u2000' && r <= '\u200f' {
			return token{kind: tSpace, n: n}
		}
		return token{kind: tWord}
	}
	switch {
	case c == '=' && e.has(p, "=>"):
		return token{kind: tColon, n: 2}
	case c == '/' && e.has(p, "//"):
		return token{kind: tLineComment, n: 2}
	case c == '/' && e.has(p, "/*"):
		return token{kind: tBlockComment, n: 2}
	case c == '#':
		return token{kind: tLineComment, n: 1}
	case c == '.' && e.has(p, "..."):
		return token{kind: tEllipsis, n: 3}
	case c == '\\' && (e.has(p, `\n`) || e.has(p, `\t`) || e.has(p, `\r`)):
		return token{kind: tEscape, n: 2}
	case c == '`' && e.has(p, "```"), c == '<' && e.has(p, "</"):
		return token{kind: tEnd}
	case c == '+':
		r := e.skip(p + 1)
		if _, n := e.quoteAt(r); n > 0 {
			return token{kind: tPlus, n: 1}
		}
	case c == 0x1b && e.has(p, "\x1b["):
		n := 2
		for c, ok := e.peek(p + n); ok && (isDigit(c) || c == ';'); c, ok = e.peek(p + n) {
			n++
		}
		if _, ok := e.peek(p + n); ok {
			n++
		}
		return token{kind: tSpace, n: n} // of a terminal: up to its last letter
	case c < ' ' && !isSpace(c):
		return token{kind: tSpace, n: 1}
	}
	return asciiTokens[c]
}

// has reports whether s stands at p. It looks ahead.
func (e *engine) has(p int, s string) bool {
	for i := range len(s) {
		if c, ok := e.peek(p + i); !ok || c != s[i] {
			return false
		}
	}
	return true
}

// runeAt decodes the rune at p. It looks ahead.
func (e *engine) runeAt(p int) (rune, int) {
	var b [utf8.UTFMax]byte
	n := 0
	for n < len(b) {
		c, ok := e.peek(p + n)
		if !ok {
			break
		}
		b[n] = c
		n++
		if utf8.FullRune(b[:n]) {
			break
		}
	}
	return utf8.DecodeRune(b[:n])
}

// skip returns the offset behind white space of any kind, comments and escapes
// that stand for white space. It looks ahead.
func (e *engine) skip(p int) int {
	for {
		c, ok := e.peek(p)
		switch {
		case !ok:
			return p
		case isSpace(c):
			p++
			continue
		case c > ' ' && c < utf8.RuneSelf && c != '/' && c != '\\' && c != '#':
			return p
		}
		switch t := e.classifySpace(p); t.kind {
		case tSpace, tEscape:
			p += t.n
		case tLineComment:
			for {
				if c, ok := e.peek(p); !ok || c == '\n' {
					break
				}
				p++
			}
		case tBlockComment:
			for p += 2; !e.has(p, "*/"); p++ {
				if _, ok := e.peek(p); !ok {
					return p
				}
			}
			p += 2
		default:
			return p
		}
	}
}

// classifySpace is classify for what skip skips.
func (e *engine) classifySpace(p int) token {
	c, _ := e.peek(p)
	switch {
	case c >= utf8.RuneSelf:
		r, n := e.runeAt(p)
		if t := wideTokens[r]; t.kind == tSpace {
			return t
		}
		if r >= '\u2000' && r <= '\u200f' {
			return token{kind: tSpace, n: n}
		}
	case c == '/' && e.has(p, "//"), c == '#':
		return token{kind: tLineComment}
	case c == '/' && e.has(p, "/*"):
		return token{kind: tBlockComment}
	case c == '\\' && (e.has(p, `\n`) || e.has(p, `\t`) || e.has(p, `\r`)):
		return token{kind: tEscape, n: 2}
	case c < ' ' && !isSpace(c):
		return token{kind: tSpace, n: 1}
	}
	return token{}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// token reads a token inside a document.
func (e *engine) token(t token) bool {
	p := e.pos
	switch t.kind {
	case tSpace:
		after := " "
		if c := e.in[p-e.base]; t.n == 3 && c == 0xef || c < ' ' {
			after = "" // of no width
		}
		e.edit(SpecialSpace, p, p+t.n, after)
	case tEscape:
		e.edit(LiteralEscape, p, p+t.n, "")
	case tEllipsis:
		e.edit(Ellipsis, p, p+t.n, "")
	case tLineComment, tBlockComment:
		if c := e.in[p-e.base]; c == '#' && e.state == objValue {
			next, ok := e.peek(p + 1)
			switch {
			case e.starved:
				return false
			case ok && !isSpace(next):
				return e.scalar() // as in #ff0000
			}
		}
		e.mode = inLineComment
		if t.kind == tBlockComment {
			e.mode = inBlockComment
		}
		e.prose = p
	case tPlus:
		e.edit(Junk, p, p+t.n, "") // no string stands before it
	case tComma:
		return e.separator(t)
	case tColon:
		return e.colonToken(t)
	case tOpen:
		return e.opener(t)
	case tClose:
		return e.closers(t)
	case tQuote:
		return e.openString(t)
	case tEnd:
		e.finishDocument(p)
		return true
	default:
		return e.word()
	}
	e.pos = p + t.n
	return true
}

// stepComment drops a comment.
func (e *engine) stepComment() bool {
	b := e.in[e.pos-e.base:]
	if most := e.done + e.hold + 2 - e.pos; len(b) > most {
		if most <= 2 {
			e.overflow()
			return true
		}
		b = b[:most]
	}
	if e.mode == inLineComment {
		for i, c := range b {
			if c == '\n' || c == '\r' {
				e.endComment(e.pos + i)
				return true
			}
		}
		e.pos += len(b)
	} else {
		for i := 0; i+1 < len(b); i++ {
			if b[i] == '*' && b[i+1] == '/' && e.pos+i >= e.prose+2 {
				e.endComment(e.pos + i + 2)
				return true
			}
		}
		e.pos += max(0, len(b)-1)
	}
	switch {
	case e.eof && e.base+len(e.in) <= e.pos+1:
		e.endComment(e.end())
	case e.pos-e.done > e.hold:
		e.overflow()
	default:
		return false
	}
	return true
}

func (e *engine) endComment(p int) {
	e.edit(Comment, e.prose, p, "")
	e.mode, e.pos, e.prose = tokens, p, none
}

// overflow commits what is held: a comma is taken for one that separates, and
// what is missing is inserted behind.
func (e *engine) overflow() {
	if e.mode == inLineComment || e.mode == inBlockComment {
		e.edit(Comment, e.prose, e.pos, "")
		e.prose = e.pos
	}
	switch e.state {
	case arrStart, objStart:
		e.dropComma(SurplusComma)
	case arrAfter, objAfter:
		if e.comma >= 0 {
			e.comma, e.gone = none, true
		}
	default:
		e.gone = false
	}
	e.flush(e.pos)
	e.valueEnd = e.pos
}

// separator reads a comma or what stands for one.
func (e *engine) separator(t token) bool {
	p := e.pos
	if e.state == objKey {
		colon := e.valueBehind(p + t.n)
		if e.starved {
			return false
		}
		if colon {
			e.edit(Separator, p, p+t.n, ":")
			e.state, e.colon, e.pos = objValue, p, p+t.n
			return true
		}
	}
	switch e.state {
	case objKey, objValue:
		e.insertNull(p)
	case objStart, arrStart:
		if p == e.valueEnd && e.stack.n > 1 && e.doubt(DoubtfulBracket, p, 0, "the container should have ended before the comma") {
			e.insertCloser(p)
		}
	}
	if e.comma != none || e.gone {
		e.edit(SurplusComma, p, p+t.n, "")
	} else {
		e.comma = p
		if !t.exact {
			e.edit(Separator, p, p+t.n, ",")
		}
	}
	e.pos = p + t.n
	return true
}

// valueBehind reports whether a value stands at p that is no key: the comma before
// it stands for a colon. It looks ahead.
func (e *engine) valueBehind(p int) bool {
	r := e.skip(p)
	if _, ok := e.peek(r); !ok {
		return false
	}
	switch t := e.classify(r); t.kind {
	case tOpen:
		return true
	case tQuote:
		end, ok := e.stringEnd(r+t.n, t.quote)
		return ok && e.keyAt(r, true) == no && !e.noColon(r, t) && e.plainEnd(end)
	case tWord:
		end := e.wordEnd(r)
		return end > r && end <= e.end() && isScalar(e.in[r-e.base:end-e.base]) && e.plainEnd(end)
	}
	return false
}

// colonToken reads a colon or what stands for one.
func (e *engine) colonToken(t token) bool {
	p := e.pos
	e.pos = p + t.n
	switch {
	case e.state == objKey:
		e.state, e.colon = objValue, p
		if !t.exact {
			e.equals = true
			e.edit(Separator, p, p+t.n, ":")
		}
	case e.state == objValue:
		e.edit(SurplusColon, p, p+t.n, "")
	case (e.state == arrAfter || e.state == objAfter) && e.comma == none && !e.gone:
		// It stands for a comma.
		e.comma = p
		e.edit(Separator, p, p+t.n, ",")
	default:
		e.edit(Junk, p, p+t.n, "")
	}
	return true
}

// insertNull gives the held key the value null, before p.
func (e *engine) insertNull(p int) {
	at := max(e.valueEnd, e.done)
	if e.state == objKey {
		e.edit(MissingColon, at, at, ":null")
	} else {
		at = max(e.colon+1, e.done)
		for _, c := range e.held {
			if c.from == e.colon {
				at = max(at, c.to)
			}
		}
		e.edit(MissingValue, at, at, "null")
	}
	e.flush(at)
	e.endValue(objAfter, at)
}

// keyEnded notes that the held key ended at p.
func (e *engine) keyEnded(p int) {
	e.state, e.valueEnd, e.comma = objKey, p, none
	e.nameKey(p)
}

// endValue notes that a value ended at p.
func (e *engine) endValue(s state, p int) {
	e.state, e.valueEnd, e.comma, e.colon, e.gone, e.closed = s, p, none, none, false, false
}

// separate puts the comma right before a key or value at p.
func (e *engine) separate(p int) {
	if e.state == arrAfter || e.state == objAfter {
		e.outdent(p, e.state == objAfter)
	}
	e.place(p)
	if l := e.level(); l != nil && (e.state == arrStart || e.state == arrAfter) {
		l.index++
	}
	switch e.state {
	case arrStart, objStart:
		e.dropComma(SurplusComma)
	case arrAfter, objAfter:
		if e.comma == none && !e.gone {
			e.insert(MissingComma, e.valueEnd, ",")
		}
	}
}

// value makes room for a value that begins at p: what is missing before it is
// inserted, and all before it is committed.
func (e *engine) value(p int) {
	if e.state == arrStart || e.state == arrAfter {
		e.separate(p)
	}
	if e.state == objKey {
		e.insert(MissingColon, e.valueEnd, ":")
	}
	e.flush(p)
	e.gone = false
}

// dropComma drops the comma that is held.
func (e *engine) dropComma(k Kind) {
	if e.gone {
		e.replaceGone()
	}
	if e.comma < 0 {
		return
	}
	if e.in[e.comma-e.base] == ':' {
		k = SurplusColon
	}
	for i := range e.held {
		if c := &e.held[i]; c.from == e.comma && c.to > c.from {
			c.kind, c.after = k, ""
			e.comma = none
			return
		}
	}
	e.edit(k, e.comma, e.comma+1, "")
	e.comma = none
}

// replaceGone puts a value behind a comma that was committed before it was
// known to be surplus.
func (e *engine) replaceGone() {
	e.gone = false
	if e.stack.n == 0 {
		return
	}
	if e.stack.at(0).isObject() {
		e.insert(MissingKey, e.valueEnd, `"":null`)
	} else {
		e.insert(MissingValue, e.valueEnd, "null")
	}
}

// after is the state behind a value in the innermost container.
func (e *engine) after() state {
	switch {
	case e.stack.n == 0:
		return rootAfter
	case e.stack.at(0).isObject():
		return objAfter
	}
	return arrAfter
}
