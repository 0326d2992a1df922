package jsonscan

import (
	"errors"
	"fmt"
	"strings"
)

// Causes of errors, for errors.Is.
var (
	// ErrSyntax: the file is not JSON.
	ErrSyntax = errors.New("not valid JSON")
	// ErrInvalid: the file is JSON, but contradicts itself or lacks something.
	ErrInvalid = errors.New("not a valid tokenizer")
	// ErrUnsupported: the file asks for what this package does not know.
	ErrUnsupported = errors.New("not supported")
	// ErrLimit: the file is larger or deeper than this package reads.
	ErrLimit = errors.New("too large")
)

// Place is where in a file something stands.
type Place struct {
	Path   string // such as "pre_tokenizer.pretokenizers[1].behavior"
	Offset int    // bytes from the start of the file
}

// Error is an error with its place in the file.
type Error struct {
	Place
	Cause  error // one of the above
	Detail string
}

func (e *Error) Error() string {
	at := e.Path
	if at == "" {
		at = "top level"
	}
	return fmt.Sprintf("%s (byte %d): %s: %s", at, e.Offset, e.Cause, e.Detail)
}

func (e *Error) Unwrap() error { return e.Cause }

// Refuse makes the error that what stands at this place is not supported.
func (p Place) Refuse(format string, args ...any) error {
	return &Error{p, ErrUnsupported, fmt.Sprintf(format, args...)}
}

// Invalid makes the error that what stands at this place is wrong.
func (p Place) Invalid(format string, args ...any) error {
	return &Error{p, ErrInvalid, fmt.Sprintf(format, args...)}
}

// Fail makes an error whose path is not known yet: those who called for the
// value add to it by Under.
func Fail(cause error, offset int, format string, args ...any) error {
	return &Error{Place{Offset: offset}, cause, fmt.Sprintf(format, args...)}
}

// Under puts a path element, "name" or "[3]", in front of the path of err.
// Paths are made only when something failed, so that reading costs nothing.
func Under(element string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	const most = 80 // bytes of a name; outside bytes may make it any length
	if len(element) > most {
		element = strings.ToValidUTF8(element[:most], "") + "…"
	}
	e.Path = Join(element, e.Path)
	return err
}

// UnderItem is Under for an element of an array.
func UnderItem(i int, err error) error { return Under(fmt.Sprintf("[%d]", i), err) }

func Join(element, path string) string {
	if path == "" || path[0] == '[' {
		return element + path
	}
	return element + "." + path
}
