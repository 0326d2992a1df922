package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// vllmAnswer is an answer of /v1/completions, or one event of its stream. Its
// text is not read: where the prompt ends inside a character it holds the whole
// prompt, where the tokens end inside one it is empty.
type vllmAnswer struct {
	Choices []vllmChoice `json:"choices"`
	Usage   *struct {
		Details *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

type vllmChoice struct {
	Index    int             `json:"index"`
	Tokens   []vocab.ID      `json:"token_ids"`
	Prompt   []vocab.ID      `json:"prompt_token_ids"`
	Finish   *string         `json:"finish_reason"`
	Stop     json.RawMessage `json:"stop_reason"`
	Logprobs *vllmLogprobs   `json:"logprobs"`
}

type vllmLogprobs struct {
	Tokens []string             `json:"tokens"`
	Values []*float64           `json:"token_logprobs"`
	Top    []map[string]float64 `json:"top_logprobs"`
}

// cached is how many tokens of the prompt the server says it had already.
func (a *vllmAnswer) cached() int {
	if a.Usage == nil || a.Usage.Details == nil {
		return 0
	}
	return max(0, a.Usage.Details.Cached)
}

// choice returns the one choice of an answer, nil if there is none.
func (a *vllmAnswer) choice() (*vllmChoice, error) {
	switch {
	case len(a.Choices) == 0:
		return nil, nil
	case len(a.Choices) > 1 || a.Choices[0].Index != 0:
		return nil, &backend.ProtocolError{Text: "it holds several choices where one was asked for"}
	}
	return &a.Choices[0], nil
}

// tokenID reads the form "token_id:7" of a token's text.
func tokenID(text string) (vocab.ID, error) {
	digits, ok := strings.CutPrefix(text, "token_id:")
	id, err := strconv.ParseInt(digits, 10, 32)
	if !ok || err != nil {
		return vocab.None, &backend.ProtocolError{Text: fmt.Sprintf("a log-probability names its token %.40q, not by an ID", text)}
	}
	return vocab.ID(id), nil
}

// tokens checks and returns the tokens of a choice. With logprobs each has its
// log-probability and the likeliest top.
func (c *vllmChoice) tokens(v *vocab.Vocab, logprobs bool, top int) ([]backend.Token, error) {
	list := make([]backend.Token, len(c.Tokens))
	for i, id := range c.Tokens {
		if !v.Valid(id) {
			return nil, &backend.ProtocolError{Text: fmt.Sprintf("it holds token %d of a vocabulary of %d", id, v.Len())}
		}
		list[i].ID = id
	}
	if !logprobs || len(list) == 0 {
		return list, nil
	}
	l := c.Logprobs
	if l == nil || len(l.Tokens) != len(list) || len(l.Values) != len(list) || top > 0 && len(l.Top) != len(list) {
		return nil, &backend.ProtocolError{Text: "it lacks log-probabilities that were asked for"}
	}
	for i := range list {
		id, err := tokenID(l.Tokens[i])
		if err != nil {
			return nil, err
		}
		if id != list[i].ID || l.Values[i] == nil {
			return nil, &backend.ProtocolError{Text: "its log-probabilities are not those of its tokens"}
		}
		list[i].Logprob = min(0, *l.Values[i])
		if top > 0 {
			if list[i].Top, err = sortedTop(l.Top[i], v, top); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// sortedTop returns the likeliest n of a position. The server adds the token that
// it drew.
func sortedTop(values map[string]float64, v *vocab.Vocab, n int) ([]backend.Logprob, error) {
	list := make([]backend.Logprob, 0, len(values))
	for text, l := range values {
		id, err := tokenID(text)
		if err != nil {
			return nil, err
		}
		if !v.Valid(id) || math.IsNaN(l) {
			return nil, &backend.ProtocolError{Text: fmt.Sprintf("it has a log-probability of token %d of a vocabulary of %d", id, v.Len())}
		}
		list = append(list, backend.Logprob{ID: id, Logprob: min(0, l)})
	}
	slices.SortFunc(list, func(a, b backend.Logprob) int {
		return cmp.Or(cmp.Compare(b.Logprob, a.Logprob), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(n, len(list))], nil
}

// end says how a choice ended, if it has, and takes the token that ended it off
// its tokens.
func (c *vllmChoice) end() (e ended, over bool, err error) {
	e.token = vocab.None
	if c.Finish == nil {
		return e, false, nil
	}
	switch *c.Finish {
	case "length":
		e.reason = backend.FinishLength
	case "stop":
		e.reason = backend.FinishStop
		// A string is a stop string, which are not sent. A number is the token,
		// null is the model's own end token.
		var id vocab.ID
		n := len(c.Tokens) - 1
		switch isNull := len(c.Stop) == 0 || string(c.Stop) == "null"; {
		case n < 0:
		case isNull, json.Unmarshal(c.Stop, &id) == nil && id == c.Tokens[n]:
			e.token = c.Tokens[n]
			c.Tokens = c.Tokens[:n]
			if l := c.Logprobs; l != nil {
				l.Tokens, l.Values, l.Top = l.Tokens[:min(n, len(l.Tokens))], l.Values[:min(n, len(l.Values))], l.Top[:min(n, len(l.Top))]
			}
		}
	case "repetition": // the server's own guard against loops
		e.reason = backend.FinishStop
	default:
		return e, true, &backend.ProtocolError{Text: fmt.Sprintf("its generation ended for the reason %.40q", *c.Finish)}
	}
	return e, true, nil
}

// vllmSource implements source.
type vllmSource struct {
	v      *VLLM
	ctx    context.Context
	req    *backend.Request
	events *events

	ids     []vocab.ID // the prompt, and what was handed out after it
	began   bool       // some event has come
	pending int        // bytes of the replay that are still to come
	asked   int        // tokens that may still be handed out
	// spare is how many of the tokens asked for are there because some of the
	// replay's may not count.
	spare int

	ready []backend.Token
	over  bool // the finish reason has come
	how   ended
	told  answered
	err   error
}

// open implements engine.
func (v *VLLM) open(ctx context.Context, c *call) (source, error) {
	so, err := v.constraint(c.req.Grammar, c.replay)
	if err != nil {
		return nil, err
	}
	s := &vllmSource{v: v, ctx: ctx, req: c.req, ids: slices.Clone(c.ids), told: answered{slot: -1, requests: 1}}
	if !c.replay.done() {
		s.pending, s.spare = len(c.replay.pending), len(c.replay.pending)
		if t, err := newTokenTree(c.replay); err == nil && c.req.Grammar == nil {
			s.spare = min(s.spare, t.depth())
		}
		c.max = max(1, c.max-(s.pending-s.spare))
	}
	s.asked = c.max
	body := v.body(c)
	if so != nil {
		body["structured_outputs"] = so
	}
	body["stream"], body["stream_options"] = true, map[string]bool{"include_usage": true}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	if s.events, err = v.client.stream(ctx, vllmCompletions, text); err != nil {
		return nil, err
	}
	return s, nil
}

const vllmCompletions = "/v1/completions"

// next implements source.
func (s *vllmSource) next() (backend.Token, error) {
	for len(s.ready) == 0 && s.err == nil {
		s.err = s.read()
	}
	if len(s.ready) == 0 {
		return backend.Token{}, s.err
	}
	t := s.ready[0]
	s.ready = s.ready[1:]
	s.asked--
	if err := s.unconstrain(&t); err != nil {
		s.ready, s.err = nil, err
		return backend.Token{}, err
	}
	s.ids = append(s.ids, t.ID)
	if s.spare > 0 && s.asked <= s.spare {
		// This may be the last token that is wanted. What was cached is in the event
		// after the last that was asked for, a few more.
		for s.err == nil {
			s.err = s.read()
		}
	}
	return t, nil
}

// read takes the next event. At the end of a generation it returns io.EOF.
func (s *vllmSource) read() error {
	var a vllmAnswer
	err := s.events.decode(&a)
	switch {
	case err != nil && s.ctx.Err() != nil:
		return s.ctx.Err()
	case err != nil && s.over:
		return io.EOF // all that matters has come
	case errors.Is(err, io.EOF):
		return &backend.ProtocolError{Text: "its stream ended before the generation did"}
	case err != nil:
		return err
	}
	s.told.cached = max(s.told.cached, a.cached())
	c, err := a.choice()
	if c == nil || err != nil {
		return err
	}
	if s.over {
		return &backend.ProtocolError{Text: "its stream goes on after the generation's end"}
	}
	if err := s.checkPrompt(c); err != nil {
		return err
	}
	if s.how, s.over, err = c.end(); err != nil {
		return err
	}
	list, err := c.tokens(s.v.vocab, s.req.Logprobs || s.req.TopLogprobs > 0, s.req.TopLogprobs)
	if len(s.ready)+len(list) > s.asked {
		return &backend.ProtocolError{Text: "it gives more tokens than were asked for"}
	}
	s.ready = append(s.ready, list...)
	return err
}

// checkPrompt compares what the server took for the prompt, which the first
// event says, with what it was given.
func (s *vllmSource) checkPrompt(c *vllmChoice) error {
	if s.began {
		return nil
	}
	s.began = true
	switch {
	case c.Prompt == nil:
		return &backend.ProtocolError{Text: "it holds no token IDs"}
	case !slices.Equal(c.Prompt, s.ids):
		return &backend.ProtocolError{Text: fmt.Sprintf("it is for another prompt, of %d tokens instead of %d", len(c.Prompt), len(s.ids))}
	}
	return nil
}

// unconstrain replaces the log-probabilities of a token of the replay, which the
// grammar moved, by the model's own.
func (s *vllmSource) unconstrain(t *backend.Token) error {
	if s.pending <= 0 {
		return nil
	}
	s.pending -= len(s.v.vocab.Bytes(t.ID))
	if !s.req.Logprobs && s.req.TopLogprobs <= 0 {
		return nil
	}
	b := s.v.plain(s.req, s.ids)
	b["allowed_token_ids"], b["logprobs"] = []vocab.ID{t.ID}, s.req.TopLogprobs
	raw, _, a, err := s.v.one(s.ctx, b, true, s.req.TopLogprobs)
	s.told.requests += a.requests
	if err != nil {
		return err
	}
	if raw.ID != t.ID {
		return &backend.ProtocolError{Text: fmt.Sprintf("token %d is not the one that was allowed", raw.ID)}
	}
	*t = raw
	return nil
}

// ended implements source.
func (s *vllmSource) ended() ended { return s.how }

// answered implements source.
func (s *vllmSource) answered() answered { return s.told }

func (s *vllmSource) close() { s.events.close() }

// one sends a request for one token and returns it; a token that ends the
// generation too.
func (v *VLLM) one(ctx context.Context, body map[string]any, logprobs bool, top int) (backend.Token, *vllmChoice, answered, error) {
	told := answered{slot: -1, requests: 1}
	var a vllmAnswer
	if err := v.client.do(ctx, "POST", vllmCompletions, body, &a); err != nil {
		return backend.Token{}, nil, told, err
	}
	told.cached = a.cached()
	c, err := a.choice()
	if err != nil {
		return backend.Token{}, nil, told, err
	}
	if c == nil || len(c.Tokens) != 1 {
		return backend.Token{}, nil, told, &backend.ProtocolError{Text: "it does not hold the one token that was asked for"}
	}
	list, err := c.tokens(v.vocab, logprobs, top)
	if err != nil {
		return backend.Token{}, nil, told, err
	}
	return list[0], c, told, nil
}

// step implements engine.
func (v *VLLM) step(ctx context.Context, c *call, mask vocab.Mask) (backend.Token, answered, error) {
	ids := slices.Collect(mask.All())
	if len(ids) > v.options.MaxMask {
		return backend.Token{}, answered{slot: -1}, v.tooMany(len(ids))
	}
	b := v.body(c)
	b["allowed_token_ids"] = ids
	t, _, a, err := v.one(ctx, b, c.req.Logprobs || c.req.TopLogprobs > 0, c.req.TopLogprobs)
	return t, a, err
}

// states implements engine.
func (v *VLLM) states(c *call) bool { return v.lark || c.req.Grammar != nil }
