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

func TestSetMember(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{}`, `{"n":1}`},
		{" { } ", " {\"n\":1 } "},
		{`{"x":{"n":2}}`, `{"n":1,"x":{"n":2}}`},
		{` {"x":0, "n" : [2] } `, ` {"x":0, "n" : 1 } `},
		{`{"\u006e":null}`, `{"\u006e":1}`},
		{`{"n":2,"n":3}`, `{"n":2,"n":3}`},
		{`[]`, `[]`},
		{`{"n"`, `{"n"`},
		{``, ``},
	} {
		in := append(make([]byte, 0, 2*len(tc.in)), tc.in...) // its capacity is no length
		if got := string(SetMember(in, "n", []byte("1"))); got != tc.want || string(in) != tc.in {
			t.Errorf("%s: %s", tc.in, got)
		}
	}
}

func TestMembers(t *testing.T) {
	m, err := Members([]byte(`{"a": [1, 2] ,"\u0062":"x"}`))
	if err != nil || len(m) != 2 || string(m["a"]) != "[1, 2]" || string(m["b"]) != `"x"` {
		t.Errorf("%q %v", m, err)
	}
	for _, body := range []string{`{"a":1,"a":1}`, `{"a":1,"\u0061":1}`, `[]`, `{`, ``} {
		if m, err := Members([]byte(body)); err == nil {
			t.Errorf("%s: %q", body, m)
		}
	}
}
