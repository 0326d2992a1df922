package prefixcache

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// A radixTrace is a line of testdata/sglang/radix.jsonl.gz
// or testdata/tgi/radix.jsonl.gz.
type radixTrace struct {
	Page     int
	Capacity int
	Policy   Policy
	Chunk    int
	Bigrams  bool
	Output   int // TGI's max_new_tokens
	Config   struct {
		Protect    int `json:"protected_threshold"`
		Prefill    int `json:"threshold"`
		NextPrompt int `json:"next_prompt_estimate"`
	}
	Events []radixEvent
}

type radixEvent struct {
	Prompt            [][3]int // of Begin; nil: End
	Salt, LoRA, Extra string
	Bypass            bool
	Short             bool // its first token is its last: kept at the end only
	Priority          int
	Cached            int // -1: no room

	End    int // index among the running requests
	Output [][3]int

	// In tokens, after the event.
	Evicted, Held, Free int
}

// recordedToken is token of the scripts that recorded the traces.
func recordedToken(stream, i int) vocab.ID {
	return vocab.ID((stream*7919 + i*31 + i*i%127) % 50021)
}

func recordedTokens(runs [][3]int) []vocab.ID {
	var ids []vocab.ID
	for _, run := range runs {
		for i := range run[2] {
			ids = append(ids, recordedToken(run[0], run[1]+i))
		}
	}
	return ids
}

// recordedLines reads a compressed file of JSON values.
func recordedLines[T any](t *testing.T, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var lines []T
	for d := json.NewDecoder(z); ; {
		var line T
		switch err := d.Decode(&line); err {
		case nil:
			lines = append(lines, line)
		case io.EOF:
			return lines
		default:
			t.Fatalf("%s: %v", path, err)
		}
	}
}

// replayRecorded runs the events and compares after each of them; state tells
// the tokens evicted, held and free.
func replayRecorded(t *testing.T, c Cache, events []radixEvent, state func() (evicted, held, free int)) {
	t.Helper()
	var running []Lease
	for i, e := range events {
		if e.Prompt == nil {
			c.End(running[e.End], recordedTokens(e.Output))
			running = append(running[:e.End], running[e.End+1:]...)
		} else {
			l, err := c.Begin(&Request{
				Prompt:   recordedTokens(e.Prompt),
				Keys:     Keys{Salt: e.Salt, LoRA: e.LoRA, Extra: e.Extra},
				Bypass:   e.Bypass,
				Priority: e.Priority,
			})
			switch {
			case e.Cached < 0 && !errors.Is(err, ErrNoRoom):
				t.Fatalf("event %d: found room, %v", i, err)
			case e.Cached >= 0 && err != nil:
				t.Fatalf("event %d: %v", i, err)
			case e.Cached >= 0 && l.Cached != e.Cached:
				t.Fatalf("event %d: cached %d, want %d", i, l.Cached, e.Cached)
			}
			if err == nil {
				running = append(running, l)
			}
		}
		if e.Short {
			continue
		}
		if evicted, held, free := state(); evicted != e.Evicted || held != e.Held || free != e.Free {
			t.Fatalf("event %d: evicted %d, held %d, free %d, want %d, %d, %d", i, evicted, held, free, e.Evicted, e.Held, e.Free)
		}
	}
}

func TestRadixAsSGLang(t *testing.T) {
	for _, tr := range recordedLines[radixTrace](t, "testdata/sglang/radix.jsonl.gz") {
		name := fmt.Sprintf("%s/page=%d/capacity=%d/chunk=%d/bigrams=%v", tr.Policy, tr.Page, tr.Capacity, tr.Chunk, tr.Bigrams)
		t.Run(name, func(t *testing.T) {
			r, err := NewRadix(RadixOptions{
				PageSize: tr.Page, Capacity: tr.Capacity, Chunk: tr.Chunk, Bigrams: tr.Bigrams,
				Policy: tr.Policy, Protect: tr.Config.Protect, Prefill: tr.Config.Prefill, NextPrompt: tr.Config.NextPrompt,
			})
			if err != nil {
				t.Fatal(err)
			}
			replayRecorded(t, r, tr.Events, func() (int, int, int) {
				checkRadix(t, r)
				s := r.Stats()
				return int(s.Evictions) * s.Unit, int(s.Blocks) * s.Unit, r.free() * s.Unit
			})
		})
	}
}

// checkRadix checks what must be true between requests.
func checkRadix(t *testing.T, r *Radix) {
	t.Helper()
	tree := r.tree
	size, locked, leaves := 0, 0, 0
	kids := make(map[uint64]int)
	for edge, n := range tree.kids {
		kids[n.parent.id]++
		size += len(n.edge)
		if n.locks > 0 {
			locked += len(n.edge)
		}
		if n.kids == 0 && n.locks == 0 {
			leaves++
			if n.pos < 0 || tree.leaves.nodes[n.pos] != n {
				t.Fatalf("leaf %d is not in the heap", n.id)
			}
		}
		if len(n.edge) == 0 || edge.page != n.edge[0] || edge.parent != n.parent.id || n.end != n.parent.end+len(n.edge) {
			t.Fatalf("node %d is not where its edge says", n.id)
		}
		if n.parent.locks < n.locks && n.parent.parent != nil || n.slack > len(n.edge) {
			t.Fatalf("node %d: %d locks under %d, slack %d of %d", n.id, n.locks, n.parent.locks, n.slack, len(n.edge))
		}
	}
	for _, n := range tree.kids {
		if kids[n.id] != n.kids {
			t.Fatalf("node %d: %d children, not %d", n.id, kids[n.id], n.kids)
		}
	}
	private := 0
	for _, run := range r.running {
		private += run.private
	}
	if size != tree.size || locked != tree.locked || leaves != len(tree.leaves.nodes) || private != r.private || r.free() < 0 {
		t.Fatalf("size %d, locked %d, leaves %d, private %d, free %d; counted %d, %d, %d, %d", tree.size, tree.locked, len(tree.leaves.nodes), r.private, r.free(), size, locked, leaves, private)
	}
	for space, root := range tree.roots {
		if kids[root.id] == 0 || kids[root.id] != root.kids {
			t.Fatalf("space %v: %d children, not %d", space, kids[root.id], root.kids)
		}
	}
}

// Without a limit, what is found is the longest prefix of whole pages that any
// earlier prompt and its output share with this one, less what covers the last
// token.
func TestRadixUnlimited(t *testing.T) {
	for _, page := range []int{1, 2, 7, 16} {
		for _, bigrams := range []bool{false, true} {
			for _, chunk := range []int{0, 2 * page} {
				t.Run(fmt.Sprintf("page=%d/bigrams=%v/chunk=%d", page, bigrams, chunk), func(t *testing.T) {
					r, err := NewRadix(RadixOptions{PageSize: page, Bigrams: bigrams, Chunk: chunk})
					if err != nil {
						t.Fatal(err)
					}
					testUnlimited(t, r, page, bigrams)
				})
			}
		}
	}
}

func testUnlimited(t *testing.T, r *Radix, page int, bigrams bool) {
	type entry struct {
		ids  []vocab.ID
		keys string
	}
	rng := rand.New(rand.NewPCG(1, uint64(page)))
	var held []entry
	b := 0
	if bigrams {
		b = 1
	}
	for i := range 300 {
		var prompt []vocab.ID
		if len(held) > 0 && rng.IntN(4) > 0 {
			old := held[rng.IntN(len(held))].ids
			prompt = append(prompt, old[:rng.IntN(len(old)+1)]...)
		}
		for range 1 + rng.IntN(3*page) {
			prompt = append(prompt, vocab.ID(rng.IntN(3)))
		}
		keys := Keys{Salt: []string{"", "", "a"}[rng.IntN(3)], Extra: []string{"", "", "b"}[rng.IntN(3)]}
		q := &Request{Prompt: prompt, Keys: keys, Bypass: rng.IntN(10) == 0}
		want := 0
		for _, e := range held {
			if e.keys != keys.Salt+"/"+keys.Extra || q.Bypass {
				continue
			}
			n := 0
			for n < min(len(e.ids), len(prompt)-1) && e.ids[n] == prompt[n] {
				n++
			}
			want = max(want, max(n-b, 0)/page*page)
		}
		l, err := r.Begin(q)
		if err != nil || l.Cached != want {
			t.Fatalf("request %d: cached %d, %v, want %d", i, l.Cached, err, want)
		}
		output := make([]vocab.ID, rng.IntN(2*page+2))
		for j := range output {
			output[j] = vocab.ID(rng.IntN(3))
		}
		r.End(l, output)
		all := append(prompt[:len(prompt):len(prompt)], output[:max(len(output)-1, 0)]...)
		held = append(held, entry{all, keys.Salt + "/" + keys.Extra})
		checkRadix(t, r)
	}
	if r.tree.locked != 0 {
		t.Errorf("%d pages locked without a running request", r.tree.locked)
	}
}
