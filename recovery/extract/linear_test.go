package extract

import (
	"fmt"
	"testing"
)

// work counts the bytes that are looked at to decide something, beside those that
// are taken in order.
func work(text []byte) map[string]int {
	e := newEngine(Options{Unopened: -1})
	e.b, e.eof = text, true
	e.run()
	f := finder{text: text, max: 1 << 30, starts: 32, depth: maxTracked}
	f.area(0, len(text), InProse)
	g := finder{text: text, max: 1 << 30, starts: 32, depth: maxTracked}
	g.area(0, len(text), InFence)
	return map[string]int{"Segments": e.reads, "Candidates": f.look.reads, "Candidates in a fence": g.look.reads}
}

func TestLinear(t *testing.T) {
	sizes := []int{32 << 10, 256 << 10}
	if testing.Short() {
		sizes = sizes[:1]
	}
	// What is looked at for each byte: at most maxEvidence or maxGap in every way.
	const most = maxEvidence
	for name, make := range hostile {
		for _, n := range sizes {
			for what, reads := range work([]byte(make(n))) {
				if reads > most*n {
					t.Errorf("%s of %s: %d bytes are looked at for %d", what, name, reads, n)
				}
			}
		}
	}
}

func TestMemory(t *testing.T) {
	for name, make := range hostile {
		s := NewScanner(Options{})
		text := []byte(make(64 << 10))
		for i := 0; i < len(text); i += 512 {
			s.Write(text[i:min(i+512, len(text))])
		}
		if n := cap(s.e.b) + cap(s.e.runs)*64 + cap(s.e.prose.json.stack) + cap(s.e.fence.json.stack); n > 16*Hold+4*maxTracked {
			t.Errorf("%s: a scanner keeps %d bytes", name, n)
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, make := range hostile {
		text := []byte(make(256 << 10))
		for what, f := range map[string]func(){
			"segments":   func() { Segments(text, Options{}) },
			"candidates": func() { Candidates(text, Options{}) },
			"yaml":       func() { ReadYAML(text, Options{}) },
			"xml":        func() { ReadXML(text, Options{}) },
		} {
			b.Run(fmt.Sprintf("%s/%s", name, what), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					f()
				}
			})
		}
	}
}
