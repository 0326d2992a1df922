package wire

import (
	"bytes"
	"maps"
	"math"
	"strconv"
)

// Sampling holds what completions and chat completions share. Nil means that
// the client left it out.
type Sampling struct {
	MaxTokens         *int // tokens
	Temperature       *float64
	TopP              *float64
	N                 *int
	Seed              *int64
	Stop              []string
	PresencePenalty   *float64
	FrequencyPenalty  *float64
	RepetitionPenalty *float64 // llama.cpp and vLLM
	TopK              *int     // llama.cpp and vLLM
	MinP              *float64 // llama.cpp and vLLM
	LogitBias         map[int32]float64

	Stream       bool
	IncludeUsage bool // stream_options.include_usage

	// Constraints are what the output is to keep to. Two are one too many.
	Constraints []Constraint

	User   string
	Unfray Options
}

// Options are unfray's own settings of a request.
type Options struct {
	Heal    *string
	Recover *RecoverOptions
	// GrammarBytes is how many bytes at the prompt's end belong to the text
	// that the constraint is about.
	GrammarBytes *int
}

// reader returns the readers of the shared fields.
func (s *Sampling) reader(ignored *[]string) reader {
	r := reader{
		"max_tokens":         given(&s.MaxTokens, small),
		"temperature":        given(&s.Temperature, (*field).float),
		"top_p":              given(&s.TopP, (*field).float),
		"n":                  given(&s.N, small),
		"seed":               given(&s.Seed, (*field).integer),
		"stop":               into(&s.Stop, oneOrMore),
		"presence_penalty":   given(&s.PresencePenalty, (*field).float),
		"frequency_penalty":  given(&s.FrequencyPenalty, (*field).float),
		"repetition_penalty": given(&s.RepetitionPenalty, (*field).float),
		"repeat_penalty":     given(&s.RepetitionPenalty, (*field).float), // llama.cpp's name
		"top_k":              given(&s.TopK, small),
		"min_p":              given(&s.MinP, (*field).float),
		"logit_bias":         into(&s.LogitBias, logitBias),
		"stream":             into(&s.Stream, (*field).bool),
		"stream_options": func(f *field) error {
			return reader{"include_usage": into(&s.IncludeUsage, (*field).bool)}.read(f, ignored)
		},
		"user": into(&s.User, (*field).string),
		"unfray": func(f *field) error {
			return reader{
				"heal":    given(&s.Unfray.Heal, (*field).string),
				"recover": given(&s.Unfray.Recover, recovery),

				"grammar_bytes": given(&s.Unfray.GrammarBytes, small),
			}.read(f, ignored)
		},
	}
	maps.Copy(r, constraintReaders(&s.Constraints, ignored))
	return r
}

// oneOrMore reads a string or an array of strings.
func oneOrMore(f *field) ([]string, error) {
	if f.raw[0] == '"' {
		s, err := f.string()
		return []string{s}, err
	}
	if f.raw[0] != '[' {
		return nil, f.wrongType("a string or an array of strings")
	}
	var out []string
	err := f.each(func(e *field) error {
		s, err := e.string()
		out = append(out, s)
		return err
	})
	return out, err
}

// logitBias reads an object of token IDs, as strings, and biases.
func logitBias(f *field) (map[int32]float64, error) {
	out := map[int32]float64{}
	err := f.members(func(m *field) error {
		id, err := strconv.ParseInt(m.name, 10, 32)
		if err != nil || id < 0 {
			return f.fail("has the key " + strconv.Quote(m.name[:min(len(m.name), 32)]) + ", which is no token ID")
		}
		out[int32(id)], err = m.float()
		return err
	})
	return out, err
}

// CompletionRequest is the body of POST /v1/completions.
type CompletionRequest struct {
	Sampling
	Model string
	// Prompts has an element for each prompt of the request; nil if the field
	// was missing or null.
	Prompts  []Prompt
	Logprobs *int // alternatives at each token
	Echo     bool
	BestOf   *int
	Suffix   *string
	Endless  bool // max_tokens is null, which is no limit to some servers

	// Ignored lists the paths of fields that this package does not know.
	Ignored []string
}

// Prompt is a text or, if IDs is not nil, token IDs.
type Prompt struct {
	Text string
	IDs  []int32
}

// DecodeCompletion reads the body of a completion request. Errors are
// [*DecodeError].
func DecodeCompletion(b []byte) (*CompletionRequest, error) {
	f, err := body(b)
	if err != nil {
		return nil, err
	}
	req := &CompletionRequest{}
	r := req.Sampling.reader(&req.Ignored)
	r["model"] = into(&req.Model, (*field).string)
	r["prompt"] = into(&req.Prompts, prompts)
	r["logprobs"] = given(&req.Logprobs, small)
	r["echo"] = into(&req.Echo, (*field).bool)
	r["best_of"] = given(&req.BestOf, small)
	r["suffix"] = given(&req.Suffix, (*field).string)
	if err := r.read(f, &req.Ignored); err != nil {
		return nil, err
	}
	if !bytes.Contains(f.raw, []byte("null")) {
		return req, nil
	}
	return req, f.members(func(m *field) error {
		req.Endless = req.Endless || m.name == "max_tokens" && m.isNull()
		return nil
	})
}

// maxPrompts is how many prompts a request may have. Each costs many times the
// bytes by which it is written.
const (
	maxPrompts     = 1 << 14
	tooManyPrompts = "has too many prompts: give at most 16384"
)

// prompts reads the four shapes of a prompt: text, texts, IDs, lists of IDs.
func prompts(f *field) ([]Prompt, error) {
	const shapes = "a string, an array of strings, an array of token IDs or an array of such arrays"
	switch f.raw[0] {
	case '"':
		s, err := f.string()
		return []Prompt{{Text: s}}, err
	case '[':
	default:
		return nil, f.wrongType(shapes)
	}
	switch space(f.raw[1:])[0] {
	case ']':
		return nil, f.fail("is an empty array: give at least one prompt")
	case '"', '[':
	case '{', 't', 'f', 'n':
		return nil, f.fail("must be " + shapes)
	default:
		ids, err := tokenIDs(f)
		return []Prompt{{IDs: ids}}, err
	}
	first := space(f.raw[1:])[0]
	var out []Prompt
	err := f.each(func(e *field) error {
		if len(out) == maxPrompts {
			return f.fail(tooManyPrompts)
		}
		var p Prompt
		var err error
		if first == '"' {
			p.Text, err = e.string()
		} else {
			p.IDs, err = tokenIDs(e)
		}
		out = append(out, p)
		return err
	})
	return out, err
}

// tokenIDs reads an array of IDs. It never returns nil without an error.
func tokenIDs(f *field) ([]int32, error) {
	out := []int32{}
	err := f.each(func(e *field) error {
		id, err := tokenID(e)
		out = append(out, id)
		return err
	})
	return out, err
}

func tokenID(f *field) (int32, error) {
	v, err := f.integer()
	if err == nil && (v < 0 || v > math.MaxInt32) {
		err = f.fail("is no token ID")
	}
	return int32(v), err
}
