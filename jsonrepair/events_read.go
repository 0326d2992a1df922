package jsonrepair

import (
	"unicode/utf8"
)

type viewMode uint8

const (
	viewStart  viewMode = iota // before a document, or behind one and white space
	viewDone                   // behind a document
	viewFirst                  // behind [
	viewValue                  // behind a comma or colon
	viewMember                 // behind {
	viewName                   // behind a comma
	viewColon                  // behind a name
	viewAfter                  // behind a value in a container
	viewKey                    // in a name; from here on, in a scalar
	viewString
	viewNumber
	viewLiteral
)

func (m viewMode) scalar() bool { return m >= viewKey }

// numberState is how much of a number has been read.
type numberState uint8

const (
	numMinus numberState = iota
	numZero
	numInteger
	numPoint
	numFraction
	numExponent
	numSign
	numPower
)

// whole reports whether the number may end.
func (s numberState) whole() bool {
	return s == numZero || s == numInteger || s == numFraction || s == numPower
}

// next returns the state behind another byte. It reports false if the byte cannot
// follow.
func (s numberState) next(c byte) (numberState, bool) {
	digit := isDigit(c)
	switch {
	case s == numMinus && c == '0':
		return numZero, true
	case digit && (s == numMinus || s == numInteger):
		return numInteger, true
	case digit && (s == numPoint || s == numFraction):
		return numFraction, true
	case digit && s >= numExponent:
		return numPower, true
	case c == '.' && (s == numZero || s == numInteger):
		return numPoint, true
	case c|0x20 == 'e' && (s == numZero || s == numInteger || s == numFraction):
		return numExponent, true
	case (c == '-' || c == '+') && s == numExponent:
		return numSign, true
	}
	return s, false
}

// next reads on to the next event. It reports false if there is none yet.
func (v *View) next() (Event, bool) {
	for v.err == nil {
		var e Event
		switch v.mode {
		case viewKey:
			if !v.key() {
				return Event{}, false
			}
			continue
		case viewString:
			e = v.string()
		case viewNumber:
			e = v.digits()
		case viewLiteral:
			e = v.letters()
		default:
			c, i := skipSpace(v.in, v.pos)
			if i > v.pos && v.mode == viewDone {
				v.mode = viewStart
			}
			if v.pos = i; i == len(v.in) {
				v.ended()
				return Event{}, false
			}
			e = v.token(c)
			if e.Kind == 0 {
				continue
			}
		}
		return e, e.Kind != 0
	}
	return Event{}, false
}

// ended fails if the text was closed before its end.
func (v *View) ended() {
	if v.closed && (v.mode == viewStart && v.docs == 0 || v.mode > viewDone) {
		v.fail(len(v.in), "the text ends before its JSON does")
	}
}

func (v *View) fail(i int, cause string) {
	v.err = &Error{Offset: v.base + i, Cause: cause, Tried: "repair it before, or give the view what a Stream commits"}
}

func (v *View) event(k EventKind, i int, raw []byte) Event {
	return Event{Kind: k, Path: v.path, Raw: raw, Offset: v.base + i, Document: v.docs}
}

// token reads what is no part of a scalar. Punctuation is no event.
func (v *View) token(c byte) Event {
	switch v.mode {
	case viewMember, viewName:
		switch {
		case c == '"':
			if v.mode == viewName {
				v.leave()
			}
			v.begin(viewKey)
			return Event{}
		case c == '}' && v.mode == viewMember:
			return v.close()
		}
		v.fail(v.pos, "a key in double quotes was expected")
		return Event{}
	case viewColon:
		if c == ':' {
			v.mode = viewValue
			v.pos++
			return Event{}
		}
		v.fail(v.pos, "a colon was expected")
		return Event{}
	case viewAfter:
		return v.after(c)
	case viewFirst:
		if c == ']' {
			return v.close()
		}
		v.path = append(v.path, "/0"...)
	case viewDone:
		v.fail(v.pos, "white space was expected between two documents")
		return Event{}
	}
	return v.value(c)
}

// after reads what follows a value in a container.
func (v *View) after(c byte) Event {
	object := v.stack.at(0).isObject()
	switch {
	case c == ',' && object:
		v.mode = viewName
	case c == ',':
		v.mode = viewValue
		v.count()
	case c == '}' && object, c == ']' && !object:
		v.leave()
		return v.close()
	default:
		v.fail(v.pos, "a comma or the end of the container was expected")
		return Event{}
	}
	v.pos++
	return Event{}
}

// value reads the first byte of a value.
func (v *View) value(c byte) Event {
	i := v.pos
	switch c {
	case '{':
		v.stack.push(object)
		v.mode = viewMember
	case '[':
		v.stack.push(array)
		v.mode = viewFirst
	case '"':
		v.begin(viewString)
		return v.event(StringBegin, i, nil)
	case 't':
		return v.literal("rue")
	case 'f':
		return v.literal("alse")
	case 'n':
		return v.literal("ull")
	default:
		if v.number = numMinus; c != '-' {
			var ok bool
			if v.number, ok = v.number.next(c); !ok {
				v.fail(i, "a value was expected")
				return Event{}
			}
		}
		v.begin(viewNumber)
		return v.digits()
	}
	v.pos++
	v.keep = v.base + v.pos
	if v.stack.at(0).isObject() {
		return v.event(ObjectBegin, i, nil)
	}
	return v.event(ArrayBegin, i, nil)
}

// begin begins a scalar at its first byte.
func (v *View) begin(m viewMode) {
	v.mode, v.start, v.from = m, v.pos, v.base+v.pos
	v.pos++
}

// end ends a value.
func (v *View) end() {
	v.keep = v.base + v.pos
	if v.mode = viewAfter; v.stack.n == 0 {
		v.mode = viewDone
		v.docs++
	}
}

// close reads the closer of a container.
func (v *View) close() Event {
	e := v.event(ArrayEnd, v.pos, nil)
	if v.stack.at(0).isObject() {
		e.Kind = ObjectEnd
	}
	v.stack.pop()
	v.pos++
	v.end()
	return e
}

// leave takes the last name or index off the path.
func (v *View) leave() {
	i := len(v.path) - 1
	for v.path[i] != '/' { // those of names are escaped
		i--
	}
	v.path = v.path[:i]
}

// count adds one to the index at the end of the path.
func (v *View) count() {
	i := len(v.path) - 1
	for ; v.path[i] == '9'; i-- {
		v.path[i] = '0'
	}
	if v.path[i] != '/' {
		v.path[i]++
		return
	}
	v.path = append(v.path, '0')
	v.path[i+1] = '1'
}

// raw returns the scalar that ends at v.pos, if it was kept.
func (v *View) raw() []byte {
	if v.start < 0 || v.MaxRaw > 0 && v.pos-v.start > v.MaxRaw {
		return nil
	}
	return v.in[v.start:v.pos]
}

// scalar ends a number or literal.
func (v *View) scalar(k EventKind) Event {
	e := Event{Kind: k, Path: v.path, Raw: v.raw(), Offset: v.from, Document: v.docs}
	v.end()
	return e
}

// spill stops keeping a scalar that has become too long.
func (v *View) spill() {
	if v.MaxRaw > 0 && v.pos-v.start > v.MaxRaw {
		v.start = none
	}
}

func (v *View) digits() Event {
	for v.pos < len(v.in) {
		s, ok := v.number.next(v.in[v.pos])
		if !ok {
			if !v.number.whole() {
				v.fail(v.pos, "a digit was expected")
				return Event{}
			}
			return v.scalar(NumberEnd)
		}
		v.number = s
		v.pos++
	}
	if v.spill(); v.number.whole() && (v.settled || v.closed) {
		return v.scalar(NumberEnd)
	}
	v.ended()
	return Event{}
}

func (v *View) literal(rest string) Event {
	v.word = rest
	v.begin(viewLiteral)
	return v.letters()
}

func (v *View) letters() Event {
	for ; v.pos < len(v.in) && v.word != ""; v.pos++ {
		if v.in[v.pos] != v.word[0] {
			v.fail(v.pos, "true, false or null was expected")
			return Event{}
		}
		v.word = v.word[1:]
	}
	if v.word == "" {
		return v.scalar(LiteralEnd)
	}
	v.ended()
	return Event{}
}

// key reads a name and reports whether it has ended.
func (v *View) key() bool {
	v.pos = v.characters()
	if v.err != nil {
		return false
	}
	if v.pos == len(v.in) || v.in[v.pos] != '"' {
		v.ended()
		return false
	}
	v.path = appendPointer(append(v.path, '/'), v.in[v.start+1:v.pos])
	v.mode = viewColon
	v.pos++
	return true
}

// string tells of the characters that are there, or of the string's end.
func (v *View) string() Event {
	i := v.pos
	end := v.characters()
	switch {
	case end > i:
		v.pos = end
		v.spill()
		return v.event(StringPart, i, v.in[i:end])
	case v.err != nil:
	case end < len(v.in) && v.in[end] == '"':
		v.pos++
		return v.scalar(StringEnd)
	default:
		v.ended()
	}
	return Event{}
}

// characters returns where the whole characters from v.pos on end: at the quote,
// at one that has not arrived as a whole, or at the end of what has arrived. It
// fails at what cannot stand in a string, once that is at v.pos.
func (v *View) characters() int {
	i := v.pos
	for {
		if i = skipPlain(v.in, i); i == len(v.in) {
			return i
		}
		n := 0
		switch c := v.in[i]; {
		case c == '"':
			return i
		case c == '\\':
			n = wholeEscape(v.in[i:])
		case c < ' ':
			n = -1
		case !utf8.FullRune(v.in[i:]):
		default:
			var r rune
			if r, n = utf8.DecodeRune(v.in[i:]); r == utf8.RuneError && n == 1 {
				n = -1
			}
		}
		switch {
		case n < 0 && i == v.pos:
			v.fail(i, "what stands there cannot be part of a string")
			return i
		case n <= 0:
			return i
		}
		i += n
	}
}

// wholeEscape returns the length of the escape that b begins with, of two if they
// are a surrogate pair; 0 if it may go on, -1 if it is none.
func wholeEscape(b []byte) int {
	n := escapePrefix(b)
	if n < 6 || unit(b)&0xfc00 != 0xd800 {
		return n
	}
	switch m := escapePrefix(b[6:]); {
	case len(b) == 6, m == 0 && b[6] == '\\':
		return 0
	case m == 6 && unit(b[6:])&0xfc00 == 0xdc00:
		return 12
	}
	return n
}

// escapePrefix returns the length of the escape that b begins with; 0 if it has
// not arrived as a whole, -1 if there is none.
func escapePrefix(b []byte) int {
	switch {
	case len(b) > 0 && b[0] != '\\':
		return -1
	case len(b) < 2:
		return 0
	case b[1] != 'u':
		return escapeLength(b, 0)
	}
	for _, c := range b[2:min(len(b), 6)] {
		if !isHex(c) {
			return -1
		}
	}
	if len(b) < 6 {
		return 0
	}
	return 6
}
