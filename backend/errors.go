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

// UnsupportedError says that a backend cannot do what a request asks, and would
// do something else if it tried. Nothing was sent.
type UnsupportedError struct {
	Param string // field, by its name in OpenAI's API
	Text  string
}

func (e *UnsupportedError) Error() string { return "backend: " + e.Param + ": " + e.Text }

// UpstreamError is an answer of a server that is no success. Its text does not
// show the body, which may repeat the prompt.
type UpstreamError struct {
	Status int                 // HTTP status; that of an error inside a stream if it has one, else 502
	Header map[string][]string // of the answer, canonical names; nil inside a stream
	Body   []byte              // the server's own words, at most 64 KiB
}

func (e *UpstreamError) Error() string {
	return fmt.Sprintf("backend: the server answered with status %d", e.Status)
}

// ProtocolError says that a server's answer is none that it could give: garbage,
// a half event, tokens out of its vocabulary.
type ProtocolError struct {
	Text string
	Err  error // cause, may be nil
}

func (e *ProtocolError) Error() string {
	if e.Err != nil {
		return "backend: the server's answer cannot be read: " + e.Text + ": " + e.Err.Error()
	}
	return "backend: the server's answer cannot be read: " + e.Text
}

// Unwrap returns the cause.
func (e *ProtocolError) Unwrap() error { return e.Err }
