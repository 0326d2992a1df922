package vocab_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unfray/unfray/vocab"
)

func TestMaskLayout(t *testing.T) {
	m := vocab.NewMask(65)
	if len(m) != 3 {
		t.Fatalf("65 IDs in %d words, want 3", len(m))
	}
	m.SetIDs([]vocab.ID{0, 31, 32, 64})
	if want := (vocab.Mask{1 | 1<<31, 1, 1}); !slices.Equal(m, want) {
		t.Errorf("words %x, want %x", m, want)
	}
}

func TestMaskAgainstSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 31, 32, 33, 1000} {
		m := vocab.NewMask(n)
		set := map[vocab.ID]bool{}
		for range 3 * n {
			id := vocab.ID(rng.IntN(n))
			if rng.IntN(2) == 0 {
				m.Set(id)
				set[id] = true
			} else {
				m.Remove(id)
				delete(set, id)
			}
		}
		check := func() {
			t.Helper()
			if want := slices.Sorted(maps.Keys(set)); !slices.Equal(slices.Collect(m.All()), want) {
				t.Fatalf("n = %d: %v, want %v", n, slices.Collect(m.All()), want)
			}
			if m.Count() != len(set) || m.Empty() != (len(set) == 0) {
				t.Errorf("n = %d: Count %d, Empty %v, want %d", n, m.Count(), m.Empty(), len(set))
			}
			for id := range vocab.ID(n) {
				if m.Has(id) != set[id] {
					t.Errorf("n = %d: Has(%d) = %v", n, id, m.Has(id))
				}
			}
		}
		check()
		m.Clear()
		clear(set)
		check()
	}
}

func TestMaskIgnoresOutside(t *testing.T) {
	m := vocab.NewMask(40)
	for _, id := range []vocab.ID{vocab.None, -1 << 31, 64, 1<<31 - 1} {
		m.Set(id)
		m.Remove(id)
		if m.Has(id) {
			t.Errorf("Has(%d)", id)
		}
	}
	if !m.Empty() {
		t.Errorf("mask %x", m)
	}
}

func TestMaskAllStops(t *testing.T) {
	m := vocab.NewMask(100)
	m.SetIDs([]vocab.ID{1, 2, 50})
	n := 0
	for range m.All() {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d IDs after break", n)
	}
}
