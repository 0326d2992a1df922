package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/jsonrepair"
)

// repaired sends a request that must be answered.
func (r *rig) repaired(t *testing.T, body string) *jsonrepair.Report {
	t.Helper()
	a := r.send("POST", "/unfray/v1/repair", body)
	var got jsonrepair.Report
	if a.status != 200 || a.header.Get("Content-Type") != "application/json" || json.Unmarshal(a.body, &got) != nil {
		t.Fatalf("%.80s: %d %s", body, a.status, a.body)
	}
	return &got
}

func TestRepair(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, tc := range []struct{ name, body, outcome, text string }{
		{"valid", `{"text":"[1.10,\n 2]"}`, "valid", "[1.10,\n 2]"},
		{"repaired", `{"text":"{'a': True}"}`, "repaired", `{"a": true}`},
		{"truncated", `{"text":"{\"a\":[1,2"}`, "truncated", `{"a":[1]}`},
		{"ended", `{"text":"{\"a\":[1,2","ended":true}`, "truncated", `{"a":[1,2]}`},
		{"finish reason", `{"text":"{\"a\":[1,2","finish_reason":"tool_calls"}`, "truncated", `{"a":[1,2]}`},
		{"ambiguous", `{"text":"{\"n\":1,234}"}`, "ambiguous", `{"n":1234}`},
		{"strict", `{"text":"{\"n\":1,234}","strict":true}`, "ambiguous", ""},
		{"latex", `{"text":"[\"\\frac\"]","latex":true}`, "repaired", `["\\frac"]`},
		{"latex by default", `{"text":"[\"\\frac\"]"}`, "valid", `["\frac"]`},
		{"paths", `{"text":"[\"C:\\new\"]","paths":true}`, "repaired", `["C:\\new"]`},
		{"bytes", `{"bytes":"WyL/Il0="}`, "repaired", `["` + "\ufffd" + `"]`},
		{"failed", `{"text":"no"}`, "failed", ""},
		{"empty", `{"text":""}`, "failed", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := r.repaired(t, tc.body)
			if text := text(got.Text); got.Outcome != tc.outcome || tc.text != "" && text != tc.text || tc.text == "" && got.Text != nil {
				t.Errorf("%s %s", got.Outcome, text)
			}
			if (got.Text == nil) != (got.Value == nil) || got.Edits == nil || (got.Outcome == "failed") != (got.Error != nil) {
				t.Errorf("%+v", got)
			}
		})
	}
	got := r.repaired(t, `{"id":{"n":1.10},"text":"{\"a\":[1,"}`)
	if string(got.ID) != `{"n":1.10}` || len(got.Open) != 2 || got.Open[1].Path != "/a" || got.Open[1].Kind != "array" || got.Open[1].Offset != 5 {
		t.Errorf("%s %+v", got.ID, got.Open)
	}
}

// The server's limits end in an outcome, not in an error.
func TestRepairLimits(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, tc := range []struct{ name, text, outcome, cause string }{
		{"edits", "[" + strings.Repeat("'a',", 60_000) + "1]", "failed", "more edits are needed than allowed"},
		{"depth", strings.Repeat("[", 200_000), "failed", "more containers are open than allowed"},
		{"findings", `["` + strings.Repeat(`\frac `, 5_000) + `"]`, "valid", ""},
		{"deep but valid", strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000), "valid", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := r.repaired(t, `{"text":`+quoted(tc.text)+`}`)
			if got.Outcome != tc.outcome || len(got.Findings) > 1000 {
				t.Errorf("%s, %d findings", got.Outcome, len(got.Findings))
			}
			if tc.cause != "" && (got.Error.Cause != tc.cause || strings.Contains(got.Error.Tried, "raise")) {
				t.Errorf("%+v", got.Error)
			}
		})
	}
}

func TestRepairRefuses(t *testing.T) {
	r := newRig(t, rigOptions{cfg: gateway.Config{MaxBodyBytes: 100}})
	for _, tc := range []struct {
		body   string
		status int
		param  string
	}{
		{`{}`, 400, "text"},
		{`{"text":1}`, 400, "text"},
		{`{"text":"","strict":1}`, 400, "strict"},
		{`{"bytes":"?"}`, 400, "bytes"},
		{`{"text":"\ud83d"}`, 400, "null"},
		{`{`, 400, "null"},
		{`{"text":"` + strings.Repeat("a", 100) + `"}`, 413, "null"},
	} {
		a := r.send("POST", "/unfray/v1/repair", tc.body)
		if e := a.apiError(t); a.status != tc.status || text(e.Param) != tc.param {
			t.Errorf("%.60s: %d %s", tc.body, a.status, a.body)
		}
	}
	if a := r.send("GET", "/unfray/v1/repair", ""); a.status != 405 || !strings.Contains(a.header.Get("Allow"), "POST") {
		t.Errorf("GET: %d %s", a.status, a.body)
	}
	if a := r.send("POST", "/unfray/v1/repair", `{"text":"1","model":"m"}`); a.status != 200 || a.header.Get("X-Unfray-Ignored") != "model" {
		t.Errorf("%d %s", a.status, a.header)
	}
}

func FuzzRepair(f *testing.F) {
	for _, s := range []string{
		`{"text":"{'a': [1, 2","strict":true}`, `{"id":[1],"bytes":"WyL/Il0="}`, `{"text":"{\"n\":1,234}","finish_reason":"stop"}`,
		`{"text":"\ud83d"}`, `[`, `{"text":{}}`, "{\"text\":\"\xff\"}",
	} {
		f.Add(s)
	}
	r := fuzzRig(f)
	f.Fuzz(func(t *testing.T, body string) { checkAnswer(t, body, r.send("POST", "/unfray/v1/repair", body)) })
}
