package prefixcache

import (
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

func countUp(from, n int) []vocab.ID {
	s := make([]vocab.ID, n)
	for i := range s {
		s[i] = vocab.ID(from + i)
	}
	return s
}

func mustPaged(t testing.TB, o PagedOptions) *Paged {
	t.Helper()
	p, err := NewPaged(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func beginPaged(t testing.TB, c Cache, r *Request) Lease {
	t.Helper()
	l, err := c.Begin(r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPagedHits(t *testing.T) {
	prompt := countUp(0, 100)
	for _, c := range []struct {
		name   string
		o      PagedOptions
		first  Request
		output int
		then   Request
		want   int
	}{
		{"same prompt", PagedOptions{}, Request{Prompt: prompt}, 0, Request{Prompt: prompt}, 96},
		{"whole blocks: the last is computed again", PagedOptions{}, Request{Prompt: prompt[:96]}, 0, Request{Prompt: prompt[:96]}, 80},
		{"output", PagedOptions{}, Request{Prompt: prompt[:90]}, 10, Request{Prompt: prompt}, 96},
		{"last token of the output", PagedOptions{}, Request{Prompt: prompt[:90]}, 6, Request{Prompt: prompt}, 80},
		{"one token that differs", PagedOptions{}, Request{Prompt: append(countUp(0, 40), 7)}, 0, Request{Prompt: prompt}, 32},
		{"shorter than a block", PagedOptions{}, Request{Prompt: prompt[:10]}, 7, Request{Prompt: prompt}, 16},
		{"eagle", PagedOptions{Eagle: true}, Request{Prompt: prompt}, 0, Request{Prompt: prompt}, 80},
		{"context parallel", PagedOptions{ContextParallel: 2}, Request{Prompt: prompt}, 0, Request{Prompt: prompt}, 96},
		{"context parallel", PagedOptions{ContextParallel: 4}, Request{Prompt: prompt}, 0, Request{Prompt: prompt}, 64},
		{"salt", PagedOptions{}, Request{Prompt: prompt}, 0, Request{Prompt: prompt, Keys: Keys{Salt: "a"}}, 0},
		{"same salt", PagedOptions{}, Request{Prompt: prompt, Keys: Keys{Salt: "a"}}, 0, Request{Prompt: prompt, Keys: Keys{Salt: "a"}}, 96},
		{"adapter and salt are not one name", PagedOptions{}, Request{Prompt: prompt, Keys: Keys{Salt: "ab"}}, 0, Request{Prompt: prompt, Keys: Keys{LoRA: "a", Salt: "b"}}, 0},
		{"bypass", PagedOptions{}, Request{Prompt: prompt}, 0, Request{Prompt: prompt, Bypass: true}, 0},
		{"bypass is kept", PagedOptions{}, Request{Prompt: prompt, Bypass: true}, 0, Request{Prompt: prompt}, 96},
		{"another image", PagedOptions{}, Request{Prompt: prompt, Keys: Keys{Media: []Media{{"a", 50, 20}}}}, 0,
			Request{Prompt: prompt, Keys: Keys{Media: []Media{{"b", 50, 20}}}}, 48},
		{"image that the output's block holds", PagedOptions{}, Request{Prompt: prompt[:90], Keys: Keys{Media: []Media{{"a", 84, 4}}}}, 8,
			Request{Prompt: prompt, Keys: Keys{Media: []Media{{"a", 84, 4}}}}, 96},
		{"image that the output's block does not hold", PagedOptions{}, Request{Prompt: prompt[:90], Keys: Keys{Media: []Media{{"a", 84, 4}}}}, 8,
			Request{Prompt: prompt}, 80},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustPaged(t, c.o)
			l := beginPaged(t, p, &c.first)
			p.End(l, prompt[len(c.first.Prompt):min(len(prompt), len(c.first.Prompt)+c.output)])
			p.End(l, nil)
			if got := beginPaged(t, p, &c.then).Cached; got != c.want {
				t.Errorf("%d tokens found, want %d", got, c.want)
			}
		})
	}
}

// TestPagedWithoutLimit repeats one prompt: without a limit that takes no
// memory, while an engine keeps the block that it computes again each time.
func TestPagedWithoutLimit(t *testing.T) {
	for blocks, want := range map[int]int64{0: 6, 1000: 15} {
		p := mustPaged(t, PagedOptions{Blocks: blocks})
		for range 10 {
			p.End(beginPaged(t, p, &Request{Prompt: countUp(0, 96)}), nil)
		}
		if got := p.Stats().Blocks; got != want {
			t.Errorf("%d blocks: %d are cached, want %d", blocks, got, want)
		}
	}
}

func TestPagedRefuses(t *testing.T) {
	p := mustPaged(t, PagedOptions{Blocks: 11})
	held := beginPaged(t, p, &Request{Prompt: countUp(0, 100)})
	for _, c := range []struct {
		tokens int
		want   error
	}{{48, nil}, {49, ErrNoRoom}, {160, ErrNoRoom}, {161, ErrTooLarge}} {
		l, err := p.Begin(&Request{Prompt: countUp(1000, c.tokens)})
		if err != c.want {
			t.Errorf("%d tokens: got %v, want %v", c.tokens, err, c.want)
		}
		p.End(l, nil)
	}
	p.End(held, nil)
	if s := p.Stats(); s.Requests != 2 || s.PromptTokens != 148 || s.HitTokens != 0 {
		t.Errorf("refused prompts are counted: %+v", s)
	}
	if got := beginPaged(t, p, &Request{Prompt: countUp(0, 100)}).Cached; got != 96 {
		t.Errorf("%d tokens found after refusals, want 96", got)
	}
	if _, err := p.BeginBlocks([]uint64{1, 2}, 33); err == nil {
		t.Error("no error for 33 tokens in two blocks")
	}
}

func TestPagedReset(t *testing.T) {
	p := mustPaged(t, PagedOptions{Blocks: 20})
	old := beginPaged(t, p, &Request{Prompt: countUp(0, 50)})
	p.End(old, countUp(50, 50))
	p.Reset()
	if s := p.Stats(); s != (Stats{Unit: 16}) {
		t.Errorf("after a reset: %+v", s)
	}
	if l := beginPaged(t, p, &Request{Prompt: countUp(0, 50)}); l.Cached != 0 {
		t.Errorf("%d tokens found after a reset", l.Cached)
	}
}

func TestPagedOptionsErrors(t *testing.T) {
	for name, o := range map[string]PagedOptions{
		"BlockSize":           {BlockSize: -1},
		"Blocks is 1":         {Blocks: 1},
		"Lookahead":           {Lookahead: -1},
		"Retention":           {Retention: 16},
		"multiple of 16":      {Retention: 24, Groups: []LayerGroup{{}, {Kind: SlidingWindow, Window: 4}}},
		"Groups[0].Window":    {Groups: []LayerGroup{{Kind: SlidingWindow}}},
		"Groups[0].Kind":      {Groups: []LayerGroup{{Kind: 9}}},
		"Groups[1].BlockSize": {Groups: []LayerGroup{{}, {BlockSize: -2}}},
		"one size":            {Groups: []LayerGroup{{}, {Kind: Mamba, BlockSize: 32}}},
		"context parallelism": {ContextParallel: 2, Groups: []LayerGroup{{}, {Kind: SlidingWindow, Window: 8}}},
		"common multiple":     {Groups: []LayerGroup{{BlockSize: 1<<23 + 1}, {BlockSize: 1<<23 - 1}}},
	} {
		if _, err := NewPaged(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got error %v, want one about %s", err, name)
		}
	}
}

// TestEndBlocksAfterGenerated tells of fewer tokens at the end than were told before: a caller's mistake, and no panic.
func TestEndBlocksAfterGenerated(t *testing.T) {
	p := mustPaged(t, PagedOptions{BlockSize: 2, Blocks: 100})
	l := beginPaged(t, p, &Request{Prompt: countUp(1, 3)})
	p.Generated(l, make([]vocab.ID, 100))
	p.EndBlocks(l, nil, 2)
	if _, err := p.Begin(&Request{Prompt: make([]vocab.ID, 2*99)}); err != nil {
		t.Errorf("blocks are still held: %v", err)
	}
	checkPaged(t, p)
}
