package split

// cl100k is the pattern of GPT-4, and with other settings those of Llama 3, Qwen
// and many more:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type cl100k struct {
	t      *table
	fold   fold
	digits int     // longest group of numbers, 0 for any
	word   set     // \p{L} or [\p{L}\p{M}]
	symbol set     // [^\s\p{L}\p{N}], less word
	tail   byteSet // what follows symbols: [\r\n]*, [\r\n/]*
	blank  blank
}

func (p *cl100k) classes() *table { return p.t }

func (p *cl100k) next(text []byte, from int) (int, int) {
	c, n := p.t.at(text, from)
	if text[from] == '\'' {
		if e, look := p.fold.contraction(text, from); e > from {
			return e, look
		}
	}
	if p.word.has(c) {
		e := p.t.run(text, from, p.word)
		return e, e
	}
	if numbers.has(c) {
		return p.t.group(text, from, p.digits)
	}
	i := from
	if !newlines.has(c) {
		c2, n2 := p.t.at(text, from+n)
		if p.word.has(c2) {
			e := p.t.run(text, from+n+n2, p.word)
			return e, e
		}
		if text[from] == ' ' {
			i, c = from+1, c2
		}
	}
	if p.symbol.has(c) {
		e := p.tail.run(text, p.t.run(text, i, p.symbol))
		return e, e
	}
	return p.blank.next(p.t, text, from)
}

// group gives the end of \p{N}{1,most} at b[i:], or of \p{N}+ if most is 0.
func (t *table) group(b []byte, i, most int) (end, look int) {
	if most == 0 {
		e := t.run(b, i, numbers)
		return e, e
	}
	for k := 0; ; k++ {
		c, n := t.at(b, i)
		if !numbers.has(c) {
			return i, i
		}
		if k == most-1 {
			return i + n, i
		}
		i += n
	}
}

// byteSet is a set of ASCII control characters and punctuation, bit b for byte b.
type byteSet uint64

const (
	noBytes    byteSet = 0
	lineEnds   byteSet = 1<<'\r' | 1<<'\n'
	linesSlash byteSet = lineEnds | 1<<'/'
)

// run gives the end of the bytes of s that begin at b[i:].
func (s byteSet) run(b []byte, i int) int {
	for i < len(b) && b[i] < 64 && s>>b[i]&1 != 0 {
		i++
	}
	return i
}

// style gives what windows need to know. They cannot tell marks in words, which
// are not ASCII.
func (p *cl100k) style() style {
	return style{fold: p.fold, tail: p.tail, digits: p.digits, numbersEnd: p.blank.numbersEnd}
}
