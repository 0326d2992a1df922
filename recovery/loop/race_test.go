//go:build race

package loop

// The race detector slows tests without goroutines down to a tenth.
func init() { fewer = 10 }
