//go:build race

package audit

func init() { race = true }
