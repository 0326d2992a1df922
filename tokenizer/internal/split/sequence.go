package split

import (
	"slices"
	"strings"
)

// stage is a splitter that a sequence can build on.
type stage interface {
	Splitter
	next(text []byte, from int) (end, look int)
}

// sequence cuts the pretokens of first with then. It relies on first cutting the
// rest of one of its pretokens, from a cut of then on, as it cut the whole: new
// pretokens have no left context, and text is scanned from the middle on.
type sequence struct {
	first, then stage
}

// window is how far (in bytes) a sequence looks for the end of the first
// stage's pretoken before it lets the second cut what there is: a pretoken may
// be long, and be scanned from many places in it.
const window = 4096

// runWindow is window for patterns, which take tens of times as long.
const runWindow = 256

func (s *sequence) window() int {
	if _, ok := s.first.(*inexact); ok {
		return runWindow
	}
	return window
}

// steady reports whether what decides about a pretoken of s decides about those
// before it, too.
func steady(s stage) bool {
	switch s := s.(type) {
	case *cuts:
		return true
	case *inexact:
		return s.run != nil && s.behavior == isolated && !s.invert
	case *sequence:
		return steady(s.first) && steady(s.then)
	}
	return false
}

func newSequence(first, then stage) *sequence { return &sequence{first, then} }

// eachKind has a character of each kind: one that goes on in the second stage
// may end a pretoken of the first, where another of its kind does not.
var eachKind = []string{"a", "A", "中", "\u0301", "1", "!", "+", "\x00", " ", "\n"}

// segment gives the end of first's pretoken at from, or a place before it that
// is about so many bytes away. whole is false for the latter.
func (s *sequence) segment(text []byte, from, least int) (end, look int, whole bool) {
	if from+least < len(text) {
		part := text[:from+least]
		part = part[:settled(part)]
		switch first := s.first.(type) {
		case *cuts:
			end, look = first.next(part, from)
			return end, look, look < len(part)
		case *inexact:
			if end, look = first.next(part, from); look < len(part) {
				return end, look, true
			}
			if end = first.run.surely(part, from); end > from {
				return end, len(part), false
			}
		}
	}
	end, look = s.first.next(text, from)
	return end, look, true
}

func (s *sequence) next(text []byte, from int) (int, int) {
	for least := s.window(); ; least *= 2 {
		limit, outer, whole := s.segment(text, from, least)
		if whole && !s.first.Keeps(text[from:limit]) {
			return limit, outer
		}
		end, look := s.then.next(text[:limit], from)
		if whole {
			return end, max(look, outer)
		}
		if look < limit {
			return end, look
		}
	}
}

func (s *sequence) Scan(ends []int, text []byte, from int) int {
	n := 0
	for n < len(ends) && from < len(text) {
		limit, _, whole := s.segment(text, from, window)
		if !whole {
			before := n
			n += s.scanPart(ends[n:], text[:limit], from)
			if n > before {
				from = ends[n-1]
			} else {
				from, _ = s.next(text, from)
				ends[n] = from
				n++
			}
			continue
		}
		if !s.first.Keeps(text[from:limit]) {
			ends[n] = limit
			n++
			from = limit
			continue
		}
		k := s.then.Scan(ends[n:], text[:limit], from)
		n += k
		from = ends[n-1]
	}
	return n
}

// scanPart is Scan of a beginning of one of first's pretokens. It leaves out the
// pretokens that what follows may change.
func (s *sequence) scanPart(ends []int, part []byte, from int) int {
	n := 0
	if !steady(s.then) {
		for n < len(ends) {
			end, look := s.then.next(part, from)
			if look >= len(part) {
				break
			}
			from = end
			ends[n] = end
			n++
		}
		return n
	}
	n = s.then.Scan(ends, part, from)
	for ; n > 0; n-- {
		start := from
		if n > 1 {
			start = ends[n-2]
		}
		if _, look := s.then.next(part, start); look < len(part) {
			break
		}
	}
	return n
}

func (s *sequence) Next(text []byte, from int) (end int, fixed bool) {
	end, look := s.next(text, from)
	return end, look < settled(text)
}

// Probes has pairs too: what the first stage does depends on the next
// characters, what the second does then on those that follow.
func (s *sequence) Probes(text []byte, from int) []string {
	if from >= len(text) {
		return nothing
	}
	one := slices.Concat(s.first.Probes(text, from), s.then.Probes(text, from), eachKind)
	slices.Sort(one)
	one = slices.Compact(one)
	all := slices.Clone(one)
	for _, p := range one {
		for _, q := range one {
			all = append(all, p+q)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (s *sequence) Completions(part []byte) []string {
	out := append(s.first.Completions(part), s.then.Completions(part)...)
	slices.Sort(out)
	return slices.Compact(out)
}

func (s *sequence) Keeps(piece []byte) bool { return s.first.Keeps(piece) && s.then.Keeps(piece) }
func (s *sequence) drops() bool             { return Drops(s.first) || Drops(s.then) }
func (s *sequence) Exact() bool             { return s.first.Exact() && s.then.Exact() }

func (s *sequence) String() string {
	return strings.Join([]string{s.first.String(), s.then.String()}, ", ")
}
