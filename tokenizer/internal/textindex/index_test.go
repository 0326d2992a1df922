package textindex

import (
	"fmt"
	"testing"
)

func TestIndex(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 255, 256, 257, 5000} {
		texts := make([][]byte, n)
		for i := range texts {
			texts[i] = fmt.Appendf(nil, "token %d", i)
		}
		x := New(n, func(id int) []byte { return texts[id] })
		for id := range texts {
			if first, dup := x.Add(id); dup || first != id {
				t.Fatalf("%d of %d: %d, %v", id, n, first, dup)
			}
		}
		for id := range texts {
			if got, ok := x.Lookup(texts[id]); !ok || got != id {
				t.Fatalf("%d of %d: %d, %v", id, n, got, ok)
			}
			if first, dup := x.Add(id); !dup || first != id {
				t.Fatalf("%d of %d again: %d, %v", id, n, first, dup)
			}
		}
		if _, ok := x.Lookup([]byte("other")); ok {
			t.Fatalf("%d: found what is not there", n)
		}
	}
}

func TestSameText(t *testing.T) {
	texts := []string{"", "a", "", "a"}
	x := New(len(texts), func(id int) []byte { return []byte(texts[id]) })
	for id, want := range []int{0, 1, 0, 1} {
		if first, dup := x.Add(id); first != want || dup != (id > 1) {
			t.Errorf("%d: %d, %v", id, first, dup)
		}
	}
}

func TestZero(t *testing.T) {
	var x Index
	if _, ok := x.Lookup(nil); ok {
		t.Error("the zero Index holds something")
	}
}
