package schema

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/unfray/unfray/jsonrepair"
)

// fold is the same for names that differ in case and style alone: userName,
// user_name, User-Name, "user name" and user\_name. Accents do not count.
func fold(name string) string {
	return withoutAccents(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("_-.\\`*\"'’“”:", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name))
}

var ligatures = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ı", "i")

// withoutAccents drops the accents of lower-case Latin, Greek and Cyrillic letters. Marks
// of other scripts are letters in all but name.
func withoutAccents(s string) string {
	if isASCII(s) {
		return s
	}
	return ligatures.Replace(strings.Map(func(r rune) rune {
		if r >= 0x300 && r <= 0x36F {
			return -1
		}
		return r
	}, norm.NFD.String(s)))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// trimMarks drops what is put around a word for emphasis or as punctuation.
func trimMarks(s string) string {
	const marks = "\"'`*_“”‘’«»()[].,;:"
	mark := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(marks, r) }
	s = strings.TrimRightFunc(s, func(r rune) bool { return r == '!' || mark(r) })
	return strings.TrimLeftFunc(s, mark) // !x is not x
}

const separators = "\"'`*_“”‘’«»()[].,;:-–—/\\"

// plain folds case and drops what separates words. Marks that can carry a meaning
// stay: C and C++, !x, what stands between two digits, as in 1.5, and before a number,
// as in -1.
func plain(s string) string {
	var b strings.Builder
	runes := []rune(strings.TrimRight(s, "! "))
	at := func(i int, is func(rune) bool) bool { return i >= 0 && i < len(runes) && is(runes[i]) }
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for i, r := range runes {
		if unicode.IsSpace(r) || strings.ContainsRune(separators, r) {
			between := at(i-1, unicode.IsDigit) && at(i+1, unicode.IsDigit)
			sign := (r == '-' || r == '.') && at(i+1, unicode.IsDigit) && !at(i-1, word)
			if !between && !sign {
				continue
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// loose is plain, but any mark between two digits is like another. It is "" for texts
// without letters, which are numbers, dates and the like.
func loose(s string) string {
	if strings.IndexFunc(s, unicode.IsLetter) < 0 {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune(separators, r) {
			return '_'
		}
		return r
	}, plain(s))
}

var (
	nullWords = []string{"null", "none", "nil", "n/a", "na", "nan", "undefined"}
	negations = []string{"not", "no", "non", "never", "none", "without", "neither", "nor", "except", "cannot"}
	// Negations that words are one with.
	contractions = []string{"isnt", "arent", "wasnt", "werent", "dont", "doesnt", "didnt", "cant", "couldnt", "wont", "wouldnt", "shouldnt", "hasnt", "havent"}
	// Prefixes that turn a word into its opposite.
	opposites = []string{"un", "in", "im", "ir", "il", "dis", "non", "de", "mis", "anti", "contra", "counter", "pre", "post", "re"}
)

func isNullWord(s string) bool {
	return slices.Contains(nullWords, strings.ToLower(trimMarks(s)))
}

// A spelling is a listed value that a text may stand for.
type spelling struct {
	literal literal
	cost    int
	kind    jsonrepair.Kind
}

const maxListedText = 64 // bytes; a longer text is compared as it is

// spellings finds the listed strings that s may stand for: by case and punctuation,
// else by edit distance. Several are a tie. A part of s never decides: "not spam" is
// not spam.
func (f *fitter) spellings(s string, literals []literal) []spelling {
	if !f.charge(1 + len(literals) + len(s)/8) {
		return nil
	}
	trimmed, plainText, looseText := trimMarks(s), plain(s), loose(s)
	bareText := withoutAccents(plainText)
	for _, same := range []func(l literal) bool{
		func(l literal) bool { return strings.EqualFold(l.value, s) },
		func(l literal) bool { return l.value == trimmed },
		func(l literal) bool { return strings.EqualFold(l.value, trimmed) },
		func(l literal) bool { return l.plain != "" && l.plain == plainText },
		func(l literal) bool { return l.loose != "" && l.loose == looseText },
		func(l literal) bool { return l.bare != "" && l.bare == bareText },
	} {
		var found []spelling
		for _, l := range literals {
			if l.kind == kindString && same(l) {
				found = append(found, spelling{l, costSpelling, Spelling})
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	if found := f.labelled(s, literals); found != nil {
		return found
	}
	if len(s) > maxListedText {
		return nil
	}
	return f.misspelled(s, literals)
}

var (
	labelEnd = regexp.MustCompile(`^[^:\n]*?(:\s|\s[-–—]\s)`)
	// Words in an explanation that may take back what was said before it.
	doubts = []string{"but", "false", "however", "if", "incorrect", "maybe", "or", "perhaps", "possibly", "rather", "unless", "unlikely", "unsure", "wrong"}
)

const minExplanation = 3 // words

// labelled finds the string that s begins with, where a colon or dash and an explanation
// follow: "high: the disk is full". An explanation that names another one, or has a word
// of doubt or negation, says nothing for sure.
func (f *fitter) labelled(s string, literals []literal) []spelling {
	end := labelEnd.FindStringSubmatchIndex(s)
	if end == nil {
		return nil
	}
	label, rest := plain(s[:end[2]]), s[end[3]:]
	words := splitWords(rest)
	if label == "" || len(words) < minExplanation || !f.charge(len(literals)*(1+len(rest)/bytesPerStep)) {
		return nil
	}
	for _, w := range words {
		if slices.Contains(doubts, w) || slices.Contains(negations, w) || slices.Contains(contractions, w) {
			return nil
		}
	}
	var found []spelling
	folded := " " + strings.Join(words, " ") + " "
	for _, l := range literals {
		if l.kind != kindString {
			continue
		}
		switch {
		case l.plain == label:
			found = append(found, spelling{l, costLabel, Label})
		case strings.Contains(folded, " "+strings.Join(splitWords(l.value), " ")+" "):
			return nil
		}
	}
	return found
}

// splitWords returns the words of s in lower case: don't is dont.
func splitWords(s string) []string {
	s = strings.NewReplacer("'", "", "’", "").Replace(strings.ToLower(s))
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// misspelled finds the one string that s is near to.
func (f *fitter) misspelled(s string, literals []literal) []spelling {
	text := plain(s)
	length := utf8.RuneCountInString(text)
	best, second := -1, -1
	var match literal
	for _, l := range literals {
		// Texts whose lengths differ by more are further away than a runner-up may be.
		const far = 4
		n := utf8.RuneCountInString(l.plain)
		if l.kind != kindString || len(l.value) > maxListedText || n < length-far || n > length+far {
			continue
		}
		if !f.charge(1 + len(text)*len(l.plain)/16) {
			return nil
		}
		d := editDistance(text, l.plain)
		switch {
		case best < 0 || d < best:
			best, second, match = d, best, l
		case second < 0 || d < second:
			second = d
		}
	}
	if best < 1 || best > allowedDistance(text, match.plain) || second >= 0 && second < best+2 || reversed(s, match.value) {
		return nil
	}
	return []spelling{{match, costMisspelling + 2*best, Misspelling}}
}

// allowedDistance is how many letters may be wrong: in short words none.
func allowedDistance(a, b string) int {
	switch n := min(utf8.RuneCountInString(a), utf8.RuneCountInString(b)); {
	case n < 5:
		return 0
	case n < 12:
		return 1
	}
	return 2
}

// reversed reports whether two texts that are spelled alike may mean different or
// opposite things: a negation or a prefix that only one has, another first letter,
// other digits.
func reversed(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	words, others := splitWords(a), splitWords(b)
	for _, list := range [][]string{negations, contractions} {
		for _, n := range list {
			if slices.Contains(words, n) != slices.Contains(others, n) {
				return true
			}
		}
	}
	pa, pb := plain(a), plain(b)
	for _, prefix := range opposites {
		if strings.HasPrefix(pa, prefix) != strings.HasPrefix(pb, prefix) {
			return true
		}
	}
	digits := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsSpace(r) {
				return -1
			}
			return r
		}, s)
	}
	first, _ := utf8.DecodeRuneInString(pa)
	other, _ := utf8.DecodeRuneInString(pb)
	return first != other || digits(pa) != digits(pb)
}

// editDistance counts letters that were left out, put in, or swapped with their
// neighbour. Another letter counts as two, one that is easily taken for it, as a vowel for
// another vowel, as one.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := [3][]int{make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(x); i++ {
		older, old, row := rows[(i+2)%3], rows[i%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(y); j++ {
			change := 2
			if x[i-1] == y[j-1] {
				change = 0
			} else if alike(x[i-1], y[j-1]) {
				change = 1
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return rows[(len(x)+1)%3][len(y)]
}

// alike reports whether two letters are easily taken for each other.
func alike(a, b rune) bool {
	for _, group := range []string{"aeiouy", "csz", "ck", "mn", "gj"} {
		if strings.ContainsRune(group, a) && strings.ContainsRune(group, b) {
			return true
		}
	}
	return false
}
