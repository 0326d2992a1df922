package unfray

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/grammar"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/vocab"
)

// Prompt is the text, or the token IDs, that a continuation follows.
type Prompt struct {
	Text []byte // used if IDs is nil
	// IDs is taken as it is: no BOS token is added.
	IDs []vocab.ID
	// ParseSpecial makes control tokens of what spells one in Text, as
	// llama.cpp's and vLLM's servers do. Leave it off for text of strangers.
	ParseSpecial bool
	// NoBOS leaves out the BOS token that the model wants before Text.
	NoBOS bool
}

// Request asks for one continuation. The zero value of each field but Prompt
// is a sensible choice: healed, greedy, as long as the context allows.
type Request struct {
	Prompt Prompt
	// Fill, if not nil, asks for what goes between Prompt, which must be text,
	// and a suffix. Neither is looked through for control tokens.
	Fill *Fill
	Heal heal.Mode // zero: heal.Auto
	// Sampling selects tokens, also among those a mask leaves.
	Sampling backend.Sampling
	// MaxTokens limits the continuation. Tokens that only produce the prompt's
	// own bytes again do not count. Zero: no limit but the context.
	MaxTokens int
	// Stop ends the continuation before the first of these strings. They are
	// looked for in the continuation only, not across the prompt's end.
	Stop []string
	// Grammar, if not nil, is what the continuation keeps to. It speaks of the
	// text after the prompt, or of that and the prompt's last GrammarBytes bytes.
	Grammar      *grammar.Grammar
	GrammarBytes int
	// Source is Grammar as it was written, for backends that have an engine for
	// grammars of their own; others do not look at it.
	Source *backend.Grammar
	// Fields are settings in the terms of the server that runs the model, which
	// get there as they are. They replace Sampling there, which still must say what
	// they mean for the choice among covers. See [backend.Request].
	Fields map[string]json.RawMessage
	// Logprobs asks for log-probabilities, TopLogprobs for that many
	// alternatives at each token.
	Logprobs    bool
	TopLogprobs int
}

// RequestError says what is wrong with a request.
type RequestError struct {
	Param string // field, by its name in OpenAI's API
	Text  string
	Err   error // cause, may be nil
}

func (e *RequestError) Error() string { return "unfray: " + e.Param + ": " + e.Text }

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// MaxTopLogprobs is the largest number of alternatives a request may ask for.
const MaxTopLogprobs = 20

// number writes whole numbers without an exponent.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func (r *Request) validate() error {
	s := &r.Sampling
	ranges := []struct {
		param   string
		value   float64
		low, up float64
	}{
		{"temperature", s.Temperature, 0, 100},
		{"top_p", s.TopP, 0, 1},
		{"min_p", s.MinP, 0, 1},
		{"top_k", float64(s.TopK), 0, math.MaxInt32},
		{"repeat_penalty", s.RepeatPenalty, 0, 100},
		{"repeat_last_n", float64(s.RepeatLastN), 0, math.MaxInt32},
		{"frequency_penalty", s.FrequencyPenalty, -2, 2},
		{"presence_penalty", s.PresencePenalty, -2, 2},
		{"max_tokens", float64(r.MaxTokens), 0, math.MaxInt32},
		{"logprobs", float64(r.TopLogprobs), 0, MaxTopLogprobs},
	}
	for _, f := range ranges {
		// Written so that NaN fails too.
		if !(f.value >= f.low && f.value <= f.up) {
			return &RequestError{Param: f.param, Text: fmt.Sprintf("%s is not between %s and %s", number(f.value), number(f.low), number(f.up))}
		}
	}
	if r.GrammarBytes != 0 && r.Grammar == nil && r.Source == nil {
		return &RequestError{Param: "unfray.grammar_bytes", Text: "there is no grammar that could begin inside the prompt"}
	}
	if !slices.Contains(heal.Modes(), r.Heal) && r.Heal != "" {
		return &RequestError{Param: "unfray.heal", Text: fmt.Sprintf("no mode %q", string(r.Heal))}
	}
	for _, stop := range r.Stop {
		if stop == "" {
			return &RequestError{Param: "stop", Text: "a stop string is empty: leave it out"}
		}
	}
	return nil
}

// isPlain reports whether tokens are drawn by the model's own probabilities and
// the settings that cut them, so that a part of each row is enough to weigh
// covers. Above temperature 1 the tail of a row grows, of which little is told.
func (r *Request) isPlain() bool {
	s := &r.Sampling
	return s.Temperature <= 1 && len(s.LogitBias) == 0 && s.FrequencyPenalty == 0 && s.PresencePenalty == 0 &&
		(s.RepeatPenalty == 0 || s.RepeatPenalty == 1) && r.Grammar == nil && r.Source == nil
}
