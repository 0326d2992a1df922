//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestEachField(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{`{}`, ""},
		{` { "a" : 1 , "b":"x\"y\\" } `, `a=1 b="x\"y\\" `},
		{`{"a":[1,{"b":"]}"},[]],"c":{"d":"\\"},"e":null}`, `a=[1,{"b":"]}"},[]] c={"d":"\\"} e=null `},
		{`{"a":-1.5e3,"b":true}`, `a=-1.5e3 b=true `},
		{``, "error"},
		{`[]`, "error"},
		{`{"a"}`, "error"},
		{`{"a":}`, "error"},
		{`{"a":"`, "error"},
		{`{"a":[`, "error"},
		{`{"a":1`, "error"},
		{`{"a":"\"}`, "error"},
	} {
		var got strings.Builder
		err := eachField([]byte(test.body), func(name string, raw []byte) { got.WriteString(name + "=" + string(raw) + " ") })
		if err != nil {
			got.Reset()
			got.WriteString("error")
		}
		if got.String() != test.want {
			t.Errorf("%s: %s, want %s", test.body, got.String(), test.want)
		}
	}
}

// Whatever encoding/json takes for an object has the same fields here.
func FuzzEachField(f *testing.F) {
	for _, body := range []string{`{"a":1}`, `{"prompt":"\"}","x":[[1,2],[]]}`, `{"a":{"b":[{}]} , "c" : -0.5}`, `{"a":"\\\\\""}`, `{`, `{"a":[1,`, `{"a":1 2}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := map[string]string{}
		err := eachField(body, func(name string, raw []byte) { got[name] = string(raw) })
		var want map[string]json.RawMessage
		if !json.Valid(body) || json.Unmarshal(body, &want) != nil || want == nil || bytes.ContainsRune(body, '\\') {
			return // names with escapes, and what is no object, are another matter
		}
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(body) {
			return
		}
		for name, raw := range want {
			// encoding/json replaces what is no UTF-8 in names.
			if value, ok := got[name]; ok && value != string(raw) {
				t.Errorf("%q is %s, want %s", name, value, raw)
			}
		}
	})
}

func TestReadQuestion(t *testing.T) {
	s := toyScript(t)
	prompt := "[[00000042]] some text\n[1, 2]" + promptEnd
	ids, err := json.Marshal(s.tok.Encode(nil, []byte(prompt)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(prompt)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"text":             `{"prompt": ` + string(text) + `}`,
		"a list of texts":  `{"prompt":[ ` + string(text) + `]}`,
		"IDs":              `{"prompt":` + string(ids) + `}`,
		"lists of IDs":     `{"prompt":[` + string(ids) + `]}`,
		"IDs with blanks":  `{"prompt":` + strings.ReplaceAll(string(ids), ",", ", ") + `}`,
		"messages":         `{"messages":[{"role":"user","content":` + string(text) + `}]}`,
		"messages, ending": `{"messages":[{"content":` + string(text) + `,"role":"user"}],"model":"x"}`,
	} {
		q, err := s.readQuestion([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if q.n != newSerial(42) || q.said != len(promptEnd) || q.stream || q.top != -1 {
			t.Errorf("%s: %+v", name, q)
		}
	}
	q, err := s.readQuestion([]byte(`{"stream":true,"max_tokens":7,"n_probs":3,"return_token_ids":true,"logit_bias":[[5,256],[6,-1],[7,false]],"prompt":"x","stream_options":{"include_usage":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	if !q.stream || q.maxTokens != 7 || q.top != 3 || !q.returnIDs || !q.includeUsage || len(q.forced.set) != 1 || q.forced.set[0] != 5 {
		t.Errorf("%+v", q)
	}
	for _, body := range []string{`{"prompt":[1,x]}`, `{"prompt":[99999999]}`, `{"max_tokens":"many"}`, `nothing`} {
		if q, err := s.readQuestion([]byte(body)); err == nil {
			t.Errorf("%s is read as %+v", body, q)
		}
	}
}

func FuzzReadQuestion(f *testing.F) {
	f.Add([]byte(`{"prompt":"[[00000001]] a\n\nconst userNa","stream":true}`))
	f.Add([]byte(`{"prompt":[[65,66],[67]],"max_tokens":1,"grammar":"root ::= <[65]> tail\n"}`))
	f.Add([]byte(`{"messages":[{"content":"x"}],"structured_outputs":{"grammar":"start: n0 <[*]>*\nn0: <[1-3,5]>\n"}}`))
	f.Add([]byte(`{"prompt":[`))
	f.Add([]byte("{\"prompt\":\"[[00000\x1401]] a\"}"))
	f.Add([]byte(`{"allowed_token_ids":[-1,99999999]}`))
	s := toyScript(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if q, err := s.readQuestion(body); err == nil {
			s.generate(q)
		}
	})
}

func TestConstraint(t *testing.T) {
	for _, test := range []struct {
		field, raw string
		path, set  string
	}{
		{"grammar", `"root ::= <[5]> tail\ntail ::= ([^\\x00] | !<[0]> | <[0]>)*\n"`, "5", ""},
		{"grammar", `"root ::= <[5]> <[6]> tail\ntail ::= x"`, "5 6", ""},
		{"grammar", `"root ::= (<[5]> <[6]> | (<[7]> | <[8]>)) tail\n"`, "", "5 6 7 8"},
		{"grammar", `"root ::= \"Na\" tail\n"`, "", ""},
		{"grammar", `""`, "", ""},
		{"grammar", `null`, "", ""},
		{"structured_outputs", `{"grammar":"start: n0 <[*]>*\nn0: <[1,3-5]> n1 | <[9]>\nn1: <[2]>\n"}`, "", "1 3 4 5 9"},
		{"structured_outputs", `{"grammar":"start: <[5,6]> /(?s:.*)/"}`, "", "5 6"},
		{"structured_outputs", `{"regex":"a"}`, "", ""},
		{"allowed_token_ids", `[3,4]`, "", "3 4"},
		{"logit_bias", `[[1,1000],[2,-5],[3,100]]`, "", "1 3"},
		{"logit_bias", `{"5":100}`, "", ""},
	} {
		var c constraint
		if err := c.read(test.field, []byte(test.raw)); err != nil {
			t.Errorf("%s: %v", test.raw, err)
		}
		list := func(b []byte) string { return strings.NewReplacer("[", "", "]", "", ",", " ").Replace(string(b)) }
		if path, set := list(appendIDs(nil, c.path)), list(appendIDs(nil, c.set)); path != test.path || set != test.set {
			t.Errorf("%s: path %s, set %s; want %s, %s", test.raw, path, set, test.path, test.set)
		}
	}
}
