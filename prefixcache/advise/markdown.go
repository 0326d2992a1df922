package advise

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// Markdown writes the advice as text with tables.
func (a *Advice) Markdown(w io.Writer) error {
	var b strings.Builder
	if a.Name != "" {
		fmt.Fprintf(&b, "### %s\n\n", a.Name)
	}
	fmt.Fprintf(&b, "**Heal: %s** (currency: %s). %s\n\n", a.Heal, a.Currency, a.Why)
	f := &a.Figures
	fmt.Fprintf(&b, "| figure (%s) | a request |\n|---|---:|\n", f.Judged)
	for _, row := range []struct{ name, value string }{
		{"tokens lost a request, unhealed / healed / most", fmt.Sprintf("%.2f / %.2f / %.0f", f.TokensLost, f.TokensLostHealed, f.WorstTokens)},
		{"time without healing", ms(f.RequestMS)},
		{"prefill saved", ms(f.PrefillSavedMS)},
		{"steps over bytes of the prompt", ms(f.DecodeMS)},
		{"masks", ms(f.MaskMS)},
		{"time gained (+) or lost (−)", signed(f.NetMS) + " ms"},
		{"right continuations", signed(100*f.Matches) + " points"},
		{"worth of one of them", ms(f.MatchMS)},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row.name, row.value)
	}
	b.WriteString("\n| break-even, all else equal | at |\n|---|---:|\n")
	e := &f.BreakEven
	for _, row := range []struct {
		name, unit string
		at         *float64
		scale      float64
	}{
		{"by the cache alone: tokens that change (r)", "", e.CacheUnstable, 1},
		{"by the cache alone: time of a step", " ms", e.CacheDecodeMS, 1},
		{"a match is worth at least", " ms", e.MatchMS, 1},
		{"tokens that change (r)", "", e.Unstable, 1},
		{"share of dirty ends", " %", e.DirtyShare, 100},
		{"prompt", " tokens", e.PromptTokens, 1},
		{"batch", " requests", e.Batch, 1},
		{"steps with a mask", "", e.MaskedSteps, 1},
	} {
		at := "–"
		if row.at != nil {
			at = fmt.Sprintf("%.4g%s", *row.at*row.scale, row.unit)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", row.name, at)
	}
	if len(a.Alternatives) > 0 {
		b.WriteString("\n| instead, for the cache | tokens | time | why |\n|---|---:|---:|---|\n")
		for _, alt := range a.Alternatives {
			fmt.Fprintf(&b, "| %s | %.2f | %s | %s |\n", alt.Do, alt.TokensSaved, ms(alt.SavedMS), alt.Why)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// signed writes a number with its sign; 0 has none.
func signed(v float64) string {
	s := fmt.Sprintf("%+.2f", v)
	if cmp.Compare(v, 0) == 0 {
		return "0"
	}
	return strings.Replace(s, "-", "−", 1)
}
