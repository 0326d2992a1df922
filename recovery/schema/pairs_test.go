package schema

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// A pairCase is a schema and an answer with the value that was meant, or an outcome
// where none can be told. Where BAML's own tests record what it answers, that is there
// too.
type pairCase struct {
	Name     string          `json:"name"`
	Schema   json.RawMessage `json:"schema"`
	In       string          `json:"in"`
	Readings []string        `json:"readings"` // each costs two more than that before
	Want     json.RawMessage `json:"want"`
	Outcome  string          `json:"outcome"` // ambiguous or fail
	BAML     json.RawMessage `json:"baml"`    // {"value": …} or "fail"
	Source   string          `json:"source"`
	Note     string          `json:"note"`
}

func readPairs(t testing.TB) []pairCase {
	t.Helper()
	data, err := os.ReadFile("testdata/pairs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var cases []pairCase
	scanner := bufio.NewScanner(bytes.NewReader(data))
	for scanner.Scan() {
		var c pairCase
		if err := json.Unmarshal(scanner.Bytes(), &c); err != nil {
			t.Fatalf("pairs.jsonl, line %d: %v", len(cases)+1, err)
		}
		cases = append(cases, c)
	}
	return cases
}

// readings are those that the answer has: its own where it is JSON, else what repairing
// it gives.
func (c pairCase) readings() []Reading {
	var list []Reading
	for i, text := range c.Readings {
		list = append(list, Reading{[]byte(text), 2 * i})
	}
	if len(list) > 0 {
		return list
	}
	r := jsonrepair.Repair([]byte(c.In), jsonrepair.Options{})
	for _, reading := range r.Readings {
		list = append(list, Reading{reading.Text, reading.Cost})
	}
	if len(list) == 0 && r.Text != nil {
		list = append(list, Reading{r.Text, r.EditCount()})
	}
	return list
}

// verdict says whether an answer is right, wrong, or refused although there was one.
// value is nil where there is no answer.
func (c pairCase) verdict(t testing.TB, value []byte, tolerant bool) string {
	switch {
	case value == nil && c.Outcome != "":
		return "right"
	case value == nil:
		return "refused"
	case c.Outcome == "" && sameValue(t, value, c.Want, tolerant):
		return "right"
	}
	return "wrong"
}

// sameValue compares values; if tolerant, a member that is null is like none.
func sameValue(t testing.TB, a, b []byte, tolerant bool) bool {
	t.Helper()
	var nodes [2]*node
	for i, text := range [][]byte{a, b} {
		n, err := readDocument(text, 0, 0)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if tolerant {
			dropNulls(n)
		}
		nodes[i] = n
	}
	return nodes[0].canonical() == nodes[1].canonical()
}

func dropNulls(n *node) {
	var kept []member
	for _, m := range n.members {
		if m.value.kind != kindNull {
			dropNulls(m.value)
			kept = append(kept, m)
		}
	}
	n.members = kept
	for _, item := range n.items {
		dropNulls(item)
	}
}

func outcomeName(o jsonrepair.Outcome) string {
	if o == jsonrepair.Failed {
		return "fail"
	}
	return o.String()
}

// unmatched are the cases whose answer is refused although a person would give one:
// what decides them is not in the table. An answer that comes is an error here too, so
// that the list stays true.
var unmatched = []string{
	"baml a fraction",
	"baml literal with marks",
	"baml a literal in a sentence in an object",
	"baml enums in a fence", // repair finds no JSON there
}

func TestPairs(t *testing.T) {
	cases := readPairs(t)
	if len(cases) < 200 {
		t.Errorf("%d pairs, want 200 or more", len(cases))
	}
	ours, recorded, theirs := map[string]int{}, map[string]int{}, map[string]int{}
	for _, c := range cases {
		s, err := Parse(c.Schema, Options{})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		readings := c.readings()
		fit := s.Fit(readings, FitOptions{})
		checkFit(t, s, readings, fit)
		got := c.verdict(t, fit.Value, false)
		ours[got]++
		exempt := strings.Contains("\n"+strings.Join(unmatched, "\n")+"\n", "\n"+c.Name+"\n")
		switch {
		case exempt && got == "right":
			t.Errorf("%s: right, so it is none of the unmatched any more", c.Name)
		case !exempt && (got != "right" || c.Outcome != "" && outcomeName(fit.Outcome) != c.Outcome):
			t.Errorf("%s: %s: %s with %s, want %s%s; %v %v", c.Name, c.In+strings.Join(c.Readings, " or "), outcomeName(fit.Outcome), fit.Value, c.Want, c.Outcome, fit.Coercions, fit.Violations)
		}
		if c.BAML == nil {
			continue
		}
		recorded[got]++
		var answer struct{ Value json.RawMessage }
		if c.BAML[0] == '{' {
			if err := json.Unmarshal(c.BAML, &answer); err != nil {
				t.Fatal(err)
			}
		}
		theirs[c.verdict(t, answer.Value, true)]++
	}
	t.Logf("\n%s", pairTable(len(cases), ours, recorded, theirs))
	if recorded["right"] < theirs["right"] {
		t.Errorf("%d are right, of BAML's answers %d", recorded["right"], theirs["right"])
	}
	if recorded["wrong"] >= theirs["wrong"] {
		t.Errorf("%d are valid but wrong, of BAML's answers %d", recorded["wrong"], theirs["wrong"])
	}
}

func pairTable(all int, ours, recorded, theirs map[string]int) string {
	var b strings.Builder
	row := func(name string, n int, m map[string]int) {
		fmt.Fprintf(&b, "%-30s %5d %5d %8d %17d\n", name, n, m["right"], m["refused"], m["wrong"])
	}
	sum := theirs["right"] + theirs["refused"] + theirs["wrong"]
	fmt.Fprintf(&b, "%-30s %5s %5s %8s %17s\n", "", "pairs", "right", "refused", "valid but wrong")
	row("this package", all, ours)
	row("this package, where recorded", sum, recorded)
	row("BAML, as recorded", sum, theirs)
	return b.String()
}

// checkFit holds a fit to what is promised of every one.
func checkFit(t testing.TB, s *Schema, readings []Reading, fit *Fit) {
	t.Helper()
	check := func(index int, value []byte, edits []jsonrepair.Edit) {
		t.Helper()
		text := readings[index].Text
		if got := jsonrepair.Apply(text, eachEdit(edits)); !bytes.Equal(got, value) {
			t.Errorf("%s: edits %v give %s, not %s", text, edits, got, value)
		}
		end := 0
		for _, e := range edits {
			if e.Offset < end || !strings.HasPrefix(string(text[e.Offset:]), e.Before) || e.Before == e.After {
				t.Errorf("%s: edit %v", text, e)
			}
			end = e.Offset + len(e.Before)
		}
		if v := s.Validate(value); len(v) > 0 {
			t.Errorf("%s: the fitted value %s is not valid: %v", text, value, v)
		}
	}
	switch fit.Outcome {
	case jsonrepair.Valid:
		if len(fit.Edits) > 0 || len(fit.Coercions) > 0 || fit.Score != 0 || !bytes.Equal(fit.Value, readings[fit.Index].Text) {
			t.Errorf("valid, but changed: %s", fit.Value)
		}
		check(fit.Index, fit.Value, nil)
	case jsonrepair.Repaired:
		sum := 0
		for _, c := range fit.Coercions {
			sum += c.Score
		}
		if sum != fit.Score || sum == 0 {
			t.Errorf("%s: the score is %d, the coercions %v", readings[fit.Index].Text, fit.Score, fit.Coercions)
		}
		check(fit.Index, fit.Value, fit.Edits)
	case jsonrepair.Ambiguous:
		if len(fit.Readings) < 2 || fit.Value != nil || fit.Index != -1 {
			t.Errorf("ambiguous with %d readings and %s", len(fit.Readings), fit.Value)
		}
		for _, c := range fit.Readings {
			check(c.Index, c.Value, c.Edits)
		}
	case jsonrepair.Failed:
		if len(fit.Violations) == 0 || fit.Value != nil || fit.Index != -1 {
			t.Errorf("failed without a reason: %+v", fit)
		}
	}
}

func eachEdit(edits []jsonrepair.Edit) func(yield func(jsonrepair.Edit) bool) {
	return func(yield func(jsonrepair.Edit) bool) {
		for _, e := range edits {
			if !yield(e) {
				return
			}
		}
	}
}
