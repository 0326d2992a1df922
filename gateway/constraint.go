package gateway

import (
	"errors"
	"strings"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/grammar"
	"github.com/unfray/unfray/internal/wire"
)

// grammarSource is the constraint of a request as its server's engine reads it;
// nil without one.
func (m *model) grammarSource(s *wire.Sampling) (*backend.Grammar, error) {
	switch len(s.Constraints) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, badRequest(s.Constraints[1].Param, "%s: the output is constrained by %s already; give one of them", s.Constraints[1].Param, s.Constraints[0].Param)
	}
	c := s.Constraints[0]
	switch {
	case c.Kind == wire.ConstraintGBNF && !m.Native && c.Param != "grammar":
		return &backend.Grammar{Kind: backend.Lark, Source: c.Source}, nil // vLLM's
	case c.Kind == wire.ConstraintGBNF:
		return &backend.Grammar{Kind: backend.GBNF, Source: c.Source}, nil
	case c.Kind == wire.ConstraintRegex:
		return &backend.Grammar{Kind: backend.Regex, Source: c.Source}, nil
	case c.Kind == wire.ConstraintJSON:
		return &backend.Grammar{Kind: backend.JSONSchema, Source: `{"type":"object"}`}, nil
	}
	return &backend.Grammar{Kind: backend.JSONSchema, Source: c.Source}, nil
}

// constrain compiles what the request's output is to keep to; nil without a
// constraint.
func constrain(s *wire.Sampling) (*grammar.Grammar, error) {
	switch len(s.Constraints) {
	case 0:
		if or(s.Unfray.GrammarBytes, 0) != 0 {
			return nil, badRequest("unfray.grammar_bytes", "unfray.grammar_bytes: there is no grammar that could begin inside the prompt")
		}
		return nil, nil
	case 1:
	default:
		return nil, badRequest(s.Constraints[1].Param, "%s: the output is constrained by %s already; give one of them", s.Constraints[1].Param, s.Constraints[0].Param)
	}
	c := s.Constraints[0]
	var g *grammar.Grammar
	var err error
	switch c.Kind {
	case wire.ConstraintGBNF:
		g, err = grammar.ParseGBNF(c.Source)
	case wire.ConstraintRegex:
		g, err = grammar.ParseRegex(c.Source)
	case wire.ConstraintJSON:
		g, err = grammar.ParseJSONSchema([]byte(`{"type":"object"}`))
	default:
		g, err = grammar.ParseJSONSchema([]byte(c.Source))
	}
	if se := (*grammar.SyntaxError)(nil); errors.As(err, &se) {
		return nil, badRequest(c.Param, "%s: %s", c.Param, strings.TrimPrefix(se.Error(), "grammar: "))
	}
	return g, err
}
