package tokenizer

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// The pattern of GPT-2 but for its look-ahead, which Go's regexp does not have.
// Its \s is ASCII only: white space beyond is U+0085 and category Z.
var (
	gpt2Pattern   = regexp.MustCompile(`'s|'t|'re|'ve|'m|'ll|'d| ?\pL+| ?\pN+| ?[^\s\x0b\x{85}\pZ\pL\pN]+|[\s\x0b\x{85}\pZ]+`)
	numberPattern = regexp.MustCompile(`\pN`)
	spacePattern  = regexp.MustCompile(`^[\s\x0b\x{85}\pZ]+$`)
)

// patternSplit is the reference: the patterns themselves.
func patternSplit(text string, numbers bool) []string {
	if !numbers {
		return gpt2Split(text)
	}
	var out []string
	at := 0
	for _, m := range numberPattern.FindAllStringIndex(text, -1) {
		out = append(append(out, gpt2Split(text[at:m[0]])...), text[m[0]:m[1]])
		at = m[1]
	}
	return append(out, gpt2Split(text[at:])...)
}

func gpt2Split(text string) []string {
	var out []string
	for len(text) > 0 {
		m := gpt2Pattern.FindStringIndex(text)
		n := m[1]
		// \s+(?!\S) gives the last space back, unless it is the only one.
		if spacePattern.MatchString(text[:n]) && n < len(text) && utf8.RuneCountInString(text[:n]) > 1 {
			_, last := utf8.DecodeLastRuneInString(text[:n])
			n -= last
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

func TestPretokens(t *testing.T) {
	gpt2, smollm := synthetic{pre: "gpt-2"}.open(t), synthetic{pre: "smollm"}.open(t)
	for _, tc := range []struct{ text, gpt2, smollm string }{
		{"", "", ""},
		{"Hello, world!", "Hello|,| world|!", "Hello|,| world|!"},
		{"a  ", "a|  ", "a|  "},
		{"a  x", "a| | x", "a| | x"},
		{"a  \n", "a|  \n", "a|  \n"},
		{"a \nb", "a| |\n|b", "a| |\n|b"},
		{"\n b", "\n| b", "\n| b"},
		{"\tb", "\t|b", "\t|b"},
		{"it's 'r 're 'S", "it|'s| '|r| '|re| '|S", "it|'s| '|r| '|re| '|S"},
		{"'re''lls", "'re|''|lls", "'re|''|lls"},
		{"'ll'l", "'ll|'|l", "'ll|'|l"},
		{"a  5", "a| | 5", "a|  |5"},
		{" 12 3", " 12| 3", " |1|2| |3"},
		{"x²½5", "x|²½5", "x|²|½|5"},
		{"naïve中文", "naïve中文", "naïve中文"},
		{"e\u0301", "e|\u0301", "e|\u0301"},
		{" \u2003x", " |\u2003|x", " |\u2003|x"},
		{"\u00a0\u00a0x", "\u00a0|\u00a0|x", "\u00a0|\u00a0|x"},
		{"\x85x", "\x85|x", "\x85|x"},
		{" \xff\xfe!", " \xff\xfe!", " \xff\xfe!"},
		{"a\xe2\x80", "a|\xe2\x80", "a|\xe2\x80"},
		{"\x00\x1c\ufeff\u200b", "\x00\x1c\ufeff\u200b", "\x00\x1c\ufeff\u200b"},
	} {
		if got := strings.Join(pieces(gpt2, tc.text), "|"); got != tc.gpt2 {
			t.Errorf("gpt-2 splits %q into %q, want %q", tc.text, got, tc.gpt2)
		}
		if got := strings.Join(pieces(smollm, tc.text), "|"); got != tc.smollm {
			t.Errorf("smollm splits %q into %q, want %q", tc.text, got, tc.smollm)
		}
	}
}

// hard lists characters and fragments that a pre-tokenizer can stumble over.
var hard = []string{
	"a", "s", "t", "re", "ve", "m", "ll", "d", "l", "r", "v", "e", "A", "S", "'", "’", " ", "  ", "\n", "\r\n", "\t",
	"\v", "\f", "\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff",
	"\x1c", "\x1f", "\x7f", "5", "12", "٣", "²", "½", "Ⅷ", "〇", "é", "e\u0301", "ß", "ſ", "İ", "中", "한", "ㄱ", "あ",
	"ا", "ש", "ก", "ि", "😀", "👨‍👩‍👧", "🏳️", "\U000e0061", "\U0001d7d8", "\ufffd", "!", "...", "_", "-", "€", "`", "\\", "//", "",
	"\xff", "\xe2\x80", "\xc3", "\xf0\x9f", "\x80", "\xed\xa0\x80", "\xc0\x80", "\U0010ffff", "\u0378",
}

func randomText(rng *rand.Rand, parts []string, most int) string {
	var b strings.Builder
	for range rng.IntN(most) {
		b.WriteString(parts[rng.IntN(len(parts))])
	}
	return b.String()
}

func TestPretokensAgainstPatterns(t *testing.T) {
	gpt2, smollm := synthetic{pre: "gpt-2"}.open(t), synthetic{pre: "smollm"}.open(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		checkPattern(t, gpt2, smollm, randomText(rng, hard, 12))
	}
}

func checkPattern(t *testing.T, gpt2, smollm *Tokenizer, text string) {
	t.Helper()
	if strings.ContainsFunc(text, func(r rune) bool { return classes().at(r) != unicodeClass(r) }) {
		return // package regexp goes by another version of Unicode
	}
	if got, want := pieces(gpt2, text), patternSplit(text, false); !slices.Equal(got, want) {
		t.Fatalf("gpt-2 splits %q into %q, want %q", text, got, want)
	}
	if got, want := pieces(smollm, text), patternSplit(text, true); !slices.Equal(got, want) {
		t.Fatalf("smollm splits %q into %q, want %q", text, got, want)
	}
}

// unicodeClass is the class by the tables of the Go release.
func unicodeClass(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// TestClasses compares all code points with package unicode. Only what newer
// versions of Unicode assigned may differ.
func TestClasses(t *testing.T) {
	differ := map[class]int{}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if got := classes().at(r); got != unicodeClass(r) {
			differ[got]++
			if unicode.Version == "15.0.0" && (r < 0x2ebf0 || r > 0x2ee5d) {
				t.Errorf("%U is of class %d, want %d", r, got, unicodeClass(r))
			}
		}
	}
	if unicode.Version == "15.0.0" && differ[letter] != 0x2ee5d-0x2ebf0+1 {
		t.Errorf("%d letters more than in Unicode 15.0", differ[letter])
	}
}

func FuzzPretokens(f *testing.F) {
	gpt2, smollm := synthetic{pre: "gpt-2"}.open(f), synthetic{pre: "smollm"}.open(f)
	f.Add("it's  12\u2003 x\xe2\x80'r")
	f.Fuzz(func(t *testing.T, text string) {
		checkPattern(t, gpt2, smollm, text)
	})
}

func TestPretokenizerNames(t *testing.T) {
	for _, name := range []string{"llama-bpe", "qwen2", "default", "", "SMOLLM"} {
		if _, err := newPretokenizer(name); err == nil || !strings.Contains(err.Error(), "smollm") {
			t.Errorf("pre-tokenizer %q: %v", name, err)
		}
	}
}
