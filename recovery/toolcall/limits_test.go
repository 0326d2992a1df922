package toolcall

import (
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// TestMaxHold: a form without a marker that goes on too long before it is known is text.
func TestMaxHold(t *testing.T) {
	long := `{"arguments": {"y": "` + strings.Repeat("a", 500) + `"}, "name": "g"}`
	for hold, calls := range map[int]int{100: 0, 1000: 1} {
		o := Options{Tools: tools, MaxHold: hold}
		r := Find([]byte(long), o)
		checkResult(t, []byte(long), r)
		if len(r.Calls) != calls {
			t.Errorf("MaxHold %d: %d calls", hold, len(r.Calls))
		}
		checkStream(t, []byte(long), oneByOne([]byte(long)), o)
	}
	// With a marker it is a call however long it is.
	marked := "<tool_call>" + long + "</tool_call>"
	o := Options{Tools: tools, MaxHold: 100}
	if r := Find([]byte(marked), o); len(r.Calls) != 1 || !r.Calls[0].Complete {
		t.Errorf("%+v", r.Calls)
	}
	checkStream(t, []byte(marked), oneByOne([]byte(marked)), o)
}

func TestJSONOptions(t *testing.T) {
	text := []byte(`<tool_call>{"name":"write_file","arguments":{"path":"C:\new\table"}}</tool_call>`)
	r := Find(text, Options{Tools: tools, JSON: jsonrepair.Options{Paths: true}})
	if got := string(r.Calls[0].Arguments); got != `{"path":"C:\\new\\table"}` || r.Calls[0].Outcome() != jsonrepair.Repaired {
		t.Errorf("Paths: %s", got)
	}
	if r = Find(text, Options{Tools: tools}); r.Calls[0].Outcome() != jsonrepair.Valid {
		t.Errorf("without Paths: %s", r.Calls[0].Arguments)
	}
	deep := []byte(`[TOOL_CALLS]g[ARGS]{"o":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}")
	r = Find(deep, Options{})
	if c := r.Calls[0]; c.Problem != Malformed || c.Outcome() != jsonrepair.Failed {
		t.Errorf("deep: %+v", c)
	}
	ambiguous := []byte(`[TOOL_CALLS]f[ARGS]{"x": 1,234}`)
	if c := Find(ambiguous, Options{}).Calls[0]; c.Outcome() != jsonrepair.Ambiguous || len(c.Repair.Readings) < 2 {
		t.Errorf("ambiguous: %v %s", c.Outcome(), c.Arguments)
	}
	if c := Find(ambiguous, Options{JSON: jsonrepair.Options{Strict: true}}).Calls[0]; c.Problem != Malformed || c.Arguments != nil {
		t.Errorf("ambiguous, strict: %v %s", c.Problem, c.Arguments)
	}
}

// TestRepairPlaces: the edits of a repair, moved by RepairAt, fit the text.
func TestRepairPlaces(t *testing.T) {
	for _, c := range malformedCases {
		for _, call := range Find([]byte(c.text), Options{Tools: tools}).Calls {
			if call.Repair == nil {
				continue
			}
			for e := range call.Repair.Edits() {
				if call.RepairAt < 0 {
					break
				}
				if at := call.RepairAt + e.Offset; !strings.HasPrefix(c.text[at:], e.Before) {
					t.Errorf("%s: at byte %d %q is not there", c.name, at, e.Before)
				}
			}
		}
	}
}

func TestOutcome(t *testing.T) {
	for text, want := range map[string]jsonrepair.Outcome{
		`<tool_call>{"name":"f","arguments":{"x":1}}</tool_call>`:       jsonrepair.Valid,
		`<tool_call>{"name":"f","arguments":{"x":1}</tool_call>`:        jsonrepair.Repaired,
		`<tool_call>{"name":"f","arguments":{"x":1}`:                    jsonrepair.Truncated,
		`<tool_call>{"name":"f","arguments":[1]}</tool_call>`:           jsonrepair.Failed,
		`<tool_call>{"name":"unknown","arguments":{"x":1}}</tool_call>`: jsonrepair.Valid,
	} {
		if c := Find([]byte(text), Options{Tools: tools}).Calls[0]; c.Outcome() != want {
			t.Errorf("%s: %v, want %v", text, c.Outcome(), want)
		}
	}
}
