package advise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Advise decides for a workload. It is an error if a figure is out of its range.
//
// The model. Of n prompt tokens S are shared by R requests, of which the share
// ρ = (R−1)/R finds them cached. Where r of the last tokens change with what
// follows, a cache of blocks loses r tokens on average, whatever its block size.
// Healing takes p tokens off the prompt's end. It saves the prefill of p tokens
// or, where a later prompt goes on from there, of p − ρ(p − r); it costs
// forced steps of decoding, and the masks of the batch for each masked step. A
// divergence in the middle costs all that follows it, healed or not. What more
// right continuations are worth is in [Weights].
func Advise(w Workload) (Advice, error) {
	if err := w.check(); err != nil {
		return Advice{}, err
	}
	w = w.defaults()
	judged := Exact
	if w.NoExact || w.figures(Stable).Value > w.figures(Exact).Value {
		judged = Stable
	}
	a := Advice{Name: w.Name, Heal: judged, Figures: w.figures(judged)}
	f := &a.Figures
	quality := f.Matches * f.MatchMS
	switch {
	case f.Value <= 0:
		a.Heal, a.Currency = Off, InNothing
	case f.NetMS > 0 && f.NetMS*w.Weights.LatencyMS >= quality:
		a.Currency = InCache
	default:
		a.Currency = InQuality
	}
	f.BreakEven = w.breakEven(judged)
	a.Alternatives = w.alternatives()
	a.Why = w.why(&a)
	return a, nil
}

// check reports a figure out of its range.
func (w *Workload) check() error {
	const huge = 1e12
	for _, f := range []struct {
		name      string
		value     float64
		low, high float64
	}{
		{"dirty_share", w.DirtyShare, 0, 1},
		{"unstable_tokens", w.Unstable, 0, huge},
		{"pending_tokens", w.Pending, 0, huge},
		{"forced_steps_stable", w.ForcedStable, 0, huge},
		{"forced_steps_exact", w.ForcedExact, 0, huge},
		{"prompt_tokens", w.PromptTokens, 0, huge},
		{"shared_tokens", w.SharedTokens, 0, w.PromptTokens},
		{"reuse", w.Reuse, 0, huge},
		{"block_tokens", float64(w.BlockTokens), 0, huge},
		{"seam_unstable_tokens", w.SeamUnstable, 0, w.SharedTokens},
		{"diverges_at_token", w.Diverges, 0, w.SharedTokens},
		{"output_tokens", w.OutputTokens, 0, huge},
		{"output_tokens_reused", w.OutputReused, 0, w.OutputTokens},
		{"drift", w.Drift, 0, 1},
		{"batch", w.Batch, 0, huge},
		{"prefill_ms", w.PrefillMS, 0, huge},
		{"decode_ms", w.DecodeMS, 0, huge},
		{"mask_ms", w.MaskMS, 0, huge},
		{"masked_steps", w.MaskedSteps, 0, huge},
		{"quality_stable.dirty", w.QualityStable.Dirty, -1, 1},
		{"quality_stable.clean", w.QualityStable.Clean, -1, 1},
		{"quality_exact.dirty", w.QualityExact.Dirty, -1, 1},
		{"quality_exact.clean", w.QualityExact.Clean, -1, 1},
		{"weights.match_ms", w.Weights.MatchMS, 0, huge},
		{"weights.latency_ms", w.Weights.LatencyMS, 0, huge},
	} {
		if math.IsNaN(f.value) || f.value < f.low || f.value > f.high {
			return fmt.Errorf("advise: %s is %g: give a number from %g to %g", f.name, f.value, f.low, f.high)
		}
	}
	switch w.Divergence {
	case "", None, Tail, AtSeam, Middle:
		return nil
	}
	return fmt.Errorf("advise: divergence is %q: choose %s, %s, %s or %s", w.Divergence, None, Tail, AtSeam, Middle)
}

// defaults fills in what is zero and has a default.
func (w Workload) defaults() Workload {
	w.BlockTokens = max(w.BlockTokens, 1)
	w.Batch = max(w.Batch, 1)
	w.Divergence = cmp.Or(w.Divergence, None)
	w.Weights.LatencyMS = cmp.Or(w.Weights.LatencyMS, 1)
	return w
}

// cachedShare is the share of requests that find the shared tokens.
func (w *Workload) cachedShare() float64 {
	if w.Reuse <= 1 {
		return 0
	}
	return (w.Reuse - 1) / w.Reuse
}

// lost is the mean number of tokens of a prompt that the cache would have had but
// for the divergence, without healing and with it, and the most that one request
// loses.
func (w *Workload) lost() (unhealed, healed, worst float64) {
	rho, block := w.cachedShare(), float64(w.BlockTokens)
	blocks := func(tokens float64) float64 { return math.Ceil(tokens/block) * block }
	switch w.Divergence {
	case Tail:
		r := min(w.Unstable, w.SharedTokens)
		return rho * w.DirtyShare * r, 0, rounded(rho, blocks(r))
	case AtSeam:
		return rho * w.SeamUnstable, rho * w.SeamUnstable, rounded(rho, blocks(w.SeamUnstable))
	case Middle:
		after := w.SharedTokens - w.Diverges
		return rho * after, rho * after, rounded(rho, blocks(after))
	}
	return 0, 0, 0
}

// rounded is worst where any request finds something cached.
func rounded(rho, worst float64) float64 {
	if rho == 0 {
		return 0
	}
	return worst
}

// figures are those of a strategy, without break-even points.
func (w *Workload) figures(s Strategy) Figures {
	f := Figures{Judged: s}
	f.TokensLost, f.TokensLostHealed, f.WorstTokens = w.lost()
	rho := w.cachedShare()
	cached := max(0, rho*w.SharedTokens-f.TokensLost)
	f.RequestMS = (w.PromptTokens-cached)*w.PrefillMS + w.OutputTokens*w.DecodeMS

	saved := w.Pending
	if w.Divergence == Tail {
		saved = (1-rho)*w.Pending + f.TokensLost
	}
	f.PrefillSavedMS = min(saved, w.PromptTokens) * w.PrefillMS
	quality := w.QualityExact
	f.DecodeMS = w.ForcedExact * w.DecodeMS
	if s == Stable {
		quality = w.QualityStable
		f.DecodeMS = w.ForcedStable * w.DecodeMS
		f.MaskMS = w.MaskedSteps * w.MaskMS * w.Batch
	}
	f.NetMS = f.PrefillSavedMS - f.DecodeMS - f.MaskMS
	f.Matches = w.DirtyShare*quality.Dirty + (1-w.DirtyShare)*quality.Clean
	f.MatchMS = w.Weights.MatchMS
	if f.MatchMS == 0 {
		f.MatchMS = f.RequestMS
	}
	f.Value = f.Matches*f.MatchMS + f.NetMS*w.Weights.LatencyMS
	return f
}

// breakEven looks for the points at which a strategy's value, or its time, is 0.
func (w *Workload) breakEven(s Strategy) BreakEven {
	value := func(w *Workload) float64 { return w.figures(s).Value }
	net := func(w *Workload) float64 { return w.figures(s).NetMS }
	block := float64(w.BlockTokens)
	find := func(low, high float64, of func(*Workload) float64, set func(*Workload, float64)) *float64 {
		return root(low, high, func(x float64) float64 {
			at := *w
			set(&at, x)
			return of(&at)
		})
	}
	unstable := func(w *Workload, x float64) { w.Unstable = x }
	b := BreakEven{
		CacheUnstable: find(0, block, net, unstable),
		CacheDecodeMS: find(0, 1e4, net, func(w *Workload, x float64) { w.DecodeMS = x }),
		Unstable:      find(0, block, value, unstable),
		DirtyShare:    find(0, 1, value, func(w *Workload, x float64) { w.DirtyShare = x }),
		PromptTokens:  find(w.SharedTokens, w.SharedTokens+1e6, value, func(w *Workload, x float64) { w.PromptTokens = x }),
		Batch:         find(1, 1e5, value, func(w *Workload, x float64) { w.Batch = x }),
		MaskedSteps:   find(0, 1e5, value, func(w *Workload, x float64) { w.MaskedSteps = x }),
	}
	if f := w.figures(s); f.Matches > 0 && f.NetMS < 0 {
		worth := -f.NetMS * w.Weights.LatencyMS / f.Matches
		b.MatchMS = &worth
	}
	return b
}

// root finds a point between low and high at which f changes its sign, by
// halving; nil if f has the same sign at both.
func root(low, high float64, f func(float64) float64) *float64 {
	a, b := f(low), f(high)
	if a == b || a == 0 || b == 0 || a > 0 == (b > 0) {
		return nil
	}
	for range 200 {
		middle := low + (high-low)/2
		if middle <= low || middle >= high {
			break
		}
		if m := f(middle); m > 0 == (a > 0) && m != 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return &high
}

// alternatives are other means, by the time they save.
func (w *Workload) alternatives() []Alternative {
	list := []Alternative{}
	rho := w.cachedShare()
	lost, _, _ := w.lost()
	add := func(do string, tokens float64, why string) {
		if tokens > 0 {
			list = append(list, Alternative{Do: do, TokensSaved: tokens, SavedMS: tokens * w.PrefillMS, Why: why})
		}
	}
	switch w.Divergence {
	case Tail:
		add("end the part before with a separator that is stable before any text", lost,
			"what is shared keeps its last tokens; only where a template ends the prompt, not where a person is typing")
	case AtSeam:
		add("put a stable separator between what is shared and what follows", lost,
			"what is shared keeps its last tokens, at most one block a request")
	case Middle:
		add("move what changes behind what is shared", rho*(w.SharedTokens-w.Diverges),
			"all that stands behind the first different token is computed anew, whatever the prompt's end is")
	}
	add("send the model's own token IDs again instead of their text", w.Drift*w.OutputReused,
		"an answer that is tokenized again may have other tokens than the model chose, and all behind them is lost")
	slices.SortStableFunc(list, func(a, b Alternative) int { return cmp.Compare(b.SavedMS, a.SavedMS) })
	return list
}
