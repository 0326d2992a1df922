package prefixcache

import (
	"errors"
	"testing"
	"time"

	"github.com/unfray/unfray/vocab"
)

// runScript reads requests out of data and checks after each what must hold.
func runScript(t *testing.T, c Cache, data []byte, check func(), unit int) {
	type entry struct {
		lease  Lease
		prompt []vocab.ID
	}
	var running []entry
	var seen [][]vocab.ID // prompts with their outputs
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	bits := func(ids []vocab.ID, n int) []vocab.ID {
		for b := next(); n > 0; n-- {
			ids = append(ids, vocab.ID(b>>(n%8)&1))
		}
		return ids
	}
	for len(data) > 0 {
		if op := next(); op%4 == 0 && len(running) > 0 {
			i := op / 4 % len(running)
			e := running[i]
			running = append(running[:i], running[i+1:]...)
			output := bits(nil, next()%40)
			c.End(e.lease, output)
			c.End(e.lease, output) // does nothing
			seen = append(seen, append(e.prompt, output...))
		} else {
			var prompt []vocab.ID
			if len(seen) > 0 {
				old := seen[op/4%len(seen)]
				prompt = append(prompt, old[:min(next(), len(old))]...)
			}
			prompt = bits(prompt, next()%40)
			l, err := c.Begin(&Request{Prompt: prompt, Bypass: op%16 == 3, Priority: op % 3})
			if err == nil {
				limit := max(len(prompt)-1, 0)
				if l.Cached < 0 || l.Cached > limit || l.Cached%unit != 0 && l.Cached != limit {
					t.Fatalf("cached %d of %d", l.Cached, len(prompt))
				}
				seen = append(seen, prompt)
				running = append(running, entry{l, prompt})
			} else if !errors.Is(err, ErrNoRoom) && !errors.Is(err, ErrTooLarge) {
				t.Fatal(err)
			}
		}
		check()
	}
	for _, e := range running {
		c.End(e.lease, nil)
	}
	check()
}

func FuzzRadix(f *testing.F) {
	f.Add([]byte("\x00\x08\x00\x00abcdefghijklmnop"))
	f.Add([]byte("\x03\x14\x01\x03The quick brown fox jumps over the lazy dog"))
	f.Add([]byte("\x01\x00\x07\x02\xff\xff\x00\x00\xaa\x55\x04\x08\x0c\x10\x14"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 4 {
			return
		}
		o := RadixOptions{PageSize: 1 + int(data[0]%5), Policy: Policies[int(data[2])%len(Policies)], Bigrams: data[3]&1 > 0, Prefill: int(data[3]) % 50}
		o.Capacity = o.PageSize * int(data[1])
		o.Chunk = o.PageSize * int(data[3]/2%5)
		r, err := NewRadix(o)
		if err != nil {
			t.Fatal(err)
		}
		runScript(t, r, data[4:], func() { checkRadix(t, r) }, o.PageSize)
		if r.tree.locked > 0 || r.private > 0 || len(r.running) > 0 {
			t.Errorf("%d pages locked, %d private without a running request", r.tree.locked, r.private)
		}
		for r.tree.evict() > 0 {
		}
		if r.tree.size != 0 || len(r.tree.kids) != 0 || len(r.tree.roots) != 0 {
			t.Errorf("%d pages, %d nodes, %d roots after all was evicted", r.tree.size, len(r.tree.kids), len(r.tree.roots))
		}
	})
}

func FuzzTGI(f *testing.F) {
	f.Add([]byte("\x00\x08\x01abcdefghijklmnop"))
	f.Add([]byte("\x02\x14\x05The quick brown fox jumps over the lazy dog"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 3 {
			return
		}
		o := TGIOptions{BlockSize: 1 + int(data[0]%4), Output: int(data[2] % 20)}
		if blocks := int(data[1]); blocks > 1 {
			o.Capacity = o.BlockSize * blocks
		}
		c, err := NewTGI(o)
		if err != nil {
			t.Fatal(err)
		}
		runScript(t, c, data[3:], func() { checkTGI(t, c) }, o.BlockSize)
		if o.Capacity > 0 && c.free+c.size != c.blocks()-1 {
			t.Errorf("%d blocks free and %d held, of %d", c.free, c.size, c.blocks()-1)
		}
	})
}

// What one placeholder stands for parts two prompts of the same tokens, from
// there on.
func TestRadixMedia(t *testing.T) {
	for _, page := range []int{1, 2} {
		r, err := NewRadix(RadixOptions{PageSize: page})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(media ...Media) int {
			t.Helper()
			l, err := r.Begin(&Request{Prompt: make([]vocab.ID, 12), Keys: Keys{Media: media}})
			if err != nil {
				t.Fatal(err)
			}
			r.End(l, nil)
			return l.Cached
		}
		ask(Media{"cat", 4, 4})
		for _, c := range []struct {
			media Media
			want  int
		}{
			{Media{"cat", 4, 4}, 12 - page},
			{Media{"dog", 4, 4}, 4},
			{Media{"cat", 4, 2}, 6},
			{Media{"cat", -2, 1 << 62}, 0},
			{Media{}, 4},
		} {
			if got := ask(c.media); got != c.want {
				t.Errorf("page %d, %+v: cached %d, want %d", page, c.media, got, c.want)
			}
		}
	}
}

// An edge of a million pages that short prompts cut again and again, and items
// that lie on each other, take linear time.
func TestRadixHostile(t *testing.T) {
	const n = 1 << 20
	start := time.Now()
	r, err := NewRadix(RadixOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tgi, err := NewTGI(TGIOptions{Capacity: n + 3000})
	if err != nil {
		t.Fatal(err)
	}
	media := make([]Media, n)
	for i := range media {
		media[i] = Media{"a", 0, n}
	}
	long := make([]vocab.ID, n)
	for _, c := range []Cache{r, tgi} {
		l, err := c.Begin(&Request{Prompt: long, Keys: Keys{Media: media}})
		if err != nil {
			t.Fatal(err)
		}
		c.End(l, nil)
		if l, err = c.Begin(&Request{Prompt: long}); err != nil {
			t.Fatal(err)
		}
		c.End(l, nil)
		for i := range 2000 {
			short := append(long[:i:i], 1)
			if l, err = c.Begin(&Request{Prompt: short}); err != nil {
				t.Fatal(err)
			}
			c.End(l, nil)
		}
	}
	checkRadix(t, r)
	checkTGI(t, tgi)
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestRadixOptions(t *testing.T) {
	for _, o := range []RadixOptions{
		{PageSize: -1}, {Capacity: -1}, {PageSize: 8, Capacity: 7}, {PageSize: 8, Chunk: 12}, {Chunk: -1},
		{Policy: "random"}, {Protect: -1}, {Prefill: -1}, {NextPrompt: -1},
	} {
		if _, err := NewRadix(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	r, err := NewRadix(RadixOptions{Capacity: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Begin(&Request{Prompt: make([]vocab.ID, 9)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("nine tokens of ten, and a page: %v", err)
	}
	l, err := r.Begin(&Request{Prompt: []vocab.ID{1, 2, 3, 4, 5, 6}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Begin(&Request{Prompt: []vocab.ID{7, 8, 9}}); !errors.Is(err, ErrNoRoom) {
		t.Errorf("three tokens and a page, of four: %v", err)
	}
	r.End(l, nil)
	if _, err := r.Begin(&Request{Prompt: []vocab.ID{7, 8, 9}}); err != nil {
		t.Errorf("after the other ended: %v", err)
	}
	r.Reset()
	if s := r.Stats(); s != (Stats{Unit: 1}) || r.free() != 10 {
		t.Errorf("after a reset: %+v, %d free", s, r.free())
	}
}
