package normalize

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// newReplace makes the fastest step for a pattern.
func newReplace(s Step) ([]step, error) {
	if s.Pattern == "" {
		return nil, fmt.Errorf("the pattern is empty")
	}
	if !utf8.ValidString(s.Pattern) || !utf8.ValidString(s.Content) {
		return nil, fmt.Errorf("the pattern or what replaces it is not valid UTF-8")
	}
	if !s.Regex {
		return []step{newReplaceLiteral(s.Pattern, s.Content)}, nil
	}
	tree, err := parsePattern(s.Pattern)
	if err != nil {
		return nil, err
	}
	if lit, ok := literalOf(tree); ok {
		return []step{newReplaceLiteral(lit, s.Content)}, nil
	}
	if set, least, ok := runOf(tree); ok {
		return []step{&replaceRuns{s.Pattern, s.Content, set, least}}, nil
	}
	if maxLen(tree) < 0 && !concatenation(tree) {
		return nil, fmt.Errorf("regexp %q has repetitions without an upper bound inside of groups, which may take quadratic time", s.Pattern)
	}
	re, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, fmt.Errorf("regexp %q: %w", s.Pattern, err)
	}
	if re.MatchString("") {
		return nil, fmt.Errorf("regexp %q matches the empty text, which is not supported", s.Pattern)
	}
	return []step{&replaceRegexp{re, s.Content, alphabet(tree)}}, nil
}

// replaceLiteral replaces each occurrence of a string, from left to right.
type replaceLiteral struct {
	pattern, content string
	// border[k] is the length of the longest proper suffix of pattern[:k] that
	// the pattern begins with (Knuth, Morris, Pratt 1977).
	border []int
}

func newReplaceLiteral(pattern, content string) *replaceLiteral {
	s := &replaceLiteral{pattern, content, make([]int, len(pattern)+1)}
	for k, b := 2, 0; k <= len(pattern); k++ {
		b = s.advance(b, pattern[k-1])
		s.border[k] = b
	}
	return s
}

// advance gives the length of the longest proper prefix of the pattern that the
// text ends with after byte c, if it was k before.
func (s *replaceLiteral) advance(k int, c byte) int {
	for k > 0 && s.pattern[k] != c {
		k = s.border[k]
	}
	if s.pattern[k] == c {
		k++
	}
	return k
}

func (s *replaceLiteral) append(dst, src []byte) []byte {
	for {
		i := s.index(src)
		if i < 0 {
			return append(dst, src...)
		}
		dst = append(append(dst, src[:i]...), s.content...)
		src = src[i+len(s.pattern):]
	}
}

func (s *replaceLiteral) index(src []byte) int {
	if len(s.pattern) == 1 {
		return bytes.IndexByte(src, s.pattern[0])
	}
	return bytes.Index(src, []byte(s.pattern))
}

func (s *replaceLiteral) same(src []byte) bool {
	return s.pattern == s.content || s.index(src) < 0
}

func (s *replaceLiteral) cuts(src []byte, c []cut) []cut {
	c = append(c, cut{})
	out := 0
	for i := 0; i < len(src); {
		end := s.index(src[i:])
		found := end >= 0
		if end += i; !found {
			end = i + s.open(src[i:])
		}
		// All places between matches; inside of characters too.
		for i < end {
			i++
			out++
			c = append(c, cut{i, out})
		}
		if !found {
			return c
		}
		i += len(s.pattern)
		out += len(s.content)
		c = append(c, cut{i, out})
	}
	return c
}

// open gives the place in a text without the pattern from which on it may yet
// become one.
func (s *replaceLiteral) open(src []byte) int {
	tail := src[max(0, len(src)-len(s.pattern)+1):]
	k := 0
	for _, b := range tail {
		k = s.advance(k, b)
	}
	return len(src) - k
}

func (s *replaceLiteral) inert(r rune) bool { return !strings.ContainsRune(s.pattern, r) }
func (s *replaceLiteral) joins() bool       { return false }

func (s *replaceLiteral) String() string {
	return Step{Type: "Replace", Pattern: s.pattern, Content: s.content}.name()
}

// replaceRuns replaces each longest run of at least a number of characters of a
// set: " {2,}".
type replaceRuns struct {
	pattern, content string
	set              []rune // ranges, as in syntax.Regexp
	least            int
}

func (s *replaceRuns) in(r rune, size int) bool {
	return (size > 1 || r < utf8.RuneSelf) && inRanges(s.set, r)
}

// next finds the first run at or after from that is long enough.
func (s *replaceRuns) next(src []byte, from int) (lo, hi int) {
	count := 0
	for i := from; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if s.in(r, size) {
			if count == 0 {
				lo = i
			}
			count++
		} else {
			if count >= s.least {
				return lo, i
			}
			count = 0
		}
		i += size
	}
	if count >= s.least {
		return lo, len(src)
	}
	return len(src), len(src)
}

func (s *replaceRuns) append(dst, src []byte) []byte {
	for i := 0; ; {
		lo, hi := s.next(src, i)
		dst = append(dst, src[i:lo]...)
		if lo == hi {
			return dst
		}
		dst = append(dst, s.content...)
		i = hi
	}
}

func (s *replaceRuns) same(src []byte) bool {
	lo, hi := s.next(src, 0)
	return lo == hi
}

func (s *replaceRuns) cuts(src []byte, c []cut) []cut {
	c = append(c, cut{})
	out := 0
	for i, end := 0, completeLen(src); i < end; {
		lo, hi := s.next(src, i)
		for i < lo && i < end {
			r, size := utf8.DecodeRune(src[i:])
			i += size
			out += size
			// After some of a run more may follow.
			if !s.in(r, size) {
				c = append(c, cut{i, out})
			}
		}
		if lo == hi || hi == len(src) || hi > end {
			break
		}
		i = hi
		out += len(s.content)
		c = append(c, cut{i, out})
	}
	return c
}

func (s *replaceRuns) inert(r rune) bool { return !inRanges(s.set, r) }
func (s *replaceRuns) joins() bool       { return false }

func (s *replaceRuns) String() string {
	return Step{Type: "Replace", Pattern: s.pattern, Regex: true, Content: s.content}.name()
}

// replaceRegexp replaces each match of any other expression.
type replaceRegexp struct {
	re      *regexp.Regexp
	content string
	set     []rune // ranges of all characters that a match may have
}

func (s *replaceRegexp) append(dst, src []byte) []byte {
	for {
		m := s.re.FindIndex(src)
		if m == nil {
			return append(dst, src...)
		}
		dst = append(append(dst, src[:m[0]]...), s.content...)
		src = src[m[1]:]
	}
}

func (s *replaceRegexp) same(src []byte) bool { return !s.re.Match(src) }

// cuts are the places after characters that are in no match: without
// assertions, nothing behind them decides about what stands before.
func (s *replaceRegexp) cuts(src []byte, c []cut) []cut {
	c = append(c, cut{})
	out := 0
	for i, end := 0, completeLen(src); i < end; {
		lo, hi := end, end
		if m := s.re.FindIndex(src[i:]); m != nil {
			lo, hi = i+m[0], i+m[1]
		}
		for i < lo && i < end {
			r, size := utf8.DecodeRune(src[i:])
			i += size
			out += size
			if s.inert(r) {
				c = append(c, cut{i, out})
			}
		}
		i = hi
		out += len(s.content)
	}
	return c
}

func (s *replaceRegexp) inert(r rune) bool { return !inRanges(s.set, r) }
func (s *replaceRegexp) joins() bool       { return false }

func (s *replaceRegexp) String() string {
	return Step{Type: "Replace", Pattern: s.re.String(), Regex: true, Content: s.content}.name()
}

// inRanges reports whether r is in a set of ranges, each two runes, ascending.
func inRanges(set []rune, r rune) bool {
	if len(set) == 2 {
		return set[0] <= r && r <= set[1]
	}
	lo, hi := 0, len(set)/2
	for lo < hi {
		m := (lo + hi) / 2
		if set[2*m+1] < r {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo < len(set)/2 && set[2*lo] <= r
}

// literalOf gives the only string that an expression matches.
func literalOf(re *syntax.Regexp) (string, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune), true
	case syntax.OpCharClass:
		if len(re.Rune) == 2 && re.Rune[0] == re.Rune[1] {
			return string(re.Rune[0]), true
		}
	case syntax.OpCapture:
		return literalOf(re.Sub[0])
	}
	return "", false
}

// setOf gives the set of an expression that matches one character.
func setOf(re *syntax.Regexp) ([]rune, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		if len(re.Rune) == 1 {
			return []rune{re.Rune[0], re.Rune[0]}, true
		}
	case syntax.OpCharClass:
		return re.Rune, len(re.Rune) > 0
	case syntax.OpCapture:
		return setOf(re.Sub[0])
	}
	return nil, false
}

// runOf takes apart expressions of the form x+ and x{n,}.
func runOf(re *syntax.Regexp) (set []rune, least int, ok bool) {
	if re.Flags&syntax.NonGreedy != 0 {
		return nil, 0, false
	}
	switch {
	case re.Op == syntax.OpCapture:
		return runOf(re.Sub[0])
	case re.Op == syntax.OpPlus:
		least = 1
	case re.Op == syntax.OpRepeat && re.Max < 0 && re.Min > 0:
		least = re.Min
	default:
		return nil, 0, false
	}
	set, ok = setOf(re.Sub[0])
	return set, least, ok
}
