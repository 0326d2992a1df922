package recovery

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// randomEdits returns edits that fit text.
func randomEdits(rng *rand.Rand, text []byte, kind jsonrepair.Kind) []Edit {
	var out []Edit
	for at := 0; at <= len(text) && len(out) < 6; {
		at += rng.IntN(4)
		if at > len(text) {
			break
		}
		n := rng.IntN(min(3, len(text)-at) + 1)
		after := ""
		for range rng.IntN(3) {
			after += string(rune('A' + rng.IntN(26)))
		}
		if n == 0 && after == "" {
			at++
			continue
		}
		out = append(out, Edit{jsonrepair.Edit{Kind: kind, Offset: at, Before: string(text[at : at+n]), After: after}, ""})
		at += n
		if n == 0 {
			at++
		}
	}
	return out
}

func TestComposeIsBothAfterEachOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		input := []byte("abcdefghijkl"[:rng.IntN(13)])
		first := randomEdits(rng, input, "first")
		text := Apply(input, first)
		second := randomEdits(rng, text, "second")
		want := Apply(text, second)
		got := compose(first, text, second)
		end := 0
		for _, e := range got {
			if e.Offset < end || e.Offset+len(e.Before) > len(input) || string(input[e.Offset:e.Offset+len(e.Before)]) != e.Before {
				t.Fatalf("%q: %v then %v: edits out of order or of other bytes: %v", input, first, second, got)
			}
			end = e.Offset + len(e.Before)
		}
		if !bytes.Equal(Apply(input, got), want) {
			t.Fatalf("%q: %v then %v: %v makes %q, want %q", input, first, second, got, Apply(input, got), want)
		}
	}
}
