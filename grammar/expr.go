package grammar

import (
	"slices"
	"unicode/utf8"
)

// An expr is a part of a constraint in the form that all languages are read
// into.
type expr struct {
	op       exprOp
	literal  string  // of literal
	ranges   []rune  // of class: pairs of first and last, ascending, apart
	subs     []*expr // of sequence and choice; of repeat the one
	min, max int     // of repeat; max is -1 where there is none
	rule     int     // of call
	pos      int     // byte offset in the source
}

type exprOp uint8

const (
	opLiteral exprOp = iota
	opClass
	opSequence
	opChoice // of none: matches nothing
	opRepeat
	opCall
)

// A rule is a named expr. Its name is "" where the source has none for it.
type rule struct {
	name string
	body *expr
	pos  int
}

// A source is what a reader hands to compile.
type source struct {
	rules []rule
	root  int
	// place says where an offset is, for errors.
	place func(offset int, cause error) error
}

const unlimited = -1

func literal(s string) *expr { return &expr{op: opLiteral, literal: s} }

func sequence(subs ...*expr) *expr { return &expr{op: opSequence, subs: subs} }

func choice(subs ...*expr) *expr { return &expr{op: opChoice, subs: subs} }

func repeat(sub *expr, low, high int) *expr {
	return &expr{op: opRepeat, subs: []*expr{sub}, min: low, max: high, pos: sub.pos}
}

func optional(sub *expr) *expr { return repeat(sub, 0, 1) }

func call(rule int) *expr { return &expr{op: opCall, rule: rule} }

func class(pairs ...rune) *expr { return &expr{op: opClass, ranges: normalRanges(pairs)} }

func classExcept(pairs ...rune) *expr {
	return &expr{op: opClass, ranges: complement(normalRanges(pairs))}
}

func anyRune() *expr { return classExcept() }

const (
	surrogateFirst = 0xd800
	surrogateLast  = 0xdfff
)

// normalRanges sorts and joins pairs and takes what UTF-8 has no bytes for out.
func normalRanges(pairs []rune) []rune {
	type span struct{ lo, hi rune }
	var spans []span
	for i := 0; i+1 < len(pairs); i += 2 {
		lo, hi := max(pairs[i], 0), min(pairs[i+1], utf8.MaxRune)
		for _, s := range [2]span{{lo, min(hi, surrogateFirst-1)}, {max(lo, surrogateLast+1), hi}} {
			if s.lo <= s.hi {
				spans = append(spans, s)
			}
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo) - int(b.lo) })
	out := make([]rune, 0, 2*len(spans))
	for _, s := range spans {
		if n := len(out); n > 0 && s.lo <= out[n-1]+1 {
			out[n-1] = max(out[n-1], s.hi)
			continue
		}
		out = append(out, s.lo, s.hi)
	}
	return out
}

// complement gives all other code points that UTF-8 has bytes for.
func complement(ranges []rune) []rune {
	var out []rune
	next := rune(0)
	for i := 0; i < len(ranges); i += 2 {
		if next < ranges[i] {
			out = append(out, next, ranges[i]-1)
		}
		next = ranges[i+1] + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, next, utf8.MaxRune)
	}
	return normalRanges(out)
}
