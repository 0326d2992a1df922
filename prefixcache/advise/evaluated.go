package advise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Evaluated is what an evaluation of healing says for a workload.
type Evaluated struct {
	DirtyShare    float64
	Stable, Exact Quality
	ForcedStable  float64
	ForcedExact   float64
	HasStable     bool
	HasExact      bool
}

// evalReport is the part of the JSON of `unfray eval` that is used here.
type evalReport struct {
	Model string `json:"model"`
	Sets  []struct {
		Strata []struct {
			Stratum string `json:"stratum"`
			N       int    `json:"n"`
			Modes   []struct {
				Mode  string `json:"mode"`
				Match []struct {
					Chars int     `json:"chars"`
					N     int     `json:"n"`
					Mean  float64 `json:"mean"`
				} `json:"match"`
				Passes *float64 `json:"extra_passes"`
			} `json:"modes"`
		} `json:"strata"`
	} `json:"sets"`
}

// maxEval bounds the JSON of an evaluation, in bytes.
const maxEval = 256 << 20

// pool is a mean over sets of different sizes.
type pool struct{ sum, n float64 }

func (p *pool) add(mean float64, n int) { p.sum, p.n = p.sum+mean*float64(n), p.n+float64(n) }
func (p *pool) mean() float64 {
	if p.n == 0 {
		return 0
	}
	return p.sum / p.n
}

// ReadEval takes the figures from the JSON that `unfray eval --json` writes: the
// share of continuations whose first chars characters are the truth's, all sets
// together, against mode off. It is an error if there are none for that number.
func ReadEval(r io.Reader, chars int) (*Evaluated, error) {
	var in evalReport
	b, err := io.ReadAll(io.LimitReader(r, maxEval+1))
	if err != nil {
		return nil, fmt.Errorf("advise: read the evaluation: %w", err)
	}
	if len(b) > maxEval {
		return nil, fmt.Errorf("advise: the evaluation is longer than %d bytes", maxEval)
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, fmt.Errorf("advise: not the JSON of `unfray eval --json`: %w", err)
	}
	match, passes := map[string]*pool{}, map[string]*pool{}
	at := func(m map[string]*pool, key string) *pool {
		if m[key] == nil {
			m[key] = &pool{}
		}
		return m[key]
	}
	dirty, all := 0, 0
	for _, set := range in.Sets {
		for _, st := range set.Strata {
			switch st.Stratum {
			case "dirty":
				dirty += st.N
			case "all":
				all += st.N
			}
			for _, mode := range st.Modes {
				for _, m := range mode.Match {
					if m.Chars == chars {
						at(match, st.Stratum+" "+mode.Mode).add(m.Mean, m.N)
					}
				}
				if mode.Passes != nil && st.Stratum == "all" {
					at(passes, mode.Mode).add(*mode.Passes, st.N)
				}
			}
		}
	}
	if at(match, "dirty off").n+at(match, "clean off").n == 0 || all == 0 {
		return nil, fmt.Errorf("advise: the evaluation has no matches of %d characters in mode off: choose another number, or run `unfray eval` with that mode first", chars)
	}
	e := &Evaluated{DirtyShare: float64(dirty) / float64(all)}
	source := fmt.Sprintf("unfray eval, %s, next %d characters", in.Model, chars)
	quality := func(mode string) (Quality, bool) {
		d, c := at(match, "dirty "+mode), at(match, "clean "+mode)
		q := Quality{Source: source}
		if d.n > 0 {
			q.Dirty = d.mean() - at(match, "dirty off").mean()
		}
		if c.n > 0 {
			q.Clean = c.mean() - at(match, "clean off").mean()
		}
		return q, d.n+c.n > 0
	}
	e.Stable, e.HasStable = quality("stable")
	e.Exact, e.HasExact = quality("exact")
	if !e.HasStable && !e.HasExact {
		return nil, errors.New("advise: the evaluation has neither mode stable nor exact: run `unfray eval` with one of them")
	}
	e.ForcedStable, e.ForcedExact = max(0, at(passes, "stable").mean()), max(0, at(passes, "exact").mean())
	return e, nil
}

// UseEval puts the figures of an evaluation into the workload.
func (w *Workload) UseEval(e *Evaluated) {
	w.DirtyShare = e.DirtyShare
	w.QualityStable, w.QualityExact = e.Stable, e.Exact
	w.ForcedStable, w.ForcedExact = e.ForcedStable, e.ForcedExact
	w.NoExact = !e.HasExact
}

// UseMeasured puts what was measured at the ends of prompts into the workload.
func (w *Workload) UseMeasured(m *Measured) {
	w.DirtyShare, w.Unstable = m.Dirty, m.MeanDirty
	w.Pending = m.PendingTokens
	w.PromptTokens = m.PrefixTokens
	w.SharedTokens = min(w.SharedTokens, w.PromptTokens)
	w.Diverges = min(w.Diverges, w.SharedTokens)
	w.SeamUnstable = min(w.SeamUnstable, w.SharedTokens)
}
