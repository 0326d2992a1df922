// Package recovery turns what a model said into what was meant, and says exactly
// what it changed.
//
// An answer arrives fenced, after a stretch of reasoning, in the middle of prose,
// with broken characters, in a loop, cut off, or with values of other types than
// were asked for. [Recover] tries strategies in order of cost; the first after
// which the text is acceptable for the demanded form ends it. Its [Result] tells
// what became of the answer, holds every edit, and keeps a trace of what was tried.
//
//   - What is valid for the demanded form comes back byte for byte.
//   - Apply(input, edits) gives the text, whatever steps led to it.
//   - What cannot be saved is said to be lost: truncated, ambiguous and failed
//     are outcomes, and calls that were cut or mended are marked.
//   - Time is linear in the input, and everything has a budget.
//
// [Stream] does the same while the answer arrives, as far as that is possible
// without taking anything back.
package recovery

import (
	"context"
	"time"

	"github.com/unfray/unfray/jsonrepair"
)

// Form is what an answer is to be.
type Form string

// The forms.
const (
	// Auto is JSON for an answer that is JSON or wraps it, else text.
	Auto Form = ""
	Text Form = "text"
	// JSON is one JSON text, of the schema where there is one.
	JSON Form = "json"
	// Code is the source text of one program or snippet.
	Code Form = "code"
)

// Outcome is what became of an answer.
type Outcome = jsonrepair.Outcome

// The outcomes.
const (
	Valid     = jsonrepair.Valid     // good for the form; the text is the input
	Repaired  = jsonrepair.Repaired  // complete, after edits
	Truncated = jsonrepair.Truncated // breaks off; what was open has been closed
	Ambiguous = jsonrepair.Ambiguous // can be read in several ways
	Failed    = jsonrepair.Failed    // nothing of the form could be found
)

// Budget limits the work on one answer. The zero value of a field is its default;
// a negative one is no limit.
type Budget struct {
	Bytes int           // of input; 16 MiB
	Edits int           // 100,000
	Depth int           // open objects and arrays; 10,000
	Time  time.Duration // of work, asking not included; 10 seconds
	// Attempts is how often the model may be asked to go on, and how often a
	// fallback may be called; 3.
	Attempts int
	// Tokens is how many tokens all continuations together may have; no limit.
	Tokens int
}

// Edit is a change of the input.
type Edit struct {
	jsonrepair.Edit
	// Strategy is the one that made it: the last one, where several changed the
	// same bytes.
	Strategy string `json:"strategy"`
}

// Verdict is what a strategy came to.
type Verdict string

// The verdicts.
const (
	Accepted Verdict = "accepted"    // the text is good for the form now
	Changed  Verdict = "changed"     // something was mended, more is wrong
	Nothing  Verdict = "nothing"     // nothing to do for it
	Rejected Verdict = "rejected"    // what it found was worse, or not of the form
	Exceeded Verdict = "over_budget" // the budget did not suffice
)

// Step is a strategy that was tried.
type Step struct {
	Strategy string        `json:"strategy"`
	Verdict  Verdict       `json:"verdict"`
	Why      string        `json:"why,omitempty"` // for people
	Edits    int           `json:"edits"`
	Took     time.Duration `json:"-"`
}

// Error is why there is no text.
type Error struct {
	Offset int    // bytes of input
	Cause  string // what is wrong there
	Tried  string // what was tried, or what to do
}

func (e *Error) Error() string {
	s := e.Cause
	if e.Tried != "" {
		s += "; " + e.Tried
	}
	return s
}

// Fallback gets an answer by other means when all strategies have failed: another
// model, another request, a default. It returns the new answer, or nil to leave
// the result as it is. attempt counts from 1.
type Fallback func(ctx context.Context, r *Result, attempt int) ([]byte, error)
