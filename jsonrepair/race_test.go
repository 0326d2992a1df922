//go:build race

package jsonrepair

// The race detector slows tests without goroutines down to a tenth.
func init() { fewer = 5 }
