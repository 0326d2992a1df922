package split

import (
	"bytes"
)

// finder finds the first match in text[from:]; start and end are len(text) if
// there is none. look is the offset of the last character that decided it.
type finder interface {
	find(text []byte, from int) (start, end, look int)
	// probes are continuations that make a difference to matches.
	probes() []string
	// odd lists characters that it tells from others of their class.
	odd() []rune
}

// delimited cuts at the matches of a finder.
type delimited struct {
	finder
	name     string
	behavior behavior
	invert   bool // what is between the matches counts as match, and they do not
}

// entry is a match or what is between two.
type entry struct {
	end   int
	match bool
	look  int
}

func (s *delimited) entry(text []byte, from int) entry {
	start, end, look := s.find(text, from)
	if start > from {
		return entry{start, s.invert, look}
	}
	return entry{end, !s.invert, look}
}

// joins reports whether an entry is one pretoken with the next one.
func (s *delimited) joins(match, next bool) bool {
	switch s.behavior {
	case contiguous:
		return match == next && match != s.invert
	case mergedWithPrevious:
		return !match && next
	case mergedWithNext:
		return match && !next
	}
	return false
}

func (s *delimited) next(text []byte, from int) (int, int) {
	e := s.entry(text, from)
	for s.joins(e.match, true) || s.joins(e.match, false) {
		if e.end == len(text) {
			return e.end, e.end
		}
		n := s.entry(text, e.end)
		n.look = max(n.look, e.look)
		if !s.joins(e.match, n.match) {
			return e.end, n.look
		}
		e = n
	}
	return e.end, e.look
}

func (s *delimited) Scan(ends []int, text []byte, from int) int {
	n := 0
	for n < len(ends) && from < len(text) {
		from, _ = s.next(text, from)
		ends[n] = from
		n++
	}
	return n
}

func (s *delimited) Next(text []byte, from int) (end int, fixed bool) {
	end, look := s.next(text, from)
	return end, look < settled(text)
}

func (s *delimited) Probes(text []byte, from int) []string {
	if from >= len(text) {
		return nothing
	}
	return s.probes()
}

func (s *delimited) Completions(part []byte) []string {
	return unicode160().completions(part, s.odd())
}

func (s *delimited) Keeps(piece []byte) bool {
	if s.behavior != removed || len(piece) == 0 {
		return true
	}
	e := s.entry(piece, 0)
	return !(e.match && e.end == len(piece))
}

func (s *delimited) drops() bool    { return s.behavior == removed }
func (s *delimited) Exact() bool    { return true }
func (s *delimited) String() string { return s.name }

// plainText finds a string.
type plainText struct {
	text    string
	probing []string
}

func newPlainText(text string) *plainText {
	f := &plainText{text: text, probing: []string{""}}
	other := "\x00" // no part of a match
	for range len(text) + 1 {
		if !bytes.Contains([]byte(text), []byte(other)) {
			break
		}
		other += "\x00"
	}
	for i := range text {
		f.probing = append(f.probing, text[i:], text[i:]+other, text[i:]+text)
	}
	f.probing = append(f.probing, other)
	return f
}

func (f *plainText) find(text []byte, from int) (start, end, look int) {
	i := bytes.Index(text[from:], []byte(f.text))
	if i < 0 {
		return len(text), len(text), len(text)
	}
	return from + i, from + i + len(f.text), from + i + len(f.text) - 1
}

func (f *plainText) probes() []string { return f.probing }
func (f *plainText) odd() []rune      { return []rune(f.text) }

// repeat finds [set]{least,most}.
type repeat struct {
	set         set
	ascii       bool // only ASCII characters
	least, most int  // most is 0 for no limit
	probing     []string
}

func (f *repeat) find(text []byte, from int) (start, end, look int) {
	t := unicode160()
	for i := from; i < len(text); {
		start := i
		c, n := t.at(text, i)
		count := 0
		for f.set.has(c) && !(f.ascii && n > 1) {
			i += n
			if count++; count == f.most {
				return start, i, i - n
			}
			c, n = t.at(text, i)
		}
		if count > 0 && count >= f.least {
			return start, i, i
		}
		i += n
	}
	return len(text), len(text), len(text)
}

func (f *repeat) probes() []string { return f.probing }
func (f *repeat) odd() []rune      { return nil }

// repeats are the regular expressions that are one character class, repeated or
// not.
var repeats = map[string]repeat{
	`\p{N}`:            {set: numbers, least: 1, most: 1, probing: numberProbes},
	`\p{N}+`:           {set: numbers, least: 1, probing: numberProbes},
	`\p{N}{1,3}`:       {set: numbers, least: 1, most: 3, probing: numberProbes},
	`[0-9]`:            {set: numbers, ascii: true, least: 1, most: 1, probing: numberProbes},
	`[0-9]+`:           {set: numbers, ascii: true, least: 1, probing: numberProbes},
	`[0-9]{1,3}`:       {set: numbers, ascii: true, least: 1, most: 3, probing: numberProbes},
	`[0-9][0-9][0-9]`:  {set: numbers, ascii: true, least: 3, most: 3, probing: numberProbes},
	`[0-9]{3}`:         {set: numbers, ascii: true, least: 3, most: 3, probing: numberProbes},
	`\s`:               {set: spaces, least: 1, most: 1, probing: spaceProbes},
	`\s+`:              {set: spaces, least: 1, probing: spaceProbes},
	"[\r\n]":           {set: newlines, least: 1, most: 1, probing: newlineProbes},
	"[\r\n]+":          {set: newlines, least: 1, probing: newlineProbes},
	`[\r\n]`:           {set: newlines, least: 1, most: 1, probing: newlineProbes},
	`[\r\n]+`:          {set: newlines, least: 1, probing: newlineProbes},
	`\p{L}+`:           {set: letters, least: 1, probing: numberProbes},
	`[^\s\p{L}\p{N}]+`: {set: symbols, least: 1, probing: numberProbes},
}

var (
	numberProbes  = []string{"", "1", "11", "111", "a", "1a", "11a", "!"}
	spaceProbes   = []string{"", " ", "a", " a"}
	newlineProbes = []string{"", "\n", "a", "\na"}
)
