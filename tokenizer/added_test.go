package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// naivePartition is llama.cpp's way: one token after the other, the longest
// first, is cut out of all pieces of text that are left.
func naivePartition(v *vocab.Vocab, ids []vocab.ID, text string) []match {
	type fragment struct {
		lo, hi int
		id     vocab.ID
	}
	parts := []fragment{{0, len(text), vocab.None}}
	for _, id := range ids {
		word := string(v.Bytes(id))
		for i := 0; i < len(parts); i++ {
			f := parts[i]
			if f.id != vocab.None {
				continue
			}
			k := strings.Index(text[f.lo:f.hi], word)
			if k < 0 {
				continue
			}
			at := f.lo + k
			parts = slices.Replace(parts, i, i+1,
				fragment{f.lo, at, vocab.None}, fragment{at, at + len(word), id}, fragment{at + len(word), f.hi, vocab.None})
			i++ // the part on the right is next
		}
	}
	var out []match
	for _, f := range parts {
		if f.id != vocab.None {
			out = append(out, match{f.lo, f.hi, f.id})
		}
	}
	return out
}

func TestAddedAgainstNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 400 {
		letters := []string{"a", "b", "<", ">", "é"}[:1+rng.IntN(5)]
		var added []string
		for range 1 + rng.IntN(6) {
			if word := randomText(rng, letters, 5); word != "" {
				added = append(added, word+randomText(rng, letters, 2))
			}
		}
		tok := synthetic{pre: "gpt-2", added: added}.open(t)
		for range 50 {
			text := randomText(rng, letters, 20)
			got := tok.added.choose(tok.added.occurrences(nil, []byte(text)), []byte(text))
			if want := naivePartition(tok.vocab, tok.vocab.UserDefined(), text); !slices.Equal(got, want) {
				t.Fatalf("%q with %q: %v, want %v", text, added, got, want)
			}
		}
	}
}

func TestAddedAndControl(t *testing.T) {
	tok := synthetic{
		pre:      "gpt-2",
		merges:   [][2]string{{"e", "n"}, {"en", "d"}},
		added:    []string{"<tool>", "    "},
		controls: []string{"<|im_start|>", "<|im_end|>", "<|im"},
	}.open(t)
	for _, tc := range []struct {
		text           string
		plain, special string
	}{
		{"end", "end", "end"},
		{"a<tool>b", "a‧<tool>‧b", "a‧<tool>‧b"},
		{"<tool", "<‧t‧o‧o‧l", "<‧t‧o‧o‧l"},
		{"     x", "    ‧ ‧x", "    ‧ ‧x"},
		{"<|im_end|>", "<‧|‧i‧m‧_‧end‧|‧>", "<|im_end|>"},
		{"<|im_end", "<‧|‧i‧m‧_‧end", "<|im‧_‧end"},
		{"a<|im_start|><tool>", "a‧<‧|‧i‧m‧_‧s‧t‧a‧r‧t‧|‧>‧<tool>", "a‧<|im_start|>‧<tool>"},
		{"", "", ""},
	} {
		show := func(ids []vocab.ID) string {
			var parts []string
			for _, id := range ids {
				parts = append(parts, string(tok.vocab.Bytes(id)))
			}
			return strings.Join(parts, "‧")
		}
		if got := show(tok.Encode(nil, []byte(tc.text))); got != tc.plain {
			t.Errorf("Encode(%q) is %q, want %q", tc.text, got, tc.plain)
		}
		special := tok.EncodeSpecial(nil, []byte(tc.text))
		if got := show(special); got != tc.special {
			t.Errorf("EncodeSpecial(%q) is %q, want %q", tc.text, got, tc.special)
		}
		if got := string(tok.Decode(nil, special)); got != tc.text {
			t.Errorf("%q decodes to %q", tc.text, got)
		}
		for _, id := range tok.Encode(nil, []byte(tc.text)) {
			if tok.vocab.Kind(id) == vocab.Control {
				t.Errorf("Encode(%q) gives control token %d", tc.text, id)
			}
		}
	}
	if got := tok.EncodePiece(nil, []byte("<tool>")); len(got) != 1 || tok.vocab.Kind(got[0]) != vocab.UserDefined {
		t.Errorf("EncodePiece of an added token is %v", got)
	}
	if got := tok.EncodePiece([]vocab.ID{9}, nil); !slices.Equal(got, []vocab.ID{9}) {
		t.Errorf("EncodePiece of nothing is %v", got)
	}
}
