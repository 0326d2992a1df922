package wire

import (
	"encoding/json"
	"fmt"
)

// NativeRequest is the body of POST /completion, llama.cpp's own.
type NativeRequest struct {
	Sampling // N is n_cmpl, MaxTokens n_predict; see Endless
	Model    string
	Prompts  []NativePrompt // nil if the field was missing or null
	Endless  bool           // n_predict is negative: as many tokens as the context holds
	// ReturnTokens asks for the tokens' IDs, Probs for the log-probabilities of
	// that many alternatives at each.
	ReturnTokens bool
	Probs        int

	// Ignored lists the paths of fields that this package does not know.
	Ignored []string
}

// NativePrompt is a prompt of texts and token IDs in turn.
type NativePrompt []Prompt

// DecodeNative reads the body of a request to /completion. Errors are
// [*DecodeError].
func DecodeNative(b []byte) (*NativeRequest, error) {
	f, err := body(b)
	if err != nil {
		return nil, err
	}
	req := &NativeRequest{}
	r := req.Sampling.reader(&req.Ignored)
	r["model"] = into(&req.Model, (*field).string)
	r["prompt"] = into(&req.Prompts, nativePrompts)
	r["return_tokens"] = into(&req.ReturnTokens, (*field).bool)
	r["n_probs"] = into(&req.Probs, small)
	req.Sampling.native(r, &req.Endless)
	if err := r.read(f, &req.Ignored); err != nil {
		return nil, err
	}
	return req, nil
}

// native changes the readers of the shared fields to llama.cpp's names.
func (s *Sampling) native(r reader, endless *bool) {
	r["n_cmpl"] = r["n"]
	delete(r, "n")
	delete(r, "max_tokens")
	r["n_predict"] = func(f *field) error {
		n, err := small(f)
		if *endless = n < 0; !*endless {
			s.MaxTokens = &n
		}
		return err
	}
	r["seed"] = func(f *field) error {
		seed, err := f.integer()
		if seed != -1 { // llama.cpp's "at random"
			s.Seed = &seed
		}
		return err
	}
}

// nativePrompts reads a prompt, which is a text or an array of texts and IDs, or
// an array of prompts: one of texts alone is several prompts.
func nativePrompts(f *field) ([]NativePrompt, error) {
	if f.raw[0] != '[' {
		p, err := nativePrompt(f, new(int))
		return []NativePrompt{p}, err
	}
	texts, numbers, arrays := 0, 0, 0
	_ = f.each(func(e *field) error { // it cannot fail: the body is valid
		switch c := e.raw[0]; {
		case c == '"':
			texts++
		case c == '[':
			arrays++
		case c == '-' || c >= '0' && c <= '9':
			numbers++
		}
		return nil
	})
	if texts+numbers+arrays == 0 {
		return nil, f.fail("is an empty array: give at least one prompt")
	}
	parts := 0
	if numbers > 0 && arrays == 0 {
		p, err := nativePrompt(f, &parts)
		return []NativePrompt{p}, err
	}
	if texts+numbers+arrays > maxPrompts {
		return nil, f.fail(tooManyPrompts)
	}
	var out []NativePrompt
	err := f.each(func(e *field) error {
		p, err := nativePrompt(e, &parts)
		out = append(out, p)
		return err
	})
	return out, err
}

// maxParts is how many texts and runs of IDs the prompts of a request may have
// together.
const maxParts = maxPrompts

// nativePrompt reads a text or an array of texts and IDs, and adds the number of
// its parts to parts.
func nativePrompt(f *field, parts *int) (NativePrompt, error) {
	switch f.raw[0] {
	case '"':
		s, err := f.string()
		return NativePrompt{{Text: s}}, err
	case '[':
	default:
		return nil, f.wrongType("a string or an array of strings and token IDs")
	}
	var p NativePrompt
	err := f.each(func(e *field) error {
		last := len(p) - 1
		joins := e.raw[0] != '"' && last >= 0 && p[last].IDs != nil
		if !joins {
			*parts++
		}
		if *parts > maxParts {
			return f.fail(fmt.Sprintf("has more than %d texts and runs of token IDs", maxParts))
		}
		if e.raw[0] == '"' {
			s, err := e.string()
			p = append(p, Prompt{Text: s})
			return err
		}
		id, err := tokenID(e)
		if joins {
			p[last].IDs = append(p[last].IDs, id)
		} else {
			p = append(p, Prompt{IDs: []int32{id}})
		}
		return err
	})
	if err == nil && len(p) == 0 {
		err = f.fail("is an empty array: give at least one token")
	}
	return p, err
}

// NativeToken is an element of completion_probabilities.
type NativeToken struct {
	ID          int32         `json:"id"`
	Token       string        `json:"token"`
	Bytes       []int         `json:"bytes"`
	Logprob     Logprob       `json:"logprob"`
	TopLogprobs []NativeToken `json:"top_logprobs,omitempty"`
}

// TokenizeRequest is the body of POST /tokenize.
type TokenizeRequest struct {
	Model        string
	Content      string
	HasContent   bool // tells an empty text from none
	AddSpecial   bool // put the model's start token before the text
	ParseSpecial bool // true if left out
	WithPieces   bool
}

// DecodeTokenize reads the body of a request to /tokenize. Errors are
// [*DecodeError].
func DecodeTokenize(b []byte) (*TokenizeRequest, error) {
	f, err := body(b)
	if err != nil {
		return nil, err
	}
	req, ignored := &TokenizeRequest{ParseSpecial: true}, []string{}
	return req, reader{
		"model": into(&req.Model, (*field).string),
		"content": func(f *field) (err error) {
			req.HasContent = true
			req.Content, err = f.string()
			return err
		},
		"add_special":   into(&req.AddSpecial, (*field).bool),
		"parse_special": into(&req.ParseSpecial, (*field).bool),
		"with_pieces":   into(&req.WithPieces, (*field).bool),
	}.read(f, &ignored)
}

// DetokenizeRequest is the body of POST /detokenize.
type DetokenizeRequest struct {
	Model  string
	Tokens []int32
}

// DecodeDetokenize reads the body of a request to /detokenize. Errors are
// [*DecodeError].
func DecodeDetokenize(b []byte) (*DetokenizeRequest, error) {
	f, err := body(b)
	if err != nil {
		return nil, err
	}
	req, ignored := &DetokenizeRequest{}, []string{}
	return req, reader{
		"model":  into(&req.Model, (*field).string),
		"tokens": into(&req.Tokens, tokenIDs),
	}.read(f, &ignored)
}

// Tokenized is the answer of /tokenize: Tokens holds IDs, or a [TokenPiece] for
// each.
type Tokenized struct {
	Tokens []any `json:"tokens"`
}

// TokenPiece is a token with its text or, where that is no whole text, its bytes
// as an array of numbers.
type TokenPiece struct {
	ID    int32           `json:"id"`
	Piece json.RawMessage `json:"piece"`
}

// Detokenized is the answer of /detokenize.
type Detokenized struct {
	Content string `json:"content"`
	// Bytes holds the exact bytes of a content that is not valid UTF-8.
	Bytes []byte `json:"bytes,omitempty"`
}
