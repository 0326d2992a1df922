package recovery

import (
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/continuation"
)

// Report returns the JSON form of the result. It shares Text and the lists with it.
func (r *Result) Report() *Report {
	p := r.Receipt()
	if r.Text == nil {
		return p
	}
	if utf8.Valid(r.Text) {
		text := string(r.Text)
		p.Text = &text
	} else {
		p.Bytes = r.Text
	}
	if r.Form == JSON && r.Outcome != Failed {
		p.Value = jsonrepair.Embed(r.Text)
	}
	return p
}

// Receipt is [Result.Report] without the answer itself.
func (r *Result) Receipt() *Report {
	p := &Report{
		Outcome: r.Outcome.String(), Form: r.Form, Reasoning: string(r.Reasoning),
		Edits: make([]ReportEdit, len(r.Edits)), Coercions: r.Coercions, Open: r.Open,
		Findings: r.Findings, Violations: r.Violations, Incomplete: r.Incomplete, Trace: r.Trace,
	}
	if c := r.Continuation; c != nil {
		p.Continuation = &ReportContinuation{Complete: c.Complete, Added: c.Joined, Attempts: append([]continuation.Attempt{}, c.Attempts...)}
	}
	for i, e := range r.Edits {
		p.Edits[i].Edit = e
		if !utf8.ValidString(e.Before) {
			p.Edits[i].BeforeBytes = []byte(e.Before)
		}
	}
	for _, w := range r.Readings {
		p.Readings = append(p.Readings, jsonrepair.ReportReading{Text: string(w.Text), Why: w.Why, Cost: w.Cost})
	}
	for _, c := range r.Calls {
		call := ReportCall{
			ID: c.ID, Name: c.Name, Complete: c.Complete, Repaired: c.Repaired, Problem: string(c.Problem),
			Coercions: c.Coercions, Violations: c.Violations,
			Format: string(c.Format), Start: c.Start, End: c.End,
		}
		if jsonrepair.IsValid(c.Arguments) {
			call.Arguments = jsonrepair.Raw(c.Arguments)
		}
		p.Calls = append(p.Calls, call)
	}
	if l := r.Loop; l != nil {
		p.Loop = &ReportLoop{Kind: string(l.Kind), Start: l.Start, End: l.End, Period: l.Period, Copies: l.Copies,
			Unit: short(string(l.Unit)), Cut: l.Cut >= 0}
	}
	if c := r.Code; c != nil {
		p.Code = &ReportCode{Language: c.Language, Status: string(c.Status), Parser: c.Parser}
	}
	if r.Err != nil {
		p.Error = &jsonrepair.ReportError{Offset: r.Err.Offset, Cause: r.Err.Cause, Tried: r.Err.Tried}
	}
	return p
}
