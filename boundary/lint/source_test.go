package lint_test

import (
	"strings"
	"testing"

	"github.com/unfray/unfray/boundary/lint"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		path, contents string
		want           []lint.Source
		err            string
	}{
		{"a.txt", "hi", []lint.Source{{File: "a.txt", Kind: lint.Template}}, ""},
		{"a.MD", "hi", []lint.Source{{File: "a.MD", Kind: lint.Markdown}}, ""},
		{"a.jinja", "hi", []lint.Source{{File: "a.jinja", Kind: lint.Jinja}}, ""},
		{"a.jsonl", `{"text":"hi"}` + "\n\n" + `{"prompt":"hi"}` + "\n" + `{"bytes":"aGk="}`, []lint.Source{
			{File: "a.jsonl", Line: 1, Kind: lint.Prompt}, {File: "a.jsonl", Line: 3, Kind: lint.Prompt}, {File: "a.jsonl", Line: 4, Kind: lint.Prompt},
		}, ""},
		{"a.jsonl", `{"text":"\ud800"}`, nil, "a.jsonl: line 1: "},
		{"a.jsonl", "{}\n", nil, `none of "text", "prompt" and "bytes"`},
		{"tokenizer_config.json", `{"chat_template":"hi"}`, []lint.Source{{File: "tokenizer_config.json", Name: "chat_template", Kind: lint.Jinja}}, ""},
		{"tokenizer_config.json", `{"chat_template":[{"name":"a","template":"hi"},{"name":"b","template":"hi"}]}`, []lint.Source{
			{File: "tokenizer_config.json", Name: "a", Kind: lint.Jinja}, {File: "tokenizer_config.json", Name: "b", Kind: lint.Jinja},
		}, ""},
		{"config.json", `{}`, nil, `has no "chat_template"`},
		{"config.json", `{"chat_template":3}`, nil, "neither a text nor a list"},
		{"config.json", `[`, nil, "config.json: "},
	} {
		got, err := lint.Read(tt.path, []byte(tt.contents))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s %q: error %v, want one with %q", tt.path, tt.contents, err, tt.err)
			}
			continue
		}
		if err != nil || len(got) != len(tt.want) {
			t.Errorf("%s %q: %v, %v", tt.path, tt.contents, got, err)
			continue
		}
		for i, s := range got {
			w := tt.want[i]
			if string(s.Text) != "hi" || s.File != w.File || s.Line != w.Line || s.Name != w.Name || s.Kind != w.Kind {
				t.Errorf("%s: got %+v, want %+v", tt.path, s, w)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a.jsonl", []byte(`{"text":"hi"}`))
	f.Add("a.json", []byte(`{"chat_template":[{"name":"a","template":"hi"}]}`))
	f.Add("a.md", []byte("\xff"))
	f.Fuzz(func(t *testing.T, path string, contents []byte) {
		sources, err := lint.Read(path, contents)
		for _, s := range sources {
			if s.Kind == "" || err != nil {
				t.Fatalf("%q: %+v, %v", path, s, err)
			}
		}
	})
}
