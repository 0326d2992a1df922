package normalize

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// The behaviour of the reference for every code point: testdata/tables.py.
//
//go:embed tables.txt
var tablesText string

// rows calls f for each row of the tables with one of the given names: its
// name and the code points (or numbers) after it.
func rows(f func(name string, points []rune), names ...string) {
	for line := range strings.SplitSeq(tablesText, "\n") {
		name, rest, _ := strings.Cut(line, " ")
		for _, n := range names {
			if n != name {
				continue
			}
			var points []rune
			for field := range strings.SplitSeq(rest, " ") {
				p, err := strconv.ParseInt(field, 16, 32)
				if err != nil {
					panic("normalize: tables.txt: " + line) // a damaged build, not a damaged input
				}
				points = append(points, rune(p))
			}
			f(name, points)
		}
	}
}

// blockBits is the binary logarithm of the characters in one block of a
// runeTable.
const blockBits = 7

// runeTable maps code points to small values. Blocks without any are shared.
type runeTable[V uint8 | uint16] struct {
	index  [(utf8.MaxRune + 1) >> blockBits]uint16
	blocks [][1 << blockBits]V
}

func newRuneTable[V uint8 | uint16]() *runeTable[V] {
	return &runeTable[V]{blocks: make([][1 << blockBits]V, 1)}
}

// at gives the value of a character; r must not be negative.
func (t *runeTable[V]) at(r rune) V {
	return t.blocks[t.index[r>>blockBits]][r&(1<<blockBits-1)]
}

// ref gives the place of a character's value, to be set.
func (t *runeTable[V]) ref(r rune) *V {
	b := &t.index[r>>blockBits]
	if *b == 0 {
		*b = uint16(len(t.blocks))
		t.blocks = append(t.blocks, [1 << blockBits]V{})
	}
	return &t.blocks[*b][r&(1<<blockBits-1)]
}

// Sets of characters, as bits of a table's values.
const (
	whiteSet      uint8 = 1 << iota // what Strip strips
	markSet                         // what StripAccents drops
	nonspacingSet                   // what BertNormalizer drops with strip_accents
	controlSet                      // what BertNormalizer drops with clean_text
	blankSet                        // what it makes a space
	chineseSet                      // what it puts between spaces
	nmtDropSet                      // what Nmt drops
	nmtBlankSet                     // what it makes a space
)

var charSets = sync.OnceValue(func() *runeTable[uint8] {
	bits := map[string]uint8{
		"white": whiteSet, "mark": markSet, "nonspacing": nonspacingSet, "control": controlSet,
		"blank": blankSet, "chinese": chineseSet, "nmtdrop": nmtDropSet, "nmtblank": nmtBlankSet,
	}
	t := newRuneTable[uint8]()
	rows(func(name string, p []rune) {
		for r := p[0]; r <= p[1]; r++ {
			*t.ref(r) |= bits[name]
		}
	}, "white", "mark", "nonspacing", "control", "blank", "chinese", "nmtdrop", "nmtblank")
	return t
})

// lowerCase has the lower case of each character that is changed by it: the
// full mapping without context, in which one character may become two.
type lowerCase struct {
	at    *runeTable[uint16] // index in lower; 0 for characters that stay
	lower []string
}

var lowerCases = sync.OnceValue(func() *lowerCase {
	t := &lowerCase{at: newRuneTable[uint16](), lower: []string{""}}
	rows(func(_ string, p []rune) {
		*t.at.ref(p[0]) = uint16(len(t.lower))
		t.lower = append(t.lower, string(p[1:]))
	}, "lower")
	return t
})

// completeLen is the length of text without an incomplete UTF-8 sequence at
// its end: without 1 to 3 bytes that following bytes could make a character
// of.
func completeLen(text []byte) int {
	for i := len(text) - 1; i >= 0 && i >= len(text)-(utf8.UTFMax-1); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// asciiLen is how many bytes text begins with that are ASCII.
func asciiLen(text []byte) int {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		b := text[i : i+8 : i+8]
		if (b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7])&utf8.RuneSelf != 0 {
			break
		}
	}
	for i < len(text) && text[i] < utf8.RuneSelf {
		i++
	}
	return i
}
