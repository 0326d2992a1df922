package engine

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// TestSimulateIsTheEngine compares the simulation with the engine on growing, branching and repeated conversations,
// with so few sequences and cells that much is thrown away.
func TestSimulateIsTheEngine(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		lim := fakeLimits(func(l *limits) { l.sequences = 2 + rng.IntN(4); l.cells = l.context * (1 + rng.IntN(3)) })
		e, _ := openFake(t, lim, nil)
		sim := Simulate(lim.sequences, lim.cells)
		var past [][]vocab.ID
		for i := range 60 {
			var ids []vocab.ID
			if len(past) > 0 && rng.IntN(5) > 0 {
				old := past[rng.IntN(len(past))]
				ids = slices.Clone(old[:rng.IntN(len(old)+1)])
			}
			for range 1 + rng.IntN(8) {
				ids = append(ids, vocab.ID(2+rng.IntN(fakeVocab-2)))
			}
			if len(ids) > lim.context-8 {
				continue
			}
			toks, end := generate(t, e, &backend.Request{Prompt: ids, MaxTokens: 1 + rng.IntN(6)})
			waitIdle(t, e)
			lease, err := sim.Begin(&prefixcache.Request{Prompt: ids})
			if err != nil {
				t.Fatal(err)
			}
			if lease.Cached != end.CachedTokens {
				t.Fatalf("seed %d, request %d: %d of %d tokens simulated, %d in the engine", seed, i, lease.Cached, len(ids), end.CachedTokens)
			}
			output := idsOf(toks)
			if end.EndToken != vocab.None {
				output = append(output, end.EndToken) // drawn, and not evaluated
			}
			sim.End(lease, output)
			past = append(past, append(ids, output...))
		}
		if st, real := sim.Stats(), e.Stats(); uint64(st.HitTokens) != real.CachedTokens || uint64(st.Evictions) != real.Evictions || int(st.Blocks) != real.CellsUsed {
			t.Errorf("seed %d: %+v simulated, %+v in the engine", seed, st, real)
		}
	}
}

func TestSimulateRoom(t *testing.T) {
	s := Simulate(2, 10)
	a, err := s.Begin(&prefixcache.Request{Prompt: prompt(6)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(&prefixcache.Request{Prompt: prompt(11)}); err != prefixcache.ErrTooLarge {
		t.Error(err)
	}
	if _, err := s.Begin(&prefixcache.Request{Prompt: []vocab.ID{9, 9, 9, 9, 9}}); err != prefixcache.ErrNoRoom {
		t.Error(err)
	}
	s.End(a, nil)
	s.End(a, nil) // a lease ends once
	if l, err := s.Begin(&prefixcache.Request{Prompt: []vocab.ID{9, 9, 9, 9, 9}}); err != nil || l.Cached != 0 {
		t.Error(l, err)
	}
}
