package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray"
)

// TestHandler tells wrong usage, which exits with 2, from input that could not
// be handled.
func TestHandler(t *testing.T) {
	for _, tt := range []struct {
		err   error
		usage bool
		text  string
	}{
		{usageError("no such mode"), true, "no such mode"},
		{&unfray.RequestError{Param: "max_tokens", Text: "-1 is not between 0 and 9"}, true, "max_tokens: -1 is not between 0 and 9"},
		{&unfray.RequestError{Param: "prompt", Text: "the prompt is empty"}, false, "prompt: the prompt is empty"},
		{fmt.Errorf("unfray: %w", errors.New("backend: closed")), false, "backend: closed"},
	} {
		err := handler(func(*cobra.Command, []string) error { return tt.err })(nil, nil)
		if usage := !errors.As(err, new(failure)); usage != tt.usage || message(err) != tt.text {
			t.Errorf("%v: wrong usage %v, %q", tt.err, usage, message(err))
		}
	}
}
