package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// llamaEngine speaks llama.cpp's own API: POST /completion.
type llamaEngine struct {
	s        *server
	model    json.RawMessage // a JSON string
	literals bool            // grammars may name tokens
	letter   vocab.ID        // some token that is a letter
	defaults llamaSettings
}

// llamaSettings are those that decide how a mask can be sent.
type llamaSettings struct {
	Temperature      float64 `json:"temperature"`
	TopK             int     `json:"top_k"`
	TopP             float64 `json:"top_p"`
	MinP             float64 `json:"min_p"`
	RepeatPenalty    float64 `json:"repeat_penalty"`
	RepeatLastN      int     `json:"repeat_last_n"`
	FrequencyPenalty float64 `json:"frequency_penalty"`
	PresencePenalty  float64 `json:"presence_penalty"`
	DryMultiplier    float64 `json:"dry_multiplier"`
	TopNSigma        float64 `json:"top_n_sigma"`
	Mirostat         int     `json:"mirostat"`
	NPredict         int     `json:"n_predict"`
}

// llamaOwn lists the fields of /completion that are not the caller's to set, and
// those by which other routes say the same.
var llamaOwn = []string{
	"prompt", "n_predict", "max_tokens", "max_completion_tokens", "stream", "stream_options", "stop", "n", "n_cmpl", "best_of",
	"echo", "suffix", "logprobs", "top_logprobs", "n_probs", "post_sampling_probs", "return_tokens", "return_progress",
	"timings_per_token", "response_fields", "model", "grammar", "grammar_lazy", "grammar_triggers", "preserved_tokens",
	"json_schema", "response_format", "messages", "tools", "tool_choice", "input_prefix", "input_suffix", "input_extra",
}

// check implements [engine].
func (e *llamaEngine) check(req *backend.Request) error {
	g, err := llamaGrammar(req)
	switch {
	case err != nil:
		return err
	case g != nil && g.Kind != backend.GBNF && g.Kind != backend.JSONSchema:
		return &backend.UnsupportedError{Param: "grammar", Text: fmt.Sprintf("llama.cpp's server takes grammars as gbnf or json_schema, not as %s", g.Kind)}
	case g != nil && req.Choose != nil:
		return &backend.UnsupportedError{Param: "grammar", Text: "a server reads a grammar from its beginning, which a choice among tokens may have passed; heal with stable"}
	case g != nil && g.Kind == backend.JSONSchema && newReplay(e.s.vocab, req.Replay) != nil:
		return &backend.UnsupportedError{Param: "json_schema", Text: "the server takes a schema only from the beginning of what it generates, and the prompt's last bytes come first; give a GBNF grammar, or heal with none"}
	case g != nil && req.Replay != nil:
		if _, err := gbnfAfter(req.Replay.Pending, g.Source); err != nil {
			return err
		}
	}
	if req.Choose == nil || req.Fields == nil {
		return nil
	}
	s := e.settings(req)
	switch {
	case s.RepeatPenalty != 1 && s.RepeatPenalty != 0:
		return plainOnly("repeat_penalty")
	case s.FrequencyPenalty != 0:
		return plainOnly("frequency_penalty")
	case s.PresencePenalty != 0:
		return plainOnly("presence_penalty")
	case s.DryMultiplier != 0:
		return plainOnly("dry_multiplier")
	case len(llamaBias(req)) > 0:
		return plainOnly("logit_bias")
	}
	return nil
}

// constrained implements [constrainer].
func (e *llamaEngine) constrained(req *backend.Request) bool {
	g, err := llamaGrammar(req)
	return g != nil || err != nil
}

// llamaGrammar returns the grammar of a request, which may stand among its
// fields.
func llamaGrammar(req *backend.Request) (*backend.Grammar, error) {
	if req.Grammar != nil {
		return req.Grammar, nil
	}
	if f := req.Fields["response_format"]; len(f) > 0 && string(f) != "null" {
		return nil, &backend.UnsupportedError{Param: "response_format", Text: "llama.cpp's /completion has no such field; give a json_schema"}
	}
	if f := req.Fields["grammar"]; len(f) > 0 {
		var source string
		if err := json.Unmarshal(f, &source); err != nil && string(f) != "null" {
			return nil, &backend.UnsupportedError{Param: "grammar", Text: "a grammar is a string"}
		} else if source != "" {
			return &backend.Grammar{Kind: backend.GBNF, Source: source}, nil
		}
	}
	if f := req.Fields["json_schema"]; len(f) > 0 && string(f) != "null" {
		return &backend.Grammar{Kind: backend.JSONSchema, Source: string(f)}, nil
	}
	return nil, nil
}

// settings are what the server will use for a request.
func (e *llamaEngine) settings(req *backend.Request) llamaSettings {
	if req.Fields == nil {
		s := req.Sampling
		return llamaSettings{RepeatPenalty: s.RepeatPenalty, FrequencyPenalty: s.FrequencyPenalty, PresencePenalty: s.PresencePenalty}
	}
	s := e.defaults
	for name, p := range map[string]any{
		"repeat_penalty": &s.RepeatPenalty, "frequency_penalty": &s.FrequencyPenalty, "presence_penalty": &s.PresencePenalty,
		"dry_multiplier": &s.DryMultiplier, "top_n_sigma": &s.TopNSigma, "mirostat": &s.Mirostat,
	} {
		if f := req.Fields[name]; len(f) > 0 {
			json.Unmarshal(f, p) // the server refuses what is no number
		}
	}
	return s
}

// llamaBias returns the request's biases as a list of pairs, whose first is an
// ID or a text.
func llamaBias(req *backend.Request) (pairs []json.RawMessage) {
	if req.Fields == nil {
		for _, id := range slices.Sorted(maps.Keys(req.Sampling.LogitBias)) {
			b := req.Sampling.LogitBias[id]
			if math.IsInf(b, -1) {
				pairs = append(pairs, fmt.Appendf(nil, "[%d,false]", id))
				continue
			}
			pairs = append(pairs, fmt.Appendf(nil, "[%d,%s]", id, strconv.FormatFloat(b, 'g', -1, 64)))
		}
		return pairs
	}
	field := req.Fields["logit_bias"]
	if json.Unmarshal(field, &pairs) == nil {
		return pairs
	}
	var byName map[string]json.RawMessage
	if json.Unmarshal(field, &byName) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		key, _ := json.Marshal(name)
		if _, err := strconv.ParseInt(name, 10, 32); err == nil {
			key = []byte(name)
		}
		pairs = append(pairs, fmt.Appendf(nil, "[%s,%s]", key, byName[name]))
	}
	return pairs
}

// body returns what all requests of a generation have in common.
func (e *llamaEngine) body(c *call) map[string]json.RawMessage {
	b := map[string]json.RawMessage{}
	if c.req.Fields != nil {
		maps.Copy(b, c.req.Fields)
		for _, name := range llamaOwn {
			delete(b, name)
		}
	} else {
		e.setSampling(b, &c.req.Sampling)
	}
	if _, given := b["cache_prompt"]; !given {
		b["cache_prompt"] = rawTrue
	}
	if c.seed != nil {
		seed := uint32(*c.seed)
		if seed == math.MaxUint32 { // llama.cpp's "at random"
			seed = 0
		}
		b["seed"] = number(int(seed))
	}
	if _, given := b["id_slot"]; !given && c.slot >= 0 && (e.s.client.base != nil || e.s.options.OneServer) {
		// The rest of a generation goes where its beginning is cached. Only behind
		// one address is a slot's number the same slot again.
		b["id_slot"] = number(c.slot)
	}
	b["prompt"] = rawIDs(c.ids)
	b["model"] = e.model
	b["n_predict"] = number(c.max)
	b["return_tokens"] = rawTrue
	if c.req.Logprobs {
		b["n_probs"] = number(max(1, c.req.TopLogprobs))
	}
	return b
}

func (e *llamaEngine) setSampling(b map[string]json.RawMessage, s *backend.Sampling) {
	topP := s.TopP
	if topP == 0 {
		topP = 1
	}
	repeat := s.RepeatPenalty
	if repeat == 0 {
		repeat = 1
	}
	lastN := s.RepeatLastN
	if lastN == 0 {
		lastN = 64
	}
	b["temperature"], b["top_k"], b["top_p"], b["min_p"] = float(s.Temperature), number(s.TopK), float(topP), float(s.MinP)
	b["repeat_penalty"], b["repeat_last_n"] = float(repeat), number(lastN)
	b["frequency_penalty"], b["presence_penalty"] = float(s.FrequencyPenalty), float(s.PresencePenalty)
	// Those that backend.Sampling does not know stay off, whatever the server's own
	// settings are.
	b["samplers"] = json.RawMessage(`["penalties","top_k","top_p","min_p","temperature"]`)
	if bias := llamaBias(&backend.Request{Sampling: *s}); len(bias) > 0 {
		b["logit_bias"] = rawList(bias)
	}
}

// states implements [engine].
func (e *llamaEngine) states(c *call) bool {
	_, ok := e.stated(c)
	return ok
}

// stated writes the call's replay, and the grammar after it, as a grammar.
func (e *llamaEngine) stated(c *call) (string, bool) {
	if g, _ := llamaGrammar(c.req); g != nil {
		source, err := gbnfAfter(c.replay.pending, g.Source)
		return source, err == nil
	}
	if e.literals {
		most := maxLiterals
		if c.exact {
			most = maxExact
		}
		if source, ok := gbnfWays(c.replay, most); ok || c.exact {
			return source, ok
		}
	}
	if c.exact && !c.replay.free {
		return "", false
	}
	return gbnfBytes(c.replay.pending, e.literals)
}

// open implements [engine].
func (e *llamaEngine) open(ctx context.Context, c *call) (source, error) {
	b := e.body(c)
	b["stream"], b["timings_per_token"] = rawTrue, rawTrue
	g, err := llamaGrammar(c.req)
	if err != nil {
		return nil, err
	}
	switch {
	case c.replay != nil:
		source, ok := e.stated(c)
		if !ok {
			return nil, &backend.UnsupportedError{Param: "grammar", Text: "the prompt's last bytes cannot be stated together with it"}
		}
		b["grammar"] = quote(source)
	case g != nil && g.Kind == backend.GBNF:
		b["grammar"] = quote(g.Source)
	case g != nil:
		b["json_schema"] = json.RawMessage(g.Source)
	}
	data, err := json.Marshal(b)
	if err != nil {
		return nil, &backend.UnsupportedError{Param: "json_schema", Text: err.Error()}
	}
	ev, err := e.s.client.stream(ctx, "/completion", data)
	if err != nil {
		return nil, err
	}
	return &llamaSource{e: e, ctx: ctx, c: c, ev: ev, end: ended{token: vocab.None}, slot: -1, requests: 1}, nil
}

// favor is added to the logits of tokens that are allowed, where that amounts to
// a mask. It is above the range of a model's logits, and small enough that
// float32 still tells those of them apart by 3e-5.
const favor = 256

// step implements [engine].
func (e *llamaEngine) step(ctx context.Context, c *call, mask vocab.Mask) (backend.Token, answered, error) {
	b := e.body(c)
	bias := llamaBias(c.req)
	if s := e.settings(c.req); s.RepeatPenalty != 0 && s.RepeatPenalty != 1 || s.TopNSigma > 0 || s.Mirostat != 0 {
		// These look at the logits' size: none may be moved.
		for id := range vocab.ID(e.s.vocab.Len()) {
			if !mask.Has(id) {
				bias = append(bias, fmt.Appendf(nil, "[%d,false]", id))
			}
		}
	} else {
		for id := range mask.All() {
			bias = append(bias, fmt.Appendf(nil, "[%d,%d]", id, favor))
		}
	}
	b["logit_bias"] = rawList(bias)
	var out llamaAnswer
	a, err := e.ask(ctx, c, b, &out)
	if err != nil {
		return backend.Token{ID: vocab.None}, a, err
	}
	if len(out.Tokens) == 0 {
		return backend.Token{ID: vocab.None}, a, &backend.ProtocolError{Text: "it has no token where one was asked for"}
	}
	out.Tokens = out.Tokens[:1]
	toks, err := e.tokens(ctx, c, nil, &out)
	a.requests += out.weighed
	if err != nil {
		return backend.Token{ID: vocab.None}, a, err
	}
	return toks[0], a, nil
}

// llamaFields are what is read of an answer that is no stream. The rest repeats
// the request.
var llamaFields = json.RawMessage(`["tokens","completion_probabilities","stop_type","tokens_predicted","timings","id_slot"]`)

// ask sends a request and reads its answer as a whole.
func (e *llamaEngine) ask(ctx context.Context, c *call, b map[string]json.RawMessage, out *llamaAnswer) (answered, error) {
	a := answered{slot: -1, requests: 1}
	b["response_fields"] = llamaFields
	out.Slot = -1
	if err := e.s.client.do(ctx, http.MethodPost, "/completion", b, out); err != nil {
		return a, err
	}
	a.cached, a.slot = out.Timings.CacheN, out.Slot
	return a, nil
}

// Numbers of alternatives that a row is asked for with, by detail.
const (
	llamaSome = 256
	llamaMore = 4096
)

// rows implements [engine]. One request gives all of them, held to the path,
// unless a token of it cannot be stated.
func (e *llamaEngine) rows(ctx context.Context, c *call, asked rowsAsked) ([]*partRow, answered, error) {
	n := e.s.vocab.Len()
	switch asked.detail {
	case someValues:
		n = min(n, llamaSome)
	case moreValues:
		n = min(n, llamaMore)
	}
	if len(asked.path) == 0 {
		return e.rowsAt(ctx, c, asked, n, "")
	}
	if grammar, ok := gbnfPath(e.s.vocab, append(slices.Clone(asked.path), e.letter)); ok && e.literals {
		return e.rowsAt(ctx, c, asked, n, grammar)
	}
	var rows []*partRow
	a := answered{slot: -1}
	for i := range len(asked.path) + 1 {
		at := *c
		at.ids = slices.Concat(c.ids, asked.path[:i])
		one, b, err := e.rowsAt(ctx, &at, rowsAsked{detail: asked.detail}, n, "")
		a.requests += b.requests
		a.slot = b.slot
		if i == 0 {
			a.cached = b.cached
		}
		if err != nil {
			return nil, a, err
		}
		rows = append(rows, one...)
	}
	return rows, a, nil
}

func (e *llamaEngine) rowsAt(ctx context.Context, c *call, asked rowsAsked, n int, grammar string) ([]*partRow, answered, error) {
	at := *c
	at.max = len(asked.path) + 1
	b := e.body(&at)
	b["n_probs"], b["temperature"] = number(n), number(0)
	// Of a token that ends inside a character there are no log-probabilities. So
	// the last one, which nobody asks for, is a letter.
	b["logit_bias"] = json.RawMessage(fmt.Sprintf("[[%d,%d]]", e.letter, favor))
	if grammar != "" {
		b["grammar"] = quote(grammar)
		delete(b, "logit_bias")
	}
	var out llamaAnswer
	a, err := e.ask(ctx, c, b, &out)
	if err != nil {
		return nil, a, err
	}
	if len(out.Probs) < at.max || len(out.Tokens) < len(asked.path) || !slices.Equal(out.Tokens[:len(asked.path)], asked.path) {
		return nil, a, &backend.ProtocolError{Text: "it has no log-probabilities along the path that was asked for"}
	}
	rows := make([]*partRow, at.max)
	for i := range rows {
		p := &out.Probs[i]
		if len(p.Top) == 0 {
			return nil, a, &backend.ProtocolError{Text: "it has no log-probabilities where they were asked for"}
		}
		if err := checkTop(e.s.vocab, p.Top); err != nil {
			return nil, a, err
		}
		top := make([]backend.Logprob, len(p.Top))
		for k, t := range p.Top {
			top[k] = backend.Logprob{ID: t.ID, Logprob: t.Logprob}
			if t.Logprob < llamaLowest {
				top[k].Logprob = math.Inf(-1)
			}
		}
		rows[i] = newPartRow(top, []backend.Logprob{{ID: p.ID, Logprob: p.Logprob}}, e.s.vocab.Len(), asked.detail)
	}
	return rows, a, nil
}

// llamaLowest is below all logarithms of probabilities but that of zero, for
// which llama.cpp writes float32's lowest number.
const llamaLowest = -1e30

// Values of JSON.
var rawTrue = json.RawMessage("true")

func number(n int) json.RawMessage { return strconv.AppendInt(nil, int64(n), 10) }

func float(f float64) json.RawMessage {
	b, err := json.Marshal(f)
	if err != nil { // not a number: the server is to refuse it
		return json.RawMessage(`"NaN"`)
	}
	return b
}

func quote(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}

func rawIDs(ids []vocab.ID) json.RawMessage {
	b := make([]byte, 0, 6*len(ids)+2)
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']')
}

func rawList(items []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']')
}
