package trie

import (
	"math/rand/v2"
	"testing"
)

// random makes n different pieces as vocabularies have them: with common
// beginnings, over all bytes.
func random(n int) map[string]int32 {
	rng := rand.New(rand.NewPCG(1, 1))
	pieces := make(map[string]int32, n)
	var all []string
	for len(all) < n {
		b := make([]byte, 1+rng.IntN(5))
		for i := range b {
			b[i] = byte(rng.ExpFloat64() * 30)
		}
		p := string(b)
		if len(all) > 0 && rng.IntN(3) > 0 {
			p = all[rng.IntN(len(all))] + p
		}
		if _, ok := pieces[p]; !ok {
			pieces[p] = int32(len(all))
			all = append(all, p)
		}
	}
	return pieces
}

func entries(pieces map[string]int32) []Entry {
	var all []Entry
	for text, id := range pieces {
		all = append(all, Entry{[]byte(text), id, float64(id) / 2})
	}
	return all
}

func TestFind(t *testing.T) {
	pieces := random(20000)
	trie, err := New(entries(pieces))
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) {
		want, known := pieces[text]
		if got, ok := trie.Find([]byte(text)); ok != known || ok && got != want {
			t.Fatalf("%q: %d, %t; want %d, %t", text, got, ok, want, known)
		}
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for text := range pieces {
		check(text)
		check(text[:rng.IntN(len(text))])
		check(text + string(rune(rng.IntN(300))))
		b := []byte(text)
		b[rng.IntN(len(b))] = byte(rng.IntN(256))
		check(string(b))
	}
	for c := range 256 {
		check(string([]byte{byte(c)}))
		check(string([]byte{0, byte(c)}))
	}
	if n := len(trie.slots); n > 2*count(pieces)+2*blockSize {
		t.Errorf("%d slots for %d nodes", n, count(pieces))
	}
}

// count is the number of nodes.
func count(pieces map[string]int32) int {
	nodes := map[string]bool{}
	for text := range pieces {
		for i := range text {
			nodes[text[:i+1]] = true
		}
	}
	return len(nodes)
}

func TestSmall(t *testing.T) {
	for _, tt := range []struct {
		entries []Entry
		find    string
		want    int32
	}{
		{nil, "a", -1},
		{[]Entry{{Text: nil, ID: 4}}, "", -1},
		{[]Entry{{Text: []byte("a"), ID: 4}}, "a", 4},
		{[]Entry{{Text: []byte("a"), ID: 4}, {Text: []byte("a"), ID: 7}, {Text: []byte("a"), ID: 5}}, "a", 7},
		{[]Entry{{Text: []byte{0}, ID: 4}}, "\x00", 4},
		{[]Entry{{Text: []byte{0}, ID: 4}}, "\x00\x00", -1},
	} {
		trie, err := New(tt.entries)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := trie.Find([]byte(tt.find)); got != tt.want {
			t.Errorf("%v: %q is %d, want %d", tt.entries, tt.find, got, tt.want)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	all := entries(random(250_000))
	for b.Loop() {
		if _, err := New(all); err != nil {
			b.Fatal(err)
		}
	}
}
