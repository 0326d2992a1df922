package engine

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/vocab"
)

func TestConformance(t *testing.T) {
	v := backendtest.Vocabulary(backendtest.VocabularyOptions{})
	eog := vocab.NewMask(v.Len())
	for _, id := range v.Specials().EOG {
		eog.Set(id)
	}
	backendtest.Run(t, backendtest.Suite{
		Vocab:   v,
		Prompts: [][]vocab.ID{{5, 6, 7, 8, 9}, {10, 11, 12, 13}},
		Open: func(t *testing.T) backend.Backend {
			lim := fakeLimits(func(l *limits) { l.vocab, l.context, l.cells = v.Len(), 64, 128 })
			return newEngine(newFake(t, lim), backend.Info{Name: "fake"}, lim, eog)
		},
	})
}

// band is a Steer that allows the IDs from lo to hi-1 and leaves the first
// uncounted tokens uncounted.
type band struct {
	lo, hi    vocab.ID
	uncounted int
	n         int
}

func (b *band) Mask() vocab.Mask {
	m := vocab.NewMask(fakeVocab)
	for id := b.lo; id < b.hi; id++ {
		m.Set(id)
	}
	return m
}

func (b *band) Accept(vocab.ID) backend.Verdict {
	b.n++
	return backend.Verdict{Uncounted: b.n <= b.uncounted}
}

// randomRequest returns the same request at every call with the same seed.
// Prompts share prefixes often.
func randomRequest(seed uint64) *backend.Request {
	r := rand.New(rand.NewPCG(seed, 2))
	family := rand.New(rand.NewPCG(r.Uint64N(5), 3))
	prompt := make([]vocab.ID, 1+r.IntN(30))
	for i := range prompt {
		prompt[i] = vocab.ID(2 + family.IntN(fakeVocab-2))
	}
	if r.IntN(3) == 0 {
		prompt[len(prompt)-1] = vocab.ID(2 + r.IntN(fakeVocab-2))
	}
	req := &backend.Request{Prompt: prompt, MaxTokens: r.IntN(20)}
	if r.IntN(2) == 0 {
		s := r.Uint64()
		req.Sampling = backend.Sampling{
			Temperature: 1, TopK: r.IntN(20), TopP: r.Float64(), RepeatPenalty: 1.1,
			FrequencyPenalty: r.Float64(), LogitBias: map[vocab.ID]float64{3: 2}, Seed: &s,
		}
	}
	if r.IntN(2) == 0 {
		lo := vocab.ID(r.IntN(fakeVocab - 4))
		req.Steer = &band{lo: lo, hi: lo + 4, uncounted: r.IntN(3)}
	}
	if n := len(prompt); n > 1 && r.IntN(2) == 0 {
		req.Keep = max(1, n-1-r.IntN(4))
		req.Choose = &hashChooser{trunk: prompt[req.Keep:], asks: r.IntN(4)}
		req.Logprobs = r.IntN(2) == 0
	}
	return req
}

// Whatever runs beside a request, is evicted or sent back to the queue: it
// gives what it gives alone.
func TestManyRequestsGiveWhatTheyGiveAlone(t *testing.T) {
	for name, change := range map[string]func(*limits){
		"room for all":    func(l *limits) { l.cells = 400 },
		"scarce cells":    nil,
		"one full prompt": func(l *limits) { l.cells = l.context },
		"one sequence":    func(l *limits) { l.sequences = 1 },
		"tiny batch":      func(l *limits) { l.batch, l.outputs = 4, 4 },
	} {
		for _, rigid := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				lim := fakeLimits(change)
				lim.queue = 200
				// No step before all requests are there.
				gate := make(chan struct{})
				e, f := openFake(t, lim, func(f *fakeDecoder) { f.rigid, f.gate = rigid, gate })
				var wg, admitted sync.WaitGroup
				admitted.Add(150)
				for i := range uint64(150) {
					wg.Go(func() {
						req := randomRequest(i)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						s, err := e.Generate(ctx, req)
						admitted.Done()
						if err != nil {
							t.Error(err)
							return
						}
						if i%7 == 0 {
							s.Next()
							cancel()
						}
						toks, err := drain(s)
						if i%7 == 0 {
							return
						}
						want, end := alone(randomRequest(i), lim.context)
						if err != nil || !slices.Equal(idsOf(toks), want) {
							t.Errorf("request %d: %v, %v; alone %v", i, idsOf(toks), err, want)
						}
						if got := s.End(); got.Reason != end.Reason || got.EndToken != end.EndToken || got.ForwardPasses < 1 || got.CachedTokens >= len(req.Prompt) {
							t.Errorf("request %d: end %+v; alone %+v", i, got, end)
						}
					})
				}
				admitted.Wait()
				close(gate)
				wg.Wait()
				st := waitIdle(t, e)
				e.Close() // after which the decoder may be looked at
				if st.CellsUsed != len(f.cells) {
					t.Errorf("the engine counts %d cells, the decoder has %d", st.CellsUsed, len(f.cells))
				}
				if name == "one full prompt" && st.Preemptions == 0 {
					t.Error("nothing was sent back to the queue; the test does not test it")
				}
				if !rigid && st.CachedTokens == 0 {
					t.Error("no prefix was reused")
				}
			})
		}
	}
}

// waitIdle waits until nothing runs or waits.
func waitIdle(t testing.TB, e *Engine) Stats {
	t.Helper()
	for range 2000 {
		if st := e.Stats(); st.Active == 0 && st.Waiting == 0 {
			return st
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("still busy: %+v", e.Stats())
	return Stats{}
}

// A short prompt that comes again has more generated behind it than it has
// tokens, and still runs in the cells where it ran.
func TestSamePromptSameCells(t *testing.T) {
	c := newCache(noDecoder{}, 4, 64)
	run := func(ids []vocab.ID, reusable, generated int) (*sequence, []int32) {
		p := c.place(ids, reusable)
		n := c.occupy(p)
		c.extend(p.dst, append(slices.Clone(ids[n:]), make([]vocab.ID, generated)...))
		p.dst.prompt, p.dst.used = len(ids), c.tick()
		return p.dst, slices.Clone(p.dst.cells[:len(ids)])
	}
	seq, cells := run(prompt(5), 3, 12)
	run([]vocab.ID{50, 40, 30}, 1, 4)
	for range 3 {
		if s, got := run(prompt(5), 3, 12); s != seq || !slices.Equal(got, cells) {
			t.Errorf("sequence %d, cells %v; the first time %d, %v", s.num, got, seq.num, cells)
		}
	}
	if s, _ := run(prompt(6), 4, 1); s == seq {
		t.Error("another prompt took the place of more tokens than it could reuse")
	}
}

func prompt(n int) []vocab.ID {
	ids := make([]vocab.ID, n)
	for i := range ids {
		ids[i] = vocab.ID(2 + i%(fakeVocab-2))
	}
	return ids
}

// noEnd keeps the end-of-generation token out.
func noEnd() *band { return &band{lo: 2, hi: fakeVocab} }

func TestPrefixReuse(t *testing.T) {
	e, f := openFake(t, fakeLimits(nil), nil)
	run := func(what string, ids []vocab.ID, cached int) {
		t.Helper()
		before := f.evaluated.Load()
		toks, end := generate(t, e, &backend.Request{Prompt: ids, MaxTokens: 5, Steer: noEnd()})
		want, _ := alone(&backend.Request{Prompt: ids, MaxTokens: 5, Steer: noEnd()}, 40)
		if !slices.Equal(idsOf(toks), want) {
			t.Errorf("%s: %v, want %v", what, idsOf(toks), want)
		}
		if end.CachedTokens != cached {
			t.Errorf("%s: %d tokens cached, want %d", what, end.CachedTokens, cached)
		}
		// The last generated token is never evaluated.
		if got, want := f.evaluated.Load()-before, int64(len(ids)-cached+4); got != want {
			t.Errorf("%s: %d tokens evaluated, want %d", what, got, want)
		}
	}
	p := prompt(20)
	run("first", p, 0)
	run("same again", p, 18)
	run("one more", append(slices.Clone(p), 9), 19)
	run("shorter", p[:10], 8)
	run("whole of the first still there", p, 18)
	run("parting in the middle", append(slices.Clone(p[:12]), 60, 61, 62), 12)
	run("other", []vocab.ID{50, 40, 30}, 0)
}

func TestIdenticalPromptsArePrefilledOnce(t *testing.T) {
	lim := fakeLimits(func(l *limits) { l.context, l.cells = 400, 400 })
	gate := make(chan struct{}, 1000)
	e, f := openFake(t, lim, func(f *fakeDecoder) { f.gate = gate })
	var streams []backend.Stream
	for range 4 {
		s, err := e.Generate(t.Context(), &backend.Request{Prompt: prompt(300), MaxTokens: 3, Steer: noEnd()})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	for range 1000 {
		gate <- struct{}{}
	}
	for i, s := range streams {
		if _, err := drain(s); err != nil {
			t.Fatal(err)
		}
		if want := min(i, 1) * 298; s.End().CachedTokens != want {
			t.Errorf("request %d: %d tokens cached, want %d", i, s.End().CachedTokens, want)
		}
	}
	// 300 once, then for each of the others two, and two generated for each.
	if got, want := f.evaluated.Load(), int64(300+3*2+4*2); got != want {
		t.Errorf("%d tokens evaluated, want %d", got, want)
	}
	// Three copies share 298 cells: apart they would not have fitted.
	if st := e.Stats(); st.Preemptions != 0 || st.Evictions != 0 {
		t.Errorf("%+v", st)
	}
}

func TestCancelFreesWithinOneStep(t *testing.T) {
	for name, how := range map[string]func(cancel func(), s backend.Stream){
		"context": func(cancel func(), s backend.Stream) { cancel() },
		"close":   func(cancel func(), s backend.Stream) { s.Close() },
	} {
		for phase, steps := range map[string]int{"prefill": 3, "generation": 20} {
			t.Run(name+" in "+phase, func(t *testing.T) {
				gate := make(chan struct{})
				lim := fakeLimits(func(l *limits) { l.context, l.cells = 200, 400 })
				e, f := openFake(t, lim, func(f *fakeDecoder) { f.gate = gate })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s, err := e.Generate(ctx, &backend.Request{Prompt: prompt(60), Steer: noEnd()})
				if err != nil {
					t.Fatal(err)
				}
				for range steps {
					gate <- struct{}{}
				}
				how(cancel, s)
				close(gate) // steps are free now: the engine stops by itself
				st := waitIdle(t, e)
				// One step was waiting at the gate, and one may have been planned.
				if got := f.decodes.Load(); got > int64(steps)+2 {
					t.Errorf("%d decodes after %d", got, steps)
				}
				if st.Idle != lim.sequences {
					t.Errorf("%+v", st)
				}
				if _, err := s.Next(); err == nil {
					t.Error("Next gave a token")
				}
			})
		}
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	gate := make(chan struct{})
	e, _ := openFake(t, fakeLimits(func(l *limits) { l.sequences = 1 }), func(f *fakeDecoder) { f.gate = gate })
	first, err := e.Generate(t.Context(), &backend.Request{Prompt: prompt(3), MaxTokens: 3, Steer: noEnd()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	second, err := e.Generate(ctx, &backend.Request{Prompt: prompt(3)})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := second.Next(); !errors.Is(err, context.Canceled) { // no step needed
		t.Errorf("Next: %v", err)
	}
	close(gate)
	if _, err := drain(first); err != nil {
		t.Error(err)
	}
	waitIdle(t, e)
	if end := second.End(); end.ForwardPasses != 0 || end.EndToken != vocab.None {
		t.Errorf("end of a request that never ran: %+v", end)
	}
}

func TestQueueLimit(t *testing.T) {
	for _, queue := range []int{0, 3} {
		gate := make(chan struct{})
		e, _ := openFake(t, fakeLimits(func(l *limits) { l.sequences, l.queue = 2, queue }), func(f *fakeDecoder) { f.gate = gate })
		req := &backend.Request{Prompt: prompt(3), MaxTokens: 2}
		var streams []backend.Stream
		for i := range 2 + queue {
			s, err := e.Generate(t.Context(), req)
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			streams = append(streams, s)
		}
		_, err := e.Generate(t.Context(), req)
		var full *backend.QueueFullError
		if !errors.As(err, &full) || full.RetryAfter < time.Second || full.RetryAfter > time.Minute {
			t.Errorf("queue %d: %v", queue, err)
		}
		if _, err := e.Logits(t.Context(), prompt(2), 0); !errors.As(err, &full) {
			t.Errorf("queue %d: Logits: %v", queue, err)
		}
		close(gate)
		for _, s := range streams {
			if _, err := drain(s); err != nil {
				t.Error(err)
			}
		}
		if _, err := e.Generate(t.Context(), req); err != nil {
			t.Errorf("after the queue was empty: %v", err)
		}
	}
}

// A reader that does not read holds up nobody.
func TestSlowReader(t *testing.T) {
	e, _ := openFake(t, fakeLimits(nil), nil)
	slow, err := e.Generate(t.Context(), &backend.Request{Prompt: prompt(2), Steer: noEnd()})
	if err != nil {
		t.Fatal(err)
	}
	generate(t, e, &backend.Request{Prompt: prompt(3), MaxTokens: 30, Steer: noEnd()})
	waitIdle(t, e)
	if toks, err := drain(slow); len(toks) != 38 || err != nil || slow.End().Reason != backend.FinishLength {
		t.Errorf("%d tokens, %v, %+v", len(toks), err, slow.End())
	}
}

type panicSteer struct{ inAccept bool }

func (p panicSteer) Mask() vocab.Mask {
	if !p.inAccept {
		panic("oops")
	}
	return nil
}

func (p panicSteer) Accept(vocab.ID) backend.Verdict { panic("oops") }

type emptySteer struct{ panicSteer }

func (emptySteer) Mask() vocab.Mask { return vocab.NewMask(fakeVocab) }

func TestBadSteerFailsAlone(t *testing.T) {
	gate := make(chan struct{})
	e, _ := openFake(t, fakeLimits(nil), func(f *fakeDecoder) { f.gate = gate })
	var streams []backend.Stream
	for _, st := range []backend.Steer{noEnd(), panicSteer{}, panicSteer{inAccept: true}, emptySteer{}} {
		s, err := e.Generate(t.Context(), &backend.Request{Prompt: prompt(4), MaxTokens: 8, Steer: st})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	close(gate)
	if toks, err := drain(streams[0]); len(toks) != 8 || err != nil {
		t.Errorf("the good one: %d tokens, %v", len(toks), err)
	}
	for i, want := range []string{"oops", "oops", "allows no token"} {
		if _, err := drain(streams[i+1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("bad steer %d: %v", i, err)
		}
	}
}

func TestDecodeErrorFailsItsBatch(t *testing.T) {
	broken := errors.Join(backend.ErrEngine, errors.New("device lost"))
	calls := 0
	e, _ := openFake(t, fakeLimits(nil), func(f *fakeDecoder) {
		f.fail = func([]entry) error {
			if calls++; calls == 2 { // in the middle of the prompt
				return broken
			}
			return nil
		}
	})
	s, err := e.Generate(t.Context(), &backend.Request{Prompt: prompt(20)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := drain(s); !errors.Is(err, backend.ErrEngine) {
		t.Errorf("Next: %v", err)
	}
	if st := waitIdle(t, e); st.CellsUsed != 0 {
		t.Errorf("%d cells still used", st.CellsUsed)
	}
	toks, end := generate(t, e, &backend.Request{Prompt: prompt(20), MaxTokens: 4, Steer: noEnd()})
	want, _ := alone(&backend.Request{Prompt: prompt(20), MaxTokens: 4, Steer: noEnd()}, 40)
	if !slices.Equal(idsOf(toks), want) || end.CachedTokens != 0 {
		t.Errorf("after the failure: %v, %+v; want %v", idsOf(toks), end, want)
	}
}

func TestLogits(t *testing.T) {
	e, f := openFake(t, fakeLimits(nil), nil)
	ids := prompt(40) // a full context: nothing is to be generated
	for _, from := range []int{0, 7, 30, 39, 38} {
		rows, err := e.Logits(t.Context(), ids, from)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != len(ids)-from {
			t.Fatalf("from %d: %d rows", from, len(rows))
		}
		for i, row := range rows {
			if !slices.Equal(row, fakeLogits(ids[:from+i+1], fakeVocab)) {
				t.Errorf("from %d: row %d is wrong", from, i)
			}
		}
	}
	before := f.evaluated.Load()
	if _, err := e.Logits(t.Context(), ids, 37); err != nil || f.evaluated.Load()-before != 4 {
		t.Errorf("%d tokens evaluated for 3 rows of a cached prompt; %v", f.evaluated.Load()-before, err)
	}
	for _, from := range []int{-1, 40, math.MaxInt, math.MinInt} {
		if _, err := e.Logits(t.Context(), ids, from); err == nil {
			t.Errorf("from %d: no error", from)
		}
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			ids := randomRequest(uint64(i)).Prompt
			from := i % len(ids)
			rows, err := e.Logits(t.Context(), ids, from)
			if err != nil || len(rows) != len(ids)-from || !slices.Equal(rows[0], fakeLogits(ids[:from+1], fakeVocab)) {
				t.Errorf("request %d: %d rows, %v", i, len(rows), err)
			}
			generate(t, e, randomRequest(uint64(i)))
		})
	}
	wg.Wait()
}

func TestRefusedRequests(t *testing.T) {
	e, f := openFake(t, fakeLimits(nil), nil)
	for name, req := range map[string]*backend.Request{
		"negative max tokens":     {Prompt: prompt(2), MaxTokens: -1},
		"negative top logprobs":   {Prompt: prompt(2), TopLogprobs: -1},
		"temperature NaN":         {Prompt: prompt(2), Sampling: backend.Sampling{Temperature: math.NaN()}},
		"temperature infinite":    {Prompt: prompt(2), Sampling: backend.Sampling{Temperature: math.Inf(1)}},
		"temperature negative":    {Prompt: prompt(2), Sampling: backend.Sampling{Temperature: -1}},
		"top-p over one":          {Prompt: prompt(2), Sampling: backend.Sampling{TopP: 1.5}},
		"min-p negative":          {Prompt: prompt(2), Sampling: backend.Sampling{MinP: -0.1}},
		"repeat penalty negative": {Prompt: prompt(2), Sampling: backend.Sampling{RepeatPenalty: -1}},
		"bias NaN":                {Prompt: prompt(2), Sampling: backend.Sampling{LogitBias: map[vocab.ID]float64{1: math.NaN()}}},
		"bias infinite":           {Prompt: prompt(2), Sampling: backend.Sampling{LogitBias: map[vocab.ID]float64{1: math.Inf(1)}}},
	} {
		if _, err := e.Generate(t.Context(), req); err == nil {
			t.Errorf("%s was admitted", name)
		}
	}
	if f.decodes.Load() != 0 {
		t.Error("a refused request was decoded")
	}
}

func TestCloseEndsStreams(t *testing.T) {
	e, _ := openFake(t, fakeLimits(func(l *limits) { l.sequences = 2; l.context, l.cells = 4000, 8000 }), func(f *fakeDecoder) { f.delay = time.Millisecond })
	var wg sync.WaitGroup
	for range 6 {
		s, err := e.Generate(t.Context(), &backend.Request{Prompt: prompt(5), Steer: noEnd()})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := drain(s); !errors.Is(err, backend.ErrClosed) {
				t.Errorf("Next after Close: %v", err)
			}
		})
	}
	wg.Go(func() {
		if _, err := e.Logits(t.Context(), prompt(3000), 2999); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("Logits: %v", err)
		}
	})
	time.Sleep(5 * time.Millisecond)
	e.Close()
	wg.Wait()
}
