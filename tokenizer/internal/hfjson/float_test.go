package hfjson

import (
	_ "embed"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/unfray/unfray/tokenizer/internal/jsonscan"
)

//go:embed testdata/floats.tsv
var recordedFloats string

// TestFloat: numbers become what the reference makes of them, which for one in
// five is not the nearest float64 (testdata/floats.py).
func TestFloat(t *testing.T) {
	other := 0
	for line := range strings.Lines(recordedFloats) {
		text, hex, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		want, err := strconv.ParseFloat(hex, 64)
		if err != nil {
			t.Fatal(err)
		}
		s, err := jsonscan.New([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&scanner{*s}).float()
		if err != nil || math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%s: %x, %v; want %x", text, got, err, want)
		}
		if nearest, _ := strconv.ParseFloat(text, 64); nearest != want {
			other++
		}
	}
	if other == 0 {
		t.Error("no recorded number differs from the nearest: the record is of another build of the reference")
	}
}
