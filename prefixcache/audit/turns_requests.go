package audit

import "fmt"

// TurnRequest is the prompt of a step, and what it does not find again of the step
// before it.
type TurnRequest struct {
	Name   string `json:"name"` // that of the step
	Tokens int    `json:"tokens"`
	Bytes  int    `json:"bytes"`
	// ReusedTokens are those with which it begins as the step before it did, but for
	// its last one, which is computed in any case.
	ReusedTokens int `json:"reused_tokens"`
	// FirstDivergence is nil if it goes on where the step before it ended.
	FirstDivergence *TurnDrift `json:"first_divergence,omitempty"`
	LostTokens      int        `json:"lost_tokens"`
	LostBlocks      int        `json:"lost_blocks"`
	Cost            *float64   `json:"cost,omitempty"`
}

// list names the steps, and lists them as requests.
func (r *TurnsReport) list(price *Price) {
	of := map[int]int{}
	for i := range r.Steps {
		of[r.Steps[i].Turn]++
	}
	at := map[int]int{}
	r.Requests = make([]TurnRequest, len(r.Steps))
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Name = fmt.Sprintf("turn %d", s.Turn)
		if of[s.Turn] > 1 {
			s.Name += letters(at[s.Turn])
			at[s.Turn]++
		}
		q := &r.Requests[i]
		*q = TurnRequest{Name: s.Name, Tokens: s.PromptTokens, Bytes: s.PromptBytes}
		if i == 0 {
			q.Cost = price.above(0)
			continue
		}
		before := &r.Steps[i-1]
		kept := len(before.ids) + max(0, len(before.out)-1)
		if d := before.Drift; d != nil {
			q.FirstDivergence, q.LostTokens, q.LostBlocks = d, d.LostTokens, d.LostBlocks
			kept = d.Token
		}
		q.ReusedTokens = max(0, min(kept, s.PromptTokens-1))
		q.Cost = price.above(q.LostTokens)
	}
	r.FirstDivergence = costliest(r.Requests)
	if r.Cost = price.above(r.LostTokens); r.Cost != nil {
		r.Currency = price.Currency
	}
}

// letters counts a, b … z, aa, ab.
func letters(n int) string {
	s := string(rune('a' + n%26))
	if n >= 26 {
		return letters(n/26-1) + s
	}
	return s
}

// costliest is the divergence of the request that loses most, nil if none loses.
func costliest(list []TurnRequest) *TurnDrift {
	var d *TurnDrift
	lost := 0
	for i := range list {
		if q := &list[i]; q.LostTokens > lost {
			d, lost = q.FirstDivergence, q.LostTokens
		}
	}
	return d
}
