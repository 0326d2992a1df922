package loop

import (
	"unicode"
	"unicode/utf8"
)

// cutAt returns where to cut text, which repeats itself with the period from start
// on: the best place in the second unit, so that one whole unit stays whatever its
// rotation. Better is what ends more: a paragraph, line, sentence, clause, word,
// character.
func cutAt(text []byte, start, period int) int {
	best, rank := start+period, -1
	for i := start + period; i < min(start+2*period, len(text)); i++ {
		if r := endRank(text, i); r > rank {
			best, rank = i, r
			if r == paragraphEnd {
				break
			}
		}
	}
	return best
}

const (
	insideCharacter = iota - 1
	insideCluster   // between a character and its combining mark
	insideWord
	wordEnd
	clauseEnd
	sentenceEnd
	lineEnd
	paragraphEnd
)

// endRank says what ends at byte i of text, i > 0.
func endRank(text []byte, i int) int {
	if !utf8.RuneStart(text[i]) {
		return insideCharacter
	}
	prev := text[i-1]
	if prev == '\n' {
		if i > 1 && text[i-2] == '\n' {
			return paragraphEnd
		}
		return lineEnd
	}
	next, _ := utf8.DecodeRune(text[i:])
	before, _ := utf8.DecodeLastRune(text[max(0, i-utf8.UTFMax):i])
	switch {
	case unicode.In(next, unicode.Mn, unicode.Me, unicode.Mc) || next == '\u200d' || before == '\u200d',
		isRegional(before) && isRegional(next), next >= '\U0001f3fb' && next <= '\U0001f3ff':
		return insideCluster
	case before == '。' || before == '！' || before == '？' || before == '।':
		return sentenceEnd
	case before == '，' || before == '、' || before == '；':
		return clauseEnd
	case prev == ' ' && i > 1 && next != ' ':
		return behindSpace(text[i-2])
	case unicode.IsSpace(next) && !unicode.IsSpace(before):
		return wordEnd
	case prev == '}' || prev == ']' || prev == ',' || prev == ';' || prev == '>':
		return wordEnd
	}
	return insideWord
}

// behindSpace ranks the end of what a character and a space end.
func behindSpace(c byte) int {
	switch c {
	case '.', '!', '?':
		return sentenceEnd
	case ',', ';', ':':
		return clauseEnd
	}
	return wordEnd
}

func isRegional(r rune) bool { return r >= '\U0001f1e6' && r <= '\U0001f1ff' }
