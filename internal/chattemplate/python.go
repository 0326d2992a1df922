package chattemplate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// maxValueDepth is how deep values may be nested that are written, as deep as
// Python's own limit.
const maxValueDepth = 1000

var (
	errDeep = errors.New("values are nested too deep")
	errLong = fmt.Errorf("a text becomes longer than %d bytes", maxRendered)
)

// pythonText is str(v) of Python, which is what Jinja writes for a value.
func pythonText(v jinja.Value) (string, error) {
	switch {
	case v.IsString():
		return v.AsString(), nil
	case v.IsUndefined(), v.IsCallable():
		return "", nil
	}
	var b strings.Builder
	err := pythonRepr(&b, v, 0)
	return b.String(), err
}

func pythonRepr(b *strings.Builder, v jinja.Value, depth int) error {
	switch {
	case depth > maxValueDepth:
		return errDeep
	case b.Len() > maxRendered:
		return errLong
	case v.IsNone():
		b.WriteString("None")
	case v.IsBool() && v.AsBool():
		b.WriteString("True")
	case v.IsBool():
		b.WriteString("False")
	case v.IsInt():
		b.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		b.WriteString(pythonFloat(v.AsFloat()))
	case v.IsString():
		pythonQuote(b, v.AsString())
	case v.IsList():
		b.WriteByte('[')
		for i, e := range v.AsList().Items {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := pythonRepr(b, e, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case v.IsDict():
		d := v.AsDict()
		b.WriteByte('{')
		for i, k := range d.Keys {
			if i > 0 {
				b.WriteString(", ")
			}
			pythonQuote(b, k)
			b.WriteString(": ")
			if err := pythonRepr(b, d.Data[k], depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	default:
		b.WriteString("Undefined")
	}
	return nil
}

// pythonFloat is repr(f): the shortest digits that give f back, with an
// exponent from 1e16 on and below 1e-4.
func pythonFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// pythonQuote is repr(s).
func pythonQuote(b *strings.Builder, s string) {
	q := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b.WriteRune(q)
	for _, r := range s {
		switch {
		case r == q || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r) || r >= firstMark && r <= lastMark: // marks are not the text's
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			fmt.Fprintf(b, `\U%08x`, r)
		}
	}
	b.WriteRune(q)
}

// isBlank is str.isspace of Python, for which the separators U+001C to U+001F
// are blanks too.
func isBlank(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// jsonWriter writes values as json.dumps of Python does.
type jsonWriter struct {
	b           strings.Builder
	indent      *string
	item, key   string // separators
	ascii, sort bool
}

func (w *jsonWriter) value(v jinja.Value, depth int) error {
	switch {
	case depth > maxValueDepth:
		return errDeep
	case w.b.Len() > maxRendered:
		return errLong
	case v.IsNone():
		w.b.WriteString("null")
	case v.IsBool():
		w.b.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsInt():
		w.b.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		f := v.AsFloat()
		switch {
		case math.IsInf(f, 1):
			w.b.WriteString("Infinity")
		case math.IsInf(f, -1):
			w.b.WriteString("-Infinity")
		case math.IsNaN(f):
			w.b.WriteString("NaN")
		default:
			w.b.WriteString(pythonFloat(f))
		}
	case v.IsString():
		w.text(v.AsString())
	case v.IsList():
		return w.list(v.AsList().Items, depth)
	case v.IsDict():
		return w.dict(v.AsDict(), depth)
	default:
		return errors.New("an undefined value has no JSON")
	}
	return nil
}

// line begins a line where lines are wanted.
func (w *jsonWriter) line(depth int) {
	if w.indent != nil {
		w.b.WriteByte('\n')
		for range depth {
			w.b.WriteString(*w.indent)
		}
	}
}

func (w *jsonWriter) list(items []jinja.Value, depth int) error {
	w.b.WriteByte('[')
	for i, e := range items {
		if i > 0 {
			w.b.WriteString(w.item)
		}
		w.line(depth + 1)
		if err := w.value(e, depth+1); err != nil {
			return err
		}
	}
	if len(items) > 0 {
		w.line(depth)
	}
	w.b.WriteByte(']')
	return nil
}

func (w *jsonWriter) dict(d *jinja.Dict, depth int) error {
	keys := d.Keys
	if w.sort {
		keys = slices.Sorted(slices.Values(keys))
	}
	w.b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			w.b.WriteString(w.item)
		}
		w.line(depth + 1)
		w.text(k)
		w.b.WriteString(w.key)
		if err := w.value(d.Data[k], depth+1); err != nil {
			return err
		}
	}
	if len(keys) > 0 {
		w.line(depth)
	}
	w.b.WriteByte('}')
	return nil
}

var jsonEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`,
}

func (w *jsonWriter) text(s string) {
	w.b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch e, ok := jsonEscapes[r]; {
		case ok:
			w.b.WriteString(e)
		case r < 0x20:
			fmt.Fprintf(&w.b, `\u%04x`, r)
		case w.ascii && r >= 0x10000:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&w.b, `\u%04x\u%04x`, hi, lo)
		case w.ascii && r > 0x7e && (r < firstMark || r > lastMark):
			fmt.Fprintf(&w.b, `\u%04x`, r)
		default:
			w.b.WriteString(s[i : i+n])
		}
		i += n
	}
	w.b.WriteByte('"')
}
