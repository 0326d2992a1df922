package split

// gpt2 is the pattern of GPT-2
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// or, if digits, that of StarCoder and SmolLM: each \p{N} alone, then the above
// between the numbers, so that a number ends a segment: "  5" is "  " and "5",
// while "  x" is " " and " x".
type gpt2 struct {
	t      *table
	digits bool
}

func (p *gpt2) classes() *table { return p.t }

func (p *gpt2) next(text []byte, from int) (int, int) {
	c, n := p.t.at(text, from)
	if p.digits && numbers.has(c) {
		return from + n, from
	}
	look := from
	if text[from] == '\'' {
		var e int
		if e, look = foldNone.contraction(text, from); e > from {
			return e, look
		}
	}
	i := from
	if text[from] == ' ' {
		i++
		c, _ = p.t.at(text, i)
	}
	var run set
	switch {
	case letters.has(c):
		run = letters
	case symbols.has(c):
		run = symbols
	case numbers.has(c) && !p.digits:
		run = numbers
	default:
		return blank{numbersEnd: p.digits}.next(p.t, text, from)
	}
	i = p.t.run(text, i, run)
	return i, max(i, look)
}

func (p *gpt2) style() style { return style{gpt2: true, numbersEnd: p.digits} }
