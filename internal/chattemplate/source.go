package chattemplate

import (
	"fmt"
	"strings"
	"unicode"
)

// translate writes a template so that the engine gives it the meaning that it
// has in transformers.
//
//   - All handling of white space is done here, and text becomes string
//     expressions, so that none is left to the engine: it trims by nearly the
//     same rules, but looks past expressions for the text to trim.
//   - The filters and the output of values whose results differ are replaced by
//     functions of this package, see [builtins].
//   - The body of a loop that sets names gets a scope of its own in each round,
//     as Jinja gives it.
//   - Macros count how deep they call each other, because the engine recurses on
//     Go's stack, the end of which ends the process.
//
// A tag without end is an error.
func translate(src string) (string, error) {
	list, open := pieces(src)
	if open != "" {
		return "", fmt.Errorf("the tag %q is not closed", open)
	}
	scoped := scopedLoops(list)
	var out strings.Builder
	out.Grow(2 * len(src))
	for i, p := range list {
		literal(&out, p.text)
		if scoped[i] == -1 {
			out.WriteString("{% endcall %}")
		}
		switch t := p.tag; {
		case t.source == "" || t.source[1] == '#':
		case t.source[1] == '{':
			out.WriteString("{{ (")
			out.WriteString(renameFilters(t.inside()))
			out.WriteString(") | " + prefix + "output }}")
		default:
			if t.name() == "endmacro" {
				out.WriteString("{{ " + prefix + "leave() }}")
			}
			out.WriteString("{% ")
			out.WriteString(renameFilters(strings.TrimSpace(t.inside())))
			out.WriteString(" %}")
			if t.name() == "macro" {
				out.WriteString("{{ " + prefix + "enter() }}")
			}
		}
		if scoped[i] == 1 {
			out.WriteString("{% call " + prefix + "scope() %}")
		}
	}
	return out.String(), nil
}

// literal writes text as a string expression.
func literal(out *strings.Builder, text string) {
	if text == "" {
		return
	}
	out.WriteString(`{{ "`)
	out.WriteString(strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text))
	out.WriteString(`" }}`)
}

// scopedLoops finds the loops whose bodies set names: 1 for the tag before such
// a body, -1 for the tag after it. Bodies with break or continue are left out,
// because a body with a scope of its own has no loop to leave, and so are loops
// with else.
func scopedLoops(list []piece) []int8 {
	type block struct {
		start, loop              int // loop is the place in open of the innermost loop, -1 if there is none
		isLoop, sets, leave, alt bool
	}
	out := make([]int8, len(list))
	open := []block{{loop: -1}}
	for i, p := range list {
		top := len(open) - 1
		loop := open[top].loop
		switch name := p.tag.name(); name {
		case "for":
			open = append(open, block{start: i, loop: top + 1, isLoop: true})
		case "if":
			open = append(open, block{start: i, loop: loop})
		case "else":
			open[top].alt = true
		case "set":
			if loop >= 0 {
				open[loop].sets = true
			}
		case "break", "continue":
			if loop >= 0 {
				open[loop].leave = true
			}
		case "endif", "endfor":
			if b := open[top]; top > 0 {
				open = open[:top]
				if b.isLoop && b.sets && !b.leave && !b.alt {
					out[b.start], out[i] = 1, -1
				}
			}
		}
	}
	return out
}

// prefix begins the names of this package's functions in a template.
const prefix = "unfray_"

// renameFilters lets an expression use this package's filters. Strings stay.
func renameFilters(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\'' || c == '"' {
			n := stringLen(s[i:])
			b.WriteString(s[i : i+n])
			i += n - 1
			continue
		}
		b.WriteByte(c)
		if c != '|' {
			continue
		}
		rest := strings.TrimLeftFunc(s[i+1:], unicode.IsSpace)
		name := rest
		if end := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }); end >= 0 {
			name = rest[:end]
		}
		if _, ok := filters[name]; ok {
			b.WriteString(" " + prefix)
			i = len(s) - len(rest) - 1
		}
	}
	return b.String()
}

// stringLen returns the length of the string literal that s begins with, that
// of s if the literal has no end.
func stringLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return len(s)
}

// piece is a text and the tag after it, the last one without a tag.
type piece struct {
	text string
	tag  tag
}

// pieces cuts a template's source and does all of Jinja's handling of white
// space:
//
//   - A minus sign in a tag drops the white space on that side.
//   - The settings trim_blocks and lstrip_blocks, which Hugging Face's
//     libraries set, so that templates are written for them: tags of blocks and
//     comments lose the newline after them and the blanks between them and the
//     start of their line. A plus sign prevents it.
//   - Line ends become \n, and one at the end of the template is dropped.
//
// What stands in {% raw %} is text.
//
// open is the beginning of a tag without end, if there is one.
func pieces(src string) (list []piece, open string) {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	src = strings.TrimSuffix(src, "\n")
	lineStart := true // src begins a line, as far as the output is concerned
	raw := false
	pending := "" // text before and in a raw block
	for {
		text, t := nextTag(src, raw)
		if t.source == "" {
			return append(list, piece{text: pending + src}), unclosed(src, raw)
		}
		src = src[len(text)+len(t.source):]
		wasRaw := raw
		raw = !wasRaw && t.name() == "raw"
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
		pending += text
		if raw || wasRaw {
			continue
		}
		list = append(list, piece{pending, t})
		pending = ""
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
	if t.source == "" || t.source[1] != '%' {
		return ""
	}
	s := strings.TrimLeftFunc(t.inside(), unicode.IsSpace)
	if end := strings.IndexFunc(s, unicode.IsSpace); end >= 0 {
		s = s[:end]
	}
	return s
}

// inside is what stands between the signs.
func (t tag) inside() string {
	s := t.source[2 : len(t.source)-2]
	if s != "" && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	if n := len(s); n > 0 && (s[n-1] == '-' || s[n-1] == '+') {
		s = s[:n-1]
	}
	return s
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
			i += stringLen(s[i:]) - 1
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

// unclosed returns the beginning of a tag without end in text that was searched
// for tags, "" if there is none.
func unclosed(text string, raw bool) string {
	if raw {
		return "{% raw %}"
	}
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '{' && strings.IndexByte("{%#", text[i+1]) >= 0 {
			return text[i:min(len(text), i+40)]
		}
	}
	return ""
}
