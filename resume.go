package unfray

import (
	"bytes"
	"context"
	"slices"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/vocab"
)

// CodeResumedByText notes that a continuation was resumed from its text, since
// the tokens that it consists of are not all known.
const CodeResumedByText = "resumed_by_text"

// Resume goes on with a continuation of req that broke off, as one whose finish
// reason is length. The model is given the prompt's tokens and those of prior, so
// that there is no seam: at temperature 0 the text goes on as it would have. Where
// prior is known by its text only, the text is healed at its end as a prompt's end
// is, and a note with [CodeResumedByText] says so.
//
// The stream holds what is added. req.MaxTokens limits that alone, and a stop
// string is looked for in that alone. A grammar goes on where prior ends. For the
// penalties of req.Sampling the tokens of prior are part of the prompt.
func (m *Model) Resume(ctx context.Context, req *Request, prior *Result) (*Stream, error) {
	if req.Fill != nil {
		return nil, &RequestError{Param: "suffix", Text: "text between a prompt and a suffix cannot be resumed: ask for it again with a larger max_tokens"}
	}
	p, err := m.Prepare(req)
	if err != nil {
		return nil, err
	}
	next := *req
	next.Grammar, next.Source, next.GrammarBytes = nil, nil, 0
	ids, known := p.resumed(prior)
	if known {
		next.Prompt, next.Heal = Prompt{IDs: ids}, heal.Off
	} else if next.Prompt, err = m.resumedText(&req.Prompt, prior.Text); err != nil {
		return nil, err
	}
	r, err := m.Prepare(&next)
	if err != nil {
		return nil, err
	}
	if !known {
		r.plan.Notes = append(r.plan.Notes, heal.Note{Code: CodeResumedByText, Text: "the tokens of the text so far are not all known: it was resumed from its bytes, healed at their end"})
	}
	if err := r.resumeGrammar(p, prior); err != nil {
		return nil, err
	}
	return r.Generate(ctx, req.Sampling.Seed)
}

// resumeGrammar brings the grammar of the first request to the end of its text.
func (p *Prepared) resumeGrammar(first *Prepared, prior *Result) error {
	req := &first.req
	if !p.model.Info().Capabilities.Steer {
		if req.Grammar != nil || req.Source != nil {
			return &backend.UnsupportedError{Param: "grammar", Text: "a server's grammar cannot begin inside a text: the text cannot be resumed under it"}
		}
		return nil
	}
	if req.Grammar == nil {
		return nil
	}
	state, ok := first.grammar.AdvanceBytes(prior.Text)
	if !ok {
		return &RequestError{Param: "grammar", Text: "the text to resume is no beginning of a text of the grammar", Err: state.Err()}
	}
	p.req.Grammar, p.grammar = req.Grammar, state
	return p.model.checkGrammar(state)
}

// resumed returns the tokens that the model has seen: those the plan left of the
// prompt and all that were generated. It reports false if some are not known.
func (p *Prepared) resumed(prior *Result) ([]vocab.ID, bool) {
	v := p.model.tok.Vocab()
	var ids []vocab.ID
	var text []byte
	for _, t := range prior.Tokens {
		if !v.Valid(t.ID) {
			return nil, false
		}
		ids, text = append(ids, t.ID), append(text, t.Bytes...)
	}
	// Control tokens are counted, but are no part of Tokens. A stop string may
	// have taken the end of a token away.
	if !bytes.Equal(text, prior.Text) || len(ids) != prior.Usage.CompletionTokens || prior.StopString != "" {
		return nil, false
	}
	pending, unseen := p.plan.Pending, prior.Healing.TokensReplayed
	if len(pending) != prior.Healing.BytesPending {
		return nil, false
	}
	if len(ids) > 0 && prior.Tokens[0].Straddles {
		inside := len(v.Bytes(ids[0])) - len(prior.Tokens[0].Bytes)
		if inside < 0 || inside > len(pending) {
			return nil, false
		}
		pending, unseen = pending[:len(pending)-inside], unseen-1
	}
	replayed, ok := p.replayed(pending, unseen)
	return slices.Concat(p.plan.Prompt, replayed, ids), ok
}

// replayed finds the n tokens that have produced pending and nothing else. Only
// the tokenizer's own ways are looked at; it reports false unless one is right.
func (p *Prepared) replayed(pending []byte, n int) ([]vocab.ID, bool) {
	if n <= 0 || len(pending) == 0 {
		return nil, n == 0 && len(pending) == 0
	}
	v := p.model.tok.Vocab()
	ways := [][]vocab.ID{p.plan.Trunk}
	for _, b := range p.plan.Branches {
		ways = append(ways, b.Path)
	}
	var found []vocab.ID
	for _, way := range ways {
		if len(way) < n || found != nil && slices.Equal(found, way[:n]) {
			continue
		}
		var b []byte
		for _, id := range way[:n] {
			b = append(b, v.Bytes(id)...)
		}
		if !bytes.Equal(b, pending) {
			continue
		} else if found != nil {
			return nil, false
		}
		found = way[:n]
	}
	return found, found != nil
}

// resumedText appends text to a prompt. It is the model's: nothing in it is
// looked at as the spelling of a control token.
func (m *Model) resumedText(p *Prompt, text []byte) (Prompt, error) {
	if p.IDs == nil && !p.ParseSpecial {
		return Prompt{Text: slices.Concat(p.Text, text), NoBOS: p.NoBOS}, nil
	}
	ids, err := m.promptIDs(p)
	return Prompt{IDs: m.tok.Encode(slices.Clip(ids), text)}, err
}
