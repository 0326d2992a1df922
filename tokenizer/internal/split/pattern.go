package split

// fold says which letters of contractions count.
type fold uint8

const (
	foldNone  fold = iota // 's but not 'S
	foldASCII             // 's and 'S
	foldFull              // and 'ſ (U+017F), which folds to s: (?i:'s)
	foldNever             // no contractions
)

// longS is the one character beyond ASCII that folds to a letter of a
// contraction.
const longS = 'ſ'

// contraction gives the end of 's 't 're 've 'm 'll 'd at b[i:], which begins
// with an apostrophe, i for none, and the offset of the last byte looked at.
func (f fold) contraction(b []byte, i int) (end, look int) {
	if f == foldNever {
		return i, i
	}
	at := i + 1
	if at >= len(b) {
		return i, at
	}
	var bit byte
	if f != foldNone {
		bit = 0x20
	}
	var second byte
	switch b[at] | bit {
	case 's', 't', 'm', 'd':
		return at + 1, at
	case 'r', 'v':
		second = 'e'
	case 'l':
		second = 'l'
	default:
		if f == foldFull && at+1 < len(b) && b[at] == 0xc5 && b[at+1] == 0xbf {
			return at + 2, at
		}
		return i, at
	}
	if at+1 < len(b) && b[at+1]|bit == second {
		return at + 2, at + 1
	}
	return i, at + 1
}

// blank is how a pattern cuts white space: some of
//
//	\s++$ | \s*[\r\n]+ | \s+(?!\S) | \s+
type blank struct {
	lines bool // \s*[\r\n]+ is there
	whole bool // \s++$ is there, before it: at the end of the text all is one pretoken
	// numbersEnd: a number ends the segment, since a pattern before this one cut
	// numbers out.
	numbersEnd bool
}

// next gives the end of the pretoken of the white space text[from:r], where the
// run of white space ends at r, which is the end of the segment or not. Of a
// run the last character is left to what follows it. The second result is the
// offset of the last character looked at.
func (p blank) next(t *table, text []byte, from int) (int, int) {
	r, last, line := from, from, from
	for {
		c, n := t.at(text, r)
		if !spaces.has(c) {
			switch closed := c == end || p.numbersEnd && numbers.has(c); {
			case closed && p.whole:
				return r, r
			case p.lines && line > from:
				return line, r
			case closed || last == from:
				return r, r
			}
			return last, r
		}
		last = r
		r += n
		if newlines.has(c) {
			line = r
		}
	}
}
