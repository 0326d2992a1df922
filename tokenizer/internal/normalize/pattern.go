package normalize

import (
	"cmp"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The reference takes regular expressions in the syntax of Ruby (Oniguruma).
// patternReader writes those that mean the same in Go's syntax, and refuses
// others by name.
type patternReader struct {
	pattern string
	at      int
	out     strings.Builder
	depth   int // of groups
	operand bool
}

func parsePattern(pattern string) (*syntax.Regexp, error) {
	r := &patternReader{pattern: pattern}
	for r.at < len(pattern) {
		if err := r.next(); err != nil {
			return nil, fmt.Errorf("regexp %q, byte %d: %w", pattern, r.at, err)
		}
	}
	tree, err := syntax.Parse(r.out.String(), syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("regexp %q: %w", pattern, err)
	}
	return tree, nil
}

// unsupported names the part of a pattern that is refused.
func unsupported(part string) error { return fmt.Errorf("%s is not supported here", part) }

// next translates one element of the pattern.
func (r *patternReader) next() error {
	rest := r.pattern[r.at:]
	switch c := rest[0]; c {
	case '^', '$':
		return unsupported("the anchor " + string(c))
	case '(':
		if strings.HasPrefix(rest, "(?:") {
			r.write("(?:", 3)
		} else if strings.HasPrefix(rest, "(?") || strings.HasPrefix(rest, "(*") {
			return unsupported("a group that begins with " + rest[:2])
		} else {
			r.write("(?:", 1)
		}
		r.depth++
		r.operand = false
	case ')':
		r.write(")", 1)
		r.depth--
		r.operand = true
	case '|':
		r.write("|", 1)
		r.operand = false
	case '*', '+', '?', '{':
		return r.quantifier()
	case '[':
		r.operand = true
		return r.class()
	case '.':
		r.write(".", 1)
		r.operand = true
	case '\\':
		set, char, n, err := r.escape(rest, false)
		if err != nil {
			return err
		}
		if set != "" {
			r.write("["+set+"]", n)
		} else {
			r.write(quote(char), n)
		}
		r.operand = true
	default:
		char, n := utf8.DecodeRuneInString(rest)
		r.write(quote(char), n)
		r.operand = true
	}
	return nil
}

// write puts out what n bytes of the pattern mean.
func (r *patternReader) write(s string, n int) {
	r.out.WriteString(s)
	r.at += n
}

func quote(r rune) string { return fmt.Sprintf(`\x{%x}`, r) }

var bounds = regexp.MustCompile(`^\{([0-9]*)(,?)([0-9]*)\}`)

// quantifier translates a repetition and the ? that makes it lazy.
func (r *patternReader) quantifier() error {
	if !r.operand {
		return unsupported("a repetition of nothing or of a repetition")
	}
	r.operand = false
	rest := r.pattern[r.at:]
	if rest[0] != '{' {
		r.write(rest[:1], 1)
	} else {
		m := bounds.FindStringSubmatch(rest)
		if m == nil || m[1] == "" && m[3] == "" {
			return unsupported("a brace that is no repetition")
		}
		least := m[1]
		if least == "" {
			least = "0"
		}
		r.write("{"+least+m[2]+m[3]+"}", len(m[0]))
		if m[2] == "" && strings.HasPrefix(r.pattern[r.at:], "?") {
			return unsupported("a ? after {n}") // optional in Ruby, lazy in Go
		}
	}
	if strings.HasPrefix(r.pattern[r.at:], "?") {
		r.write("?", 1)
	}
	return nil
}

// class translates a set in brackets.
func (r *patternReader) class() error {
	r.write("[", 1)
	if strings.HasPrefix(r.pattern[r.at:], "^") {
		r.write("^", 1)
	}
	for first := true; ; first = false {
		rest := r.pattern[r.at:]
		switch {
		case rest == "":
			return fmt.Errorf("missing closing ]")
		case rest[0] == ']' && !first:
			r.write("]", 1)
			return nil
		case rest[0] == ']' || rest[0] == '[' || strings.HasPrefix(rest, "&&"):
			return unsupported("a set within a set, or " + rest[:1] + " without a backslash in one")
		}
		lo, set, n, err := r.member(rest)
		if err != nil {
			return err
		}
		if set != "" {
			r.write(set, n)
			if strings.HasPrefix(r.pattern[r.at:], "-") && !strings.HasPrefix(r.pattern[r.at:], "-]") {
				return unsupported("a range from a class")
			}
			continue
		}
		r.write(quote(lo), n)
		rest = r.pattern[r.at:]
		if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
			continue
		}
		if rest[1] == '[' {
			return unsupported("a set within a set")
		}
		hi, set, n, err := r.member(rest[1:])
		if err != nil {
			return err
		}
		if set != "" {
			return unsupported("a range to a class")
		}
		r.write("-"+quote(hi), 1+n)
	}
}

// member reads a character of a set, or a class.
func (r *patternReader) member(rest string) (char rune, set string, n int, err error) {
	if rest[0] == '\\' {
		set, char, n, err = r.escape(rest, true)
		return char, set, n, err
	}
	char, n = utf8.DecodeRuneInString(rest)
	return char, "", n, nil
}

var (
	escapedChars = map[byte]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1b}
	escapedSets  = map[byte]string{'s': "regexp-space", 'd': "regexp-digit", 'w': "regexp-word"}
	codePoint    = regexp.MustCompile(`^\\(?:x([0-7][0-9a-fA-F])|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4}))`)
)

// escape reads a backslash and what belongs to it: a character, or a class as
// ranges for a set.
func (r *patternReader) escape(rest string, bracketed bool) (set string, char rune, n int, err error) {
	if len(rest) < 2 {
		return "", 0, 0, fmt.Errorf("the pattern ends in a backslash")
	}
	c := rest[1]
	if m := codePoint.FindStringSubmatch(rest); m != nil {
		if _, err := fmt.Sscanf(m[1]+m[2]+m[3], "%x", &char); err != nil || !utf8.ValidRune(char) {
			return "", 0, 0, fmt.Errorf("%s is no character", m[0])
		}
		return "", char, len(m[0]), nil
	}
	if char, ok := escapedChars[c]; ok {
		return "", char, 2, nil
	}
	if name, ok := escapedSets[c]; ok {
		var b strings.Builder
		rows(func(_ string, p []rune) {
			// In brackets \w has not the numbers that Oniguruma's own table of
			// Latin-1 counts in: superscripts and fractions.
			lo, hi := p[0], p[1]
			switch {
			case c != 'w' || !bracketed:
			case lo == 0xb2 || lo == 0xbc:
				return
			case lo == 0xb9: // up to 0xba, a letter
				lo++
			}
			b.WriteString(quote(lo) + "-" + quote(hi))
		}, name)
		return b.String(), 0, 2, nil
	}
	if c < utf8.RuneSelf && !unicode.IsLetter(rune(c)) && !unicode.IsDigit(rune(c)) {
		return "", rune(c), 2, nil
	}
	return "", 0, 0, unsupported(`\` + string(rune(c)))
}

// maxLen is how many characters a match may have, -1 for any number.
func maxLen(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus:
		return -1
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	}
	n := 0
	for _, sub := range re.Sub {
		k := maxLen(sub)
		switch {
		case k < 0:
			return -1
		case re.Op == syntax.OpAlternate:
			n = max(n, k)
		default:
			n += k
		}
	}
	if re.Op == syntax.OpRepeat {
		if re.Max < 0 {
			return -1
		}
		n *= re.Max
	}
	return n
}

// concatenation reports whether an expression is a sequence of characters,
// sets and repetitions of those. Each search for it then ends near the end of
// the match.
func concatenation(re *syntax.Regexp) bool {
	single := func(re *syntax.Regexp) bool {
		switch re.Op {
		case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
			_, ok := setOf(re.Sub[0])
			return ok
		case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyCharNotNL:
			return true
		}
		return false
	}
	if re.Op == syntax.OpConcat {
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !single(sub) })
	}
	return single(re)
}

// alphabet gives all characters that a match may have, as ranges.
func alphabet(re *syntax.Regexp) []rune {
	var all [][2]rune
	var walk func(re *syntax.Regexp)
	walk = func(re *syntax.Regexp) {
		switch re.Op {
		case syntax.OpLiteral:
			for _, r := range re.Rune {
				all = append(all, [2]rune{r, r})
			}
		case syntax.OpCharClass:
			for i := 0; i < len(re.Rune); i += 2 {
				all = append(all, [2]rune{re.Rune[i], re.Rune[i+1]})
			}
		case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
			all = append(all, [2]rune{0, unicode.MaxRune})
		}
		for _, sub := range re.Sub {
			walk(sub)
		}
	}
	walk(re)
	slices.SortFunc(all, func(a, b [2]rune) int { return cmp.Compare(a[0], b[0]) })
	var set []rune
	for _, r := range all {
		if n := len(set); n > 0 && r[0] <= set[n-1]+1 {
			set[n-1] = max(set[n-1], r[1])
		} else {
			set = append(set, r[0], r[1])
		}
	}
	return set
}
