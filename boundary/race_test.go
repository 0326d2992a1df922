//go:build race

package boundary_test

// The race detector slows the exhaustive tests down to a tenth.
func init() { raceEnabled = true }
