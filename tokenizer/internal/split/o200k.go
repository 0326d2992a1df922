package split

// o200k is the pattern of GPT-4o, which tells upper from lower case:
//
//	P?U*L+C?|P?U+L*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// with P = [^\r\n\p{L}\p{N}], U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}],
// L = [\p{Ll}\p{Lm}\p{Lo}\p{M}], C = (?i:'s|'t|'re|'ve|'m|'ll|'d).
// If hanRuns, [\p{Han}]+ comes before all that, and U and L are without Han.
type o200k struct {
	t            *table
	fold         fold
	digits       int
	upper, lower set
	hanRuns      bool
	tail         byteSet
	blank        blank
}

func (p *o200k) classes() *table { return p.t }

func (p *o200k) next(text []byte, from int) (int, int) {
	c, n := p.t.at(text, from)
	if p.hanRuns && c&han != 0 {
		return p.hanRun(text, from)
	}
	if numbers.has(c) {
		return p.t.group(text, from, p.digits)
	}
	if letters.has(c) && (p.upper | p.lower).has(c) {
		return p.wordOrCapitals(text, from)
	}
	i := from
	if !newlines.has(c) {
		// A prefix. A mark can be one, or begin the word itself.
		c2, _ := p.t.at(text, from+n)
		look := from + n
		if (p.upper | p.lower).has(c2) {
			e, l := p.word(text, from+n)
			if e > 0 {
				return e, l
			}
			if !p.lower.has(c) {
				return p.capitals(text, from+n)
			}
			look = l
		}
		if p.lower.has(c) { // a mark with no word after it
			e, l := p.suffix(text, from+n)
			return e, max(l, look)
		}
		if text[from] == ' ' {
			i, c = from+1, c2
		}
	}
	if symbols.has(c) {
		e := p.tail.run(text, p.t.run(text, i, symbols))
		return e, e
	}
	return p.blank.next(p.t, text, from)
}

// word gives the end of U*L+C? at text[i:], 0 if there is none. U* takes what it
// can and gives back the last characters until L+ has one that is in both: the
// end may depend on a run of capitals of any length after it.
func (p *o200k) word(text []byte, i int) (end, look int) {
	both := 0
	for {
		c, n := p.t.at(text, i)
		if !p.upper.has(c) {
			if p.lower.has(c) {
				return p.suffix(text, p.t.run(text, i+n, p.lower))
			}
			if both == i {
				return p.suffix(text, i)
			}
			return both, i
		}
		i += n
		if p.lower.has(c) {
			both = i
		}
	}
}

// capitals gives the end of U+C? at text[i:], where there is no U*L+.
func (p *o200k) capitals(text []byte, i int) (end, look int) {
	return p.suffix(text, p.t.run(text, i, p.upper))
}

func (p *o200k) wordOrCapitals(text []byte, i int) (end, look int) {
	if end, look = p.word(text, i); end > 0 {
		return end, look
	}
	return p.capitals(text, i)
}

// suffix gives the end of C? at text[i:].
func (p *o200k) suffix(text []byte, i int) (end, look int) {
	if i < len(text) && text[i] == '\'' {
		return p.fold.contraction(text, i)
	}
	return i, i
}

func (p *o200k) hanRun(text []byte, i int) (end, look int) {
	for {
		c, n := p.t.at(text, i)
		if c&han == 0 {
			return i, i
		}
		i += n
	}
}

func (p *o200k) style() style {
	return style{cased: p.t.ascii['A']&kinds == upper, suffixed: true, fold: p.fold, tail: p.tail, digits: p.digits}
}
