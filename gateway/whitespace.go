package gateway

import (
	"strings"
	"unicode"
)

// trimBlocks does all of Jinja's handling of white space on a template's
// source, where it belongs to the syntax, and leaves none to the engine:
//
//   - A minus sign in a tag drops the white space on that side.
//   - The settings trim_blocks and lstrip_blocks, which Hugging Face's
//     libraries set, so that templates are written for them: tags of blocks and
//     comments lose the newline after them and the blanks between them and the
//     start of their line. A plus sign prevents it.
//   - Line ends become \n, and one at the end of the template is dropped.
func trimBlocks(src string) string {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	src = strings.TrimSuffix(src, "\n")
	var out strings.Builder
	out.Grow(len(src))
	lineStart := true // src begins a line, as far as the output is concerned
	raw := false
	for {
		text, t := nextTag(src, raw)
		if t.source == "" {
			out.WriteString(src)
			return out.String()
		}
		src = src[len(text)+len(t.source):]
		raw = t.name() == "raw"
		switch sign := t.source[2]; {
		case sign == '-':
			text = strings.TrimRightFunc(text, unicode.IsSpace)
		case sign != '+' && t.source[1] != '{':
			text = trimIndent(text, lineStart)
		}
		lineStart = false
		switch sign := t.source[len(t.source)-3]; {
		case sign == '-':
			src = strings.TrimLeftFunc(src, unicode.IsSpace)
		case sign != '+' && t.source[1] != '{' && !raw:
			src, lineStart = strings.CutPrefix(src, "\n")
		}
		out.WriteString(text)
		out.WriteString(t.withoutSigns())
	}
}

// trimIndent drops blanks at the end of text if nothing else is on their line.
func trimIndent(text string, lineStart bool) string {
	trimmed := strings.TrimRightFunc(text, func(r rune) bool { return r != '\n' && unicode.IsSpace(r) })
	if strings.HasSuffix(trimmed, "\n") || trimmed == "" && lineStart {
		return trimmed
	}
	return text
}

// tag is a tag of a template: {{ … }}, {% … %} or {# … #}.
type tag struct{ source string }

// name is the first word of a block, "" of other tags.
func (t tag) name() string {
	if t.source[1] != '%' {
		return ""
	}
	words := strings.Fields(strings.Trim(t.source[2:len(t.source)-2], "+-"))
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// withoutSigns drops the signs at both ends: they have done their work.
func (t tag) withoutSigns() string {
	b := []byte(t.source)
	for _, i := range []int{2, len(b) - 3} {
		if i >= 2 && (b[i] == '-' || b[i] == '+') {
			b[i] = ' '
		}
	}
	return string(b)
}

// nextTag finds the first tag of src and the text before it. Within raw only
// endraw is one. A tag without end is none: what follows cannot be parsed.
func nextTag(src string, raw bool) (text string, t tag) {
	for i := 0; i+1 < len(src); i++ {
		if src[i] != '{' || strings.IndexByte("{%#", src[i+1]) < 0 {
			continue
		}
		if raw && src[i+1] != '%' {
			continue
		}
		n := tagLen(src[i:])
		if n == 0 {
			return src, tag{}
		}
		t = tag{src[i : i+n]}
		if !raw || t.name() == "endraw" {
			return src[:i], t
		}
	}
	return src, tag{}
}

// tagLen returns the length of the tag that s begins with, 0 if it has no end.
func tagLen(s string) int {
	end := string([]byte{s[1], '}'})
	if s[1] == '{' {
		end = "}}"
	}
	if s[1] == '#' {
		if i := strings.Index(s[2:], end); i >= 0 {
			return i + 4
		}
		return 0
	}
	depth := 0 // of braces: {{ {'a': {}} }} ends at the last pair
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' || c == '"':
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case depth == 0 && strings.HasPrefix(s[i:], end):
			return i + 2
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		}
	}
	return 0
}
