package replay

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// longest is what match gives, by looking at each sequence.
func longest[S symbol](seqs [][]S, seq []S) (n int) {
	for _, s := range seqs {
		k := 0
		for k < min(len(s), len(seq)) && s[k] == seq[k] {
			k++
		}
		n = max(n, k)
	}
	return n
}

func testTree[S symbol](t *testing.T, symbols int) {
	rng := rand.New(rand.NewPCG(1, uint64(symbols)))
	for range 200 {
		tr := newTree[S]()
		roots := []uint32{tr.newRoot(), tr.newRoot()}
		seqs := make([][][]S, len(roots))
		distinct := 0
		for range 60 {
			which := rng.IntN(2)
			var seq []S
			if n := len(seqs[which]); n > 0 && rng.IntN(3) > 0 {
				seq = append(seq, seqs[which][rng.IntN(n)]...)
				seq = seq[:rng.IntN(len(seq)+1)]
			}
			for range rng.IntN(30) {
				seq = append(seq, S(rng.IntN(symbols)))
			}
			want := longest(seqs[which], seq)
			if got := tr.match(roots[which], seq); got != want {
				t.Fatalf("match of %v in %v: %d, want %d", seq, seqs[which], got, want)
			}
			if got := tr.insert(roots[which], seq); got != want {
				t.Fatalf("insert of %v in %v: %d, want %d", seq, seqs[which], got, want)
			}
			distinct += len(seq) - want
			seqs[which] = append(seqs[which], seq)
		}
		if len(tr.arena) != distinct || len(tr.nodes) > 2+2*60 {
			t.Fatalf("%d symbols and %d nodes for %d distinct symbols and 60 sequences", len(tr.arena), len(tr.nodes), distinct)
		}
	}
}

func TestTree(t *testing.T) {
	t.Run("bytes", func(t *testing.T) { testTree[byte](t, 2) })
	t.Run("tokens", func(t *testing.T) { testTree[vocab.ID](t, 3) })
	t.Run("many tokens", func(t *testing.T) { testTree[vocab.ID](t, 200_000) })
}

func TestCommon(t *testing.T) {
	a := bytes.Repeat([]byte("abcdefg"), 5)
	for i := range a {
		b := bytes.Clone(a)
		b[i]++
		if got := common(a, b); got != i {
			t.Errorf("%d bytes in common, want %d", got, i)
		}
		if got := common(a, a[:i]); got != i {
			t.Errorf("%d bytes in common with the first %d", got, i)
		}
	}
}

func FuzzTree(f *testing.F) {
	f.Add([]byte("a prompt\nanother prompt\na prompt that goes on\na prom\n\na"))
	f.Add([]byte("\n\n\x00\n\x00\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tr := newTree[byte]()
		root := tr.newRoot()
		var seqs [][]byte
		for seq := range bytes.SplitSeq(text[:min(len(text), 2000)], []byte("\n")) {
			if got, want := tr.insert(root, seq), longest(seqs, seq); got != want {
				t.Fatalf("%q in %q: %d, want %d", seq, seqs, got, want)
			}
			seqs = append(seqs, seq)
		}
	})
}

func TestIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	x := newIndex()
	want := map[uint64]int{}
	for range 20_000 {
		key := uint64(rng.IntN(5000)) << (rng.IntN(3) * 24)
		n, known := want[key]
		if !known {
			n = -1
		}
		if got := x.find(key); got != n {
			t.Fatalf("find: %d, want %d", got, n)
		}
		if !known {
			n = len(want)
			want[key] = n
		}
		if got, isNew := x.add(key); got != n || isNew == known {
			t.Fatalf("add: %d, new %t; want %d, %t", got, isNew, n, !known)
		}
	}
}
