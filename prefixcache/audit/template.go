package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// Template is a text with placeholders for values, in the notations {name},
// {{name}}, ${name}, <NAME> and %(name)s.
type Template struct {
	text  []byte
	holes []hole
}

// hole is a placeholder: bytes of the template and the name in it.
type hole struct {
	at   span
	name string
}

// holeForms are the notations, each with a group for the name.
var holeForms = regexp.MustCompile(
	`\{\{\{?\s*([A-Za-z_][\w.]*)\s*\}?\}\}` +
		`|\$\{([A-Za-z_][\w.]*)\}` +
		`|\{([A-Za-z_][\w.]*)(?:![rsa])?(?::[^{}\s]{0,12})?\}` +
		`|<([A-Z][A-Z0-9_]{2,})>` +
		`|%\(([A-Za-z_]\w*)\)[sd]`)

// NewTemplate reads a template. What stands in braces after a command of LaTeX
// is none of its placeholders.
func NewTemplate(text []byte) *Template {
	t := &Template{text: text}
	skipped := -1
	for _, m := range holeForms.FindAllSubmatchIndex(text, -1) {
		if text[m[0]] == '{' && (m[0] == skipped || latex(text[:m[0]])) {
			skipped = m[1]
			continue
		}
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 {
				t.holes = append(t.holes, hole{span{m[0], m[1]}, string(text[m[g]:m[g+1]])})
			}
		}
	}
	return t
}

// latex reports whether text ends in a command such as \frac or in a backslash.
func latex(text []byte) bool {
	return bytes.HasSuffix(bytes.TrimRightFunc(text, unicode.IsLetter), []byte(`\`))
}

// Names lists the names of the placeholders in the order of their first place.
func (t *Template) Names() []string {
	var names []string
	seen := map[string]bool{}
	for _, h := range t.holes {
		if !seen[h.name] {
			seen[h.name] = true
			names = append(names, h.name)
		}
	}
	return names
}

// ErrMissing is why a template cannot be filled in.
var ErrMissing = errors.New("no value for a placeholder")

// Fill puts values in the place of the placeholders, whose names may be paths
// through objects. Strings are put in as they are, other values as JSON. It
// returns an [ErrMissing] with the byte if a value is not there; null is none.
func (t *Template) Fill(values map[string]json.RawMessage) (Prompt, error) {
	var p Prompt
	at := 0
	p.Text = []byte{}
	for _, h := range t.holes {
		value, ok := lookUp(values, h.name)
		if !ok {
			return Prompt{}, fmt.Errorf("audit: %w: %s at byte %d of the template: give it in every line of the values, if only as \"\"", ErrMissing, t.text[h.at.lo:h.at.hi], h.at.lo)
		}
		p.Text = append(p.Text, t.text[at:h.at.lo]...)
		start := len(p.Text)
		p.Text = append(p.Text, value...)
		p.Segments = append(p.Segments, Segment{Name: string(t.text[h.at.lo:h.at.hi]), Start: start, End: len(p.Text)})
		at = h.at.hi
	}
	p.Text = append(p.Text, t.text[at:]...)
	return p, nil
}

// lookUp finds a value by its name, or by the path that the name is.
func lookUp(values map[string]json.RawMessage, name string) ([]byte, bool) {
	raw, ok := values[name]
	if !ok {
		first, rest, path := strings.Cut(name, ".")
		var inner map[string]json.RawMessage
		if raw, ok = values[first]; !ok || !path || json.Unmarshal(raw, &inner) != nil {
			return nil, false
		}
		return lookUp(inner, rest)
	}
	if string(raw) == "null" {
		return nil, false
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []byte(s), true
	}
	return raw, true
}

// maxValues bounds a line of values, in bytes.
const maxValues = 64 << 20

// ErrTooLong is what [ReadValues] returns for a line of more than 64 MiB.
var ErrTooLong = errors.New("the line is longer than 64 MiB")

// ReadValues reads the values of a template: one JSON object a line. Empty lines
// are left out. Errors name the line, from 1, and where they can the column, in
// bytes from 1.
func ReadValues(r io.Reader) ([]map[string]json.RawMessage, error) {
	var list []map[string]json.RawMessage
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxValues)
	n := 0
	for lines.Scan() {
		n++
		line := lines.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var values map[string]json.RawMessage
		if err := json.Unmarshal(line, &values); err != nil {
			return nil, fmt.Errorf("audit: values, line %d, column %d: %w: write one JSON object a line", n, column(err), err)
		}
		if values == nil {
			return nil, fmt.Errorf("audit: values, line %d, column 1: null stands where an object is to stand: write one JSON object a line", n)
		}
		list = append(list, values)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("audit: values, line %d: %w: divide it", n+1, ErrTooLong)
	} else if err != nil {
		return nil, fmt.Errorf("audit: values, after line %d: %w", n, err)
	}
	return list, nil
}

// column is where a line of JSON is wrong.
func column(err error) int64 {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return max(syntax.Offset, 1)
	case errors.As(err, &kind):
		return max(kind.Offset, 1)
	}
	return 1
}
