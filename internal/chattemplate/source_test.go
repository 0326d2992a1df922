package chattemplate

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzPieces checks that cutting a template loses nothing but white space and
// signs, and that whatever is cut compiles or is refused.
func FuzzPieces(f *testing.F) {
	for _, s := range []string{
		"{%- if a -%} x {%+ endif +%}\n", "{# c #}\n {{ '}}' }}", "{% raw %}{{ {% endraw %}", "{{", "{%}", "{%%}", "{##}", "{#}", "{{'\\", "a\r\nb\r",
		"{% for a in b %}{% set c = a | trim %}{% endfor %}", "{{ a|\ntojson }}{{ '|trim' }}", "{%-%}", "{{-}}", "{{+-}}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		// White space and signs are all that may go.
		keep := func(s string) string {
			return strings.Map(func(r rune) rune {
				if strings.ContainsRune("+-", r) || strings.TrimSpace(string(r)) == "" {
					return -1
				}
				return r
			}, s)
		}
		var out strings.Builder
		list, _ := pieces(s)
		for _, p := range list {
			out.WriteString(p.text + p.tag.source)
		}
		if utf8.ValidString(s) && !strings.Contains(s, "raw") && keep(out.String()) != keep(s) {
			t.Errorf("%q became %q", s, out.String())
		}
		if len(s) < 2000 {
			_, _ = compile(s)
		}
	})
}
