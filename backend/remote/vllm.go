package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// VLLM is a model on a vLLM server. It implements [backend.Backend] and
// [backend.ChatTokenizer].
//
// A replay goes with the generation's only request, as a grammar of token sets.
// Where the server reads none it goes token by token, each drawn from a list of
// allowed ones. Under a grammar that the client asked for, the prompt's last
// bytes are put before it as text, so that tokens may divide them as they like.
type VLLM struct {
	server
	models []string // that requests may name, adapters too
	lark   bool     // reads grammars of token sets
}

// Both ways to hold vLLM to a set of tokens, as [Inspection] calls them.
const (
	maskLark    = "lark"
	maskAllowed = "allowed_token_ids"
)

// OpenVLLM finds out what a vLLM server and its model are able to do. The error
// says that there is no such server or model. With a tokenizer that is not the
// model's the backend is there, but generates nothing: see
// [VLLM.TokenizerError].
func OpenVLLM(ctx context.Context, o Options) (*VLLM, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	v := &VLLM{server: server{client: newClient(&o), options: o}}
	v.engine = v
	if o.Tokenizer != nil {
		v.vocab = o.Tokenizer.Vocab()
	}
	in := &v.inspection
	in.Kind, in.Notes, in.Grammars, in.Models = KindVLLM, []string{}, []string{}, []string{}
	var version struct {
		Version string `json:"version"`
	}
	if err := v.client.do(ctx, http.MethodGet, "/version", nil, &version); err != nil {
		return nil, fmt.Errorf("remote: asking for vLLM's version: %w", err)
	}
	in.Server = version.Version
	if err := v.findModel(ctx); err != nil {
		return nil, err
	}
	if o.Tokenizer == nil {
		v.settle(nil)
		in.note("what generations can be held to was not tried: there is no tokenizer")
		return v, nil
	}
	v.info.VocabSize = v.vocab.Len()
	in.VocabSize = v.info.VocabSize
	mismatch := verify(ctx, o.Tokenizer, v.tokenize)
	if mismatch == nil {
		mismatch = v.verifyStart(ctx)
	}
	if mismatch == nil {
		if err := v.probe(ctx); err != nil {
			return nil, err
		}
	}
	v.settle(mismatch)
	return v, nil
}

// verifyStart compares what is put before a prompt of text.
func (v *VLLM) verifyStart(ctx context.Context) error {
	text := probeTexts[0]
	want, err := v.tokenize(ctx, text, false, true)
	if err != nil {
		return fmt.Errorf("remote: the server's tokenizer cannot be asked: %w", err)
	}
	var got []vocab.ID
	if sp := v.vocab.Specials(); sp.AddBOS && sp.BOS != vocab.None {
		got = append(got, sp.BOS)
	}
	if got = v.options.Tokenizer.Encode(got, []byte(text)); !slices.Equal(got, want) {
		return &MismatchError{Text: text, Want: want, Got: got}
	}
	return nil
}

// findModel reads the list of models.
func (v *VLLM) findModel(ctx context.Context) error {
	var list struct {
		Data []struct {
			ID      string  `json:"id"`
			Created int64   `json:"created"`
			Root    string  `json:"root"`
			Parent  *string `json:"parent"` // of an adapter
			Length  int     `json:"max_model_len"`
		} `json:"data"`
	}
	if err := v.client.do(ctx, http.MethodGet, "/v1/models", nil, &list); err != nil {
		return fmt.Errorf("remote: asking for vLLM's models: %w", err)
	}
	want, found := v.options.Model, -1
	for i := range list.Data {
		m := &list.Data[i]
		v.models = append(v.models, m.ID)
		if found < 0 && (m.ID == want || want == "" && m.Parent == nil) {
			found = i
		}
	}
	v.inspection.Models = append(v.inspection.Models, v.models...)
	switch {
	case len(list.Data) == 0:
		return &backend.ProtocolError{Text: "it lists no models"}
	case found < 0:
		return fmt.Errorf("remote: the server has no model %q; it has %.400q", want, v.models)
	}
	m := &list.Data[found]
	v.info.Name, v.info.Created, v.info.ContextLength = m.ID, time.Unix(m.Created, 0).UTC(), m.Length
	v.info.Description = "vLLM " + v.inspection.Server
	for i := range list.Data {
		if p := m.Parent; v.info.ContextLength == 0 && p != nil && list.Data[i].ID == *p {
			v.info.ContextLength = list.Data[i].Length
		}
	}
	if v.info.ContextLength <= 0 {
		return &backend.ProtocolError{Text: "it does not say how long the model's context is"}
	}
	v.inspection.Model, v.inspection.ContextLength, v.inspection.ModelPath = m.ID, v.info.ContextLength, m.Root
	return nil
}

// probe finds out what the server honors: older ones ignore what they do not
// know. Each question is one token long.
func (v *VLLM) probe(ctx context.Context) error {
	in, can := &v.inspection, &v.info.Capabilities
	before, odd := v.probeTokens()
	if odd == vocab.None {
		return errors.New("remote: the tokenizer has no ordinary token")
	}
	source, err := (&tokenTree{nodes: []tokenNode{{last: []vocab.ID{odd}}}}).lark()
	if err != nil {
		return err
	}
	var byGrammar, byList, byPattern vocab.ID
	for _, try := range []struct {
		field string
		value any
		token *vocab.ID
	}{
		{"structured_outputs", map[string]any{"grammar": source}, &byGrammar},
		{"structured_outputs", map[string]any{"regex": regexLiteral(v.vocab.Bytes(odd))}, &byPattern},
		{"allowed_token_ids", []vocab.ID{odd}, &byList},
	} {
		if *try.token, err = v.try(ctx, before, try.field, try.value); err != nil {
			return err
		}
	}
	v.lark = byGrammar == odd
	in.IDsBack = v.lark || byList == odd
	in.IDPrompts = in.IDsBack
	// A pattern leaves it to the engine how to divide the text.
	if byPattern != vocab.None && bytes.HasPrefix(v.vocab.Bytes(odd), v.vocab.Bytes(byPattern)) {
		can.Grammars = append(can.Grammars, backend.Regex, backend.JSONSchema)
	}
	switch {
	case v.lark:
		in.Mask = maskLark
		can.Grammars = append(can.Grammars, backend.Lark)
	case byList == odd:
		in.Mask, in.MaskCap = maskAllowed, v.options.MaxMask
		in.note("it reads no grammars of token sets: what has more tokens than a list may have is not healed; have vLLM choose its structured outputs backend, or choose guidance")
	default:
		in.note("it does not take and return token IDs as asked; healing needs vLLM 0.11 or later")
	}
	for _, k := range can.Grammars {
		in.Grammars = append(in.Grammars, string(k))
	}
	if !in.CacheReport {
		in.note("it does not say how much of a prompt was cached; start it with --enable-prompt-tokens-details")
	}
	can.Replay, can.Cached = in.IDsBack, in.CacheReport
	return v.probeLogprobs(ctx, before, odd)
}

// probeTokens returns a token to ask with, and one that no model would have
// follow it.
func (v *VLLM) probeTokens() (before, odd vocab.ID) {
	before, odd = vocab.None, vocab.None
	for id := vocab.ID(v.vocab.Len() - 1); id >= 0; id-- {
		if v.vocab.Kind(id) == vocab.Normal && !v.vocab.IsEOG(id) && isPlain(v.vocab.Bytes(id)) {
			if odd == vocab.None {
				odd = id
			}
			before = id
		}
	}
	return before, odd
}

// try asks for one token under a setting. It returns none where the server does
// not take that, or does not answer in token IDs.
func (v *VLLM) try(ctx context.Context, before vocab.ID, field string, value any) (vocab.ID, error) {
	b := v.plain(&backend.Request{}, []vocab.ID{before})
	b[field] = value
	var a vllmAnswer
	if err := v.client.do(ctx, http.MethodPost, vllmCompletions, b, &a); isRefusal(err) {
		return vocab.None, nil
	} else if err != nil {
		return vocab.None, fmt.Errorf("remote: asking vLLM for a token with %s: %w", field, err)
	}
	v.inspection.CacheReport = v.inspection.CacheReport || a.Usage != nil && a.Usage.Details != nil
	c, err := a.choice()
	if err != nil || c == nil || !slices.Equal(c.Prompt, []vocab.ID{before}) || len(c.Tokens) != 1 || !v.vocab.Valid(c.Tokens[0]) {
		return vocab.None, err
	}
	return c.Tokens[0], nil
}

// isRefusal reports whether a server said that it cannot do what it was asked,
// not that it cannot do anything now, or not for this client.
func isRefusal(err error) bool {
	var e *backend.UpstreamError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented:
		return true
	}
	return false
}

// allowedAlternatives finds the limit in a refusal of too many alternatives.
var allowedAlternatives = regexp.MustCompile(`max allowed: (\d{1,9})\b`)

// probeLogprobs finds out how many alternatives the server gives, and whether it
// gives those of given tokens.
func (v *VLLM) probeLogprobs(ctx context.Context, before, odd vocab.ID) error {
	in, can := &v.inspection, &v.info.Capabilities
	b := v.plain(&backend.Request{}, []vocab.ID{before})
	b["logprobs"] = v.vocab.Len()
	err := v.client.do(ctx, http.MethodPost, vllmCompletions, b, nil)
	var refused *backend.UpstreamError
	switch {
	case err == nil:
		in.Logprobs = -1
	case isRefusal(err) && errors.As(err, &refused):
		if m := allowedAlternatives.FindSubmatch(refused.Body); m != nil {
			in.Logprobs, _ = strconv.Atoi(string(m[1]))
		}
	default:
		return fmt.Errorf("remote: asking vLLM for log-probabilities: %w", err)
	}
	if in.Logprobs == 0 {
		in.note("it gives no log-probabilities of alternatives; start it with --max-logprobs 20 or more")
		return nil
	}
	can.Logprobs = in.IDsBack
	b = v.plain(&backend.Request{}, []vocab.ID{before})
	b["logprobs"], b["logprob_token_ids"] = 1, []vocab.ID{before, odd}
	var a vllmAnswer
	err = v.client.do(ctx, http.MethodPost, vllmCompletions, b, &a)
	if isRefusal(err) {
		err = nil
	} else if err != nil {
		return fmt.Errorf("remote: asking vLLM for log-probabilities by ID: %w", err)
	}
	named := false
	if c, err := a.choice(); err == nil && c != nil && c.Logprobs != nil && len(c.Logprobs.Top) == 1 {
		_, one := c.Logprobs.Top[0]["token_id:"+strconv.Itoa(int(before))]
		_, two := c.Logprobs.Top[0]["token_id:"+strconv.Itoa(int(odd))]
		named = one && two
	}
	can.Choose = v.lark && named && can.Logprobs
	can.ChoosePlain = can.Choose
	if !can.Choose {
		in.note("it does not give what exact healing needs, log-probabilities of given tokens and grammars of token sets")
	}
	return err
}
