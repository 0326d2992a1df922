package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func ptr[T any](v T) *T { return &v }

func TestDecodeCompletion(t *testing.T) {
	for _, c := range []struct {
		body string
		want CompletionRequest
	}{
		{`{}`, CompletionRequest{}},
		{` {"prompt" : "a\u00e9\ud83d\ude42" } `, CompletionRequest{Prompts: []Prompt{{Text: "aé🙂"}}}},
		{`{"prompt":["a","","]["]}`, CompletionRequest{Prompts: []Prompt{{Text: "a"}, {Text: ""}, {Text: "]["}}}},
		{`{"prompt":[1, 2 ,3.0,1e2]}`, CompletionRequest{Prompts: []Prompt{{IDs: []int32{1, 2, 3, 100}}}}},
		{`{"prompt":[[1,2],[ ],[3]]}`, CompletionRequest{Prompts: []Prompt{{IDs: []int32{1, 2}}, {IDs: []int32{}}, {IDs: []int32{3}}}}},
		{
			`{"model":"m","prompt":null,"max_tokens":5,"temperature":0,"top_p":0.5,"n":2,"seed":-9223372036854775808,"stop":"x",
			"presence_penalty":-1,"frequency_penalty":2e0,"repetition_penalty":1.1,"top_k":40,"min_p":0.05,"logit_bias":{"1":-100,"20":1.5},
			"stream":true,"stream_options":{"include_usage":true},"user":"u","unfray":{"heal":"off","recover":"off"},
			"logprobs":0,"echo":true,"best_of":2,"suffix":""}`,
			CompletionRequest{
				Model: "m",
				Sampling: Sampling{
					MaxTokens: ptr(5), Temperature: ptr(0.0), TopP: ptr(0.5), N: ptr(2), Seed: ptr(int64(-1 << 63)), Stop: []string{"x"},
					PresencePenalty: ptr(-1.0), FrequencyPenalty: ptr(2.0), RepetitionPenalty: ptr(1.1), TopK: ptr(40), MinP: ptr(0.05),
					LogitBias: map[int32]float64{1: -100, 20: 1.5}, Stream: true, IncludeUsage: true, User: "u",
					Unfray: Options{Heal: ptr("off"), Recover: &RecoverOptions{Mode: "off"}},
				},
				Logprobs: ptr(0), Echo: true, BestOf: ptr(2), Suffix: ptr(""),
			},
		},
		{`{"n":null,"stop":null,"stream":null,"stream_options":null,"unfray":null,"logit_bias":null}`, CompletionRequest{}},
		{`{"stop":["a","b"],"store":true,"stream_options":{"y":[{}]},"unfray":{"z":1}}`, CompletionRequest{
			Sampling: Sampling{Stop: []string{"a", "b"}}, Ignored: []string{"store", "stream_options.y", "unfray.z"},
		}},
	} {
		got, err := DecodeCompletion([]byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
		} else if !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.body, *got, c.want)
		}
	}
}

func TestDecodeChat(t *testing.T) {
	got, err := DecodeChat([]byte(`{"model":"m","messages":[
		{"role":"system","content":"s","name":"n"},
		{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","cache":1}]},
		{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"1"}],"refusal":null,"audio":{}},
		{"role":"tool","content":"r","tool_call_id":"1"}],
		"max_completion_tokens":7,"logprobs":true,"top_logprobs":3,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"null"}}},
		"tools":[{"type":"function"}],"tool_choice":{"type":"function"},"modalities":["text"],
		"add_generation_prompt":false,"continue_final_message":true,"chat_template_kwargs":{"a":[1,2.5,null,true,"x",{"b":{}}]},"store":1}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &ChatRequest{
		Model: "m",
		Messages: []Message{
			{Role: "system", Content: "s", HasContent: true, Name: "n"},
			{Role: "user", Content: "ab", HasContent: true},
			{Role: "user", HasContent: true, Unsupported: "image_url"},
			{Role: "assistant", ToolCalls: []json.RawMessage{json.RawMessage(`{"id":"1"}`)}},
			{Role: "tool", Content: "r", HasContent: true, ToolCallID: "1"},
		},
		MaxCompletionTokens: ptr(7), Logprobs: true, TopLogprobs: ptr(3),
		Sampling: Sampling{Constraints: []Constraint{{ConstraintJSONSchema, `{"type":"null"}`, "response_format.json_schema.schema"}}},
		Tools:    []json.RawMessage{json.RawMessage(`{"type":"function"}`)}, ToolChoice: json.RawMessage(`{"type":"function"}`),
		Modalities: []string{"text"}, AddGenerationPrompt: ptr(false), ContinueFinalMessage: true,
		TemplateArguments: map[string]any{"a": []any{int64(1), 2.5, nil, true, "x", map[string]any{"b": map[string]any{}}}},
		Ignored:           []string{"messages[1].content[1].cache", "messages[3].audio", "store"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDecodeConstraints(t *testing.T) {
	for body, want := range map[string][]Constraint{
		`"grammar":"root ::= [0-9]"`:                                   {{ConstraintGBNF, "root ::= [0-9]", "grammar"}},
		`"grammar":""`:                                                 nil,
		`"json_schema":{"type":"null"}`:                                {{ConstraintJSONSchema, `{"type":"null"}`, "json_schema"}},
		`"structured_outputs":{"choice":["a.","b"]}`:                   {{ConstraintRegex, `(?:a\.|b)`, "structured_outputs.choice"}},
		`"guided_choice":["x"]`:                                        {{ConstraintRegex, `(?:x)`, "guided_choice"}},
		`"response_format":{"type":"text"}`:                            nil,
		`"response_format":{"type":"json_object"}`:                     {{ConstraintJSON, "", "response_format"}},
		`"response_format":{"type":"json_object","schema":true}`:       {{ConstraintJSONSchema, "true", "response_format.schema"}},
		`"structured_outputs":{"regex":"a+"},"grammar":"root::=\"a\""`: {{ConstraintRegex, "a+", "structured_outputs.regex"}, {ConstraintGBNF, `root::="a"`, "grammar"}},
	} {
		got, err := DecodeCompletion([]byte(`{"prompt":"x",` + body + `}`))
		if err != nil {
			t.Errorf("%s: %v", body, err)
		} else if slices.SortFunc(got.Constraints, func(a, b Constraint) int { return -strings.Compare(a.Param, b.Param) }); !slices.Equal(got.Constraints, want) {
			t.Errorf("%s: %+v, want %+v", body, got.Constraints, want)
		}
	}
	for _, body := range []string{`"grammar":1`, `"json_schema":3`, `"response_format":{"type":"xml"}`, `"response_format":{"type":"json_schema"}`, `"structured_outputs":{"json_object":"yes"}`} {
		if _, err := DecodeCompletion([]byte(`{"prompt":"x",` + body + `}`)); err == nil {
			t.Errorf("%s: no error", body)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct {
		body   string
		param  string
		offset int
		text   string // part of the message
	}{
		{``, "", -1, "empty"},
		{" \n", "", -1, "empty"},
		{`"x"`, "", -1, "must be a JSON object, not a string"},
		{`[{}]`, "", -1, "not an array"},
		{`{"prompt":"x"`, "", 12, "unexpected end"},
		{`{"prompt":"x",}`, "", 14, "invalid character '}'"},
		{`{"prompt":'x'}`, "", 10, "invalid character '\\''"},
		{`{} {}`, "", 3, "after top-level value"},
		{"{\"prompt\":\"a\xff\"}", "", 12, "UTF-8"},
		{"{\"prompt\":\"\xed\xa0\x80\"}", "", 11, "UTF-8"},
		{`{"prompt":"\ud83d"}`, "", 11, "surrogate"},
		{`{"prompt":"\ud83d\u0041"}`, "", 11, "surrogate"},
		{`{"prompt":"\ude42"}`, "", 11, "surrogate"},
		{strings.Repeat("[", 65), "", 64, "nested"},
		{`{"x":` + strings.Repeat(`{"a":`, 64) + `1` + strings.Repeat("}", 65), "", 325 - 5, "nested"},
		{`{"prompt":true}`, "prompt", -1, "must be a string, an array of strings, an array of token IDs or an array of such arrays, not a boolean"},
		{`{"prompt":[]}`, "prompt", -1, "empty array"},
		{`{"prompt":["a",1]}`, "prompt[1]", -1, "must be a string, not a number"},
		{`{"prompt":[1,[2]]}`, "prompt[1]", -1, "must be an integer, not an array"},
		{`{"prompt":[[1],[2,"x"]]}`, "prompt[1][1]", -1, "must be an integer, not a string"},
		{`{"prompt":[1.5]}`, "prompt[0]", -1, "must be an integer, not 1.5"},
		{`{"prompt":[-1]}`, "prompt[0]", -1, "no token ID"},
		{`{"prompt":[2147483648]}`, "prompt[0]", -1, "no token ID"},
		{`{"prompt":[1e300]}`, "prompt[0]", -1, "out of range"},
		{`{"prompt":[{}]}`, "prompt", -1, "must be a string"},
		{`{"max_tokens":99999999999}`, "max_tokens", -1, "out of range"},
		{`{"max_tokens":"5"}`, "max_tokens", -1, "must be an integer, not a string"},
		{`{"temperature":"hot"}`, "temperature", -1, "must be a number, not a string"},
		{`{"temperature":1e400}`, "temperature", -1, "out of range"},
		{`{"stream":1}`, "stream", -1, "must be a boolean, not a number"},
		{`{"stop":[1]}`, "stop[0]", -1, "must be a string, not a number"},
		{`{"stop":{}}`, "stop", -1, "must be a string or an array of strings"},
		{`{"logit_bias":{"x":1}}`, "logit_bias", -1, `the key "x"`},
		{`{"logit_bias":{"1":"a"}}`, "logit_bias.1", -1, "must be a number"},
		{`{"logit_bias":[]}`, "logit_bias", -1, "must be an object, not an array"},
		{`{"stream_options":{"include_usage":"yes"}}`, "stream_options.include_usage", -1, "must be a boolean"},
		{`{"unfray":{"heal":{}}}`, "unfray.heal", -1, "must be a string, not an object"},
		{`{"n":1,"n":2}`, "n", -1, "given twice"},
		{`{"unfray":{"heal":"off","h\u0065al":"off"}}`, "unfray.heal", -1, "given twice"},
	} {
		_, err := DecodeCompletion([]byte(c.body))
		var e *DecodeError
		if !errors.As(err, &e) {
			t.Errorf("%.60s: %v", c.body, err)
			continue
		}
		if e.Param != c.param || e.Offset != c.offset || !strings.Contains(e.Error(), c.text) {
			t.Errorf("%.60s: param %q, offset %d, %q; want %q, %d, %q", c.body, e.Param, e.Offset, e, c.param, c.offset, c.text)
		}
	}
	for body, param := range map[string]string{
		`{"messages":[{"role":"user","content":"x"},{"role":5}]}`:          "messages[1].role",
		`{"messages":[{"content":"x"}]}`:                                   "messages[0]",
		`{"messages":[{"role":"user","content":[{"type":"text"},"x"]}]}`:   "messages[0].content[1]",
		`{"messages":[{"role":"user","content":[{"type":3}]}]}`:            "messages[0].content[0].type",
		`{"messages":[{"role":"u","content":[{"type":"text","text":1}]}]}`: "messages[0].content[0].text",
		`{"chat_template_kwargs":{"a":{"b":1,"b":2}}}`:                     "chat_template_kwargs.a.b",
	} {
		_, err := DecodeChat([]byte(body))
		var e *DecodeError
		if !errors.As(err, &e) || e.Param != param {
			t.Errorf("%s: %v, want one for %q", body, err, param)
		}
	}
}

// Bodies that make decoders slow must not. Quadratic work on a megabyte
// takes minutes.
func TestDecodeIsLinear(t *testing.T) {
	const size = 1 << 20
	fill := func(head, unit, tail string) []byte {
		return []byte(head + strings.Repeat(unit, size/len(unit)) + tail)
	}
	for name, body := range map[string][]byte{
		"IDs":            fill(`{"prompt":[`, "1,", "1]}"),
		"lists of IDs":   fill(`{"prompt":[`, "[1],", "[1]]}"),
		"texts":          fill(`{"prompt":[`, `"a",`, `"a"]}`),
		"escapes":        fill(`{"prompt":"`, `\u00e9`, `"}`),
		"backslashes":    fill(`{"prompt":"`, `\\`, `"}`),
		"unclosed":       fill(`{"prompt":"`, `[{`, ``),
		"unknown fields": fill(`{"x":[`, `{"a":[]},`, `0]}`),
		"content parts":  fill(`{"messages":[{"role":"user","content":[`, `{"type":"text","text":"a"},`, `{"type":"text","text":""}]}]}`),
		"messages":       fill(`{"messages":[`, `{"role":"user","content":"a"},`, `{"role":"user"}]}`),
	} {
		start := time.Now()
		DecodeCompletion(body)
		DecodeChat(body)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"a\u00e9\ud83d\ude42","n":1,"stop":["x"],"logit_bias":{"1":2}}`, `{"prompt":[[1],[2,3]]}`, `{"prompt":["a"]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"chat_template_kwargs":{"a":[1]}}`,
		`{"prompt":"a","x":1e999}`, `{"prompt":"\ud83d"}`, `{"a":{"b":[{}]}}`, `[`, `{"prompt":1}`, `{"n":1e2,"seed":-0}`, "{\"\xff\":1}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		req, err := DecodeCompletion(b)
		var e *DecodeError
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error of type %T", err)
		}
		if chat, err := DecodeChat(b); err != nil && !errors.As(err, &e) {
			t.Fatalf("error of type %T", err)
		} else if err == nil {
			for _, m := range chat.Messages {
				if !utf8.ValidString(m.Content) {
					t.Errorf("content %q", m.Content)
				}
			}
		}
		if err != nil {
			return
		}
		// What is accepted, encoding/json reads the same way. A field that is ignored
		// may hold a number beyond any float.
		var oracle map[string]any
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if err := d.Decode(&oracle); err != nil || !json.Valid(b) {
			t.Fatalf("accepted what is no JSON object: %v", err)
		}
		if s, ok := oracle["prompt"].(string); ok && (len(req.Prompts) != 1 || req.Prompts[0].Text != s) {
			t.Errorf("prompt %q, encoding/json reads %q", req.Prompts, s)
		}
		if l, ok := oracle["prompt"].([]any); ok {
			if _, ids := l[0].(json.Number); ids && len(req.Prompts[0].IDs) != len(l) || !ids && len(req.Prompts) != len(l) {
				t.Errorf("prompts %v, encoding/json reads %v", req.Prompts, l)
			}
		}
		if x, ok := oracle["temperature"].(json.Number); ok {
			if want, err := x.Float64(); err != nil || *req.Temperature != want {
				t.Errorf("temperature %v, encoding/json reads %v", *req.Temperature, x)
			}
		}
		for name := range oracle {
			known := req.Sampling.reader(new([]string))
			if _, ok := known[name]; !ok && !slices.Contains(req.Ignored, name) &&
				!slices.Contains([]string{"model", "prompt", "logprobs", "echo", "best_of", "suffix"}, name) {
				t.Errorf("field %q is neither known nor ignored: %q", name, req.Ignored)
			}
		}
	})
}

// What takes many times its own bytes is bounded.
func TestDecodeBounds(t *testing.T) {
	list := func(of string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + "]"
	}
	var members strings.Builder
	for i := range maxMembers {
		fmt.Fprintf(&members, `"%d":0,`, i)
	}
	completion := func(b []byte) error { _, err := DecodeCompletion(b); return err }
	native := func(b []byte) error { _, err := DecodeNative(b); return err }
	for _, tc := range []struct {
		decode func([]byte) error
		body   string
		ok     bool
	}{
		{completion, `{"prompt":` + list(`"a"`, maxPrompts) + `}`, true},
		{completion, `{"prompt":` + list(`"a"`, maxPrompts+1) + `}`, false},
		{completion, `{"prompt":` + list(`[1]`, maxPrompts+1) + `}`, false},
		{completion, `{"prompt":` + list(`1`, 10*maxPrompts) + `}`, true},
		{native, `{"prompt":` + list(`"a"`, maxPrompts) + `}`, true},
		{native, `{"prompt":` + list(`"a"`, maxPrompts+1) + `}`, false},
		{native, `{"prompt":` + list(`[1]`, maxPrompts+1) + `}`, false},
		{native, `{"prompt":` + list(`1,"a"`, maxParts/2) + `}`, true},
		{native, `{"prompt":` + list(`1,"a"`, maxParts/2+1) + `}`, false},
		{native, `{"prompt":` + list(list(`1,""`, maxParts/4), 3) + `}`, false},
		{native, `{"prompt":` + list(`1`, 10*maxPrompts) + `}`, true},
		{completion, `{"logit_bias":{` + strings.TrimSuffix(members.String(), ",") + `}}`, true},
		{completion, `{` + members.String() + `"x":0}`, false},
	} {
		if err := tc.decode([]byte(tc.body)); (err == nil) != tc.ok {
			t.Errorf("%.40s… of %d bytes: %v", tc.body, len(tc.body), err)
		}
	}
}
