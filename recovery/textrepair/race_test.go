//go:build race

package textrepair

// The race detector slows tests without goroutines down to a tenth.
func init() { fewer = true }
