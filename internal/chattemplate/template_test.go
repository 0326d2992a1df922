package chattemplate

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// TestTemplatesRenderAsInJinja compares with what Jinja itself made of real
// templates' constructs, recorded by testdata/render.py.
func TestTemplatesRenderAsInJinja(t *testing.T) {
	data, err := os.ReadFile("testdata/templates.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name     string
		Template string
		Messages []json.RawMessage
		Generate *bool `json:"add_generation_prompt"`
		Want     *string
		Refused  string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			tmpl, err := Compile(c.Template)
			if err != nil {
				t.Fatal(err)
			}
			conv := &Conversation{AddGenerationPrompt: c.Generate == nil || *c.Generate}
			for _, m := range c.Messages {
				v, err := Decode(m)
				if err != nil {
					t.Fatal(err)
				}
				conv.Messages = append(conv.Messages, v.(*Object))
			}
			got, err := tmpl.Render(t.Context(), conv, Names{BOS: "<s>", EOS: "</s>"})
			switch {
			case c.Want == nil && err == nil:
				t.Errorf("rendered %q, Jinja refuses: %s", got, c.Refused)
			case c.Want != nil && err != nil:
				t.Errorf("refused: %v; Jinja renders %q", err, *c.Want)
			case c.Want != nil && got != *c.Want:
				t.Errorf("got  %q\nwant %q", got, *c.Want)
			}
		})
	}
}

// TestMacrosCallEachOther refuses what never ends, and renders what does.
func TestMacrosCallEachOther(t *testing.T) {
	for source, want := range map[string]string{
		"{% macro f(n) %}{% if n > 0 %}({{ f(n - 1) }}){% endif %}{% endmacro %}{{ f(300) }}":       strings.Repeat("(", 300) + strings.Repeat(")", 300),
		"{% macro f(n) %}{{ n }}{% endmacro %}{% for i in range(2000) %}{{ f(1) }}{% endfor %}":     strings.Repeat("1", 2000),
		"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}":                                           "",
		"{% macro f() %}{{ g() }}{% endmacro %}{% macro g() -%} {{ f() }} {%- endmacro %}{{ f() }}": "",
	} {
		tmpl, err := Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tmpl.Render(t.Context(), &Conversation{}, Names{})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %.40q, %v", source, got, err)
		}
		if want == "" && !errors.As(err, new(*RefusedError)) {
			t.Errorf("%s: %v", source, err)
		}
	}
}
