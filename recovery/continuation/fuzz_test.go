package continuation

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

func FuzzMachine(f *testing.F) {
	for _, text := range append(append([]string{}, machineCases...), whole...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { compareMachine(t, text) })
}

// FuzzJoin plans and joins whatever comes. The text is never changed, a joiner comes
// to what Join does, and what was strict JSON stays so.
func FuzzJoin(f *testing.F) {
	for i, tt := range joins {
		f.Add([]byte(tt.text), []byte(tt.answer), uint8(i), uint64(i))
	}
	f.Add([]byte("{\"a\":\"\\ud83d\\ude00\\u00"), []byte("e9\"}"), uint8(1), uint64(1))
	f.Add([]byte("0"), []byte("\f"), uint8(';'), uint64(59))
	f.Add([]byte("<think>x</think>```\n\xff"), []byte("<think>"), uint8(9), uint64(2))
	f.Fuzz(func(t *testing.T, text, answer []byte, how uint8, seed uint64) {
		o := Options{
			Mode: []Mode{Prefill, Instruct, Exact}[how%3], Form: []Form{Auto, Text, JSON}[how/3%3],
			AllowToolCall: how&64 != 0, MinOverlap: int(how / 16 % 4 * 4), Hold: int(how / 128 * 32), MaxCut: int(how / 64 % 2 * 16),
		}
		before := bytes.Clone(text)
		got := Detect(text, DetectOptions{FinishReason: "length", Form: o.Form})
		for _, open := range got.Open {
			if open.Offset < 0 || open.Offset > len(text) {
				t.Fatalf("%q: %+v", text, open)
			}
		}
		s, err := Plan(text, o)
		if err != nil {
			if !errors.As(err, new(*SeamError)) {
				t.Fatalf("%v is no SeamError", err)
			}
			return
		}
		checkSeam(t, text, s)
		s.Instruction()
		compareWithPieces(t, s, answer, rand.New(rand.NewPCG(seed, seed)))
		j, err := Join(s, answer)
		if !bytes.Equal(text, before) {
			t.Fatalf("%q became %q", before, text)
		}
		if err != nil {
			return
		}
		if len(bytes.Trim(j.Text, " \t\r\n")) == 0 || j.Skipped+j.Overlap+len(j.Text)+j.Dropped != len(answer) {
			t.Fatalf("%q and %q: %+v", text, answer, j)
		}
		if s.isJSON() && s.Mode != Exact {
			m := s.shape.m.clone()
			if n := m.run(j.Text); n < len(j.Text) && m.end == 0 && (!j.Malformed || n < nearSeam) {
				t.Fatalf("%q and %q: joined %q, which breaks the JSON", text, answer, j.Text)
			}
		}
	})
}

// FuzzRun has an upstream say anything.
func FuzzRun(f *testing.F) {
	for _, tt := range joins {
		f.Add([]byte(tt.text), []byte(tt.answer), []byte(tt.text), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text, first, second []byte, n uint8) {
		r := runAny(t, text, int(n%8), first, second)
		if !bytes.HasPrefix(r.Text, text) || len(r.Text) != len(text)+r.Joined || r.Complete == (r.Err != nil) {
			t.Fatalf("%q: %+v", text, r)
		}
	})
}
