package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one mistake in a file.
type Error struct {
	File string `json:"file"`
	// Line and Column count from 1, columns in characters; 0: the mistake has
	// no place.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path names the value, such as models[1].heal; "": the file as a whole.
	Path string `json:"path,omitempty"`
	// Text says what is wrong and what to do. It quotes nothing of the file
	// but names of models, upstreams and environment variables.
	Text string `json:"text"`
}

// Error is "file:line:column: path: text" without what there is not.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Text)
	return b.String()
}

// Errors are the mistakes of a file, in its order. There are at most 50; the
// last then says how many more there were.
type Errors []*Error

// Error has a line for each mistake.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes, for [errors.As].
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, err := range e {
		list[i] = err
	}
	return list
}

const (
	maxErrors   = 50   // shown
	maxGathered = 1000 // kept until they are sorted
)

// place is where a value stands; line 0: nowhere.
type place struct{ line, column int }

// findings gathers mistakes or warnings.
type findings struct {
	list []*Error
	more int
}

func (f *findings) add(file string, at place, path, text string) {
	if len(f.list) == maxGathered {
		f.more++
		return
	}
	f.list = append(f.list, &Error{File: file, Line: at.line, Column: at.column, Path: path, Text: text})
}

// sorted returns the findings in the file's order, the same one not twice: a
// value with several aliases is decoded several times.
func (f *findings) sorted() []*Error {
	type key struct {
		line, column int
		text         string
	}
	seen := map[key]bool{}
	list := slices.DeleteFunc(slices.Clone(f.list), func(e *Error) bool {
		k := key{e.Line, e.Column, e.Text}
		found := seen[k]
		seen[k] = true
		return found && e.Line > 0
	})
	slices.SortStableFunc(list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more := len(list) - maxErrors + f.more; more > 0 && len(list) >= maxErrors {
		// One makes room for the line that counts.
		more++
		list = append(list[:maxErrors-1], &Error{File: list[0].File, Text: fmt.Sprintf("%d more are not shown", more)})
	}
	return list
}

// err is what was found as an error, nil if nothing was.
func (f *findings) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return Errors(f.sorted())
}
