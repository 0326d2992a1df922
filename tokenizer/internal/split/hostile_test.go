package split

import (
	"strings"
	"testing"
	"time"
)

// TestHostile scans texts that a careless scanner would take quadratic time for.
func TestHostile(t *testing.T) {
	const size = 1 << 18
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	texts := []string{
		repeat("a"), repeat("A"), repeat(" "), repeat("\n"), repeat(" \n") + "x", repeat("1"), repeat("!"), repeat("'"), repeat("/"),
		"中" + repeat("A"), repeat("中A"), "\u0301" + repeat("A"), repeat("\u0301"), repeat("\x00"), repeat("\xff"), repeat("中"),
		repeat("12 "), repeat("'s"), repeat("\n/"), repeat(" !"), repeat("\n\t"), repeat("aB"), repeat("a-"),
	}
	splitters := []Splitter{}
	for _, k := range knownForTests {
		splitters = append(splitters, k.in(family{unicode160(), foldFull}))
	}
	for _, steps := range [][]Step{
		{{Type: "Punctuation", Behavior: "Contiguous"}, {Type: "ByteLevel", UseRegex: true}},
		{{Type: "WhitespaceSplit"}, {Type: "Digits"}},
		{{Type: "Split", Pattern: "a-", Behavior: "MergedWithNext"}},
		{{Type: "Split", Pattern: `[0-9][0-9][0-9]`, Regex: true, Behavior: "Isolated"}},
		{{Type: "Split", Pattern: `(a+)+b|[A-Z]+|!`, Regex: true, Behavior: "Isolated"}},
	} {
		s, err := New(steps)
		if err != nil {
			t.Fatal(err)
		}
		splitters = append(splitters, s)
	}
	ends := make([]int, 100)
	for _, s := range splitters {
		for _, text := range texts {
			start := time.Now()
			b := []byte(text)
			for from := 0; from < len(b); {
				from = ends[s.Scan(ends, b, from)-1]
			}
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("%s takes %v for %d bytes of %q…", s, d, len(text), text[:6])
			}
		}
	}
}

func FuzzPattern(f *testing.F) {
	f.Add(`(?i:'s|[^\P{L}a-f&&[^\d]]{2,3}+)(?!\S)|\x{41}+?|$`, "it'S \xff\n")
	f.Add(`((a*)*)*|[]]`, "aaa")
	f.Fuzz(func(t *testing.T, re, text string) {
		if len(re) > 1000 {
			return
		}
		for _, e := range []engine{fancy, oniguruma} {
			s, err := newRegexp(re, isolated, false, e)
			if err != nil || len(s.(*inexact).finder.(*pattern).code) > 500 {
				continue
			}
			b := []byte(text[:min(len(text), 200)])
			whole := scanAll(s, b, 0)
			for i := range b { // what is fixed for a prefix is so for all
				end, fixed := s.Next(b[:i+1], 0)
				if fixed && end != whole[0] {
					t.Fatalf("%q: end %d of %q was fixed, of %q it is %d", re, end, b[:i+1], b, whole[0])
				}
			}
		}
	})
}
