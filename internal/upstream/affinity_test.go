package upstream

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// lru is the table written plainly: a list, the most recently used first.
type lru struct {
	limit int
	list  []struct {
		prefix   uint64
		endpoint int
	}
}

func (l *lru) find(prefixes []uint64) int {
	for _, prefix := range slices.Backward(prefixes) {
		for _, e := range l.list {
			if e.prefix == prefix {
				return e.endpoint
			}
		}
	}
	return -1
}

func (l *lru) put(prefixes []uint64, endpoint int) {
	for _, prefix := range slices.Backward(prefixes) {
		for i, e := range l.list {
			if e.prefix == prefix {
				l.list = slices.Delete(l.list, i, i+1)
				break
			}
		}
		l.list = slices.Insert(l.list, 0, struct {
			prefix   uint64
			endpoint int
		}{prefix, endpoint})
		l.list = l.list[:min(len(l.list), l.limit)]
	}
}

// The table never outgrows its limit, forgets the least recently used, and
// agrees with a plain list after every step.
func TestAffinityIsAnLRU(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []int{1, 2, 7, 64} {
		a, model := newAffinity(limit), &lru{limit: limit}
		for step := range 4000 {
			prefixes := make([]uint64, r.IntN(6))
			for i := range prefixes {
				prefixes[i] = r.Uint64N(uint64(3 * limit))
			}
			if got, want := a.find(prefixes), model.find(prefixes); got != want {
				t.Fatalf("limit %d, step %d: find(%v) = %d, want %d", limit, step, prefixes, got, want)
			}
			a.put(prefixes, step)
			model.put(prefixes, step)
			checkTable(t, a)
			if len(a.index) != len(model.list) {
				t.Fatalf("limit %d, step %d: %d entries, want %d", limit, step, len(a.index), len(model.list))
			}
		}
	}
}

// checkTable checks what must hold of a table at any time.
func checkTable(t testing.TB, a *affinity) {
	t.Helper()
	if len(a.entries) > a.limit || len(a.index) != len(a.entries) {
		t.Fatalf("%d entries, %d in the index, limit %d", len(a.entries), len(a.index), a.limit)
	}
	n, prev := 0, int32(-1)
	for at := a.head; at >= 0; prev, at = at, a.entries[at].next {
		if a.entries[at].prev != prev || a.index[a.entries[at].prefix] != at {
			t.Fatalf("entry %d: prev %d, want %d", at, a.entries[at].prev, prev)
		}
		if n++; n > len(a.entries) {
			t.Fatal("the list has a cycle")
		}
	}
	if n != len(a.entries) || a.tail != prev {
		t.Fatalf("%d of %d entries in the list, tail %d, want %d", n, len(a.entries), a.tail, prev)
	}
}

// Two keys share as many hashes as chunks lie within their common prefix.
func FuzzPrefixes(f *testing.F) {
	f.Add([]byte("system: you are helpful"), []byte("user: hi"), []byte("user: bye"), uint8(3))
	f.Add([]byte{}, []byte{}, []byte{}, uint8(0))
	f.Add(bytes.Repeat([]byte{0}, 70), []byte{0}, []byte{1}, uint8(40))
	a := newAffinity(1)
	f.Fuzz(func(t *testing.T, shared, one, two []byte, times uint8) {
		shared = bytes.Repeat(shared, int(times))
		x := append(bytes.Clone(shared), one...)
		y := append(bytes.Clone(shared), two...)
		common := 0
		for common < min(len(x), len(y), affinityBytes) && x[common] == y[common] {
			common++
		}
		hx, hy := a.prefixes(nil, x), a.prefixes(nil, y)
		if len(hx) > 64 || len(hy) > 64 {
			t.Fatalf("%d and %d hashes", len(hx), len(hy))
		}
		same := 0
		for same < min(len(hx), len(hy)) && hx[same] == hy[same] {
			same++
		}
		if want := len(a.prefixes(nil, x[:common])); same != want {
			t.Errorf("%d hashes are shared, %d chunks lie within the common %d bytes", same, want, common)
		}
		for i := same; i < min(len(hx), len(hy)); i++ {
			if hx[i] == hy[i] {
				t.Errorf("hash %d agrees after one that does not", i)
			}
		}
	})
}

// Chunks: how many, and that what is beyond the cap costs nothing.
func TestPrefixesAreBounded(t *testing.T) {
	a := newAffinity(1)
	for _, tt := range []struct{ bytes, hashes int }{
		{0, 0}, {63, 0}, {64, 1}, {127, 1}, {128, 2}, {512, 8}, {576, 9}, {4096, 25},
		{affinityBytes, 61}, {8 * affinityBytes, 61},
	} {
		key := make([]byte, tt.bytes)
		if got := a.prefixes(nil, key); len(got) != tt.hashes {
			t.Errorf("%d bytes: %d hashes, want %d", tt.bytes, len(got), tt.hashes)
		}
		if len(slices.Compact(slices.Sorted(slices.Values(a.prefixes(nil, key))))) != tt.hashes {
			t.Errorf("%d equal bytes: hashes of different lengths agree", tt.bytes)
		}
	}
}

func TestOverloaded(t *testing.T) {
	for _, tt := range []struct {
		load, total, endpoints int
		want                   bool
	}{
		{0, 0, 4, false}, {1, 1, 4, false}, {2, 2, 4, true}, // an average of 0.75 carries 2
		{9, 40, 4, false}, {13, 40, 4, false}, {14, 40, 4, true},
		{100, 100, 1, false}, // alone
		{1 << 20, 1 << 20, 100, true},
	} {
		if got := overloaded(tt.load, tt.total, tt.endpoints); got != tt.want {
			t.Errorf("load %d of %d at %d endpoints: %t", tt.load, tt.total, tt.endpoints, got)
		}
	}
}
