package unfray

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/vocab"
)

// Chunk is a part of a continuation.
type Chunk struct {
	// Text continues what came before it. It does not end inside a UTF-8
	// sequence unless it is the last chunk, and never shows a stop string.
	Text []byte
	// Tokens are those whose text is complete with this chunk.
	Tokens []Token
}

// Token is one token of a continuation.
type Token struct {
	ID     vocab.ID
	Bytes  []byte // its part of the continuation
	Offset int    // bytes from the start of the continuation
	// Straddles is true if the token began inside the prompt. Bytes holds the
	// part beyond it. Where healing was exact, Logprob speaks of that part alone:
	// it is that of the token's path among all over the prompt's end. Else, and in
	// Top, it speaks of the whole token.
	Straddles bool
	Logprob   float64
	Top       []backend.Logprob
}

// Healing says what was done to the prompt's end.
type Healing struct {
	Mode           heal.Mode `json:"mode"`
	TokensRemoved  int       `json:"tokens_removed"`
	BytesPending   int       `json:"bytes_pending"`
	TokensReplayed int       `json:"tokens_replayed"`
	ForwardPasses  int       `json:"forward_passes"`
	// UpstreamRequests counts what was sent to the server that runs the model.
	UpstreamRequests int         `json:"upstream_requests,omitempty"`
	Notes            []heal.Note `json:"notes"`
}

// Usage counts tokens.
type Usage struct {
	PromptTokens     int // the user's whole prompt, an added BOS included
	CompletionTokens int // the continuation, without replayed tokens
	CachedTokens     int // tokens of the prompt that needed no prefill
}

// Result is a whole continuation.
type Result struct {
	Text   []byte
	Tokens []Token
	// IDs are all tokens that were generated after [Prepared.IDs]: those that
	// only produce the prompt's bytes again, and those of which a stop string
	// took the text off, are among them.
	IDs          []vocab.ID
	FinishReason backend.FinishReason
	// EndToken is the end-of-generation token that was drawn after IDs, or
	// vocab.None.
	EndToken vocab.ID
	// StopString is the one of Request.Stop that ended the text, or "".
	StopString string
	Healing    Healing
	Usage      Usage
}

// Stream is a running continuation. Its methods are for one goroutine.
type Stream struct {
	backend backend.Stream
	plan    *heal.Plan
	// constraint is the steer's; only its failure is to be looked at.
	constraint *constraint
	logprobs   bool         // were asked for
	choice     *heal.Choice // nil: the replay, if any, follows masks
	a          *assembler
	prompt     int  // tokens of the user's prompt
	steered    bool // the backend heeds the steer's verdicts

	ids    []vocab.ID // all tokens, in order
	tokens []Token    // those with text
	shown  int        // tokens handed out
	sent   int        // bytes of the text handed out
	err    error      // io.EOF or the failure that ended the stream
}

// Next waits for the next part of the continuation. It returns io.EOF after
// the last part, the context's error, or the backend's.
func (s *Stream) Next() (Chunk, error) {
	for s.err == nil {
		if err := s.step(); err != nil {
			s.err = err
		}
		end := s.a.ready()
		if errors.Is(s.err, io.EOF) {
			end = len(s.a.text)
		}
		// All of a token's text may be out before a stop string takes its rest off.
		if end > s.sent || s.a.stopped && s.shown < len(s.tokens) {
			return s.cut(end), nil
		}
	}
	return Chunk{}, s.err
}

// step takes one token from the backend.
func (s *Stream) step() error {
	if s.a.stopped {
		return s.finish()
	}
	t, err := s.backend.Next()
	if errors.Is(err, io.EOF) {
		if s.a.end(); s.a.stopped {
			s.trim()
		}
		return io.EOF
	} else if err != nil {
		if s.constraint != nil {
			if cause := s.constraint.failure.Load(); cause != nil {
				err = *cause // the backend only knows that the mask was empty
			}
		}
		return fmt.Errorf("unfray: %w", err)
	}
	p, err := s.a.accept(t.ID)
	if err != nil {
		s.backend.Close()
		return err
	}
	s.ids = append(s.ids, t.ID)
	if p.straddles && s.choice != nil && s.logprobs {
		// The backend is done with the choice: its outcome is in the stream.
		t.Logprob = s.choice.Logprob()
	}
	if p.length > 0 {
		s.tokens = append(s.tokens, Token{
			ID:        t.ID,
			Bytes:     s.a.text[p.offset : p.offset+p.length : p.offset+p.length],
			Offset:    p.offset,
			Straddles: p.straddles,
			Logprob:   t.Logprob,
			Top:       t.Top,
		})
	}
	if s.a.stopped {
		s.trim()
	}
	return nil
}

// trim takes off the tokens what a stop string cut off the text.
func (s *Stream) trim() {
	n := len(s.a.text)
	for len(s.tokens) > 0 && s.tokens[len(s.tokens)-1].Offset >= n {
		s.tokens = s.tokens[:len(s.tokens)-1]
	}
	// Tokens that were handed out end before the stop string and stay untouched.
	if k := len(s.tokens) - 1; k >= s.shown {
		last := &s.tokens[k]
		last.Bytes = last.Bytes[:min(len(last.Bytes), n-last.Offset)]
	}
}

// finish ends a stream at a stop string. A backend that heeded the verdict has
// nothing more to say but how it ended; any other is told to stop.
func (s *Stream) finish() error {
	if s.steered {
		if _, err := s.backend.Next(); err != nil {
			return io.EOF
		}
	}
	s.backend.Close()
	return io.EOF
}

// cut hands out the text up to end.
func (s *Stream) cut(end int) Chunk {
	c := Chunk{Text: slices.Clone(s.a.text[s.sent:end])}
	s.sent = end
	from := s.shown
	for s.shown < len(s.tokens) && s.tokens[s.shown].Offset+len(s.tokens[s.shown].Bytes) <= end {
		s.shown++
	}
	c.Tokens = s.tokens[from:s.shown:s.shown]
	return c
}

// Result describes the whole continuation. It is valid once Next has returned
// an error.
func (s *Stream) Result() *Result {
	end := s.backend.End()
	r := &Result{
		Text:         s.a.text,
		Tokens:       s.tokens,
		IDs:          s.ids,
		FinishReason: end.Reason,
		EndToken:     end.EndToken,
		StopString:   s.a.stopString,
		Healing: Healing{
			Mode:           s.plan.Mode,
			TokensRemoved:  s.plan.Removed,
			BytesPending:   len(s.plan.Pending),
			TokensReplayed: s.a.replayed,
			ForwardPasses:  end.ForwardPasses,

			UpstreamRequests: end.Requests,
			Notes:            append([]heal.Note{}, s.plan.Notes...),
		},
		Usage: Usage{
			PromptTokens:     s.prompt,
			CompletionTokens: s.a.counted,
			CachedTokens:     end.CachedTokens,
		},
	}
	if s.a.stopped {
		r.FinishReason = backend.FinishStop
	}
	return r
}

// Close gives the continuation up, if it is still running, and frees what it
// holds.
func (s *Stream) Close() error { return s.backend.Close() }
