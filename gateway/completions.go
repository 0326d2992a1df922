package gateway

import (
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/vocab"
)

// defaultMaxTokens is OpenAI's default for /v1/completions.
const defaultMaxTokens = 16

func (g *Gateway) completions(x *exchange) error {
	return g.relay(x, func(q *request) {
		req, err := wire.DecodeCompletion(q.body)
		if q.err = err; err == nil {
			q.model, q.unread = req.Model, req.Ignored
			q.job = func(m *model, fields map[string]json.RawMessage) (*job, error) {
				return g.completionJob(x, m, req, fields)
			}
		}
	})
}

// completionJob checks a request for completions.
func (g *Gateway) completionJob(x *exchange, m *model, req *wire.CompletionRequest, fields map[string]json.RawMessage) (*job, error) {
	if fields == nil {
		showIgnored(x, req.Ignored)
	}
	n := or(req.N, 1)
	switch {
	case req.BestOf != nil && *req.BestOf != n:
		return nil, badRequest("best_of", "best_of: only best_of = n is possible: every choice is returned; raise n to %d and choose", *req.BestOf)
	case req.Echo && req.Logprobs != nil:
		return nil, badRequest("echo", "echo: log-probabilities of the prompt are not available; leave out echo or logprobs")
	}
	if err := g.checkChoices(len(req.Prompts), n); err != nil {
		return nil, err
	}
	r, err := m.sampling(&req.Sampling)
	if err != nil {
		return nil, err
	}
	r.Fields = fields
	r.MaxTokens = or(req.MaxTokens, m.defaultMaxTokens())
	if req.Endless && m.Upstream != nil && !m.Native {
		r.MaxTokens = 0 // to vLLM null is not the same as nothing
	}
	r.Logprobs, r.TopLogprobs = req.Logprobs != nil, or(req.Logprobs, 0)
	if suffix := or(req.Suffix, ""); suffix != "" {
		r.Fill = &unfray.Fill{Suffix: []byte(suffix)}
	}
	j := &job{
		id: "cmpl-" + rand.Text(), created: time.Now(), model: m, n: n,
		stream: req.Stream, includeUsage: req.IncludeUsage && req.Stream,
	}
	if r.Heal, j.healAsked, err = m.healMode(x, &req.Unfray, m.Heal); err != nil {
		return nil, err
	}
	prompts, err := m.completionPrompts(req.Prompts)
	if err != nil {
		return nil, err
	}
	if j.d, err = g.newCompletionDialect(m, req.Echo, prompts, n); err != nil {
		return nil, err
	}
	return j, j.prepare(r, prompts, req.Seed)
}

// completionPrompts turns prompts of the wire into the model's. Special tokens
// spelled in a text count as such, as on llama.cpp's and vLLM's servers: the
// templates for filling in the middle that editors use depend on it.
func (m *model) completionPrompts(in []wire.Prompt) ([]unfray.Prompt, error) {
	if in == nil {
		in = []wire.Prompt{{}}
	}
	limit := m.Model.Model.Info().ContextLength
	out := make([]unfray.Prompt, len(in))
	for i, p := range in {
		if p.IDs == nil {
			out[i] = unfray.Prompt{Text: []byte(p.Text), ParseSpecial: true}
			continue
		}
		if len(p.IDs) >= limit {
			return nil, &backend.PromptTooLongError{Tokens: len(p.IDs), ContextLength: limit}
		}
		ids := make([]vocab.ID, len(p.IDs))
		for k, id := range p.IDs {
			ids[k] = vocab.ID(id)
		}
		out[i].IDs = ids
	}
	return out, nil
}

// spell returns the text of tokens. IDs outside the vocabulary have none.
func spell(v *vocab.Vocab, ids []vocab.ID) []byte {
	var b []byte
	for _, id := range ids {
		b = append(b, v.Bytes(id)...)
	}
	return b
}

// completionDialect writes the answers of /v1/completions.
type completionDialect struct {
	vocab   *vocab.Vocab
	echo    bool
	prompts [][]byte // texts, by prompt
	// offsets counts the characters of prompt and continuation, by choice.
	// Only tails that are not whole characters are kept of the prompts.
	offsets []charCounter
	tails   []int // bytes of the prompt's tail, by choice
}

// maxEcho is how often the size of a request body its echoes may have.
const maxEcho = 8

func (g *Gateway) newCompletionDialect(m *model, echo bool, prompts []unfray.Prompt, n int) (*completionDialect, error) {
	d := &completionDialect{vocab: m.Model.Model.Tokenizer().Vocab(), echo: echo}
	size := 0
	for _, p := range prompts {
		text := p.Text
		if p.IDs != nil {
			text = spell(d.vocab, p.IDs)
		}
		d.prompts = append(d.prompts, text)
		size += len(text) * n
		var whole utf8Joiner
		head := charCounter{text: whole.next(text)}
		chars, tail := head.at(len(head.text)), whole.rest()
		for range n {
			d.offsets = append(d.offsets, charCounter{text: append([]byte(nil), tail...), chars: chars})
			d.tails = append(d.tails, len(tail))
		}
	}
	if echo && int64(size) > maxEcho*g.cfg.MaxBodyBytes {
		return nil, badRequest("echo", "echo: the answer would repeat %d bytes of prompts; leave out echo or ask for fewer choices", size)
	}
	return d, nil
}

func (d *completionDialect) frame(j *job, choices ...wire.CompletionChoice) *wire.Completion {
	c := &wire.Completion{
		ID: j.id, Object: "text_completion", Created: j.created.Unix(), Model: j.model.Name,
		Choices: choices,
	}
	if choices == nil {
		c.Choices = []wire.CompletionChoice{}
	}
	if j.includeUsage {
		c.Usage = &wire.UsageField{}
	}
	return c
}

// logprobs describes tokens of a choice after arrived, which holds their bytes
// and goes on where the last call's ended.
func (d *completionDialect) logprobs(j *job, choice int, tokens []unfray.Token, arrived []byte) *wire.CompletionLogprobs {
	if !j.settings.Logprobs {
		return nil
	}
	c := &d.offsets[choice]
	c.text = append(c.text, arrived...)
	return completionLogprobs(d.vocab, tokens, j.settings.TopLogprobs, func(t unfray.Token) int {
		return c.at(d.tails[choice] + t.Offset)
	})
}

func (d *completionDialect) whole(j *job, results []*unfray.Result) any {
	c := d.frame(j)
	for i, r := range results {
		_, echo := d.start(j, i)
		choice := wire.CompletionChoice{Index: i, FinishReason: finishReason(r), Unfray: j.reportChoice(r)}
		choice.Text, choice.Bytes = validText(append(echo[:len(echo):len(echo)], r.Text...))
		choice.Logprobs = d.logprobs(j, i, r.Tokens, r.Text)
		c.Choices = append(c.Choices, choice)
	}
	c.Usage = &wire.UsageField{Value: j.totalUsage(results)}
	c.Unfray = j.report(results[0])
	return c
}

func (d *completionDialect) start(j *job, choice int) (any, []byte) {
	if d.echo {
		return nil, d.prompts[choice/j.n]
	}
	return nil, nil
}

func (d *completionDialect) delta(j *job, choice int, p part) any {
	return d.frame(j, wire.CompletionChoice{
		Index: choice, Text: p.text, Bytes: p.exact, Logprobs: d.logprobs(j, choice, p.tokens, p.arrived),
	})
}

func (d *completionDialect) finish(j *job, choice int, res *unfray.Result, extra *wire.Unfray) any {
	c := d.frame(j, wire.CompletionChoice{Index: choice, FinishReason: finishReason(res), Unfray: j.reportChoice(res)})
	c.Unfray = extra
	return c
}

func (d *completionDialect) usage(j *job, u *wire.Usage, extra *wire.Unfray) any {
	c := d.frame(j)
	c.Usage, c.Unfray = &wire.UsageField{Value: u}, extra
	return c
}
