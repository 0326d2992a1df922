package split

import (
	"fmt"
	"slices"
	"sync"
	"unicode"
)

// charset is a set of characters: ascending, disjoint ranges.
type charset []charRange

type charRange struct{ lo, hi rune }

func (s charset) has(r rune) bool {
	lo, hi := 0, len(s)
	for lo < hi {
		if m := (lo + hi) / 2; s[m].hi < r {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo < len(s) && s[lo].lo <= r
}

// normalized sorts and joins ranges.
func (s charset) normalized() charset {
	s = slices.Clone(s)
	slices.SortFunc(s, func(a, b charRange) int { return int(a.lo - b.lo) })
	out := s[:0]
	for _, r := range s {
		if n := len(out); n > 0 && r.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, r.hi)
			continue
		}
		out = append(out, r)
	}
	return out
}

func (s charset) negated() charset {
	var out charset
	next := rune(0)
	for _, r := range s {
		if r.lo > next {
			out = append(out, charRange{next, r.lo - 1})
		}
		next = r.hi + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, charRange{next, unicode.MaxRune})
	}
	return out
}

func (s charset) and(t charset) charset {
	return append(slices.Clone(s.negated()), t.negated()...).normalized().negated()
}

// folded adds the other cases of the characters of s, unless it is large.
func (s charset) folded() charset {
	out := slices.Clone(s)
	for _, r := range s {
		for c := r.lo; c <= r.hi && c < r.lo+0x400; c++ {
			for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
				out = append(out, charRange{f, f})
			}
		}
	}
	return out.normalized()
}

// classSet gives the characters of some classes.
func (t *table) classSet(in func(class) bool) charset {
	var out charset
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !in(t.of(r)) {
			continue
		}
		if n := len(out); n > 0 && out[n-1].hi == r-1 {
			out[n-1].hi = r
		} else {
			out = append(out, charRange{r, r})
		}
	}
	return out
}

// assignment is a run of code points and their general category.
type assignment struct {
	lo, hi   rune
	category string
}

// properties keeps what property found: it looks at all code points.
var properties sync.Map // of charset by propertyKey

type propertyKey struct {
	t    *table
	name string
}

func (t *table) property(name string) (charset, error) {
	if s, ok := properties.Load(propertyKey{t, name}); ok {
		return s.(charset), nil
	}
	s, err := t.findProperty(name)
	if err == nil {
		properties.Store(propertyKey{t, name}, s)
	}
	return s, err
}

// findProperty gives the characters of \p{name}, or of \s and \w: those of the table,
// general categories of two letters of Unicode 16.0, and scripts of package
// unicode.
func (t *table) findProperty(name string) (charset, error) {
	kind := map[string]set{
		"L": letters, "M": kindSet(mark), "N": numbers, "P": kindSet(punct), "S": kindSet(symbol), `\s`: spaces,
	}[name]
	switch {
	case kind != 0:
		return t.classSet(kind.has), nil
	case name == "Han":
		return t.classSet(func(c class) bool { return c&han != 0 }), nil
	case name == `\w`:
		return t.classSet(func(c class) bool { return c&word != 0 }), nil
	case len(name) == 2 && unicode.Categories[name] != nil && name[0] != 'C':
		return category(name), nil
	case unicode.Scripts[name] != nil:
		return tableSet(unicode.Scripts[name]), nil
	}
	return nil, fmt.Errorf(`\p{%s} is not supported`, name)
}

func category(name string) charset {
	var newer, own charset
	for _, a := range assigned160 {
		newer = append(newer, charRange{a.lo, a.hi})
		if a.category == name {
			own = append(own, charRange{a.lo, a.hi})
		}
	}
	old := tableSet(unicode.Categories[name]).and(newer.normalized().negated())
	return append(old, own...).normalized()
}

func tableSet(t *unicode.RangeTable) charset {
	var out charset
	for _, r := range t.R16 {
		for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
			out = append(out, charRange{c, c})
		}
	}
	for _, r := range t.R32 {
		for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
			out = append(out, charRange{c, c})
		}
	}
	return out.normalized()
}
