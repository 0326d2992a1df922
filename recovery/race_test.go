//go:build race

package recovery_test

// Times say nothing under the race detector.
func init() { raceEnabled = true }
