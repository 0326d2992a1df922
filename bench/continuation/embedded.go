package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/engine"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// embedded is the engine in this process.
type embedded struct {
	model  *unfray.Model
	engine *engine.Engine
	tokens int
}

func open(t *tokenizer.Tokenizer, s *settings) (runner, error) {
	if s.server != "" {
		return newServer(t, s), nil
	}
	e, err := engine.Open(engine.Options{ModelPath: s.model, LibraryPath: s.library, ContextTokens: 1024, Threads: 1, Parallel: 1})
	if err != nil {
		return nil, err
	}
	m, err := unfray.NewModel(e, t)
	if err != nil {
		return nil, err
	}
	return &embedded{m, e, s.tokens}, nil
}

func (e *embedded) close() { e.engine.Close() }

func (e *embedded) answer(ctx context.Context, d document) (*uncut, error) {
	u := &uncut{document: d, prompt: e.model.Tokenizer().EncodeSpecial(nil, conversation(d.Question))}
	r, err := e.model.Complete(ctx, &unfray.Request{Prompt: unfray.Prompt{IDs: u.prompt}, Heal: heal.Off, MaxTokens: e.tokens})
	if err != nil {
		return nil, err
	}
	for _, t := range r.Tokens {
		u.ids, u.ends = append(u.ids, t.ID), append(u.ends, t.Offset+len(t.Bytes))
	}
	if len(u.ids) != r.Usage.CompletionTokens {
		return nil, errors.New("the answer holds control tokens")
	}
	u.text, u.ended = r.Text, r.FinishReason == backend.FinishStop
	return u, nil
}

func (e *embedded) methods() []method {
	return []method{{"token IDs", e.byIDs}, {"text, healed", e.byText}}
}

// byIDs resumes from the tokens.
func (e *embedded) byIDs(ctx context.Context, u *uncut) ([]byte, string, error) {
	prior := &unfray.Result{Text: u.part()}
	v, at := e.model.Tokenizer().Vocab(), 0
	for i, id := range u.ids[:u.cut] {
		prior.Tokens = append(prior.Tokens, unfray.Token{ID: id, Bytes: v.Bytes(id), Offset: at})
		at = u.ends[i]
	}
	prior.Usage.CompletionTokens = u.cut
	rest, byText, err := e.resume(ctx, u, prior, heal.Off)
	if byText {
		err = errors.New("resumed by text, not by IDs")
	}
	return rest, "", err
}

// byText resumes from the text alone.
func (e *embedded) byText(ctx context.Context, u *uncut) ([]byte, string, error) {
	rest, _, err := e.resume(ctx, u, &unfray.Result{Text: u.part()}, heal.Auto)
	return rest, "", err
}

func (e *embedded) resume(ctx context.Context, u *uncut, prior *unfray.Result, mode heal.Mode) (rest []byte, byText bool, err error) {
	// Healed text may take a few more tokens to the same length.
	req := &unfray.Request{Prompt: unfray.Prompt{IDs: u.prompt}, Heal: mode, MaxTokens: e.tokens - u.cut + 8}
	s, err := e.model.Resume(ctx, req, prior)
	if err != nil {
		return nil, false, err
	}
	defer s.Close()
	for err == nil {
		_, err = s.Next()
	}
	if !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	r := s.Result()
	for _, n := range r.Healing.Notes {
		byText = byText || n.Code == unfray.CodeResumedByText
	}
	return r.Text, byText, nil
}

func (e *embedded) gap(ctx context.Context, ids []vocab.ID) (float64, error) {
	rows, err := e.engine.Logits(ctx, ids, len(ids)-1)
	if err != nil {
		return 0, err
	}
	if len(rows) == 0 {
		return 0, fmt.Errorf("no row of logits")
	}
	first, second := math.Inf(-1), math.Inf(-1)
	for _, x := range rows[0] {
		if v := float64(x); v > first {
			first, second = v, first
		} else if v > second {
			second = v
		}
	}
	return first - second, nil
}
