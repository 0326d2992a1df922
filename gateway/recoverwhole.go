package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/recovery"
)

// finishWhole recovers an answer that is whole, and writes it.
func (w *recoverWriter) finishWhole() error {
	a, err := wire.ParseAnswer(w.whole)
	if err != nil || a.Error || len(a.Choices) == 0 {
		w.send() // it is none of OpenAI's, and not ours to change
		return w.put(w.whole)
	}
	var first *choiceReport
	did, added := false, 0
	reports := make([]*choiceReport, len(a.Choices))
	for i, c := range a.Choices {
		p := w.recoverChoice(a, c)
		w.note(p)
		reports[i] = p
		added += p.added()
		if did = did || p.did(); first == nil {
			first = p
		}
		if p.result.Outcome == recovery.Failed && w.rec.OnFailure == GiveError && w.rec.Mode != RecoverReport {
			w.logAll()
			return w.refuse(p)
		}
	}
	w.logAll()
	if w.rec.Mode != RecoverReport {
		a.AddUsage(added)
	}
	if did || w.rec.asked {
		w.attach(a, reports)
	}
	out := a.Bytes()
	if a.Changed() {
		_, announced := w.begun["Content-Length"]
		w.forget()
		if announced || len(w.begun["Trailer"]) == 0 {
			w.begun.Set("Content-Length", strconv.Itoa(len(out)))
		}
	}
	w.send()
	return w.put(out)
}

// attach adds receipts: that of the first choice to the answer, and each its own
// where there are several.
func (w *recoverWriter) attach(a *wire.Answer, reports []*choiceReport) {
	for i, c := range a.Choices {
		data := w.rec.receipt(reports[i])
		if i == 0 {
			_ = a.SetReport("recovery", data) // an answer that has no place for it goes without
		}
		if len(a.Choices) > 1 {
			_ = c.SetReport("recovery", data)
		}
	}
}

// recoverChoice recovers a choice of an answer that is whole, in its place.
func (w *recoverWriter) recoverChoice(a *wire.Answer, c *wire.AnswerChoice) *choiceReport {
	rec := w.rec
	p := &choiceReport{was: c.FinishReason}
	text := textOf(c)
	o := rec.options
	o.FinishReason = c.FinishReason
	if c.Text == nil || len(text) == 0 && len(c.Calls) > 0 {
		o.Form = recovery.Text // calls are what the answer is, or a refusal
	}
	if a.Usage != nil && len(a.Choices) == 1 && rec.first > 0 {
		o.Tokens, o.MaxTokens = a.Usage.CompletionTokens, rec.first
	}
	ask := w.asker(c.Index)
	ask.arm(&o)
	p.result = recovery.Recover(w.ctx, text, o)
	p.tokens, p.fell = ask.tokens, ask.fell
	p.calls = rec.judgeAll(w.ctx, c)
	p.calls = append(p.calls, fromText(p.result.Calls, len(p.calls))...)
	rec.conclude(p)
	if rec.Mode == RecoverReport {
		return p
	}
	w.rewrite(c, p, text)
	return p
}

// textOf is the text of a choice, byte for byte.
func textOf(c *wire.AnswerChoice) []byte {
	switch {
	case c.Text == nil:
		return nil
	case c.Exact != nil:
		return c.Exact
	}
	return c.Text.Value
}

// rewrite changes a choice to what was made of it.
func (w *recoverWriter) rewrite(c *wire.AnswerChoice, p *choiceReport, text []byte) {
	res := p.result
	if res.Text != nil && string(res.Text) != string(text) {
		if c.IsChat() && len(res.Text) == 0 && len(res.Calls) > 0 {
			c.ClearText()
		} else {
			c.SetText(res.Text)
		}
	}
	if len(res.Reasoning) > 0 {
		all := res.Reasoning
		if c.Reasoning != nil && len(c.Reasoning.Value) > 0 {
			all = append(append(append([]byte{}, c.Reasoning.Value...), '\n'), all...)
		}
		c.SetReasoning(all)
	}
	if elements, changed := elementsOf(c, p.calls); changed {
		c.SetCalls(elements...)
	}
	c.SetFinishReason(p.finish)
}

// judgeAll looks at the calls that the server has parsed.
func (r *recovering) judgeAll(ctx context.Context, c *wire.AnswerChoice) []*judgedCall {
	var out []*judgedCall
	for i, call := range c.Calls[:min(len(c.Calls), recoverCalls)] {
		j := &judgedCall{index: i, id: call.ID, name: call.Name}
		if call.Arguments != nil {
			j.raw = call.Arguments.Value
		}
		finish := "tool_calls" // the next one has begun
		if i == len(c.Calls)-1 {
			finish = c.FinishReason
		}
		r.judge(ctx, j, finish)
		out = append(out, j)
	}
	return out
}

// elementsOf are the elements of tool_calls that a choice keeps or gets.
func elementsOf(c *wire.AnswerChoice, calls []*judgedCall) (elements [][]byte, changed bool) {
	for _, j := range calls {
		switch {
		case !j.given:
			changed = changed || !j.fromText
		case j.fromText:
			changed = true
			elements = append(elements, j.element(false))
		case string(j.arguments) != string(j.raw):
			changed = true
			elements = append(elements, c.ElementWith(j.index, j.index, j.arguments))
		default:
			elements = append(elements, c.Element(j.index))
		}
	}
	for i := recoverCalls; i < len(c.Calls); i++ {
		elements = append(elements, c.Element(i))
	}
	return elements, changed
}

// refuse is the error for an answer that cannot be saved, with its receipt.
func (w *recoverWriter) refuse(p *choiceReport) error {
	w.x.status = 0
	w.status = 0
	for name, values := range w.header {
		if name == "X-Unfray-Note" {
			w.outer.Header()[name] = values
		}
	}
	return w.failure(p)
}

func (w *recoverWriter) failure(p *choiceReport) *apiError {
	return &apiError{
		status: http.StatusBadGateway, kind: "server_error", code: "recovery_failed", report: json.RawMessage(w.rec.receipt(p)),
		message: "the model's answer is not what was asked for, and could not be recovered; unfray.recovery says why: ask again, or set on_failure to partial to get it as it is",
	}
}
