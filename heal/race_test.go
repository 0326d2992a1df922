//go:build race

package heal

// The race detector slows the computations on toy models down to a tenth.
func init() { raceEnabled = true }
