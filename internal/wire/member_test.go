package wire

import "testing"

func TestReplaceString(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"model":"a","x":1}`, `{"model":"b\"","x":1}`},
		{" {\n \"x\" : {\"model\":1}, \"model\" : null }\n", " {\n \"x\" : {\"model\":1}, \"model\" : \"b\\\"\" }\n"},
		{`{"mod\u0065l":"a"}`, `{"mod\u0065l":"b\""}`},
		{`{"x":1}`, `{"x":1}`},
		{`{"model":"a","model":"c"}`, `{"model":"a","model":"c"}`},
		{`["model"]`, `["model"]`},
		{`{"model"`, `{"model"`},
	} {
		if got := string(ReplaceString([]byte(tc.in), "model", `b"`)); got != tc.want {
			t.Errorf("%s: %s", tc.in, got)
		}
	}
}
