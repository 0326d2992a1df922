package unfray

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/fim"
	"github.com/unfray/unfray/grammar"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Model is a backend with its model's tokenizer. It may be used by several
// goroutines.
type Model struct {
	backend backend.Backend
	tok     *tokenizer.Tokenizer
	fim     func() (*fim.Layout, error)
}

// NewModel joins a backend and a tokenizer, which must be of the same model:
// it fails if their vocabularies differ in size.
func NewModel(b backend.Backend, t *tokenizer.Tokenizer) (*Model, error) {
	if n, m := b.Info().VocabSize, t.Vocab().Len(); n != m {
		return nil, fmt.Errorf("unfray: the backend's model has %d tokens, the tokenizer %d: they are not of the same model", n, m)
	}
	return &Model{backend: b, tok: t, fim: sync.OnceValues(func() (*fim.Layout, error) { return fim.Find(t) })}, nil
}

// Info describes the backend's model.
func (m *Model) Info() backend.Info { return m.backend.Info() }

// Tokenizer returns the model's tokenizer.
func (m *Model) Tokenizer() *tokenizer.Tokenizer { return m.tok }

// Generate heals the prompt and starts the continuation. An error means that
// nothing was started: a [*RequestError] for what the caller can mend, or the
// backend's own. Canceling ctx ends the stream.
func (m *Model) Generate(ctx context.Context, req *Request) (*Stream, error) {
	p, err := m.Prepare(req)
	if err != nil {
		return nil, err
	}
	return p.Generate(ctx, req.Sampling.Seed)
}

// Complete runs Generate to its end.
func (m *Model) Complete(ctx context.Context, req *Request) (*Result, error) {
	s, err := m.Generate(ctx, req)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for {
		if _, err := s.Next(); errors.Is(err, io.EOF) {
			return s.Result(), nil
		} else if err != nil {
			return nil, err
		}
	}
}

// Prepared is a request that was found good, with its prompt tokenized and the
// healing planned. It may serve several continuations, also at once.
type Prepared struct {
	model  *Model
	req    Request
	plan   *heal.Plan
	prompt int // tokens of the user's prompt
	fill   *filling

	grammar grammar.State // at the prompt's end, if the request has a Grammar

	replay func() *backend.Replay
}

// Heals reports whether the prompt is given to the model in another form than it
// was sent: tokens were rolled back, or sections arranged around a suffix.
func (p *Prepared) Heals() bool { return len(p.plan.Pending) > 0 || p.fill != nil }

// Mode is what is done: Exact, Stable, Last or Off.
func (p *Prepared) Mode() heal.Mode { return p.plan.Mode }

// Notes says what is done in another way than asked. The slice is shared.
func (p *Prepared) Notes() []heal.Note { return p.plan.Notes }

// IDs are the tokens that the model is given before it generates: of the
// prompt's, those that healing keeps. The slice is shared.
func (p *Prepared) IDs() []vocab.ID { return p.plan.Prompt }

// Prepare does what all continuations of a request have in common. The request
// must not be changed while it is in use.
func (m *Model) Prepare(req *Request) (*Prepared, error) {
	if err := req.validate(); err != nil {
		return nil, err
	}
	p, err := m.prepare(req)
	if err != nil {
		return nil, err
	}
	p.replay = sync.OnceValue(func() *backend.Replay { return newReplay(p.plan, m.tok) })
	if !m.Info().Capabilities.Steer {
		return p, m.checkSource(req)
	}
	if req.Grammar == nil {
		return p, nil
	}
	if p.grammar, err = req.startGrammar(); err != nil {
		return nil, err
	}
	return p, m.checkGrammar(p.grammar)
}

func (m *Model) prepare(req *Request) (*Prepared, error) {
	if req.Fill != nil {
		return m.prepareFill(req)
	}
	ids, err := m.promptIDs(&req.Prompt)
	if err != nil {
		return nil, err
	}
	plan := m.planMarked(ids, req)
	if plan == nil {
		plan = m.plan(ids, req)
	}
	return &Prepared{model: m, req: *req, plan: plan, prompt: len(ids)}, nil
}

// Generate starts a continuation with a seed of its own, in place of that of
// the request.
func (p *Prepared) Generate(ctx context.Context, seed *uint64) (*Stream, error) {
	m := p.model
	sampling := p.req.Sampling
	sampling.Seed = seed
	breq := &backend.Request{
		Prompt:      p.plan.Prompt,
		Sampling:    sampling,
		MaxTokens:   p.req.MaxTokens,
		Logprobs:    p.req.Logprobs,
		TopLogprobs: p.req.TopLogprobs,
		Fields:      p.req.Fields,
	}
	can := m.Info().Capabilities
	st := &steer{a: p.assembler()}
	breq.Steer = st
	var allow func([]byte) bool
	if !can.Steer {
		breq.Grammar = p.req.Source
	} else if p.req.Grammar != nil {
		st.c = &constraint{v: m.tok.Vocab(), state: p.grammar}
		start := &constraint{state: p.grammar} // the steer's goes on with the generation
		allow = start.allows
		st.a.session.Restrict(allow)
	}
	choice := p.plan.NewChoice(heal.Sampling{Temperature: sampling.Temperature, TopK: sampling.TopK, TopP: sampling.TopP, MinP: sampling.MinP}, allow)
	if choice != nil {
		breq.Prompt = slices.Concat(p.plan.Prompt, p.plan.Trunk)
		breq.Choose, breq.Keep = choice, len(p.plan.Prompt)
	} else if !can.Steer {
		breq.Replay = p.replay()
	}
	bs, err := m.backend.Generate(ctx, breq)
	if err != nil {
		return nil, fmt.Errorf("unfray: %w", err)
	}
	return &Stream{
		backend:    bs,
		plan:       p.plan,
		choice:     choice,
		constraint: st.c,
		logprobs:   p.req.Logprobs,
		a:          p.assembler(),
		prompt:     p.prompt,
		steered:    can.Steer || can.Replay,
	}, nil
}

func (p *Prepared) assembler() *assembler {
	a := newAssembler(p.model.tok.Vocab(), p.plan, p.req.Stop)
	a.fill = p.fill.matcher()
	return a
}

// mode is the mode to plan for: the best that the backend can do, unless the
// request names one. notes says what cannot be done as asked.
func (m *Model) mode(req *Request) (mode heal.Mode, notes []heal.Note) {
	can, asked := m.Info().Capabilities, req.Heal
	choose := can.Choose && (!can.ChoosePlain || req.isPlain())
	if can.ChoosePlain && asked != heal.Exact && req.Sampling.Temperature > 0 {
		choose = false // whole rows would be needed, by requests of their own
	}
	switch {
	case asked == heal.Off:
		return heal.Off, nil
	case choose && asked != heal.Stable && asked != heal.Last:
		return heal.Exact, nil
	case !can.Steer && !can.Replay:
		return heal.Off, []heal.Note{{Code: heal.CodeMaskUnavailable, Text: "the backend can neither weigh continuations nor be held to a mask; the prompt was left as it is"}}
	case asked == heal.Exact && can.Choose:
		return heal.Stable, []heal.Note{{Code: heal.CodeExactUnavailable, Text: "the server tells some probabilities of the model alone, not with a grammar, penalties, a bias or a temperature above 1, so continuations cannot be weighed as asked; the prompt was healed with stable"}}
	case asked == heal.Exact:
		return heal.Stable, []heal.Note{{Code: heal.CodeExactUnavailable, Text: "the backend gives no logits to weigh continuations by; the prompt was healed with stable"}}
	case asked == heal.Last:
		return heal.Last, nil
	}
	return heal.Stable, nil
}

// plan decides how to heal. Text whose end its tokens do not give back to the
// byte is left alone: what is rolled back could not be produced again.
func (m *Model) plan(ids []vocab.ID, req *Request) *heal.Plan {
	if text := req.Prompt.Text; req.Prompt.IDs == nil && req.Heal != heal.Off && m.tok.Loss(text) != nil {
		analyze := boundary.Analyze
		if req.Prompt.ParseSpecial {
			analyze = boundary.AnalyzeSpecial
		}
		if loss := analyze(m.tok, text).Loss; loss != nil {
			p := heal.New(m.tok, ids, heal.Off)
			p.Notes = append(p.Notes, heal.Note{
				Code: heal.CodeLossy,
				Text: "the prompt's last bytes cannot be produced again: " + loss.Reason + "; the prompt was left as it is",
			})
			return p
		}
	}
	mode, notes := m.mode(req)
	p := heal.New(m.tok, ids, mode)
	p.Notes = append(notes, p.Notes...)
	return p
}

// promptIDs tokenizes a prompt and checks that a model can start from it.
func (m *Model) promptIDs(p *Prompt) ([]vocab.ID, error) {
	v := m.tok.Vocab()
	ids := p.IDs
	if ids == nil {
		if sp := v.Specials(); sp.AddBOS && sp.BOS != vocab.None && !p.NoBOS {
			ids = append(ids, sp.BOS)
		}
		if p.ParseSpecial {
			ids = m.tok.EncodeSpecial(ids, p.Text)
		} else {
			ids = m.tok.Encode(ids, p.Text)
		}
	}
	if len(ids) == 0 {
		return nil, &RequestError{
			Param: "prompt",
			Text:  "the prompt is empty, and this model has no start token to begin from: give at least one character or token",
			Err:   backend.ErrEmptyPrompt,
		}
	}
	for i, id := range ids {
		if !v.Valid(id) {
			return nil, &backend.InvalidTokenError{ID: id, Position: i, VocabSize: v.Len()}
		}
	}
	if n := m.Info().ContextLength; len(ids) >= n {
		return nil, &backend.PromptTooLongError{Tokens: len(ids), ContextLength: n}
	}
	return ids, nil
}
