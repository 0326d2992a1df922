package grammar_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/unfray/unfray/grammar"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// toyVocab has what masks can be wrong about: tokens within tokens, twice the
// same, parts of characters, controls, an end that is text.
func toyVocab(t testing.TB) *vocab.Vocab {
	t.Helper()
	texts := []string{
		"a", "b", "ab", "abc", "aba", "abab", "c", "{", "{\"", "\"", "\":", "}", "[", "]", "1", "12", "-", " ", "  ", "\n", ",", "true", "tr",
		"ue", "false", "\xc3", "\xa9", "é", "éa", "a\x00", "\x00", "\xff", "ab", "<eos>", "<end>", "</s>", "", "unused", "\xf0\x9f", "\x98\x80", "e", "ea", "eab", "eabc", "abcde", "de", "abd",
	}
	kinds := make([]vocab.Kind, len(texts))
	var tokens [][]byte
	specials := vocab.NoSpecials()
	for i, s := range texts {
		tokens = append(tokens, []byte(s))
		kinds[i] = vocab.Normal
		switch s {
		case "<eos>":
			kinds[i] = vocab.Control
			specials.EOG = append(specials.EOG, vocab.ID(i))
		case "<end>":
			specials.EOG = append(specials.EOG, vocab.ID(i))
		case "</s>":
			kinds[i] = vocab.Control
		case "unused":
			kinds[i] = vocab.Unused
		case "\xff", "\x00":
			kinds[i] = vocab.Byte
		}
	}
	v, err := vocab.New(tokens, kinds, specials)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// bruteMask is the definition of a mask.
func bruteMask(v *vocab.Vocab, s grammar.State) vocab.Mask {
	m := vocab.NewMask(v.Len())
	for id := range vocab.ID(v.Len()) {
		if v.IsEOG(id) {
			if s.Accepting() {
				m.Set(id)
			}
		} else if v.IsText(id) {
			if _, ok := s.AdvanceBytes(v.Bytes(id)); ok {
				m.Set(id)
			}
		}
	}
	return m
}

// checkMask compares the masks of a state, the first and the kept one, with
// the definition.
func checkMask(t testing.TB, v *vocab.Vocab, s grammar.State, text []byte) {
	t.Helper()
	want := bruteMask(v, s)
	for range 2 {
		got := vocab.NewMask(v.Len())
		for i := range got {
			got[i] = ^uint32(0)
		}
		if err := s.Mask(v, got); err != nil {
			t.Fatalf("mask after %q: %v", text, err)
		}
		if !slices.Equal(got, want) {
			for id := range vocab.ID(v.Len()) {
				if got.Has(id) != want.Has(id) {
					t.Fatalf("mask after %q: token %d, %q, is in: %v", text, id, v.Bytes(id), got.Has(id))
				}
			}
			t.Fatalf("mask after %q has bits beyond the tokens", text)
		}
	}
}

func TestMask(t *testing.T) {
	v := toyVocab(t)
	for _, src := range []string{
		jsonGBNF, arithmeticGBNF, `root ::= "a" root "b" | ""`, `root ::= .*`, `root ::= "abab" | "é" [^a]`, `root ::= ""`, `root ::= "😀"*`,
		`root ::= [\x00-\x7f]{0,3}`, `root ::= [a-e]{1,4} | "abd"`, `root ::= [a-e]{2} [a-d]*`, `root ::= "<end>"`,
	} {
		g := mustGBNF(t, src)
		for _, prefix := range []string{"", "a", "ab", "abx", "\xc3", "zz", "<end>", "é"} {
			words("ab{\"1é", 3, func(text []byte) {
				s, _ := g.WithPrefix([]byte(prefix)).Start().AdvanceBytes(text)
				checkMask(t, v, s, text)
			})
		}
	}
}

// TestMaskBounds: a mask smaller or larger than the vocabulary, and an empty
// vocabulary.
func TestMaskBounds(t *testing.T) {
	v := toyVocab(t)
	s := mustGBNF(t, `root ::= .*`).Start()
	want := bruteMask(v, s)
	for _, n := range []int{0, 1, 2, 4} {
		for range 2 {
			m := make(vocab.Mask, n)
			if err := s.Mask(v, m); err != nil {
				t.Fatal(err)
			}
			for i, w := range m {
				if i < len(want) && w != want[i] || i >= len(want) && w != 0 {
					t.Errorf("%d words: word %d is %x", n, i, w)
				}
			}
		}
	}
	none, err := vocab.New(nil, nil, vocab.NoSpecials())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Mask(none, nil); err != nil {
		t.Error(err)
	}
}

// TestMaskTooComplex: a mask that would take too long is refused, and empty.
func TestMaskTooComplex(t *testing.T) {
	s, _ := mustGBNF(t, `root ::= "a" root root | "a"`).Start().AdvanceBytes(bytes.Repeat([]byte("a"), 160))
	if s.Err() != nil {
		t.Fatal("the state itself is too complex")
	}
	tokens := [][]byte{[]byte("a"), bytes.Repeat([]byte("a"), 1000)}
	v, err := vocab.New(tokens, []vocab.Kind{vocab.Normal, vocab.Normal}, vocab.NoSpecials())
	if err != nil {
		t.Fatal(err)
	}
	m := vocab.NewMask(2)
	if err := s.Mask(v, m); !errors.Is(err, grammar.ErrTooComplex) || !m.Empty() {
		t.Errorf("mask of %d tokens, error %v", m.Count(), err)
	}
}

// jsonSample is a text of jsonGBNF that has everything in it.
const jsonSample = `{"name": "Zoë \"Q\" \u00e9", "tags": ["a", "b c", []], "n": -12.5e+3, "deep": {"x": {"y": [true, false, null]}},
    "text": "The quick brown fox\njumps over the lazy dog"}`

// TestMaskReal compares masks along a text on a whole vocabulary.
func TestMaskReal(t *testing.T) {
	for _, name := range []string{"gpt2/tokenizer.json", "gemma3/tokenizer.json"} {
		t.Run(name, func(t *testing.T) {
			tok, err := tokenizer.Open(tokenizertest.Path(t, name))
			if err != nil {
				t.Fatal(err)
			}
			g := mustGBNF(t, jsonGBNF)
			for i := range len(jsonSample) {
				if i%5 == 0 {
					s, ok := g.Start().AdvanceBytes([]byte(jsonSample[:i]))
					if !ok {
						t.Fatalf("dead after %q", jsonSample[:i])
					}
					checkMask(t, tok.Vocab(), s, []byte(jsonSample[:i]))
				}
			}
			checkMask(t, tok.Vocab(), g.WithPrefix([]byte(" \"x")).Start(), nil)
			// Strings of bounded length, from more than a token to none left.
			c := mustGBNF(t, `root ::= "\"" [^"\\]{0,45} "\""`)
			for n := 0; n <= 45; n += 3 {
				s, _ := c.Start().AdvanceBytes([]byte(`"` + jsonSample[100:100+n]))
				checkMask(t, tok.Vocab(), s, nil)
				s, _ = c.WithPrefix([]byte(" ")).Start().AdvanceBytes([]byte(` "` + jsonSample[100:100+n]))
				checkMask(t, tok.Vocab(), s, nil)
			}
			checkMask(t, tok.Vocab(), mustGBNF(t, `root ::= [a-z]{0,5} [a-z0-9 ]*`).WithPrefix([]byte("a")).Start(), nil)
		})
	}
}

// benchVocab is GPT-2's if the vocabularies are there, else 49,152 tokens made
// up.
func benchVocab(b *testing.B) *vocab.Vocab {
	if dir := os.Getenv("UNFRAY_TEST_VOCABS"); dir != "" {
		tok, err := tokenizer.Open(tokenizertest.Path(b, "gpt2/tokenizer.json"))
		if err != nil {
			b.Fatal(err)
		}
		return tok.Vocab()
	}
	r := rand.New(rand.NewPCG(5, 6))
	var tokens [][]byte
	for c := range 256 {
		tokens = append(tokens, []byte{byte(c)})
	}
	const letters = "eeeeetttaaooiinnsshhrrddllucmfwypvbg"
	for len(tokens) < 49152 {
		word := make([]byte, 2+r.IntN(9))
		for i := range word {
			word[i] = letters[r.IntN(len(letters))]
		}
		switch r.IntN(20) {
		case 0:
			word[len(word)-1] = ".,:;\"'{}[]()\n1234567890"[r.IntN(23)]
		case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
			word[0] = ' '
		}
		tokens = append(tokens, word)
	}
	v, err := vocab.New(tokens, slices.Repeat([]vocab.Kind{vocab.Normal}, len(tokens)), vocab.NoSpecials())
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// BenchmarkMask measures the masks along a JSON text: kept ones, and those of a
// grammar that was just read.
func BenchmarkMask(b *testing.B) {
	v := benchVocab(b)
	m := vocab.NewMask(v.Len())
	var states []grammar.State
	along := func(g *grammar.Grammar) {
		states = states[:0]
		s := g.Start()
		for i := range len(jsonSample) {
			states = append(states, s)
			s, _ = s.Advance(jsonSample[i])
		}
	}
	g := mustGBNF(b, jsonGBNF)
	along(g)
	b.Run("kept", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if err := states[i%len(states)].Mask(v, m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			along(mustGBNF(b, jsonGBNF))
			for _, s := range states {
				if err := s.Mask(v, m); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(states)), "µs/mask")
	})
	b.Run("prefix", func(b *testing.B) {
		p := g.WithPrefix([]byte(" t")).Start()
		for b.Loop() {
			if err := p.Mask(v, m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("string counted", func(b *testing.B) {
		// Each character leads to a state of its own.
		c, err := grammar.ParseJSONSchema([]byte(`{"type":"string","maxLength":20000}`))
		if err != nil {
			b.Fatal(err)
		}
		s, _ := c.Start().Advance('"')
		for b.Loop() {
			if err := s.Mask(v, m); err != nil {
				b.Fatal(err)
			}
			next, ok := s.AdvanceBytes([]byte("some"))
			if !ok {
				next, _ = c.Start().Advance('"')
			}
			s = next
		}
	})
}
