package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A jsonValue is a JSON value that keeps the order of its members and knows its
// place.
type jsonValue struct {
	kind    byte // one of { [ " 0 t n
	text    string
	members []jsonMember
	index   map[string]int // of members, where there are many
	items   []*jsonValue
	pos     int // byte offset
}

type jsonMember struct {
	name  string
	value *jsonValue
}

// get gives the member of that name, or nil.
func (v *jsonValue) get(name string) *jsonValue {
	if v.index != nil {
		if i, ok := v.index[name]; ok {
			return v.members[i].value
		}
		return nil
	}
	for i := range v.members {
		if v.members[i].name == name {
			return v.members[i].value
		}
	}
	return nil
}

// canonical is the same text for equal values, but for numbers, which are equal
// only as they are written.
func (v *jsonValue) canonical() string {
	switch v.kind {
	case '{':
		parts := make([]string, len(v.members))
		for i, m := range v.members {
			parts[i] = strconv.Quote(m.name) + ":" + m.value.canonical()
		}
		return "{" + strings.Join(parts, ",") + "}"
	case '[':
		parts := make([]string, len(v.items))
		for i, item := range v.items {
			parts[i] = item.canonical()
		}
		return "[" + strings.Join(parts, ",") + "]"
	case '"':
		return strconv.Quote(v.text)
	}
	return v.text
}

type jsonReader struct {
	src []byte
	d   *json.Decoder
}

func readJSON(src []byte) (*jsonValue, error) {
	if i := invalidUTF8(string(src)); i >= 0 {
		return nil, errorAt(string(src), i, errors.New("not UTF-8"))
	}
	r := &jsonReader{src, json.NewDecoder(bytes.NewReader(src))}
	r.d.UseNumber()
	v, err := r.value(0)
	if err == nil {
		if _, end := r.d.Token(); !errors.Is(end, io.EOF) {
			err = errorAt(string(src), r.next(), errors.New("more after the schema"))
		}
	}
	if err != nil {
		var se *SyntaxError
		if errors.As(err, &se) {
			return nil, err
		}
		offset := int(r.d.InputOffset())
		var je *json.SyntaxError
		if errors.As(err, &je) {
			offset = max(int(je.Offset)-1, 0)
		}
		if errors.Is(err, io.EOF) {
			offset, err = len(src), errors.New("unexpected end of JSON input")
		}
		return nil, errorAt(string(src), offset, err)
	}
	return v, nil
}

// next gives the offset of the next token.
func (r *jsonReader) next() int {
	at := int(r.d.InputOffset())
	for at < len(r.src) && strings.IndexByte(" \t\r\n,:", r.src[at]) >= 0 {
		at++
	}
	return at
}

func (r *jsonReader) value(depth int) (*jsonValue, error) {
	v := &jsonValue{pos: r.next()}
	if depth > maxNesting {
		return nil, errorAt(string(r.src), v.pos, fmt.Errorf("%w: values nested more than %d deep", ErrTooLarge, maxNesting))
	}
	token, err := r.d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case string:
		v.kind, v.text = '"', token
	case json.Number:
		v.kind, v.text = '0', string(token)
	case bool:
		v.kind, v.text = 't', strconv.FormatBool(token)
	case nil:
		v.kind, v.text = 'n', "null"
	case json.Delim:
		v.kind = byte(token)
		if err := r.inside(v, depth); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// inside reads what is in an object or array, and its end.
func (r *jsonReader) inside(v *jsonValue, depth int) error {
	names := map[string]int{}
	for r.d.More() {
		if v.kind == '[' {
			item, err := r.value(depth + 1)
			if err != nil {
				return err
			}
			v.items = append(v.items, item)
			continue
		}
		pos := r.next()
		token, err := r.d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if _, ok := names[name]; ok {
			return errorAt(string(r.src), pos, fmt.Errorf("member %q is there twice", name))
		}
		names[name] = len(v.members)
		value, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		v.members = append(v.members, jsonMember{name, value})
	}
	if len(names) > 16 {
		v.index = names
	}
	_, err := r.d.Token()
	return err
}
