package jsonrepair

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// FuzzRepair checks what holds for every text: see checkWhole, checkFast and
// checkPieces.
func FuzzRepair(f *testing.F) {
	for _, make := range hostile {
		f.Add([]byte(make(300)))
	}
	for _, make := range broken {
		f.Add([]byte(make(300)))
	}
	for _, s := range []string{`{'a': True, "b" None,, c: [1 2 {"d":"x" y"}`, "```json\n{\"a\": 1}\n```", "<think>{}</think>{\"a\":\"\xc3", "a: 1\nb: 2\n", `{"a":"C:\Users\new","b":"$\frac{1}{2}$"}{"c":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		rng := rand.New(rand.NewPCG(uint64(len(data)), 4))
		checkWhole(t, data, Options{})
		checkWhole(t, data, Options{hold: 1 + rng.IntN(8)})
		checkWhole(t, data, Options{LaTeX: true, Paths: true, Ended: true})
		checkFast(t, data)
		checkPieces(t, data, rng)
	})
}

// TestRepairJSONTestSuite: what must be accepted comes back as it is, and all else
// is repaired or fails within limits.
func TestRepairJSONTestSuite(t *testing.T) {
	for _, c := range readSuite(t) {
		r := Repair(c.B64, Options{})
		if c.Name[0] == 'y' && (r.Outcome != Valid || !bytes.Equal(r.Text, c.B64)) {
			t.Errorf("%s: %v %q", c.Name, r.Outcome, r.Text)
		}
		if len(c.B64) < 10_000 {
			checkWhole(t, c.B64, Options{})
			checkPieces(t, c.B64, rand.New(rand.NewPCG(1, 5)))
		}
	}
}
