package chattemplate

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestContentForms compares with what vLLM found and made, in testdata/parts.json.
func TestContentForms(t *testing.T) {
	var record struct {
		Templates, Formats []string
		Messages           []map[string]any
		Contents           []map[string]any
	}
	readJSON(t, "testdata/parts.json", &record)
	if len(record.Templates) != len(record.Formats) || len(record.Messages) != len(record.Contents) {
		t.Fatal("testdata/parts.json is not recorded")
	}
	for i, source := range record.Templates {
		list, open := pieces(source)
		if got := takesParts(list); open != "" || got != (record.Formats[i] == "openai") {
			t.Errorf("%s: takes parts: %v, vLLM says %s", source, got, record.Formats[i])
		}
	}
	for i, m := range record.Messages {
		message := objectOf(m)
		for form, want := range record.Contents[i] {
			tmpl := &Template{takesParts: form == "openai"}
			out, err := tmpl.Fit([]*Object{message})
			if err != nil {
				t.Errorf("%v: %v", m, err)
				continue
			}
			if text, ok := m["content"].(string); ok && form == "openai" {
				want = text // strings stay
			}
			if got := plain(out[0].values["content"]); !reflect.DeepEqual(got, want) {
				t.Errorf("%v as %s: %#v, vLLM makes %#v", m["content"], form, got, want)
			}
		}
		if !reflect.DeepEqual(plain(message), any(m)) {
			t.Errorf("%v was changed to %v", m, plain(message))
		}
	}
}

// TestCallsAsVLLM compares with what vLLM makes of tool calls, in testdata/parts.json.
func TestCallsAsVLLM(t *testing.T) {
	var record struct{ Called, Calls []json.RawMessage }
	readJSON(t, "testdata/parts.json", &record)
	if len(record.Called) == 0 || len(record.Called) != len(record.Calls) {
		t.Fatal("testdata/parts.json is not recorded")
	}
	for i, calls := range record.Called {
		conv, err := ParseConversation([]byte(`[{"role":"assistant","content":"","tool_calls":` + string(calls) + `}]`))
		if err != nil {
			t.Errorf("%s: %v", calls, err)
			continue
		}
		want, err := Decode(record.Calls[i])
		if err != nil {
			t.Fatal(err)
		}
		if got := conv.Messages[0].values["tool_calls"]; !reflect.DeepEqual(plain(got), plain(want)) {
			t.Errorf("%s: %v, vLLM makes %s", calls, plain(got), record.Calls[i])
		}
	}
}

// TestContentFormsOfModels compares the templates of the vocabulary folder with
// testdata/partsvocabs.json.
func TestContentFormsOfModels(t *testing.T) {
	sources := templateSources(t)
	var record struct{ Formats map[string]string }
	readJSON(t, "testdata/partsvocabs.json", &record)
	if len(record.Formats) < 15 {
		t.Errorf("only %d templates", len(record.Formats))
	}
	for hash, want := range record.Formats {
		source, ok := sources[hash]
		if !ok {
			t.Errorf("a template of the record is not in the vocabulary folder: fetch the vocabularies again, or record anew")
			continue
		}
		tmpl, err := Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if tmpl.TakesParts() != (want == "openai") {
			t.Errorf("%.80q…: takes parts: %v, vLLM says %s", source, tmpl.TakesParts(), want)
		}
	}
}

// A template that takes parts writes the same for a string as for a part of text,
// which is what vLLM gives it.
func TestStringsAsParts(t *testing.T) {
	for path, source := range readTemplates(t) {
		tmpl, err := Compile(source)
		if err != nil || !tmpl.TakesParts() {
			continue
		}
		text := &Conversation{Messages: []*Object{NewMessage("user", "Hello"), NewMessage("assistant", "Hi."), NewMessage("user", " you ")}}
		parts := &Conversation{}
		for _, m := range text.Messages {
			part := &Object{}
			part.Set("type", "text")
			part.Set("text", m.Text("content"))
			m = m.Clone()
			m.Set("content", []any{part})
			parts.Messages = append(parts.Messages, m)
		}
		one, err := tmpl.Render(t.Context(), text, Names{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if other, err := tmpl.Render(t.Context(), parts, Names{}); err != nil || one != other {
			t.Errorf("%s: %q, with parts %q, %v", path, one, other, err)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	for content, want := range map[string]string{
		`[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:,"}}]`: `messages[1].content[1] is of type "image_url"`,
		`[7]`:                         "neither a string nor an object",
		`[{"text":"a"}]`:              "has no type",
		`[{"type":"text","text":[]}]`: "no string",
	} {
		conv, err := ParseConversation([]byte(`[{"role":"user","content":"x"},{"role":"user","content":` + content + `}]`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = (&Template{}).Fit(conv.Messages)
		if refused := (*RefusedError)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Text, want) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// A prompt of parts is that of their text.
func TestPromptOfParts(t *testing.T) {
	tok := toyTokenizer(t)
	chat, err := New("{% for m in messages %}{{ m.content + '<|im_end|>' }}{% endfor %}", tok)
	if err != nil {
		t.Fatal(err)
	}
	var prompts []string
	for _, content := range []string{`"one\ntwo"`, `[{"type":"text","text":"one"},{"type":"text","text":"two"}]`} {
		conv, err := ParseConversation([]byte(`[{"role":"user","content":` + content + `}]`))
		if err != nil {
			t.Fatal(err)
		}
		ids, err := chat.Prompt(t.Context(), conv)
		if err != nil {
			t.Fatal(err)
		}
		prompts = append(prompts, string(tok.Decode(nil, ids)))
	}
	if prompts[0] != prompts[1] || !strings.Contains(prompts[0], "one\ntwo") {
		t.Errorf("%q", prompts)
	}
}

// TestHostileContentForm takes templates that nest as deep as their length allows.
func TestHostileContentForm(t *testing.T) {
	const n = maxTemplate / 8
	loop := "{% for m in messages %}{% for c in m.content %}{% endfor %}{% endfor %}"
	for name, source := range map[string]string{
		"calls":     "{% macro f(x) %}{% endmacro %}{{ " + strings.Repeat("f(", n) + strings.Repeat(")", n) + " }}" + loop,
		"brackets":  "{% for c in " + strings.Repeat("(", n) + "messages" + strings.Repeat(")", n) + " %}{% endfor %}" + loop,
		"filtered":  "{% for c in " + strings.Repeat("(", n) + "messages" + strings.Repeat(")|list", n/2) + " %}{% endfor %}" + loop,
		"macros":    strings.Repeat("{% macro f(x) %}", n/2) + strings.Repeat("{% endmacro %}", n/2) + loop,
		"names":     strings.Repeat("{% set a = messages %}{% set b = a %}", n/5) + loop,
		"one macro": "{% macro f(x) %}" + loop + "{% endmacro %}" + strings.Repeat("{{ f(m.content) }}", n/3),
	} {
		start := time.Now()
		list, _ := pieces(source)
		if !takesParts(list) {
			t.Errorf("%s: the loop over the content is not found", name)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("%s: %v for %d bytes", name, d, len(source))
		}
	}
}

// FuzzContentForm looks for tags that the search cannot read.
func FuzzContentForm(f *testing.F) {
	for _, s := range []string{"{% for m in messages %}{% for c in m.content %}", "{% macro f(x %}{{ f( }}", "{% for in %}{% set = %}{% macro %}",
		"{% for c in ((m) %}{% endmacro %}", "{% set a = (messages %}{{ a[ }}{% for x in a[ %}", "{%macro !0%%}", "{% for x in messages | %}{% for y in x[ %}"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, source string) {
		list, _ := pieces(source)
		takesParts(list)
	})
}

// objectOf and plain turn maps to objects and back.
func objectOf(m map[string]any) *Object {
	out := &Object{}
	for k, v := range m {
		out.Set(k, valueOf(v))
	}
	return out
}

func valueOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return objectOf(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = valueOf(e)
		}
		return out
	}
	return v
}

func plain(v any) any {
	switch v := v.(type) {
	case *Object:
		out := map[string]any{}
		for k, e := range v.values {
			out[k] = plain(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	}
	return v
}
