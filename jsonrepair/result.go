package jsonrepair

import (
	"fmt"
	"iter"
	"time"
)

// Options says how a document is read. The zero value is right for most.
type Options struct {
	// Strict refuses to choose: an ambiguous document has readings, but no text.
	Strict bool
	// LaTeX takes \f, \b, \t, \r, \n and \v before letters for the beginning of a LaTeX command
	// where one is known (\frac, \beta, \theta, …): the backslash is escaped. By
	// default these are findings.
	LaTeX bool
	// Paths takes valid escapes inside what looks like a Windows path
	// (C:\new\table) for backslashes. By default they are findings.
	Paths bool

	// Ended says that the text is known not to break off (finish reason stop), so
	// that a number at its very end is whole.
	Ended bool

	// Window is how many bytes behind a byte in doubt are looked at before the
	// conservative reading is taken; 0: 256.
	Window int

	// Limits. 0: none. Where one is reached the outcome is Failed.
	MaxBytes int           // of input
	MaxDepth int           // open containers
	MaxEdits int           // edits
	MaxTime  time.Duration // of work; looked at every few thousand bytes

	// For tests.
	hold   int  // maxHeld
	noFast bool // no [engine.fast]

	layout bool // take the indentation for evidence
}

// Outcome is what became of a document.
type Outcome int

// The outcomes.
const (
	Valid     Outcome = iota // strict JSON; the text is the input
	Repaired                 // complete, after edits
	Truncated                // breaks off; what was open has been closed
	Ambiguous                // can be read in several ways
	Failed                   // no JSON could be found, or a limit was reached
)

var outcomes = [...]string{"valid", "repaired", "truncated", "ambiguous", "failed"}

func (o Outcome) String() string { return outcomes[o] }

// MarshalText gives the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Result is a repaired document and the receipt for it.
type Result struct {
	Outcome Outcome
	// Text is strict JSON, the input itself where the outcome is Valid. It is nil
	// for Failed, and for Ambiguous under Options.Strict.
	Text []byte
	// Findings are places that were seen and left as they are, the first 1,000.
	Findings []Finding
	// Open names what had not ended where a truncated document broke off, the
	// outermost first.
	Open []Open
	// Readings are the ways to read an ambiguous document, the likeliest first.
	Readings []Reading
	// Err says why the outcome is Failed.
	Err *Error

	values  iter.Seq[[]byte]
	data    []byte
	log     editLog
	layout  bool // read with the indentation for evidence
	evident bool // fewer edits speak for it
}

// Values returns the parts of Text that came from documents of their own, where
// the input held several; Text is then the array of them. Otherwise there are none.
func (r *Result) Values() iter.Seq[[]byte] {
	if r.values == nil {
		return func(func([]byte) bool) {}
	}
	return r.values
}

// Edits returns the changes that make Text of the input, in order. See [Apply].
func (r *Result) Edits() iter.Seq[Edit] { return r.log.all(r.data) }

// EditCount is how many changes there are.
func (r *Result) EditCount() int { return r.log.n }

// Edit is a change of the input: Before, at Offset, was replaced by After.
// Either may be empty.
type Edit struct {
	Kind   Kind   `json:"kind"`
	Offset int    `json:"offset"` // bytes of input
	Before string `json:"before"`
	After  string `json:"after"`
}

// Finding is a place that looks wrong and is valid, or that was left alone.
type Finding struct {
	Kind   Kind   `json:"kind"`
	Offset int    `json:"offset"` // bytes of input
	Length int    `json:"length"` // bytes of input
	Text   string `json:"text"`   // what it may mean, for people
}

// Open is a container or scalar that had not ended.
type Open struct {
	Path   string `json:"path"`   // JSON Pointer (RFC 6901)
	Kind   string `json:"kind"`   // object, array, string, number, literal, key, or value where none had begun
	Offset int    `json:"offset"` // bytes of input, where it begins
}

// Reading is one way to read a document.
type Reading struct {
	Text []byte
	Why  string // what is taken for what, for people
	Cost int    // edits
}

// Error is why there is no text.
type Error struct {
	Offset int    // bytes of input
	Cause  string // what is wrong there
	Tried  string // what was tried, or what to do
}

func (e *Error) Error() string {
	s := fmt.Sprintf("jsonrepair: byte %d: %s", e.Offset, e.Cause)
	if e.Tried != "" {
		s += "; " + e.Tried
	}
	return s
}
