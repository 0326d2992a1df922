package extract

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// checkAll checks every function of the package on a text: what they promise holds,
// and nothing panics.
func checkAll(t testing.TB, text []byte, o Options) {
	t.Helper()
	segments := Segments(text, o)
	checkSegments(t, text, segments)
	if n := len(segments); n > 0 {
		if closer := segments[n-1].Closer(text); closer != "" {
			closed := append(bytes.Clone(text), closer...)
			again := Segments(closed, o)
			if len(again) != n || !again[n-1].Closed || again[n-1].BodyStart < segments[n-1].BodyStart {
				t.Fatalf("%q: %q does not close the fence: %s", text, closer, show(string(closed), again))
			}
		}
	}
	found, _ := Candidates(text, o)
	checkCandidates(t, text, found)
	for _, c := range found {
		if got := jsonrepair.Apply(text, slices.Values(Only(text, c, o))); !bytes.Equal(got, c.Text) {
			t.Fatalf("%q: the edits give %q, not %q", text, got, c.Text)
		}
	}
	if len(Rank(found, nil)) != len(found) {
		t.Fatalf("%q: Rank loses candidates", text)
	}
	answer, edits := Answer(text, o)
	if got := jsonrepair.Apply(text, slices.Values(edits)); !bytes.Equal(got, answer) {
		t.Fatalf("%q: the edits give %q, not %q", text, got, answer)
	}
	c, err := ReadYAML(text, o)
	checkConverted(t, text, c, err)
	c, err = ReadXML(text, o)
	checkConverted(t, text, c, err)
}

// checkSegments checks that segments are the text, in order.
func checkSegments(t testing.TB, text []byte, segments []Segment) {
	t.Helper()
	at := 0
	for i, s := range segments {
		if s.Start != at || s.BodyStart < s.Start || s.BodyEnd < s.BodyStart || s.End < s.BodyEnd || s.End == s.Start && s.Kind != Reasoning {
			t.Fatalf("%q: segment %d is %+v, at %d", text, i, s, at)
		}
		if i > 0 && s.Kind == Prose && segments[i-1].Kind == Prose {
			t.Fatalf("%q: segments %d and %d are both prose", text, i-1, i)
		}
		s.Body(text)
		at = s.End
	}
	if at != len(text) {
		t.Fatalf("%q: segments end at %d", text, at)
	}
}

func TestRandom(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 3_000
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range n {
		checkAll(t, hard(r, r.IntN(24)), scanOptions[r.IntN(len(scanOptions))])
	}
	for _, list := range [][]string{caseInputs(segmentCases), caseInputs(candidateCases)} {
		for _, text := range list {
			for k := range len(text) + 1 {
				checkAll(t, []byte(text[:k]), Options{})
			}
		}
	}
}

func caseInputs(cases []struct{ name, in, want string }) []string {
	var in []string
	for _, c := range cases {
		in = append(in, c.in)
	}
	return in
}

// randomJSON writes a valid document whose strings hold what models write.
func randomJSON(r *rand.Rand, b *strings.Builder, depth int) {
	space := func() { b.WriteString([]string{"", "", " ", "\n", "\n  "}[r.IntN(5)]) }
	text := func() {
		b.WriteByte('"')
		for range r.IntN(6) {
			b.WriteString([]string{"word", " ", "<think>", "</think>", "Hm. <think>x</think>", "```", "```json", `\n`, `\"`, `\\`, "{", "}", "[", "]", ":", ",", "'", "“", "//", "# ", "<|channel|>analysis<|message|>", "◁think▷", "[THINK]", "é", "&quot;", "： "}[r.IntN(26)])
		}
		b.WriteByte('"')
	}
	space()
	switch n := r.IntN(6); {
	case n < 2 && depth < 4:
		b.WriteByte('{')
		for i := range r.IntN(4) {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			text()
			space()
			b.WriteByte(':')
			randomJSON(r, b, depth+1)
		}
		space()
		b.WriteByte('}')
	case n < 4 && depth < 4:
		b.WriteByte('[')
		for i := range r.IntN(4) {
			if i > 0 {
				b.WriteByte(',')
			}
			randomJSON(r, b, depth+1)
		}
		space()
		b.WriteByte(']')
	case n == 4:
		text()
	default:
		b.WriteString([]string{"1", "-2.5e3", "true", "null"}[r.IntN(4)])
	}
	space()
}

// TestValidJSON checks that in valid JSON there is nothing else: no reasoning, no
// fence, one candidate; alone, and behind prose, and in a fence.
func TestValidJSON(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 3_000
	}
	r := rand.New(rand.NewPCG(7, 8))
	for range n {
		var b strings.Builder
		randomJSON(r, &b, 0)
		text := []byte(b.String())
		trimmed := bytes.TrimSpace(text)
		if !jsonrepair.IsValid(text) {
			t.Fatalf("%q is not valid", text)
		}
		if s := Segments(text, Options{}); len(s) != 1 || s[0].Kind != Prose {
			t.Fatalf("%q\nhas segments %+v", text, s)
		}
		if answer, edits := Answer(text, Options{}); len(edits) > 0 || !bytes.Equal(answer, text) {
			t.Fatalf("%q\nhas edits %+v", text, edits)
		}
		found, err := Candidates(text, Options{})
		if err != nil || len(found) != 1 || !bytes.Equal(found[0].Text, trimmed) || !found[0].Complete {
			t.Fatalf("%q\nhas candidates %s (%v)", text, showCandidates(found), err)
		}
		fenced := "So:\n```json\n" + b.String() + "\n```\nOK."
		found, err = Candidates([]byte(fenced), Options{})
		if err != nil || len(found) != 1 || !bytes.Equal(found[0].Text, trimmed) || found[0].Where != InFence {
			t.Fatalf("%q\nhas candidates %s (%v)", fenced, showCandidates(found), err)
		}
		if trimmed[0] != '{' || bytes.IndexByte(trimmed, ':') < 0 || bytes.HasPrefix(trimmed, []byte("{}")) {
			continue
		}
		prose := "Here is [1] the \"answer:\n" + string(trimmed) + "\nIt's {done}."
		found, err = Candidates([]byte(prose), Options{})
		if err != nil || len(found) != 1 || !bytes.Equal(found[0].Text, trimmed) {
			t.Fatalf("%q\nhas candidates %s (%v)", prose, showCandidates(found), err)
		}
	}
}

// TestCutJSON checks that a document that is cut anywhere is one candidate up to
// its end, as soon as its first key is there.
func TestCutJSON(t *testing.T) {
	const doc = "{\"title\": \"A [b] {c}\", \"list\": [1, {\"x\": \"y\\\"\"}, [\"z\"]], \"n\": {\"m\": null}}"
	for k := 9; k < len(doc); k++ {
		for _, before := range []string{"", "Here it is:\n", "<think>{\"title\": 1}</think>", "Here: "} {
			text := before + doc[:k]
			found, err := Candidates([]byte(text), Options{})
			if err != nil || len(found) != 1 || found[0].End != len(strings.TrimRight(text, " ")) || found[0].Start != len(before) || found[0].Closed {
				t.Errorf("%q: %s (%v)", text, showCandidates(found), err)
			}
		}
	}
}
