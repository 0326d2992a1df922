package loop

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// smallestPeriod is found by trying.
func smallestPeriod(s []byte) int {
	for p := 1; p < len(s); p++ {
		if bytes.Equal(s[p:], s[:len(s)-p]) {
			return p
		}
	}
	return len(s)
}

func TestSuffixPeriods(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 3000 / fewer {
		s := randomRuns(rng, 1+rng.IntN(120), 1+rng.IntN(3))
		want := map[int]int{}
		for l := 1; l <= len(s); l++ {
			if p := smallestPeriod(s[len(s)-l:]); 2*l >= 7*p {
				want[p] = l
			}
		}
		got := map[int]int{}
		work := suffixPeriods(s, make([]int32, len(s)), func(p, l int) bool {
			got[p] = l
			return false
		})
		if len(want)+len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %v, want %v", s, got, want)
		}
		if work > 2*len(s) {
			t.Fatalf("%q: %d comparisons", s, work)
		}
	}
}

// randomRuns returns n bytes of few letters, much of it repeated.
func randomRuns(rng *rand.Rand, n, letters int) []byte {
	var s []byte
	for len(s) < n {
		switch {
		case len(s) > 0 && rng.IntN(4) == 0:
			p := 1 + rng.IntN(min(len(s), 20))
			for range rng.IntN(60) {
				s = append(s, s[len(s)-p])
			}
		default:
			s = append(s, "ab. "[rng.IntN(letters)])
		}
	}
	return s[:n]
}

// TestComplete: a run that passes the highest limit is found with its true period,
// whatever it consists of and whatever was before.
func TestComplete(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	for i := range 200 / fewer {
		letters := "ab 01\nüß|,"[:2+rng.IntN(8)]
		random := func(n int) []byte {
			s := make([]byte, n)
			for i := range s {
				s[i] = letters[rng.IntN(len(letters))]
			}
			return s
		}
		unit := random(1 + rng.IntN(1<<rng.IntN(11)))
		before := random(rng.IntN(30_000))
		if i%2 == 0 {
			before = randomRuns(rng, 1+len(before), 4)
		}
		text := append(before, bytes.Repeat(unit, 48_000/len(unit)+1)...)
		l := Find(text, Options{})
		if l == nil || l.Kind == Templated {
			t.Fatalf("no loop of %q behind %d bytes", unit, len(before))
		}
		checkLoop(t, text, l)
		if !l.Broken && l.Period != smallestPeriod(bytes.Repeat(unit, 2)) {
			t.Fatalf("period %d of %q", l.Period, unit)
		}
	}
}

// TestPieces: it does not matter how the text is split, and Write tells of a loop as
// soon as Find would of the text so far.
func TestPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for _, c := range loops {
		text := []byte(c.before + strings.Repeat(c.unit, min(c.copies, 20_000/len(c.unit)+1)) + "And then something else.")
		checkPieces(t, text, Options{}, rng)
	}
	for _, text := range clean {
		checkPieces(t, []byte(text), Options{ToolArguments: true, ToolBound: 3000}, rng)
	}
}

func checkPieces(t *testing.T, text []byte, o Options, rng *rand.Rand) *Loop {
	t.Helper()
	want := Find(text, o)
	d := New(o)
	rest := text
	for len(rest) > 0 {
		n := 1 + rng.IntN(min(len(rest), 200))
		d.Write(rest[:n])
		rest = rest[n:]
	}
	if got := d.Close(); !reflect.DeepEqual(got, want) {
		t.Fatalf("in pieces %+v, whole %+v", got, want)
	}
	return want
}

func FuzzDetector(f *testing.F) {
	for _, c := range loops {
		f.Add([]byte(c.before+strings.Repeat(c.unit, min(c.copies, 4000/len(c.unit)+1))), uint8(0))
	}
	for _, text := range clean {
		f.Add([]byte(text[:min(len(text), 4000)]), uint8(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, options uint8) {
		if len(data) > 1000 && len(data) < 8000 {
			data = bytes.Repeat(data, 6)
		}
		o := Options{Asked: options&1 != 0, ToolArguments: options&2 != 0, MaxPeriod: int(options >> 4)}
		if options&4 != 0 {
			o.Context = Reasoning
		}
		l := checkPieces(t, data, o, rand.New(rand.NewPCG(uint64(len(data)), 1)))
		if l != nil {
			checkLoop(t, data, l)
			if o.ToolArguments && l.Cut != -1 {
				t.Fatal("cut tool arguments")
			}
		}
	})
}

// hostile are texts that make for many comparisons.
var hostile = map[string]func(n int) []byte{
	"zeros":  func(n int) []byte { return bytes.Repeat([]byte("0"), n) },
	"matrix": func(n int) []byte { return bytes.Repeat([]byte(strings.Repeat("0, ", 100)+"\n"), n/301) },
	"two units": func(n int) []byte {
		return bytes.Repeat([]byte(strings.Repeat("1, ", 60)+strings.Repeat("2,3, ", 50)), n/430)
	},
	"two letters": func(n int) []byte {
		return randomRuns(rand.New(rand.NewPCG(1, 1)), n, 2)
	},
	"Fibonacci": func(n int) []byte {
		a, b := []byte("1"), []byte("10")
		for len(b) < n {
			a, b = b, append(append([]byte(nil), b...), a...)
		}
		return b[:n]
	},
	"almost periodic": func(n int) []byte {
		s := bytes.Repeat([]byte(strings.Repeat("0 ", 50)), n/100)
		for i := 0; i < len(s); i += 10_000 {
			s[i] = '1'
		}
		return s
	},
	"nested": func(n int) []byte {
		s := []byte("0")
		for i := byte(1); len(s) < n; i++ {
			s = append(bytes.Repeat(s, 3), '0'+i)
		}
		return s[:n]
	},
}

// TestWork: what a byte costs is bounded on average, however long the text is, and so
// is what a detector keeps.
func TestWork(t *testing.T) {
	for name, text := range hostile {
		for _, n := range []int{100_000 / fewer, 400_000 / fewer} {
			d := New(Options{Asked: true})
			s := text(n)
			d.Write(s)
			if perByte := d.work / len(s); perByte > 200 {
				t.Errorf("%s: %d comparisons a byte of %d", name, perByte, n)
			}
			if kept := cap(d.tail) + 4*(cap(d.border)+cap(d.seen)+cap(d.words.seen)); kept > 800<<10 {
				t.Errorf("%s: %d bytes kept", name, kept)
			}
		}
	}
}

// TestCost: a byte costs far less than a hundredth of the millisecond that a small model
// takes to write it.
func TestCost(t *testing.T) {
	if testing.Short() || fewer > 1 {
		t.Skip("takes time")
	}
	for name, text := range hostile {
		s := text(200_000)
		begin := time.Now()
		Find(s, Options{Asked: true})
		if perByte := time.Since(begin) / time.Duration(len(s)); perByte > 10*time.Microsecond {
			t.Errorf("%s: %v a byte", name, perByte)
		}
	}
}

func BenchmarkDetector(b *testing.B) {
	texts := map[string][]byte{"prose": []byte(block(2000)), "code": []byte(clean["minified JS"])}
	for name, text := range hostile {
		texts[name] = text(200_000)
	}
	for name, s := range texts {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Find(s, Options{Asked: true})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(s)), "ns/byte")
		})
	}
}
