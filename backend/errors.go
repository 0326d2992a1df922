package backend

import (
	"errors"
	"fmt"
	"time"

	"github.com/unfray/unfray/vocab"
)

// Causes of failure that callers tell apart with errors.Is.
var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("backend: closed")
	// ErrEmptyPrompt is returned for a request without any prompt token.
	ErrEmptyPrompt = errors.New("backend: the prompt holds no token")
	// ErrEngine is the cause of failures inside the model runtime. The backend
	// stays usable after it.
	ErrEngine = errors.New("backend: the model runtime failed")
)

// QueueFullError says that as many requests are waiting as the backend takes.
type QueueFullError struct {
	Waiting    int           // requests in the queue
	RetryAfter time.Duration // an estimate of when a place is free
}

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("backend: %d requests are waiting already; retry in %s", e.Waiting, e.RetryAfter)
}

// PromptTooLongError says that a prompt leaves no room for a continuation.
type PromptTooLongError struct {
	Tokens        int // tokens in the prompt
	ContextLength int // tokens the model's context holds
}

func (e *PromptTooLongError) Error() string {
	return fmt.Sprintf("backend: the prompt has %d tokens, but the context holds %d and one must be left to generate; shorten the prompt or raise the context size", e.Tokens, e.ContextLength)
}

// InvalidTokenError says that a request names an ID outside the vocabulary.
type InvalidTokenError struct {
	ID        vocab.ID
	Position  int // index in the prompt, or -1 for an ID elsewhere in the request
	VocabSize int
}

func (e *InvalidTokenError) Error() string {
	if e.Position < 0 {
		return fmt.Sprintf("backend: token %d is outside the vocabulary of %d tokens", e.ID, e.VocabSize)
	}
	return fmt.Sprintf("backend: token %d at position %d of the prompt is outside the vocabulary of %d tokens", e.ID, e.Position, e.VocabSize)
}
