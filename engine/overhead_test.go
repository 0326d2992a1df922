package engine

import (
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// instant is a decoder that takes no time, so that what remains is the
// engine's own part of a step.
type instant struct{ logits []float32 }

func (instant) decode([]entry) error         { return nil }
func (d instant) row(int) ([]float32, error) { return d.logits, nil }
func (instant) truncate(int, int) bool       { return true }
func (instant) copy(int, int)                {}
func (instant) close()                       {}

func BenchmarkStep(b *testing.B) {
	const size = 49152
	row := make([]float32, size)
	row[size/2] = 1
	lim := limits{context: 1 << 20, cells: 1 << 20, sequences: 1, batch: 48, outputs: 33, vocab: size}
	e := newEngine(instant{row}, backend.Info{}, lim, vocab.NewMask(size))
	defer e.Close()
	b.ReportAllocs()
	s, err := e.Generate(b.Context(), &backend.Request{Prompt: []vocab.ID{1, 2, 3}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if _, err := s.Next(); err != nil {
			b.Fatal(err)
		}
	}
}
