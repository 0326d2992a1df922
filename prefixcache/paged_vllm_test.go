package prefixcache

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// A vllmEngine is a line of testdata/vllm/traces.jsonl.
type vllmEngine struct {
	Seed   int
	Steps  int
	Groups []struct {
		Kind      string
		BlockSize int `json:"block_size"`
		Window    int
		Eagle     bool
	}
	Blocks, DCP, Lookahead, Retention, Batch int
	Eagle                                    bool
	Running, Vocabulary, Turn, Longest, Gap  int
	Async                                    bool
}

func (e *vllmEngine) options() PagedOptions {
	o := PagedOptions{
		Blocks: e.Blocks, ContextParallel: e.DCP, Eagle: e.Eagle,
		Lookahead: e.Lookahead, Retention: e.Retention, BatchTokens: e.Batch, Async: e.Async,
	}
	kinds := map[string]LayerKind{"full": FullAttention, "window": SlidingWindow, "mamba": Mamba}
	for _, g := range e.Groups {
		o.Groups = append(o.Groups, LayerGroup{
			Kind: kinds[g.Kind], BlockSize: g.BlockSize, Window: g.Window, Eagle: g.Eagle,
		})
	}
	return o
}

type vllmConversation struct {
	tokens []vocab.ID
	keys   Keys
}

// A vllmTrace generates the requests of testdata/vllm/record_traces.py.
type vllmTrace struct {
	*vllmEngine
	random        splitMix
	conversations []*vllmConversation
}

func (t *vllmTrace) tokens(n int) []vocab.ID {
	s := make([]vocab.ID, n)
	for i := range s {
		s[i] = vocab.ID(t.random.below(uint64(t.Vocabulary)))
	}
	return s
}

func (t *vllmTrace) conversation() *vllmConversation {
	r := &t.random
	var c *vllmConversation
	if len(t.conversations) == 0 || r.below(5) == 0 {
		system := splitMix(r.below(3))
		c = &vllmConversation{}
		for range r.below(uint64(t.Turn)) {
			c.tokens = append(c.tokens, vocab.ID(system.below(uint64(t.Vocabulary))))
		}
		c.keys.Salt = []string{"", "", "", "salt"}[r.below(4)]
		c.keys.LoRA = []string{"", "", "", "adapter"}[r.below(4)]
		c.keys.Media = r.media(len(c.tokens))
		t.conversations = append(t.conversations, c)
	} else {
		c = t.conversations[r.below(uint64(len(t.conversations)))]
		if r.below(4) == 0 {
			n := r.below(uint64(len(c.tokens) + 1))
			cut := *c
			cut.tokens = slices.Clone(c.tokens[:n])
			cut.keys.Media = nil
			for _, m := range c.keys.Media {
				if m.Offset+m.Length <= n {
					cut.keys.Media = append(cut.keys.Media, m)
				}
			}
			c = &cut
			t.conversations = append(t.conversations, c)
		}
	}
	if len(c.tokens) > t.Longest {
		c.tokens, c.keys.Media = nil, nil
	}
	c.tokens = append(c.tokens, t.tokens(1+r.below(uint64(t.Turn)))...)
	return c
}

// TestPagedIsVLLM replays what vLLM's own KVCacheManager did: the tokens found,
// the blocks evicted and those cached must be equal after every step.
func TestPagedIsVLLM(t *testing.T) {
	f, err := os.Open("testdata/vllm/traces.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	requests, found, evicted := 0, 0, int64(0)
	for lines.Scan() {
		var line struct {
			Engine  vllmEngine
			Results [][3]int
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(line.Engine.Seed), func(t *testing.T) {
			s := replayVLLM(t, &line.Engine, line.Results)
			requests += int(s.Requests)
			found += int(s.HitTokens)
			evicted += s.Evictions
		})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d requests, %d tokens found, %d blocks evicted", requests, found, evicted)
}

func replayVLLM(t *testing.T, e *vllmEngine, results [][3]int) Stats {
	type running struct {
		lease Lease
		of    *vllmConversation
	}
	trace := vllmTrace{vllmEngine: e, random: splitMix(e.Seed)}
	p := mustPaged(t, e.options())
	var active []running
	for step, want := range results {
		r := &trace.random
		evicted := p.Stats().Evictions
		var got [3]int
		if len(active) < e.Running && (r.below(2) == 0 || len(active) == 0) {
			c := trace.conversation()
			bypass := r.below(15) == 0
			l, err := p.Begin(&Request{Prompt: c.tokens, Keys: c.keys, Bypass: bypass})
			switch {
			case errors.Is(err, ErrNoRoom), errors.Is(err, ErrTooLarge):
				got[0] = -1
			case err != nil:
				t.Fatal(err)
			default:
				got[0] = l.Cached
				active = append(active, running{l, c})
			}
		} else {
			i := r.below(uint64(len(active)))
			a := active[i]
			active = slices.Delete(active, i, i+1)
			output := trace.tokens(r.below(uint64(e.Turn)))
			p.End(a.lease, output)
			if r.below(4) != 0 {
				a.of.tokens = append(a.of.tokens, output...)
			}
			got[0] = -2
		}
		got[1] = int(p.Stats().Evictions - evicted)
		got[2] = int(p.Stats().Blocks)
		if got != want {
			t.Fatalf("step %d of %+v: found, evicted, cached: got %v, vLLM has %v", step, *e, got, want)
		}
	}
	return p.Stats()
}

// A vllmRequest is one of testdata/vllm/record_scheduler.py.
type vllmRequest struct {
	prompt, output []vocab.ID
	keys           Keys
}

func (t *vllmTrace) requests() []vllmRequest {
	const eos = 1 << 20
	r := &t.random
	var requests []vllmRequest
	for number := range t.Steps {
		c := t.conversation()
		output := t.tokens(1 + r.below(uint64(t.Turn)))
		r.below(uint64(t.Gap))
		keys := c.keys
		keys.Media = nil
		q := vllmRequest{prompt: slices.Clone(c.tokens), output: slices.Clone(output), keys: keys}
		if number%2 == 1 {
			q.output[len(output)-1] = eos
		}
		requests = append(requests, q)
		if r.below(4) != 0 {
			c.tokens = append(c.tokens, output...)
		}
	}
	return requests
}

// TestPagedUnderLoad replays what vLLM's whole scheduler did with many requests
// at once, much of it in memory for a few of them. A simulation that knows no
// time tells most of them the same, more if it is told how far each is.
func TestPagedUnderLoad(t *testing.T) {
	f, err := os.Open("testdata/vllm/scheduled.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	// By whether there is a sliding window, and whether progress is told.
	var equal, requests [2][2]int
	for lines.Scan() {
		var line vllmSchedule
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(line.Engine.Seed), func(t *testing.T) {
			window := len(line.Engine.Groups) - 1
			for told := range 2 {
				if line.Preempted > 0 {
					line.replay(t, told == 1)
					continue
				}
				equal[window][told] += line.replay(t, told == 1)
				requests[window][told] += line.Engine.Steps
			}
		})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for window, floors := range [2][2]int{{98, 99}, {91, 98}} {
		for told, floor := range floors {
			e, n := equal[window][told], requests[window][told]
			t.Logf("sliding window %d, told %d: %d of %d requests are equal", window, told, e, n)
			if n == 0 || e*100 < n*floor {
				t.Errorf("that is less than %d %%", floor)
			}
		}
	}
}

// A vllmSchedule is a line of testdata/vllm/scheduled.jsonl.
type vllmSchedule struct {
	Engine    vllmEngine
	Preempted int
	Events    [][]int
}

// replay returns how many requests are equal.
func (s *vllmSchedule) replay(t *testing.T, told bool) int {
	e := &s.Engine
	trace := vllmTrace{vllmEngine: e, random: splitMix(e.Seed)}
	requests := trace.requests()
	o := e.options()
	p := mustPaged(t, o)
	prefilled := make([]int, len(requests))
	for _, event := range s.Events {
		if len(event) == 2 {
			prefilled[event[0]] = event[1]
		}
	}
	leases := map[int]Lease{}
	var active []int
	step := 0
	equal, refused, ours, theirs := 0, 0, 0, 0
	for _, event := range s.Events {
		q := &requests[event[0]]
		if len(event) == 2 {
			p.End(leases[event[0]], q.output)
			active = slices.DeleteFunc(active, func(n int) bool { return n == event[0] })
			continue
		}
		for ; told && step < event[2]; step++ {
			for _, n := range active {
				done := max(step+1-prefilled[n]+1, 0)
				p.Generated(leases[n], requests[n].output[:min(done, len(requests[n].output))])
			}
		}
		l, err := p.Begin(&Request{Prompt: q.prompt, Keys: q.keys})
		if err != nil {
			refused++
		}
		leases[event[0]] = l
		active = append(active, event[0])
		if err == nil && l.Cached == event[1] {
			equal++
		}
		ours += l.Cached
		theirs += event[1]
	}
	t.Logf("%d requests, told %v: %d equal, %d did not fit, %d preempted; %d tokens found, %d by vLLM; async %v, batch %d, %d groups, %d evictions",
		len(requests), told, equal, refused, s.Preempted, ours, theirs, e.Async, e.Batch, len(e.Groups), p.Stats().Evictions)
	return equal
}
