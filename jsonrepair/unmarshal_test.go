package jsonrepair

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestUnmarshal(t *testing.T) {
	type order struct {
		Name  string
		Count int
		Tags  []string
	}
	for _, tt := range []struct {
		in      string
		outcome Outcome
		want    order
	}{
		{`{"name": "x", "count": 2}`, Valid, order{Name: "x", Count: 2}},
		{"```json\n{'Name': 'x', 'Tags': ['a', 'b'],}\n```", Repaired, order{Name: "x", Tags: []string{"a", "b"}}},
		{`{"name": "ab`, Truncated, order{Name: "ab"}},
		{`{"tags": ["a", "b`, Truncated, order{Tags: []string{"a", "b"}}},
		{`{"name": "x", "count": 12`, Truncated, order{Name: "x"}},
	} {
		var got order
		r, err := Unmarshal([]byte(tt.in), &got, Options{})
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(tt.want)
		if r.Outcome != tt.outcome || string(a) != string(b) {
			t.Errorf("%q: %v %s, want %v %s", tt.in, r.Outcome, a, tt.outcome, b)
		}
		var o *OutcomeError
		if refused := errors.As(err, &o); refused != (tt.outcome == Truncated) || refused && o.Result != r || !refused && err != nil {
			t.Errorf("%q: error %v", tt.in, err)
		}
	}
}

func TestUnmarshalErrors(t *testing.T) {
	var failure *Error
	var v any
	if r, err := Unmarshal([]byte("no"), &v, Options{}); !errors.As(err, &failure) || r.Outcome != Failed || v != nil {
		t.Errorf("%v, error %v, value %v", r.Outcome, err, v)
	}
	var mismatch *json.UnmarshalTypeError
	var n struct{ A int }
	if r, err := Unmarshal([]byte(`{'a': 'x'}`), &n, Options{}); !errors.As(err, &mismatch) || r.Outcome != Repaired {
		t.Errorf("%v, error %v", r.Outcome, err)
	}
	var o *OutcomeError
	const doubtful = `{"a": 1,234}`
	if Repair([]byte(doubtful), Options{}).Outcome != Ambiguous {
		t.Fatal("the document is not ambiguous: choose another one")
	}
	if r, err := Unmarshal([]byte(doubtful), &n, Options{}); !errors.As(err, &o) || r.Outcome != Ambiguous || n.A != 1234 || !strings.Contains(err.Error(), "2 ways") {
		t.Errorf("%v %+v, error %v", r.Outcome, n, err)
	}
	n.A = 7
	if r, err := Unmarshal([]byte(doubtful), &n, Options{Strict: true}); !errors.As(err, &o) || r.Outcome != Ambiguous || n.A != 7 {
		t.Errorf("%v %+v, error %v", r.Outcome, n, err)
	}
	_, err := Unmarshal([]byte(`{"a": {"b": "c`), &v, Options{})
	if err == nil || !strings.Contains(err.Error(), `string "/a/b" that begins at byte 12`) {
		t.Errorf("error %v", err)
	}
}
