package hfjson

import (
	"fmt"

	"github.com/unfray/unfray/tokenizer/internal/jsonscan"
)

// node is a value of the small parts of the file: all but the vocabulary, the
// merges and the added tokens. A tree is needed there because the type of a
// component may stand after its fields.
type node struct {
	kind  byte // its first byte; '0' for a number
	at    int
	text  []byte   // string: its text; number: its digits
	items []node   // array, object
	names [][]byte // object
}

// tree takes any value.
func (s *scanner) tree() (*node, error) {
	var n node
	room := maxNodes
	if err := s.node(&n, jsonscan.MaxDepth, &room); err != nil {
		return nil, err
	}
	return &n, nil
}

func (s *scanner) node(n *node, depth int, room *int) error {
	n.kind = s.Next()
	n.at = s.Pos()
	if *room--; *room < 0 {
		return jsonscan.Fail(ErrLimit, s.Pos(), "more than %d values", maxNodes)
	}
	switch n.kind {
	case '{', '[':
		if depth == 0 {
			return jsonscan.Fail(ErrLimit, s.Pos(), "nested more than %d deep", jsonscan.MaxDepth)
		}
	}
	switch n.kind {
	case '{':
		return s.Object(func(name []byte, _ int) error {
			n.names = append(n.names, name)
			n.items = append(n.items, node{})
			return s.node(&n.items[len(n.items)-1], depth-1, room)
		})
	case '[':
		return s.Array(func(int) error {
			n.items = append(n.items, node{})
			return s.node(&n.items[len(n.items)-1], depth-1, room)
		})
	case '"':
		text, err := s.Text()
		n.text = text.Of(s.Data())
		return err
	case 't':
		return s.Literal("true")
	case 'f':
		return s.Literal("false")
	case 'n':
		return s.Literal("null")
	}
	n.kind = '0'
	text, err := s.Number()
	if err != nil {
		return s.Unexpected("a value")
	}
	n.text = text.Of(s.Data())
	return nil
}

// kindName is what to call a value in a message.
func (n *node) kindName() string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a truth value"
	case 'n':
		return "null"
	}
	return "a number"
}

// wholeNumber is the value of a number from 0 to most.
func (n *node) wholeNumber(most int) (int, error) {
	if n.kind != '0' {
		return 0, jsonscan.Fail(ErrInvalid, n.at, "%s where a number should be", n.kindName())
	}
	v := 0
	for _, c := range n.text {
		if c < '0' || c > '9' {
			return 0, jsonscan.Fail(ErrInvalid, n.at, "%s is not a whole number from 0", n.text)
		}
		if v = v*10 + int(c-'0'); v > most {
			return 0, jsonscan.Fail(ErrLimit, n.at, "a number above %d", most)
		}
	}
	return v, nil
}

func (n *node) str() (string, error) {
	if n.kind != '"' {
		return "", jsonscan.Fail(ErrInvalid, n.at, "%s where a string should be", n.kindName())
	}
	return string(n.text), nil
}

// fields reads the members of an object by name. The first error stays; done
// gives it. A member that is null counts as absent.
type fields struct {
	n    *node
	path string
	used []bool
	err  error
}

// fieldsOf begins with the fields of n, which stands at path.
func fieldsOf(n *node, path string) *fields {
	f := &fields{n: n, path: path, used: make([]bool, len(n.items))}
	if n.kind != '{' {
		f.err = jsonscan.Fail(ErrInvalid, n.at, "%s where an object should be", n.kindName())
	}
	return f
}

func (f *fields) place() Place { return Place{Path: f.path, Offset: f.n.at} }

// get finds a member and counts it as read.
func (f *fields) get(name string) *node {
	for i, have := range f.n.names {
		if string(have) == name {
			f.used[i] = true
			if f.n.items[i].kind == 'n' {
				return nil
			}
			return &f.n.items[i]
		}
	}
	return nil
}

// need is get for a member that must be there.
func (f *fields) need(name string) *node {
	m := f.get(name)
	if m == nil {
		f.fail("", jsonscan.Fail(ErrInvalid, f.n.at, "the field %q is missing", name))
	}
	return m
}

func (f *fields) fail(name string, err error) {
	if f.err == nil && err != nil {
		if name != "" {
			err = jsonscan.Under(name, err)
		}
		f.err = err
	}
}

func (f *fields) str(name string) string {
	m := f.need(name)
	if m == nil {
		return ""
	}
	text, err := m.str()
	f.fail(name, err)
	return text
}

// oneOf is str for a field with few possible values.
func (f *fields) oneOf(name string, values ...string) string {
	text := f.str(name)
	if f.err != nil {
		return ""
	}
	for _, v := range values {
		if text == v {
			return text
		}
	}
	f.fail(name, jsonscan.Fail(ErrUnsupported, f.get(name).at, "%q; known are %q", text, values))
	return ""
}

// char is str for a field that holds one code point.
func (f *fields) char(name string) rune {
	text := []rune(f.str(name))
	if f.err == nil && len(text) != 1 {
		f.fail(name, jsonscan.Fail(ErrInvalid, f.get(name).at, "%d characters where one should be", len(text)))
	}
	if f.err != nil {
		return 0
	}
	return text[0]
}

func (f *fields) flag(name string) bool {
	m := f.need(name)
	if m != nil && m.kind != 't' && m.kind != 'f' {
		f.fail(name, jsonscan.Fail(ErrInvalid, m.at, "%s where true or false should be", m.kindName()))
	}
	return m != nil && m.kind == 't'
}

// flagOr is flag for a field that may be missing.
func (f *fields) flagOr(name string, missing bool) bool {
	if f.get(name) == nil {
		return missing
	}
	return f.flag(name)
}

func (f *fields) wholeNumber(name string, most int) int {
	m := f.need(name)
	if m == nil {
		return 0
	}
	v, err := m.wholeNumber(most)
	f.fail(name, err)
	return v
}

// pattern reads {"String": text} or {"Regex": text}.
func (f *fields) pattern(name string) (text string, regex bool) {
	m := f.need(name)
	if m == nil {
		return "", false
	}
	in := fieldsOf(m, jsonscan.Join(f.path, name))
	if in.get("Regex") != nil {
		text, regex = in.str("Regex"), true
	} else {
		text = in.str("String")
	}
	f.fail(name, in.done())
	return text, regex
}

// list reads an array by calling item for each element.
func (f *fields) list(name string, item func(n *node, path string) error) {
	m := f.need(name)
	if m == nil || f.err != nil {
		return
	}
	if m.kind != '[' {
		f.fail(name, jsonscan.Fail(ErrInvalid, m.at, "%s where an array should be", m.kindName()))
		return
	}
	for i := range m.items {
		at := fmt.Sprintf("%s[%d]", jsonscan.Join(f.path, name), i)
		if err := item(&m.items[i], at); err != nil {
			f.fail(name, jsonscan.UnderItem(i, err))
			return
		}
	}
}

// done gives the first error, or that a field was not read: what it asks for
// would be lost in silence.
func (f *fields) done() error {
	for i, used := range f.used {
		if f.err == nil && !used && f.n.items[i].kind != 'n' {
			f.fail(string(f.n.names[i]), jsonscan.Fail(ErrUnsupported, f.n.items[i].at, "unknown field"))
		}
	}
	return f.err
}
