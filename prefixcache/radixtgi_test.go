package prefixcache

import (
	"errors"
	"fmt"
	"testing"

	"github.com/unfray/unfray/vocab"
)

func TestTGIAsTGI(t *testing.T) {
	for _, tr := range recordedLines[radixTrace](t, "testdata/tgi/radix.jsonl.gz") {
		t.Run(fmt.Sprintf("block=%d/capacity=%d/output=%d", tr.Page, tr.Capacity, tr.Output), func(t *testing.T) {
			c, err := NewTGI(TGIOptions{BlockSize: tr.Page, Capacity: tr.Capacity, Output: tr.Output})
			if err != nil {
				t.Fatal(err)
			}
			replayRecorded(t, c, tr.Events, func() (int, int, int) {
				checkTGI(t, c)
				s := c.Stats()
				return int(s.Evictions) * s.Unit, int(s.Blocks) * s.Unit, c.free * s.Unit
			})
		})
	}
}

// checkTGI checks what must be true between requests.
func checkTGI(t *testing.T, c *TGI) {
	t.Helper()
	refs := make(map[*tgiNode]int)
	size, leaves := 0, 0
	for edge, n := range c.kids {
		refs[n.parent]++
		size += len(n.edge)
		if edge.parent != n.parent.slot || edge.page != n.edge[0] {
			t.Fatalf("node %d is not where its edge says", n.slot)
		}
	}
	for _, run := range c.running {
		refs[run.node]++
	}
	for _, n := range c.kids {
		if n.refs != refs[n] {
			t.Fatalf("node %d: %d refs, not %d", n.slot, refs[n], n.refs)
		}
		if n.refs == 0 {
			leaves++
			if n.pos < 0 || c.leaves.nodes[n.pos] != n {
				t.Fatalf("leaf %d is not in the heap", n.slot)
			}
		}
	}
	if size != c.size || leaves != len(c.leaves.nodes) || c.free < 0 {
		t.Fatalf("size %d, leaves %d, free %d; counted %d, %d", c.size, len(c.leaves.nodes), c.free, size, leaves)
	}
}

// The cases of the unit tests of radix.rs, as far as the interface shows them.
func TestTGICases(t *testing.T) {
	begin := func(c *TGI, ids ...vocab.ID) Lease {
		t.Helper()
		l, err := c.Begin(&Request{Prompt: ids})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	t.Run("whole hit", func(t *testing.T) {
		c, _ := NewTGI(TGIOptions{Capacity: 12, Output: 5})
		c.End(begin(c, 0, 1, 2, 3), nil)
		if l := begin(c, 0, 1, 2, 3); l.Cached != 3 {
			t.Errorf("cached %d, want 3: the last token is computed again", l.Cached)
		}
	})
	t.Run("older prefixes first", func(t *testing.T) {
		c, _ := NewTGI(TGIOptions{Capacity: 7})
		a, b := begin(c, 0, 1, 2, 3), begin(c, 4, 5)
		c.End(a, nil)
		c.End(b, nil)
		c.End(begin(c, 6, 7, 8, 9), nil) // wants four, finds none free, takes the older
		if l := begin(c, 4, 5); l.Cached != 1 {
			t.Errorf("cached %d of the newer prefix, want 1", l.Cached)
		}
	})
	t.Run("two at once", func(t *testing.T) {
		c, _ := NewTGI(TGIOptions{Capacity: 10})
		a, b := begin(c, 0, 1, 2, 3), begin(c, 0, 1, 2, 3)
		if b.Cached != 0 {
			t.Errorf("cached %d while the first is running, want 0", b.Cached)
		}
		c.End(b, nil)
		c.End(a, nil)
		if c.free != 5 {
			t.Errorf("%d blocks free, want 5", c.free)
		}
	})
	t.Run("no room", func(t *testing.T) {
		c, _ := NewTGI(TGIOptions{Capacity: 6})
		a := begin(c, 0, 1, 2, 3)
		if _, err := c.Begin(&Request{Prompt: []vocab.ID{7, 8}}); !errors.Is(err, ErrNoRoom) {
			t.Errorf("%v, want %v", err, ErrNoRoom)
		}
		c.End(a, nil)
		begin(c, 7, 8)
		if _, err := c.Begin(&Request{Prompt: make([]vocab.ID, 6)}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v, want %v", err, ErrTooLarge)
		}
	})
	for _, o := range []TGIOptions{{BlockSize: -1}, {Output: -1}, {Capacity: 1}, {Capacity: -5}} {
		if _, err := NewTGI(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
