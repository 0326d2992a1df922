//go:build race

package gateway_test

// The race detector slows the exchanges down to a tenth.
func init() { raceEnabled = true }
