package trace

import (
	"fmt"
)

// A Kind groups what can be wrong with a trace.
type Kind string

// The kinds of errors.
const (
	Syntax      Kind = "syntax"      // no JSON, or no CSV
	Cut         Kind = "cut"         // the line ends inside a value
	Type        Kind = "type"        // a value of another type than the format says
	Range       Kind = "range"       // a number that is negative, too large, or none
	Missing     Kind = "missing"     // a field that the format needs is not there
	Duplicate   Kind = "duplicate"   // a field is there twice
	Encoding    Kind = "encoding"    // not UTF-8, or half of a surrogate pair
	Clock       Kind = "clock"       // a time before that of the request before
	TooLong     Kind = "too long"    // a line beyond [Options.MaxLine]
	Content     Kind = "content"     // values that contradict each other
	Compression Kind = "compression" // gzip data that is damaged, or unpacks to too much
	Format      Kind = "format"      // a trace in none of the formats, or an empty one
)

// An Error is a fault of a trace and its place. Of a trace that came compressed,
// the place is in the unpacked text.
type Error struct {
	File   string // as [Open] or [NewReader] were told
	Line   int    // from 1
	Column int    // bytes of the line up to the fault, from 1
	Offset int64  // bytes of the trace before the fault

	Kind Kind
	Text string // what is wrong, and what would be right
	Err  error  // the cause, if another package reported it
}

// Error tells place and text: "trace.jsonl:17:42: input_length: want a whole
// number of tokens, got a string".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
