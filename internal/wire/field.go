package wire

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// field is a value inside a checked body, with the way to it.
type field struct {
	up    *field
	name  string // key in up, if that is an object
	index int    // element of up, if that is an array; else negative
	raw   []byte // valid JSON without space around it
}

// path names the field as OpenAI's errors do: messages[2].content.
func (f *field) path() string {
	var parts []string
	for ; f.up != nil; f = f.up {
		switch {
		case f.index >= 0:
			parts = append(parts, "["+strconv.Itoa(f.index)+"]")
		case f.up.up == nil:
			parts = append(parts, f.name)
		default:
			parts = append(parts, "."+f.name)
		}
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
	}
	return b.String()
}

func (f *field) fail(text string) error {
	return &DecodeError{Param: f.path(), Offset: -1, Text: text}
}

// wrongType says what the field should have been.
func (f *field) wrongType(want string) error {
	return f.fail("must be " + want + ", not " + f.kind())
}

func (f *field) kind() string {
	switch f.raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (f *field) isNull() bool { return f.raw[0] == 'n' }

func (f *field) string() (string, error) {
	if f.raw[0] != '"' {
		return "", f.wrongType("a string")
	}
	return f.unquote()
}

func (f *field) unquote() (string, error) {
	var s string
	if err := json.Unmarshal(f.raw, &s); err != nil {
		return "", f.fail("cannot be read: " + err.Error())
	}
	return s, nil
}

func (f *field) bool() (bool, error) {
	switch f.raw[0] {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return false, f.wrongType("a boolean")
}

func (f *field) float() (float64, error) {
	if c := f.raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, f.wrongType("a number")
	}
	v, err := strconv.ParseFloat(string(f.raw), 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, f.fail("is a number out of range")
	}
	return v, nil
}

// integer reads a whole number; 16.0 is one.
func (f *field) integer() (int64, error) {
	if c := f.raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, f.wrongType("an integer")
	}
	if v, err := strconv.ParseInt(string(f.raw), 10, 64); err == nil {
		return v, nil
	}
	// Beyond 2^53 a float no longer names one integer.
	v, err := strconv.ParseFloat(string(f.raw), 64)
	if err != nil || math.Abs(v) > 1<<53 {
		return 0, f.fail("is an integer out of range")
	}
	if v != math.Trunc(v) {
		return 0, f.fail("must be an integer, not " + string(f.raw[:min(len(f.raw), 32)]))
	}
	return int64(v), nil
}

// each calls do for the elements of an array. The field that it hands out is
// good for that call only: one for each element would be many times the body.
func (f *field) each(do func(*field) error) error {
	if f.raw[0] != '[' {
		return f.wrongType("an array")
	}
	rest := space(f.raw[1:])
	e := &field{up: f}
	for ; rest[0] != ']'; e.index++ {
		n := valueLen(rest)
		e.raw = rest[:n]
		if err := do(e); err != nil {
			return err
		}
		if rest = space(rest[n:]); rest[0] == ',' {
			rest = space(rest[1:])
		}
	}
	return nil
}

// maxMembers is how many members an object may have: logit_bias lists up to all
// tokens of a vocabulary. Each costs many times the bytes by which it is written.
const maxMembers = 1 << 18

// members calls do for the members of an object. A key given twice is an error:
// which one counts depends on the reader.
func (f *field) members(do func(*field) error) error {
	if f.raw[0] != '{' {
		return f.wrongType("an object")
	}
	seen := map[string]bool{}
	rest := space(f.raw[1:])
	for rest[0] != '}' {
		n := valueLen(rest)
		key := field{up: f, raw: rest[:n]}
		name, err := key.unquote()
		if err != nil {
			return err
		}
		rest = space(space(rest[n:])[1:])
		n = valueLen(rest)
		m := &field{up: f, name: name, index: -1, raw: rest[:n]}
		switch {
		case seen[name]:
			return m.fail("is given twice")
		case len(seen) == maxMembers:
			return f.fail("has too many members: give at most 262144")
		}
		seen[name] = true
		if err := do(m); err != nil {
			return err
		}
		if rest = space(rest[n:]); rest[0] == ',' {
			rest = space(rest[1:])
		}
	}
	return nil
}

// space skips white space. The body being checked, something follows it.
func space(b []byte) []byte {
	for b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r' {
		b = b[1:]
	}
	return b
}

// valueLen is the length of the JSON value that b begins with.
func valueLen(b []byte) int {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
			if !inString && depth == 0 {
				return i + 1
			}
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0 && (c == ',' || c == ':' || c <= ' '):
			return i
		}
	}
	return len(b)
}

// reader fills the fields of a request from the members it has a place for.
type reader map[string]func(*field) error

// read decodes f by r and appends the paths of members that r does not know.
// Null is the same as absent.
func (r reader) read(f *field, ignored *[]string) error {
	return f.members(func(m *field) error {
		set, known := r[m.name]
		switch {
		case !known:
			*ignored = append(*ignored, m.path())
			return nil
		case m.isNull():
			return nil
		}
		return set(m)
	})
}

// into adapts a reading method to a place for its result.
func into[T any](p *T, get func(*field) (T, error)) func(*field) error {
	return func(f *field) (err error) {
		*p, err = get(f)
		return err
	}
}

// given is into for optional fields: a pointer tells absent from zero.
func given[T any](p **T, get func(*field) (T, error)) func(*field) error {
	return func(f *field) error {
		v, err := get(f)
		*p = &v
		return err
	}
}

func small(f *field) (int, error) {
	v, err := f.integer()
	if err == nil && (v < math.MinInt32 || v > math.MaxInt32) {
		err = f.fail("is an integer out of range")
	}
	return int(v), err
}

func rawValue(f *field) (json.RawMessage, error) { return f.raw, nil }

// body checks a request body and returns it as a field.
func body(b []byte) (*field, error) {
	if err := Check(b); err != nil {
		return nil, err
	}
	start := space(b)
	f := &field{raw: start[:valueLen(start)]}
	if f.raw[0] != '{' {
		return nil, &DecodeError{Offset: -1, Text: "must be a JSON object, not " + f.kind()}
	}
	return f, nil
}
