package split

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRefuse(t *testing.T) {
	regex := func(re string) []Step { return []Step{{Type: "Split", Pattern: re, Regex: true, Behavior: "Isolated"}} }
	for _, tc := range []struct {
		steps []Step
		want  string
	}{
		{[]Step{{Type: "UnicodeScripts"}}, `"UnicodeScripts"`},
		{[]Step{{Type: "Split", Pattern: "x", Behavior: "isolated"}}, `"isolated"`},
		{[]Step{{Type: "FixedLength"}}, "length 0"},
		{[]Step{{Type: "ByteLevel", UseRegex: true}, {Type: "Digits"}}, "Digits after ByteLevel"},
		{append(regex(`x+y`), Step{Type: "Digits"}), "resumed"},
		{regex(`(?<=a)b`), "offset"},
		{regex(`^a`), "^ looks"},
		{regex(`\bx`), `\b`},
		{regex(`(ab)++`), "possessive"},
		{regex(`a(?=b*)`), "look-ahead"},
		{regex(`a(?=bc*)`), "look-ahead"},
		{regex(`a(?!b(?:cd)+)`), "look-ahead"},
		{regex(`a{2,1}+`), "repetition {2,1}"},
		{regex(`a` + strings.Repeat("?", 10_000)), "too many repetitions"},
		{regex(`\p{Nope}`), "Nope"},
		{regex(`(a{999}){999}`), "repetition"},
		{regex(`a)`), ")"},
		{regex(`(a`), "missing )"},
		{regex(`[a`), "missing ]"},
		{[]Step{{Type: "Split", Pattern: `a(?!b)`, Regex: true, Behavior: "Removed"}}, "look ahead"},
	} {
		if s, err := New(tc.steps); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("New(%+v): %v, %v; want an error with %q", tc.steps, s, err, tc.want)
		}
	}
	for _, name := range []string{"", "default", "SMOLLM"} {
		if _, err := Named(name); err == nil || !strings.Contains(err.Error(), "smollm") {
			t.Errorf("Named(%q): %v", name, err)
		}
	}
}

// TestCompletions: an incomplete sequence can become a character of any class
// that some character with these bytes has.
func TestCompletions(t *testing.T) {
	s := likeCL100K.in(family{unicode160(), foldFull})
	seen := map[string][]string{}
	for r := rune(0x80); r <= utf8.MaxRune; r += 1 + r/0x3000 {
		b := utf8.AppendRune(nil, r)
		if r == utf8.RuneError || !utf8.ValidRune(r) {
			continue
		}
		for n := 1; n < len(b); n++ {
			part := string(b[:n])
			if seen[part] == nil {
				seen[part] = s.Completions(b[:n])
				if !slices.Contains(seen[part], "") {
					t.Fatalf("no empty completion of %q", part)
				}
			}
			if !slices.ContainsFunc(seen[part], func(rest string) bool {
				c, size := s.classes().at([]byte(part+rest), 0)
				return size == len(part)+len(rest) && c == s.classes().of(r) && (r != longS || rest == string(b[n:]))
			}) {
				t.Fatalf("no completion %q of %q is of the class of %q", seen[part], part, r)
			}
		}
	}
	for _, part := range []string{"", "a", "\xff", "é", "\xc0", "\xe0\x80"} {
		if got := s.Completions([]byte(part)); !slices.Equal(got, []string{""}) {
			t.Errorf("completions of %q, which is not incomplete: %q", part, got)
		}
	}
}

func TestIncomplete(t *testing.T) {
	s := likeO200K.in(family{unicode160(), foldFull})
	for _, tc := range []struct {
		text  string
		end   int
		fixed bool
	}{
		{"ab\xe2\x80", 2, false}, {"ab \xe2\x80", 2, true}, {"ab\xff", 2, true}, {"123\xc3", 3, true}, {"12\xc3", 2, false}, {"中AB", 3, false}, {"中AB ", 3, true},
	} {
		if end, fixed := s.Next([]byte(tc.text), 0); end != tc.end || fixed != tc.fixed {
			t.Errorf("Next(%q) = %d, %v, want %d, %v", tc.text, end, fixed, tc.end, tc.fixed)
		}
	}
}

func TestScanAllocates(t *testing.T) {
	s := likeO200K.in(family{unicode160(), foldFull})
	text, ends := []byte(strings.Repeat("The quick brown fox, 中文! ", 20)), make([]int, 512)
	if n := testing.AllocsPerRun(100, func() { s.Scan(ends, text, 0) }); n != 0 {
		t.Errorf("Scan allocates %v times", n)
	}
}
