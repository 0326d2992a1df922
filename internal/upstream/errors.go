package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Phase is what a request waited for when it failed.
type Phase string

const (
	PhaseRequest Phase = "request" // the request could not be sent as it is, or its body not read
	PhaseConnect Phase = "connect" // a connection: name, TCP, TLS, or one that becomes free
	PhaseHeaders Phase = "headers" // the response's headers
	PhaseBody    Phase = "body"    // the response's body
)

// ErrClosed is the cause of errors after [Pool.Close].
var ErrClosed = errors.New("the pool is closed")

// Error is the failure of a request. RoundTrip returns no other, and neither
// does the body of a response, io.EOF and reads after Close apart.
type Error struct {
	Endpoint string // scheme, host and base path; "" where none was chosen
	Phase    Phase
	// Err is the cause. Where the caller's context ended it is the context's
	// cause, and only there errors.Is finds the errors of package context.
	Err error

	caller bool
}

func (e *Error) Unwrap() error { return e.Err }

// Caller reports whether the caller's own context ended, so that the failure
// is nobody else's.
func (e *Error) Caller() bool { return e.caller }

// Timeout reports whether the endpoint took too long. It is false where
// Caller is true.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return !e.caller && errors.As(e.Err, &t) && t.Timeout()
}

// Error says what failed and what to do about it. It holds no part of the
// request and no credentials.
func (e *Error) Error() string {
	cause := clip(fmt.Sprint(e.Err))
	if e.Endpoint == "" {
		return "upstream: " + cause
	}
	at := "upstream " + e.Endpoint + ": "
	if e.caller {
		return fmt.Sprintf("%sthe caller ended the request (phase: %s): %s", at, e.Phase, cause)
	}
	switch e.Phase {
	case PhaseConnect:
		return at + "cannot connect: " + cause + "; check that the server runs, and the address"
	case PhaseHeaders:
		if e.Timeout() {
			return at + cause + "; the server hangs or its queue is long: see its log, or raise the first-byte timeout"
		}
		return at + "the connection failed before a response: " + cause +
			"; the server may have handled the request, so it was not sent again: see its log"
	case PhaseBody:
		if e.Timeout() {
			return at + cause + "; the server hangs: see its log, or raise the idle timeout"
		}
		return at + "the response broke off: " + cause + "; see the server's log"
	default:
		return at + "cannot send the request: " + cause
	}
}

// fault is how an endpoint's failure is counted: "" for none.
func (e *Error) fault() string {
	if e.caller || e.Phase == PhaseRequest {
		return ""
	}
	return e.Error()
}

// maxCause bounds the part of an error's text, in bytes, that a server may
// have written.
const maxCause = 300

// clip makes one line of bounded length of a cause.
func clip(s string) string {
	if len(s) > maxCause {
		s = s[:maxCause] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// timeoutError says that a limit of this package passed.
type timeoutError struct {
	phase Phase
	limit time.Duration
}

func (e *timeoutError) Timeout() bool { return true }

func (e *timeoutError) Error() string {
	if e.phase == PhaseHeaders {
		return fmt.Sprintf("no response headers within %v", e.limit)
	}
	return fmt.Sprintf("no more of the response's body for %v", e.limit)
}

// foreignError hides a cause that errors.Is would take for the end of the
// caller's context: a dial that timed out passes for
// context.DeadlineExceeded.
type foreignError struct{ err error }

func (e *foreignError) Error() string { return e.err.Error() }

func (e *foreignError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.err, &t) && t.Timeout()
}

// endpointError is the error for what an endpoint did.
func endpointError(endpoint string, phase Phase, err error) *Error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = &foreignError{err}
	}
	return &Error{Endpoint: endpoint, Phase: phase, Err: err}
}

// callerError is the error for a caller whose context has ended.
func callerError(endpoint string, phase Phase, ctx context.Context) *Error {
	return &Error{Endpoint: endpoint, Phase: phase, Err: context.Cause(ctx), caller: true}
}
