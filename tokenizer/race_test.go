//go:build race

package tokenizer

// The race detector makes sync.Pool forget at random.
func init() { raceEnabled = true }
