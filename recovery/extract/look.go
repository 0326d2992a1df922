package extract

// A look is a text of which more may come. Reading behind its end sets starved,
// unless there is no more: who decides something asks for starved afterwards, and
// decides again when there is more text.
type look struct {
	b       []byte
	eof     bool
	starved bool
	reads   int // calls of at
}

// at returns the byte at i, false behind the end.
func (l *look) at(i int) (byte, bool) {
	l.reads++
	if i < len(l.b) {
		return l.b[i], true
	}
	l.starved = l.starved || !l.eof
	return 0, false
}

// has reports whether s stands at i.
func (l *look) has(i int, s string) bool {
	for k := 0; k < len(s); k++ {
		if c, ok := l.at(i + k); !ok || c != s[k] {
			return false
		}
	}
	return true
}

// hasFold is has for ASCII letters of either case; s is in lower case.
func (l *look) hasFold(i int, s string) bool {
	for k := 0; k < len(s); k++ {
		if c, ok := l.at(i + k); !ok || lower(c) != s[k] {
			return false
		}
	}
	return true
}

// space returns the first place from i on, within limit bytes, that holds no white
// space, be it of JSON or not.
func (l *look) space(i, limit int) int {
	for end := i + limit; i < end; {
		c, ok := l.at(i)
		switch {
		case !ok:
			return i
		case isSpace(c):
			i++
		default:
			n := l.blankAt(i, c)
			if n == 0 {
				return i
			}
			i += n
		}
	}
	return i
}

// blankAt returns the length of the space outside ASCII at i, whose first byte is
// c: a no-break space, one of a certain width, or a mark of none.
func (l *look) blankAt(i int, c byte) int {
	switch {
	case c == 0xc2 && l.has(i+1, "\xa0"):
		return 2
	case c == 0xe2 && l.has(i+1, "\x80"):
		if d, _ := l.at(i + 2); 0x80 <= d && d <= 0x8f || d == 0xa8 || d == 0xa9 || d == 0xaf {
			return 3
		}
	case c == 0xe3 && l.has(i+1, "\x80\x80"), c == 0xef && l.has(i+1, "\xbb\xbf"):
		return 3
	}
	return 0
}

func isSpace(c byte) bool  { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isBlank(c byte) bool  { return c == ' ' || c == '\t' || c == '\r' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { c |= 0x20; return 'a' <= c && c <= 'z' }

// isWord reports whether c is part of a bare word: every byte of a character
// outside ASCII is.
func isWord(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '$' || c >= 0x80
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return c
}
