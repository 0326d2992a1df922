package normalize

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

func TestRefusals(t *testing.T) {
	prepend := Step{Type: "Prepend", Content: metaSpace}
	regex := func(p string) []Step { return []Step{{Type: "Replace", Pattern: p, Regex: true}} }
	tests := []struct {
		steps []Step
		want  string // in the error
	}{
		{[]Step{{Type: "NFC"}, {Type: "Unheard"}}, "step 2 of 2, Unheard"},
		{[]Step{{Type: "ByteLevel"}, {Type: "NFC"}}, "step 1 of 2, ByteLevel"},
		{[]Step{{Type: "Replace"}}, "empty"},
		{[]Step{{Type: "Replace", Pattern: "\xff"}}, "UTF-8"},
		{[]Step{prepend, prepend}, "after a Prepend"},
		{[]Step{prepend, {Type: "Strip", Left: true}}, "after a Prepend"},
		{[]Step{prepend, {Type: "Replace", Pattern: "a"}}, "by nothing"},
		{[]Step{{Type: "Prepend", Content: "e"}, {Type: "NFC"}}, "join"},
		{[]Step{prepend, {Type: "Replace", Pattern: metaSpace + " ", Content: " "}}, "join"},
		{[]Step{{Type: "Precompiled"}}, "0 bytes"},
		{[]Step{{Type: "Precompiled", Charsmap: []byte{8, 0, 0, 0, 1}}}, "8 bytes in 1"},
		{regex("^a"), "anchor ^"},
		{regex("a$"), "anchor $"},
		{regex(`a\b`), `\b`},
		{regex(`\p{L}`), `\p`},
		{regex("(?=a)b"), "(?"},
		{regex("(?i)a"), "(?"},
		{regex("a*"), "empty text"},
		{regex("a++"), "repetition"},
		{regex("a{2}?"), "after {n}"},
		{regex("a{x"), "brace"},
		{regex("[a[b]]"), "set"},
		{regex("[a&&b]"), "set"},
		{regex("[[:alpha:]]"), "set"},
		{regex("[a"), "closing"},
		{regex("(a"), "missing closing )"},
		{regex(`a\`), "backslash"},
		{regex("(ab*)+c"), "quadratic"},
		{regex("x(.*y)?"), "quadratic"},
		{regex("a{1001}"), "repeat"},
	}
	for _, tt := range tests {
		n, err := New(tt.steps)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, %v; want an error with %q", tt.steps, n, err, tt.want)
		}
	}
}

func TestPrefix(t *testing.T) {
	tests := []struct {
		steps  []Step
		prefix string
		meta   bool
		text   string
		want   string
	}{
		{nil, "", false, "a b", "a b"},
		{[]Step{{Type: "Prepend", Content: metaSpace}, {Type: "Replace", Pattern: " ", Content: metaSpace}}, " ", true, "a b▁c", "a b c"},
		{[]Step{{Type: "Replace", Pattern: " ", Content: metaSpace}}, "", true, "a b▁c", "a b c"},
		{[]Step{{Type: "Prepend", Content: "X"}, {Type: "Lowercase"}}, "x", false, "AB", "ab"},
		{[]Step{{Type: "Prepend", Content: " "}, {Type: "Replace", Pattern: " ", Content: metaSpace}}, " ", true, "a b", "a b"},
		{[]Step{{Type: "Replace", Pattern: " {2,}", Regex: true, Content: metaSpace}}, "", true, "a  b c", "a b c"},
	}
	for _, tt := range tests {
		n, err := New(tt.steps)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(n.Append(nil, []byte(tt.text))); n.Prefix() != tt.prefix || n.Meta() != tt.meta || got != tt.want {
			t.Errorf("%v: prefix %q, meta %t, %q; want %q, %t, %q", n, n.Prefix(), n.Meta(), got, tt.prefix, tt.meta, tt.want)
		}
	}
}

// TestBytesThatAreNoCharacters: the steps leave them where they are.
func TestBytesThatAreNoCharacters(t *testing.T) {
	a := loadAnswers(t)
	for _, c := range a.Cases {
		n := c.normalizer(t, a)
		if n.Meta() && strings.Contains(c.Name, "own") {
			continue // its rules change the letters
		}
		for _, text := range []string{"z\xffz", "\x80", "\xed\xa0\x80", "z\xe2\x96", "z\xf0\x9f\x98", "\xc0\xafz"} {
			if got := string(n.Append(nil, []byte(text))); got != text {
				t.Errorf("%s: %+q becomes %+q", c.Name, text, got)
			}
		}
	}
}

// hostile are texts that a careless normalizer takes quadratic time for.
func hostile(n int) map[string][]byte {
	return map[string][]byte{
		"marks":          bytes.Repeat([]byte("\u0301"), n/2),
		"marks in turns": bytes.Repeat([]byte("\u0301\u0323\u0334"), n/6),
		"letter, marks":  append([]byte("a"), bytes.Repeat([]byte("\u0345\u0301"), n/4)...),
		"jamo":           bytes.Repeat([]byte("\u1100"), n/3),
		"vowels":         bytes.Repeat([]byte("\u1161"), n/3),
		"spaces":         bytes.Repeat([]byte(" "), n),
		"letters":        bytes.Repeat([]byte("a"), n),
		"flags":          bytes.Repeat([]byte("\U0001f1eb"), n/4),
		"joiners":        bytes.Repeat([]byte("\U0001f467\u200d"), n/7),
		"conjuncts":      bytes.Repeat([]byte("\u0915\u094d"), n/6),
		"meta":           bytes.Repeat([]byte("\u2581"), n/3),
		"continuations":  bytes.Repeat([]byte("\x80"), n),
		"quotes":         bytes.Repeat([]byte("'"), n),
	}
}

// TestLinear compares the time for a text with that for a quarter of it.
func TestLinear(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("takes times")
	}
	a := loadAnswers(t)
	const size = 1 << 17
	small, large := hostile(size/4), hostile(size)
	elapsed := func(n *Normalizer, text []byte) time.Duration {
		best := time.Hour
		for range 2 {
			start := time.Now()
			n.Append(nil, text)
			n.Settled(text)
			n.Same(text)
			best = min(best, time.Since(start))
		}
		return best
	}
	for _, i := range []int{0, 3, 9, 10, 11, 13, 15, 19, 21, 25, 26, len(a.Cases) - 12} {
		n := a.Cases[i].normalizer(t, a)
		for name, text := range large {
			s, l := elapsed(n, small[name]), elapsed(n, text)
			if l > 16*s && l > time.Second/2 {
				t.Errorf("%s, %s: %v for %d bytes, %v for a quarter", a.Cases[i].Name, name, l, len(text), s)
			}
		}
	}
}

// TestDamagedCharsmap has a trie without end.
func TestDamagedCharsmap(t *testing.T) {
	const units = 256
	blob := binary.LittleEndian.AppendUint32(nil, 4*units)
	for i := range uint32(units) {
		blob = binary.LittleEndian.AppendUint32(blob, i) // each byte leads on to the same place
	}
	for _, kind := range []string{"Precompiled", "SentencePiece"} {
		n, err := New([]Step{{Type: kind, Charsmap: append(blob, "text\x00"...)}})
		if err != nil {
			t.Fatal(err)
		}
		text := bytes.Repeat([]byte("ab"), 1<<12)
		if got := n.Append(nil, text); !bytes.Equal(got, text) {
			t.Errorf("%s: %.40q", kind, got)
		}
		n.Settled(text)
	}
}

func TestAllocations(t *testing.T) {
	a := loadAnswers(t)
	text := []byte(strings.Join(a.Texts[:40], " "))
	var dst []byte
	for _, c := range a.Cases {
		if strings.HasPrefix(c.Name, "regexp") {
			continue // package regexp allocates
		}
		n := c.normalizer(t, a)
		allocs := testing.AllocsPerRun(20, func() {
			dst = n.Append(dst[:0], text)
			n.Same(text)
			n.Settled(text)
		})
		if allocs > 0.5 && !raceEnabled {
			t.Errorf("%s: %v allocations", c.Name, allocs)
		}
	}
}

func FuzzNew(f *testing.F) {
	a := loadAnswers(f)
	for _, p := range []string{" {2,}", `\s+|[^a-z\d]{,3}?x`, "(?:a|b)c", `\x{1F600}\u00e9[\]\-a]`, "[^\\s-]"} {
		f.Add(p, []byte{4, 0, 0, 0, 0, 0, 0, 0, 'a', 0}, []byte("some te\u0301xt"))
	}
	f.Add("a", a.Charsmaps["own"], []byte("abcd e\u0301"))
	f.Fuzz(func(t *testing.T, pattern string, charsmap, text []byte) {
		if len(pattern) > 200 || len(text) > 1000 {
			return // a match takes time by the product of both
		}
		for _, s := range []Step{
			{Type: "Replace", Pattern: pattern, Regex: true, Content: "-"},
			{Type: "Replace", Pattern: pattern, Content: "-"},
			{Type: "Precompiled", Charsmap: charsmap},
			{Type: "SentencePiece", Charsmap: charsmap, CollapseSpaces: true},
		} {
			n, err := New([]Step{s})
			if err != nil {
				continue
			}
			checkSettled(t, n, text, []string{"", " ", "\u0301", "a"})
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	a := loadAnswers(b)
	english := bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog, and then some. "), 200)
	mixed := bytes.Repeat([]byte("Größe naïve café, здравствуй мир, 日本語の文章 한국어 문장. "), 200)
	for _, i := range []int{0, 2, 10, 11, 13, 22, len(a.Cases) - 12} {
		n := a.Cases[i].normalizer(b, a)
		for name, text := range map[string][]byte{"english": english, "mixed": mixed} {
			b.Run(a.Cases[i].Name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				var dst []byte
				for b.Loop() {
					dst = n.Append(dst[:0], text)
				}
			})
		}
	}
}

func BenchmarkSettled(b *testing.B) {
	a := loadAnswers(b)
	text := bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog, and then some. "), 200)
	for _, i := range []int{0, 10, 11, 13, 22, len(a.Cases) - 12} {
		n := a.Cases[i].normalizer(b, a)
		b.Run(a.Cases[i].Name, func(b *testing.B) {
			for b.Loop() {
				n.Settled(text)
			}
		})
	}
}
