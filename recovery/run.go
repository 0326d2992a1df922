package recovery

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/unfray/unfray/jsonrepair"
)

// Recover recovers an answer. The result is never nil. ctx ends the work, and with
// it what Options.Ask and Options.Fallback do.
func Recover(ctx context.Context, text []byte, o Options) *Result {
	o.Form = o.form()
	if r := o.asItIs(text); r != nil {
		return r
	}
	return o.recoverAnswer(ctx, text)
}

// asItIs returns the result for JSON that is good as it stands, at little more than
// the cost of seeing that; nil where there may be something to do.
func (o *Options) asItIs(text []byte) *Result {
	b := o.Budget.withDefaults()
	switch {
	case o.Form != JSON && o.Form != Auto, len(o.Tools) > 0, o.Schema != nil,
		o.Strings, o.JSON.LaTeX, o.JSON.Paths, !o.uses(Strict), b.Bytes > 0 && len(text) > b.Bytes,
		jsonrepair.Check(text, b.Depth) != nil:
		return nil
	}
	return &Result{
		Outcome: Valid, Form: JSON, Text: text, Findings: jsonrepair.Suspicions(text),
		Trace: []Step{{Strategy: Strict, Verdict: Accepted, Why: "as it is"}},
	}
}

func (o Options) recoverAnswer(ctx context.Context, text []byte) *Result {
	o.Budget = o.Budget.withDefaults()
	a := newAttempt(ctx, text, &o)
	if a.tooLong(text) != "" {
		a.res.Outcome, a.res.Form = Failed, formOr(o.Form)
		if a.res.Form != JSON {
			a.res.Text = text
		}
		a.res.Err = &Error{o.Budget.Bytes, a.tooLong(text), "raise the budget's bytes"}
		a.fallBack()
		return a.res
	}
	a.run()
	a.askOn()
	a.fallBack()
	return a.res
}

func formOr(f Form) Form {
	if f == Auto {
		return Text
	}
	return f
}

// strategy is a step of the pipeline.
type strategy struct {
	name string
	// forms are those in which it acts, Auto where the form is not known yet.
	forms []Form
	run   func(a *attempt) (Verdict, string)
}

var strategies []strategy

func init() {
	all := []Form{Auto, Text, JSON, Code}
	strategies = []strategy{
		{Strict, []Form{Auto, JSON}, (*attempt).strict},
		{Reasoning, all, (*attempt).reasoning},
		{Calls, []Form{Auto, Text, JSON}, (*attempt).calls},
		{Locate, []Form{Auto, JSON, Code}, (*attempt).locate},
		{Notation, []Form{JSON}, (*attempt).notation},
		{Repair, []Form{JSON}, (*attempt).repair},
		{Schema, []Form{JSON}, (*attempt).fit},
		{Mend, []Form{Text, JSON, Code}, (*attempt).mend},
		{Loops, []Form{Text, JSON, Code}, (*attempt).loops},
		{Structure, []Form{Text, Code}, (*attempt).structure},
		{Own, []Form{Text, JSON, Code}, nil},
		{Continue, nil, nil},
		{Fall, nil, nil},
	}
}

// attempt is one way through the strategies.
type attempt struct {
	ctx   context.Context
	o     *Options
	input []byte
	end   time.Time // of the work; zero: none

	form  Form
	text  []byte // as it is now
	edits []Edit // that make text of input

	readings []reading // of JSON
	accepted bool
	tie      bool   // several readings fit the schema equally well
	language string // of a code answer, as its fence says
	// fenced says that the code has an end of its own, and fenceOpen that the last
	// fence was never closed.
	fenced, fenceOpen bool
	res               *Result
}

func newAttempt(ctx context.Context, text []byte, o *Options) *attempt {
	a := &attempt{ctx: ctx, o: o, input: text, text: text, form: o.Form, res: &Result{}}
	if o.Budget.Time > 0 {
		a.end = time.Now().Add(o.Budget.Time)
	}
	return a
}

// run tries the strategies that need nobody's help, and closes the result.
func (a *attempt) run() {
	for i := range strategies {
		s := &strategies[i]
		switch {
		case a.accepted && !a.goesOn(s.name), s.forms == nil || !a.isFor(s), !a.o.uses(s.name):
			continue
		}
		if s.name == Own {
			a.custom()
			continue
		}
		if why := a.overBudget(); why != "" {
			a.exceed(s.name, why)
			break
		}
		begun, edits := time.Now(), len(a.edits)
		verdict, why := s.run(a)
		a.step(Step{Strategy: s.name, Verdict: verdict, Why: why, Edits: max(0, len(a.edits)-edits), Took: time.Since(begun)})
		if verdict == Accepted {
			a.accepted = true
		}
	}
	a.close()
}

// exceed notes that the work ends before a strategy.
func (a *attempt) exceed(strategy, why string) {
	a.step(Step{Strategy: strategy, Verdict: Exceeded, Why: why})
	a.res.Findings = append(a.res.Findings, jsonrepair.Finding{
		Kind: OverBudget, Length: len(a.input), Text: "strategy " + strategy + " and those behind it were not tried: " + why,
	})
}

func (a *attempt) isFor(s *strategy) bool {
	for _, f := range s.forms {
		if f == a.form {
			return true
		}
	}
	return false
}

// goesOn reports whether a strategy is tried although the text is acceptable: its
// strings may still be broken.
func (a *attempt) goesOn(name string) bool {
	return name == Mend && a.form == JSON && (a.o.Strings || len(a.edits) > 0)
}

func (a *attempt) step(s Step) { a.res.Trace = append(a.res.Trace, s) }

// overBudget says which limit has been reached, "" if none.
func (a *attempt) overBudget() string {
	switch {
	case a.ctx.Err() != nil:
		return context.Cause(a.ctx).Error()
	case !a.end.IsZero() && time.Now().After(a.end):
		return fmt.Sprintf("the time of %v was used up", a.o.Budget.Time)
	case a.o.Budget.Edits > 0 && len(a.edits) > a.o.Budget.Edits:
		return fmt.Sprintf("more than %d edits", a.o.Budget.Edits)
	}
	return ""
}

// tooLong says that a text is longer than allowed, "" if it is not.
func (a *attempt) tooLong(text []byte) string {
	if most := a.o.Budget.Bytes; most > 0 && len(text) > most {
		return fmt.Sprintf("the answer has %d bytes, more than the %d allowed", len(text), most)
	}
	return ""
}

// apply changes the text by edits of it.
func (a *attempt) apply(edits []Edit) {
	if len(edits) == 0 {
		return
	}
	next := Apply(a.text, edits)
	a.edits = compose(a.edits, a.text, edits)
	a.text = next
}

// find adds findings whose offsets are in the text as it is now.
func (a *attempt) find(findings []jsonrepair.Finding) {
	m := newMapper(a.edits)
	for _, f := range findings {
		f.Offset, f.Length = m.span(f.Offset, f.Length)
		a.res.Findings = append(a.res.Findings, f)
	}
}

// custom tries the caller's strategies.
func (a *attempt) custom() {
	for _, s := range a.o.Custom {
		if a.accepted || s.Try == nil {
			continue
		}
		if why := a.overBudget(); why != "" {
			a.exceed(s.Name, why)
			return
		}
		begun := time.Now()
		out, why, err := s.Try(a.text, a.form)
		step := Step{Strategy: s.Name, Verdict: Nothing, Why: why}
		switch {
		case err != nil:
			step.Verdict, step.Why = Rejected, err.Error()
		case a.tooLong(out) != "":
			step.Verdict, step.Why = Exceeded, a.tooLong(out)
		case out != nil && !bytes.Equal(out, a.text):
			a.takeOwn(out, &step)
		}
		step.Took = time.Since(begun)
		a.step(step)
	}
}

// takeOwn takes what a strategy of the caller made of the text, where it is of the form.
func (a *attempt) takeOwn(out []byte, step *Step) {
	if a.form == JSON {
		bad := jsonrepair.Check(out, a.o.Budget.Depth)
		if bad != nil {
			step.Verdict, step.Why = Rejected, fmt.Sprintf("what it makes is no JSON: byte %d: %s", bad.Offset, bad.Cause)
			return
		}
		if fits, why := a.fits(out); !fits {
			step.Verdict, step.Why = Rejected, why
			return
		}
	}
	step.Verdict, step.Edits = Changed, 1
	a.apply([]Edit{{replacement(a.text, out, CustomText), step.Strategy}})
	switch a.form {
	case JSON:
		a.readings, a.res.Violations, a.tie = nil, nil, false
		a.accepted = a.takeStrict(a.text)
		step.Verdict = Accepted
	case Code:
		a.checkCode()
	}
}

// replacement is the one edit that makes to of from, without what both begin and
// end with.
func replacement(from, to []byte, kind jsonrepair.Kind) jsonrepair.Edit {
	head := 0
	for head < min(len(from), len(to)) && from[head] == to[head] {
		head++
	}
	tail := 0
	for tail < min(len(from), len(to))-head && from[len(from)-1-tail] == to[len(to)-1-tail] {
		tail++
	}
	return jsonrepair.Edit{
		Kind: kind, Offset: head,
		Before: string(from[head : len(from)-tail]), After: string(to[head : len(to)-tail]),
	}
}
