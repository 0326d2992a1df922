package bpe

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

func checkEncode(t *testing.T, c toy, m *Model, text string, s *Scratch) {
	t.Helper()
	want := c.encode(text, true)
	if got := m.AppendPiece(nil, []byte(text), s); len(text) > 0 && !slices.Equal(got, want) {
		t.Fatalf("%q is %v, want %v; %v", text, got, want, c)
	}
	for _, pass := range []string{"first", "again"} {
		if got := m.pieces(text, []int{len(text)}, s); len(text) > 0 && !slices.Equal(got, want) {
			t.Fatalf("%q by the cache, %s, is %v, want %v; %v", text, pass, got, want, c)
		}
	}
	if got, want := m.cut(text, s), c.encode(text, true); len(text) > 0 && !slices.Equal(got, want) {
		t.Fatalf("%q cut at %v is %v, want %v; %v", text, m.breaks.ends(text), got, want, c)
	}
}

// ends lists the ends of the pieces of a text.
func (b *Breaks) ends(text string) []int {
	var all []int
	var buf [3]int
	for from := 0; from < len(text); {
		n := b.Scan(buf[:], []byte(text), from)
		all = append(all, buf[:n]...)
		from = buf[n-1]
	}
	return all
}

// cut encodes a text in the pieces that Breaks makes of it.
func (m *Model) cut(text string, s *Scratch) []vocab.ID {
	return m.pieces(text, m.breaks.ends(text), s)
}

// TestEncode compares random vocabularies of all kinds with the definition, on
// all short texts and some long ones.
func TestEncode(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := new(Scratch)
	for range 150 {
		c := randomToy(rng)
		m := c.model(t)
		for _, text := range c.texts(4) {
			checkEncode(t, c, m, text, s)
		}
		for range 30 {
			checkEncode(t, c, m, randomText(rng, c, 5+rng.IntN(30)), s)
		}
		checkEncode(t, c, m, randomText(rng, c, shortPiece-10+rng.IntN(40)), s) // on both sides of the change of method
	}
}

func TestShortAndLongAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 120 {
		c := randomToy(rng)
		m := c.model(t)
		s := Scratch{owner: m}
		for range 30 {
			text := []byte(randomText(rng, c, 1+rng.IntN(25)))
			s.syms = m.appendStart(s.syms[:0], text)
			start := slices.Clone(s.syms)
			m.startPairs(&s)
			short := slices.Clone(m.mergeShort(&s))
			s.syms = append(s.syms[:0], start...)
			if long := m.mergeLong(&s); !slices.Equal(short, long) {
				t.Fatalf("%q: %v by array, %v by heap; %v", text, short, long, c)
			}
		}
	}
}

// TestWindows compares long pieces merged by windows and all at once.
func TestWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	var s Scratch
	windowed := 0
	for range 60 {
		c := randomToy(rng)
		c.complete()
		m := c.model(t)
		if !m.direct {
			continue
		}
		letter := c.alphabet[rng.IntN(len(c.alphabet))]
		for _, text := range []string{randomText(rng, c, 3000), strings.Repeat(letter, 3000)} {
			want := m.appendAtOnce(nil, []byte(text), &s)
			got, ok := m.appendWindows(nil, []byte(text), &s)
			if ok {
				windowed++
			}
			if ok && !slices.Equal(got, want) {
				t.Fatalf("%.40q… differs by windows; %v", text, c)
			}
		}
	}
	if windowed < 20 {
		t.Fatalf("only %d texts by windows", windowed)
	}
}

// TestMergeList has the cases that lists of merges bring.
func TestMergeList(t *testing.T) {
	for _, tc := range []struct {
		name   string
		tokens []string
		kinds  []vocab.Kind
		merges [][2]string
		text   string
		want   []vocab.ID
	}{
		{"first of equal pairs", []string{"a", "b", "c", "ab", "bc"}, nil,
			[][2]string{{"a", "b"}, {"b", "c"}, {"a", "b"}}, "abc", []vocab.ID{3, 2}},
		{"leftmost of equal ranks", []string{"a", "aa"}, nil,
			[][2]string{{"a", "a"}}, "aaa", []vocab.ID{1, 0}},
		{"rank is not ID order", []string{"ab", "bc", "a", "b", "c"}, nil,
			[][2]string{{"b", "c"}, {"a", "b"}}, "abc", []vocab.ID{2, 1}},
		{"into a control token", []string{"x", "y", "xy"}, []vocab.Kind{1, 1, vocab.Control},
			[][2]string{{"x", "y"}}, "xyx", []vocab.ID{0, 1, 0}},
		{"through no token", []string{"x", "y", "z", "xyz"}, nil,
			[][2]string{{"x", "y"}, {"xy", "z"}}, "xyxyz", []vocab.ID{0, 1, 3}},
		{"empty sides", []string{"x", "y"}, nil,
			[][2]string{{"", "x"}, {"x", ""}, {"", ""}}, "xy", []vocab.ID{0, 1}},
		{"the lower of two IDs", []string{"x", "y", "xy", "xy"}, nil,
			[][2]string{{"x", "y"}}, "xy", []vocab.ID{2}},
		{"listed before its part", []string{"a", "b", "c", "bc", "abc"}, nil,
			[][2]string{{"a", "bc"}, {"b", "c"}}, "abc", []vocab.ID{4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := toy{tokens: tc.tokens, kinds: tc.kinds, merges: tc.merges, unknown: vocab.None}
			m := c.model(t)
			if got := m.pieces(tc.text, []int{len(tc.text)}, new(Scratch)); !slices.Equal(got, tc.want) {
				t.Fatalf("%q is %v, want %v", tc.text, got, tc.want)
			}
		})
	}
}

// TestTies: of merges with the same score the leftmost goes first, whatever the
// order of the tokens.
func TestTies(t *testing.T) {
	c := toy{tokens: []string{"a", "b", "c", "ab", "bc", "ca"}, scores: []float32{0, 0, 0, -1, -1, -1}, chars: true, unknown: vocab.None}
	m := c.model(t)
	for text, want := range map[string][]vocab.ID{"abc": {3, 2}, "bcab": {4, 3}, "cabc": {5, 4}, "abcabc": {3, 5, 4}} {
		if got := m.pieces(text, []int{len(text)}, new(Scratch)); !slices.Equal(got, want) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

// TestLastOfEqual: tokenizers 0.23.3 gives these tokens.
func TestLastOfEqual(t *testing.T) {
	c := toy{tokens: []string{"a", "b", "c", "ab", "bc"}, merges: [][2]string{{"a", "b"}, {"b", "c"}, {"a", "b"}}, unknown: vocab.None}
	config := c.config(t)
	config.LastOfEqual = true
	m, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.AppendPiece(nil, []byte("abc"), new(Scratch)); !slices.Equal(got, []vocab.ID{0, 4}) {
		t.Errorf("abc is %v, want a and bc", got)
	}
}

// TestUnused: SentencePiece merges into Unused pieces, and takes those that
// remain apart.
func TestUnused(t *testing.T) {
	c := toy{
		tokens: []string{"a", "b", "c", "ab", "abc", "aba"},
		kinds:  []vocab.Kind{1, 1, 1, vocab.Unused, 1, vocab.Unused},
		scores: []float32{0, 0, 0, -1, -2, -3}, chars: true, unknown: vocab.None,
	}
	conf := c.config(t)
	for _, tc := range []struct {
		text             string
		without, resplit []vocab.ID
	}{
		{"abc", []vocab.ID{0, 1, 2}, []vocab.ID{4}},
		{"abab", []vocab.ID{0, 1, 0, 1}, []vocab.ID{0, 1, 0, 1}},
		{"abaabc", []vocab.ID{0, 1, 0, 0, 1, 2}, []vocab.ID{0, 1, 0, 4}},
	} {
		for _, unused := range []bool{false, true} {
			conf.Unused = unused
			m, err := New(conf)
			if err != nil {
				t.Fatal(err)
			}
			want := tc.without
			if unused {
				want = tc.resplit
			}
			if got := m.AppendPiece(nil, []byte(tc.text), new(Scratch)); !slices.Equal(got, want) {
				t.Errorf("%q with Unused %v is %v, want %v", tc.text, unused, got, want)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	good := toy{tokens: []string{"a"}, byID: true, unknown: vocab.None}.config(t)
	for _, tc := range []struct {
		name   string
		change func(*Config)
	}{
		{"no vocabulary", func(c *Config) { c.Vocab = nil }},
		{"nothing to merge by", func(c *Config) { c.ByID = false }},
		{"two ways to merge", func(c *Config) { c.Scores = []float32{1} }},
		{"scores of another vocabulary", func(c *Config) { c.ByID, c.Scores = false, []float32{1, 2} }},
		{"ranks of characters", func(c *Config) { c.Chars = true }},
		{"unknown that is none", func(c *Config) { c.Unknown = 1 }},
	} {
		c := good
		tc.change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", tc.name)
		}
	}
}

func TestScoresThatAreNoNumbers(t *testing.T) {
	c := toy{tokens: []string{"a", "b", "ab", "ba"}, chars: true, unknown: vocab.None,
		scores: []float32{0, 0, float32(math.NaN()), float32(math.Inf(-1))}}
	m := c.model(t)
	if got := m.AppendPiece(nil, []byte("aba"), new(Scratch)); len(got) == 0 {
		t.Fatal("no tokens")
	}
}

func TestLacks(t *testing.T) {
	c := toy{tokens: []string{"a", "b", "ab", "<unk>", "\n"}, kinds: []vocab.Kind{1, 1, 1, vocab.Unknown, vocab.Byte},
		merges: [][2]string{{"a", "b"}}, chars: true, fallback: true, unknown: 3}
	m := c.model(t)
	for b, want := range map[byte]bool{'a': false, 'c': true, '\n': false, 0xe4: true} {
		if m.Lacks(b) != want {
			t.Errorf("Lacks(%q) is %v", b, !want)
		}
	}
	if !m.Known([]byte("a")) || m.Known([]byte("\n")) || m.Known([]byte("ab")) || m.Known([]byte("\xe4")) {
		t.Error("Known is wrong")
	}
}

// TestScratchServesModels in turn: what one model cached is not another's.
func TestScratchServesModels(t *testing.T) {
	one := toy{tokens: []string{"a", "b", "ab"}, byID: true, unknown: vocab.None}.model(t)
	two := toy{tokens: []string{"ab", "b", "a"}, byID: true, unknown: vocab.None}.model(t)
	s := new(Scratch)
	for range 3 {
		if got := one.AppendPiece(nil, []byte("ab"), s); !slices.Equal(got, []vocab.ID{2}) {
			t.Fatalf("first model: %v", got)
		}
		if got := two.pieces("ab", []int{2}, s); !slices.Equal(got, []vocab.ID{0}) {
			t.Fatalf("second model: %v", got)
		}
	}
}

// TestCacheGrows: all pieces keep their tokens while the cache fills, grows
// and drops entries.
func TestCacheGrows(t *testing.T) {
	c := toy{unknown: vocab.None, byID: true}
	for b := range 256 {
		c.tokens = append(c.tokens, string([]byte{byte(b)}))
	}
	c.tokens = append(c.tokens, "ab", "abc", "0123", "99", "00")
	m := c.model(t)
	rng := rand.New(rand.NewPCG(5, 6))
	s := new(Scratch)
	for range 150_000 {
		n := 1 + rng.IntN(wideKeyBytes+2)
		text := make([]byte, n)
		for i := range text {
			text[i] = "abc0123999\x00"[rng.IntN(11)]
		}
		want := m.AppendPiece(nil, text, s)
		if got := m.AppendPieces(nil, text, 0, []int{n}, s); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
	}
	if len(s.entries) != maxEntries {
		t.Fatalf("%d entries, want %d", len(s.entries), maxEntries)
	}
}

func TestNoAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	c := randomToy(rng)
	for c.chars {
		c = randomToy(rng)
	}
	m := c.model(t)
	text := []byte(randomText(rng, c, 3000))
	var ends []int
	for at := 0; at < len(text); {
		at = min(at+1+rng.IntN(40), len(text))
		ends = append(ends, at)
	}
	s := new(Scratch)
	dst := m.AppendPieces(nil, text, 0, ends, s)
	if n := testing.AllocsPerRun(20, func() { dst = m.AppendPieces(dst[:0], text, 0, ends, s) }); n != 0 {
		t.Fatalf("%v allocations a call", n)
	}
}

// TestLongPieces: time and memory stay in bounds on the worst texts, and the
// working memory is let go.
func TestLongPieces(t *testing.T) {
	c := toy{unknown: vocab.None, byID: true}
	for b := range 256 {
		c.tokens = append(c.tokens, string([]byte{byte(b)}))
	}
	for s := "aa"; len(s) <= 64; s += s {
		c.tokens = append(c.tokens, s)
	}
	m := c.model(t)
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = 'a'
	}
	s := new(Scratch)
	got := m.pieces(string(text), []int{len(text)}, s)
	if len(got) != len(text)/64 || got[0] != vocab.ID(len(c.tokens)-1) {
		t.Fatalf("%d tokens, the first %d", len(got), got[0])
	}
	if cap(s.syms) > keptBytes || cap(s.nodes) > keptBytes {
		t.Fatal("the memory of a long piece is kept")
	}
}

// FuzzEncode makes a vocabulary from a seed and compares a text with the
// definition.
func FuzzEncode(f *testing.F) {
	f.Add(uint64(1), "abé ab!")
	f.Add(uint64(2), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	f.Add(uint64(3), "a\xe4\xb8b中\xc3")
	s := new(Scratch)
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		if len(text) > 300 {
			text = text[:300]
		}
		c := randomToy(rand.New(rand.NewPCG(seed, 0)))
		checkEncode(t, c, c.model(t), text, s)
	})
}
