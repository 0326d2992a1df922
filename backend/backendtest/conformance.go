package backendtest

import (
	"context"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// Suite configures [Run].
type Suite struct {
	// Open returns a fresh backend. The suite closes it.
	Open func(t *testing.T) backend.Backend
	// Vocab is the vocabulary of the backend's model.
	Vocab *vocab.Vocab
	// Prompts are at least two different prompts of at least four tokens each.
	Prompts [][]vocab.ID
	// Steps is how many tokens a generation of the suite has at most; 0: 12.
	Steps int
	// Tolerance bounds the difference of log-probabilities that were computed
	// in batches of different shape; 0: 1e-6, which only exact arithmetic meets.
	Tolerance float64
}

// Run checks every guarantee of package backend, a subtest each. Guarantees
// about capabilities that the backend does not report are skipped.
func Run(t *testing.T, s Suite) {
	if s.Steps == 0 {
		s.Steps = 12
	}
	if s.Tolerance == 0 {
		s.Tolerance = 1e-6
	}
	shared := s.Open(t)
	defer shared.Close()
	c := &conformance{Suite: s, b: shared}

	t.Run("info", c.info)
	t.Run("max tokens", c.maxTokens)
	t.Run("context is the limit", c.contextLimit)
	t.Run("greedy repeats", c.greedyRepeats)
	t.Run("seed repeats", c.seedRepeats)
	t.Run("sampling limits", c.samplingLimits)
	t.Run("logit bias", c.logitBias)
	t.Run("request unchanged", c.requestUnchanged)
	t.Run("refused prompts", c.refusedPrompts)
	t.Run("cancel", c.cancel)
	t.Run("stream close", c.streamClose)
	t.Run("end", c.end)
	if shared.Info().Capabilities.Steer {
		t.Run("mask obeyed", c.maskObeyed)
		t.Run("steer order", c.steerOrder)
		t.Run("verdicts", c.verdicts)
		t.Run("end of generation", c.endOfGeneration)
		t.Run("parallel masks", c.parallelMasks)
	}
	if can := shared.Info().Capabilities; can.Replay && !can.Steer {
		t.Run("replay obeyed", c.replayObeyed)
		t.Run("replay uncounted", c.replayUncounted)
		t.Run("verdicts without masks", c.verdictsWithoutMasks)
	}
	t.Run("grammars", c.grammars)
	if shared.Info().Capabilities.Logprobs {
		t.Run("logprobs", c.logprobs)
	}
	if shared.Info().Capabilities.Logits {
		t.Run("logits", c.logits)
	}
	if shared.Info().Capabilities.Choose {
		t.Run("choose", c.choose)
		t.Run("choose by parts", c.chooseByParts)
	}
	t.Run("backend close", c.backendClose)
}

type conformance struct {
	Suite
	b backend.Backend
}

// steer is a [backend.Steer] that watches how it is called.
type steer struct {
	t       *testing.T
	mask    func(step int) vocab.Mask
	verdict func(step int) backend.Verdict

	busy     atomic.Bool
	masked   bool // Mask was called and Accept was not yet
	accepted []vocab.ID
}

func (s *steer) enter() {
	if !s.busy.CompareAndSwap(false, true) {
		s.t.Error("Steer was called from two goroutines at once")
	}
}

func (s *steer) Mask() vocab.Mask {
	s.enter()
	defer s.busy.Store(false)
	if s.masked {
		s.t.Error("Mask was called twice without Accept between")
	}
	s.masked = true
	if s.mask == nil {
		return nil
	}
	return s.mask(len(s.accepted))
}

func (s *steer) Accept(id vocab.ID) backend.Verdict {
	s.enter()
	defer s.busy.Store(false)
	if !s.masked {
		s.t.Error("Accept was called without Mask before it")
	}
	s.masked = false
	s.accepted = append(s.accepted, id)
	if s.verdict == nil {
		return backend.Verdict{}
	}
	return s.verdict(len(s.accepted))
}

// textMask allows every token that stands for text, so nothing can end early.
func (c *conformance) textMask() vocab.Mask {
	m := vocab.NewMask(c.Vocab.Len())
	for id := range vocab.ID(c.Vocab.Len()) {
		if c.Vocab.IsText(id) && !c.Vocab.IsEOG(id) {
			m.Set(id)
		}
	}
	return m
}

// pick returns a mask of n text tokens, different for every salt.
func (c *conformance) pick(n, salt int) vocab.Mask {
	m := vocab.NewMask(c.Vocab.Len())
	x := uint64(salt)*2654435761 + 12345
	for m.Count() < n {
		x = x*6364136223846793005 + 1442695040888963407
		if id := vocab.ID(x >> 33 % uint64(c.Vocab.Len())); c.Vocab.IsText(id) && !c.Vocab.IsEOG(id) {
			m.Set(id)
		}
	}
	return m
}

func drain(s backend.Stream) ([]backend.Token, error) {
	defer s.Close()
	var toks []backend.Token
	for {
		tok, err := s.Next()
		if err == io.EOF {
			return toks, nil
		}
		if err != nil {
			return toks, err
		}
		toks = append(toks, tok)
	}
}

func (c *conformance) generate(t *testing.T, req *backend.Request) ([]backend.Token, backend.End) {
	t.Helper()
	s, err := c.b.Generate(t.Context(), req)
	if err != nil {
		t.Fatalf("Generate: %v", err)
	}
	toks, err := drain(s)
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return toks, s.End()
}

func idsOf(toks []backend.Token) []vocab.ID {
	ids := make([]vocab.ID, len(toks))
	for i, tok := range toks {
		ids[i] = tok.ID
	}
	return ids
}

func (c *conformance) info(t *testing.T) {
	in := c.b.Info()
	if in.Name == "" {
		t.Error("Name is empty")
	}
	if in.ContextLength <= 0 {
		t.Errorf("ContextLength = %d", in.ContextLength)
	}
	if in.VocabSize != c.Vocab.Len() {
		t.Errorf("VocabSize = %d, the vocabulary has %d tokens", in.VocabSize, c.Vocab.Len())
	}
	if _, ok := c.b.(backend.LogitsReader); ok != in.Capabilities.Logits {
		t.Errorf("Capabilities.Logits = %v, but LogitsReader implemented = %v", in.Capabilities.Logits, ok)
	}
	if again := c.b.Info(); !reflect.DeepEqual(again, in) {
		t.Errorf("Info changed from %+v to %+v", in, again)
	}
}

func (c *conformance) maxTokens(t *testing.T) {
	for _, n := range []int{1, 2, c.Steps} {
		toks, end := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: n})
		if len(toks) > n {
			t.Errorf("MaxTokens %d gave %d tokens", n, len(toks))
		}
		if len(toks) < n && end.Reason != backend.FinishStop || len(toks) == n && end.Reason == "" {
			t.Errorf("MaxTokens %d: %d tokens, reason %q", n, len(toks), end.Reason)
		}
	}
	if !c.b.Info().Capabilities.Steer {
		return
	}
	text := c.textMask()
	toks, end := c.generate(t, &backend.Request{
		Prompt: c.Prompts[0], MaxTokens: c.Steps,
		Steer: &steer{t: t, mask: func(int) vocab.Mask { return text }},
	})
	if len(toks) != c.Steps || end.Reason != backend.FinishLength || end.EndToken != vocab.None {
		t.Errorf("without end tokens: %d tokens, end %+v; want %d, length, none", len(toks), end, c.Steps)
	}
}

func (c *conformance) contextLimit(t *testing.T) {
	limit := c.b.Info().ContextLength
	if limit > 512 || !c.b.Info().Capabilities.Steer {
		t.Skipf("needs a steered backend with a context of at most 512 tokens, it has %d", limit)
	}
	prompt := slices.Repeat(c.Prompts[0], limit)[:limit-3]
	text := c.textMask()
	toks, end := c.generate(t, &backend.Request{Prompt: prompt, Steer: &steer{t: t, mask: func(int) vocab.Mask { return text }}})
	if len(toks) != 3 || end.Reason != backend.FinishLength {
		t.Errorf("a prompt three tokens below the context: %d tokens, reason %q; want 3, length", len(toks), end.Reason)
	}
}

func (c *conformance) greedyRepeats(t *testing.T) {
	for i, p := range c.Prompts {
		a, _ := c.generate(t, &backend.Request{Prompt: p, MaxTokens: c.Steps})
		b, _ := c.generate(t, &backend.Request{Prompt: p, MaxTokens: c.Steps})
		if !slices.Equal(idsOf(a), idsOf(b)) {
			t.Errorf("prompt %d: %v, then %v", i, idsOf(a), idsOf(b))
		}
	}
}

func (c *conformance) seedRepeats(t *testing.T) {
	run := func(seed uint64) []vocab.ID {
		toks, _ := c.generate(t, &backend.Request{
			Prompt: c.Prompts[0], MaxTokens: c.Steps,
			Sampling: backend.Sampling{Temperature: 1.5, Seed: &seed},
		})
		return idsOf(toks)
	}
	alone := run(7)
	different := false
	for seed := range uint64(4) {
		different = different || !slices.Equal(run(seed+100), alone)
	}
	if !different {
		t.Errorf("five seeds all gave %v", alone)
	}

	// The same again while others run.
	var others []backend.Stream
	for range 2 {
		s, err := c.b.Generate(t.Context(), &backend.Request{
			Prompt: c.Prompts[1], MaxTokens: c.Steps, Sampling: backend.Sampling{Temperature: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, s)
	}
	got := make(chan []vocab.ID, 1)
	go func() { got <- run(7) }()
	for _, s := range others {
		if _, err := drain(s); err != nil {
			t.Error(err)
		}
	}
	if beside := <-got; !slices.Equal(beside, alone) {
		t.Errorf("seed 7 gave %v alone and %v beside others", alone, beside)
	}
}

func (c *conformance) samplingLimits(t *testing.T) {
	greedy, _ := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: c.Steps})
	seed := uint64(3)
	for name, s := range map[string]backend.Sampling{
		"top-k 1":        {Temperature: 2, TopK: 1, Seed: &seed},
		"tiny top-p":     {Temperature: 1, TopP: 1e-9, Seed: &seed},
		"min-p 1":        {Temperature: 2, MinP: 1, Seed: &seed},
		"all switched 1": {TopP: 1, RepeatPenalty: 1},
	} {
		toks, _ := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: c.Steps, Sampling: s})
		if !slices.Equal(idsOf(toks), idsOf(greedy)) {
			t.Errorf("%s: %v, greedy: %v", name, idsOf(toks), idsOf(greedy))
		}
	}
}

func (c *conformance) logitBias(t *testing.T) {
	var want vocab.ID
	for id := range c.pick(1, 5).All() {
		want = id
	}
	toks, _ := c.generate(t, &backend.Request{
		Prompt: c.Prompts[0], MaxTokens: 3,
		Sampling: backend.Sampling{LogitBias: map[vocab.ID]float64{want: 1000}},
	})
	if got := idsOf(toks); !slices.Equal(got, []vocab.ID{want, want, want}) {
		t.Errorf("bias +1000 on %d gave %v", want, got)
	}
}

func (c *conformance) requestUnchanged(t *testing.T) {
	seed := uint64(1)
	req := &backend.Request{
		Prompt: slices.Clone(c.Prompts[0]), MaxTokens: 4, Logprobs: true, TopLogprobs: 2,
		Sampling: backend.Sampling{Temperature: 1, RepeatPenalty: 1.1, LogitBias: map[vocab.ID]float64{c.Prompts[0][0]: -1}, Seed: &seed},
	}
	before := *req
	before.Prompt, before.Sampling.LogitBias = slices.Clone(req.Prompt), maps.Clone(req.Sampling.LogitBias)
	c.generate(t, req)
	if !slices.Equal(req.Prompt, before.Prompt) || !maps.Equal(req.Sampling.LogitBias, before.Sampling.LogitBias) ||
		req.MaxTokens != before.MaxTokens || req.Sampling.RepeatPenalty != before.Sampling.RepeatPenalty || *req.Sampling.Seed != 1 {
		t.Errorf("the request changed from %+v to %+v", before, *req)
	}
}

func (c *conformance) refusedPrompts(t *testing.T) {
	refuse := func(req *backend.Request) error {
		t.Helper()
		s, err := c.b.Generate(t.Context(), req)
		if err == nil {
			s.Close()
			t.Error("admitted a request that cannot be run")
		}
		return err
	}
	if err := refuse(&backend.Request{}); !errors.Is(err, backend.ErrEmptyPrompt) {
		t.Errorf("empty prompt: %v", err)
	}
	size := c.b.Info().VocabSize
	for _, bad := range []vocab.ID{-1, vocab.ID(size), 1 << 30} {
		var invalid *backend.InvalidTokenError
		prompt := append(slices.Clone(c.Prompts[0][:2]), bad)
		if err := refuse(&backend.Request{Prompt: prompt}); !errors.As(err, &invalid) {
			t.Errorf("token %d: %v", bad, err)
		} else if invalid.ID != bad || invalid.Position != 2 || invalid.VocabSize != size {
			t.Errorf("token %d: %+v", bad, *invalid)
		}
		bias := backend.Sampling{LogitBias: map[vocab.ID]float64{bad: 1}}
		if err := refuse(&backend.Request{Prompt: c.Prompts[0], Sampling: bias}); !errors.As(err, &invalid) || invalid.Position != -1 {
			t.Errorf("bias on token %d: %v", bad, err)
		}
	}
	limit := c.b.Info().ContextLength
	for _, n := range []int{limit, limit + 1, 2 * limit} {
		var long *backend.PromptTooLongError
		prompt := slices.Repeat(c.Prompts[0], n)[:n]
		if err := refuse(&backend.Request{Prompt: prompt}); !errors.As(err, &long) {
			t.Errorf("prompt of %d tokens, context %d: %v", n, limit, err)
		} else if long.Tokens != n || long.ContextLength != limit {
			t.Errorf("prompt of %d tokens, context %d: %+v", n, limit, *long)
		}
	}
	if toks, _ := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: 1}); len(toks) > 1 {
		t.Errorf("after refusals: %d tokens", len(toks))
	}
}

func (c *conformance) end(t *testing.T) {
	for range 2 { // the second may find the first's prompt cached
		_, end := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: 3})
		if end.ForwardPasses < 1 && end.Requests < 1 {
			t.Errorf("ForwardPasses = %d, Requests = %d", end.ForwardPasses, end.Requests)
		}
		// The last token is always evaluated: its logits are needed.
		if end.CachedTokens < 0 || end.CachedTokens >= len(c.Prompts[0]) {
			t.Errorf("CachedTokens = %d of a prompt of %d", end.CachedTokens, len(c.Prompts[0]))
		}
	}
}

// soon fails the test if f has not returned after a time in which any backend
// can do several decode steps.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not return", what)
	}
}

func (c *conformance) cancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := c.b.Generate(ctx, &backend.Request{Prompt: c.Prompts[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Next(); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	cancel()
	var got error
	after := 0
	soon(t, "Next after cancel", func() {
		for {
			if _, got = s.Next(); got != nil {
				return
			}
			after++
		}
	})
	if got != io.EOF && !errors.Is(got, context.Canceled) {
		t.Errorf("Next after cancel: %v", got)
	}
	// One step may have been running and one token may have been on its way.
	if after > 2 {
		t.Errorf("%d tokens came after cancel", after)
	}

	// Canceled before: refused at once or at the first token.
	s, err = c.b.Generate(ctx, &backend.Request{Prompt: c.Prompts[0]})
	if err == nil {
		_, err = drain(s)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled context: %v", err)
	}
}

func (c *conformance) streamClose(t *testing.T) {
	s, err := c.b.Generate(t.Context(), &backend.Request{Prompt: c.Prompts[0]})
	if err != nil {
		t.Fatal(err)
	}
	soon(t, "Close", func() {
		s.Next()
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if _, err := s.Next(); err == nil {
			t.Error("Next after Close returned a token")
		}
		s.End()
	})
	c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: 1})
}

func (c *conformance) backendClose(t *testing.T) {
	b := c.Open(t)
	s, err := b.Generate(t.Context(), &backend.Request{Prompt: c.Prompts[0]})
	if err != nil {
		t.Fatal(err)
	}
	soon(t, "Close of the backend", func() {
		for range 2 {
			if err := b.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if _, err := drain(s); err != nil && !errors.Is(err, backend.ErrClosed) {
			t.Errorf("a stream of a closed backend ends with %v", err)
		}
		s.Close()
	})
	if _, err := b.Generate(t.Context(), &backend.Request{Prompt: c.Prompts[0]}); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Generate after Close: %v", err)
	}
	if r, ok := b.(backend.LogitsReader); ok {
		if _, err := r.Logits(t.Context(), c.Prompts[0], 0); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("Logits after Close: %v", err)
		}
	}
}
