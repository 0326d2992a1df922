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
		m, o := vocab.NewMask(n), vocab.NewMask(n)
		set, other := map[vocab.ID]bool{}, map[vocab.ID]bool{}
		for range 3 * n {
			id := vocab.ID(rng.IntN(n))
			switch rng.IntN(3) {
			case 0:
				m.Set(id)
				set[id] = true
			case 1:
				m.Remove(id)
				delete(set, id)
			case 2:
				o.Set(id)
				other[id] = true
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
		m.And(o)
		maps.DeleteFunc(set, func(id vocab.ID, _ bool) bool { return !other[id] })
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

func TestMaskAndShorter(t *testing.T) {
	m, o := vocab.NewMask(100), vocab.NewMask(32)
	m.SetIDs([]vocab.ID{3, 99})
	o.SetIDs([]vocab.ID{3, 4})
	m.And(o)
	if got := slices.Collect(m.All()); !slices.Equal(got, []vocab.ID{3}) {
		t.Errorf("IDs %v, want [3]", got)
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
