package chattemplate

import (
	"path/filepath"
	"testing"
)

func TestForm(t *testing.T) {
	for _, c := range []struct {
		name, template string
		want           Form
		ok             bool
	}{
		{"objects", "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}", Form{}, true},
		{"each argument", "{% for m in messages %}{% for c in m.tool_calls or [] %}{% for k, v in c.function.arguments | items %}{{ k }}{{ v }}{% endfor %}{% endfor %}{% endfor %}", Form{}, true},
		{"texts", "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ 'x' + c.function.arguments }}{% endfor %}{% endfor %}", Form{TextArguments: true}, true},
		{"null", "{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}{% endfor %}", Form{NullContent: true}, true},
		{"both", "{% for m in messages %}{% if m.content is none %}{{ 'x' + m.tool_calls[0].function.arguments }}{% endif %}{% endfor %}", Form{TextArguments: true, NullContent: true}, true},
		{"none", "{% for m in messages %}{{ m.content }}{% endfor %}", Form{}, false},
		{"reasoning", "{% for m in messages %}{{ m.reasoning }}{% endfor %}", Form{Reasoning: "reasoning"}, false},
		{"refused", "{{ raise_exception('no') }}", Form{}, false},
	} {
		tmpl, err := Compile(c.template)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if f, ok := tmpl.Form(t.Context(), Names{}); f != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %t, want %+v, %t", c.name, f, ok, c.want, c.ok)
		}
	}
}

func TestFormApply(t *testing.T) {
	conv, err := ParseConversation([]byte(`[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"b\":[1,2.0,\"é\"],\"a\":null}"}}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Form{TextArguments: true, NullContent: true}.Apply(conv.Messages)
	if err != nil {
		t.Fatal(err)
	}
	text, err := WriteJSON(got[1])
	const want = `{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{\"b\": [1, 2.0, \"é\"], \"a\": null}"}}], "content": null}`
	if err != nil || text != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	if before, _ := WriteJSON(conv.Messages[1]); before == text {
		t.Error("the messages that were given are changed")
	}
}

// The forms of real templates, as their sources say.
func TestFormOfModels(t *testing.T) {
	want := map[string]Form{
		"meta-llama-Llama-3.1-8B-Instruct": {}, "Qwen-Qwen3-0.6B": {}, "openai-gpt-oss-120b": {Reasoning: "thinking"}, "mistralai-Mistral-Nemo-Instruct-2407": {},
		"deepseek-ai-DeepSeek-R1-Distill-Llama-8B": {TextArguments: true, NullContent: true},
	}
	sources := templateFiles(t)
	for name, form := range want {
		source, ok := sources[name]
		if !ok {
			t.Errorf("%s is not in the vocabulary folder", name)
			continue
		}
		tmpl, err := Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := tmpl.Form(t.Context(), Names{}); f != form || !ok {
			t.Errorf("%s: %+v, %t, want %+v", name, f, ok, form)
		}
	}
}

// templateFiles reads the files of templates, by name.
func templateFiles(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for path, source := range readTemplates(t) {
		out[filepath.Base(path[:len(path)-len(filepath.Ext(path))])] = source
	}
	return out
}
