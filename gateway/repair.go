package gateway

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/jsonrepair"
)

// What one repair may take besides the limit of the request's body. A report holds
// some hundred bytes for each edit or finding, so their number is bounded too.
const (
	repairEdits    = 100_000
	repairFindings = 1_000
	repairDepth    = 100_000
)

// repair returns the handler of POST /unfray/v1/repair. As many repairs are made at
// once as there are places; the others wait until their time limit.
func (g *Gateway) repair(places chan struct{}) handler {
	return func(x *exchange) error {
		body, err := g.readBody(x)
		if err != nil {
			return err
		}
		req, err := wire.DecodeRepair(body)
		if err != nil {
			return err
		}
		showIgnored(x, req.Ignored)
		select {
		case places <- struct{}{}:
		case <-x.ctx.Done():
			return x.ctx.Err()
		}
		report := repairReport(x.ctx, req, func() { <-places })
		x.note(slog.String("outcome", report.Outcome), slog.Int("edits", len(report.Edits)))
		return g.answer(x, report)
	}
}

// repairReport repairs a request's text and calls done then.
func repairReport(ctx context.Context, req *wire.RepairRequest, done func()) *jsonrepair.Report {
	defer done()
	o := jsonrepair.Options{
		Strict: req.Strict, LaTeX: req.LaTeX, Paths: req.Paths, Ended: req.IsEnded(),
		MaxEdits: repairEdits, MaxDepth: repairDepth,
	}
	if end, ok := ctx.Deadline(); ok {
		o.MaxTime = max(time.Until(end), time.Nanosecond)
	}
	result := jsonrepair.Repair(req.Text, o)
	if len(result.Findings) > repairFindings {
		result.Findings = result.Findings[:repairFindings]
	}
	report := result.Report()
	report.ID = jsonrepair.Raw(req.ID)
	if e := report.Error; e != nil && strings.HasPrefix(e.Tried, "raise ") {
		e.Tried = "this is a limit of the server: repair the text with the command or the library"
	}
	return report
}
