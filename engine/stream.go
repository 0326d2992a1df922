package engine

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

var errStreamClosed = errors.New("engine: the stream was closed before its end")

// stream hands the tokens of one task to its reader. The scheduler never waits
// for a reader: what is not read yet stays in the buffer, which the context
// length bounds.
type stream struct {
	ctx   context.Context
	ready chan struct{} // holds a token when there may be news
	wake  func()        // tells the scheduler that the stream was closed

	mu     sync.Mutex
	tokens []backend.Token // not read yet
	ended  bool
	err    error // after tokens; valid once ended
	end    backend.End
	closed bool
}

func newStream(ctx context.Context, wake func()) *stream {
	return &stream{ctx: ctx, ready: make(chan struct{}, 1), wake: wake, end: backend.End{EndToken: vocab.None}}
}

// Next implements [backend.Stream].
func (s *stream) Next() (backend.Token, error) {
	for {
		if tok, err, ok := s.take(); ok {
			return tok, err
		}
		select {
		case <-s.ready:
		case <-s.ctx.Done():
		}
	}
}

// take returns what Next shall return, if that is known yet.
func (s *stream) take() (tok backend.Token, err error, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended && len(s.tokens) == 0:
		return tok, s.err, true
	case s.closed:
		return tok, errStreamClosed, true
	case s.ctx.Err() != nil:
		return tok, s.ctx.Err(), true
	case len(s.tokens) == 0:
		return tok, nil, false
	}
	tok = s.tokens[0]
	s.tokens = s.tokens[1:]
	return tok, nil, true
}

// End implements [backend.Stream].
func (s *stream) End() backend.End {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// Close implements [backend.Stream].
func (s *stream) Close() error {
	s.mu.Lock()
	first := !s.closed && !s.ended
	s.closed = true
	s.tokens = nil
	s.mu.Unlock()
	if first {
		s.wake()
	}
	return nil
}

// givenUp returns why nobody waits for further tokens, or nil.
func (s *stream) givenUp() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errStreamClosed
	}
	return nil
}

// put appends a token and says how much work the task has had so far.
func (s *stream) put(tok backend.Token, cached, passes int) {
	s.mu.Lock()
	if !s.closed {
		s.tokens = append(s.tokens, tok)
	}
	s.end.CachedTokens, s.end.ForwardPasses = cached, passes
	s.mu.Unlock()
	s.signal()
}

// finish ends the stream; a nil err means that it ended as it should.
func (s *stream) finish(end backend.End, err error) {
	if err == nil {
		err = io.EOF
	}
	s.mu.Lock()
	s.ended, s.end, s.err = true, end, err
	s.mu.Unlock()
	s.signal()
}

func (s *stream) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
