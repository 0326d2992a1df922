package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of what is read. They are far above the files in use: Gemma 3, one of
// the largest, has 33 MB and 262,144 tokens.
const (
	MaxFileBytes   = 256 << 20
	MaxID          = 4<<20 - 1
	MaxTokenBytes  = 64 << 10 // of a token of a vocabulary
	MaxStringBytes = 32 << 20 // of any other string
	MaxDepth       = 64       // of arrays and objects in each other
	MaxNames       = 1 << 19  // of members of an object
)

// Span is a run of bytes of the data.
type Span struct{ Off, Len uint32 }

// Of gives the bytes of the span, which must not be modified.
func (s Span) Of(data []byte) []byte {
	return data[s.Off : s.Off+s.Len : s.Off+s.Len]
}

// Scanner reads JSON (RFC 8259) from memory. Strings are decoded in place:
// what an escape sequence stands for is never longer than itself.
type Scanner struct {
	data []byte
	pos  int
}

// Data is what is read. Spans are parts of it.
func (s *Scanner) Data() []byte { return s.data }

// Pos is the offset of what comes next: after Next, of that byte.
func (s *Scanner) Pos() int { return s.pos }

// Take goes over the byte that Next gave.
func (s *Scanner) Take() { s.pos++ }

// New makes a scanner for data. A byte order mark is left out.
func New(data []byte) (*Scanner, error) {
	if len(data) > MaxFileBytes {
		return nil, Fail(ErrLimit, MaxFileBytes, "the file has %d bytes; at most %d are read", len(data), MaxFileBytes)
	}
	s := &Scanner{data: data}
	switch {
	case len(data) >= 2 && (data[0] == 0xff && data[1] == 0xfe || data[0] == 0xfe && data[1] == 0xff):
		return nil, Fail(ErrSyntax, 0, "the file is UTF-16; save it as UTF-8")
	case len(data) >= 3 && string(data[:3]) == "\xef\xbb\xbf":
		s.pos = 3
	}
	return s, nil
}

const (
	low  = 0x0101010101010101
	high = 0x8080808080808080
)

// Next skips white space and gives the byte that follows, or 0 at the end of
// the data, which no value begins with.
func (s *Scanner) Next() byte {
	if s.pos < len(s.data) && s.data[s.pos] > ' ' {
		return s.data[s.pos]
	}
	return s.nextAfterSpace()
}

// nextAfterSpace is Next where there is white space. Indented files have more
// of it than of anything else, so runs of spaces go eight at a time.
func (s *Scanner) nextAfterSpace() byte {
	data, i := s.data, s.pos
	for i < len(data) {
		switch c := data[i]; c {
		case '\n', '\r', '\t', ' ':
			i++
		default:
			s.pos = i
			return c
		}
		for i+8 <= len(data) {
			other := binary.LittleEndian.Uint64(data[i:]) ^ ' '*low
			if other != 0 {
				i += bits.TrailingZeros64(other) / 8
				break
			}
			i += 8
		}
	}
	s.pos = i
	return 0
}

// Unexpected is the error for what stands where want should.
func (s *Scanner) Unexpected(want string) error {
	s.Next()
	if s.pos >= len(s.data) {
		return Fail(ErrSyntax, s.pos, "the file ends where %s should follow; it is cut short", want)
	}
	_, n := utf8.DecodeRune(s.data[s.pos:])
	return Fail(ErrSyntax, s.pos, "%q stands where %s should", s.data[s.pos:s.pos+n], want)
}

// Expect takes the byte c.
func (s *Scanner) Expect(c byte, want string) error {
	if s.Next() != c {
		return s.Unexpected(want)
	}
	s.pos++
	return nil
}

// str takes a string. The scanner stands at its quotation mark.
func (s *Scanner) str() (Span, error) {
	data := s.data
	start := s.pos + 1
	i := start
	var seen uint64 // the high bits of all bytes
	for i+8 <= len(data) {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, back := w^'"'*low, w^'\\'*low
		// The lowest bit set belongs to the first byte that is '"', '\\' or a
		// control character; borrows spoil only the bytes above it.
		stop := ((quote-low)&^quote | (back-low)&^back | (w-' '*low)&^w) & high
		if stop == 0 {
			seen |= w
			i += 8
			continue
		}
		i += bits.TrailingZeros64(stop) / 8
		if data[i] != '"' {
			break
		}
		seen |= w & ((stop ^ (stop - 1)) >> 8) // the bytes before the quotation mark
		if seen&high != 0 && !utf8.Valid(data[start:i]) {
			return Span{}, notUTF8(data, start, i)
		}
		s.pos = i + 1
		return Span{uint32(start), uint32(i - start)}, nil
	}
	return s.strRest(start, i)
}

// notUTF8 is the error for the first byte of data[from:to] that is not UTF-8.
func notUTF8(data []byte, from, to int) error {
	for from < to {
		r, n := utf8.DecodeRune(data[from:to])
		if r == utf8.RuneError && n == 1 {
			break
		}
		from += n
	}
	return Fail(ErrSyntax, from, "byte 0x%02x is not UTF-8; the file is damaged or in another encoding", data[from])
}

// strRest goes on with a string from i; what stands before is plain.
func (s *Scanner) strRest(start, i int) (Span, error) {
	data := s.data
	to := i // where the next decoded byte goes
	for i < len(data) {
		switch c := data[i]; {
		case c == '"':
			if !utf8.Valid(data[start:to]) {
				// The bytes have moved: the offset is a little low.
				return Span{}, notUTF8(data, start, to)
			}
			s.pos = i + 1
			return Span{uint32(start), uint32(to - start)}, nil
		case c < ' ':
			return Span{}, Fail(ErrSyntax, i, "control character 0x%02x in a string", c)
		case c == '\\':
			n, size, err := s.escape(i, data[to:to])
			if err != nil {
				return Span{}, err
			}
			i += n
			to += size
		default:
			data[to] = c
			to++
			i++
		}
	}
	return Span{}, Fail(ErrSyntax, len(data), "the file ends in the string that begins at byte %d; it is cut short", start-1)
}

// escape decodes the escape sequence at i, or two of them that are a surrogate
// pair, to dst. It gives how many bytes were read and how many written.
func (s *Scanner) escape(i int, dst []byte) (n, size int, err error) {
	data := s.data
	if i+1 >= len(data) {
		return 0, 0, Fail(ErrSyntax, len(data), "the file ends in an escape sequence; it is cut short")
	}
	plain := data[i+1]
	switch plain {
	case '"', '\\', '/':
	case 'b':
		plain = '\b'
	case 'f':
		plain = '\f'
	case 'n':
		plain = '\n'
	case 'r':
		plain = '\r'
	case 't':
		plain = '\t'
	case 'u':
		r, ok := hex4(data, i)
		if !ok {
			return 0, 0, Fail(ErrSyntax, i, `\u without four hexadecimal digits`)
		}
		n = 6
		if utf16.IsSurrogate(r) {
			second, _ := hex4(data, i+6)
			r = utf16.DecodeRune(r, second)
			if r == utf8.RuneError {
				return 0, 0, Fail(ErrSyntax, i, "%s is half of a surrogate pair and stands for nothing", data[i:i+6])
			}
			n = 12
		}
		return n, len(utf8.AppendRune(dst, r)), nil
	default:
		return 0, 0, Fail(ErrSyntax, i, "unknown escape sequence %q", data[i:i+2])
	}
	_ = append(dst, plain)
	return 2, 1, nil
}

// hex4 reads \uXXXX at i.
func hex4(data []byte, i int) (r rune, ok bool) {
	if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
		return 0, false
	}
	for _, c := range data[i+2 : i+6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Text takes a string that is not a token of the vocabulary.
func (s *Scanner) Text() (Span, error) {
	if s.Next() != '"' {
		return Span{}, s.Unexpected("a string")
	}
	at := s.pos
	text, err := s.str()
	if err == nil && text.Len > MaxStringBytes {
		err = Fail(ErrLimit, at, "the string has %d bytes; at most %d are read", text.Len, MaxStringBytes)
	}
	return text, err
}

// Token takes a string that is a token of the vocabulary.
func (s *Scanner) Token() (Span, error) {
	if s.Next() != '"' {
		return Span{}, s.Unexpected("a token, which is a string,")
	}
	at := s.pos
	text, err := s.str()
	if err == nil && text.Len > MaxTokenBytes {
		err = Fail(ErrLimit, at, "the token has %d bytes; at most %d are read", text.Len, MaxTokenBytes)
	}
	return text, err
}

// ID takes a number that is a token ID.
func (s *Scanner) ID() (int, error) {
	c := s.Next()
	at := s.pos
	if c < '0' || c > '9' {
		return 0, s.Unexpected("a token ID, which is a whole number from 0,")
	}
	n := 0
	for s.pos < len(s.data) {
		d := s.data[s.pos] - '0'
		if d > 9 {
			break
		}
		n = n*10 + int(d)
		s.pos++
		if n > MaxID {
			return 0, Fail(ErrLimit, at, "a token ID above %d", MaxID)
		}
	}
	if c == '0' && s.pos-at > 1 {
		return 0, Fail(ErrSyntax, at, "a number with a leading zero")
	}
	if s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '.', 'e', 'E':
			return 0, Fail(ErrInvalid, at, "a token ID that is not a whole number")
		}
	}
	return n, nil
}

// Number takes any number and gives its digits.
func (s *Scanner) Number() (Span, error) {
	s.Next()
	data, start, i := s.data, s.pos, s.pos
	digits := func() bool {
		from := i
		for i < len(data) && data[i]-'0' <= 9 {
			i++
		}
		return i > from
	}
	if i < len(data) && data[i] == '-' {
		i++
	}
	first := i
	if !digits() {
		return Span{}, s.Unexpected("a number")
	}
	if data[first] == '0' && i-first > 1 {
		return Span{}, Fail(ErrSyntax, start, "a number with a leading zero")
	}
	if i < len(data) && data[i] == '.' {
		i++
		if !digits() {
			return Span{}, Fail(ErrSyntax, start, "a number that ends in a point")
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if !digits() {
			return Span{}, Fail(ErrSyntax, start, "a number without the digits of its exponent")
		}
	}
	s.pos = i
	return Span{uint32(start), uint32(i - start)}, nil
}

// Literal takes true, false or null, whichever word is.
func (s *Scanner) Literal(word string) error {
	s.Next()
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return s.Unexpected("a value")
	}
	s.pos += len(word)
	return nil
}

// Null takes null and reports true, or takes nothing.
func (s *Scanner) Null() bool {
	return s.Next() == 'n' && s.Literal("null") == nil
}

// Object calls member for each member of an object; the scanner then stands
// before the value, which member must take. A name that comes twice is an
// error.
func (s *Scanner) Object(member func(name []byte, at int) error) error {
	if err := s.Expect('{', "an object"); err != nil {
		return err
	}
	if s.Next() == '}' {
		s.pos++
		return nil
	}
	var seen names
	for {
		if s.Next() != '"' {
			return s.Unexpected("the name of a member")
		}
		at := s.pos
		name, err := s.Text()
		if err != nil {
			return err
		}
		text := name.Of(s.data)
		switch {
		case !seen.add(text):
			return Under(string(text), Fail(ErrInvalid, at, "the name stands twice in one object"))
		case len(seen.many) > MaxNames:
			return Fail(ErrLimit, at, "an object of more than %d members", MaxNames)
		}
		if err := s.Expect(':', "a colon"); err != nil {
			return err
		}
		if err := member(text, at); err != nil {
			return Under(string(text), err)
		}
		switch s.Next() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return nil
		default:
			return s.Unexpected("a comma or }")
		}
	}
}

// Array calls item for each element of an array; the scanner then stands
// before the value, which item must take.
func (s *Scanner) Array(item func(i int) error) error {
	if err := s.Expect('[', "an array"); err != nil {
		return err
	}
	if s.Next() == ']' {
		s.pos++
		return nil
	}
	for i := 0; ; i++ {
		if err := item(i); err != nil {
			return UnderItem(i, err)
		}
		switch s.Next() {
		case ',':
			s.pos++
		case ']':
			s.pos++
			return nil
		default:
			return UnderItem(i+1, s.Unexpected("a comma or ]"))
		}
	}
}

// Skip takes any value.
func (s *Scanner) Skip() error { return s.skip(MaxDepth) }

func (s *Scanner) skip(depth int) error {
	switch s.Next() {
	case '{', '[':
		if depth == 0 {
			return Fail(ErrLimit, s.pos, "nested more than %d deep", MaxDepth)
		}
		if s.data[s.pos] == '{' {
			return s.Object(func([]byte, int) error { return s.skip(depth - 1) })
		}
		return s.Array(func(int) error { return s.skip(depth - 1) })
	case '"':
		_, err := s.Text()
		return err
	case 't':
		return s.Literal("true")
	case 'f':
		return s.Literal("false")
	case 'n':
		return s.Literal("null")
	}
	if _, err := s.Number(); err != nil {
		return s.Unexpected("a value")
	}
	return nil
}

// Flag takes true or false.
func (s *Scanner) Flag() (bool, error) {
	switch s.Next() {
	case 't':
		return true, s.Literal("true")
	case 'f':
		return false, s.Literal("false")
	}
	return false, s.Unexpected("true or false")
}

// End checks that nothing follows.
func (s *Scanner) End() error {
	if s.Next(); s.pos < len(s.data) {
		return Fail(ErrSyntax, s.pos, "something follows the end of the top-level value")
	}
	return nil
}

// names is a set of names of one object. Most have a handful.
type names struct {
	few  [16][]byte
	n    int
	many map[string]bool
}

// add reports whether name is new.
func (s *names) add(name []byte) bool {
	if s.many == nil {
		for _, old := range s.few[:s.n] {
			if string(old) == string(name) {
				return false
			}
		}
		if s.n < len(s.few) {
			s.few[s.n] = name
			s.n++
			return true
		}
		s.many = make(map[string]bool, 4*len(s.few))
		for _, old := range s.few {
			s.many[string(old)] = true
		}
	}
	if s.many[string(name)] {
		return false
	}
	s.many[string(name)] = true
	return true
}
