package split

// deepseek is the pre-tokenizer of DeepSeek V3 and R1: three patterns, each of
// which cuts the pretokens of the one before,
//
//	\p{N}{1,3}
//	[一-龥぀-ゟ゠-ヿ]+
//	[!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// where [!-/:-~] stands for the punctuation and symbols of ASCII. What the last
// one does not match, runs of controls and unassigned characters, are pretokens
// too.
type deepseek struct {
	t *table
	// symbol is [\p{P}\p{S}].
	symbol set
}

var wordsAndMarks = kindSet(upper, lower, uncased, mark)

func (p *deepseek) classes() *table { return p.t }

// at gives the class of the character at text[i:], end where a segment of the
// third pattern ends: at a number, and where characters of class kana begin or
// end.
func (p *deepseek) at(text []byte, i int, side class) (class, int) {
	c, n := p.t.at(text, i)
	if numbers.has(c) || c&kana != side {
		return end, 0
	}
	return c, n
}

func (p *deepseek) run(text []byte, i int, side class, s set) int {
	for {
		c, n := p.at(text, i, side)
		if !s.has(c) {
			return i
		}
		i += n
	}
}

func (p *deepseek) next(text []byte, from int) (int, int) {
	c, n := p.t.at(text, from)
	if numbers.has(c) {
		return p.t.group(text, from, 3)
	}
	side := c & kana
	if isASCIISymbol(text[from]) {
		i := from + 1
		for i < len(text) && isASCIILetter(text[i]) {
			i++
		}
		if i > from+1 {
			return i, i
		}
	}
	if e := p.word(text, from, side); e > from {
		return e, e
	}
	i := from
	if text[from] == ' ' {
		i++
		c, _ = p.at(text, i, side)
	}
	if p.symbol.has(c) {
		e := p.run(text, i, side, p.symbol)
		if side == 0 { // else the segment ends there
			e = lineEnds.run(text, e)
		}
		return e, e
	}
	if c, _ := p.t.at(text, from); spaces.has(c) {
		return p.blanks(text, from, side)
	}
	return p.rest(text, from+n, side)
}

// word gives the end of [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ at text[from:], from
// if there is none.
func (p *deepseek) word(text []byte, from int, side class) int {
	c, n := p.at(text, from, side)
	i := from
	if c == end {
		return from
	}
	if !wordsAndMarks.has(c) {
		if newlines.has(c) || p.symbol.has(c) {
			return from
		}
		i += n
		if c, _ = p.at(text, i, side); !wordsAndMarks.has(c) {
			return from
		}
	}
	return p.run(text, i, side, wordsAndMarks)
}

func (p *deepseek) blanks(text []byte, from int, side class) (int, int) {
	r, last, line := from, from, from
	for {
		c, n := p.at(text, r, side)
		if !spaces.has(c) {
			switch {
			case line > from:
				return line, r
			case c == end || last == from:
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

// rest gives the end of what no alternative matches: a run of class other, less
// its last character if that begins a word.
func (p *deepseek) rest(text []byte, i int, side class) (int, int) {
	for {
		c, n := p.at(text, i, side)
		if c&kinds != other {
			return i, i
		}
		if next, _ := p.at(text, i+n, side); wordsAndMarks.has(next) {
			return i, i + n
		}
		i += n
	}
}

func isASCIILetter(b byte) bool { return (b|0x20)-'a' < 26 }

// isASCIISymbol reports whether b is one of !"#$%&'()*+,-./:;<=>?@[\]^_`{|}~.
func isASCIISymbol(b byte) bool {
	return b > ' ' && b < 0x7f && !isASCIILetter(b) && b-'0' > 9
}

func (p *deepseek) style() style {
	return style{fold: foldNever, tail: lineEnds, digits: 3, numbersEnd: true, controls: true}
}
