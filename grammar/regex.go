package grammar

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
)

// ParseRegex reads a regular expression in the language of Go's regexp
// package. A text matches if all of it does. Only valid UTF-8 matches. Anchors
// are allowed where they change nothing, at the ends; other empty-width
// assertions are not supported.
//
// Errors are [*SyntaxError], with the offset of the part that is at fault as
// far as it is known.
func ParseRegex(src string) (*Grammar, error) {
	fail := func(offset int, cause error) error { return errorAt(src, offset, cause) }
	e, err := parseRegex(src)
	if err != nil {
		var se *syntax.Error
		if errors.As(err, &se) {
			return nil, fail(max(strings.Index(src, se.Expr), 0), err)
		}
		return nil, fail(0, err)
	}
	return compile(&source{rules: []rule{{body: e}}, place: fail})
}

// parseRegex reads a regular expression that must match a whole text.
func parseRegex(src string) (*expr, error) {
	if len(src) > maxSource {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxSource)
	}
	re, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return regexExpr(re, true, true)
}

// regexExpr translates a part of a regular expression. Nothing comes before it
// in a match if first, nothing after it if last.
func regexExpr(re *syntax.Regexp, first, last bool) (*expr, error) {
	switch re.Op {
	case syntax.OpNoMatch:
		return choice(), nil
	case syntax.OpEmptyMatch:
		return sequence(), nil
	case syntax.OpLiteral:
		return regexLiteral(re), nil
	case syntax.OpCharClass:
		return class(re.Rune...), nil
	case syntax.OpAnyCharNotNL:
		return classExcept('\n', '\n'), nil
	case syntax.OpAnyChar:
		return anyRune(), nil
	case syntax.OpBeginText, syntax.OpBeginLine:
		if first {
			return sequence(), nil
		}
	case syntax.OpEndText, syntax.OpEndLine:
		if last {
			return sequence(), nil
		}
	case syntax.OpCapture:
		return regexExpr(re.Sub[0], first, last)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return regexRepeat(re, first, last)
	case syntax.OpConcat:
		return regexConcat(re, first, last)
	case syntax.OpAlternate:
		e := choice()
		for _, sub := range re.Sub {
			s, err := regexExpr(sub, first, last)
			if err != nil {
				return nil, err
			}
			e.subs = append(e.subs, s)
		}
		return e, nil
	}
	return nil, fmt.Errorf("%w: %s here", ErrUnsupported, re)
}

func regexLiteral(re *syntax.Regexp) *expr {
	if re.Flags&syntax.FoldCase == 0 {
		// A class keeps what is no character from matching anything.
		e := sequence()
		for _, r := range re.Rune {
			e.subs = append(e.subs, class(r, r))
		}
		return e
	}
	e := sequence()
	for _, r := range re.Rune {
		pairs := []rune{r, r}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			pairs = append(pairs, f, f)
		}
		e.subs = append(e.subs, class(pairs...))
	}
	return e
}

func regexRepeat(re *syntax.Regexp, first, last bool) (*expr, error) {
	low, high := re.Min, re.Max
	switch re.Op {
	case syntax.OpStar:
		low, high = 0, unlimited
	case syntax.OpPlus:
		low, high = 1, unlimited
	case syntax.OpQuest:
		low, high = 0, 1
	}
	once := high == 1
	sub, err := regexExpr(re.Sub[0], first && once, last && once)
	if err != nil {
		return nil, err
	}
	return repeat(sub, low, high), nil
}

func regexConcat(re *syntax.Regexp, first, last bool) (*expr, error) {
	// Anchors match no bytes, so what stands beside them is still at the end.
	from, to := 0, len(re.Sub)
	for from < to && isBegin(re.Sub[from]) {
		from++
	}
	for to > from && isEnd(re.Sub[to-1]) {
		to--
	}
	e := sequence()
	for i, sub := range re.Sub {
		s, err := regexExpr(sub, first && i <= from, last && i >= to-1)
		if err != nil {
			return nil, err
		}
		e.subs = append(e.subs, s)
	}
	return e, nil
}

func isBegin(re *syntax.Regexp) bool {
	return re.Op == syntax.OpBeginText || re.Op == syntax.OpBeginLine
}

func isEnd(re *syntax.Regexp) bool { return re.Op == syntax.OpEndText || re.Op == syntax.OpEndLine }
