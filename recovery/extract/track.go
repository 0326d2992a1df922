package extract

// A quote is a form of quotation mark.
type quote uint8

const (
	noQuote    quote = iota
	straight         // "
	single           // '
	curly            // “ ” „
	curlyOne         // ‘ ’
	backtick         // `
	escaped          // \"
	entityMark       // &quot;
)

// closedBy reports whether a mark of form f can end a string that q began.
func (q quote) closedBy(f quote) bool {
	return q == f || q == curly && f == straight || q == curlyOne && f == single
}

// doubtful reports whether q opens a string only where a value or key can begin:
// elsewhere it is an apostrophe or code.
func (q quote) doubtful() bool { return q == single || q == curlyOne || q == backtick }

// quoteAt returns the form and length of the mark at i.
func (l *look) quoteAt(i int) (quote, int) {
	c, ok := l.at(i)
	if !ok {
		return noQuote, 0
	}
	switch c {
	case '"':
		return straight, 1
	case '\'':
		return single, 1
	case '`':
		return backtick, 1
	case '\\':
		if l.has(i+1, `"`) {
			return escaped, 2
		}
	case '&':
		if l.has(i+1, "quot;") {
			return entityMark, 6
		}
	case 0xe2:
		if !l.has(i+1, "\x80") {
			return noQuote, 0
		}
		switch c, _ := l.at(i + 2); c {
		case 0x9c, 0x9d, 0x9e:
			return curly, 3
		case 0x98, 0x99:
			return curlyOne, 3
		}
	}
	return noQuote, 0
}

// structAt returns the JSON token that the mark at i stands for, in ASCII or full
// width, and its length.
func (l *look) structAt(i int) (byte, int) {
	c, _ := l.at(i)
	switch c {
	case '{', '}', '[', ']', ',', ':':
		return c, 1
	case 0xef:
		switch {
		case l.has(i+1, "\xbd\x9b"):
			return '{', 3
		case l.has(i+1, "\xbd\x9d"):
			return '}', 3
		case l.has(i+1, "\xbc\xbb"):
			return '[', 3
		case l.has(i+1, "\xbc\xbd"):
			return ']', 3
		case l.has(i+1, "\xbc\x8c"):
			return ',', 3
		case l.has(i+1, "\xbc\x9a"):
			return ':', 3
		}
	}
	return 0, 0
}

// maxGap is how much white space behind a quotation mark is looked past.
const maxGap = 64

// endsString reports whether a string can end before i, by what follows: in JSON
// a comma, a colon, a closer or the end, in broken JSON a comment or, on a new
// line, the next string.
func (l *look) endsString(i int) bool {
	r := l.space(i, maxGap)
	c, ok := l.at(r)
	if !ok || r >= i+maxGap || c == '/' && (l.has(r+1, "/") || l.has(r+1, "*")) {
		return true
	}
	if t, n := l.structAt(r); n > 0 {
		return t != '{' && t != '['
	}
	if f, n := l.quoteAt(r); n > 0 && !f.doubtful() {
		for k := i; k < r; k++ {
			if l.b[k] == '\n' {
				return true
			}
		}
	}
	return false
}

// A track follows JSON, broken or not, through its brackets and strings. Of valid
// JSON it knows each bracket and string exactly. In other texts a quotation mark
// ends a string only if what follows can go on behind one, so that after a mark
// too many or too few it soon finds the rhythm again.
type track struct {
	stack   []byte // '{' and '[', the innermost last
	objects int    // in stack
	quote   quote  // of the string that is open
	skip    bool   // the next byte is escaped
	last    byte   // the last byte outside strings that is no space; '"' for a string
	line    bool   // only words have come since the line began
	word    bool
	words   int
	wordsAt int // where the line of words began

	done bool // everything has been closed
	lost bool // what comes is prose, or too deep to follow
}

// inString reports whether the next byte is part of a string.
func (t *track) inString() bool { return t.quote != noQuote }

// active reports whether JSON is being followed.
func (t *track) active() bool { return len(t.stack) > 0 && !t.done && !t.lost }

// reset forgets everything, but for memory.
func (t *track) reset() { *t = track{stack: t.stack[:0]} }

// step takes what stands at i and returns how many bytes it was, 0 if more text
// is needed to say.
func (t *track) step(l *look, i int) int {
	n := 0
	if t.quote != noQuote {
		n = t.stepString(l, i)
	} else {
		n = t.stepOutside(l, i)
	}
	if l.starved {
		return 0
	}
	return n
}

func (t *track) stepString(l *look, i int) int {
	c := l.b[i]
	switch {
	case t.skip:
		t.skip = false
		return 1
	case c == '\\' && t.quote == escaped && l.has(i+1, `\\"`):
		return 4 // an escaped mark inside
	case c == '\\' && t.quote == escaped && l.has(i+1, `\`):
		return 2
	case c == '\\' && t.quote != escaped:
		t.skip = true
		return 1
	case c != '"' && c != '\'' && c != '`' && c != '\\' && c != '&' && c != 0xe2:
		return 1
	}
	f, n := l.quoteAt(i)
	if n == 0 {
		return 1
	}
	if t.quote.closedBy(f) && l.endsString(i+n) && !l.starved {
		t.quote, t.last = noQuote, '"'
	}
	return n
}

func (t *track) stepOutside(l *look, i int) int {
	c := l.b[i]
	switch {
	case c == '\n':
		t.line, t.word, t.words, t.wordsAt = true, false, 0, i+1
		return 1
	case isBlank(c):
		t.word = false
		return 1
	case c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':':
		t.structure(c)
		return 1
	case c == '"':
		t.quote, t.line, t.word = straight, false, false
		return 1
	case c < 0x80 && isWord(c) && t.word:
		t.last = c
		return 1
	}
	if s, n := l.structAt(i); n > 0 {
		if !l.starved {
			t.structure(s)
		}
		return n
	}
	if f, n := l.quoteAt(i); n > 0 {
		if !l.starved && (!f.doubtful() || t.last == 0 || t.last == '{' || t.last == '[' || t.last == ',' || t.last == ':') {
			t.quote, t.line, t.word = f, false, false
		} else if !l.starved {
			t.last = c
		}
		return n
	}
	if c >= 0x80 {
		if n := l.blankAt(i, c); n > 0 {
			t.word = false
			return n
		}
	}
	if l.starved {
		return 0
	}
	t.last = c
	if !isWord(c) {
		t.line = t.line && (c == '\'' || c == '-' || c == '.')
		t.word = false
	} else if !t.word {
		t.word = true
		t.words++
		t.lost = t.lost || t.line && t.words >= 3
	}
	return 1
}

func (t *track) structure(s byte) {
	t.last, t.line, t.word, t.words = s, false, false, 0
	switch s {
	case '{', '[':
		if len(t.stack) >= maxTracked {
			t.lost = true
			return
		}
		t.stack = append(t.stack, s)
		if s == '{' {
			t.objects++
		}
	case '}', ']':
		t.close(s - 2) // the opener's code
	}
}

// close ends the innermost container of a kind, and those inside it that nothing
// has ended. Where none is open the closer is taken for a wrong one.
func (t *track) close(opener byte) {
	open := t.objects
	if opener == '[' {
		open = len(t.stack) - t.objects
	}
	for n := len(t.stack); n > 0; n-- {
		top := t.stack[n-1]
		t.stack = t.stack[:n-1]
		if top == '{' {
			t.objects--
		}
		if top == opener || open == 0 {
			break
		}
	}
	t.done = len(t.stack) == 0
}
