//go:build llama

// Package ttfb compares, in one run and on the same prompts, the time to the
// first new byte of healed and unhealed continuations.
package ttfb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/engine"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
)

// source is the text that prompts are cut from.
const source = "../../boundary/boundary.go"

// BenchmarkTimeToFirstByte cuts prompts of about 100 to 1,000 tokens in the
// middle of words. Each is sent in every mode, in turning order, behind a line
// of its own, so that no request finds another's prefix in the cache. The
// ratios are medians over pairs, to the unhealed time of the same prompt.
func BenchmarkTimeToFirstByte(b *testing.B) {
	lib, path := os.Getenv("UNFRAY_TEST_LIB"), os.Getenv("UNFRAY_TEST_MODEL")
	if lib == "" || path == "" {
		b.Skip("UNFRAY_TEST_LIB and UNFRAY_TEST_MODEL are not set: make bench sets them")
	}
	tok, err := tokenizer.OpenGGUF(path)
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.Open(engine.Options{ModelPath: path, LibraryPath: lib, ContextTokens: 2048, Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	m, err := unfray.NewModel(e, tok)
	if err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		b.Fatal(err)
	}
	modes := []heal.Mode{heal.Off, heal.Last, heal.Stable, heal.Exact}
	serial := 0
	for _, size := range []int{300, 1200, 3000} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			ratios := map[heal.Mode][]float64{}
			tokens := 0
			for i := 0; b.Loop(); i++ {
				at := (i * 577) % (len(text) - size)
				prompt := strings.TrimRight(string(text[at:at+size]), " \t\n")
				took := map[heal.Mode]time.Duration{}
				for k := range modes {
					mode := modes[(i+k)%len(modes)]
					serial++
					took[mode], tokens = firstByte(b, m, fmt.Sprintf("%06d\n%s", serial*7919%1_000_000, prompt), mode)
				}
				for _, mode := range modes[1:] {
					ratios[mode] = append(ratios[mode], float64(took[mode])/float64(took[heal.Off]))
				}
			}
			for _, mode := range modes[1:] {
				b.ReportMetric(median(ratios[mode]), string(mode)+"/off")
			}
			b.ReportMetric(float64(tokens), "prompt-tokens")
		})
	}
}

// firstByte returns the time until the first chunk, and the prompt's tokens.
func firstByte(b *testing.B, m *unfray.Model, prompt string, mode heal.Mode) (time.Duration, int) {
	b.Helper()
	start := time.Now()
	s, err := m.Generate(b.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: []byte(prompt)}, Heal: mode, MaxTokens: 2})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Next(); err != nil && !errors.Is(err, io.EOF) {
		b.Fatal(err)
	}
	took := time.Since(start)
	for {
		if _, err := s.Next(); errors.Is(err, io.EOF) {
			return took, s.Result().Usage.PromptTokens
		} else if err != nil {
			b.Fatal(err)
		}
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
