package toolcall

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// sameJSON compares two texts as values. Numbers are compared as text.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var v [2]any
	for i, s := range [][]byte{a, b} {
		d := json.NewDecoder(bytes.NewReader(s))
		d.UseNumber()
		if d.Decode(&v[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(v[0], v[1])
}

// checkResult checks what holds for every result.
func checkResult(t *testing.T, text []byte, r *Result) {
	t.Helper()
	if got := jsonrepair.Apply(text, slices.Values(r.Edits)); !bytes.Equal(got, r.Rest) {
		t.Fatalf("%q: the edits give %q, the rest is %q", text, got, r.Rest)
	}
	at := 0
	for _, e := range r.Edits {
		if e.Offset < at || e.Before == "" {
			t.Fatalf("%q: edits %+v", text, r.Edits)
		}
		at = e.Offset + len(e.Before)
	}
	at = 0
	for _, c := range r.Calls {
		if c.Name == "" || c.Format == "" {
			t.Fatalf("%q: a call without a name: %+v", text, c)
		}
		if c.Start < 0 || c.End < c.Start || c.End > len(text) || c.Start < at {
			t.Fatalf("%q: call at %d to %d, behind %d", text, c.Start, c.End, at)
		}
		at = c.Start
		if c.Arguments != nil && (jsonrepair.Check(c.Arguments, 0) != nil || c.Arguments[0] != '{') {
			t.Fatalf("%q: arguments %q are no object", text, c.Arguments)
		}
		if c.Complete && c.Problem == Truncated || c.Complete && c.Arguments == nil && c.Problem == "" {
			t.Fatalf("%q: complete, but %+v", text, c)
		}
		if !c.Complete && c.Problem == "" {
			t.Fatalf("%q: neither complete nor with a problem: %+v", text, c)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, c := range formatCases {
		t.Run(c.name, func(t *testing.T) {
			for _, o := range []Options{{Tools: tools}, {Tools: tools, Formats: []Format{c.format}}} {
				r := Find([]byte(c.text), o)
				checkResult(t, []byte(c.text), r)
				if string(r.Rest) != c.rest || len(r.Calls) != len(c.want) {
					t.Fatalf("%d calls, rest %q, findings %v; want %d and %q", len(r.Calls), r.Rest, r.Findings, len(c.want), c.rest)
				}
				for i, w := range c.want {
					g := r.Calls[i]
					if g.Name != w.name || g.ID != w.id || g.Format != c.format || !sameJSON(t, g.Arguments, []byte(w.args)) {
						t.Errorf("call %d: %s %s %q %q; want %s %s %q", i, g.Format, g.Name, g.ID, g.Arguments, w.name, w.args, w.id)
					}
					if !g.Complete || g.Problem != "" || g.Repair != nil {
						t.Errorf("call %d: complete %v, problem %q, repair %v", i, g.Complete, g.Problem, g.Repair)
					}
				}
			}
		})
	}
}

// TestTruncated cuts every text at every byte. What is found must be a beginning of
// what the whole text holds, and be complete only if it is all of that.
func TestTruncated(t *testing.T) {
	for _, c := range formatCases {
		t.Run(c.name, func(t *testing.T) {
			for cut := range c.text {
				text := []byte(c.text[:cut])
				r := Find(text, Options{Tools: tools})
				checkResult(t, text, r)
				if len(r.Calls) > len(c.want) {
					t.Fatalf("cut at %d: %d calls", cut, len(r.Calls))
				}
				for i, g := range r.Calls {
					w := c.want[i]
					if g.Name != w.name {
						t.Errorf("cut at %d: name %q", cut, g.Name)
					}
					if g.Complete != (g.Problem == "") {
						t.Errorf("cut at %d: complete %v, problem %q", cut, g.Complete, g.Problem)
					}
					if g.Complete && !sameJSON(t, g.Arguments, []byte(w.args)) {
						t.Errorf("cut at %d (%q): complete with %q", cut, text, g.Arguments)
					}
				}
			}
		})
	}
}

// collect feeds a text in pieces to a stream and puts together what comes.
func collect(t *testing.T, pieces [][]byte, o Options) *Result {
	t.Helper()
	s := NewStream(o)
	r := &Result{Rest: []byte{}}
	take := func(text []byte, deltas []Delta) {
		r.Rest = append(r.Rest, text...)
		for _, d := range deltas {
			if d.Index == len(r.Calls) {
				if d.Name == "" {
					t.Fatalf("the first delta of a call has no name")
				}
				r.Calls = append(r.Calls, Call{Name: d.Name, ID: d.ID, Arguments: []byte{}})
			} else if d.Name != "" {
				t.Fatalf("a name comes twice: %+v", d)
			}
			c := &r.Calls[d.Index]
			c.Arguments = append(c.Arguments, d.Arguments...)
			if d.End != nil {
				args := c.Arguments
				*c = *d.End
				c.Arguments = args
			}
		}
	}
	for _, p := range pieces {
		text, deltas, err := s.Write(p)
		if err != nil {
			t.Fatal(err)
		}
		take(text, deltas)
	}
	text, deltas, end := s.Close()
	take(text, deltas)
	r.Findings = end.Findings
	return r
}

// checkStream compares a stream with the whole.
func checkStream(t *testing.T, text []byte, pieces [][]byte, o Options) {
	t.Helper()
	want, got := Find(text, o), collect(t, pieces, o)
	if !bytes.Equal(got.Rest, want.Rest) || len(got.Calls) != len(want.Calls) {
		t.Fatalf("%q in %d pieces:\nrest %q, %d calls; whole: %q, %d", text, len(pieces), got.Rest, len(got.Calls), want.Rest, len(want.Calls))
	}
	ambiguous := false
	for i, g := range got.Calls {
		w := want.Calls[i]
		if ambiguous = ambiguous || repairOutcome(w) == jsonrepair.Ambiguous || repairOutcome(g) == jsonrepair.Ambiguous; ambiguous {
			continue
		}
		if w.Arguments == nil {
			w.Arguments, g.Arguments = nil, nil // of a stream what was there was sent
		}
		if (g.Repair == nil) != (w.Repair == nil) || g.Repair != nil && g.Repair.Outcome != w.Repair.Outcome {
			t.Fatalf("%q in %d pieces: call %d: repair %v, whole %v", text, len(pieces), i, g.Repair, w.Repair)
		}
		g.Repair, w.Repair = nil, nil
		if !reflect.DeepEqual(g, w) {
			t.Fatalf("%q in %d pieces:\n%+v %s, whole\n%+v %s", text, len(pieces), g, g.Arguments, w, w.Arguments)
		}
	}
	if !ambiguous && !slices.Equal(got.Findings, want.Findings) {
		t.Fatalf("%q in %d pieces:\nfindings %v, whole\n%v", text, len(pieces), got.Findings, want.Findings)
	}
}

// oneByOne cuts a text into its bytes.
func oneByOne(text []byte) [][]byte {
	var pieces [][]byte
	for i := range text {
		pieces = append(pieces, text[i:i+1])
	}
	return pieces
}

func TestStreamIsWhole(t *testing.T) {
	for _, c := range formatCases {
		t.Run(c.name, func(t *testing.T) {
			text := []byte(c.text)
			checkStream(t, text, oneByOne(text), Options{Tools: tools})
			checkStream(t, text, oneByOne(text), Options{})
			step := 1
			if testing.Short() {
				step = 7
			}
			for cut := 0; cut < len(text); cut += step {
				checkStream(t, text, [][]byte{text[:cut], text[cut:]}, Options{Tools: tools})
				if cut%3 == 0 {
					checkStream(t, text[:cut], oneByOne(text[:cut]), Options{Tools: tools})
				}
			}
		})
	}
}
