package split

import (
	"math/bits"
)

// A pretoken has no left context, so all starts of pretokens in the 64 bytes
// from one of them on can be found at once: each class of bytes is a 64-bit map,
// and the alternatives of the patterns are shifts and carries. Starts are
// trusted as far as nothing stands before them that the maps cannot tell, such
// as a character that is not ASCII; a pretoken with such a thing goes to next.

// windowSize is the number of bytes looked at together.
const windowSize = 64

// style is what windows need to know of a pattern.
type style struct {
	gpt2       bool    // the pattern of GPT-2, where numbersEnd says that numbers are apart
	cased      bool    // words begin at capitals after lower case
	suffixed   bool    // contractions belong to the word before
	fold       fold    // what is a contraction
	tail       byteSet // what follows symbols
	digits     int     // numbers in a pretoken: 1, 3, or 0 for any
	numbersEnd bool    // white space before a number is one pretoken
	controls   bool    // controls are no symbols
}

// starts gives for a pattern of the families of cl100k and o200k a map of the bytes after the first where pretokens start, and
// the number of bits that can be trusted. Byte 0 must be a start.
func (m *byteMaps) starts(p *style, b *[windowSize]byte) (starts uint64, trusted int) {
	if p.gpt2 {
		return m.startsGPT2(p.numbersEnd, b)
	}
	letter := m.upper | m.lower
	blank := m.space | m.tab
	white := blank | m.line
	symbol := ^(letter | m.digit | white | m.wide)

	// Symbols take the line ends, and slashes, after them.
	lines := m.line
	if seeds := lines & (symbol << 1); seeds != 0 && p.tail != noBytes {
		tail := lines
		if p.tail == linesSlash {
			tail |= m.slash
		}
		taken := tail&^(tail+seeds) | seeds
		lines &^= taken
		white &^= taken
		symbol &^= taken
	}

	symbolRun := symbol &^ (symbol<<1 | m.space<<1)
	starts = symbolRun | white&^(white<<1)
	// One symbol before a letter, or one blank, is the prefix of a word.
	prefix := symbolRun&^(symbol>>1) | blank
	wordRun := letter &^ (letter<<1 | prefix<<1)
	starts |= wordRun
	if p.cased {
		starts |= m.upper & (m.lower << 1)
	}

	// White space: up to the last line end, then all but the last blank.
	last := blank &^ ((blank | m.line) >> 1)
	if p.numbersEnd {
		last &^= m.digit >> 1
	}
	starts |= last
	indent := blank & (lines << 1)
	starts |= indent
	ended := (blank + indent) &^ blank & lines // another line end follows: not the last one
	for ; ended != 0; ended &= ended - 1 {
		first := 64 - bits.LeadingZeros64(^blank&(ended&-ended-1))
		starts &^= 1 << first &^ (white &^ (white << 1))
	}

	switch group := m.digit &^ (m.digit << 1); p.digits {
	case 1:
		starts |= m.digit
	case 3:
		three := m.digit & (m.digit << 1) & (m.digit << 2) & (m.digit << 3)
		for ; group != 0; group = group << 3 & three {
			starts |= group
		}
	default:
		starts |= group
	}

	hard := m.wide
	if p.controls {
		hard |= m.control
	}
	if p.suffixed {
		starts, hard = p.suffixes(b, m.quote&(letter<<1), starts, hard, letter)
	} else {
		starts, hard = p.contractions(b, m.quote&symbolRun&(letter>>1), starts, hard, letter)
	}
	trusted = bits.TrailingZeros64(hard)
	// A run of blanks that ends there may go on, or have a line end after it.
	if trusted > 0 && blank>>(trusted-1)&1 != 0 {
		trusted = 64 - bits.LeadingZeros64(^blank<<(64-trusted)>>(64-trusted))
	}
	return starts &^ 1, trusted
}

// suffixes corrects the starts around the quotes after letters: a contraction
// belongs to the word before it.
func (p *style) suffixes(b *[windowSize]byte, quotes, starts, hard, letter uint64) (uint64, uint64) {
	if p.fold == foldNever {
		return starts, hard
	}
	done := -1
	for ; quotes != 0; quotes &= quotes - 1 {
		q := bits.TrailingZeros64(quotes)
		if q == done { // the word ended with a contraction
			continue
		}
		end, look := p.fold.contraction(b[:], q)
		if look >= windowSize {
			return starts, hard | 1<<q
		}
		if end > q {
			starts &^= 1<<end - 1<<q
			starts |= letter & (1 << end)
			done = end
		}
	}
	return starts, hard
}

// contractions adds the starts behind contractions, which quotes begin.
func (p *style) contractions(b *[windowSize]byte, quotes, starts, hard, letter uint64) (uint64, uint64) {
	for ; quotes != 0; quotes &= quotes - 1 {
		q := bits.TrailingZeros64(quotes)
		end, look := p.fold.contraction(b[:], q)
		if look >= windowSize {
			return starts, hard | 2<<q
		}
		if end > q {
			starts |= letter & (1 << end)
		}
	}
	return starts, hard
}

// startsGPT2 is starts for the pattern of GPT-2, numbers apart if digits.
func (m *byteMaps) startsGPT2(digits bool, b *[windowSize]byte) (starts uint64, trusted int) {
	letter := m.upper | m.lower
	white := m.space | m.tab | m.line
	symbol := ^(letter | m.digit | white | m.wide)

	joined := m.space << 1 // a space belongs to what follows it
	symbolRun := symbol &^ (symbol<<1 | joined)
	starts = symbolRun | letter&^(letter<<1|joined) | white&^(white<<1)
	last := white &^ (white >> 1)
	if digits {
		starts |= m.digit
		last &^= m.digit >> 1
	} else {
		starts |= m.digit &^ (m.digit<<1 | joined)
	}
	starts |= last

	hard := m.wide
	for quotes := m.quote & symbolRun & (letter >> 1); quotes != 0; quotes &= quotes - 1 {
		q := bits.TrailingZeros64(quotes)
		end, look := foldNone.contraction(b[:], q)
		if look >= windowSize {
			hard |= 2 << q
			break
		}
		if end > q {
			starts &^= 1<<end - 2<<q
			starts |= letter & (1 << end)
		}
	}
	trusted = bits.TrailingZeros64(hard)
	if trusted > 0 && white>>(trusted-1)&1 != 0 { // is it the last one?
		trusted--
	}
	return starts &^ 1, trusted
}
