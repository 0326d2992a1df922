package continuation

import (
	"bytes"
	"context"
	"errors"
	"slices"
)

// Request asks an upstream to go on.
type Request struct {
	Mode Mode
	// Keep is what it is given as its own text so far, with [Exact] all of it. Require
	// is what the answer must begin with.
	Keep, Require []byte
	// Instruction is the user's turn that asks for the rest, with [Instruct].
	Instruction string
	Attempt     int // counts from 1
	// MaxTokens is how many tokens the answer may have, Require's among them; 0: no
	// limit.
	MaxTokens int
}

// Answer is what came.
type Answer struct {
	// Text is what the model said, without Keep: servers that send all of the message
	// back have it taken off before.
	Text         []byte
	FinishReason string
	Tokens       int // 0: not told; a token is then taken for four bytes
	// Exact says that the model went on from the tokens of Keep, or from Keep healed
	// at its end. Without it an answer to [Exact] must prove itself as others do.
	Exact bool
}

// Ask asks an upstream. An error ends the attempt.
type Ask func(context.Context, Request) (Answer, error)

// Attempt is what one question came to.
type Attempt struct {
	Mode         Mode   `json:"mode"`
	Kept         int    `json:"kept"`     // bytes that the upstream was given
	Required     int    `json:"required"` // bytes that had to be produced again
	Overlap      int    `json:"overlap"`  // bytes that were
	Added        int    `json:"added"`    // bytes that were joined
	Proof        Proof  `json:"proof,omitempty"`
	Reason       Reason `json:"reason,omitempty"` // why nothing was joined
	Tokens       int    `json:"tokens"`
	FinishReason string `json:"finish_reason,omitempty"`
	Err          error  `json:"-"` // the upstream's
}

// Result is a text with what was joined to it.
type Result struct {
	// Text begins with the text that was given. It is that text where nothing was
	// joined.
	Text []byte
	// Complete says that the text does not break off any more.
	Complete     bool
	FinishReason string // of the last answer that counts
	Attempts     []Attempt
	Joined       int // bytes added
	Tokens       int // of all answers
	// Err is why the text is not complete, a [*SeamError]; nil if it is.
	Err error
}

// Run goes on with a text until it is complete, as far as attempts and tokens
// allow. What has been joined stays joined where a later attempt fails. ask is never
// called for a text that does not break off.
func Run(ctx context.Context, text []byte, o Options, ask Ask) *Result {
	o = o.withDefaults()
	r := &runner{o: o, known: o.Answer, ask: ask, Result: &Result{Text: text, FinishReason: o.Answer.FinishReason}}
	for !r.done(ctx) {
		r.attempt(ctx)
	}
	return r.Result
}

type runner struct {
	*Result
	o        Options
	known    DetectOptions // of Text
	ask      Ask
	mode     int    // index in o.Modes
	refused  []byte // the last answer that was not joined
	failed   error  // of the last attempt
	failures int    // in this mode, since something was joined
	finished bool
}

// end closes the result.
func (r *runner) end(err error) bool {
	r.finished, r.Err, r.Complete = true, err, err == nil
	return true
}

// done reports whether there is nothing more to do, and says why.
func (r *runner) done(ctx context.Context) bool {
	if r.finished {
		return true
	}
	t := Detect(r.Text, r.known)
	switch {
	case finishes[r.known.FinishReason] == withheld:
		return r.end(&SeamError{Reason: Filtered, Offset: len(r.Text)})
	case !t.Cut && t.Malformed:
		at := len(r.Text)
		if t.Fault != nil {
			at = t.Fault.Offset
		}
		return r.end(&SeamError{Reason: MalformedText, Offset: at})
	case !t.Cut:
		return r.end(nil)
	case ctx.Err() != nil:
		return r.end(&SeamError{Reason: AskFailed, Offset: len(r.Text), Err: context.Cause(ctx)})
	case len(r.Attempts) >= r.o.Attempts && r.failed != nil:
		return r.end(r.failed)
	case len(r.Attempts) >= r.o.Attempts:
		return r.end(&SeamError{Reason: OutOfAttempts, Offset: len(r.Text)})
	case r.o.MaxTokens > 0 && r.Tokens >= r.o.MaxTokens:
		return r.end(&SeamError{Reason: OutOfTokens, Offset: len(r.Text)})
	}
	return false
}

// attempt asks once.
func (r *runner) attempt(ctx context.Context) {
	o := r.o
	o.Mode = o.Modes[r.mode]
	// The same question would have the same answer: more is cut off.
	o.MinOverlap *= 1 << (2 * min(r.failures, 4))
	seam, err := Plan(r.Text, o)
	if err != nil {
		r.end(err)
		return
	}
	q := Request{Mode: seam.Mode, Keep: seam.Keep, Require: seam.Require, Attempt: len(r.Attempts) + 1}
	if o.MaxTokens > 0 {
		q.MaxTokens = o.MaxTokens - r.Tokens
	}
	if q.Mode == Instruct {
		q.Instruction = seam.Instruction()
	}
	a, err := r.ask(ctx, q)
	t := Attempt{Mode: q.Mode, Kept: len(q.Keep), Required: len(q.Require), Tokens: a.Tokens, FinishReason: a.FinishReason}
	if err != nil {
		t.Reason, t.Err = AskFailed, err
		r.Attempts = append(r.Attempts, t)
		r.fail(&SeamError{Reason: AskFailed, Offset: len(r.Text), Err: err}, nil)
		return
	}
	if t.Tokens == 0 {
		t.Tokens = (len(a.Text) + 3) / 4
	}
	r.Tokens += t.Tokens
	if q.Mode == Exact && !a.Exact {
		seam.Mode = Prefill
	}
	r.join(seam, a, t, q.MaxTokens)
}

// join joins an answer.
func (r *runner) join(seam *Seam, a Answer, t Attempt, limit int) {
	joined, err := Join(seam, a.Text)
	if again := bytes.TrimSpace(a.Text); err != nil && bytes.Equal(again, bytes.TrimSpace(r.Text)) {
		err = &SeamError{Reason: NothingNew, Offset: len(a.Text), Overlap: len(again)}
	}
	var e *SeamError
	if errors.As(err, &e) {
		t.Reason, t.Overlap = e.Reason, e.Overlap
		r.Attempts = append(r.Attempts, t)
		if r.saysNoMore(seam, a, e) {
			r.FinishReason = a.FinishReason
			r.end(nil)
			return
		}
		r.fail(err, a.Text)
		return
	}
	t.Added, t.Overlap, t.Proof = len(joined.Text), joined.Overlap, joined.Proof
	r.Attempts = append(r.Attempts, t)
	r.Text = slices.Concat(r.Text, joined.Text)
	r.Joined += len(joined.Text)
	r.FinishReason = a.FinishReason
	r.known = DetectOptions{FinishReason: a.FinishReason, CompletionTokens: a.Tokens, MaxTokens: limit, Form: r.o.Form}
	r.refused, r.failed, r.failures = nil, nil, 0
}

// saysNoMore reports whether the model, having arrived at the text's end, ended by
// itself: then the text was complete, whatever its finish reason said.
func (r *runner) saysNoMore(seam *Seam, a Answer, e *SeamError) bool {
	if e.Reason != NothingNew || finishes[a.FinishReason] != stopped {
		return false
	}
	there := e.Overlap > 0 || seam.Mode == Exact || seam.Mode == Prefill && len(seam.Require) == 0
	return there && !Detect(r.Text, DetectOptions{FinishReason: a.FinishReason, Form: r.o.Form}).Cut
}

// fail decides whether to ask again after a failure.
func (r *runner) fail(err error, answer []byte) {
	r.failed = err
	var e *SeamError
	errors.As(err, &e)
	switch {
	case r.mode+1 < len(r.o.Modes):
		r.mode++
		r.refused, r.failures = nil, 0
	case e.Reason == AskFailed, e.Reason == NothingNew, e.Reason == Repetition, r.refused != nil && bytes.Equal(answer, r.refused):
		r.end(err)
	default:
		r.failures++
		r.refused = append([]byte{}, answer...)
	}
}
