package split

import (
	"slices"
	"unicode/utf8"
)

// matcher is the pattern of an exact splitter.
type matcher interface {
	// next gives the end of the pretoken at text[from:] and the offset of the last
	// character that it took to find it, len(text) for the end.
	next(text []byte, from int) (end, look int)
	style() style
	// probes gets the last character of the text, its class and where it begins.
	probes(text []byte, last int, c class) []string
	classes() *table
}

// exact makes a Splitter of a matcher. It keeps all pretokens.
type exact struct {
	matcher
	name string
	look style
	// odd lists characters that the matcher tells from others of their class.
	odd []rune
}

func (e *exact) Scan(ends []int, text []byte, from int) int {
	return scanWindows(e.matcher, &e.look, ends, text, from)
}

func (e *exact) Next(text []byte, from int) (end int, fixed bool) {
	end, look := e.next(text, from)
	return end, look < settled(text)
}

func (e *exact) Probes(text []byte, from int) []string {
	if from >= len(text) {
		return nothing
	}
	_, n := utf8.DecodeLastRune(text[from:])
	last := len(text) - n
	c, _ := e.classes().at(text, last)
	return e.probes(text, last, c)
}

func (e *exact) Completions(part []byte) []string { return e.classes().completions(part, e.odd) }
func (e *exact) Keeps([]byte) bool                { return true }
func (e *exact) Exact() bool                      { return true }
func (e *exact) String() string                   { return e.name }

// completions lists rests of part, one for each class and each character of odd
// that part can become, and "".
func (t *table) completions(part []byte, odd []rune) []string {
	out := []string{""}
	add := func(r rune) { out = append(out, string(utf8.AppendRune(nil, r)[len(part):])) }
	lo, hi := span(part)
	var seen [256]bool
	for r := lo; r <= hi; r++ {
		block := t.blocks[t.index[r>>6]]
		for ; ; r++ {
			if c := block[r&63]; !seen[c] && utf8.ValidRune(r) {
				seen[c] = true
				add(r)
			}
			if r&63 == 63 || r == hi {
				break
			}
		}
	}
	for _, r := range odd {
		if lo <= r && r <= hi {
			add(r)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// span gives the first and last code point that can begin with the bytes of
// part, which must be an incomplete UTF-8 sequence. The span may hold
// surrogates.
func span(part []byte) (lo, hi rune) {
	if len(part) == 0 || utf8.FullRune(part) {
		return 0, -1
	}
	var size int
	switch c := part[0]; {
	case c < 0xe0:
		lo, size = rune(c&0x1f), 2
	case c < 0xf0:
		lo, size = rune(c&0x0f), 3
	default:
		lo, size = rune(c&0x07), 4
	}
	for _, c := range part[1:] {
		lo = lo<<6 | rune(c&0x3f)
	}
	shift := 6 * (size - len(part))
	hi = (lo+1)<<shift - 1
	lo <<= shift
	least := []rune{0, 0, 0x80, 0x800, 0x10000}[size] // shorter forms are not UTF-8
	return max(lo, least), min(hi, utf8.MaxRune)
}
