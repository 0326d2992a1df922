package trace

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deeply arrays and objects of a record may nest.
const maxDepth = 512

// A scanner reads one JSON value. The first fault stays in err, and what is read
// after it is zero, so that callers look at err once, at the end. It does not
// build a tree: callers walk objects and arrays and read the fields they know.
type scanner struct {
	b   []byte
	i   int // of the next byte
	err *Error

	// path leads to the value that is read: a name in an object, or an index in an
	// array.
	path []step
	// text holds decoded strings of this record.
	text []byte
}

type step struct {
	name  string
	index int // of an array's element; -1 in an object
}

func (s *scanner) reset(b []byte) {
	s.b, s.i, s.err, s.path, s.text = b, 0, nil, s.path[:0], s.text[:0]
}

// fail notes a fault at the byte i. The error's Offset is relative to b until
// the reader places it.
func (s *scanner) fail(i int, kind Kind, text string) {
	if s.err != nil {
		return
	}
	if p := s.where(); p != "" {
		text = p + ": " + text
	}
	s.err = &Error{Offset: int64(min(i, len(s.b))), Kind: kind, Text: text}
	s.i = len(s.b)
}

// where names the value that is read as in messages[2].content.
func (s *scanner) where() string {
	var b strings.Builder
	for _, p := range s.path {
		switch {
		case p.index >= 0:
			fmt.Fprintf(&b, "[%d]", p.index)
		case p.name != "":
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(p.name)
		}
	}
	return b.String()
}

// peek returns the next byte that is no space; 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		c := s.b[s.i]
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
		s.i++
	}
	return 0
}

// got names the next value for an error.
func (s *scanner) got() string {
	c := s.peek()
	switch {
	case s.i >= len(s.b):
		return "the end"
	case c == '"':
		return "a string"
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == 't' || c == 'f':
		return "a boolean"
	case c == 'n' && bytes.HasPrefix(s.b[s.i:], []byte("null")):
		return "null"
	case c == '-' || c >= '0' && c <= '9':
		return "a number"
	}
	return fmt.Sprintf("%q", s.b[s.i:s.i+1])
}

// wrong notes that the next value is not what the format says.
func (s *scanner) wrong(want string) {
	c := s.peek()
	switch {
	case s.i >= len(s.b):
		s.fail(s.i, Cut, "the record ends here, want "+want)
	case c == 'N' || c == 'I' || bytes.HasPrefix(s.b[s.i:], []byte("-I")):
		s.fail(s.i, Range, "want "+want+", got no number that JSON knows: NaN and infinity are none")
	case strings.IndexByte(`"{[tfn-`, c) >= 0 || c >= '0' && c <= '9':
		s.fail(s.i, Type, "want "+want+", got "+s.got())
	default:
		s.fail(s.i, Syntax, "want "+want+", got "+s.got())
	}
}

// null goes over a null.
func (s *scanner) null() bool {
	if s.peek() != 'n' || !bytes.HasPrefix(s.b[s.i:], []byte("null")) {
		return false
	}
	s.i += len("null")
	return true
}

// end notes an error where something follows the value.
func (s *scanner) end() {
	if s.peek(); s.err == nil && s.i < len(s.b) {
		s.path = s.path[:0]
		s.fail(s.i, Syntax, "something follows the value: want one value in a record")
	}
}

// members walks an object.
type members struct {
	names []string
	seen  uint64 // of names
	null  uint64 // of names, those whose value is null
	guess int    // the field that came after this one in the last object
	count int    // members so far, wanted or not
	field int    // index in names of the current member
	at    int    // byte where its value begins
}

// object begins an object of which the members with the given names, at most 64,
// are wanted.
func (s *scanner) object(names []string) members {
	if s.peek() != '{' {
		s.wrong("an object")
		return members{}
	}
	s.i++
	s.push("", -1)
	return members{names: names}
}

func (s *scanner) push(name string, index int) {
	if len(s.path) >= maxDepth {
		s.fail(s.i, Syntax, fmt.Sprintf("nested more than %d levels deep", maxDepth))
	}
	s.path = append(s.path, step{name, index})
}

func (s *scanner) pop() { s.path = s.path[:len(s.path)-1] }

// next goes to the next wanted member that is not null. The caller reads its
// value. At the end of the object it is false.
func (m *members) next(s *scanner) bool {
	for s.err == nil {
		top := &s.path[len(s.path)-1]
		top.name = ""
		c := s.peek()
		if c == '}' {
			s.i++
			s.pop()
			return false
		}
		if m.count > 0 {
			if c != ',' {
				s.separator("a comma or the object's end")
				return false
			}
			s.i++
			c = s.peek()
		}
		m.count++
		if c != '"' {
			s.separator("a name in quotes")
			return false
		}
		nameAt := s.i
		name := s.string()
		if s.err != nil {
			return false
		}
		m.field = m.index(name)
		if m.field >= 0 {
			top.name = m.names[m.field]
			if m.seen>>m.field&1 != 0 {
				s.fail(nameAt, Duplicate, "given twice")
				return false
			}
			m.seen |= 1 << m.field
		}
		if s.peek() != ':' {
			s.separator("a colon")
			return false
		}
		s.i++
		switch c := s.peek(); {
		case m.field < 0:
			s.skip()
		case c == 'n' && s.null():
			m.null |= 1 << m.field
		default:
			m.at = s.i
			return true
		}
	}
	return false
}

func (s *scanner) separator(want string) {
	if s.i >= len(s.b) {
		s.fail(s.i, Cut, "the record ends inside an object or array")
		return
	}
	s.fail(s.i, Syntax, "want "+want+", got "+s.got())
}

// index finds a name. Traces keep an order, so the one after the last is tried
// first.
func (m *members) index(name []byte) int {
	if m.guess < len(m.names) && string(name) == m.names[m.guess] {
		m.guess++
		return m.guess - 1
	}
	for i, n := range m.names {
		if string(name) == n {
			m.guess = i + 1
			return i
		}
	}
	return -1
}

// has says whether the object had the member, and not as null.
func (m *members) has(field int) bool { return m.seen&^m.null>>field&1 != 0 }

// need notes an error where the record's object lacks a member.
func (s *scanner) need(m *members, fields ...int) { s.needAt(0, m, fields...) }

// needAt does so for an object that begins at the byte at.
func (s *scanner) needAt(at int, m *members, fields ...int) {
	if s.err != nil {
		return
	}
	for _, f := range fields {
		if !m.has(f) {
			s.fail(at, Missing, "no "+m.names[f])
		}
	}
}

// elements walks an array.
type elements struct{ n int }

func (s *scanner) array(want string) elements {
	if s.peek() != '[' {
		s.wrong(want)
		return elements{}
	}
	s.i++
	s.push("", 0)
	return elements{}
}

// next goes to the next element. At the end of the array it is false.
func (e *elements) next(s *scanner) bool {
	if s.err != nil {
		return false
	}
	c := s.peek()
	switch {
	case c == ']':
		s.i++
		s.pop()
		return false
	case e.n > 0:
		if c != ',' {
			s.separator("a comma or the array's end")
			return false
		}
		s.i++
		if s.peek() == ']' {
			s.separator("a value")
			return false
		}
	}
	s.path[len(s.path)-1].index = e.n
	e.n++
	return true
}

// string reads a string. What it returns is part of b or of text, and valid until
// the next record.
func (s *scanner) string() []byte {
	if s.peek() != '"' {
		s.wrong("a string")
		return nil
	}
	start := s.i + 1
	ascii := true
	for i := start; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			v := s.b[start:i]
			if !ascii && !utf8.Valid(v) {
				s.badUTF8(start, v)
				return nil
			}
			s.i = i + 1
			return v
		case c == '\\':
			return s.unquote(start, i)
		case c < ' ':
			s.fail(i, Syntax, fmt.Sprintf("the control character 0x%02x must be escaped in a string", c))
			return nil
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	s.fail(len(s.b), Cut, "the record ends inside a string")
	return nil
}

func (s *scanner) badUTF8(start int, v []byte) {
	for i := 0; i < len(v); {
		r, n := utf8.DecodeRune(v[i:])
		if r == utf8.RuneError && n == 1 {
			s.fail(start+i, Encoding, fmt.Sprintf("the byte 0x%02x is no UTF-8", v[i]))
			return
		}
		i += n
	}
}

// unquote reads a string that has an escape at i.
func (s *scanner) unquote(start, i int) []byte {
	from, run := len(s.text), start
	for i < len(s.b) {
		c := s.b[i]
		if c < ' ' {
			s.fail(i, Syntax, fmt.Sprintf("the control character 0x%02x must be escaped in a string", c))
			return nil
		}
		if c != '"' && c != '\\' {
			i++
			continue
		}
		if !utf8.Valid(s.b[run:i]) {
			s.badUTF8(run, s.b[run:i])
			return nil
		}
		s.text = append(s.text, s.b[run:i]...)
		if c == '"' {
			s.i = i + 1
			return s.text[from:len(s.text):len(s.text)]
		}
		n := s.escape(i)
		if s.err != nil {
			return nil
		}
		i += n
		run = i
	}
	s.fail(len(s.b), Cut, "the record ends inside a string")
	return nil
}

// escape adds what the escape sequence at i stands for, and returns its length.
func (s *scanner) escape(i int) int {
	if i+1 >= len(s.b) {
		s.fail(len(s.b), Cut, "the record ends inside a string")
		return 0
	}
	const letters, values = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	c := s.b[i+1]
	if k := strings.IndexByte(letters, c); k >= 0 {
		s.text = append(s.text, values[k])
		return 2
	}
	if c != 'u' {
		s.fail(i, Syntax, fmt.Sprintf("%q is no escape sequence of JSON", s.b[i:i+2]))
		return 0
	}
	r, ok := s.hex(i)
	if !ok {
		return 0
	}
	n := 6
	if utf16.IsSurrogate(r) {
		var low rune
		if bytes.HasPrefix(s.b[i+6:], []byte(`\u`)) {
			if low, ok = s.hex(i + 6); !ok {
				return 0
			}
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			s.fail(i, Encoding, "half of a surrogate pair")
			return 0
		}
		n = 12
	}
	s.text = utf8.AppendRune(s.text, r)
	return n
}

func (s *scanner) hex(i int) (rune, bool) {
	if len(s.b) < i+6 {
		s.fail(len(s.b), Cut, "the record ends inside a string")
		return 0, false
	}
	v, err := strconv.ParseUint(string(s.b[i+2:i+6]), 16, 16)
	if err != nil {
		s.fail(i, Syntax, `want four hexadecimal digits after \u`)
		return 0, false
	}
	return rune(v), true
}

// number goes over a number and returns it as it is written.
func (s *scanner) number(want string) []byte {
	c := s.peek()
	if c != '-' && (c < '0' || c > '9') || bytes.HasPrefix(s.b[s.i:], []byte("-I")) {
		s.wrong(want)
		return nil
	}
	start := s.i
	i := start
	if c == '-' {
		i++
	}
	digits := func() int {
		from := i
		for i < len(s.b) && s.b[i] >= '0' && s.b[i] <= '9' {
			i++
		}
		return i - from
	}
	first := i
	n := digits()
	bad := n == 0 || n > 1 && s.b[first] == '0'
	if !bad && i < len(s.b) && s.b[i] == '.' {
		i++
		bad = digits() == 0
	}
	if !bad && i < len(s.b) && s.b[i]|0x20 == 'e' {
		i++
		if i < len(s.b) && (s.b[i] == '+' || s.b[i] == '-') {
			i++
		}
		bad = digits() == 0
	}
	if bad {
		if i >= len(s.b) {
			s.fail(i, Cut, "the record ends inside a number")
		} else {
			s.fail(start, Syntax, "want a number as JSON writes it")
		}
		return nil
	}
	s.i = i
	return s.b[start:i]
}

// integer reads a whole number from low to high. What names it in errors.
func (s *scanner) integer(what string, low, high int64) int64 {
	s.peek()
	at := s.i
	t := s.number(what)
	if s.err != nil {
		return 0
	}
	v, ok := whole(t)
	switch {
	case !ok:
		s.fail(at, Type, "want "+what+", got "+short(t))
	case v < low || v > high:
		s.fail(at, Range, fmt.Sprintf("want %s from %d to %d, got %s", what, low, high, short(t)))
	default:
		return v
	}
	return 0
}

// whole reads a number that may be written as 16.0 or 1e3. What does not fit
// comes back as the nearest number that does.
func whole(t []byte) (int64, bool) {
	if len(t) < 19 {
		v, neg := int64(0), t[0] == '-'
		d := t
		if neg {
			d = t[1:]
		}
		plain := true
		for _, c := range d {
			if c < '0' || c > '9' {
				plain = false
				break
			}
			v = v*10 + int64(c-'0')
		}
		if plain {
			if neg {
				v = -v
			}
			return v, true
		}
	}
	if !bytes.ContainsAny(t, ".eE") {
		v, _ := strconv.ParseInt(string(t), 10, 64) // clamped where it does not fit
		return v, true
	}
	f, _ := strconv.ParseFloat(string(t), 64)
	if f != math.Trunc(f) {
		return 0, false
	}
	switch {
	case f >= 1<<63:
		return math.MaxInt64, true
	case f <= -1<<63:
		return math.MinInt64, true
	}
	return int64(f), true
}

// short is t, cut for an error.
func short(t []byte) string {
	if len(t) > 40 {
		return string(t[:40]) + "…"
	}
	return string(t)
}

func quoteShort(t []byte) string { return fmt.Sprintf("%q", short(t)) }

// tokens reads a number of tokens.
func (s *scanner) tokens() int {
	return int(s.integer("a whole number of tokens", 0, math.MaxInt32))
}

// decimal multiplies a number with a unit, a power of ten of nanoseconds. Written
// without an exponent, it is exact to the nanosecond. It is false where the time
// is negative or 292 years and more.
func decimal(t []byte, unit time.Duration) (time.Duration, bool) {
	if t[0] == '-' {
		f, _ := strconv.ParseFloat(string(t), 64)
		return 0, f == 0
	}
	var v, scale uint64 = 0, uint64(unit)
	fraction := false
	for _, c := range t {
		switch {
		case c == '.':
			fraction = true
		case c|0x20 == 'e':
			f, err := strconv.ParseFloat(string(t), 64)
			f *= float64(unit)
			return time.Duration(f), err == nil && f < math.MaxInt64
		case fraction && scale < 10: // below a nanosecond
		case fraction:
			scale /= 10
			v += uint64(c-'0') * scale
		default:
			d := uint64(c-'0') * uint64(unit)
			if v > (math.MaxInt64-d)/10 {
				return 0, false
			}
			v = v*10 + d
		}
	}
	return time.Duration(v), v <= math.MaxInt64
}

// raw goes over a value and returns it as it is written.
func (s *scanner) raw() []byte {
	s.peek()
	start := s.i
	s.skip()
	if s.err != nil {
		return nil
	}
	return s.b[start:s.i:s.i]
}

// skip goes over a value of any type, which must be valid.
func (s *scanner) skip() {
	switch c := s.peek(); {
	case s.err != nil:
	case c == '{':
		for m := s.object(nil); m.next(s); {
		}
	case c == '[':
		for e := s.array(""); e.next(s); {
			s.skip()
		}
	case c == '"':
		n := len(s.text)
		s.string()
		s.text = s.text[:n]
	case c == 't' || c == 'f' || c == 'n':
		for _, word := range [...]string{"true", "false", "null"} {
			if bytes.HasPrefix(s.b[s.i:], []byte(word)) {
				s.i += len(word)
				return
			}
			if bytes.HasPrefix([]byte(word), s.b[s.i:]) {
				s.fail(len(s.b), Cut, "the record ends inside "+word)
				return
			}
		}
		s.fail(s.i, Syntax, "want a value, got "+quoteShort(s.b[s.i:]))
	default:
		s.number("a value")
	}
}
