package textrepair

import (
	"slices"
	"unicode/utf8"
)

// Letters of vocabularies that stand for white space.
const (
	spaceLetter   = 'Ġ' // byte-level BPE
	newlineLetter = 'Ċ' // byte-level BPE
	wordMark      = '▁' // SentencePiece
)

// decodeMarks decodes words as a tokenizer spells them. Ġ and Ċ are letters of Maltese too, and ▁ is a bar of a chart,
// so the word, or a neighbour in the line, must prove it.
func (e *engine) decodeMarks(cells []cell) []cell {
	if !e.does(TokenMark) || e.code {
		return cells
	}
	words := wordsOf(cells)
	proved := false
	for _, w := range words {
		proved = proved || byteLevelWord(cells[w.start:w.end], false)
	}
	out := cells
	for _, w := range words {
		lo, hi := w.start, w.end
		if !(byteLevelWord(cells[lo:hi], proved) || sentencePieceWord(cells, lo, hi)) {
			continue
		}
		if &out[0] == &cells[0] {
			out = slices.Clone(cells)
		}
		e.decodeWord(out[lo:hi])
	}
	return e.compact(out)
}

// wordsOf returns the words that hold letters of vocabularies and are not quoted: then they are spoken of.
func wordsOf(cells []cell) (words []span) {
	for lo := 0; lo < len(cells); {
		hi, marks := lo, 0
		for hi < len(cells) && cells[hi].r != ' ' && cells[hi].r != '\n' && cells[hi].r != '\t' {
			if r := cells[hi].r; r == wordMark || r >= 0x100 && r <= 0x143 {
				marks++
			}
			hi++
		}
		if marks > 0 && !quoteMark(cells[lo].r) {
			words = append(words, span{start: lo, end: hi})
		}
		lo = hi + 1
	}
	return words
}

func quoteMark(r rune) bool {
	switch r {
	case '"', '\'', '`', '(', '[', '“', '‘', '«':
		return true
	}
	return false
}

// byteLevelWord reports whether a word is spelt in the byte-level alphabet: every character is in it, the bytes are
// UTF-8, and Ġ or Ċ stand where Maltese has none. proved says that another word of the line is.
func byteLevelWord(word []cell, proved bool) bool {
	marks, proof := 0, proved
	bytes := make([]byte, 0, len(word))
	for i, c := range word {
		b, ok := letterByte(c.r)
		if !ok {
			return false
		}
		bytes = append(bytes, b)
		if c.r != spaceLetter && c.r != newlineLetter {
			continue
		}
		marks++
		switch {
		case i > 0 && capitalCannotFollow(word[i-1].r):
			proof = true
		case i+2 < len(word) && classOf(word[i+1].r) == asciiUpper && classOf(word[i+2].r) == asciiLower:
			proof = true
		}
	}
	return (marks > 0 || proved) && (proof || marks > 1 && marks < len(word) && !allUpper(word)) && utf8.Valid(bytes)
}

// capitalCannotFollow reports whether no word of Maltese has a capital letter behind the character.
func capitalCannotFollow(r rune) bool {
	switch r {
	case '\'', '’', '-', '/', '"', '(', '[', '“', '‘', '_', '*', '#', '@':
		return false
	}
	c := classOf(r)
	return c != asciiUpper && c != latinUpper
}

func allUpper(word []cell) bool {
	for _, c := range word {
		if classOf(c.r).lower() {
			return false
		}
	}
	return true
}

// sentencePieceWord reports whether a word begins with ▁ or has it between letters, and the line has no other block.
func sentencePieceWord(cells []cell, lo, hi int) bool {
	marks := false
	for i := lo; i < hi; i++ {
		if cells[i].r != wordMark {
			continue
		}
		if i+1 == hi || !wordBegins(cells[i+1].r) && cells[i+1].r != wordMark {
			return false
		}
		marks = marks || wordBegins(cells[i+1].r)
	}
	if !marks {
		return false
	}
	for _, c := range cells {
		if classOf(c.r) == boxClass && c.r != wordMark {
			return false
		}
	}
	return true
}

func wordBegins(r rune) bool {
	c := classOf(r)
	return c.letter() || c == digitClass || r < utf8.RuneSelf && r > ' ' || c == openClass || c == closeClass
}

// decodeWord decodes a word in place: its bytes become characters.
func (e *engine) decodeWord(word []cell) {
	for i := 0; i < len(word); {
		if word[i].start < e.floor {
			i++
			continue
		}
		if word[i].r == wordMark {
			word[i].r, word[i].kind = ' ', TokenMark
			i++
			continue
		}
		b, ok := letterByte(word[i].r)
		if !ok || word[i].r < utf8.RuneSelf {
			i++
			continue
		}
		buf := []byte{b}
		n := 1
		for n < utf8.UTFMax && i+n < len(word) && !utf8.FullRune(buf) {
			b, _ := letterByte(word[i+n].r)
			buf = append(buf, b)
			n++
		}
		r, _ := utf8.DecodeRune(buf)
		if r == utf8.RuneError { // a word that ▁ proves holds characters of its own
			i++
			continue
		}
		if r != word[i].r || n > 1 {
			word[i].r, word[i].end, word[i].kind = r, word[i+n-1].end, TokenMark
			for j := 1; j < n; j++ {
				word[i+j].r, e.holes = gone, true
			}
		}
		i += n
	}
}

// decodeByteTokens decodes byte-fallback tokens (<0x0A>): several that make a character beyond ASCII, or one that is
// glued to the text on both sides.
func (e *engine) decodeByteTokens(cells []cell) []cell {
	if !e.does(ByteToken) || e.code {
		return cells
	}
	for i := 0; i < len(cells); {
		if cells[i].start < e.floor {
			i++
			continue
		}
		var bytes []byte
		for len(bytes) < 1024 {
			b, ok := byteToken(cells, i+6*len(bytes))
			if !ok {
				break
			}
			bytes = append(bytes, b)
		}
		n := 6 * len(bytes)
		if n == 0 {
			i++
			continue
		}
		if utf8.Valid(bytes) && tokensProved(cells, i, i+n, bytes) {
			e.placeBytes(cells[i:i+n], bytes)
		}
		i += n
	}
	return e.compact(cells)
}

// byteToken reads <0xHH> at cells[i].
func byteToken(cells []cell, i int) (byte, bool) {
	if i+6 > len(cells) || cells[i].r != '<' || cells[i+1].r != '0' || cells[i+2].r != 'x' || cells[i+5].r != '>' {
		return 0, false
	}
	hi, lo := hexDigit(cells[i+3].r), hexDigit(cells[i+4].r)
	return byte(hi<<4 | lo), hi >= 0 && lo >= 0
}

func hexDigit(r rune) int {
	switch {
	case r >= '0' && r <= '9':
		return int(r - '0')
	case r >= 'A' && r <= 'F': // as vocabularies write them
		return int(r-'A') + 10
	}
	return -1
}

func tokensProved(cells []cell, lo, hi int, bytes []byte) bool {
	quote := func(i int) bool {
		return i >= 0 && i < len(cells) && (cells[i].r == '`' || cells[i].r == '"' || cells[i].r == '\'')
	}
	if quote(lo-1) || quote(hi) {
		return false
	}
	controls := false
	for _, b := range bytes {
		controls = controls || b < ' ' && b != '\n' && b != '\t' && b != '\r' || b == 0x7F
	}
	if controls {
		return false
	}
	if bytes[0] >= utf8.RuneSelf {
		return true
	}
	glued := func(i int) bool {
		return i >= 0 && i < len(cells) && (wordBegins(cells[i].r) && cells[i].r != '(' && cells[i].r != ':' && cells[i].r != ';' || cells[i].r == wordMark)
	}
	return glued(lo-1) && glued(hi)
}

// placeBytes puts the characters of byte tokens in place of them.
func (e *engine) placeBytes(cells []cell, bytes []byte) {
	for at := 0; at < len(bytes); {
		r, n := utf8.DecodeRune(bytes[at:])
		group := cells[6*at : 6*(at+n)]
		group[0].r, group[0].end, group[0].kind = r, group[len(group)-1].end, ByteToken
		for j := range group[1:] {
			group[1+j].r, e.holes = gone, true
		}
		at += n
	}
}
