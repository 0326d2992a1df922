package chattemplate

import (
	"encoding/json"
	"os"
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
