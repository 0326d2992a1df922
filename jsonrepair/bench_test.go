package jsonrepair

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// records is an array of small objects, of about n bytes.
func records(n int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n  {\"id\": %d, \"name\": \"item %d\", \"tags\": [\"a\", \"b c\"], \"price\": %d.50, \"note\": \"fine, as it is\", \"ok\": true}", i, i, i)
	}
	b.WriteString("\n]\n")
	return b.String()
}

var broken = map[string]func(n int) string{
	"one error at the end": func(n int) string { return strings.TrimSuffix(records(n), "\n]\n") + ",]" },
	"cut":                  func(n int) string { return records(n)[:n] },
	"no commas":            func(n int) string { return strings.ReplaceAll(records(n), ", \"", " \"") },
	"single quotes":        func(n int) string { return strings.ReplaceAll(records(n), `"`, `'`) },
	"Python":               func(n int) string { return strings.ReplaceAll(records(n), `true`, `True`) },
	"valid":                records,
	"unquoted keys":        func(n int) string { return regexp.MustCompile(`"(\w+)":`).ReplaceAllString(records(n), "$1:") },
}

func BenchmarkRepair(b *testing.B) {
	for name, make := range broken {
		data := []byte(make(256 << 10))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				Repair(data, Options{})
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	data := []byte(records(24 << 10))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		s := NewStream(Options{})
		for d := data; len(d) > 0; d = d[min(8, len(d)):] {
			s.Write(d[:min(8, len(d))])
			s.Committed()
		}
		s.Close()
	}
}
