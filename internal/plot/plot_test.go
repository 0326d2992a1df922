package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
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
	if !bytes.Contains(doc, []byte(`width="363.0"`)) || !bytes.Contains(doc, []byte("lost: 10 tokens (25.0 %)")) {
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
	for f, want := range map[float64]string{0: "0", 0.12345: "0.123", 99.5: "99.5", 950: "950", 9999: "9999", 12500: "12.5k", 3.14e6: "3.14M", 1e9: "1G", 2e12: "2T"} {
		if got := compact(f); got != want {
			t.Errorf("compact(%v) = %q, not %q", f, got, want)
		}
	}
}
