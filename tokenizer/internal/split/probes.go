package split

// Lists of probes: what may follow the last character of a text, so that all it
// can do to the pretokens before is shown. "" shows the pretoken that ends
// there, others show that it goes on, or that white space is cut otherwise.
var (
	nothing      = []string{""}
	moreLetters  = []string{"", "a"}
	moreNumbers  = []string{"", "1"}
	moreSymbols  = []string{"", "!"}
	moreLines    = []string{"", "\n"}
	moreQuotes   = []string{"", "\n", "s"}
	moreHan      = []string{"", "中"}
	moreHanSigns = []string{"", "中", "1", "\n"}
	moreKana     = []string{"", "・"}
	moreKanaGaps = []string{"", "中", "\u3040"}
	moreControls = []string{"", "a", "\x00"}
	// A mark goes on as part of a word or of symbols.
	moreMarked = []string{"", "a", "!"}
	// Capitals after uncased letters are part of their word only if lower case
	// follows.
	moreCapitals = []string{"", "a", "A"}
	// The last of the white space goes to what follows, or all goes to a line end.
	moreBlanks = []string{"", "a", "1", "!", " ", "\n", "\x00"}
	// With \s++$ the end of the text shows something else than more white space.
	moreBlanksOrEnd = []string{"", "a", "1", "!", " ", " a", "  a", "\n", "\x00"}

	// 'r 'v and 'l may become contractions.
	moreLettersE  = []string{"", "a", "e"}
	moreLettersL  = []string{"", "a", "l"}
	moreCapitalsE = []string{"", "a", "A", "e"}
	moreCapitalsL = []string{"", "a", "A", "l"}
)

// halfContraction gives the letter that makes the end of text a contraction, 0
// for none.
func halfContraction(text []byte, last int) byte {
	if last == 0 || text[last-1] != '\'' {
		return 0
	}
	switch text[last] | 0x20 {
	case 'r', 'v':
		return 'e'
	case 'l':
		return 'l'
	}
	return 0
}

func (p *gpt2) probes(text []byte, last int, c class) []string {
	switch {
	case letters.has(c):
		switch halfContraction(text, last) {
		case 'e':
			return moreLettersE
		case 'l':
			return moreLettersL
		}
		return moreLetters
	case numbers.has(c) && p.digits:
		return nothing
	case numbers.has(c):
		return moreNumbers
	case spaces.has(c):
		return moreBlanks
	}
	return moreSymbols
}

func (p *cl100k) probes(_ []byte, _ int, c class) []string {
	switch {
	case p.word.has(c):
		return moreLetters
	case numbers.has(c) && p.digits == 1:
		return nothing
	case numbers.has(c):
		return moreNumbers
	case newlines.has(c):
		return moreLines
	case spaces.has(c) && p.blank.whole:
		return moreBlanksOrEnd
	case spaces.has(c):
		return moreBlanks
	}
	return moreSymbols
}

func (p *o200k) probes(text []byte, last int, c class) []string {
	switch {
	case p.hanRuns && c&han != 0 && letters.has(c):
		return moreHan
	case p.hanRuns && c&han != 0: // which may be among numbers or symbols
		return moreHanSigns
	case p.lower.has(c) && p.upper.has(c) && !letters.has(c):
		return moreMarked
	case letters.has(c):
		capital := !p.lower.has(c)
		switch half := halfContraction(text, last); {
		case half == 'e' && capital:
			return moreCapitalsE
		case half == 'l' && capital:
			return moreCapitalsL
		case half == 'e':
			return moreLettersE
		case half == 'l':
			return moreLettersL
		case capital:
			return moreCapitals
		}
		return moreLetters
	case numbers.has(c) && p.digits == 1:
		return nothing
	case numbers.has(c):
		return moreNumbers
	case spaces.has(c) && !newlines.has(c):
		return moreBlanks
	case text[last] == '\'':
		return moreQuotes
	}
	return moreLines // which all symbols take, and slashes after line ends
}

func (p *deepseek) probes(_ []byte, _ int, c class) []string {
	switch {
	case c&kana != 0 && p.symbol.has(c):
		return moreKana
	case c&kana != 0 && c&kinds == other:
		return moreKanaGaps
	case c&kana != 0:
		return moreHan
	case wordsAndMarks.has(c):
		return moreLetters
	case numbers.has(c):
		return moreNumbers
	case newlines.has(c):
		return moreLines
	case spaces.has(c):
		return moreBlanks
	case p.symbol.has(c):
		return moreSymbols
	}
	return moreControls
}
