package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// LlamaCpp is a model on a llama.cpp server. It implements [backend.Backend] and
// [backend.ChatTokenizer].
type LlamaCpp struct{ server }

var (
	_ backend.Backend       = (*LlamaCpp)(nil)
	_ backend.ChatTokenizer = (*LlamaCpp)(nil)
)

// OpenLlamaCpp asks a server what it is and what it can do: a few small requests,
// two of which generate a token. Where the tokenizer is not the model's, see
// [LlamaCpp.TokenizerError], the backend is returned all the same; it has no
// capabilities then that need one.
func OpenLlamaCpp(ctx context.Context, o Options) (*LlamaCpp, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	b := &LlamaCpp{server{client: newClient(&o), options: o}}
	b.client.closing = true
	e := &llamaEngine{s: &b.server}
	b.engine = e
	if o.Tokenizer != nil {
		b.vocab = o.Tokenizer.Vocab()
		e.letter = letterOf(b.vocab)
	}
	b.inspection = Inspection{Kind: KindLlamaCpp, Models: []string{}, Grammars: []string{}, Notes: []string{}}
	for _, probe := range []func(context.Context) error{e.probeModel, e.probeProps, e.probeTokens, e.probeInfill} {
		if err := probe(ctx); err != nil {
			return nil, fmt.Errorf("remote: %w", err)
		}
	}
	if b.vocab == nil {
		b.settle(nil)
		return b, nil
	}
	err := checkSize(o.Tokenizer, b.inspection.VocabSize)
	if err == nil {
		err = verify(ctx, o.Tokenizer, e.tokenize)
	}
	if err == nil {
		err = verifyPlain(ctx, o.Tokenizer, e.tokenize)
	}
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	b.info.VocabSize = b.vocab.Len()
	b.settle(err)
	return b, nil
}

// letterOf returns a token that is one letter, or the first that is text.
func letterOf(v *vocab.Vocab) vocab.ID {
	for c := byte('a'); c <= 'z'; c++ {
		if id, ok := v.Lookup([]byte{c}); ok && v.IsText(id) && !v.IsEOG(id) {
			return id
		}
	}
	for id := range vocab.ID(v.Len()) {
		if v.IsText(id) && !v.IsEOG(id) {
			return id
		}
	}
	return 0
}

// llamaModels is the answer of /v1/models.
type llamaModels struct {
	Data []struct {
		ID      string   `json:"id"`
		Aliases []string `json:"aliases"`
		Created int64    `json:"created"`
		Meta    *struct {
			Vocab int    `json:"n_vocab"`
			Train int    `json:"n_ctx_train"`
			Size  int64  `json:"size"`
			Type  string `json:"ftype"`
		} `json:"meta"`
	} `json:"data"`
}

// probeModel finds the model that requests name. A server of one model takes any
// name; a router loads the one that is named.
func (e *llamaEngine) probeModel(ctx context.Context) error {
	var list llamaModels
	if err := e.s.client.do(ctx, http.MethodGet, "/v1/models", nil, &list); err != nil {
		return err
	}
	in := &e.s.inspection
	found := -1
	for i, m := range list.Data {
		in.Models = append(in.Models, m.ID)
		if m.ID == e.s.options.Model || slices.Contains(m.Aliases, e.s.options.Model) {
			found = i
		}
	}
	switch {
	case len(list.Data) == 0:
		return &backend.ProtocolError{Text: "its list of models is empty"}
	case found < 0 && len(list.Data) > 1:
		return fmt.Errorf("the server has the models %.300q; name one of them", in.Models)
	case found < 0:
		found = 0
		if e.s.options.Model != "" {
			in.note(fmt.Sprintf("the server calls its only model %q, not %q", in.Models[0], e.s.options.Model))
		}
	}
	m := list.Data[found]
	in.Model = m.ID
	e.model = quote(m.ID)
	e.s.info.Name, e.s.info.Created = m.ID, time.Unix(m.Created, 0)
	if m.Meta != nil {
		in.VocabSize, in.ContextLength = m.Meta.Vocab, m.Meta.Train
		e.s.info.Description = m.Meta.Type
	}
	return nil
}

// llamaProps is the answer of /props.
type llamaProps struct {
	Slots    int    `json:"total_slots"`
	Template string `json:"chat_template"`
	Build    string `json:"build_info"`
	Path     string `json:"model_path"`
	Defaults struct {
		Context int             `json:"n_ctx"`
		Params  json.RawMessage `json:"params"`
	} `json:"default_generation_settings"`
}

func (e *llamaEngine) probeProps(ctx context.Context) error {
	in := &e.s.inspection
	var p llamaProps
	err := e.s.client.do(ctx, http.MethodGet, "/props?model="+url.QueryEscape(in.Model), nil, &p)
	var refused *backend.UpstreamError
	if errors.As(err, &refused) && (refused.Status == http.StatusNotFound || refused.Status == http.StatusNotImplemented) {
		in.note("the server has no /props: its slots and defaults are not known, and its context is taken to be as long as the model's")
		e.s.info.ContextLength = in.ContextLength
		return nil
	} else if err != nil {
		return err
	}
	in.Server, in.Slots = "llama.cpp "+p.Build, p.Slots
	in.ChatTemplate, in.ModelPath = p.Template != "", p.Path
	if p.Defaults.Context > 0 {
		in.ContextLength = p.Defaults.Context
	}
	e.s.info.ChatTemplate, e.s.info.ContextLength = p.Template, in.ContextLength
	if len(p.Defaults.Params) == 0 {
		return nil
	}
	in.Defaults = p.Defaults.Params
	d := &e.defaults
	if err := json.Unmarshal(p.Defaults.Params, d); err != nil {
		return &backend.ProtocolError{Text: "its settings are none of llama.cpp's", Err: err}
	}
	e.s.info.Defaults = &backend.Defaults{
		Sampling: backend.Sampling{
			Temperature: round(d.Temperature), TopK: d.TopK, TopP: round(d.TopP), MinP: round(d.MinP),
			RepeatPenalty: round(d.RepeatPenalty), RepeatLastN: d.RepeatLastN,
			FrequencyPenalty: round(d.FrequencyPenalty), PresencePenalty: round(d.PresencePenalty),
		},
		MaxTokens: max(0, d.NPredict),
	}
	return nil
}

// round undoes what float32 does to decimals: 0.8 comes as 0.800000011920929.
func round(f float64) float64 {
	var r float64
	if err := json.Unmarshal(fmt.Appendf(nil, "%.6g", f), &r); err != nil {
		return f
	}
	return r
}

// tokenize is a [tokenizeFunc].
func (e *llamaEngine) tokenize(ctx context.Context, text string, special, bos bool) ([]vocab.ID, error) {
	in := map[string]any{"model": e.model, "content": text, "add_special": bos, "parse_special": special}
	var out struct {
		Tokens []vocab.ID `json:"tokens"`
	}
	err := e.s.client.do(ctx, http.MethodPost, "/tokenize", in, &out)
	return out.Tokens, err
}

// probeTokens finds out whether prompts may be token IDs, answers are, and how a
// generation is held to tokens that the model would not choose.
func (e *llamaEngine) probeTokens(ctx context.Context) error {
	in, can := &e.s.inspection, &e.s.info.Capabilities
	ids, err := e.tokenize(ctx, "capital of xylophones", false, false)
	if err != nil {
		return err
	}
	if len(ids) < 2 {
		return &backend.ProtocolError{Text: "it finds fewer than two tokens in three words"}
	}
	prompt, forced := ids[:1], ids[len(ids)-1]
	answer, err := e.force(ctx, prompt, forced, "logit_bias", json.RawMessage(fmt.Sprintf("[[%d,%d]]", forced, favor)))
	if err != nil {
		return err
	}
	if len(answer.Tokens) != 1 {
		in.note("the server's answers hold no token IDs: nothing can be generated by it")
		return nil
	}
	in.IDPrompts, in.IDsBack = true, true
	mask := answer.Tokens[0] == forced
	if len(answer.Probs) > 0 && len(answer.Probs[0].Top) == 2 {
		in.Logprobs, can.Logprobs = -1, true
	}
	in.CacheReport, can.Cached = answer.hasTimings(), answer.hasTimings()
	can.Choose, can.ChoosePlain = can.Logprobs, can.Logprobs
	can.Grammars = []backend.GrammarKind{backend.GBNF, backend.JSONSchema}
	in.Grammars = []string{string(backend.GBNF), string(backend.JSONSchema)}

	grammar := fmt.Sprintf("root ::= <[%d]> tail\n", forced) + gbnfTail(true)
	answer, err = e.force(ctx, prompt, forced, "grammar", quote(grammar))
	var refused *backend.UpstreamError
	switch {
	case errors.As(err, &refused) && refused.Status < 500:
		in.note("the server's grammars cannot name tokens: text is healed by its characters")
	case err != nil:
		return err
	default:
		e.literals = len(answer.Tokens) == 1 && answer.Tokens[0] == forced
	}
	switch {
	case !mask:
		in.note("the server does not heed logit_bias: text cannot be healed with stable")
	case e.literals:
		in.Mask, can.Replay = "gbnf tokens, logit_bias", true
	default:
		in.Mask, can.Replay = "gbnf, logit_bias", true
	}
	return nil
}

// force asks for one token that a setting names.
func (e *llamaEngine) force(ctx context.Context, prompt []vocab.ID, id vocab.ID, setting string, value json.RawMessage) (*llamaProbe, error) {
	body := map[string]json.RawMessage{
		"model": e.model, "prompt": rawIDs(prompt), "n_predict": number(1), "temperature": number(0),
		"return_tokens": rawTrue, "n_probs": number(2), "cache_prompt": rawTrue, setting: value,
	}
	var out llamaProbe
	if err := e.s.client.do(ctx, http.MethodPost, "/completion", body, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// llamaProbe is an answer of which it matters what is there.
type llamaProbe struct {
	Tokens []vocab.ID  `json:"tokens"`
	Probs  []llamaProb `json:"completion_probabilities"`
	Times  *struct {
		CacheN *int `json:"cache_n"`
	} `json:"timings"`
}

func (p *llamaProbe) hasTimings() bool { return p.Times != nil && p.Times.CacheN != nil }

// probeInfill asks whether the model knows how to fill in the middle.
func (e *llamaEngine) probeInfill(ctx context.Context) error {
	body := map[string]any{"model": e.model, "input_prefix": "a", "input_suffix": "b", "n_predict": 0}
	err := e.s.client.do(ctx, http.MethodPost, "/infill", body, nil)
	var refused *backend.UpstreamError
	if err == nil || errors.As(err, &refused) {
		e.s.inspection.FIM = err == nil
		return nil
	}
	return err
}

// TokenizeChat implements [backend.ChatTokenizer].
func (b *LlamaCpp) TokenizeChat(ctx context.Context, body []byte) ([]vocab.ID, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	e := b.engine.(*llamaEngine)
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("remote: the conversation cannot be read: %w", err)
	}
	fields["model"] = e.model
	var out struct {
		Prompt *string `json:"prompt"`
	}
	if err := b.client.do(ctx, http.MethodPost, "/apply-template", fields, &out); err != nil {
		return nil, err
	}
	if out.Prompt == nil {
		return nil, &backend.ProtocolError{Text: "it has no prompt of a conversation"}
	}
	ids, err := e.tokenize(ctx, *out.Prompt, true, true)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !b.vocab.Valid(id) {
			return nil, &backend.ProtocolError{Text: fmt.Sprintf("token %d is none of the vocabulary of %d", id, b.vocab.Len())}
		}
	}
	return ids, nil
}
