package replay

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// With room for all, Seen tells of each prompt what Loss does.
func TestSeen(t *testing.T) {
	v := toyVocab(t)
	for seed := range uint64(20) {
		reqs := conversations(rand.New(rand.NewPCG(seed, 9)), 60)
		s := NewSeen(v, 1<<20)
		_, err := Run(t.Context(), &reqs, Options{
			NewCache: paged(1, 0), NewUnlimited: paged(1, 0), Vocab: v,
			OnRecord: func(r *Record) error {
				// An unlimited cache of single tokens loses only the last to rules, and
				// that of outputs.
				if got := s.Add(r.Request.Keys, r.Request.IDs, nil); int64(got) != r.Loss.Boundary {
					t.Fatalf("seed %d, request %d: %d tokens, want %d", seed, r.Index, got, r.Loss.Boundary)
				}
				s.Add(r.Request.Keys, r.Request.IDs, r.Request.OutputIDs)
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Its memory stays within twice the limit, whatever comes, and what came last is
// known.
func TestSeenForgets(t *testing.T) {
	const limit = 1 << 18
	s := NewSeen(toyVocab(t), limit)
	rng := rand.New(rand.NewPCG(1, 1))
	forgot := false
	for i := range 20_000 {
		keys := prefixcache.Keys{}
		switch i % 4 {
		case 1:
			keys.Salt = fmt.Sprint("a salt of its own: ", i)
		case 2:
			keys.Media = []prefixcache.Media{{Hash: fmt.Sprint(i), Length: 1}}
		}
		prompt := make([]vocab.ID, 1+rng.IntN(40))
		for k := range prompt {
			prompt[k] = vocab.ID(rng.IntN(len(toyTokens)))
		}
		s.Add(keys, prompt, nil)
		if got := s.Add(keys, prompt, nil); got != 0 {
			t.Fatalf("prompt %d: %d tokens, though it was the last", i, got)
		}
		held := s.now.bytes()
		if s.before != nil {
			held += s.before.bytes()
			forgot = true
		}
		if held > 2*limit {
			t.Fatalf("%d bytes after %d prompts, with a limit of %d", held, i, limit)
		}
	}
	if !forgot {
		t.Error("nothing was forgotten")
	}
}
