package grammar

import (
	"errors"
	"fmt"
	"strings"
)

// Causes that callers tell apart.
var (
	// ErrEmpty says that no text matches.
	ErrEmpty = errors.New("no text matches")
	// ErrLeftRecursion says that a rule can reach itself before any byte.
	ErrLeftRecursion = errors.New("left recursion: write the rule with * or +, or let it call itself at its end")
	// ErrTooLarge says that a constraint has more parts than a Grammar may have.
	ErrTooLarge = errors.New("too large")
	// ErrTooComplex says that a text can be read in more ways at once than are
	// kept.
	ErrTooComplex = errors.New("grammar: too many readings of the text at once: make the grammar less ambiguous")
	// ErrUnsupported says that a part of a constraint's language that restricts
	// texts is not one that this package knows how to keep.
	ErrUnsupported = errors.New("not supported")
)

// SyntaxError says where a constraint cannot be used, and why.
type SyntaxError struct {
	Offset int // bytes before the place
	Line   int // from 1
	Column int // in bytes, from 1
	// Pointer is the JSON pointer of the place in a schema. It is "" at its top
	// and for other languages.
	Pointer string
	Cause   error
}

func (e *SyntaxError) Error() string {
	if e.Pointer != "" {
		return fmt.Sprintf("grammar: %d:%d: at %s: %v", e.Line, e.Column, e.Pointer, e.Cause)
	}
	return fmt.Sprintf("grammar: %d:%d: %v", e.Line, e.Column, e.Cause)
}

func (e *SyntaxError) Unwrap() error { return e.Cause }

// errorAt makes a SyntaxError for a byte offset of src.
func errorAt(src string, offset int, cause error) *SyntaxError {
	before := src[:min(max(offset, 0), len(src))]
	return &SyntaxError{
		Offset: len(before),
		Line:   strings.Count(before, "\n") + 1,
		Column: len(before) - strings.LastIndexByte(before, '\n'),
		Cause:  cause,
	}
}
