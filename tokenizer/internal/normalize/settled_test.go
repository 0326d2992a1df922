package normalize

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// continuations are what may rewrite the end of a text: marks, jamo, spaces,
// parts of patterns, second halves of characters.
var continuations = []string{
	"\u0301", "\u0327", "\u0323\u0301", "\u0338", "\u3099", "\uff9e", "\u1161", "\u11a8", "\u11a7", "\u1100", "\u0dcf", "\u09be",
	" ", "  ", "   a", "\u00a0", "\u3000x", "\t", "\n", "\r", "\u2581", "\u2581\u2581", "a", "b", "bc", "bcd", "x", "i", "e", "'", "''",
	"\u200d", "\u200d\U0001f467", "\U0001f1eb", "\U0001f3fd", "\ufe0f", "\u0915", "\u094d\u0937", "\u0e4d\u0e32", "\u0903",
	"\u0600", "\u03a3", "\u0130", "\u4e2d", "\uac00", "\u0000", "\ufffd", "\xff", "\x80", "\x81", "\xa5", "\xcc", "\xb1\x80",
	"\x96\x81", "\x81 ", "\xcc\x81", "<s>", "1", "q", "_",
}

// checkSettled fails if a continuation of text contradicts Settled or Restart.
func checkSettled(t *testing.T, n *Normalizer, text []byte, continuations []string) {
	t.Helper()
	q := n.Settled(text)
	if q < 0 || q > len(text) {
		t.Fatalf("%v: Settled(%+q) = %d", n, text, q)
	}
	settled := n.Append(nil, text[:q])
	w := n.Restart(text, len(text))
	before := n.Append(nil, text[:w])
	for _, s := range continuations {
		whole := append(bytes.Clone(text), s...)
		got := n.Append(nil, whole)
		if !bytes.HasPrefix(got, settled) {
			t.Fatalf("%v: %+q is settled to %d, but followed by %+q:\nsettled %+q\nbecomes %+q", n, text, q, s, settled, got)
		}
		if w > 0 {
			if parts := n.Append(bytes.Clone(before), whole[w:]); !bytes.Equal(got, parts) {
				t.Fatalf("%v: %+q restarts at %d, but followed by %+q:\nin parts %+q\nas one   %+q", n, text, w, s, parts, got)
			}
		}
	}
}

func TestSettledIsSound(t *testing.T) {
	a := loadAnswers(t)
	rng := rand.New(rand.NewPCG(1, 2))
	rounds := 2500
	if raceEnabled {
		rounds = 100
	}
	for _, c := range a.Cases {
		t.Run(c.Name, func(t *testing.T) {
			n := c.normalizer(t, a)
			for range rounds {
				text := a.Texts[rng.IntN(len(a.Texts))]
				if rng.IntN(4) == 0 {
					text = "plain text " + text + "aaa"[rng.IntN(4):]
				}
				text = text[:rng.IntN(len(text)+1)]
				s := []string{continuations[rng.IntN(len(continuations))]}
				for range 3 {
					s = append(s, continuations[rng.IntN(len(continuations))]+a.Texts[rng.IntN(len(a.Texts))])
				}
				checkSettled(t, n, []byte(text), s)
			}
			for _, text := range a.Texts[:rounds/40] {
				checkSettled(t, n, []byte(text), continuations)
			}
		})
	}
}

// TestSettled has ends of texts of which it is known where they can change.
func TestSettled(t *testing.T) {
	nfc := []Step{{Type: "NFC"}}
	collapse := []Step{{Type: "SentencePiece", CollapseSpaces: true}}
	t5 := []Step{{Type: "Strip", Right: true}, {Type: "Replace", Pattern: " {2,}", Regex: true, Content: metaSpace}}
	tests := []struct {
		name  string
		steps []Step
		text  string
		want  string // settled
	}{
		{"nothing to do", nil, "abc \xe2\x96", "abc \xe2\x96"},
		{"a mark may follow", nfc, "userNam\u0301", "userNa"},
		{"a letter takes marks", nfc, "name", "nam"},
		{"a space takes none", nfc, "name ", "name "},
		{"a digit takes none, its mark is moved", nfc, "a1\u0301", "a1"},
		{"CJK takes none", nfc, "漢字", "漢字"},
		{"lead jamo", nfc, "a\u1100", "a"},
		{"lead and vowel", nfc, "a\u1100\u1161", "a"},
		{"all three", nfc, "a\u1100\u1161\u11a8", "a\u1100\u1161\u11a8"},
		{"syllable without a tail", nfc, "각가", "각"},
		{"half a character", nfc, "ab\xcc", "a"},
		{"half a character after a space", nfc, "b \xcc", "b "},
		{"no character", nfc, "b\xff", "b\xff"},
		{"vowel sign", nfc, "a\u09c7", "a"},
		{"decomposed letters take marks behind", []Step{{Type: "NFD"}}, "e", "e"},
		{"a mark may be moved", []Step{{Type: "NFD"}}, "é", ""},
		{"halfwidth voicing", []Step{{Type: "NFKC"}}, "a\uff76", "a"},
		{"lower case is by character", []Step{{Type: "Lowercase"}}, "ΑΣ", "ΑΣ"},
		{"white space at the end", t5, "a  ", "a"},
		{"inner spaces", t5, "a  b", "a  b"},
		{"spaces to collapse", collapse, " a b  ", " a b"},
		{"part of a pattern", []Step{{Type: "Replace", Pattern: "''", Content: "\""}}, "it'", "it"},
		{"pattern", []Step{{Type: "Replace", Pattern: "''", Content: "\""}}, "it''", "it''"},
		{"half of what becomes a space", []Step{{Type: "Replace", Pattern: " ", Content: metaSpace}}, "a\xe2\x96", "a"},
		{"a run that is too short", []Step{{Type: "Replace", Pattern: "x{3,}", Regex: true, Content: "y"}}, "axx", "a"},
		{"any expression", []Step{{Type: "Replace", Pattern: "ab|cd", Regex: true, Content: "y"}}, "xyzc", "xyz"},
		{"two steps", []Step{{Type: "Lowercase"}, {Type: "NFC"}}, "ABC", "AB"},
		{"a letter of a rule", []Step{{Type: "Precompiled", Charsmap: loadAnswers(t).Charsmaps["nmt_nfkc"]}}, "word", "wor"},
		{"a digit of none", []Step{{Type: "Precompiled", Charsmap: loadAnswers(t).Charsmaps["nmt_nfkc"]}}, "word 1", "word 1"},
		{"a long cluster", []Step{{Type: "Precompiled", Charsmap: loadAnswers(t).Charsmaps["nmt_nfkc"]}}, "e\u0301\u0301\u0301", "e\u0301\u0301\u0301"},
		{"a step after one that drops", []Step{{Type: "StripAccents"}, {Type: "NFC"}}, "1a\u0301", "1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, err := New(tt.steps)
			if err != nil {
				t.Fatal(err)
			}
			text := []byte(tt.text)
			if got := text[:n.Settled(text)]; string(got) != tt.want {
				t.Errorf("%+q is settled to %+q, want %+q", tt.text, got, tt.want)
			}
			checkSettled(t, n, text, continuations)
			// The beginning of a long text does not matter.
			long := []byte(strings.Repeat("some words and then ", 500) + "endings" + tt.text)
			checkSettled(t, n, long, continuations)
		})
	}
}

func FuzzSettled(f *testing.F) {
	a := loadAnswers(f)
	var all []*Normalizer
	for _, c := range a.Cases {
		all = append(all, c.normalizer(f, a))
	}
	for i, s := range continuations {
		f.Add(uint8(i), []byte(a.Texts[i+20]), []byte(s))
	}
	f.Fuzz(func(t *testing.T, which uint8, text, s []byte) {
		n := all[int(which)%len(all)]
		checkSettled(t, n, text, []string{"", string(s)})
		if n.Same(text) && !bytes.Equal(n.Append(nil, text), text) {
			t.Errorf("%v: %+q is said to be normal", n, text)
		}
		if utf8.Valid(text) && !utf8.Valid(n.Append(nil, text)) {
			t.Errorf("%v: %+q becomes invalid UTF-8", n, text)
		}
	})
}
