package audit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// The neighbour found by sorting shares as much as the best of all earlier ones.
func TestNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		views := make([]view, 1+rng.IntN(12))
		for i := range views {
			text := make([]byte, rng.IntN(8))
			for k := range text {
				text[k] = "ab"[rng.IntN(2)]
			}
			size := rng.IntN(len(text) + 1)
			views[i] = view{text: text, size: size, space: rng.IntN(2)}
		}
		for _, spaces := range []bool{false, true} {
			o := byText(views, spaces)
			for i, j := range nearest(len(views), o) {
				best := -1
				for k := range i {
					best = max(best, o.common(i, k))
				}
				switch {
				case j < 0 && i > 0 && best >= 0, j >= i:
					t.Fatalf("%d has %d", i, j)
				case j >= 0 && o.common(i, j) != best:
					t.Fatalf("%d shares %d bytes with %d, but %d with another: %+v", i, o.common(i, j), j, best, views)
				}
			}
		}
	}
}

// Matches are equal text, in order, without overlap, and none of the length that
// is found for certain is missing.
func TestOverlap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	random := func(n int, letters string) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[rng.IntN(len(letters))]
		}
		return b
	}
	for range 3000 {
		letters := []string{"ab", "abcdefghijklmnopqrstuvwxyz0123456789"}[rng.IntN(2)]
		shared := random(2*grain-1+rng.IntN(40), letters)
		old := slices.Concat(random(rng.IntN(100), letters), shared, random(rng.IntN(100), letters))
		new := slices.Concat(random(rng.IntN(100), letters), shared, random(rng.IntN(100), letters))
		if rng.IntN(2) == 0 {
			tail := random(rng.IntN(50), letters)
			old, new = append(old, tail...), append(new, tail...)
		}
		at, found := 0, 0
		for _, m := range overlap(old, new) {
			if m.new < at || m.n <= 0 || !bytes.Equal(old[m.old:m.old+m.n], new[m.new:m.new+m.n]) {
				t.Fatalf("match %+v after byte %d of %q and %q", m, at, old, new)
			}
			at = m.new + m.n
			found += m.n
		}
		if len(letters) > 2 && found < len(shared) {
			t.Fatalf("%d bytes found of %d in %q and %q", found, len(shared), old, new)
		}
	}
}

// Each prompt goes on in the next one: what is lost are the tokens that change,
// and the blocks that they take with them.
func TestTails(t *testing.T) {
	text := tokenizertest.Corpus(t, "go")[:60_000]
	rng := rand.New(rand.NewPCG(5, 6))
	for name := range files {
		if (race || testing.Short()) && name != "gpt2" && name != "qwen3" {
			continue
		}
		tok := open(t, name)
		for range 150 {
			from := rng.IntN(len(text) - 3000)
			cut, more := from+rng.IntN(2500), 1+rng.IntN(400)
			a, b := text[from:cut], text[from:cut+more]
			old, new := tok.Encode(nil, a), tok.Encode(nil, b)
			rep, q := second(t, Options{Tokenizer: tok, BlockSizes: []int{1, 16, 64}, NoSuggestions: true}, Prompt{Text: a}, Prompt{Text: b})
			same := vocab.CommonPrefix(old, new)
			lost := len(old) - same
			if same >= len(new)-1 {
				lost = 0 // the last token is computed in any case
			}
			if q.LostTokens != lost || q.LostEqualText != lost {
				t.Fatalf("%s: %d tokens lost, want %d: %q + %q", name, q.LostTokens, lost, a[max(0, len(a)-30):], b[len(a):])
			}
			if lost == 0 {
				continue
			}
			if d := q.FirstDivergence; d.Cause != TailRetokenised || d.Token != same || d.Byte != len(a) {
				t.Fatalf("%s: %+v", name, d)
			}
			for _, l := range rep.Blocks {
				kept, ideal := min(same, len(new)-1), min(len(old), len(new)-1)
				if want := ideal/l.Size - kept/l.Size; l.Blocks != want || l.Tokens != want*l.Size {
					t.Fatalf("%s: %+v, want %d blocks", name, l, want)
				}
			}
		}
	}
}

// What is reused is the longest beginning that any earlier prompt had, and the
// figures of suggestions are those of prompts that were tokenized and compared
// one by one.
func TestReuse(t *testing.T) {
	tok := open(t, "gpt2")
	rng := rand.New(rand.NewPCG(7, 8))
	words := strings.Fields("the pump of line four runs at 10:00 and 3 valves leak near gate B. \n")
	rounds := 150
	if race || testing.Short() {
		rounds = 15
	}
	for range rounds {
		var prompts []Prompt
		for range 2 + rng.IntN(10) {
			var s strings.Builder
			fmt.Fprintf(&s, "Time: 10:0%d\nBe brief and kind to all who ask.\n", rng.IntN(3))
			for range rng.IntN(12) {
				s.WriteString(words[rng.IntN(len(words))] + " ")
			}
			prompts = append(prompts, Prompt{Text: []byte(s.String())})
		}
		rep, err := Audit(prompts, Options{Tokenizer: tok, BlockSizes: []int{4}})
		if err != nil {
			t.Fatal(err)
		}
		computed, total := 0, 0
		for i := range prompts {
			ids := tok.Encode(nil, prompts[i].Text)
			had := 0
			for j := range i {
				had = max(had, vocab.CommonPrefix(ids, tok.Encode(nil, prompts[j].Text)))
			}
			had = min(had, len(ids)-1)
			if q := rep.Requests[i]; q.ReusedTokens != had || q.Tokens != len(ids) {
				t.Fatalf("%d of %d tokens reused, want %d of %d", q.ReusedTokens, q.Tokens, had, len(ids))
			}
			computed += len(ids) - had
			total += len(ids)
		}
		for _, s := range rep.Suggestions {
			if s.Before.ComputedTokens != computed || s.Before.PromptTokens != total {
				t.Fatalf("%s: before %+v, want %d of %d computed", s.Change, s.Before, computed, total)
			}
			if s.Change != Nothing && s.After.ComputedTokens >= computed {
				t.Fatalf("%s does not help: %+v", s.Change, s)
			}
		}
	}
}
