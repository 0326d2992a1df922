package jsonrepair

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// literals maps words to the values that they stand for.
var literals = map[string]string{
	"true": "true", "false": "false", "null": "null",
	"True": "true", "False": "false", "None": "null", "TRUE": "true", "FALSE": "false", "NULL": "null", "Null": "null",
	"nil": "null", "undefined": "null",
	"NaN": "null", "nan": "null", "Infinity": "null", "inf": "null", "-Infinity": "null", "-inf": "null", "+Infinity": "null", "-NaN": "null",
}

// wrappers are functions of MongoDB and others whose one argument is the value.
var wrappers = map[string]bool{
	"ObjectId": true, "ISODate": true, "Date": true, "NumberLong": true, "NumberInt": true, "NumberDecimal": true,
	"Timestamp": true, "BinData": true, "UUID": true, "Symbol": true, "String": true, "Number": true, "Decimal": true, "str": true, "int": true, "float": true,
}

// word reads what begins with a letter, a digit or a sign.
func (e *engine) word() bool {
	if e.state == objStart || e.state == objAfter {
		return e.bareKey()
	}
	return e.scalar()
}

// scalar reads a number, literal or string without marks.
func (e *engine) scalar() bool {
	p := e.pos
	if c, _ := e.peek(p); c == '/' {
		if end := e.regex(p); e.starved {
			return false
		} else if end > 0 {
			e.value(p)
			e.edit(MissingQuote, p, end, quoteJSON(e.text(p, end)))
			e.endScalar(end)
			return true
		}
	}
	e.limit = p + max(e.window, maxNumber)
	r := e.wordEnd(p)
	c, ok := e.peek(r)
	if !ok && !e.atEnd(r) && r < e.limit {
		return false // the word goes on
	}
	word := e.source(p, min(r, e.end()))
	e.limit = r + e.window
	next := e.skip(r)
	t := e.classify(next)
	_, more := e.peek(next)
	newline := bytes.ContainsAny(e.source(r, min(next, e.end())), "\n\r")
	delimited := !more || t.kind == tComma || t.kind == tClose || t.kind == tEnd || newline || t.kind == tLineComment || t.kind == tBlockComment ||
		t.kind == tEllipsis || t.kind == tOpen && t.frame != tuple || t.kind == tColon && e.stack.n > 0 && isScalar(word) && e.wordByte(next+t.n) == 0 || next > r && e.anotherNumber(next) || t.kind == tQuote && (next > r || isScalar(word)) && e.quoteBehindScalar(next)
	if e.starved && (t.kind != tComma && t.kind != tClose) {
		return false
	}
	alone := e.wordByte(p+1) == 0 && !e.has(p+1, "=") // nothing that a sign would belong to
	if prefix := e.prefix(p, r, word); e.starved {
		return false
	} else if prefix > 0 {
		e.edit(Junk, p, prefix, "")
		e.pos = prefix
		return true
	}
	switch {
	case e.atEnd(r) && e.stack.n > 0 && e.cutScalar(p, string(word)):
		return true
	case !delimited && wrappers[string(word)] && c == '(' && e.unwrap(p, r+1):
		return true
	case e.starved:
		return false
	case delimited && r > p:
		if scanNumber(word) == len(word) {
			e.value(p)
			e.endScalar(r)
			if len(bytes.Trim(word, "-0123456789")) == 0 {
				e.numberEnd = r
			}
			return true
		}
		if after, ok := literals[string(word)]; ok {
			e.literal(p, r, string(word), after)
			return true
		}
		if after, ok := number(string(word)); ok {
			e.value(p)
			e.edit(Number, p, r, after)
			e.endScalar(r)
			return true
		}
	}
	if r == p && alone && (c < ' ' || strings.IndexByte("\\|!%^&*~?>=", c) >= 0 && more) {
		e.edit(Junk, p, p+1, "")
		e.pos = p + 1
		return true
	}
	role := roleValue
	if e.stack.n == 0 {
		role = roleRoot
	}
	e.beginString(p, token{quote: noQuote}, role)
	return true
}

// prefix returns the offset behind what may stand before a value in Python or
// JavaScript: the letters of b'…' and the like, and new. 0: nothing does.
func (e *engine) prefix(p, r int, word []byte) int {
	switch {
	case len(word) <= 2 && len(word) > 0 && len(bytes.Trim(word, "bBrRuUfF")) == 0:
		if q, n := e.quoteAt(r); n == 1 && (q == singleQuote || q == doubleQuote) {
			if end, ok := e.stringEnd(r+n, q); ok && e.plainEnd(end) {
				return r
			}
		}
	case string(word) == "new":
		next := e.blanks(r)
		if end := e.wordEnd(next); end > next && e.has(end, "(") && wrappers[string(e.source(next, min(end, e.end())))] {
			return next
		}
	}
	return 0
}

// maxNumber is the most bytes of a number or word that are looked at together.
const maxNumber = 4096

// anotherNumber reports whether a number is an element of an array at p.
func (e *engine) anotherNumber(p int) bool {
	if e.state != arrStart && e.state != arrAfter {
		return false
	}
	r := e.wordEnd(p)
	return r > p && r <= e.end() && scanNumber(e.in[p-e.base:r-e.base]) == r-p
}

// quoteBehindScalar reports whether a mark behind a scalar begins a key or value
// rather than ends a string whose first mark is missing.
func (e *engine) quoteBehindScalar(p int) bool {
	if e.stack.n > 0 && e.stack.at(0).isObject() {
		return e.keyAt(p, false) != no
	}
	t := e.classify(p)
	end, ok := e.stringEnd(p+t.n, t.quote)
	return !ok || e.stack.n == 0 || e.plainEnd(end) || e.before(p) == ' '
}

func (e *engine) endScalar(p int) {
	e.pos = p
	e.flush(p)
	e.endValue(e.after(), p)
	if e.stack.n == 0 {
		e.endDocument(p)
	}
}

func (e *engine) literal(p, r int, word, after string) {
	e.value(p)
	if word != after {
		e.edit(Literal, p, r, after)
		if w := strings.TrimLeft(word, "+-"); after == "null" && (w[0] == 'I' || w[0] == 'i' || w == "NaN" || w == "nan") {
			e.find(NotANumber, p, r-p, "JSON has no "+word+"; null stands for it")
		}
	}
	e.endScalar(r)
}

// cutScalar drops a number, or a part of a literal, at the end of a text that
// breaks off: more of it may have followed.
func (e *engine) cutScalar(p int, word string) bool {
	if e.o.Ended || e.stack.n == e.implied {
		return false
	}
	kind := "number"
	if _, ok := number(word); !ok && word != "-" && word != "+" && strings.Trim(word, "0123456789.eE+-") != "" {
		if _, ok := literals[word]; ok {
			return false
		}
		kind = ""
		for l := range literals {
			if strings.HasPrefix(l, word) {
				kind = "literal"
			}
		}
	}
	if kind == "" {
		return false
	}
	e.open = e.opened(kind, p)
	if (e.state == objValue || e.state == objKey) && e.done > e.keyStart {
		e.edit(Cut, p, e.end(), "")
		e.pos = e.end()
		e.cutOff(e.end())
	} else {
		e.comma, e.cut = none, true
		e.drop(Cut, e.end())
		e.closeAll(Cut)
	}
	e.mode = stopped
	return true
}

// unwrap drops the name of a call with a single argument.
func (e *engine) unwrap(p, arg int) bool {
	r := e.skip(arg)
	if q, n := e.quoteAt(r); n > 0 {
		end, ok := e.stringEnd(r+n, q)
		if !ok {
			return false
		}
		r = e.skip(end)
	} else {
		r = e.skip(e.wordEnd(r))
	}
	if !e.has(r, ")") || r == arg || e.starved {
		return false
	}
	e.edit(Call, p, arg, "")
	e.pos = arg
	return true
}

// regex returns the offset behind the regular expression at p, or 0.
func (e *engine) regex(p int) int {
	for r := p + 1; ; r++ {
		c, ok := e.peek(r)
		switch {
		case !ok || c == '\n':
			return 0
		case c == '\\':
			r++
		case c == '/' && r > p+1:
			for r++; ; r++ {
				if c, ok := e.peek(r); !ok || c < 'a' || c > 'z' {
					break
				}
			}
			t := e.classify(e.skip(r))
			if _, ok := e.peek(e.skip(r)); ok && t.kind != tComma && t.kind != tClose {
				return 0
			}
			return r
		}
	}
}

// bare is what stands in place of a key that has no first mark.
type bare struct {
	end, last int // behind it, and behind its last byte that is no white space
	mark      token
	is        bareKind
	group     int // digits, of bareGroup
}

type bareKind uint8

const (
	bareJunk   bareKind = iota
	bareWhole           // a key without marks
	bareLast            // a key that has its last mark only
	bareMoved           // a key whose first mark stands behind its first letter
	bareGroup           // digits that belong to the number before the comma
	bareBroken          // the beginning of a key at the end of the input
)

// bareAt judges what stands at p. It looks ahead.
func (e *engine) bareAt(p int) bare {
	b := bare{end: p, last: p}
	for {
		c, ok := e.peek(b.end)
		if !ok || c == '\n' || c == ',' || c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == '=' {
			break
		}
		if t := e.classify(b.end); t.kind == tQuote || t.kind == tColon {
			break
		}
		b.end++
		if !isSpace(c) {
			b.last = b.end
		}
	}
	r := b.end
	c, ok := e.peek(r)
	name := isName(e.source(p, min(b.last, e.end())))
	b.mark = e.classify(r)
	quoted := b.mark.kind == tQuote
	if e.state == objAfter && e.comma >= 0 {
		b.group = e.group(p, r)
	} else {
		b.group = none
	}
	switch closing := quoted && e.colonAt(e.skip(r+b.mark.n)) == yes; {
	case quoted && !closing && b.last == r && r == p+1 && isWordByte(e.in[p-e.base]) && b.mark.quote == doubleQuote && e.keyAt(r, false) == yes:
		b.is = bareMoved
	case ok && (b.mark.kind == tColon || e.colonAt(r) == yes) && !e.has(r, "://") && b.last > p,
		quoted && name && r > b.last && e.keyAt(r, false) == no,
		ok && b.mark.kind == tOpen && name && c != '(':
		b.is = bareWhole
	case closing:
		b.is = bareLast
	case b.group >= 0:
		b.is = bareGroup
	case !ok && e.atEnd(r):
		b.is = bareBroken
	}
	return b
}

// bareKey reads a key that has no first mark, or what stands in its place.
func (e *engine) bareKey() bool {
	p := e.pos
	b := e.bareAt(p)
	if e.starved {
		return false
	}
	switch b.is {
	case bareMoved:
		e.beginString(p, token{quote: noQuote}, roleKey)
		e.edit(Quote, b.end, b.end+b.mark.n, "")
		e.str.quote = b.mark.quote
		e.pos = b.end + b.mark.n
	case bareWhole:
		e.separate(p)
		e.keyStart = p
		e.edit(MissingQuote, p, b.last, quoteJSON(e.text(p, b.last)))
		e.pos = b.last
		e.keyEnded(b.last)
	case bareLast:
		e.separate(p)
		e.keyStart = p
		if s := quoteJSON(e.text(p, b.end)); s[1:len(s)-1] == e.text(p, b.end) {
			e.insertAfter(MissingQuote, p, `"`)
		} else {
			e.edit(MissingQuote, p, b.end, s[:len(s)-1])
		}
		if b.mark.quote != doubleQuote {
			e.edit(Quote, b.end, b.end+b.mark.n, `"`)
		}
		e.pos = b.end + b.mark.n
		e.keyEnded(e.pos)
	case bareGroup:
		e.joinGroup(b)
	case bareBroken:
		e.keyStart = p
		e.state = objKey
		e.pos = b.end
	default:
		e.pos = max(b.end, p+1)
		e.edit(Junk, p, e.pos, "")
	}
	return true
}

// joinGroup makes digits behind a comma part of the number before it.
func (e *engine) joinGroup(b bare) {
	e.pos = b.end
	switch comma := e.comma; {
	case e.doubt(DoubtfulComma, comma, 1, "the digits behind the comma do not belong to the number"):
		e.drop(Junk, b.end)
	case b.group == 3:
		e.dropComma(Number)
	default:
		e.edit(Number, comma, comma+1, ".")
	}
	e.flush(b.end)
	e.endValue(objAfter, b.end)
	if b.group == 3 {
		e.numberEnd = b.end
	}
}

// isName reports whether a text is one word.
func isName(b []byte) bool {
	for _, c := range b {
		if !isWordByte(c) && c < utf8.RuneSelf {
			return false
		}
	}
	return len(b) > 0
}

// quoteJSON writes a text as a JSON string.
func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			b.WriteString(controlEscape(c))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

// group returns how many digits stand at p, right behind a comma and a number, and
// end at r: three, with a fraction or not, are a group of that number's, others its
// fraction. -1: something else stands there.
func (e *engine) group(p, r int) int {
	if p != e.comma+1 || e.comma != e.numberEnd || e.done != e.valueEnd || e.in[e.comma-e.base] != ',' {
		return none
	}
	digits := 0
	for digits < r-p && isDigit(e.in[p+digits-e.base]) {
		digits++
	}
	fraction := e.in[p+digits-e.base : r-e.base]
	if digits == 0 || len(fraction) > 0 && (digits != 3 || fraction[0] != '.' || scanNumber(append([]byte{'0'}, fraction...)) != len(fraction)+1) {
		return none
	}
	// The number before: up to three digits, or a group of its own.
	i := e.comma
	for i > max(e.base, e.comma-4) && isDigit(e.in[i-1-e.base]) {
		i--
	}
	switch n, c := e.comma-i, e.before(i); {
	case c == ',' && n == 3 && digits == 3:
		return 3
	case n == 0 || n > 3 || c == '.' || c == ',' || isWordByte(c):
		return none
	case digits == 3 && e.in[i-e.base] == '0':
		return none
	}
	return digits
}

// scanNumber returns the length of the JSON number that b begins with.
func scanNumber(b []byte) int {
	i := 0
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	from := i
	if !digits() || b[from] == '0' && i > from+1 {
		return 0
	}
	n := i
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return n
		}
		n = i
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return n
		}
		n = i
	}
	return n
}

// number spells a word as a JSON number, if it is one. Numbers with leading zeros
// are none: their digits say more than their value.
func number(word string) (string, bool) {
	if scanNumber([]byte(word)) == len(word) && word != "" {
		return word, true
	}
	s := strings.TrimPrefix(word, "+")
	if strings.Contains(s, "_") && !strings.HasPrefix(s, "_") && !strings.HasSuffix(s, "_") && !strings.Contains(s, "__") {
		s = strings.ReplaceAll(s, "_", "")
	}
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	if strings.HasPrefix(s, ".") && len(s) > 1 {
		s = "0" + s
	}
	if i := strings.IndexByte(s, '.'); i >= 0 && (i+1 == len(s) || s[i+1] == 'e' || s[i+1] == 'E') {
		s = s[:i+1] + "0" + s[i+1:]
	}
	if n := len(s); n > 1 && strings.IndexByte("eE+-", s[n-1]) >= 0 && strings.ContainsAny(s, "eE") {
		s += "0"
	}
	s = sign + s
	return s, s != "" && scanNumber([]byte(s)) == len(s)
}
