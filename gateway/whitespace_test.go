package gateway

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/ardanlabs/jinja"
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
		Messages []map[string]any
		Generate *bool `json:"add_generation_prompt"`
		Want     *string
		Refused  string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			tmpl, err := compile(c.Template)
			if err != nil {
				t.Fatal(err)
			}
			var messages []any
			for _, m := range c.Messages {
				messages = append(messages, m)
			}
			got, err := tmpl.RenderValues(map[string]jinja.Value{
				"messages":              jinja.FromGoValue(messages),
				"add_generation_prompt": jinja.NewBool(or(c.Generate, true)),
				"bos_token":             jinja.NewString("<s>"), "eos_token": jinja.NewString("</s>"),
				"tools": jinja.None(), "documents": jinja.None(),
			})
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
