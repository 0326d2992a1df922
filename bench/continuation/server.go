package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"

	"github.com/unfray/unfray/recovery/continuation"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// server is a llama.cpp server.
type server struct {
	base     string
	tok      *tokenizer.Tokenizer
	tokens   int
	instruct bool
	attempts int
}

func newServer(t *tokenizer.Tokenizer, s *settings) runner {
	return &server{s.server, t, s.tokens, s.instruct, s.attempts}
}

func (s *server) close() {}

// completion is the part of llama.cpp's answers that is looked at.
type completion struct {
	Content  string     `json:"content"`
	Tokens   []vocab.ID `json:"tokens"`
	StopType string     `json:"stop_type"`
	Probs    []struct {
		Top []struct {
			Logprob float64 `json:"logprob"`
		} `json:"top_logprobs"`
	} `json:"completion_probabilities"`
}

func (s *server) post(ctx context.Context, path string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, data)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, answer)
}

// complete goes on with token IDs.
func (s *server) complete(ctx context.Context, ids []vocab.ID, tokens, probs int) (*completion, error) {
	c := &completion{}
	return c, s.post(ctx, "/completion", map[string]any{
		"prompt": ids, "n_predict": tokens, "temperature": 0, "n_probs": probs, "return_tokens": true, "cache_prompt": true,
	}, c)
}

func (s *server) answer(ctx context.Context, d document) (*uncut, error) {
	u := &uncut{document: d, prompt: s.tok.EncodeSpecial(nil, conversation(d.Question))}
	var template struct {
		Prompt string `json:"prompt"`
	}
	if err := s.post(ctx, "/apply-template", map[string]any{"messages": messages(d.Question)}, &template); err != nil {
		return nil, err
	}
	if want := string(conversation(d.Question)); template.Prompt != want {
		return nil, fmt.Errorf("the server's template gives %q, not %q", template.Prompt, want)
	}
	c, err := s.complete(ctx, u.prompt, s.tokens, 0)
	if err != nil {
		return nil, err
	}
	v := s.tok.Vocab()
	for _, id := range c.Tokens {
		if !v.IsText(id) {
			break // the token that ends the answer
		}
		u.text = append(u.text, v.Bytes(id)...)
		u.ids, u.ends = append(u.ids, id), append(u.ends, len(u.text))
	}
	u.ended = c.StopType != "limit"
	return u, nil
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func messages(question string, partial ...string) []message {
	m := []message{{"user", question}}
	for _, p := range partial {
		m = append(m, message{"assistant", p})
	}
	return m
}

func (s *server) methods() []method {
	all := []method{{"token IDs", s.by(continuation.Exact)}, {"assistant message", s.by(continuation.Prefill)}}
	if s.instruct {
		all = append(all, method{"instruction", s.by(continuation.Instruct)})
	}
	return all
}

// by goes on by the package's own driver.
func (s *server) by(mode continuation.Mode) func(context.Context, *uncut) ([]byte, string, error) {
	return func(ctx context.Context, u *uncut) ([]byte, string, error) {
		var lost error // of the server, which ends the measurement
		o := continuation.Options{Mode: mode, Answer: continuation.DetectOptions{FinishReason: "length"}, Attempts: s.attempts}
		r := continuation.Run(ctx, u.part(), o, func(ctx context.Context, q continuation.Request) (continuation.Answer, error) {
			var a continuation.Answer
			a, lost = s.ask(ctx, u, q)
			return a, lost
		})
		if lost != nil {
			return nil, "", lost
		}
		a := r.Attempts
		switch {
		case len(a) == 0 && r.Complete:
			return nil, "complete before it was cut", nil
		case len(a) == 0:
			return nil, r.Err.Error(), nil
		case r.Joined == 0 && r.Complete:
			return []byte{}, "", nil
		case r.Joined == 0:
			last := a[len(a)-1]
			return nil, fmt.Sprintf("%s, %d bytes cut off, attempt %d", last.Reason, last.Required, len(a)), nil
		}
		return r.Text[len(u.part()):], "", nil
	}
}

// ask leaves room for what is produced again.
func (s *server) ask(ctx context.Context, u *uncut, q continuation.Request) (continuation.Answer, error) {
	tokens := s.tokens - u.cut + 8 + (len(q.Require)+1)/2
	if q.Mode == continuation.Exact {
		c, err := s.complete(ctx, append(append([]vocab.ID{}, u.prompt...), u.ids[:u.cut]...), tokens, 0)
		if err != nil {
			return continuation.Answer{}, err
		}
		a := continuation.Answer{FinishReason: "stop", Tokens: len(c.Tokens), Exact: true}
		if c.StopType == "limit" {
			a.FinishReason = "length"
		}
		for _, id := range c.Tokens {
			if s.tok.Vocab().IsText(id) {
				a.Text = append(a.Text, s.tok.Vocab().Bytes(id)...)
			}
		}
		return a, nil
	}
	turns := messages(u.Question, string(q.Keep))
	if q.Mode == continuation.Instruct {
		turns = append(messages(u.Question, string(u.part())), message{"user", q.Instruction})
	}
	var c struct {
		Choices []struct {
			FinishReason string  `json:"finish_reason"`
			Message      message `json:"message"`
		} `json:"choices"`
		Usage struct {
			Completion int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := s.post(ctx, "/v1/chat/completions", map[string]any{"messages": turns, "max_tokens": tokens, "temperature": 0}, &c); err != nil {
		return continuation.Answer{}, err
	}
	if len(c.Choices) == 0 {
		return continuation.Answer{}, fmt.Errorf("an answer without a choice")
	}
	text := []byte(c.Choices[0].Message.Content)
	if q.Mode == continuation.Prefill {
		text = bytes.TrimPrefix(text, q.Keep) // this server gives the whole message
	}
	return continuation.Answer{Text: text, FinishReason: c.Choices[0].FinishReason, Tokens: c.Usage.Completion}, nil
}

func (s *server) gap(ctx context.Context, ids []vocab.ID) (float64, error) {
	c, err := s.complete(ctx, ids, 1, 2)
	if err != nil {
		return 0, err
	}
	if len(c.Probs) == 0 || len(c.Probs[0].Top) < 2 {
		return math.Inf(1), nil
	}
	return c.Probs[0].Top[0].Logprob - c.Probs[0].Top[1].Logprob, nil
}
