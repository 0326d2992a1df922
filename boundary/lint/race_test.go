//go:build race

package lint_test

// Under the race detector a sixteenth of the cuts is linted.
func init() { stride = 16 }
