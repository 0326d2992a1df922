package split

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// byNext gives the ends one pretoken at a time.
func byNext(s Splitter, text []byte) []int {
	var out []int
	for from := 0; from < len(text); {
		from, _ = s.Next(text, from)
		out = append(out, from)
	}
	return out
}

func checkScan(t *testing.T, s Splitter, text []byte) {
	t.Helper()
	want := byNext(s, text)
	for _, size := range []int{1, 65, 100, 4096} {
		var got []int
		ends := make([]int, size)
		for from := 0; from < len(text); {
			n := s.Scan(ends, text, from)
			got = append(got, ends[:n]...)
			from = ends[n-1]
		}
		if slices.Equal(got, want) {
			continue
		}
		i := 0
		for i < len(got) && i < len(want) && got[i] == want[i] {
			i++
		}
		at := 0
		if i > 0 {
			at = want[i-1]
		}
		t.Fatalf("%s: the pretoken at %q ends at %d by Scan with %d ends, at %d by Next",
			s, text[at:min(len(text), at+70)], got[i]-at, size, want[i]-at)
	}
}

// dense are the parts of texts that windows can tell, and some that they cannot.
var dense = strings.Split("a|b|s|t|re|ll|E|F|fooBar|HTTP|the|0|12|345678|'|/|//|.|,|(|)|\x00|~| | |  |    |\t|\t\t|\v|\n|\n|\r\n|\r|é|中|\u00a0|\u0301|ſ|\xff", "|")

func TestScanIsNext(t *testing.T) {
	for _, k := range knownForTests {
		s := k.in(family{unicode160(), foldFull})
		checkRandomScans(t, s, 2000)
		checkScan(t, s, goSource(t, 1<<18))
		checkScan(t, s, []byte(strings.Repeat(languages, 3)))
	}
	for name := range llamaCpp {
		s, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		checkRandomScans(t, s, 100)
	}
}

func checkRandomScans(t *testing.T, s Splitter, n int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 8))
	for range n {
		parts := dense[:len(dense)-rng.IntN(7)]
		parts = parts[rng.IntN(len(parts)-3):] // few kinds make long runs
		var b strings.Builder
		for size := rng.IntN(300); b.Len() < size; {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		checkScan(t, s, []byte(b.String()))
	}
}

func FuzzScan(f *testing.F) {
	f.Add("x\n  \n\t'll 123456 //\n/ fooBar's \u00a0é")
	var splitters []Splitter
	for _, k := range knownForTests {
		splitters = append(splitters, k.in(family{unicode160(), foldFull}))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range splitters {
			checkScan(t, s, []byte(text))
		}
	})
}
