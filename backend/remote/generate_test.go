package remote

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/vocab"
)

// toyEngine is a server of the toy model, without the wire.
type toyEngine struct {
	s   *server
	toy *backendtest.Toy

	stated bool // replays can be stated in one request
	loose  bool // and allow any tokens with the bytes that are pending
	short  int  // most tokens of a request; 0: no limit
	top    int  // values of a row; 0: all
	steps  int
	opens  int
	refuse error // what open, step and rows return
}

func newToyServer(e *toyEngine) *server {
	v := backendtest.Vocabulary(backendtest.VocabularyOptions{})
	e.toy = backendtest.NewToy(backendtest.Options{Vocab: v, ContextLength: 128})
	s := &server{engine: e, vocab: v, info: e.toy.Info()}
	s.inspection.IDPrompts, s.inspection.IDsBack = true, true
	s.info.Capabilities = backend.Capabilities{Replay: true, Logprobs: true, Choose: true, ChoosePlain: true}
	e.s = s
	return s
}

func (e *toyEngine) check(req *backend.Request) error {
	if req.Grammar != nil {
		return &backend.UnsupportedError{Param: "grammar", Text: "toys have none"}
	}
	return nil
}

func (e *toyEngine) states(*call) bool { return e.stated }

func (e *toyEngine) request(c *call) *backend.Request {
	req := &backend.Request{
		Prompt: c.ids, Sampling: c.req.Sampling, MaxTokens: c.max,
		Logprobs: c.req.Logprobs, TopLogprobs: c.req.TopLogprobs,
	}
	req.Sampling.Seed = c.seed
	return req
}

// maskSteer follows a replay's masks.
type maskSteer struct{ r *replay }

func (s *maskSteer) Mask() vocab.Mask {
	if s.r.done() {
		return nil
	}
	return s.r.mask()
}

func (s *maskSteer) Accept(id vocab.ID) backend.Verdict {
	s.r.accept(id)
	return backend.Verdict{}
}

func (e *toyEngine) open(ctx context.Context, c *call) (source, error) {
	if e.refuse != nil {
		return nil, e.refuse
	}
	e.opens++
	req := e.request(c)
	if e.short > 0 {
		req.MaxTokens = min(req.MaxTokens, e.short)
	}
	if c.replay != nil {
		r := *c.replay
		r.free = r.free || e.loose
		req.Steer = &maskSteer{&r}
	}
	s, err := e.toy.Generate(ctx, req)
	return &toySource{s: s}, err
}

func (e *toyEngine) step(ctx context.Context, c *call, mask vocab.Mask) (backend.Token, answered, error) {
	a := answered{slot: -1, requests: 1}
	if e.refuse != nil {
		return backend.Token{}, a, e.refuse
	}
	e.steps++
	req := e.request(c)
	req.Steer = &fixedSteer{mask}
	s, err := e.toy.Generate(ctx, req)
	if err != nil {
		return backend.Token{}, a, err
	}
	defer s.Close()
	tok, err := s.Next()
	if errors.Is(err, io.EOF) {
		return backend.Token{ID: s.End().EndToken}, a, nil
	}
	return tok, a, err
}

type fixedSteer struct{ mask vocab.Mask }

func (s *fixedSteer) Mask() vocab.Mask                { return s.mask }
func (s *fixedSteer) Accept(vocab.ID) backend.Verdict { return backend.Verdict{} }

func (e *toyEngine) rows(ctx context.Context, c *call, asked rowsAsked) ([]*partRow, answered, error) {
	a := answered{slot: -1, requests: 1}
	if e.refuse != nil {
		return nil, a, e.refuse
	}
	ids := slices.Concat(c.ids, asked.path)
	raw, err := e.toy.Logits(ctx, ids, len(c.ids)-1)
	var rows []*partRow
	for _, logits := range raw {
		row := topOf(logits)
		if e.top > 0 && asked.detail < allValues {
			row = row[:e.top*int(asked.detail+1)]
		}
		rows = append(rows, newPartRow(row, nil, e.s.vocab.Len(), asked.detail))
	}
	return rows, a, err
}

// topOf sorts a row's log-probabilities.
func topOf(logits []float32) (top []backend.Logprob) {
	norm := logSumExp(logits)
	for id, l := range logits {
		top = append(top, backend.Logprob{ID: vocab.ID(id), Logprob: float64(l) - norm})
	}
	slices.SortStableFunc(top, func(a, b backend.Logprob) int {
		switch {
		case a.Logprob > b.Logprob:
			return -1
		case a.Logprob < b.Logprob:
			return 1
		}
		return 0
	})
	return top
}

type toySource struct{ s backend.Stream }

func (s *toySource) next() (backend.Token, error) { return s.s.Next() }

func (s *toySource) ended() ended {
	e := s.s.End()
	return ended{e.Reason, e.EndToken}
}

func (s *toySource) answered() answered { return answered{slot: -1, requests: 1} }
func (s *toySource) close()             { s.s.Close() }

func toyPrompts(v *vocab.Vocab) (prompts [][]vocab.ID) {
	for _, words := range [][]string{{"The", " capital", " of", " France", " is"}, {"http", "://", "www.", "example"}} {
		var ids []vocab.ID
		for _, w := range words {
			id, _ := v.Lookup([]byte(w))
			ids = append(ids, id)
		}
		prompts = append(prompts, ids)
	}
	return prompts
}

// However a server is held to a replay, the backend's guarantees are the same.
func TestDriverConforms(t *testing.T) {
	for name, e := range map[string]toyEngine{
		"steps":       {},
		"stated":      {stated: true},
		"stated more": {stated: true, loose: true},
		"few values":  {stated: true, loose: true, top: 3},
	} {
		t.Run(name, func(t *testing.T) {
			v := backendtest.Vocabulary(backendtest.VocabularyOptions{})
			backendtest.Run(t, backendtest.Suite{
				Open:      func(t *testing.T) backend.Backend { c := e; return newToyServer(&c) },
				Vocab:     v,
				Prompts:   toyPrompts(v),
				Tolerance: 1e-5,
			})
		})
	}
}

func collect(t *testing.T, s *server, req *backend.Request) ([]vocab.ID, backend.End) {
	t.Helper()
	st, err := s.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var ids []vocab.ID
	for {
		tok, err := st.Next()
		if errors.Is(err, io.EOF) {
			return ids, st.End()
		} else if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, tok.ID)
	}
}

// A statement that allows more than the replay gives the tokens that one that
// allows just the replay gives, where nothing is drawn.
func TestStatementsAgree(t *testing.T) {
	v := backendtest.Vocabulary(backendtest.VocabularyOptions{})
	for _, pending := range []string{" Par", " th", "http", "us", "日\xe6", "  ", "a"} {
		r := &backend.Replay{Pending: []byte(pending)}
		rest := []byte(pending[1:])
		first, _ := v.Lookup([]byte(pending[:1]))
		if ids := slices.Clone(v.Sorted(v.PrefixRange(rest))); len(rest) > 0 && len(ids) > 0 {
			slices.Sort(ids)
			r.Ways = append(r.Ways, backend.Way{Path: []vocab.ID{first}, Rest: rest, Last: ids})
		}
		var all [][]vocab.ID
		for _, e := range []*toyEngine{{}, {stated: true}, {stated: true, loose: true}} {
			s := newToyServer(e)
			ids, end := collect(t, s, &backend.Request{Prompt: toyPrompts(v)[0], Replay: r, MaxTokens: 8})
			if want := e.steps + e.opens; end.Requests != want {
				t.Errorf("%q: %d requests by End, %d were sent", pending, end.Requests, want)
			}
			all = append(all, ids)
		}
		if !slices.Equal(all[0], all[1]) || !slices.Equal(all[0], all[2]) {
			t.Errorf("%q: steps %v, stated %v, stated with more %v", pending, all[0], all[1], all[2])
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	refusal := &backend.UpstreamError{Status: 429}
	v := backendtest.Vocabulary(backendtest.VocabularyOptions{})
	prompt := toyPrompts(v)[0]
	for name, req := range map[string]*backend.Request{
		"plain":  {Prompt: prompt},
		"stated": {Prompt: prompt, Replay: &backend.Replay{Pending: []byte("x")}},
		"choice": {Prompt: prompt, Keep: 2, Choose: &fixedChooser{prompt[2:]}},
	} {
		for _, e := range []*toyEngine{{refuse: refusal}, {refuse: refusal, stated: true}} {
			s := newToyServer(e)
			_, err := s.Generate(t.Context(), req)
			var got *backend.UpstreamError
			if !errors.As(err, &got) || got != refusal {
				t.Errorf("%s: %v", name, err)
			}
			if len(s.running) != 0 {
				t.Errorf("%s: %d generations are still known", name, len(s.running))
			}
		}
	}
	s := newToyServer(&toyEngine{})
	s.tokenizer = &MismatchError{Text: "x", Want: []vocab.ID{1}, Got: []vocab.ID{2}}
	var mismatch *MismatchError
	if _, err := s.Generate(t.Context(), &backend.Request{Prompt: prompt}); !errors.As(err, &mismatch) {
		t.Errorf("with another tokenizer: %v", err)
	}
	s = newToyServer(&toyEngine{})
	s.vocab = nil
	if _, err := s.Generate(t.Context(), &backend.Request{Prompt: prompt}); err == nil {
		t.Error("without a tokenizer a generation was begun")
	}
}
