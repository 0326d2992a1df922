package gateway

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery"
	"github.com/unfray/unfray/recovery/schema"
	"github.com/unfray/unfray/recovery/toolcall"
)

// recoverText serves POST /unfray/v1/recover. The places are those of repairs.
func (g *Gateway) recoverText(places chan struct{}) handler {
	return func(x *exchange) error {
		body, err := g.readBody(x)
		if err != nil {
			return err
		}
		req, err := wire.DecodeRecoverRequest(body)
		if err != nil {
			return err
		}
		showIgnored(x, req.Ignored)
		o, err := recoverOptions(req)
		if err != nil {
			return err
		}
		select {
		case places <- struct{}{}:
		case <-x.ctx.Done():
			return x.ctx.Err()
		}
		report := recoverReport(x.ctx, req, o, func() { <-places })
		x.note(slog.String("outcome", report.Outcome), slog.Int("edits", len(report.Edits)))
		return g.answer(x, report)
	}
}

// recoverOptions checks a request.
func recoverOptions(req *wire.RecoverRequest) (recovery.Options, error) {
	o := recovery.Options{
		Form: recovery.Form(req.Form), Language: req.Language, FinishReason: req.FinishReason,
		Tokens: req.Tokens, MaxTokens: req.MaxTokens, Strategies: req.Strategies, Strings: req.Strings,
		JSON: jsonrepair.Options{LaTeX: req.LaTeX, Paths: req.Paths},
	}
	switch o.Form {
	case "auto":
		o.Form = recovery.Auto
	case recovery.Auto, recovery.Text, recovery.JSON, recovery.Code:
	default:
		return o, badRequest("form", "form: no form %.40q; choose one of %s", req.Form, joinWords(forms))
	}
	if err := recovery.CheckStrategies(req.Strategies); err != nil {
		return o, badRequest("strategies", "strategies: %v", err)
	}
	if req.Schema != nil {
		s, err := schema.Parse(req.Schema, schema.Options{})
		if err != nil {
			return o, badRequest("schema", "schema: %v", err)
		}
		if o.Schema = s; req.Form == "" {
			o.Form = recovery.JSON
		}
	}
	for _, t := range req.Tools {
		o.Tools = append(o.Tools, toolcall.Tool{Name: t.Name, Parameters: t.Parameters})
	}
	lower := func(given, most int) int {
		if given > 0 {
			return min(given, most)
		}
		return most
	}
	b := &req.Budget
	o.Budget = recovery.Budget{
		Bytes: lower(b.Bytes, recoverBytes), Edits: lower(b.Edits, recoverEdits), Depth: lower(b.Depth, recoverDepth),
		Time: time.Duration(lower(b.TimeMillis, int(recoverTime/time.Millisecond))) * time.Millisecond,
	}
	return o, nil
}

// recoverReport recovers a request's text and calls done then.
func recoverReport(ctx context.Context, req *wire.RecoverRequest, o recovery.Options, done func()) *recovery.Report {
	defer done()
	res := recovery.Recover(ctx, req.Text, o)
	if len(res.Findings) > recoverFindings {
		res.Findings = res.Findings[:recoverFindings]
	}
	report := res.Report()
	report.ID = jsonrepair.Raw(req.ID)
	if report.Value != nil && !jsonrepair.IsValid(report.Value) {
		report.Value = nil // an answer over the budget is given as it is
	}
	if e := report.Error; e != nil && strings.HasPrefix(e.Tried, "raise ") {
		e.Tried = "this is a limit of the server: recover the text with the command or the library"
	}
	return report
}
