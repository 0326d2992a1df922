package unigram

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// answerCase is what testdata/record.py wrote of one model.
type answerCase struct {
	Name                 string
	Single, ByteFallback bool
	Unknown              vocab.ID
	Pieces               []piece
	Texts                []string
	IDs                  [][]vocab.ID
}

// piece is [text, score, kind] in JSON.
type piece struct {
	text  string
	score float64
	kind  vocab.Kind
}

func (p *piece) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&p.text, &p.score, &p.kind})
}

// config makes a vocabulary as the readers of files do: spaces for U+2581, bytes
// for byte pieces.
func config(t testing.TB, pieces []piece) Config {
	t.Helper()
	var c Config
	var tokens [][]byte
	var kinds []vocab.Kind
	for _, p := range pieces {
		text := []byte(strings.ReplaceAll(p.text, "\u2581", " "))
		if p.kind == vocab.Byte {
			text = make([]byte, 1)
			if _, err := fmt.Sscanf(p.text, "<0x%02X>", &text[0]); err != nil {
				t.Fatal(err)
			}
		}
		tokens, kinds, c.Scores = append(tokens, text), append(kinds, p.kind), append(c.Scores, p.score)
	}
	v, err := vocab.New(tokens, kinds, vocab.NoSpecials())
	if err != nil {
		t.Fatal(err)
	}
	c.Vocab, c.FuseUnknown = v, true
	return c
}

func (c *answerCase) model(t testing.TB) *Model {
	t.Helper()
	conf := config(t, c.Pieces)
	conf.Single, conf.ByteFallback, conf.Unknown = c.Single, c.ByteFallback, c.Unknown
	m, err := New(conf)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var recorded = sync.OnceValues(func() ([]answerCase, error) {
	f, err := os.Open("testdata/answers.json.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	var cases []answerCase
	return cases, json.NewDecoder(z).Decode(&cases)
})

func loadAnswers(t testing.TB) []answerCase {
	t.Helper()
	cases, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestAnswers(t *testing.T) {
	var s Scratch
	for _, c := range loadAnswers(t) {
		t.Run(c.Name, func(t *testing.T) {
			m := c.model(t)
			for i, text := range c.Texts {
				text := strings.ReplaceAll(text, "\u2581", " ")
				got := m.AppendPiece(nil, []byte(text), &s)
				if slices.Equal(got, c.IDs[i]) {
					continue
				}
				n := vocab.CommonPrefix(got, c.IDs[i])
				t.Fatalf("text %d, %.80q, token %d: got %v, want %v", i, text, n, tail(got, n), tail(c.IDs[i], n))
			}
		})
	}
}

func tail(ids []vocab.ID, from int) []vocab.ID { return ids[from:min(from+8, len(ids))] }

// brute finds the best way by the recursion that defines it, in the order of the
// references: of equal sums the one whose last piece begins first.
func brute(m *Model, pieces map[string]vocab.ID, score func(vocab.ID) float64, text string) []vocab.ID {
	type way struct {
		sum  float64
		ids  []vocab.ID
		some bool
	}
	round := func(x float64) float64 {
		if m.single {
			return float64(float32(x))
		}
		return x
	}
	best := make([]way, len(text)+1)
	best[0].some = true
	for end := 1; end <= len(text); end++ {
		for start := range end {
			if !best[start].some {
				continue
			}
			id, ok := pieces[text[start:end]]
			s := m.unknownScore
			if ok {
				s = score(id)
			} else if id = m.unknown; end-start > 1 {
				continue
			}
			if sum := round(s + best[start].sum); !best[end].some || sum > best[end].sum {
				best[end] = way{sum, append(slices.Clone(best[start].ids), id), true}
			}
		}
	}
	return slices.CompactFunc(best[len(text)].ids, func(a, b vocab.ID) bool { return a == b && a == m.unknown })
}

// toys are random vocabularies over two letters, with many ties.
func toys(t testing.TB, rng *rand.Rand, f func(m *Model, brute func(text string) []vocab.ID)) {
	for i := range 200 {
		pieces := []piece{{"?", 0, vocab.Unknown}}
		byText := map[string]vocab.ID{}
		for range 2 + rng.IntN(10) {
			b := make([]byte, 1+rng.IntN(5))
			for k := range b {
				b[k] = "ab"[rng.IntN(2)]
			}
			if _, ok := byText[string(b)]; !ok {
				byText[string(b)] = vocab.ID(len(pieces))
				pieces = append(pieces, piece{string(b), -float64(1+rng.IntN(4)) * []float64{1, 0.1, 1.0 / 3}[i%3], vocab.Normal})
			}
		}
		c := config(t, pieces)
		c.Single, c.Unknown = i%2 == 0, 0
		if !c.Single {
			byText["?"] = 0
		}
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		score := func(id vocab.ID) float64 {
			if c.Single {
				return float64(float32(c.Scores[id]))
			}
			return c.Scores[id]
		}
		f(m, func(text string) []vocab.ID { return brute(m, byText, score, text) })
	}
}

func TestBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var s Scratch
	toys(t, rng, func(m *Model, brute func(string) []vocab.ID) {
		for range 40 {
			b := make([]byte, 1+rng.IntN(24))
			for k := range b {
				b[k] = "aaabbbc"[rng.IntN(7)]
			}
			if got, want := m.AppendPiece(nil, b, &s), brute(string(b)); !slices.Equal(got, want) {
				t.Fatalf("%q: got %v, want %v", b, got, want)
			}
		}
	})
}

// TestPrefixes: what is chosen for a text begins with what is chosen for its
// beginning up to any place that a token ends at.
func TestPrefixes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var s Scratch
	toys(t, rng, func(m *Model, _ func(string) []vocab.ID) {
		b := make([]byte, 60)
		for k := range b {
			b[k] = "ab"[rng.IntN(2)]
		}
		// Without the fusing of unknowns each token ends at a place of the lattice.
		m.fuse = false
		ids := m.AppendPiece(nil, b, &s)
		var ends []int
		for p := 1; p <= len(b); p++ {
			got := m.AppendPiece(nil, b[:p], &s)
			if slices.Equal(got, ids[:min(len(got), len(ids))]) {
				ends = append(ends, len(got))
			}
		}
		slices.Sort(ends)
		if ends = slices.Compact(ends); len(ends) != len(ids) {
			t.Fatalf("%q is %v, but its beginnings have only %v of that", b, ids, ends)
		}
	})
}

// TestWindow compares the results of windows that are moved all the time with
// those of one that holds the whole text.
func TestWindow(t *testing.T) {
	var s Scratch
	for _, c := range loadAnswers(t) {
		m := c.model(t)
		for _, text := range c.Texts[:min(len(c.Texts), 40)] {
			b := []byte(strings.ReplaceAll(text, "\u2581", " "))
			want := m.AppendPiece(nil, b, &s)
			for _, window := range []int{1, 2, 7} {
				if got := m.appendPiece(nil, b, &s, window); !slices.Equal(got, want) {
					t.Fatalf("%s, window %d, %.60q: got %v, want %v", c.Name, window, text, got, want)
				}
			}
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	for _, c := range loadAnswers(t)[:4] {
		m := c.model(t)
		var s Scratch
		text := bytes.Repeat([]byte("The quick brown fox: \u65e5\u672c\u8a9e, caf\u00e9. "), 8000)
		m.AppendPiece(nil, text, &s)
		if n := len(s.nodes); n > 2*window {
			t.Errorf("%s: %d nodes for %d bytes", c.Name, n, len(text))
		}
	}
}

func TestNewRefuses(t *testing.T) {
	c := config(t, []piece{{"a", 0, vocab.Normal}})
	for _, change := range []func(c *Config){
		func(c *Config) { c.Scores = make([]float64, 2) },
		func(c *Config) { c.Unknown = 7 },
		func(c *Config) { c.Scores = []float64{math.NaN()} },
		func(c *Config) { c.Scores = []float64{math.Inf(-1)} },
		func(c *Config) { c.Single, c.Scores = true, []float64{-1e300} },
	} {
		c := c
		if change(&c); true {
			if _, err := New(c); err == nil {
				t.Errorf("no error for %+v", c)
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	c := config(t, []piece{{"?", 0, vocab.Unknown}})
	c.Single = true
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	var s Scratch
	if got := m.AppendPiece(nil, []byte("ab"), &s); !slices.Equal(got, []vocab.ID{0}) {
		t.Errorf("without pieces: %v", got)
	}
	if got := m.AppendPiece(nil, nil, &s); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// FuzzAppendPiece: the tokens of any bytes are those of the text, in any window.
func FuzzAppendPiece(f *testing.F) {
	cases := loadAnswers(f)[:6]
	var models []*Model
	for _, c := range cases {
		models = append(models, c.model(f))
	}
	for i, text := range cases[0].Texts[:40] {
		f.Add(uint8(i), []byte(text))
	}
	f.Add(uint8(2), []byte("a\xff\xe2\x96"))
	var s Scratch
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		i := int(which) % len(models)
		m, c := models[i], config(t, cases[i].Pieces)
		ids := m.AppendPiece(nil, text, &s)
		if got := m.appendPiece(nil, text, &s, 3); !slices.Equal(got, ids) {
			t.Fatalf("%q: %v, in a window of 3: %v", text, ids, got)
		}
		if !m.fallback || !m.single {
			return
		}
		var back []byte
		for _, id := range ids {
			back = append(back, c.Vocab.Bytes(id)...)
		}
		if !bytes.Equal(back, text) {
			t.Fatalf("%q becomes %v, which is %q", text, ids, back)
		}
	})
}

func BenchmarkAppendPiece(b *testing.B) {
	for _, c := range loadAnswers(b)[:2] {
		m := c.model(b)
		text := []byte(strings.Join(c.Texts[:150], " "))
		b.Run(c.Name, func(b *testing.B) {
			var s Scratch
			var dst []vocab.ID
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				dst = m.AppendPiece(dst[:0], text, &s)
			}
		})
	}
}
