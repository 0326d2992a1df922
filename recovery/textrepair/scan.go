package textrepair

import "unicode/utf8"

// rawFlags say which of the characters that HTML escapes a text holds as they are.
type rawFlags uint8

const (
	special rawFlags = 1 << iota // of bytes: the scanner looks closer
	rawLess
	rawGreater
	rawQuote
	rawApostrophe
	rawAmpersand
)

var byteFlags = func() (t [256]rawFlags) {
	for b := range t {
		if b < ' ' && b != '\t' && b != '\n' || b >= 0x7F {
			t[b] = special
		}
	}
	t['&'], t['\\'], t['`'], t['~'] = special, special, special, special
	t['<'], t['>'], t['"'], t['\''] = special|rawLess, rawGreater, rawQuote, rawApostrophe
	return t
}()

// rawIn returns the flags of a text.
func rawIn(text []byte) (f rawFlags) {
	for i, b := range text {
		f |= byteFlags[b]
		if b == '&' {
			if n, _ := entityAt(text[i:]); n == 0 {
				f |= rawAmpersand
			}
		}
	}
	return f &^ special
}

// scan looks for the first byte at or behind i with which an edit or finding may begin. Where it cannot tell before it
// sees more of the text, it returns that place and hold. It keeps count of what the text before holds unescaped.
func (e *engine) scan(b []byte, i int, final bool) (at int, hold bool) {
	from := i
	for {
		for i+8 <= len(b) {
			s := b[i : i+8 : i+8]
			f := byteFlags[s[0]] | byteFlags[s[1]] | byteFlags[s[2]] | byteFlags[s[3]] |
				byteFlags[s[4]] | byteFlags[s[5]] | byteFlags[s[6]] | byteFlags[s[7]]
			if f&special != 0 {
				break
			}
			e.raw |= f
			i += 8
		}
		for i < len(b) && byteFlags[b[i]]&special == 0 {
			e.raw |= byteFlags[b[i]]
			i++
		}
		if i == len(b) {
			return e.scanEnd(b, final)
		}
		var next int
		var found bool
		if b[i] >= utf8.RuneSelf {
			next, found, hold = e.scanHigh(b, i, from, final)
		} else {
			next, found, hold = e.scanASCII(b, i, from, final)
		}
		if found || hold {
			return next, hold
		}
		i = next
	}
}

// scanEnd returns the place of a last character that what comes next may change.
func (e *engine) scanEnd(b []byte, final bool) (at int, hold bool) {
	i := len(b) - 1
	if i >= 0 && !final && (b[i] == '_' || e.options.NFC && b[i] > ' ' && b[i] < utf8.RuneSelf) {
		return i, true
	}
	return len(b), false
}

// scanASCII looks at a special ASCII byte. It returns where to go on, or what was found.
// Nothing can begin before from.
func (e *engine) scanASCII(b []byte, i, from int, final bool) (at int, found, hold bool) {
	rest := b[i+1:]
	switch b[i] {
	case '&':
		n, more := entityAt(b[i:])
		switch {
		case n > 0:
			return i, true, false
		case more && !final:
			return i, false, true
		}
		e.raw |= rawAmpersand
	case '<':
		if len(rest) < 2 && !final && (len(rest) == 0 || rest[0] == '0') {
			return i, false, true
		}
		if len(rest) >= 2 && rest[0] == '0' && rest[1] == 'x' {
			return i, true, false
		}
		e.raw |= rawLess
	case '\\':
		if len(rest) == 0 && !final {
			return i, false, true
		}
		if len(rest) > 0 && rest[0] == 'u' {
			return i, true, false
		}
	case '`', '~':
		if atLineStart(b, i) {
			return i, true, false
		}
	case '\r':
		if len(rest) == 0 && !final {
			return i, false, true
		}
		if len(rest) == 0 || rest[0] != '\n' || e.options.LineFeeds {
			return i, true, false
		}
	case '\b':
		if i > from && b[i-1] == '_' {
			i--
		}
		return i, true, false
	case '\f': // a page break
	default:
		return i, true, false
	}
	return i + 1, false, false
}

// atLineStart reports whether only white space stands before b[i] in its line.
func atLineStart(b []byte, i int) bool {
	for i > 0 && (b[i-1] == ' ' || b[i-1] == '\t') {
		i--
	}
	return i == 0 || b[i-1] == '\n'
}

// scanHigh looks at the characters beyond ASCII that begin at b[i]. It returns where to go on, or what was found. Nothing
// can begin before from.
func (e *engine) scanHigh(b []byte, i, from int, final bool) (at int, found, hold bool) {
	if e.options.restyles() {
		if e.options.NFC && i > from && b[i-1] > ' ' && b[i-1] < utf8.RuneSelf {
			i-- // what a combining mark may join
		}
		return i, true, false
	}
	var before letterhead
	var r0 rune
	start := i // of the characters before that sequences are made of
	for i < len(b) && b[i] >= utf8.RuneSelf {
		r, n := decodeRune(b[i:])
		if r == utf8.RuneError || marked(r) {
			cut := n == 1 && !final && !utf8.FullRune(b[i:])
			if before.id != 0 {
				i = start
			}
			return i, !cut, cut
		}
		h := head(r)
		if before.id == 0 || h.id == 0 {
			start = i
		}
		if pages := before.lead & h.cont; pages != 0 {
			switch suspect(r0, latinBefore(b, i, r0), b[i:], pages, final) {
			case yes:
				return start, true, false
			case unknown:
				return start, false, true
			}
		}
		before, r0 = h, r
		i += n
	}
	if i == len(b) && before.id != 0 && !final {
		return start, false, true
	}
	if i == len(b) || before.id == 0 {
		return i, false, false
	}
	switch next := b[i]; {
	case next == ' ' && before.space != 0:
		switch suspect(r0, latinBefore(b, i, r0), b[i:], before.space, final) {
		case yes:
			return start, true, false
		case unknown:
			return start, false, true
		}
	case next == '&':
		n, more := entityAt(b[i:])
		if n == 0 && more && !final {
			return start, false, true
		}
		return either(n > 0, start, i)
	case byteFlags[next]&special != 0 && (next < ' ' && next != '\r' || next == 0x7F): // it may be dropped
		return start, true, false
	}
	return i, false, false
}

// An answer may be that more of the text is needed.
type answer int

const (
	no answer = iota
	yes
	unknown
)

// suspect reports whether a sequence of one of the pages, that first begins and that goes on with b, may be mojibake: it
// is whole, and not a piece of a word in one alphabet (latin: it stands behind a Latin letter), nor a letter of an alphabet in which nothing beside it is.
func suspect(first rune, latin bool, b []byte, pages pageSet, final bool) answer {
	var cells [8]cell
	cells[0].r = first
	n := 1
	for at := 0; n < len(cells) && at < len(b); n++ {
		if !final && !utf8.FullRune(b[at:]) {
			return unknown
		}
		r, size := decodeRune(b[at:])
		cells[n].r = r
		at += size
		if at == len(b) && n+1 < len(cells) && !final {
			return unknown
		}
	}
	for p := 0; pages != 0; p, pages = p+1, pages>>1 {
		if pages&1 == 0 {
			continue
		}
		q, ok := readSequence(cells[:n], 0, p)
		if !ok || !latin && pieceOfWord(cells[:n], q.cells) {
			continue
		}
		switch c := classOf(q.r); {
		case c == markClass && q.r < 0x370:
			return yes
		case c == rareClass:
		case c.cyrillic() || c == scriptLetter || c == hanLetter || c == markClass:
			rest := cells[q.cells:n]
			if len(rest) < 2 || classOf(rest[0].r) == c || c.cyrillic() && classOf(rest[0].r).cyrillic() || head(rest[0].r).lead&follows(rest[0].r, rest[1].r)&(1<<p) != 0 {
				return yes
			}
		default:
			return yes
		}
	}
	return no
}

// pieceOfWord reports whether the first of the cells are letters of one alphabet and what follows may be too.
func pieceOfWord(cells []cell, sequence int) bool {
	if !oneScript(cells[:sequence]) {
		return false
	}
	if sequence == len(cells) {
		return true
	}
	next := classOf(cells[sequence].r)
	return !next.latin() && !(next.upper() && classOf(cells[sequence-1].r).lower())
}

// latinBefore reports whether an ASCII letter stands before the character r that ends at b[i].
func latinBefore(b []byte, i int, r rune) bool {
	i -= utf8.RuneLen(r)
	return i > 0 && alnum(b[i-1]) && b[i-1] > '9'
}

func either(found bool, start, next int) (int, bool, bool) {
	if found {
		return start, true, false
	}
	return next, false, false
}

// decodeRune is utf8.DecodeRune, short for what is most frequent.
func decodeRune(b []byte) (rune, int) {
	if len(b) >= 2 && b[0] >= 0xC2 && b[0] < 0xE0 && b[1]&0xC0 == 0x80 {
		return rune(b[0]&0x1F)<<6 | rune(b[1]&0x3F), 2
	}
	if len(b) >= 3 && b[0] > 0xE0 && b[0] < 0xED && b[1]&0xC0 == 0x80 && b[2]&0xC0 == 0x80 {
		return rune(b[0]&0x0F)<<12 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F), 3
	}
	return utf8.DecodeRune(b)
}

// marked reports whether a character by itself may be changed or reported.
func marked(r rune) bool {
	switch {
	case r < 0x2000:
		return r < 0xA0 || r == spaceLetter || r == newlineLetter || r == 0x61C || r == 0x180E
	case r < 0x2070:
		return r >= 0x200B && r <= 0x200F || r >= 0x2028 && r <= 0x202E || r >= 0x2060
	case r < 0xFEFF:
		return r == wordMark
	}
	return r == 0xFEFF || r >= 0xFFF9 && r <= 0xFFFD || r >= 0xE0000 && r < 0xE0080
}
