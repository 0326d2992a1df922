package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hostile is text that must not get out of its element.
const hostile = "<script>alert(1)</script>&\"'\x00\xff\u202e\ufffe"

// elements counts the elements of a document; it fails if that is not well-formed.
func elements(t *testing.T, doc []byte) map[string]int {
	t.Helper()
	n := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(doc)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if e, ok := tok.(xml.StartElement); ok {
			n[e.Name.Local]++
		}
	}
}

func draw(t *testing.T, f Figure) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.SVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLines(t *testing.T) {
	l := &Lines{
		Title: hostile, XName: "capacity, tokens", LogX: true, Share: true,
		Series: []Series{
			{Name: hostile, X: []float64{1, 10, 100, 1000}, Y: []float64{0, .25, math.NaN(), 1}},
			{Name: "lru", X: []float64{1, 1000}, Y: []float64{0.5, 0.5}},
		},
	}
	doc := draw(t, l)
	if n := elements(t, doc); n["path"] != 2 || n["circle"] != 5 || n["script"] != 0 {
		t.Errorf("%v", n)
	}
	// A tenth of the way on a logarithmic axis to 1000 is a third of it; a gap begins a new line.
	ys := regexp.MustCompile(`d="(M[^"]*)"`).FindStringSubmatch(string(doc))
	if len(ys) != 2 || ys[1] != "M60.0 248.0L261.3 188.0M664.0 8.0" {
		t.Errorf("path %q", ys)
	}
}

func TestLinesOfNothing(t *testing.T) {
	for _, l := range []*Lines{
		{},
		{Series: []Series{{Name: "a"}}},
		{Series: []Series{{Name: "a", X: []float64{3}, Y: []float64{2}}}},
		{LogX: true, Series: []Series{{Name: "a", X: []float64{0, 1}, Y: []float64{2, math.Inf(1)}}}},
	} {
		doc := draw(t, l)
		elements(t, doc)
		if bytes.Contains(doc, []byte("NaN")) || bytes.Contains(doc, []byte("Inf")) {
			t.Errorf("%+v gives\n%s", l, doc)
		}
	}
}

func TestBars(t *testing.T) {
	c := &Bars{
		Title: "loss", Labels: []string{"a", hostile, "empty"}, Unit: "tokens",
		Parts: []Part{{"hit", []float64{30, 5, 0}}, {"lost", []float64{10, 0, 0}}},
	}
	doc := draw(t, c)
	// Three parts with a length, two in the legend, the ground.
	if n := elements(t, doc); n["rect"] != 6 {
		t.Errorf("%v in\n%s", n, doc)
	}
	if !bytes.Contains(doc, []byte(`width="340.5"`)) || !bytes.Contains(doc, []byte("lost: 10 tokens (25.0 %)")) {
		t.Errorf("three quarters of the room are not in\n%s", doc)
	}
}

func TestPage(t *testing.T) {
	p := &Page{
		Title: hostile, Lead: hostile,
		Sections: []Section{
			{Title: hostile, Text: hostile, Code: hostile, Figures: []Figure{&Lines{Title: hostile}}},
			{Head: []string{"name", hostile}, Rows: [][]string{{hostile, "1"}}, Left: 1},
		},
	}
	var b bytes.Buffer
	if err := p.HTML(&b); err != nil {
		t.Fatal(err)
	}
	doc := b.String()
	if strings.Contains(doc, "<script") {
		t.Errorf("text became an element:\n%s", doc)
	}
	// Only names of XML's vocabularies look like addresses.
	rest := strings.ReplaceAll(doc, `xmlns="http://www.w3.org/2000/svg"`, "")
	if loads := regexp.MustCompile(`(?i)https?:|src=|href=|url\(|@import`).FindString(rest); loads != "" {
		t.Errorf("the page may load something: %q", loads)
	}
}

func TestCompact(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 0.12345: "0.123", 99.5: "99.5", 950: "950", 9999: "9999", 12500: "12.5k", 3.14e6: "3.14M", 1e9: "1G", 2e12: "2T", 999_999.9: "1M", 1e6 - 1e-9: "1M", 999_499: "999k", 9999.7: "10k", 999.7: "1000", 1e15: "1e+15", -12500: "-12.5k"} {
		if got := Compact(f); got != want {
			t.Errorf("Compact(%v) = %q, not %q", f, got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		low, high float64
		log       bool
		want      string
	}{
		{0, 1, false, "0 0.2 0.4 0.6 0.8 1"},
		{0, 60.3, false, "0 20 40 60"},
		{0, 0.056, false, "0 0.01 0.02 0.03 0.04 0.05"},
		{18_800, 70_700, false, "20k 30k 40k 50k 60k 70k"},
		{5_000, 1e6, true, "5000 10k 20k 50k 100k 200k 500k 1M"},
		{1e6, 1e7, true, "1M 2M 5M 10M"},
		{64, 70, true, "64 66 68 70"},
		{1, 1e9, true, "1 10 100 1000 10k 100k 1M 10M 100M 1G"},
		{1, 1e18, true, "1 100 10k 1M 100M 10G 1T 100T 1e+16 1e+18"},
	} {
		f := ticks
		if tt.log {
			f = logTicks
		}
		var got []string
		for _, x := range f(tt.low, tt.high) {
			got = append(got, Compact(x))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%g to %g: %v, want %s", tt.low, tt.high, got, tt.want)
		}
	}
}

// TestEqualLines: of three equal lines and one that shares a part with them each can be seen.
func TestEqualLines(t *testing.T) {
	x := []float64{1, 2, 3}
	l := &Lines{Series: []Series{
		{Name: "a", X: x, Y: []float64{1, 2, 3}},
		{Name: "b", X: x, Y: []float64{1, 2, 3}},
		{Name: "c", X: x, Y: []float64{3, 2, 1}},
		{Name: "d", X: x, Y: []float64{9, 2, 3.01}},
	}}
	unit := func(f float64) float64 { return 100 * f }
	if got := l.levels(unit, unit); !slices.Equal(got, []int{0, 1, 0, 2}) {
		t.Errorf("levels %v", got)
	}
	doc := string(draw(t, l))
	if n := strings.Count(doc, "stroke-dasharray"); n != 2 {
		t.Errorf("%d dashed lines in\n%s", n, doc)
	}
}

func TestSeriesSort(t *testing.T) {
	s := Series{X: []float64{3, 1, 2}, Y: []float64{30, 10, 20}}
	s.Sort()
	if !slices.Equal(s.X, []float64{1, 2, 3}) || !slices.Equal(s.Y, []float64{10, 20, 30}) {
		t.Errorf("%v", s)
	}
}
