package split

import (
	"fmt"
	"unicode/utf8"
)

// behavior is what happens to the matches of a Split or Punctuation.
type behavior uint8

const (
	isolated           behavior = iota // each match is a pretoken
	removed                            // and does not go to the model
	contiguous                         // adjacent matches are one pretoken
	mergedWithPrevious                 // a match ends the pretoken before it, unless that is a match
	mergedWithNext                     // a match begins the pretoken after it, unless that is a match
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous,
	"MergedWithPrevious": mergedWithPrevious, "MergedWithNext": mergedWithNext,
}

func behaviorNamed(step, name string) (behavior, error) {
	b, ok := behaviors[name]
	if !ok {
		return 0, fmt.Errorf("split: %s: behavior %q is not one of Isolated, Removed, Contiguous, MergedWithPrevious, MergedWithNext", step, name)
	}
	return b, nil
}

// group is what cuts tells characters apart by.
type group uint8

const (
	plain   group = iota // what matches nothing
	matched              // a match of one character
	blanks               // white space that is removed
	wordy                // \w
	groups
)

// cuts is a pre-tokenizer that cuts or not between two characters by their
// groups and nothing else.
type cuts struct {
	name   string
	t      *table
	group  [256]group // of each class
	char   rune       // a character of group matched, whatever its class; -1 for none
	join   [groups][groups]bool
	drop   [groups]bool
	probed []string
}

// newCuts has for matches the single characters of the classes that in picks,
// or char.
func newCuts(name string, in func(class) bool, char rune, b behavior, invert bool) *cuts {
	s := &cuts{name: name, t: unicode160(), char: char}
	for c := range s.group {
		if in != nil && in(class(c)) {
			s.group[c] = matched
		}
	}
	s.join[plain][plain] = true
	s.join[matched][matched] = b == contiguous
	before, after := b == mergedWithNext, b == mergedWithPrevious
	if invert { // what is between the matches counts as match
		before, after = after, before
		s.drop[plain] = b == removed
	} else {
		s.drop[matched] = b == removed
	}
	s.join[matched][plain], s.join[plain][matched] = before, after
	return s.finish()
}

func (s *cuts) at(text []byte, i int) (group, int) {
	c, n := s.t.at(text, i)
	if c == end {
		return groups, 0
	}
	if s.char >= 0 {
		if r, size := utf8.DecodeRune(text[i:]); r == s.char && size == n && (r != utf8.RuneError || n > 1) {
			return matched, n
		}
	}
	return s.group[c], n
}

func (s *cuts) next(text []byte, from int) (int, int) {
	last, n := s.at(text, from)
	for i := from + n; ; i += n {
		var g group
		if g, n = s.at(text, i); g == groups || !s.join[last][g] {
			return i, i
		}
		last = g
	}
}

func (s *cuts) Scan(ends []int, text []byte, from int) int {
	n := 0
	for n < len(ends) && from < len(text) {
		from, _ = s.next(text, from)
		ends[n] = from
		n++
	}
	return n
}

func (s *cuts) Next(text []byte, from int) (end int, fixed bool) {
	end, look := s.next(text, from)
	return end, look < settled(text)
}

func (s *cuts) Probes(text []byte, from int) []string {
	if from >= len(text) {
		return nothing
	}
	return s.probed
}

// finish makes the probes: a character of each group.
func (s *cuts) finish() *cuts {
	s.probed = []string{""}
	var seen [groups]bool
	for _, q := range []string{"a", "1", " ", "!", "\x00", string(max(s.char, 0))} {
		if g, _ := s.at([]byte(q), 0); !seen[g] {
			seen[g] = true
			s.probed = append(s.probed, q)
		}
	}
	return s
}

func (s *cuts) Completions(part []byte) []string {
	if s.char < 0 {
		return s.t.completions(part, nil)
	}
	return s.t.completions(part, []rune{s.char})
}

func (s *cuts) Keeps(piece []byte) bool {
	g, _ := s.at(piece, 0)
	return g == groups || !s.drop[g]
}

func (s *cuts) drops() bool    { return s.drop != [groups]bool{} }
func (s *cuts) Exact() bool    { return true }
func (s *cuts) String() string { return s.name }

// newWhitespace is \w+|[^\w\s]+, without what is between.
func newWhitespace() *cuts {
	s := &cuts{name: "Whitespace", t: unicode160(), char: -1}
	for c := range s.group {
		switch c := class(c); {
		case spaces.has(c):
			s.group[c] = blanks
		case c&word != 0:
			s.group[c] = wordy
		}
	}
	for g := range groups {
		s.join[g][g] = true
	}
	s.drop[blanks] = true
	return s.finish()
}

// newBert removes white space and isolates punctuation.
func newBert() *cuts {
	s := newCuts("BertPreTokenizer", func(c class) bool { return c&bert != 0 }, -1, isolated, false)
	for c := range s.group {
		if spaces.has(class(c)) {
			s.group[c] = blanks
		}
	}
	s.join[blanks][blanks] = true
	s.drop[blanks] = true
	return s.finish()
}

const digitsName = "Digits"

// newDigits isolates numbers, or runs of them.
func newDigits(individual bool) *cuts {
	b := contiguous
	if individual {
		b = isolated
	}
	s := newCuts(digitsName, numbers.has, -1, b, false)
	s.t = unicode170Numbers()
	return s
}
