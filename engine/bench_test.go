//go:build llama

package engine

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// BenchmarkDecode compares the speed of generation through the engine with
// that of a bare loop over the library, both greedy, one request, from the
// first token to the last. Runs of the two alternate, so that other load on
// the machine meets both; "ratio" is the median over the pairs of the
// engine's speed by the bare one.
func BenchmarkDecode(b *testing.B) {
	o := nativeOptions(b)
	o.Threads = max(1, runtime.NumCPU()-1) // leaves a core to the readers, lest threads spin
	e, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	loop := newBare(b, o)
	defer loop.free()
	prompt := tokenize(b, "Once upon a time, in a land far away,")
	const steps = 16
	bare := func() float64 {
		var first time.Time
		n := loop.run(prompt, steps, func(vocab.ID) {
			if first.IsZero() {
				first = time.Now()
			}
		})
		return float64(len(n)-1) / time.Since(first).Seconds()
	}
	through := func() float64 {
		s, err := e.Generate(b.Context(), &backend.Request{Prompt: prompt, MaxTokens: steps})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Next(); err != nil {
			b.Fatal(err)
		}
		first := time.Now()
		toks, err := drain(s)
		if err != nil {
			b.Fatal(err)
		}
		return float64(len(toks)) / time.Since(first).Seconds()
	}
	bare()
	through()
	var ratios, speeds []float64
	for b.Loop() {
		// Twice, in turned order: what the first of a pair suffers from cancels.
		x1, y1 := bare(), through()
		y2, x2 := through(), bare()
		ratios = append(ratios, y1/x1, y2/x2)
		speeds = append(speeds, y1, y2)
	}
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(speeds), "tokens/s")
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
