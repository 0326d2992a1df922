package extract

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
)

// Kinds of edits and findings of this package, beside those of jsonrepair.
const (
	KindYAML   jsonrepair.Kind = "yaml"             // YAML, replaced by JSON
	KindXML    jsonrepair.Kind = "xml"              // XML, replaced by JSON
	KindMarker jsonrepair.Kind = "marker"           // tokens that frame the answer, dropped
	PlainText  jsonrepair.Kind = "plain_text"       // finding: it is text although YAML 1.1 or Go would have another value, or none
	Entity     jsonrepair.Kind = "unknown_entity"   // finding: an entity that XML does not know, left as it is
	OpenTag    jsonrepair.Kind = "unclosed_element" // finding: an element that nothing closes
)

// Converted is an answer in another notation as JSON.
type Converted struct {
	JSON []byte // an object; of a YAML fence also an array
	// Edits lead from the text that was given to JSON.
	Edits    []jsonrepair.Edit
	Findings []jsonrepair.Finding // offsets are bytes of the text
	// Truncated says that the text broke off: the last value may not be whole.
	Truncated bool
	// Root is the name of the one element around all others, which JSON leaves out.
	Root string
}

// Wrapped returns JSON with Root around it: {"root": …}.
func (c *Converted) Wrapped() []byte {
	if c.Root == "" {
		return c.JSON
	}
	b := appendString([]byte{'{'}, []byte(c.Root))
	b = append(append(b, ':'), c.JSON...)
	return append(b, '}')
}

// A NotationError says why an answer is not of a notation.
type NotationError struct {
	Notation string // YAML or XML
	Offset   int    // bytes of the text
	Cause    string
}

func (e *NotationError) Error() string {
	return fmt.Sprintf("extract: byte %d: the answer is not %s: %s; read it as text, or as JSON by Candidates", e.Offset, e.Notation, e.Cause)
}

// notation is the text of an answer without reasoning and what stands around it.
type notation struct {
	name       string
	from, to   int
	body       []byte // text[from:to], or without the marks of a block quote
	fenced     bool
	cut        bool // the fence is not closed
	cannotMove bool // offsets in body say nothing of the text
}

// find looks for the part of the answer that can be of a notation: the only fence of
// one of the languages, or all of its prose.
func (n *notation) find(text []byte, o Options, languages ...string) *NotationError {
	if limit := or(o.MaxBytes, 1<<20); len(text) > limit {
		return n.fail(limit, fmt.Sprintf("it is longer than MaxBytes, %d", limit))
	}
	var prose, fences, plain []Segment
	for _, s := range Segments(text, o) {
		lang := s.Language()
		switch {
		case s.Kind == Prose && len(bytes.TrimSpace(text[s.Start:s.End])) > 0:
			prose = append(prose, s)
		case s.Kind == Fence && lang == "":
			plain = append(plain, s)
		case s.Kind == Fence && slices.Contains(languages, lang):
			fences = append(fences, s)
		case s.Kind == Fence:
			return n.fail(s.Start, "it has code in another language")
		}
	}
	if len(fences) == 0 {
		fences = plain
	}
	switch {
	case len(fences) > 1:
		return n.fail(fences[1].Start, "it has several fences")
	case len(fences) == 1:
		s := fences[0]
		n.from, n.to, n.body, n.fenced, n.cut = s.BodyStart, s.BodyEnd, s.Body(text), true, !s.Closed
		n.cannotMove = len(n.body) != n.to-n.from
	case len(prose) != 1:
		return n.fail(0, "it is empty, or has text in several places")
	default:
		n.from, n.to = prose[0].Start, prose[0].End
		n.body = text[n.from:n.to]
	}
	if !utf8.Valid(n.body) {
		return n.fail(n.from, "it is not valid UTF-8")
	}
	return nil
}

// offset returns the offset in the text of one in body.
func (n *notation) offset(i int) int {
	if n.cannotMove {
		return n.from
	}
	return n.from + i
}

func (n *notation) fail(at int, cause string) *NotationError {
	return &NotationError{Notation: n.name, Offset: at, Cause: cause}
}

// finding tells of the n bytes of body at i.
func (n *notation) finding(c *Converted, kind jsonrepair.Kind, i, length int, text string) {
	if len(c.Findings) < 1000 {
		if n.cannotMove {
			length = 0
		}
		c.Findings = append(c.Findings, jsonrepair.Finding{Kind: kind, Offset: n.offset(i), Length: length, Text: text})
	}
}

// edits sets the edits of c, which was read from text.
func (n *notation) edits(c *Converted, text []byte, kind jsonrepair.Kind) {
	add := func(k jsonrepair.Kind, from, to int, after string) {
		if from < to || after != "" {
			c.Edits = append(c.Edits, jsonrepair.Edit{Kind: k, Offset: from, Before: string(text[from:to]), After: after})
		}
	}
	around := jsonrepair.Prose
	if n.fenced {
		around = jsonrepair.Fence
	}
	add(around, 0, n.from, "")
	add(kind, n.from, n.to, string(c.JSON))
	add(around, n.to, len(text), "")
}

// narrow leaves body[from:to].
func (n *notation) narrow(from, to int) {
	n.body = n.body[from:to]
	if !n.cannotMove {
		n.from, n.to = n.from+from, n.from+to
	}
}

// appendString appends s as a string of JSON.
func appendString(b, s []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// isKey reports whether s can be a name that a model gives a value in YAML without
// a fence: a few words, no markup.
func isKey(s string) bool {
	if len(s) == 0 || len(s) > 48 || strings.Count(s, " ") > 3 {
		return false
	}
	for i, r := range s {
		switch {
		case r == '_' || r >= 0x80 || r < 0x80 && isLetter(byte(r)):
		case i > 0 && (r == '-' || r == ' ' || r == '.' || r == '/' || r < 0x80 && isDigit(byte(r))):
		case r == '(' && i > 0 && s[i-1] == ' ', r == ')':
		default:
			return false
		}
	}
	return true
}
