package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// An entered sequence is what Seen was given.
type entered struct {
	salt string
	ids  []vocab.ID
}

// lossByHand compares a prompt and its output with every sequence that was entered:
// of the prompt's tokens, those behind the longest common prefix in tokens and
// before the last one with bytes that ends inside the longest one in bytes.
func lossByHand(past []entered, salt string, prompt, output []vocab.ID) int {
	spell := func(ids []vocab.ID) (text []byte) {
		for _, id := range ids {
			text = append(text, toyTokens[id]...)
		}
		return text
	}
	ids := slices.Concat(prompt, output)
	tokens, text := 0, 0
	for _, e := range past {
		if e.salt == salt {
			tokens = max(tokens, common(e.ids, ids))
			text = max(text, common(spell(e.ids), spell(ids)))
		}
	}
	inside := tokens
	for i := tokens; i < len(ids); i++ {
		if toyTokens[ids[i]] != "" && len(spell(ids[:i+1])) <= text {
			inside = i + 1
		}
	}
	return min(inside, len(prompt)) - min(tokens, len(prompt))
}

// drawSequence draws a sequence that often shares text with one that was entered, spelled
// the same or anew.
func drawSequence(rng *rand.Rand, past []entered) (salt string, prompt, output []vocab.ID) {
	salt = []string{"", "", "x"}[rng.IntN(3)]
	if len(past) > 0 && rng.IntN(4) > 0 {
		old := past[rng.IntN(len(past))].ids
		prompt = slices.Clone(old[:rng.IntN(len(old)+1)])
		if rng.IntN(2) == 0 {
			prompt = spelling(rng, prompt)
		}
	}
	for range rng.IntN(6) {
		prompt = append(prompt, vocab.ID(rng.IntN(len(toyTokens))))
	}
	for range rng.IntN(4) {
		output = append(output, vocab.ID(rng.IntN(len(toyTokens))))
	}
	return salt, prompt, output
}

// TestSeenIsByHand compares with all earlier sequences while nothing is forgotten.
func TestSeenIsByHand(t *testing.T) {
	v := toyVocab(t)
	lost := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := NewSeen(v, 1<<30)
		var past []entered
		for i := range 60 {
			salt, prompt, output := drawSequence(rng, past)
			want := lossByHand(past, salt, prompt, output)
			if got := s.Add(prefixcache.Keys{Salt: salt}, prompt, output); got != want {
				t.Fatalf("seed %d, sequence %d, %v and %v: %d tokens, want %d", seed, i, prompt, output, got, want)
			}
			lost += want
			past = append(past, entered{salt, slices.Concat(prompt, output)})
		}
	}
	if lost < 100 {
		t.Errorf("only %d tokens were lost: the sequences test little", lost)
	}
}

// TestSeenForgets enters ten times what may be held. What is told is then what the
// sequences that are still held give, and memory stays bounded.
func TestSeenForgets(t *testing.T) {
	const limit = 96 << 10
	v := toyVocab(t)
	rng := rand.New(rand.NewPCG(5, 5))
	s := NewSeen(v, limit)
	var held, newer []entered // since the last time but one that the older part was forgotten, and since the last
	most, forgot, total := int64(0), 0, int64(0)
	for total < 10*limit {
		salt, prompt, output := drawSequence(rng, held)
		if rng.IntN(3) > 0 { // new text
			prompt = append(prompt, vocab.ID(rng.IntN(2)))
			for range 200 {
				prompt = append(prompt, vocab.ID(rng.IntN(len(toyTokens))))
			}
		}
		prompt = prompt[:min(len(prompt), 600)]
		before := s.now
		got := s.Add(prefixcache.Keys{Salt: salt}, prompt, output)
		if s.now != before {
			forgot++
			held, newer = newer, nil
		}
		if want := lossByHand(held, salt, prompt, output); got != want {
			t.Fatalf("%d sequences held, %d times forgotten: %d tokens, want %d", len(held), forgot, got, want)
		}
		e := entered{salt, slices.Concat(prompt, output)}
		held, newer = append(held, e), append(newer, e)
		total += int64(6 * len(e.ids)) // 4 bytes for a token and about 2 of text
		bytes := s.now.bytes()
		if s.before != nil {
			bytes += s.before.bytes()
		}
		most = max(most, bytes)
	}
	t.Logf("%d bytes held at most, %d times forgotten", most, forgot)
	// Slices grow by up to their own length again.
	if forgot < 5 || most > 2*limit {
		t.Errorf("%d bytes held, more than twice %d, or forgotten only %d times", most, limit, forgot)
	}
}

// TestSeenForgotten gives 0 for text that was forgotten, in whatever tokens it
// comes.
func TestSeenForgotten(t *testing.T) {
	s := NewSeen(toyVocab(t), 64<<10)
	abab := slices.Repeat([]vocab.ID{3}, 50)
	other := slices.Repeat([]vocab.ID{0, 1}, 50)
	if s.Add(prefixcache.Keys{}, abab, nil) != 0 || s.Add(prefixcache.Keys{}, other, nil) != 100 {
		t.Error("the same text in other tokens is not found")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		ids := []vocab.ID{1} // no prefix of the others
		for range 300 {
			ids = append(ids, vocab.ID(rng.IntN(2)))
		}
		s.Add(prefixcache.Keys{Salt: fmt.Sprint(i % 3)}, ids, nil)
	}
	if n := s.Add(prefixcache.Keys{}, slices.Repeat([]vocab.ID{7}, 25), nil); n != 0 {
		t.Errorf("%d tokens of text that was forgotten", n)
	}
}
