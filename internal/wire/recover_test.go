package wire

import (
	"errors"
	"reflect"
	"testing"
)

func TestDecodeRecover(t *testing.T) {
	v, err := DecodeRecover([]byte(`{"model":"m","n":2,"stream":true,"stream_options":{"include_usage":true,"x":1},"max_completion_tokens":9,
		"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"beg"},{"type":"text","text":"un"}]}],
		"continue_final_message":true,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}},
		"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}},{"type":"other"}],
		"unfray":{"heal":"off","recover":{"mode":"full","form":"json","strategies":[],"max_attempts":1,"max_tokens":2,"reserve_percent":3,"tool_calls":"mark","on_failure":"error","raw":true,"schema":{},"language":"go"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &RecoverView{
		Options: &RecoverOptions{
			Mode: "full", Form: "json", Language: "go", Strategies: []string{}, MaxAttempts: ptr(1), MaxTokens: ptr(2), ReservePercent: ptr(3),
			Schema: []byte("{}"), ToolCalls: "mark", OnFailure: "error", Raw: true,
		},
		JSON: true, Schema: []byte(`{"type":"object"}`), Tools: []RecoverTool{{"f", []byte(`{"type":"object"}`)}},
		Continues: true, ContinueField: ptr(true), Begun: "begun", N: 2,
		MaxTokens: 9, MaxTokensField: "max_completion_tokens",
	}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("%+v\nwant\n%+v", v, want)
	}
}

// What only the server knows is left out, and no error.
func TestDecodeRecoverIsLenient(t *testing.T) {
	for _, body := range []string{
		`{"prompt":{"a":1},"messages":7,"tools":"x","n":"many","stream":3,"max_tokens":null,"response_format":"json","structured_outputs":[1]}`,
		`{"messages":[{"role":"user"},7],"tools":[{"function":{"name":3}}],"max_tokens":-1}`,
		`{"tools":[{"function":{"name":"f"}}],"tool_choice":"none"}`,
	} {
		v, err := DecodeRecover([]byte(body))
		if err != nil || v.JSON || v.MaxTokens != 0 || v.Options != nil || len(v.Tools) > 0 || v.Continues {
			t.Errorf("%s: %+v, %v", body, v, err)
		}
	}
	for body, param := range map[string]string{
		`{"unfray":{"recover":[]}}`: "unfray.recover", `{"unfray":{"recover":{"mode":1}}}`: "unfray.recover.mode", `{"unfray":7}`: "unfray",
		`{"unfray":{"recover":{"more":1}}}`: "unfray.recover.more",
	} {
		_, err := DecodeRecover([]byte(body))
		var e *DecodeError
		if !errors.As(err, &e) || e.Param != param {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestDecodeRecoverRequest(t *testing.T) {
	req, err := DecodeRecoverRequest([]byte(`{"id":[1],"bytes":"/w==","form":"json","language":"go","schema":{"type":"object"},"tools":[{"type":"function","function":{"name":"f"}}],
		"finish_reason":"length","tokens":4,"max_tokens":5,"strategies":"strict","latex":true,"paths":true,"strings":true,"budget":{"bytes":1,"edits":2,"depth":3,"time_ms":4,"x":5},"y":6}`))
	want := &RecoverRequest{
		ID: []byte("[1]"), Text: []byte{0xff}, Form: "json", Language: "go", Schema: []byte(`{"type":"object"}`), Tools: []RecoverTool{{Name: "f"}},
		FinishReason: "length", Tokens: 4, MaxTokens: 5, Strategies: []string{"strict"}, LaTeX: true, Paths: true, Strings: true,
		Budget: RecoverBudget{1, 2, 3, 4}, Ignored: []string{"budget.x", "y"},
	}
	if err != nil || !reflect.DeepEqual(req, want) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, req, want)
	}
	for body, param := range map[string]string{
		`{}`: "text", `{"text":"a","bytes":"YQ=="}`: "bytes", `{"bytes":"?"}`: "bytes", `{"text":"a","tokens":-1}`: "tokens", `{"text":"a","schema":1}`: "schema",
	} {
		_, err := DecodeRecoverRequest([]byte(body))
		var e *DecodeError
		if !errors.As(err, &e) || e.Param != param {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// FuzzDecodeRecover: no body is a panic, and what one decoder takes for JSON the
// other does too.
func FuzzDecodeRecover(f *testing.F) {
	for _, s := range []string{
		`{"unfray":{"recover":{"mode":"full","schema":{}}},"messages":[{"role":"assistant","content":"x"}]}`, `{"prompt":[[1,2],[3]],"tools":[{"function":{}}]}`,
		`{"text":"a","budget":{"bytes":1}}`, `{"bytes":"/w==","strategies":[]}`, `{"a":1,"a":2}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := DecodeRecover(body)
		if err == nil && (v == nil || v.MaxTokens < 0) {
			t.Fatalf("%+v", v)
		}
		req, err2 := DecodeRecoverRequest(body)
		if req == nil {
			t.Fatal("there is no request")
		}
		var e *DecodeError
		if err != nil && !errors.As(err, &e) || err2 != nil && !errors.As(err2, &e) {
			t.Fatalf("%v, %v", err, err2)
		}
		if out := RemoveMember(body, "unfray"); Check(body) == nil && Check(out) != nil {
			t.Fatalf("%q became %q", body, out)
		}
	})
}
