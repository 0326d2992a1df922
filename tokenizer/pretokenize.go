package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// pretokenizer cuts a segment of text into pretokens, which merges never cross.
// It is one of two:
//
//	gpt-2   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//	smollm  first \p{N} alone, then the above between the numbers
//
// so that for smollm a number ends a segment: "  5" is "  " and "5", while
// "  x" is " " and " x".
type pretokenizer struct {
	name    string
	numbers bool // every number is a pretoken and ends the segment before it
	classes *classTable
}

// gpt2Names and smollmNames are the names in tokenizer.ggml.pre that llama.cpp
// gives one of the two patterns. Left out are names of embedding models for
// which it also strips text around a mask token or adds a separator.
var (
	gpt2Names = []string{
		"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "a.x-4.0", "mellum", "mpt", "olmo",
		"jais", "trillion", "granite-docling", "exaone4",
	}
	smollmNames = []string{
		"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2",
	}
)

func newPretokenizer(name string) (pretokenizer, error) {
	switch {
	case slices.Contains(gpt2Names, name):
		return pretokenizer{name, false, classes()}, nil
	case slices.Contains(smollmNames, name):
		return pretokenizer{name, true, classes()}, nil
	}
	return pretokenizer{}, fmt.Errorf("tokenizer: pre-tokenizer %q is not supported; supported are %s",
		name, strings.Join(slices.Concat(gpt2Names, smollmNames), ", "))
}

// next gives the end of the pretoken that b begins with, where the end of b is
// the end of the segment. b must not be empty.
func (p *pretokenizer) next(b []byte) int {
	c, n := p.classes.classOf(b)
	if p.numbers && c == number {
		return n
	}
	if b[0] == '\'' {
		if k := contraction(b[1:]); k > 0 {
			return 1 + k
		}
	}
	i := 0 // where the run begins
	if b[0] == ' ' {
		i = 1
		c, n = p.classAt(b, 1)
	}
	if c == space || c == end {
		return p.spaces(b)
	}
	for run := c; c == run; {
		i += n
		for run == letter && i < len(b) && isASCIILetter(b[i]) {
			i++
		}
		c, n = p.classAt(b, i)
	}
	return i
}

// spaces gives the end of the pretoken at the start of b, which begins with
// white space. The last character of a longer run is left to what follows it
// in the segment.
func (p *pretokenizer) spaces(b []byte) int {
	i, last := 0, 0
	c, n := p.classes.classOf(b)
	for c == space {
		last = i
		i += n
		c, n = p.classAt(b, i)
	}
	if c == end || last == 0 {
		return i
	}
	return last
}

// classAt gives the class and length of the character at b[i:], end where the
// segment ends.
func (p *pretokenizer) classAt(b []byte, i int) (class, int) {
	c, n := p.classes.classOf(b[i:])
	if p.numbers && c == number {
		return end, 0
	}
	return c, n
}

func isASCIILetter(b byte) bool { return (b|0x20)-'a' < 26 }

// contraction gives the length of the ending that b begins with, if it is one
// of those that go with an apostrophe. Only lower case counts.
func contraction(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case 's', 't', 'm', 'd':
		return 1
	case 'r', 'v':
		if len(b) > 1 && b[1] == 'e' {
			return 2
		}
	case 'l':
		if len(b) > 1 && b[1] == 'l' {
			return 2
		}
	}
	return 0
}

// ends appends the ends, counted from the start of text, of the pretokens of
// the segment text[from:].
func (p *pretokenizer) ends(dst []int, text []byte, from int) []int {
	for from < len(text) {
		from += p.next(text[from:])
		dst = append(dst, from)
	}
	return dst
}
