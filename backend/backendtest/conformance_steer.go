package backendtest

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

func (c *conformance) maskObeyed(t *testing.T) {
	seed := uint64(11)
	for _, sampling := range []backend.Sampling{
		{},
		{Temperature: 1, Seed: &seed},
		{Temperature: 1, TopK: 1, TopP: 0.1, MinP: 0.5, Seed: &seed}, // the mask comes before the cuts
		{RepeatPenalty: 1.3, FrequencyPenalty: 2, PresencePenalty: 2},
	} {
		for _, size := range []int{1, 3, 40} {
			var masks []vocab.Mask
			st := &steer{t: t, mask: func(step int) vocab.Mask {
				m := c.pick(size, 31*step+size)
				masks = append(masks, m)
				return m
			}}
			toks, _ := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: c.Steps, Sampling: sampling, Steer: st})
			if len(toks) != c.Steps {
				t.Errorf("%+v, %d ids: %d tokens, want %d", sampling, size, len(toks), c.Steps)
			}
			for i, tok := range toks {
				if !masks[i].Has(tok.ID) {
					t.Errorf("%+v, step %d: token %d is outside the mask", sampling, i, tok.ID)
				}
			}
		}
	}
}

func (c *conformance) steerOrder(t *testing.T) {
	plain, _ := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: c.Steps})
	st := &steer{t: t}
	toks, _ := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: c.Steps, Steer: st})
	if !slices.Equal(st.accepted, idsOf(toks)) {
		t.Errorf("Accept saw %v, the stream has %v", st.accepted, idsOf(toks))
	}
	if !slices.Equal(idsOf(plain), idsOf(toks)) {
		t.Errorf("a Steer without masks changed %v to %v", idsOf(plain), idsOf(toks))
	}
}

func (c *conformance) verdicts(t *testing.T) {
	text := c.textMask()
	mask := func(int) vocab.Mask { return text }

	st := &steer{t: t, mask: mask, verdict: func(step int) backend.Verdict { return backend.Verdict{Uncounted: step <= 3} }}
	toks, end := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: 2, Steer: st})
	if len(toks) != 5 || end.Reason != backend.FinishLength {
		t.Errorf("three uncounted tokens and MaxTokens 2: %d tokens, reason %q; want 5, length", len(toks), end.Reason)
	}

	st = &steer{t: t, mask: mask, verdict: func(step int) backend.Verdict { return backend.Verdict{Stop: step == 3} }}
	toks, end = c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: c.Steps, Steer: st})
	if len(toks) != 3 || end.Reason != backend.FinishStop || end.EndToken != vocab.None {
		t.Errorf("Stop at the third token: %d tokens, end %+v; want 3, stop, none", len(toks), end)
	}
	if len(st.accepted) != 3 {
		t.Errorf("Accept was called %d times, want 3", len(st.accepted))
	}
}

func (c *conformance) endOfGeneration(t *testing.T) {
	eog := c.Vocab.Specials().EOG
	if len(eog) == 0 {
		t.Skip("the vocabulary has no end-of-generation token")
	}
	text, ends := c.textMask(), vocab.NewMask(c.Vocab.Len())
	for _, id := range eog {
		ends.Set(id)
	}
	st := &steer{t: t, mask: func(step int) vocab.Mask {
		if step < 2 {
			return text
		}
		return ends
	}}
	toks, end := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: c.Steps, Steer: st})
	if len(toks) != 2 || len(st.accepted) != 2 {
		t.Errorf("%d tokens, %d accepted; want 2 and 2: the end token is neither", len(toks), len(st.accepted))
	}
	if end.Reason != backend.FinishStop || !slices.Contains(eog, end.EndToken) {
		t.Errorf("end %+v; want stop and one of %v", end, eog)
	}
}

func (c *conformance) parallelMasks(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			mask := c.pick(5, 1000+i)
			seed := uint64(i)
			s, err := c.b.Generate(t.Context(), &backend.Request{
				Prompt: c.Prompts[i%len(c.Prompts)], MaxTokens: c.Steps,
				Sampling: backend.Sampling{Temperature: float64(i % 2), Seed: &seed},
				Steer:    &steer{t: t, mask: func(int) vocab.Mask { return mask }},
			})
			if err != nil {
				t.Error(err)
				return
			}
			toks, err := drain(s)
			if err != nil || len(toks) != c.Steps {
				t.Errorf("request %d: %d tokens, %v", i, len(toks), err)
			}
			for _, tok := range toks {
				if !mask.Has(tok.ID) {
					t.Errorf("request %d: token %d is outside its mask", i, tok.ID)
				}
			}
		})
	}
	wg.Wait()
}

func (c *conformance) logprobs(t *testing.T) {
	const top = 5
	toks, _ := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: c.Steps, Logprobs: true, TopLogprobs: top})
	for i, tok := range toks {
		if tok.Logprob > 0 || math.IsNaN(tok.Logprob) {
			t.Errorf("token %d: logprob %v", i, tok.Logprob)
		}
		if len(tok.Top) != top {
			t.Errorf("token %d: %d alternatives, want %d", i, len(tok.Top), top)
			continue
		}
		if tok.Top[0].ID != tok.ID || tok.Top[0].Logprob != tok.Logprob {
			t.Errorf("token %d: the greedy choice %d (%v) is not the likeliest, %+v", i, tok.ID, tok.Logprob, tok.Top[0])
		}
		sum := 0.0
		for j, lp := range tok.Top {
			if sum += math.Exp(lp.Logprob); j > 0 && lp.Logprob > tok.Top[j-1].Logprob {
				t.Errorf("token %d: alternatives are not in order: %+v", i, tok.Top)
			}
		}
		if sum > 1+1e-4 {
			t.Errorf("token %d: the alternatives' probabilities sum to %v", i, sum)
		}
	}
	bare, _ := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: 1, Logprobs: true})
	if len(bare) == 1 && (len(bare[0].Top) != 0 || bare[0].Logprob >= 0) {
		t.Errorf("Logprobs without TopLogprobs: %+v", bare[0])
	}
}

func (c *conformance) logits(t *testing.T) {
	r := c.b.(backend.LogitsReader)
	prompt := c.Prompts[0]
	for _, from := range []int{0, len(prompt) - 3, len(prompt) - 1} {
		rows, err := r.Logits(t.Context(), prompt, from)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != len(prompt)-from {
			t.Fatalf("from %d: %d rows of a prompt of %d", from, len(rows), len(prompt))
		}
		for i, row := range rows {
			if len(row) != c.b.Info().VocabSize {
				t.Fatalf("row %d has %d entries, the vocabulary %d", i, len(row), c.b.Info().VocabSize)
			}
			c.compareRow(t, prompt[:from+i+1], row)
		}
	}
	for _, from := range []int{-1, len(prompt)} {
		if _, err := r.Logits(t.Context(), prompt, from); err == nil {
			t.Errorf("from %d of a prompt of %d: no error", from, len(prompt))
		}
	}
}

// compareRow checks a row against the token and log-probability that a
// generation from the same tokens reports, mask, temperature and bias on.
func (c *conformance) compareRow(t *testing.T, ids []vocab.ID, row []float32) {
	t.Helper()
	req := &backend.Request{Prompt: ids, MaxTokens: 1, Logprobs: c.b.Info().Capabilities.Logprobs}
	norm := logSumExp(row)
	if c.b.Info().Capabilities.Steer {
		text := c.textMask()
		req.Steer = &steer{t: t, mask: func(int) vocab.Mask { return text }}
		req.Sampling.Temperature, req.Sampling.TopK = 3, 1
	}
	toks, _ := c.generate(t, req)
	if len(toks) == 0 {
		return // an unsteered model may end at once
	}
	got := toks[0]
	for id, l := range row {
		allowed := req.Steer == nil || c.Vocab.IsText(vocab.ID(id)) && !c.Vocab.IsEOG(vocab.ID(id))
		if allowed && float64(l) > float64(row[got.ID])+c.Tolerance {
			t.Errorf("after %d tokens: chose %d (%v), but %d has %v", len(ids), got.ID, row[got.ID], id, l)
			return
		}
	}
	if want := float64(row[got.ID]) - norm; req.Logprobs && math.Abs(got.Logprob-want) > c.Tolerance {
		t.Errorf("after %d tokens: logprob %v, by the row %v", len(ids), got.Logprob, want)
	}
}
