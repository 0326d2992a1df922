package gateway

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery"
	"github.com/unfray/unfray/recovery/schema"
	"github.com/unfray/unfray/recovery/toolcall"
)

// choiceReport is what was done to one choice.
type choiceReport struct {
	result *recovery.Result
	calls  []*judgedCall
	finish string // why the choice ended, as the client is told
	was    string // as the server said
	tokens int    // of all that was asked for besides
	loops  bool   // the stream was cut off because it repeats itself
	fell   string // why the answer of another model ended; "": there is none
}

// judgedCall is a call of a tool whose arguments were looked at.
type judgedCall struct {
	index     int
	id, name  string
	fromText  bool
	raw       []byte // arguments as they came
	arguments []byte // as they may be given; nil: they cannot be read
	status    string
	problem   string
	given     bool // to the client, as a call
	result    *recovery.Result
}

// Statuses of calls in receipts.
const (
	callValid     = "valid"
	callRepaired  = "repaired"
	callTruncated = "truncated"
	callAmbiguous = "ambiguous"
	callMalformed = "malformed"
)

var callOutcomes = map[string]recovery.Outcome{
	callRepaired: recovery.Repaired, callTruncated: recovery.Truncated, callAmbiguous: recovery.Ambiguous, callMalformed: recovery.Failed,
}

// judge looks at the arguments of a call that the server has parsed. ended says
// that the call is known to be whole.
func (r *recovering) judge(ctx context.Context, c *judgedCall, finish string) {
	c.status, c.arguments = callValid, c.raw
	strict := jsonrepair.Check(c.raw, recoverDepth) == nil && isObject(c.raw)
	s := r.parameters(c.name)
	if len(c.raw) == 0 || strict && (s == nil || len(s.Validate(c.raw)) == 0) {
		return // without arguments servers send nothing, too
	}
	o := recovery.Options{Form: recovery.JSON, Schema: s, FinishReason: finish, Budget: r.options.Budget}
	o.Strategies = slices.DeleteFunc(slices.Clone(r.options.Strategies), func(name string) bool {
		return name == recovery.Calls || name == recovery.Loops || name == recovery.Continue || name == recovery.Fall || name == recovery.Notation
	})
	res := recovery.Recover(ctx, c.raw, o)
	if res.Text == nil && s != nil {
		if strict {
			c.problem = "schema" // it is the client's to refuse
			c.result = res
			return
		}
		o.Schema = nil
		res = recovery.Recover(ctx, c.raw, o)
	}
	c.result, c.arguments = res, res.Text
	switch {
	case res.Text == nil:
		c.status = callMalformed
	case !isObject(res.Text):
		c.status, c.problem, c.arguments = callMalformed, string(toolcall.NoObject), nil
	case res.Outcome == recovery.Truncated:
		c.status = callTruncated
	case res.Outcome == recovery.Ambiguous:
		c.status = callAmbiguous
	case res.Outcome == recovery.Repaired:
		c.status = callRepaired
	}
}

func isObject(b []byte) bool {
	for _, c := range b {
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c == '{'
		}
	}
	return false
}

// parameters is the schema of a tool's arguments, nil if there is none that can be
// read.
func (r *recovering) parameters(name string) *schema.Schema {
	if s, done := r.schemas[name]; done {
		return s
	}
	var s *schema.Schema
	for _, t := range r.options.Tools {
		if t.Name == name && len(t.Parameters) > 0 {
			s, _ = schema.Parse(t.Parameters, schema.Options{}) // what cannot be read restrains nothing
		}
	}
	if r.schemas == nil {
		r.schemas = map[string]*schema.Schema{}
	}
	r.schemas[name] = s
	return s
}

// fromText makes calls of those that were written into the text.
func fromText(found []recovery.Call, first int) []*judgedCall {
	var out []*judgedCall
	for _, f := range found {
		c := &judgedCall{index: first + len(out), id: f.ID, name: f.Name, fromText: true, arguments: f.Arguments, problem: string(f.Problem), status: callValid}
		switch {
		case !f.Complete:
			c.status = callTruncated
		case f.Arguments == nil:
			c.status = callMalformed
		case f.Repair != nil && f.Repair.Outcome == jsonrepair.Ambiguous:
			c.status = callAmbiguous
		case f.Repaired:
			c.status = callRepaired
		}
		if c.problem == "" && len(f.Violations) > 0 {
			c.problem = "schema"
		}
		out = append(out, c)
	}
	return out
}

// decide says of each call whether the client gets it, and reports whether all of
// them may count as complete.
func (r *recovering) decide(calls []*judgedCall) (complete bool) {
	complete = true
	for _, c := range calls {
		switch c.status {
		case callValid:
			c.given = true
		case callRepaired:
			c.given = true
			complete = complete && r.ToolCalls == RepairCalls
		default:
			c.given = r.ToolCalls != DropCalls && c.arguments != nil
			complete = false
		}
	}
	return complete
}

// conclude says how the choice ends, once its text and calls are known.
func (r *recovering) conclude(p *choiceReport) {
	res := p.result
	complete := r.decide(p.calls)
	for _, c := range p.calls {
		res.Outcome = max(res.Outcome, callOutcomes[c.status])
	}
	p.finish = p.was
	switch {
	case r.Mode == RecoverReport:
	case !complete, res.Loop != nil && res.Loop.Cut >= 0:
		p.finish = "length"
	case p.fell != "":
		p.finish = p.fell
	case slices.ContainsFunc(p.calls, func(c *judgedCall) bool { return c.fromText }):
		p.finish = "tool_calls"
	case res.Continuation != nil && res.Continuation.Complete:
		if p.finish = res.Continuation.FinishReason; p.finish == "" {
			p.finish = "stop"
		}
	case res.Outcome == recovery.Truncated && p.was == "stop" && len(res.Edits) > 0:
		p.finish = "length"
	}
}

// did reports whether anything was changed, or in mode report would be.
func (p *choiceReport) did() bool {
	res := p.result
	if p.loops || p.finish != p.was || len(res.Edits) > 0 || len(res.Calls) > 0 || res.Outcome == recovery.Failed {
		return true
	}
	return slices.ContainsFunc(p.calls, func(c *judgedCall) bool { return c.status != callValid })
}

// added is what the usage grows by.
func (p *choiceReport) added() int {
	if len(p.result.Edits) == 0 {
		return 0
	}
	return p.tokens
}

// element is a call that was written into the text, as one of tool_calls.
func (c *judgedCall) element(chunk bool) []byte {
	if c.id == "" {
		c.id = "call_" + rand.Text()
	}
	e := struct {
		Index    *int   `json:"index,omitempty"`
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}{ID: c.id, Type: "function"}
	if chunk {
		e.Index = &c.index
	}
	e.Function.Name, e.Function.Arguments = c.name, string(c.arguments)
	out, _ := wire.Marshal(e) // strings and a number
	return out
}

// receipt is the report of a choice as clients get it.
type receipt struct {
	Mode RecoverMode `json:"mode"`
	*recovery.Report
	ToolCalls []callReceipt `json:"tool_calls,omitempty"`
	// Tokens are those of continuations and fallbacks. The usage has them where
	// something came of it.
	Tokens  int             `json:"tokens,omitempty"`
	Reserve *reserveReceipt `json:"reserve,omitempty"`
	Notes   []string        `json:"notes,omitempty"`
}

// reserveReceipt says how the tokens were divided.
type reserveReceipt struct {
	First int  `json:"first"` // tokens
	Kept  int  `json:"kept"`  // tokens
	Used  bool `json:"used"`
}

// callReceipt is what became of a call.
type callReceipt struct {
	Index   int    `json:"index"`
	ID      string `json:"id,omitempty"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Problem string `json:"problem,omitempty"`
	// Given says that the answer has the call among its tool_calls.
	Given     bool                  `json:"given"`
	Edits     []recovery.ReportEdit `json:"edits,omitempty"`
	Coercions []schema.Coercion     `json:"coercions,omitempty"`
	Open      []jsonrepair.Open     `json:"open,omitempty"`
	Raw       *string               `json:"raw,omitempty"`
}

func (r *recovering) receipt(p *choiceReport) []byte {
	out := receipt{Mode: r.Mode, Report: p.result.Receipt(), Tokens: p.tokens}
	if len(out.Findings) > recoverFindings {
		out.Findings = out.Findings[:recoverFindings]
	}
	for _, c := range p.calls {
		cr := callReceipt{Index: c.index, ID: c.id, Name: c.name, Status: c.status, Problem: c.problem, Given: c.given && r.Mode != RecoverReport || c.status == callValid && !c.fromText}
		if r.raw && !c.given && !c.fromText {
			text, _ := validText(c.raw)
			cr.Raw = &text
		}
		if c.result != nil {
			own := c.result.Receipt()
			cr.Edits, cr.Coercions, cr.Open = own.Edits, own.Coercions, own.Open
			if c.status == callValid {
				cr.Edits, cr.Coercions = nil, nil // they were not kept
			}
		}
		out.ToolCalls = append(out.ToolCalls, cr)
	}
	if !r.raw {
		for i := range out.Calls {
			if !out.Calls[i].Complete && r.ToolCalls == DropCalls {
				out.Calls[i].Arguments = nil
			}
		}
	}
	if r.reserves() {
		out.Reserve = &reserveReceipt{First: r.first, Kept: r.view.MaxTokens - r.first, Used: p.result.Continuation != nil}
	}
	if r.schemaNote != "" {
		out.Notes = append(out.Notes, "the schema of the request was not used: "+r.schemaNote)
	}
	data, err := wire.Marshal(out)
	if err != nil {
		// A value that cannot be written must not cost the answer.
		data, _ = wire.Marshal(receipt{Mode: r.Mode, Report: &recovery.Report{Outcome: p.result.Outcome.String(), Edits: []recovery.ReportEdit{}}})
	}
	return data
}
