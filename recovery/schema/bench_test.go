package schema

import (
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

const benchSchema = `{"type":"array","items":{"type":"object","properties":{"user_name":{"type":"string"},"n":{"type":"integer"},"status":{"enum":["in_progress","done"]},"tags":{"type":"array","items":{"type":"string"}}},"required":["user_name","n"]}}`

func benchText(item string) []byte {
	return []byte("[" + strings.TrimSuffix(strings.Repeat(item+",", 2000), ",") + "]")
}

func BenchmarkFit(b *testing.B) {
	s := mustParse(b, benchSchema)
	for name, text := range map[string][]byte{
		"valid":   benchText(`{"user_name": "Ann Lee", "n": 15, "status": "done", "tags": ["red", "green"]}`),
		"coerced": benchText(`{"userName": "Ann Lee", "n": "15", "status": "Done", "tags": "red"}`),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if fit := s.Fit([]Reading{{Text: text}}, FitOptions{}); fit.Value == nil {
					b.Fatal(fit.Outcome, fit.Violations)
				}
			}
		})
	}
	text := benchText(`{"user_name": "Ann Lee", "n": 15, "status": "done", "tags": ["red", "green"]}`)
	b.Run("check", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if !jsonrepair.IsValid(text) {
				b.Fatal("not valid")
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		library := libraryFor(b, benchSchema)
		for b.Loop() {
			if !libraryValid(b, library, string(text)) {
				b.Fatal("not valid")
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustParse(b, benchSchema)
	}
}
