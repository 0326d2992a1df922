//go:build race

package tokenizertest

func init() { Race, stride = true, 16 }
