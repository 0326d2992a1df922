package bpe

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"
)

// TestScanAndNextAgree also at each size of buffer.
func TestScanAndNextAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for range 80 {
		c := randomToy(rng)
		b := c.model(t).Breaks()
		for range 30 {
			text := []byte(randomText(rng, c, 1+rng.IntN(20)))
			var want []int
			for from := 0; from < len(text); {
				end, _ := b.Next(text, from)
				want = append(want, end)
				from = end
			}
			if got := b.ends(string(text)); !slices.Equal(got, want) {
				t.Fatalf("%q: Scan %v, Next %v", text, got, want)
			}
			all := make([]int, len(text)+1)
			if n := b.Scan(all, text, 0); !slices.Equal(all[:n], want) {
				t.Fatalf("%q: Scan at once %v, Next %v", text, all[:n], want)
			}
		}
		if b.Scan(make([]int, 1), nil, 0) != 0 || b.Scan(nil, []byte("a"), 0) != 0 || !b.Exact() || !b.Keeps(nil) || b.String() == "" {
			t.Fatal("edge cases")
		}
	}
}

// TestNextIsFixed and TestProbesShowAll continue texts in all ways.
func TestNextIsFixed(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for range 120 {
		c := randomToy(rng)
		b := c.model(t).Breaks()
		conts := continuations(c)
		for range 20 {
			text := randomText(rng, c, 1+rng.IntN(6))
			text = text[:1+rng.IntN(len(text))]
			end, fixed := b.Next([]byte(text), 0)
			if !fixed {
				continue
			}
			for _, s := range conts {
				if got, _ := b.Next([]byte(text+s), 0); got != end {
					t.Fatalf("%q: fixed end %d, but %d with %q after it; %v", text, end, got, s, c)
				}
			}
		}
	}
}

func TestProbesShowAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 26))
	for range 120 {
		c := randomToy(rng)
		b := c.model(t).Breaks()
		conts := continuations(c)
		for range 20 {
			text := randomText(rng, c, 1+rng.IntN(6))
			text = text[:1+rng.IntN(len(text))]
			seen := b.outcomes(text)
			for _, s := range conts {
				if got := within(b.ends(text+s), len(text)); !slices.ContainsFunc(seen, func(o []int) bool { return slices.Equal(o, got) }) {
					t.Fatalf("%q + %q: ends %v are not among %v; %v", text, s, got, seen, c)
				}
			}
		}
	}
}

// outcomes lists what the probes, after the completions if the last character
// is not whole, show of the ends of the pieces of a text.
func (b *Breaks) outcomes(text string) [][]int {
	rests := []string{""}
	for i := 1; i <= 3 && i <= len(text); i++ {
		if part := text[len(text)-i:]; utf8.RuneStart(part[0]) && !utf8.FullRuneInString(part) {
			rests = append(rests, b.Completions([]byte(part))...)
		}
	}
	var seen [][]int
	for _, rest := range rests {
		for _, probe := range b.Probes([]byte(text+rest), 0) {
			seen = append(seen, within(b.ends(text+rest+probe), len(text)))
		}
	}
	return seen
}

func within(ends []int, n int) []int {
	i, _ := slices.BinarySearch(ends, n+1)
	return ends[:i]
}

func continuations(c toy) []string {
	conts := c.texts(3)
	for _, s := range []string{"\xa9", "\xb8\xad", "\xad", "\xb8", "\x80", "\xe4", "\xe4\xb8", "中", "é", "丁", "z", "\U0001F600"} {
		conts = append(conts, s, s+"a", s+"中", s+s)
	}
	return conts
}

func TestCompletions(t *testing.T) {
	c := toy{tokens: []string{"a", "中", "<unk>"}, kinds: nil, scores: []float32{0, 0, 0}, chars: true, unknown: 2, fuse: true}
	b := c.model(t).Breaks()
	for _, part := range []string{"\xe4", "\xe4\xb8", "\xc3", "\xf0", "\xf0\x9f", "\xf0\x9f\x98", "\xe0", "\xf4"} {
		whole := false
		for _, rest := range b.Completions([]byte(part)) {
			r, size := utf8.DecodeRuneInString(part + rest)
			whole = whole || r != utf8.RuneError && size == len(part+rest)
		}
		if !whole {
			t.Errorf("%q: no completion makes a character: %q", part, b.Completions([]byte(part)))
		}
	}
	if got := b.Completions([]byte("\xe4\xb8")); !slices.Contains(got, "\xad") {
		t.Errorf("the only known completion of 中 is not among %q", got)
	}
	for _, part := range []string{"", "a", "\xff"} {
		if got := b.Completions([]byte(part)); !slices.Equal(got, []string{""}) {
			t.Errorf("%q is completed by %q", part, got)
		}
	}
}
