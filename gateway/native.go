package gateway

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/vocab"
)

// native serves llama.cpp's POST /completion.
func (g *Gateway) native(x *exchange) error {
	return g.relay(x, func(q *request) {
		req, err := wire.DecodeNative(q.body)
		if q.err = err; err == nil {
			q.model, q.unread, q.whole = req.Model, req.Ignored, g.lacksNative(req.Model)
			q.job = func(m *model, fields map[string]json.RawMessage) (*job, error) {
				if q.whole {
					fields = nil
				}
				return g.nativeJob(x, m, req, fields)
			}
		}
	})
}

// lacksNative reports whether the server of a model does not speak llama.cpp's
// own dialect.
func (g *Gateway) lacksNative(name string) bool {
	m, err := g.choose(name)
	return err == nil && m.Upstream != nil && !m.Native
}

// nativeJob checks a request for completions. What it leaves out has llama.cpp's
// defaults.
func (g *Gateway) nativeJob(x *exchange, m *model, req *wire.NativeRequest, fields map[string]json.RawMessage) (*job, error) {
	if fields == nil {
		showIgnored(x, req.Ignored)
	}
	n := or(req.N, 1)
	if err := g.checkChoices(len(req.Prompts), n); err != nil {
		return nil, err
	}
	s, warm := warmUp(req.Sampling)
	r, err := m.nativeSampling(&s)
	if err != nil {
		return nil, err
	}
	r.Fields = fields
	if req.Probs < 0 || req.Probs > unfray.MaxTopLogprobs {
		return nil, badRequest("n_probs", "n_probs: %d is not between 0 and %d", req.Probs, unfray.MaxTopLogprobs)
	}
	r.Logprobs, r.TopLogprobs = req.Probs > 0, req.Probs
	j := &job{
		id: rand.Text(), created: time.Now(), model: m, n: n, stream: req.Stream, noDone: true,
		d: &nativeDialect{
			warm: warm, tokens: req.ReturnTokens, probs: req.Probs > 0, vocab: m.Model.Model.Tokenizer().Vocab(),
			indent: indentation(fields),
		},
	}
	if r.Heal, j.healAsked, err = m.healMode(x, &req.Unfray, m.Heal); err != nil {
		return nil, err
	}
	prompts, err := m.nativePrompts(req.Prompts)
	if err != nil {
		return nil, err
	}
	return j, j.prepare(r, prompts, s.Seed)
}

// nativePrompts turns prompts of the wire into the model's. One of several parts
// becomes token IDs, each text tokenized by itself.
func (m *model) nativePrompts(in []wire.NativePrompt) ([]unfray.Prompt, error) {
	if in == nil {
		in = []wire.NativePrompt{{{}}}
	}
	tok := m.Model.Model.Tokenizer()
	out := make([]unfray.Prompt, len(in))
	for i, parts := range in {
		if len(parts) == 1 {
			p, err := m.completionPrompts(parts)
			if err != nil {
				return nil, err
			}
			out[i] = p[0]
			continue
		}
		var ids []vocab.ID
		if sp := tok.Vocab().Specials(); parts[0].IDs == nil && sp.AddBOS && sp.BOS != vocab.None {
			ids = append(ids, sp.BOS)
		}
		for _, p := range parts {
			if p.IDs == nil {
				ids = tok.EncodeSpecial(ids, []byte(p.Text))
			}
			for _, id := range p.IDs {
				ids = append(ids, vocab.ID(id))
			}
		}
		out[i].IDs = ids
	}
	return out, nil
}

// warmUp changes a request for no tokens, which is there to have the prompt in
// the cache.
func warmUp(s wire.Sampling) (wire.Sampling, bool) {
	warm := s.MaxTokens != nil && *s.MaxTokens == 0
	if warm {
		s.MaxTokens, s.Stop = new(int), nil
		*s.MaxTokens = 1
	}
	return s, warm
}

// nativeSampling is sampling with llama.cpp's defaults, or those of its server.
func (m *model) nativeSampling(s *wire.Sampling) (*unfray.Request, error) {
	if m.Model.Model.Info().Defaults == nil {
		defaultTo(&s.Temperature, 0.8)
		defaultTo(&s.TopK, 40)
		defaultTo(&s.TopP, 0.95)
		defaultTo(&s.MinP, 0.05)
	}
	return m.sampling(s)
}

func defaultTo[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

// tokenize serves llama.cpp's POST /tokenize.
func (g *Gateway) tokenize(x *exchange) error {
	body, err := g.readBody(x)
	if err != nil {
		return err
	}
	req, err := wire.DecodeTokenize(body)
	if err != nil {
		return g.serveUnread(x, &request{body: body, err: err})
	}
	// vLLM's request of this name has a prompt or messages instead.
	return g.relayUnless(x, body, req.Model, !req.HasContent, func(m *model) error {
		tok := m.Model.Model.Tokenizer()
		var ids []vocab.ID
		if sp := tok.Vocab().Specials(); req.AddSpecial && sp.AddBOS && sp.BOS != vocab.None {
			ids = append(ids, sp.BOS)
		}
		if req.ParseSpecial {
			ids = tok.EncodeSpecial(ids, []byte(req.Content))
		} else {
			ids = tok.Encode(ids, []byte(req.Content))
		}
		answer := wire.Tokenized{Tokens: make([]any, len(ids))}
		for i, id := range ids {
			answer.Tokens[i] = int32(id)
			if req.WithPieces {
				answer.Tokens[i] = wire.TokenPiece{ID: int32(id), Piece: piece(tok.Vocab().Bytes(id))}
			}
		}
		return g.answer(x, answer)
	})
}

// piece is a token's text, or its bytes where JSON cannot carry them.
func piece(b []byte) json.RawMessage {
	var v any = chatToken(b, 0).Bytes
	if text, exact := validText(b); exact == nil {
		v = text
	}
	raw, _ := json.Marshal(v) // strings and numbers
	return raw
}

// detokenize serves llama.cpp's POST /detokenize.
func (g *Gateway) detokenize(x *exchange) error {
	body, err := g.readBody(x)
	if err != nil {
		return err
	}
	req, err := wire.DecodeDetokenize(body)
	if err != nil {
		return g.serveUnread(x, &request{body: body, err: err})
	}
	// vLLM's request of this name is the same, its answer is not.
	return g.relayUnless(x, body, req.Model, true, func(m *model) error {
		v := m.Model.Model.Tokenizer().Vocab()
		ids := make([]vocab.ID, len(req.Tokens))
		for i, id := range req.Tokens {
			if ids[i] = vocab.ID(id); !v.Valid(ids[i]) {
				return badRequest("tokens", "tokens[%d]: %d is outside the vocabulary of %d tokens", i, id, v.Len())
			}
		}
		var answer wire.Detokenized
		answer.Content, answer.Bytes = validText(spell(v, ids))
		return g.answer(x, answer)
	})
}

// nativeDialect writes the answers of /completion and /infill.
type nativeDialect struct {
	warm   bool
	tokens bool // they are asked for
	probs  bool
	vocab  *vocab.Vocab
	indent int // least indentation of a line, where the server looks at it
}

func (d *nativeDialect) whole(j *job, results []*unfray.Result) any {
	out := make([]wire.Infill, len(results))
	for i, r := range results {
		out[i] = d.end(j, i, r)
		if !d.warm {
			out[i].Content, out[i].Bytes = validText(d.indented(r))
			d.describe(&out[i], r.Tokens)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}

// indentation is the field n_indent of a request, which the server gets.
func indentation(fields map[string]json.RawMessage) (n int) {
	_ = json.Unmarshal(fields["n_indent"], &n) // what is no number is the server's to refuse
	return n
}

// indented returns a text without a last line that is indented less than it must
// be. llama.cpp's server ends the generation there and does not show it, except in
// a stream.
func (d *nativeDialect) indented(r *unfray.Result) []byte {
	line := bytes.LastIndexByte(r.Text, '\n') + 1
	if d.indent <= 0 || line == 0 || r.FinishReason != backend.FinishLength {
		return r.Text
	}
	blank := len(r.Text) - line - len(bytes.TrimLeft(r.Text[line:], " \t"))
	if blank >= d.indent {
		return r.Text
	}
	return r.Text[:line+blank]
}

func (d *nativeDialect) end(j *job, choice int, r *unfray.Result) wire.Infill {
	a := wire.Infill{
		Index: choice, Tokens: []int32{}, Stop: true, Unfray: j.report(r),
		TokensPredicted: r.Usage.CompletionTokens, TokensEvaluated: r.Usage.PromptTokens,
		InfillEnd: &wire.InfillEnd{
			Model: j.model.Name, HasNewLine: bytes.IndexByte(r.Text, '\n') >= 0,
			StopType: "eos", StoppingWord: r.StopString, TokensCached: r.Usage.CachedTokens,
		},
	}
	switch {
	case d.warm:
		a.TokensPredicted, a.HasNewLine, a.StopType = 0, false, "limit"
	case r.FinishReason == backend.FinishLength:
		a.StopType = "limit"
	case r.StopString != "":
		a.StopType = "word"
	}
	a.Timings = wire.InfillTimings{
		CacheN: r.Usage.CachedTokens, PromptN: r.Usage.PromptTokens - r.Usage.CachedTokens, PredictedN: a.TokensPredicted,
	}
	return a
}

// describe adds the tokens where they are asked for.
func (d *nativeDialect) describe(a *wire.Infill, tokens []unfray.Token) {
	for _, t := range tokens {
		if d.tokens {
			a.Tokens = append(a.Tokens, int32(t.ID))
		}
		if !d.probs {
			continue
		}
		p := d.token(t.ID, t.Bytes, t.Logprob)
		for _, top := range t.Top {
			p.TopLogprobs = append(p.TopLogprobs, d.token(top.ID, d.vocab.Bytes(top.ID), top.Logprob))
		}
		a.Probs = append(a.Probs, p)
	}
}

func (d *nativeDialect) token(id vocab.ID, b []byte, logprob float64) wire.NativeToken {
	t := chatToken(b, logprob)
	return wire.NativeToken{ID: int32(id), Token: t.Token, Bytes: t.Bytes, Logprob: t.Logprob}
}

func (d *nativeDialect) start(*job, int) (any, []byte) { return nil, nil }

func (d *nativeDialect) delta(_ *job, choice int, p part) any {
	if d.warm {
		return wire.Infill{Index: choice, Tokens: []int32{}}
	}
	a := wire.Infill{Index: choice, Content: p.text, Bytes: p.exact, Tokens: []int32{}}
	d.describe(&a, p.tokens)
	return a
}

func (d *nativeDialect) finish(j *job, choice int, r *unfray.Result, _ *wire.Unfray) any {
	return d.end(j, choice, r)
}

// usage is not asked for: each choice tells its own.
func (d *nativeDialect) usage(*job, *wire.Usage, *wire.Unfray) any { return nil }
