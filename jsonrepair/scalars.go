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
		t.kind == tEllipsis || t.kind == tOpen && t.frame != tuple || t.kind == tColon && e.stack.n > 0 && isScalar(word) && e.wordByte(next+t.n) == 0 || next > r && e.anotherNumber(next) || t.kind == tQuote && next > r && e.quoteBehindScalar(next)
	if e.starved && (t.kind != tComma && t.kind != tClose) {
		return false
	}
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
			e.numberEnd = r
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
	if r == p && (c < ' ' || strings.IndexByte("\\|!%^&*~?>=", c) >= 0 && more) {
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
	return true
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

// bareKey reads a key without marks, or with the last one only.
func (e *engine) bareKey() bool {
	p := e.pos
	r, last := p, p
	for {
		c, ok := e.peek(r)
		if !ok || c == '\n' || c == ',' || c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == '=' {
			break
		}
		if _, n := e.quoteAt(r); n > 0 {
			break
		}
		if t := e.classify(r); t.kind == tColon {
			break
		}
		r++
		if !isSpace(c) {
			last = r
		}
	}
	c, ok := e.peek(r)
	mark, n := e.quoteAt(r)
	colon := e.colonAt(r)
	if e.classify(r).kind == tColon {
		colon = yes
	}
	missing := n > 0 && isName(e.in[p-e.base:min(last, e.end())-e.base]) && e.keyAt(r, false) == no
	closing := n > 0 && e.colonAt(e.skip(r+n)) == yes
	group := none
	if e.state == objAfter && e.comma >= 0 {
		group = e.group(p, r)
	}
	opener := e.classify(r).kind == tOpen && isName(e.in[p-e.base:min(last, e.end())-e.base])
	if e.starved {
		return false
	}
	moved := n > 0 && last == r && r == p+1 && c != 0 && isWordByte(e.in[p-e.base]) && mark == doubleQuote && !closing && e.keyAt(r, false) == yes
	if e.starved {
		return false
	}
	switch {
	case moved: // the mark should stand before the first letter
		e.beginString(p, token{quote: noQuote}, roleKey)
		e.edit(Quote, r, r+n, "")
		e.str.quote = mark
		e.pos = r + n
	case ok && colon == yes && last > p, missing && r > last, opener && c != '(' && ok && last > p:
		e.separate(p)
		e.keyStart = p
		e.edit(MissingQuote, p, last, quoteJSON(e.text(p, last)))
		e.pos = last
		e.keyEnded(last)
	case closing:
		e.separate(p)
		e.keyStart = p
		if s := quoteJSON(e.text(p, r)); s[1:len(s)-1] == e.text(p, r) {
			e.insertAfter(MissingQuote, p, `"`)
		} else {
			e.edit(MissingQuote, p, r, s[:len(s)-1])
		}
		if mark != doubleQuote {
			e.edit(Quote, r, r+n, `"`)
		}
		e.pos = r + n
		e.keyEnded(e.pos)
	case group >= 0:
		comma := e.comma
		if e.doubt(DoubtfulComma, comma, 1, "the digits behind the comma do not belong to the number") {
			e.drop(Junk, r)
			e.pos = r
			e.endValue(objAfter, r)
			break
		}
		if group == 3 {
			e.dropComma(Number)
		} else {
			e.edit(Number, comma, comma+1, ".")
			e.comma = none
		}
		e.pos = r
		e.flush(r)
		e.endValue(objAfter, r)
		if group == 3 {
			e.numberEnd = r
		}
	case !ok && e.atEnd(r):
		// A key that breaks off.
		e.keyStart = p
		e.state = objKey
		e.pos = r
	default:
		if r == p {
			r++
		}
		e.edit(Junk, p, r, "")
		e.pos = r
	}
	return true
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
