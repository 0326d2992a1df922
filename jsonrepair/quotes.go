package jsonrepair

import "unicode/utf8"

// quote is a kind of quotation mark.
type quote uint8

const (
	noQuote       quote = iota // of a string without quotes
	doubleQuote                // "
	singleQuote                // '
	backQuote                  // `
	smartDouble                // “ ” „ ‟ ″ ＂ « »
	smartSingle                // ‘ ’ ‚ ‛
	escapedDouble              // \" of a text that was escaped as a whole
	entityDouble               // &quot;
	tripleDouble               // """
	tripleSingle               // '''
)

// quoteAt returns the quotation mark at p and its length in bytes, or 0. It looks
// ahead.
func (e *engine) quoteAt(p int) (quote, int) {
	c, ok := e.peek(p)
	if !ok {
		return 0, 0
	}
	switch c {
	case '"':
		return doubleQuote, 1
	case '\'':
		return singleQuote, 1
	case '`':
		if e.has(p, "```") {
			return 0, 0
		}
		return backQuote, 1
	case '\\':
		if e.has(p, `\"`) {
			return escapedDouble, 2
		}
	case '&':
		if e.has(p, "&quot;") {
			return entityDouble, 6
		}
	case 0xc2, 0xe2, 0xef:
		switch r, n := e.runeAt(p); r {
		case '“', '”', '„', '‟', '″', '＂', '«', '»':
			return smartDouble, n
		case '‘', '’', '‚', '‛', '´':
			return smartSingle, n
		}
	}
	return 0, 0
}

// endedBy reports whether a string that q began may end with a mark.
func (q quote) endedBy(mark quote) bool {
	switch q {
	case noQuote:
		return mark == doubleQuote
	case smartDouble:
		return mark == smartDouble || mark == doubleQuote
	case smartSingle:
		return mark == smartSingle || mark == singleQuote
	case escapedDouble:
		return mark == escapedDouble || mark == doubleQuote
	case backQuote:
		return mark == backQuote || mark == singleQuote || mark == smartSingle
	}
	return q == mark
}

// answer is that of a look that may not see enough.
type answer uint8

const (
	no answer = iota
	yes
	unknown // the look ended before
)

// keyAt reports whether a key and its colon stand at p: a string, or, where bare
// ones count, a word. It looks ahead.
func (e *engine) keyAt(p int, bare bool) answer {
	q, n := e.quoteAt(p)
	if n == 0 {
		if !bare {
			return no
		}
		return e.bareKeyAt(p)
	}
	p += n
	if mark, n := e.quoteAt(p); mark == q && n > 0 && e.wordByte(p+n) > 0 {
		p += n // written twice
	}
	for {
		c, ok := e.peek(p)
		switch {
		case !ok:
			return unknown
		case c == '\n':
			return no
		case c == '\\' && q != escapedDouble:
			if _, ok := e.peek(p + 1); !ok {
				return unknown
			}
			p += 2
			continue
		}
		if mark, n := e.quoteAt(p); n > 0 && q.endedBy(mark) {
			if k := e.colonAt(e.skip(p + n)); k != no || !e.endsWithColon(p) {
				return k
			}
			return yes
		}
		p++
	}
}

func (e *engine) bareKeyAt(p int) answer {
	from := p
	for {
		c, ok := e.peek(p)
		if !ok {
			if p == from {
				return no
			}
			return unknown
		}
		n := e.wordByte(p)
		if n == 0 && p > from && (c == '-' || c == '.') {
			n = 1
		}
		if n == 0 {
			break
		}
		p += n
	}
	if p == from {
		return no
	}
	if _, n := e.quoteAt(p); n > 0 {
		p += n // its first mark is missing
	}
	if e.has(p, "://") {
		return no // of a URL
	}
	return e.colonAt(e.skip(p))
}

// colonAt reports whether a colon stands at p.
func (e *engine) colonAt(p int) answer {
	c, ok := e.peek(p)
	switch {
	case !ok:
		return unknown
	case c == ':':
		return yes
	case c == '=' && e.equals:
		return yes
	case c >= 0x80:
		if r, _ := e.runeAt(p); r == '：' {
			return yes
		}
	}
	return no
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$'
}

// wordByte returns the length of the letter, digit, _ or $ at p, or 0. It looks
// ahead.
func (e *engine) wordByte(p int) int {
	c, ok := e.peek(p)
	switch {
	case !ok:
		return 0
	case c < utf8.RuneSelf:
		if isWordByte(c) {
			return 1
		}
		return 0
	}
	if e.classify(p).kind != tWord {
		return 0
	}
	r, n := e.runeAt(p)
	if r == utf8.RuneError && n == 1 {
		return 0
	}
	return n
}

// wordEnd returns the offset behind the letters, digits, signs and points at p.
func (e *engine) wordEnd(p int) int {
	for {
		n := e.wordByte(p)
		if n == 0 {
			if c, ok := e.peek(p); !ok || c != '-' && c != '+' && c != '.' {
				return p
			}
			n = 1
		}
		p += n
	}
}

// stringEnd returns the offset behind the string whose content begins at p. It
// looks ahead.
func (e *engine) stringEnd(p int, q quote) (int, bool) {
	for {
		c, ok := e.peek(p)
		if !ok {
			return p, false
		}
		if c == '\\' && q != escapedDouble {
			if _, ok := e.peek(p + 1); !ok {
				return p, false
			}
			p += 2
			continue
		}
		if c == '\\' && e.has(p, `\\`) {
			p += 3 // an escape of a text that was escaped as a whole
			continue
		}
		if mark, n := e.quoteAt(p); n > 0 && q.endedBy(mark) {
			return p + n, true
		}
		p++
	}
}

// ends reports whether the mark at p, which could end the open string, does. It
// does if what follows can be read as the continuation of the container, as far
// as can be seen; otherwise it is part of the string.
func (e *engine) ends(p, n int) bool {
	e.limit = p + n + e.window
	at := p + n
	r := e.skip(at)
	c, ok := e.peek(r)
	if !ok {
		if e.atEnd(r) {
			return !e.opening(p, n)
		}
		return e.undecided(p, n)
	}
	t := e.classify(r)
	if t.kind == tClose && t.frame == tuple && e.calls == 0 && (e.stack.n == 0 || e.stack.at(0) != tuple) {
		t = token{kind: tWord}
	}
	switch t.kind {
	case tPlus:
		return true
	case tEnd:
		return !e.inner(p, n)
	case tEllipsis:
		r = e.skip(r + t.n)
		if c, ok = e.peek(r); !ok {
			return true
		}
		t = e.classify(r)
	}
	if e.str.role == roleValue && e.commentHolds(at, r) {
		return false
	}
	if e.str.role == roleValue && e.str.braces > 0 && e.str.inner > 0 {
		// JSON or code inside the string: a mark that may end it does, unless the
		// string's own brackets close before another one.
		if later := e.later(p, n); later == laterClosed || later == laterOpen && !e.plainEnd(at) {
			return false
		}
	}
	if e.str.role == roleValue && e.str.inner%2 == 1 && (t.kind != tComma || e.keyAt(e.skip(r+t.n), false) != yes) && e.later(p, n) == laterClosed {
		return false // it ends what an inner one began
	}
	switch e.str.role {
	case roleKey:
		return e.endsKey(p, r, c, t)
	case roleRoot:
		return t.kind == tQuote && e.onNewLine(p, r) || !e.laterMark(at, e.str.quote)
	}
	switch t.kind {
	case tComma:
		return e.endsBeforeComma(p, n, r+t.n)
	case tClose:
		return e.endsBeforeCloser(p, n, r)
	case tColon:
		next := e.blanks(r + t.n)
		_, mark := e.quoteAt(next)
		return mark > 0 && e.onNewLine(r, min(next, e.end())) || !e.inner(p, n)
	case tQuote:
		return e.endsBeforeQuote(p, n, r, t)
	}
	return e.endsBeforeWord(p, n, r)
}

// undecided notes that the window ended before it was clear what the mark at p is.
// It ends the string, as it does in JSON.
func (e *engine) undecided(p, n int) bool {
	e.find(UndecidedInWindow, p, n, "what follows within the window does not tell whether this quotation mark ends the string; it was taken to")
	return true
}

// commentHolds reports whether what looks like a comment between at and r holds a
// mark that ends the string: then it is text.
func (e *engine) commentHolds(at, r int) bool {
	p := e.blanks(at)
	if c, ok := e.peek(p); !ok || p >= r || c != '/' && c != '#' {
		return false
	}
	for ; ; p++ {
		c, ok := e.peek(p)
		if !ok || c == '\n' {
			return false
		}
		if mark, n := e.quoteAt(p); n > 0 && e.str.quote.endedBy(mark) {
			if c, ok := e.peek(p + n); ok && (c == ',' || c == '}' || c == ']') && e.plainEnd(p+n) {
				return true
			}
		}
	}
}

// opening reports whether a mark looks like an opening one: behind white space,
// before something else.
func (e *engine) opening(p, n int) bool {
	c, ok := e.peek(p + n)
	return isSpace(e.before(p)) && ok && !isSpace(c)
}

// laterMark reports whether another mark that could end the string ends the
// input.
func (e *engine) laterMark(r int, q quote) bool {
	for {
		c, ok := e.peek(r)
		if !ok {
			return false
		}
		if mark, n := e.quoteAt(r); n > 0 && q.endedBy(mark) && e.atEnd(e.blanks(r+n)) && c != '\\' {
			return true
		}
		r++
	}
}

func (e *engine) endsKey(p, r int, c byte, t token) bool {
	switch t.kind {
	case tColon, tOpen, tComma, tClose:
		return t.kind != tComma && t.kind != tClose || !e.keyGoesOn(r)
	case tQuote:
		_, ok := e.stringEnd(r+t.n, t.quote)
		return !ok || !e.keyGoesOn(r+t.n)
	}
	// A letter or digit: a missing colon before a number or literal, or a quote
	// inside the key.
	return !e.keyGoesOn(r) && r > p
}

// keyGoesOn reports whether a mark and a colon follow on the line: the key ends
// there.
func (e *engine) keyGoesOn(r int) bool {
	for {
		c, ok := e.peek(r)
		if !ok || c == '\n' || c == ':' || c == '{' || c == '}' {
			return false
		}
		if mark, n := e.quoteAt(r); n > 0 && e.str.quote.endedBy(mark) {
			if e.startsKey(r, n) {
				return false
			}
			if e.colonAt(e.skip(r+n)) == yes {
				return true
			}
			r += n
			continue
		}
		r++
	}
}

// startsKey reports whether the mark at p begins a key rather than ends a string.
func (e *engine) startsKey(p, n int) bool {
	for i := p; i > max(e.base, e.pos-lookBehind); i-- {
		if c := e.in[i-1-e.base]; !isSpace(c) {
			return (c == ',' || c == '{' || i < p && e.in[i-e.base] == '\n') && e.keyAt(p, false) == yes
		}
	}
	return false
}

func (e *engine) endsBeforeComma(p, n, m int) bool {
	for {
		m = e.skip(m)
		if _, ok := e.peek(m); !ok {
			return true
		}
		switch t := e.classify(m); t.kind {
		case tComma, tEllipsis:
			m += t.n
			continue
		case tClose:
			return e.endsBeforeCloser(p, n, m)
		case tEnd:
			return true
		case tOpen:
			if !e.stack.at(0).isObject() || e.stack.n > 1 && !e.stack.at(1).isObject() {
				return true
			}
			return !e.inner(p, n)
		case tQuote:
			if !e.stack.at(0).isObject() {
				return true
			}
			k := e.keyAt(m, true)
			if k == unknown && e.limit <= e.end() {
				return e.undecided(p, n)
			}
			return k != no || e.noColon(m, t) || e.halfQuoted(m+t.n) || !e.inner(p, n)
		}
		if e.stack.at(0).isObject() {
			if k := e.keyAt(m, true); k != no {
				return k == unknown || e.keyAndValue(m) || !e.doubtful(p, n)
			}
			if w := e.wordEnd(m); w > m && e.keyAt(e.skip(w), false) == yes {
				return true // a word that belongs nowhere
			}
			return !e.inner(p, n)
		}
		if e.wordElement(m) {
			return true
		}
		if e.quotedWord(p, m) {
			return !e.doubt(DoubtfulQuote, p, n, "the string may go on behind this quotation mark")
		}
		return !e.inner(p, n)
	}
}

// halfQuoted reports whether a key without its last mark stands at m: a word, a
// colon, and a mark that begins something.
func (e *engine) halfQuoted(m int) bool {
	r := e.wordEnd(m)
	if r == m || !e.has(r, ":") {
		return false
	}
	r = e.blanks(r + 1)
	_, n := e.quoteAt(r)
	return n > 0 && e.wordByte(r+n) > 0
}

// noColon reports whether a string and a value stand at m, as a key and a value
// whose colon is missing, or became a comma.
func (e *engine) noColon(m int, t token) bool {
	r, ok := e.stringEnd(m+t.n, t.quote)
	if !ok {
		return false
	}
	r = e.skip(r)
	if e.has(r, ",") {
		r = e.skip(r + 1)
		return e.classify(r).kind == tOpen
	}
	if q, n := e.quoteAt(r); n > 0 {
		r, ok = e.stringEnd(r+n, q)
		return ok && e.plainEnd(r)
	}
	if e.classify(r).kind == tOpen {
		return true
	}
	from := r
	r = e.wordEnd(r)
	return r > from && r <= e.end() && isScalar(e.in[from-e.base:r-e.base]) && e.plainEnd(r)
}

// keyAndValue reports whether a word, a colon and a value that is no word stand at
// m.
func (e *engine) keyAndValue(m int) bool {
	r := e.skip(e.wordEnd(m))
	if _, n := e.quoteAt(r); n > 0 {
		r = e.skip(r + n)
	}
	return e.has(r, ":") && e.valueAt(r+1)
}

// doubtful reports whether a mark that can end the string could also be part of
// it, and the reading that takes it so is wanted.
func (e *engine) doubtful(p, n int) bool {
	if e.starved || !e.inner(p, n) || e.starved {
		return false
	}
	return e.doubt(DoubtfulQuote, p, n, "the string may go on behind this quotation mark")
}

// wordElement reports whether a number, literal or word at m is an element of an
// array.
func (e *engine) wordElement(m int) bool {
	from := m
	if m = e.wordEnd(m); m == from {
		return false
	}
	r := e.skip(m)
	c, ok := e.peek(r)
	if !ok {
		return true
	}
	if e.classify(r).kind != tComma && c != ']' {
		return false
	}
	for i := r; ; i++ { // without quotes up to its end
		c, ok := e.peek(i)
		if !ok || c == ']' || c == '\n' {
			return true
		}
		if _, n := e.quoteAt(i); n > 0 {
			word := e.in[from-e.base : m-e.base]
			_, lit := literals[string(word)]
			return lit || scanNumber(word) == len(word)
		}
	}
}

// endsBeforeCloser judges a mark before closers.
func (e *engine) endsBeforeCloser(p, n, r int) bool {
	depth := 0
	for {
		t := e.classify(r)
		c, ok := e.peek(r)
		switch {
		case !ok:
			return true
		case t.kind == tClose && t.frame == tuple:
			return true
		case t.kind == tClose:
			// Containers whose closers are missing may end as well.
			i := depth
			for i < e.stack.n && i < depth+4 && !closes(t.frame, e.stack.at(i)) {
				i++
			}
			if i == e.stack.n || i == depth+4 {
				if depth == 0 {
					return !e.inner(p, n)
				}
				return true // surplus
			}
			depth = i + 1
			r = e.skip(r + t.n)
			for e.has(r, ",") && e.classify(e.skip(r+1)).kind == tClose {
				r = e.skip(r + 1)
			}
			continue
		case t.kind == tComma && depth > 0:
			return e.goesOn(depth, r+t.n) || !e.inner(p, n)
		case t.kind == tComma, t.kind == tEnd, depth == e.stack.n && c == '\n':
			return true
		case depth == e.stack.n:
			return !e.inner(p, n)
		}
		return e.keyAt(r, true) != no || t.kind == tOpen || t.kind == tQuote || !e.inner(p, n)
	}
}

// goesOn reports whether what stands at r, behind a comma, can stand there when
// some containers have ended.
func (e *engine) goesOn(depth, r int) bool {
	r = e.skip(r)
	if _, ok := e.peek(r); !ok {
		return true
	}
	t := e.classify(r)
	switch {
	case t.kind == tComma || t.kind == tClose || t.kind == tEllipsis || t.kind == tEnd:
		return true
	case depth < e.stack.n && e.stack.at(depth).isObject():
		return e.keyAt(r, true) != no || t.kind == tOpen
	case depth == e.stack.n && t.kind == tWord:
		return e.keyAt(r, true) == yes
	}
	return t.kind == tQuote || t.kind == tOpen || e.wordElement(r) || e.keyAt(r, true) == yes
}

// endsBeforeQuote judges a mark that another one follows: a comma is missing, or
// one of them is part of the string.
func (e *engine) endsBeforeQuote(p, n, r int, t token) bool {
	apart := r > p+n
	if e.stack.n > 0 && e.stack.at(0).isObject() {
		k := e.keyAt(r, false)
		return k == yes || k == unknown && (apart || e.limit <= e.end())
	}
	end, ok := e.stringEnd(r+t.n, t.quote)
	if !ok {
		return apart || e.limit <= e.end()
	}
	if !apart {
		return p > e.str.start && e.plainEnd(end)
	}
	end = e.skip(end)
	c, ok := e.peek(end)
	k := e.classify(end).kind
	return !ok || k == tComma || k == tClose || k == tQuote || k == tOpen || c >= '0' && c <= '9' || c == '-'
}

// endsBeforeWord judges a mark before anything else.
func (e *engine) endsBeforeWord(p, n, r int) bool {
	newline := false
	for i := p + n; i < r; i++ {
		newline = newline || e.in[i-e.base] == '\n'
	}
	apart := r > p+n
	if c, _ := e.peek(r); c == '\\' {
		if t := e.classify(e.skip(r + 1)); t.kind == tComma || t.kind == tClose {
			return true
		}
	}
	if _, mark := e.quoteAt(r); newline && mark == 0 && e.stack.at(0).isObject() && e.keyAt(r, true) == yes && e.inner(p, n) {
		return e.doubt(DoubtfulQuote, p, n, "the string ends here, and a key without quotation marks follows")
	}
	if apart && e.stack.at(0).isObject() && (newline || !isSpace(e.before(p))) && e.keyAt(r, true) == yes {
		return newline || e.keyAndValue(r) || !e.doubtful(p, n)
	}
	if !e.stack.at(0).isObject() && apart && e.str.inner%2 == 0 && e.quotedWord(p, r) {
		switch e.inches(p) {
		case no:
			return !e.doubt(DoubtfulQuote, p, n, "an opening quotation mark may be missing behind it, or the string goes on")
		case unknown:
			return e.doubt(DoubtfulQuote, p, n, "the string goes on, or an opening quotation mark is missing behind it")
		}
	}
	return !e.inner(p, n)
}

// inches reports whether the mark at p stands behind a number: it is one of
// inches. Behind a word that ends in a digit it may be.
func (e *engine) inches(p int) answer {
	i := p
	for i > max(e.base, p-lookBehind) && isDigit(e.in[i-1-e.base]) {
		i--
	}
	switch c := e.before(i); {
	case i == p:
		return no
	case isWordByte(c):
		return unknown
	}
	return yes
}

// quotedWord reports whether a single word and then a mark stand at r, before the
// next element: its opening mark is missing.
func (e *engine) quotedWord(p, r int) bool {
	if isSpace(e.before(p)) {
		return false
	}
	from := r
	for n := e.wordByte(r); n > 0; n = e.wordByte(r) {
		r += n
	}
	if mark, n := e.quoteAt(r); r > from && n > 0 && e.str.quote.endedBy(mark) {
		c, ok := e.peek(e.skip(r + n))
		return !ok || c == ',' || c == ']'
	}
	return false
}

// inner reports whether the string goes on behind the mark at p and ends at a
// later one that is in view.
func (e *engine) inner(p, n int) bool { return e.later(p, n) != laterNone }

// later says whether a later mark in view ends the string.
type later uint8

const (
	laterNone   later = iota
	laterOpen         // one may, but brackets are open in the string there
	laterClosed       // one does
)

func (e *engine) later(p, n int) later {
	depth := e.str.braces // what is open in the string
	found := laterNone
	for r := p + n; ; {
		c, ok := e.peek(r)
		if !ok {
			if found == laterNone && e.atEnd(r) && e.opening(p, n) {
				return laterClosed
			}
			return found
		}
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if c == '\\' && e.str.quote != escapedDouble {
			if _, ok := e.peek(r + 1); ok {
				r++
			}
			r++
			continue
		}
		mark, w := e.quoteAt(r)
		if w == 0 || !e.str.quote.endedBy(mark) {
			r++
			continue
		}
		switch {
		case depth > 0:
			if e.plainEnd(r + w) {
				found = laterOpen
			}
		case e.str.role != roleKey && e.startsKey(r, w):
			return found
		case e.plainEnd(r + w):
			return laterClosed
		}
		r += w
	}
}

// plainEnd reports whether what stands at r follows a string as JSON has it.
func (e *engine) plainEnd(r int) bool {
	r = e.skip(r)
	c, ok := e.peek(r)
	switch {
	case !ok:
		return true
	case c == '}' || c == ']':
		return true
	case c != ',':
		return false
	}
	m := e.skip(r + 1)
	c, ok = e.peek(m)
	switch {
	case !ok || c == '}' || c == ']':
		return true
	case e.stack.n > 0 && e.stack.at(0).isObject():
		return e.keyAt(m, true) != no
	}
	t := e.classify(m)
	return t.kind == tQuote || t.kind == tOpen || e.wordElement(m)
}
