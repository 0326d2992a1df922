package bpe

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// TestApart compares all pairs of tokens of random vocabularies with the
// definition.
func TestApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	apart := 0
	for range 250 {
		c := randomToy(rng)
		m := c.model(t)
		for a := range vocab.ID(m.tokens) {
			for b := range vocab.ID(m.tokens) {
				want := false
				if m.vocab.IsText(a) && m.vocab.IsText(b) {
					want = slices.Equal(c.encode(c.tokens[a]+c.tokens[b], false), []vocab.ID{a, b})
				}
				if want {
					apart++
				}
				if got := m.Apart(a, b); got != want {
					t.Fatalf("%q %q (%d %d): Apart %v, want %v; %v", c.tokens[a], c.tokens[b], a, b, got, want, c)
				}
			}
			want := m.vocab.IsText(a) && slices.Equal(c.encode(c.tokens[a], false), []vocab.ID{a})
			if got := m.Reaches(a); got != want {
				t.Fatalf("%q: Reaches %v, want %v; %v", c.tokens[a], got, want, c)
			}
		}
	}
	if apart == 0 {
		t.Fatal("no pair stays apart")
	}
	for _, id := range []vocab.ID{vocab.None, 1 << 20} {
		if m := randomToy(rng).model(t); m.Apart(id, 0) || m.Apart(0, id) || m.Reaches(id) {
			t.Fatalf("token %d is apart from another", id)
		}
	}
}

// TestPairsDecide: with a Proper model, sequences of tokens of which all
// neighbours are Apart are what their bytes encode to, and no others.
func TestPairsDecide(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	proper := 0
	for range 150 {
		c := randomToy(rng)
		m := c.model(t)
		if !m.Proper() || c.fallback && c.chars {
			continue
		}
		proper++
		for range 300 {
			ids := make([]vocab.ID, 3+rng.IntN(3))
			for i := range ids {
				ids[i] = vocab.ID(rng.IntN(m.tokens))
				for try := 0; i > 0 && try < 8 && !m.Apart(ids[i-1], ids[i]); try++ {
					ids[i] = vocab.ID(rng.IntN(m.tokens))
				}
			}
			text, all := "", true
			for i, id := range ids {
				text += c.tokens[id]
				all = all && (i == 0 || m.Apart(ids[i-1], id))
			}
			if !slices.ContainsFunc(ids, func(id vocab.ID) bool { return !m.vocab.IsText(id) }) &&
				all != slices.Equal(c.encode(text, false), ids) {
				t.Fatalf("%v: all apart %v, but %q is %v; %v", ids, all, text, c.encode(text, false), c)
			}
		}
	}
	if proper < 20 {
		t.Fatalf("only %d proper vocabularies", proper)
	}
}

// TestLateBirth: of tokens made out of order only merging tells.
func TestLateBirth(t *testing.T) {
	// abc is listed before bc, which it needs.
	c := toy{tokens: []string{"a", "b", "c", "bc", "abc", "ca"}, unknown: vocab.None,
		merges: [][2]string{{"a", "bc"}, {"c", "a"}, {"b", "c"}}}
	m := c.model(t)
	if m.derived().of[4].birth != late {
		t.Fatal("abc is not late")
	}
	for a := range vocab.ID(m.tokens) {
		for b := range vocab.ID(m.tokens) {
			want := slices.Equal(c.encode(c.tokens[a]+c.tokens[b], false), []vocab.ID{a, b})
			if got := m.Apart(a, b); got != want {
				t.Errorf("%q %q: %v, want %v", c.tokens[a], c.tokens[b], got, want)
			}
		}
	}
}

// TestCharsOfLongerTokens: Gemma 2 has tokens of two tabs and more, but for one
// tab only the Byte token.
func TestCharsOfLongerTokens(t *testing.T) {
	c := toy{tokens: []string{"a", "\t", "\t\t"}, kinds: []vocab.Kind{vocab.Normal, vocab.Byte, vocab.Normal},
		scores: []float32{0, 0, -1}, chars: true, fallback: true, unknown: vocab.None}
	m := c.model(t)
	for _, tc := range []struct {
		a, b vocab.ID
		want bool
	}{{1, 1, false}, {2, 1, true}, {1, 2, false}, {0, 1, true}, {1, 0, true}, {2, 2, true}} {
		if got := m.Apart(tc.a, tc.b); got != tc.want {
			t.Errorf("%q %q: %v, want %v", c.tokens[tc.a], c.tokens[tc.b], got, tc.want)
		}
	}
	text := strings.Repeat("\t", 7*shortPiece) + "a\t"
	want := append(slices.Repeat([]vocab.ID{2}, 7*shortPiece/2), 0, 1)
	if got := m.pieces(text, []int{len(text)}, new(Scratch)); !slices.Equal(got, want) {
		t.Errorf("tabs come out as %v", got)
	}
}
