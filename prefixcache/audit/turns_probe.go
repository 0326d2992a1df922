package audit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/unfray/unfray/internal/chattemplate"
	"github.com/unfray/unfray/tokenizer"
)

// A Verdict says what a chat template makes of a kind of conversation.
type Verdict string

// The verdicts.
const (
	Preserving Verdict = "preserving" // each prompt begins with the one before it and its answer
	Drifts     Verdict = "drifts"
	Hidden     Verdict = "hidden"  // the template does not show it: nothing is known
	Refused    Verdict = "refused" // the template refuses such conversations
)

// ProbeReport is what a chat template makes of the probe, by what the
// conversation has.
type ProbeReport struct {
	Plain     ProbeResult `json:"plain"`
	Tools     ProbeResult `json:"tools"`
	Reasoning ProbeResult `json:"reasoning"`
	Both      ProbeResult `json:"both"` // reasoning, and tools called in it

	// The requests of all four, and what they lose together.
	Requests        []TurnRequest `json:"requests"`
	FirstDivergence *TurnDrift    `json:"first_divergence"`
	LostTokens      int           `json:"lost_tokens"`
	LostBlocks      int           `json:"lost_blocks"`
	Cost            *float64      `json:"cost,omitempty"`
	Currency        string        `json:"currency,omitempty"`
}

// ProbeResult is one verdict.
type ProbeResult struct {
	Verdict Verdict      `json:"verdict"`
	Why     string       `json:"why,omitempty"` // that of the first drift, or the refusal
	Turns   *TurnsReport `json:"turns,omitempty"`
}

// probeText is a conversation of five turns: two answers call a tool first, one
// of them with text beside the call, and all have reasoning.
//
//go:embed testdata/turns/probe.json
var probeText []byte

// ProbeConversation returns the conversation that [Probe] shows to templates:
// five turns in which the assistant reasons and calls tools, or those parts left
// out.
func ProbeConversation(tools, reasoning bool) (*chattemplate.Conversation, error) {
	c, err := chattemplate.ParseConversation(probeText)
	if err != nil {
		return nil, fmt.Errorf("audit: the probe: %w", err)
	}
	if !reasoning {
		c.Messages = withoutReasoning(c.Messages)
	}
	if !tools {
		c.Tools = nil
		var kept []*chattemplate.Object
		for _, m := range c.Messages {
			if _, calls := m.Get("tool_calls"); !calls && m.Text("role") != "tool" {
				kept = append(kept, m)
			}
		}
		c.Messages = kept
	}
	return c, nil
}

// Probe says of a chat template for which conversations it keeps prefixes.
func Probe(ctx context.Context, tmpl *chattemplate.Template, tok *tokenizer.Tokenizer, opts TurnsOptions) (*ProbeReport, error) {
	r := &ProbeReport{Requests: []TurnRequest{}}
	for _, p := range []struct {
		name             string
		to               *ProbeResult
		tools, reasoning bool
	}{{"plain", &r.Plain, false, false}, {"tools", &r.Tools, true, false}, {"reasoning", &r.Reasoning, false, true}, {"both", &r.Both, true, true}} {
		conv, err := ProbeConversation(p.tools, p.reasoning)
		if err != nil {
			return nil, err
		}
		if *p.to, err = probe(ctx, tmpl, tok, conv, opts, p.tools, p.reasoning); err != nil {
			return nil, err
		}
		if t := p.to.Turns; t != nil {
			r.LostTokens += t.LostTokens
			r.LostBlocks += t.LostBlocks
			for _, q := range t.Requests {
				q.Name = p.name + ", " + q.Name
				r.Requests = append(r.Requests, q)
			}
		}
	}
	r.FirstDivergence = costliest(r.Requests)
	if r.Cost = opts.Price.above(r.LostTokens); r.Cost != nil {
		r.Currency = opts.Price.Currency
	}
	return r, nil
}

// variant is the probe with what some templates refuse left out.
type variant struct{ system, said bool }

// variants are tried in this order, so that a template that takes no system
// message, or no text beside a tool call, is looked at all the same.
var variants = []variant{{true, true}, {false, true}, {true, false}, {false, false}}

func (v variant) of(conv *chattemplate.Conversation) *chattemplate.Conversation {
	c := *conv
	c.Messages = nil
	for _, m := range conv.Messages {
		if !v.system && m.Text("role") == "system" {
			continue
		}
		if _, calls := m.Get("tool_calls"); calls && !v.said {
			m = m.Clone()
			m.Set("content", "")
		}
		c.Messages = append(c.Messages, m)
	}
	return &c
}

func probe(ctx context.Context, tmpl *chattemplate.Template, tok *tokenizer.Tokenizer, conv *chattemplate.Conversation, opts TurnsOptions, tools, reasoning bool) (ProbeResult, error) {
	opts.Outputs, opts.Times = nil, nil
	var first *chattemplate.RefusedError
	var hidden *ProbeResult
	for _, v := range variants {
		report, err := Turns(ctx, tmpl, tok, v.of(conv), opts)
		refused := (*chattemplate.RefusedError)(nil)
		switch {
		case err == nil:
			res := verdict(report, tools, reasoning)
			if !report.ToolsHidden || !tools || !v.said {
				return res, nil
			}
			// Some show a call only where nothing is said beside it.
			if hidden == nil {
				hidden = &res
			}
		case !errors.As(err, &refused):
			return ProbeResult{}, err
		case first == nil:
			first = refused
		}
	}
	if hidden != nil {
		return *hidden, nil
	}
	return ProbeResult{Verdict: Refused, Why: first.Text}, nil
}

func verdict(report *TurnsReport, tools, reasoning bool) ProbeResult {
	for _, s := range report.Steps {
		if s.Drift != nil && s.Drift.LostTokens > 0 {
			return ProbeResult{Verdict: Drifts, Why: s.Drift.Why, Turns: report}
		}
	}
	if tools && report.ToolsHidden || reasoning && report.ReasoningHidden {
		return ProbeResult{Verdict: Hidden, Turns: report}
	}
	return ProbeResult{Verdict: Preserving, Turns: report}
}
