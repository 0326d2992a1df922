package unfray

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/grammar"
	"github.com/unfray/unfray/vocab"
)

// constraint keeps one generation to a grammar. The grammar speaks of the
// text that follows the prompt, so it has no say over the bytes that healing
// makes the model produce again, only over what a token adds to them.
type constraint struct {
	v     *vocab.Vocab
	state grammar.State // after what has been produced beyond the prompt
	mask  vocab.Mask
	// failure is why no token can follow. The stream looks at it while the
	// backend's side may still run.
	failure atomic.Pointer[error]
}

var errGrammarEnd = errors.New("the model has no token with which the text could go on as the grammar demands")

// startGrammar gives the state at the prompt's end.
func (r *Request) startGrammar() (grammar.State, error) {
	s := r.Grammar.Start()
	if r.GrammarBytes == 0 {
		return s, nil
	}
	text := r.Prompt.Text
	if r.Prompt.IDs != nil {
		return s, &RequestError{Param: "unfray.grammar_bytes", Text: "a grammar can begin inside a prompt of text only, not of token IDs"}
	}
	if r.GrammarBytes < 0 || r.GrammarBytes > len(text) {
		return s, &RequestError{Param: "unfray.grammar_bytes", Text: fmt.Sprintf("the grammar cannot begin %d bytes before the end of a prompt of %d bytes of text", r.GrammarBytes, len(text))}
	}
	for i, b := range text[len(text)-r.GrammarBytes:] {
		var ok bool
		if s, ok = s.Advance(b); !ok {
			return s, &RequestError{Param: "unfray.grammar_bytes", Text: fmt.Sprintf("the prompt is no beginning of a text of the grammar: byte %d does not fit", len(text)-r.GrammarBytes+i), Err: s.Err()}
		}
	}
	return s, nil
}

// checkSource finds out whether a backend without masks can keep to the
// request's grammar.
func (m *Model) checkSource(r *Request) error {
	if r.Grammar == nil && r.Source == nil {
		return nil
	}
	switch {
	case r.Source == nil:
		return &backend.UnsupportedError{Param: "grammar", Text: "the model is run by a server, which needs the grammar's source"}
	case !slices.Contains(m.Info().Capabilities.Grammars, r.Source.Kind):
		return &backend.UnsupportedError{Param: "grammar", Text: fmt.Sprintf("the model's server reads no grammars of the kind %s", r.Source.Kind)}
	case r.GrammarBytes != 0:
		return &backend.UnsupportedError{Param: "unfray.grammar_bytes", Text: "a server's grammar cannot begin inside the prompt"}
	}
	return nil
}

// checkGrammar finds out before anything runs that no token can follow.
func (m *Model) checkGrammar(s grammar.State) error {
	mask := vocab.NewMask(m.tok.Vocab().Len())
	if err := s.Mask(m.tok.Vocab(), mask); err != nil {
		return &RequestError{Param: "grammar", Text: err.Error(), Err: err}
	}
	if mask.Empty() {
		return &RequestError{Param: "grammar", Text: "the model has no token that the grammar allows after the prompt", Err: grammar.ErrEmpty}
	}
	return nil
}

// allows reports whether the text may go on with beyond.
func (c *constraint) allows(beyond []byte) bool {
	_, ok := c.state.AdvanceBytes(beyond)
	return ok
}

// next is the mask after the replay.
func (c *constraint) next() vocab.Mask {
	if c.mask == nil {
		c.mask = vocab.NewMask(c.v.Len())
	}
	// An empty mask makes the backend end the generation with an error.
	err := c.state.Mask(c.v, c.mask)
	if err == nil && c.mask.Empty() {
		err = errGrammarEnd
	}
	if err != nil {
		c.failure.Store(&err)
	}
	return c.mask
}

// accept takes what a token adds to the continuation.
func (c *constraint) accept(b []byte) {
	c.state, _ = c.state.AdvanceBytes(b)
}
