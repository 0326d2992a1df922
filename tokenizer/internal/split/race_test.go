//go:build race

package split

// Under the race detector the exhaustive tests take minutes.
func init() { raceEnabled = true }
