package recovery

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/code"
	"github.com/unfray/unfray/recovery/toolcall"
)

// close says what became of the answer.
func (a *attempt) close() {
	switch a.form {
	case JSON:
		a.closeJSON()
	case Code:
		a.closeCode()
	default:
		a.form = Text
		a.closeText()
	}
	r := a.res
	r.Form, r.Text, r.Edits = a.form, a.text, a.edits
	if r.Text == nil {
		r.Edits = nil
	}
	a.countEdits()
	if r.Outcome != Failed {
		r.Err = nil
	}
	slices.SortStableFunc(r.Findings, func(x, y jsonrepair.Finding) int { return cmp.Compare(x.Offset, y.Offset) })
}

// countEdits gives each step the edits that are left of it: a reading that one strategy
// made may have been taken by a later one.
func (a *attempt) countEdits() {
	of := map[string]int{}
	for _, e := range a.res.Edits {
		of[e.Strategy]++
	}
	for i := len(a.res.Trace) - 1; i >= 0; i-- {
		step := &a.res.Trace[i]
		step.Edits = of[step.Strategy]
		delete(of, step.Strategy)
	}
}

func (a *attempt) closeJSON() {
	r := a.res
	a.settle()
	switch {
	case a.accepted:
		return
	case r.Outcome == Ambiguous && r.Violations == nil && a.tie:
		a.text = nil
		return
	case jsonrepair.Check(a.text, a.o.Budget.Depth) != nil:
		r.Outcome = Failed
		if r.Err == nil {
			bad := jsonrepair.Check(a.text, a.o.Budget.Depth)
			m := newMapper(a.edits)
			bad.Offset = m.input(bad.Offset)
			r.Err = &Error{Offset: bad.Offset, Cause: bad.Cause, Tried: a.endedEarly("no strategy that may be used makes JSON of it")}
		}
		a.text = nil
		return
	}
	if a.o.Schema == nil {
		return
	}
	v := a.o.Schema.Validate(a.text)
	if len(v) == 0 {
		return
	}
	if r.Outcome == Truncated {
		// What is missing may be what breaks off.
		r.Violations = v
		var open []string
		for _, o := range r.Open {
			open = append(open, o.Path)
		}
		r.Incomplete = a.o.Schema.IncompleteFields(a.text, open)
		return
	}
	r.Outcome, r.Violations = Failed, v
	r.Readings = []jsonrepair.Reading{{Text: a.text, Why: "it does not fit the schema", Cost: len(a.edits)}}
	r.Err = &Error{Cause: "the value does not fit the schema: " + pathOr(v[0].Path) + ": " + v[0].Message, Tried: a.endedEarly("ask the model again, or relax the schema")}
	a.text = nil
}

// endedEarly says which strategy the budget has ended, otherwise what else there is to say.
func (a *attempt) endedEarly(otherwise string) string {
	for _, step := range a.res.Trace {
		if step.Verdict == Exceeded {
			return "the budget did not suffice for the strategy " + step.Strategy + ": " + step.Why
		}
	}
	return otherwise
}

func (a *attempt) closeText() {
	r := a.res
	open := a.fenceOpen && !a.o.ended()
	for _, o := range r.Open {
		open = open || o.Kind == "reasoning"
	}
	for _, c := range r.Calls {
		if !c.Complete {
			open = true
			r.Open = append(r.Open, jsonrepair.Open{Kind: "tool_call", Offset: c.Start})
		}
	}
	for _, f := range r.Findings {
		if f.Kind == toolcall.CutCall {
			open = true
			r.Open = append(r.Open, jsonrepair.Open{Kind: "tool_call", Offset: f.Offset})
		}
	}
	a.closeEdited(open || a.o.cut() || r.Loop != nil && r.Loop.Cut >= 0)
}

// closeEdited is the outcome of text that may break off.
func (a *attempt) closeEdited(cut bool) {
	switch {
	case cut:
		a.res.Outcome = Truncated
	case len(a.edits) > 0:
		a.res.Outcome = Repaired
	default:
		a.res.Outcome = Valid
	}
}

func (a *attempt) closeCode() {
	r := a.res
	cut := a.o.cut() && !a.fenced || a.fenceOpen && !a.o.ended()
	broken := r.Code != nil && (r.Code.Status == code.Broken || r.Code.Status == code.Cut && a.fenced)
	if r.Code != nil && r.Code.Status == code.Cut && !a.fenced {
		cut = true
	}
	a.closeEdited(cut)
	if len(bytes.TrimSpace(a.text)) == 0 {
		r.Outcome, r.Err = Failed, &Error{Cause: "there is no code", Tried: "ask the model again"}
		return
	}
	if !cut && broken {
		r.Outcome, r.Err = Failed, &Error{Cause: "the code does not parse", Tried: "ask the model again"}
		if len(r.Code.Problems) > 0 {
			p := r.Code.Problems[0]
			m := newMapper(a.edits)
			r.Err.Offset, r.Err.Cause = m.input(p.Offset), "the code does not parse: "+p.Message
		}
	}
}
