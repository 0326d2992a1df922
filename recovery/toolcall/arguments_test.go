package toolcall

import (
	"bytes"
	"slices"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

var argumentsCases = []struct {
	name, in, want string
	outcome        jsonrepair.Outcome
	malformed      bool
	problem        Problem
}{
	{"valid", `{"x": 1.10}`, `{"x": 1.10}`, jsonrepair.Valid, false, ""},
	{"valid with tags", `{"y":"<think>a</think> </tool_call>"}`, `{"y":"<think>a</think> </tool_call>"}`, jsonrepair.Valid, false, ""},
	{"empty", ``, `{}`, jsonrepair.Repaired, false, ""},
	{"blank", " \n", `{}`, jsonrepair.Repaired, false, ""},
	{"null", `null`, `{}`, jsonrepair.Repaired, false, ""},
	{"empty string", `""`, `{}`, jsonrepair.Repaired, false, ""},
	{"cut string", `{"content": "\"\"\"Regression tests for`, `{"content": "\"\"\"Regression tests for"}`, jsonrepair.Truncated, false, Truncated},
	{"cut escape", `{"key":"value\`, `{"key":"value"}`, jsonrepair.Truncated, false, Truncated},
	{"cut unicode escape", `{"a":"\u12`, `{"a":""}`, jsonrepair.Truncated, false, Truncated},
	{"cut number", `{"a":1,"n": 12`, `{"a":1}`, jsonrepair.Truncated, false, Truncated},
	{"cut at once", `{`, `{}`, jsonrepair.Truncated, false, Truncated},
	{"malformed", `{"action": listt_windows"}`, `{"action": "listt_windows"}`, jsonrepair.Repaired, true, ""},
	{"missing quote of a key", `{"command":"ls","bg":true, description":"x"}`, `{"command":"ls","bg":true, "description":"x"}`, jsonrepair.Repaired, true, ""},
	{"malformed and cut", `{'a': 'b`, `{"a": "b"}`, jsonrepair.Truncated, true, Truncated},
	{"markdown", `{"video\_id": "sNa\_uiqSlJo"}`, `{"video_id": "sNa_uiqSlJo"}`, jsonrepair.Repaired, true, ""},
	{"windows path", `{"path":"C:\Users\x"}`, `{"path":"C:\\Users\\x"}`, jsonrepair.Repaired, true, ""},
	{"placeholder", `{}{"stock":"MSFT"}`, `{"stock":"MSFT"}`, jsonrepair.Repaired, false, ""},
	{"double", `"{\"x\":1}"`, `{"x":1}`, jsonrepair.Repaired, false, ""},
	{"double, broken", `"{'x':1}"`, `{"x":1}`, jsonrepair.Repaired, true, ""},
	{"double, cut", `"{\"y\":\"ab`, `{"y":"ab"}`, jsonrepair.Truncated, false, Truncated},
	{"two levels", `"\"{}\""`, ``, jsonrepair.Failed, true, NoObject},
	{"a string", `"hello"`, ``, jsonrepair.Failed, true, NoObject},
	{"an array", `[{"x":1}]`, ``, jsonrepair.Failed, true, NoObject},
	{"a number", `12`, ``, jsonrepair.Failed, true, NoObject},
	{"prose", `I cannot do that.`, ``, jsonrepair.Failed, true, Malformed},
	{"fence", "```json\n{\"x\":1}\n```", `{"x":1}`, jsonrepair.Repaired, true, ""},
	{"several", `{"q":"A"}{"q":"B"}`, `{"q":"A"}`, jsonrepair.Repaired, false, ""},
}

func TestArguments(t *testing.T) {
	for _, c := range argumentsCases {
		t.Run(c.name, func(t *testing.T) {
			a := Arguments("f", []byte(c.in), Options{})
			checkArguments(t, []byte(c.in), a)
			if string(bytes.TrimSpace(a.Arguments)) != c.want || a.Outcome != c.outcome || a.Malformed != c.malformed || a.Problem != c.problem {
				t.Errorf("%v %q malformed %v problem %q; want %v %q %v %q", a.Outcome, a.Arguments, a.Malformed, a.Problem, c.outcome, c.want, c.malformed, c.problem)
			}
		})
	}
	a := Arguments("f", []byte(`{"q":"A"}{"q":"B"}`), Options{})
	if len(a.All) != 2 || string(a.All[1]) != `{"q":"B"}` {
		t.Errorf("several: %q", a.All)
	}
	a = Arguments("vid", []byte(`{"video\\_id": "a"}`), Options{Tools: tools})
	if string(a.Arguments) != `{"video_id": "a"}` || a.Outcome != jsonrepair.Repaired {
		t.Errorf("a key with a Markdown escape: %v %q", a.Outcome, a.Arguments)
	}
	if a = Arguments("vid", []byte(`{"video\\_id": "a"}`), Options{}); a.Outcome != jsonrepair.Valid {
		t.Errorf("without a schema: %v %q", a.Outcome, a.Arguments)
	}
}

// checkArguments checks what holds for every result.
func checkArguments(t *testing.T, in []byte, a *Checked) {
	t.Helper()
	if (a.Outcome == jsonrepair.Failed) != (a.Problem == NoObject || a.Problem == Malformed) {
		t.Fatalf("%q: %v with problem %q", in, a.Outcome, a.Problem)
	}
	if a.Outcome == jsonrepair.Failed {
		return
	}
	out := a.Arguments
	if len(a.All) > 0 {
		out = a.Repair.Text
	}
	if got := jsonrepair.Apply(in, slices.Values(a.Edits)); !bytes.Equal(got, out) {
		t.Fatalf("%q: the edits give %q, not %q", in, got, out)
	}
	for _, s := range append(a.All, a.Arguments) {
		if jsonrepair.Check(s, 0) != nil || bytes.TrimSpace(s)[0] != '{' {
			t.Fatalf("%q: %q is no object", in, s)
		}
	}
	if strict := jsonrepair.Check(in, 0) == nil && bytes.TrimSpace(in)[0] == '{'; strict != (a.Outcome == jsonrepair.Valid) && len(a.Findings) == 0 {
		t.Fatalf("%q: %v", in, a.Outcome)
	}
}

// TestArgumentsTruncated cuts strict arguments at every byte: none of that is valid, and
// none is malformed.
func TestArgumentsTruncated(t *testing.T) {
	const text = `{"y": "a\n\u00e9 \"b\"", "n": -1.5e3, "list": [true, null, {"k": "v"}], "o": {}}`
	for cut := 1; cut < len(text); cut++ {
		a := Arguments("g", []byte(text[:cut]), Options{})
		checkArguments(t, []byte(text[:cut]), a)
		if a.Outcome != jsonrepair.Truncated || a.Malformed || len(a.Open) == 0 {
			t.Errorf("cut at %d: %v, malformed %v, open %v", cut, a.Outcome, a.Malformed, a.Open)
		}
	}
}
