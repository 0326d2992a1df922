package advise

import (
	"fmt"
	"strings"
)

// why says in a few sentences what the decision rests on.
func (w *Workload) why(a *Advice) string {
	f := &a.Figures
	var s []string
	switch {
	case w.nothingToHeal():
		s = append(s, "No prompt ends where a token can change, as where a chat template ends it with a control token: there is nothing to heal")
	case a.Heal == Off && f.Matches <= 0:
		s = append(s, fmt.Sprintf("Healing makes no more continuations right (%s) and costs %s a request", points(f.Matches), ms(-f.NetMS)))
	case a.Heal == Off:
		s = append(s, fmt.Sprintf("Healing makes %s more continuations right, worth %s a request at %s each, and costs %s", points(f.Matches), ms(f.Matches*f.MatchMS), ms(f.MatchMS), ms(-f.NetMS*w.Weights.LatencyMS)))
	case a.Currency == InCache:
		s = append(s, fmt.Sprintf("Healing saves %s a request: more prefill than its steps cost", ms(f.NetMS)))
	case f.NetMS < 0:
		s = append(s, fmt.Sprintf("Healing makes %s more continuations right, worth %s a request at %s each, for %s", points(f.Matches), ms(f.Matches*f.MatchMS), ms(f.MatchMS), ms(-f.NetMS*w.Weights.LatencyMS)))
	default:
		s = append(s, fmt.Sprintf("Healing makes %s more continuations right, worth %s a request at %s each, and costs no time", points(f.Matches), ms(f.Matches*f.MatchMS), ms(f.MatchMS)))
	}
	s = append(s, w.whyCache(f))
	if w.MaskMS > 0 && w.Batch > 1 && f.MaskMS > 0 {
		s = append(s, fmt.Sprintf("Masks for a batch of %g cost %s a request", w.Batch, ms(f.MaskMS)))
	}
	if len(a.Alternatives) > 0 && a.Alternatives[0].SavedMS > max(f.PrefillSavedMS, 0) {
		alt := &a.Alternatives[0]
		s = append(s, fmt.Sprintf("For the cache: %s (%.1f tokens, %s a request)", alt.Do, alt.TokensSaved, ms(alt.SavedMS)))
	}
	return strings.Join(s, ". ") + "."
}

// nothingToHeal reports whether healing would leave every prompt as it is.
func (w *Workload) nothingToHeal() bool {
	return w.DirtyShare == 0 && w.Pending == 0 && w.ForcedStable == 0 && w.ForcedExact == 0
}

// whyCache says what the cache loses, and whether healing changes that.
func (w *Workload) whyCache(f *Figures) string {
	switch {
	case w.Reuse <= 1 || w.SharedTokens == 0:
		return "Nothing is shared, so the cache plays no part"
	case w.Divergence == None:
		return "What is shared keeps its tokens, so the cache loses nothing that healing could save"
	case w.Divergence == Tail:
		return fmt.Sprintf("The cache loses %.2f tokens a request at the tail (at most %.0f), whatever the block size: %s of prefill", f.TokensLost, f.WorstTokens, ms(f.TokensLost*w.PrefillMS))
	case w.Divergence == AtSeam:
		return fmt.Sprintf("The cache loses %.2f tokens a request where the shared part ends (at most %.0f), which healing the prompt's end does not reach", f.TokensLost, f.WorstTokens)
	}
	return fmt.Sprintf("The cache loses %.0f tokens a request behind a change in the middle, which healing does not touch", f.TokensLost)
}

// ms writes a time.
func ms(v float64) string {
	switch {
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.0f ms", v)
	case v >= 0.1 || v <= -0.1:
		return fmt.Sprintf("%.2f ms", v)
	}
	return fmt.Sprintf("%.3f ms", v)
}

// points writes a difference of shares.
func points(v float64) string { return fmt.Sprintf("%.1f points", 100*v) }
