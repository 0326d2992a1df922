package eval_test

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/internal/eval"
)

func TestRead(t *testing.T) {
	tok := smallToy(t, rand.New(rand.NewPCG(1, 2)))
	const file = `{"id":"a","prefix":"ab","middle":"ra","suffix":"b"}

{"id":2,"prefix":"b a","next":"bb","suffix":"ignored"}
{"prompt":"aé","truth":"ab"}
{"id":"short","prompt":"a","truth":"b"}
{"id":"empty","prompt":"","truth":"bbb"}
`
	var z bytes.Buffer
	zw := gzip.NewWriter(&z)
	io.WriteString(zw, file)
	zw.Close()
	for _, in := range []string{file, z.String()} {
		cuts, _, err := eval.Read(strings.NewReader(in), tok, eval.Options{TruthRunes: 2, PromptBytes: 2})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range cuts {
			got = append(got, c.ID+"|"+c.Prompt+"|"+c.Truth)
		}
		if got, want := strings.Join(got, "\n"), "a|ab|rab\n2| a|bb\nline 4|é|ab"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if cuts, _, err := eval.Read(strings.NewReader(file), tok, eval.Options{Lines: 1}); err != nil || len(cuts) != 1 {
		t.Errorf("1 line: %v, %v", cuts, err)
	}
	n := 0
	stop := errors.New("enough")
	err := eval.Each(strings.NewReader(z.String()), func(prompt, truth string) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	})
	if at := new(eval.LineError); n != 2 || !errors.Is(err, stop) || !errors.As(err, &at) {
		t.Errorf("stopped after %d: %v", n, err)
	}
}

func TestReadErrors(t *testing.T) {
	tok := smallToy(t, rand.New(rand.NewPCG(1, 2)))
	for _, in := range []string{`{"id":"a"}`, `[`, `{"prompt":"a","truth":"\ud800"}`, `{"id":{},"prompt":"a","truth":"b"}`, `{"prompt":1,"truth":"b"}`} {
		_, _, err := eval.Read(strings.NewReader("\n"+in), tok, eval.Options{})
		var line *eval.LineError
		if !errors.As(err, &line) || line.Line != 2 {
			t.Errorf("%s: %v", in, err)
		}
	}
	for _, in := range []string{`{"id":"a"}`, `{"id":"a","text":"x"}` + "\n" + `{"id":"a","text":"x"}`} {
		if _, err := eval.ReadTexts(strings.NewReader(in)); err == nil {
			t.Errorf("%s: read", in)
		}
	}
	texts, err := eval.ReadTexts(strings.NewReader(`{"id":"a","text":""}` + "\n" + `{"id":1,"bytes":"w6k="}`))
	if err != nil || texts["1"] != "é" || len(texts) != 2 {
		t.Errorf("%v, %v", texts, err)
	}
}

func FuzzRead(f *testing.F) {
	tok := smallToy(f, rand.New(rand.NewPCG(1, 2)))
	f.Add([]byte(`{"id":"a","prefix":"ab","middle":"ra","suffix":"b"}`))
	f.Add([]byte("{\"id\":1,\"prompt\":\"é\",\"truth\":\"b\"}\n{}"))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		cuts, _, err := eval.Read(bytes.NewReader(in), tok, eval.Options{TruthRunes: 1, PromptBytes: 8})
		if err != nil {
			return
		}
		for _, c := range cuts {
			if c.Prompt == "" || len(c.Prompt) > 8 || !utf8.ValidString(c.Prompt) || c.Truth == "" {
				t.Errorf("%+v", c)
			}
		}
	})
}

// rows are three dirty cuts and a clean one; the second mode wins two and loses
// none, a peer lacks one.
func rows() []eval.Row {
	cut := func(id, truth string, dirty bool) eval.Cut {
		return eval.Cut{ID: id, Prompt: "p", Truth: truth, Dirty: dirty}
	}
	run := func(text string, bits float64, passes int, first float64) *eval.Run {
		return &eval.Run{Text: text, Bits: &bits, Passes: &passes, FirstByte: &first}
	}
	return []eval.Row{
		{Cut: cut("1", "abc", true), TruthRunes: 3, Runs: []*eval.Run{run("xyz", 9, 0, 1), run("abd", 3, 1, 2), {Text: "abc"}}},
		{Cut: cut("2", "éf", true), TruthRunes: 2, Runs: []*eval.Run{run("", 4, 0, 1), run("éfg", 2, 0, 1), nil}},
		{Cut: cut("3", "a", true), TruthRunes: 1, Runs: []*eval.Run{run("b", 1, 0, 1), run("b", 1, 0, 1.5), {Text: "b"}}},
		{Cut: cut("4", "abc", false), TruthRunes: 3, Runs: []*eval.Run{run("abc", 3, 0, 1), run("abc", 3, 0, 1), {Text: "abc"}}},
	}
}

func TestSummarize(t *testing.T) {
	s := eval.Summarize("s", []string{"off", "exact", "peer"}, []int{2, 3}, rows())
	dirty, clean := s.Strata[0], s.Strata[1]
	if dirty.N != 3 || clean.N != 1 || s.Strata[2].N != 4 {
		t.Fatalf("%+v", s.Strata)
	}
	exact := dirty.Modes[1]
	// Only two dirty truths have two characters, one has three.
	if m := exact.Match[0]; m.N != 2 || m.Mean != 1 || m.Wins != 2 || m.Losses != 0 || m.Low != 1 || m.High != 1 {
		t.Errorf("2 characters: %+v", m)
	}
	if m := exact.Match[1]; m.N != 1 || m.Mean != 0 {
		t.Errorf("3 characters: %+v", m)
	}
	if b := exact.Bits; b.Mean != 1 || exact.BitsN != 3 {
		t.Errorf("bits %+v of %d", b, exact.BitsN)
	}
	if *exact.Passes != 1.0/3 || *exact.FirstByte != 1.5 || *exact.Unchanged != 1.0/3 {
		t.Errorf("%v %v %v", *exact.Passes, *exact.FirstByte, *exact.Unchanged)
	}
	if off := dirty.Modes[0]; off.Unchanged != nil || off.Bits.Mean != 14.0/6 {
		t.Errorf("%+v", off)
	}
	if peer := dirty.Modes[2]; peer.Missing != 1 || peer.Bits != nil || peer.Passes != nil || peer.Match[0].Mean != 0.5 {
		t.Errorf("%+v", peer)
	}
	if b := s.Strata[2].Modes[1].Match[0]; b.Low > b.Mean || b.High < b.Mean {
		t.Errorf("%+v", b)
	}
}

func TestReport(t *testing.T) {
	modes := []string{"off", "exact", "p|<eer>"}
	r := &eval.Report{Model: "a<b", Modes: modes, Chars: []int{2, 3}, MaxTokens: 8,
		Sets: []eval.Set{eval.Summarize("s", modes, []int{2, 3}, rows()), eval.Summarize("none", modes, []int{2, 3}, nil)}}
	var md, svg bytes.Buffer
	if err := r.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"**s, dirty** (3 cuts)",
		"| exact | 100.0 [100.0–100.0] +2 −0 | 0.0 [0.0–0.0] +0 −0 | 33.3 % | 1.000 [",
		"| 0.33 | 1.50 |",
		`p\|<eer> has no result for 1 of the cuts`,
		"| off | – | – | – | – | – | – |",
	} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("no %q in\n%s", want, md.String())
		}
	}
	if err := r.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	bars := 0
	for d := xml.NewDecoder(bytes.NewReader(svg.Bytes())); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			bars++
		}
	}
	if want := 1 + len(modes) + 3*3*2; bars != want { // the ground, the legend, and each mode, stratum, number of characters
		t.Errorf("%d rectangles, want %d", bars, want)
	}
	var broken failingWriter
	if r.Markdown(broken) == nil || r.SVG(broken) == nil {
		t.Error("a failing writer goes unnoticed")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("full") }
