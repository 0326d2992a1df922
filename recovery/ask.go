package recovery

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/continuation"
)

// askOn has the model go on with an answer that breaks off, and recovers the longer
// one.
func (a *attempt) askOn() {
	r := a.res
	if a.o.Ask == nil || !a.o.uses(Continue) {
		return
	}
	switch {
	case r.Outcome != Truncated:
		return
	case r.Loop != nil:
		a.step(Step{Strategy: Continue, Verdict: Nothing, Why: "more would repeat the loop"})
		return
	}
	o := a.o.Seam
	o.Attempts, o.MaxTokens = a.o.Budget.Attempts, a.o.Budget.Tokens
	if o.Attempts == 0 {
		o.Attempts = math.MaxInt
	}
	o.Answer = continuation.DetectOptions{FinishReason: a.o.FinishReason, CompletionTokens: a.o.Tokens, MaxTokens: a.o.MaxTokens}
	if o.Form = continuation.Text; a.form == JSON {
		o.Form = continuation.JSON
	}
	begun := time.Now()
	left := a.timeLeft()
	c := continuation.Run(a.ctx, a.input, o, a.o.Ask)
	r.Continuation = c
	step := Step{Strategy: Continue, Took: time.Since(begun), Why: fmt.Sprintf("asked %d times", len(c.Attempts))}
	if len(c.Text) <= len(a.input) || !bytes.HasPrefix(c.Text, a.input) {
		step.Verdict = Rejected
		if c.Err != nil {
			step.Why += ": " + c.Err.Error()
		}
		a.step(step)
		return
	}
	added := c.Text[len(a.input):]
	step.Verdict, step.Edits = Changed, 1
	step.Why += fmt.Sprintf(", %d bytes more", len(added))
	longer := *a.o
	longer.FinishReason, longer.Tokens, longer.MaxTokens = c.FinishReason, 0, 0
	b := newAttempt(a.ctx, c.Text, &longer)
	b.allow(left)
	b.run()
	joint := Edit{jsonrepair.Edit{Kind: Continued, Offset: len(a.input), After: string(added)}, Continue}
	a.adopt(b, []Edit{joint}, append(r.Trace, step))
	a.res.Continuation = c
}

// fallBack has other answers, while there is no acceptable one.
func (a *attempt) fallBack() {
	if a.o.Fallback == nil || !a.o.uses(Fall) {
		return
	}
	left := a.timeLeft()
	for n := 1; a.res.Outcome == Failed && a.ctx.Err() == nil && (a.o.Budget.Attempts == 0 || n <= a.o.Budget.Attempts); n++ {
		begun := time.Now()
		text, err := a.o.Fallback(a.ctx, a.res, n)
		step := Step{Strategy: Fall, Verdict: Changed, Why: fmt.Sprintf("another answer, attempt %d", n), Edits: 1, Took: time.Since(begun)}
		switch {
		case err != nil:
			step.Verdict, step.Why, step.Edits = Rejected, err.Error(), 0
			a.step(step)
			return
		case text == nil:
			return
		case a.tooLong(text) != "":
			step.Verdict, step.Why, step.Edits = Exceeded, a.tooLong(text), 0
			a.step(step)
			continue
		}
		o := *a.o
		o.FinishReason, o.Tokens, o.MaxTokens = "", 0, 0
		b := newAttempt(a.ctx, text, &o)
		b.allow(left)
		b.run()
		left = b.timeLeft()
		a.adopt(b, []Edit{{replacement(a.input, text, AnotherAnswer), Fall}}, append(a.res.Trace, step))
	}
}

// timeLeft is how much of the budget's time is left, 0 where it has no limit.
func (a *attempt) timeLeft() time.Duration {
	if a.end.IsZero() {
		return 0
	}
	return max(time.Until(a.end), time.Nanosecond)
}

// allow gives an attempt what an earlier one left of the time.
func (a *attempt) allow(left time.Duration) {
	if left > 0 {
		a.end = time.Now().Add(left)
	}
}

// adopt takes the result of another attempt, whose input edits make of this one's.
func (a *attempt) adopt(b *attempt, edits []Edit, trace []Step) {
	r := b.res
	if r.Text != nil {
		r.Edits = compose(edits, b.input, r.Edits)
	}
	m := newMapper(edits)
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Offset, f.Length = m.span(f.Offset, f.Length)
	}
	for i := range r.Open {
		r.Open[i].Offset = m.input(r.Open[i].Offset)
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		at, n := m.span(c.Start, c.End-c.Start)
		c.Start, c.End = at, at+n
	}
	if r.Loop != nil {
		l := *r.Loop
		l.Start, l.End = m.input(l.Start), m.input(l.End)
		if l.Cut >= 0 {
			l.Cut = m.input(l.Cut)
		}
		r.Loop = &l
	}
	if r.Err != nil {
		r.Err.Offset = m.input(r.Err.Offset)
	}
	if r.Outcome == Valid && len(r.Edits) > 0 {
		r.Outcome = Repaired
	}
	r.Trace = append(trace, r.Trace...)
	a.res = r
}
