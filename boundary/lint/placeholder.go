package lint

import (
	"bytes"
	"regexp"
	"unicode"
)

// placeholder is where a value is put into a template.
type placeholder struct{ start, end int }

// placeholderForms are the usual notations, each with a name: {{name}} of
// Mustache and Handlebars, {name} of Python and LangChain, ${name} of shells,
// <NAME> of prompts written by hand, %s and %(name)s of printf.
var placeholderForms = regexp.MustCompile(
	`\{\{\{?[-~#/^>&]?\s*[A-Za-z_][\w.\[\]'" |-]*[-~]?\}?\}\}` +
		`|\$\{[A-Za-z_][\w.]*\}` +
		`|\{[A-Za-z_]\w*(?:\.\w+|\[\w+\])*(?:![rsa])?(?::[^{}\s]{0,12})?\}` +
		`|<[A-Z][A-Z0-9_]{2,}>` +
		`|%(?:\([A-Za-z_]\w*\))?[sd]\b`)

// codeForms are the parts of Markdown in which braces are code.
var codeForms = regexp.MustCompile("(?ms)^[ \t]*(?:```|~~~).*?(?:^[ \t]*(?:```|~~~)[ \t]*$|\\z)|`[^`\n]+`")

// findPlaceholders lists the placeholders of a text in order.
func findPlaceholders(text []byte, kind Kind) []placeholder {
	var code [][]int
	if kind == Markdown {
		code = codeForms.FindAllIndex(text, -1)
	}
	var found []placeholder
	skipped := -1 // end of the last braces that are an argument of LaTeX
	for _, m := range placeholderForms.FindAllIndex(text, -1) {
		for len(code) > 0 && code[0][1] <= m[0] {
			code = code[1:]
		}
		switch {
		case len(code) > 0 && code[0][0] <= m[0]:
			continue
		case text[m[0]] == '{' && (m[0] == skipped || latexCommand(text[:m[0]])):
			skipped = m[1]
			continue
		}
		found = append(found, placeholder{m[0], m[1]})
	}
	return found
}

// latexCommand reports whether text ends in a command such as \frac, or in the
// backslash that escapes a brace.
func latexCommand(text []byte) bool {
	rest := bytes.TrimRightFunc(text, unicode.IsLetter)
	return bytes.HasSuffix(rest, []byte(`\`))
}

// placeholders looks at the seams before the values of a template. It reports
// whether a value ends the text.
func (c *check) placeholders(kind Kind) (ended bool) {
	found := findPlaceholders(c.text, kind)
	from := 0
	for i, p := range found {
		last := i == len(found)-1 && len(bytes.TrimSpace(c.text[p.end:])) == 0
		before := c.text[from:p.start]
		if m := c.seam(before); m != nil {
			name := string(c.text[p.start:p.end])
			f := m.finding(c, name, last)
			f.Offset, f.Length = p.start-len(m.moving), len(m.moving)
			if f.Severity == Warning {
				f.Offset, f.Length = p.start-len(m.blanks), len(m.blanks)
				f.Replacement = replace("")
			}
			c.add(f)
		}
		from, ended = p.end, last
	}
	return ended
}
