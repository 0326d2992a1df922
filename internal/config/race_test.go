//go:build race

package config

// The race detector slows the scanner of large files down to a tenth.
func init() { raceEnabled = true }
