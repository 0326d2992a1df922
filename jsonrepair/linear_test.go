package jsonrepair

import (
	"fmt"
	"strings"
	"testing"
)

// hostile are shapes of input that are hard on a repairer, by name: each is made of
// about n bytes.
var hostile = map[string]func(n int) string{
	"openers":          func(n int) string { return strings.Repeat("[", n) },
	"objects":          func(n int) string { return strings.Repeat(`{"a":`, n/5) },
	"closers":          func(n int) string { return strings.Repeat("]", n) },
	"mixed closers":    func(n int) string { return strings.Repeat("[{", n/4) + strings.Repeat("]}", n/4) },
	"wrong closers":    func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("}", n/2) },
	"marks":            func(n int) string { return `{"a":"` + strings.Repeat(`"`, n) },
	"doubtful marks":   func(n int) string { return `{"a":"` + strings.Repeat(`say "hi", now `, n/14) + `"}` },
	"marks and colons": func(n int) string { return `{"a":"` + strings.Repeat(`":"`, n/3) + `"}` },
	"inner openers":    func(n int) string { return `{"a":"` + strings.Repeat(`(5") {`, n/6) },
	"commas":           func(n int) string { return "[" + strings.Repeat(",", n) },
	"missing commas":   func(n int) string { return "[" + strings.Repeat("{\"a\":1}\n", n/8) + "]" },
	"open string":      func(n int) string { return `{"a":"` + strings.Repeat("one, two: three ", n/16) },
	"spaces":           func(n int) string { return `{"a":1` + strings.Repeat(" ", n) + "\"b\":2}" },
	"comments":         func(n int) string { return "[1" + strings.Repeat("/* x */ ", n/8) + "2" },
	"open comment":     func(n int) string { return "[1 /*" + strings.Repeat("* ", n/2) },
	"backslashes":      func(n int) string { return `["` + strings.Repeat(`\`, n) },
	"bad escapes":      func(n int) string { return `["` + strings.Repeat(`\x `, n/3) },
	"digits":           func(n int) string { return "[" + strings.Repeat("1", n) },
	"words":            func(n int) string { return "[" + strings.Repeat("word ", n/5) },
	"colons":           func(n int) string { return `{"a"` + strings.Repeat(":", n) },
	"bare keys":        func(n int) string { return "{" + strings.Repeat("a b c ", n/6) },
	"prose":            func(n int) string { return strings.Repeat("see [1] or {x} or [a ", n/21) },
	"thinking":         func(n int) string { return strings.Repeat("<think>", n/7) },
	"documents":        func(n int) string { return strings.Repeat("{\"a\":1}\n", n/8) },
	"braces in string": func(n int) string { return `{"a":"` + strings.Repeat("} ", n/2) },
	"lines in string":  func(n int) string { return `{"a":"` + strings.Repeat("\n}", n/2) },
	"parentheses":      func(n int) string { return strings.Repeat("(", n) },
	"ellipses":         func(n int) string { return "[" + strings.Repeat("... ", n/4) },
	"curly marks":      func(n int) string { return "{“a”:“" + strings.Repeat("” “", n/7) },
	"invalid UTF-8":    func(n int) string { return `["` + strings.Repeat("\xff", n) },
	"lone surrogates":  func(n int) string { return `["` + strings.Repeat(`\ud83d`, n/6) },
	"regexes":          func(n int) string { return "[" + strings.Repeat("/a", n/2) },
	"drives":           func(n int) string { return "[" + strings.Repeat(`"C:\n",`, n/7) },
}

func BenchmarkHostile(b *testing.B) {
	for name, make := range hostile {
		for _, n := range []int{64 << 10, 1 << 20} {
			data := []byte(make(n))
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					Repair(data, Options{})
				}
			})
		}
	}
}
