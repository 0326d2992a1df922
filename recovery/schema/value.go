package schema

import (
	"encoding/json"
	"sort"
	"strconv"
	"strings"

	"github.com/unfray/unfray/jsonrepair"
)

// A kind is a set of JSON types.
type kind uint8

const (
	kindNull kind = 1 << iota
	kindBoolean
	kindInteger // only in schemas; values are numbers
	kindNumber
	kindString
	kindArray
	kindObject
	anyKind = kindNull | kindBoolean | kindNumber | kindString | kindArray | kindObject
)

var kindNames = []struct {
	kind kind
	name string
}{
	{kindNull, "null"}, {kindBoolean, "boolean"}, {kindInteger, "integer"}, {kindNumber, "number"},
	{kindString, "string"}, {kindArray, "array"}, {kindObject, "object"},
}

func kindOf(name string) kind {
	for _, k := range kindNames {
		if k.name == name {
			return k.kind
		}
	}
	return 0
}

func (k kind) String() string {
	var names []string
	for _, n := range kindNames {
		if k&n.kind != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, " or ")
}

// A node is a value in a document. It keeps where it stands, so that edits can
// leave everything else as it is.
type node struct {
	kind       kind
	id         int // in the document; -1 for a scalar that was made up
	start, end int // bytes of the document
	text       string
	members    []member
	items      []*node
}

type member struct {
	start, end int // of the key, quotes included
	name       string
	value      *node
}

// get returns the last member of that name, as most readers take it.
func (n *node) get(name string) *node {
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// readDocument reads strict JSON. IDs begin with next.
func readDocument(text []byte, maxDepth, next int) (*node, *jsonrepair.Error) {
	if err := jsonrepair.Check(text, maxDepth); err != nil {
		return nil, err
	}
	r := &reader{text: string(text), id: next}
	return r.value(), nil
}

// A reader reads text that has been checked. Strings without escapes are parts of it.
type reader struct {
	text string
	at   int
	id   int
	free []node // allocated together
}

func (r *reader) newNode() *node {
	if len(r.free) == 0 {
		r.free = make([]node, min(64, 1+len(r.text)/8))
	}
	n := &r.free[0]
	r.free = r.free[1:]
	n.id, n.start = r.id, r.at
	r.id++
	return n
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func (r *reader) space() {
	for r.at < len(r.text) && isSpace(r.text[r.at]) {
		r.at++
	}
}

// value reads the next value, which white space may stand before.
func (r *reader) value() *node {
	r.space()
	n := r.newNode()
	switch c := r.text[r.at]; c {
	case '{':
		n.kind = kindObject
		r.object(n)
	case '[':
		n.kind = kindArray
		r.array(n)
	case '"':
		n.kind = kindString
		n.text = r.str()
	default:
		r.at++
		for r.at < len(r.text) && r.text[r.at] != ',' && r.text[r.at] != ']' && r.text[r.at] != '}' && !isSpace(r.text[r.at]) {
			r.at++
		}
		n.text = r.text[n.start:r.at]
		switch c {
		case 'n':
			n.kind = kindNull
		case 't', 'f':
			n.kind = kindBoolean
		default:
			n.kind = kindNumber
		}
	}
	n.end = r.at
	return n
}

func (r *reader) object(n *node) {
	r.at++
	for r.space(); r.text[r.at] != '}'; r.space() {
		if r.text[r.at] == ',' {
			r.at++
			r.space()
		}
		m := member{start: r.at}
		m.name = r.str()
		m.end = r.at
		r.space()
		r.at++ // colon
		m.value = r.value()
		n.members = append(n.members, m)
	}
	r.at++
}

func (r *reader) array(n *node) {
	r.at++
	for r.space(); r.text[r.at] != ']'; r.space() {
		if r.text[r.at] == ',' {
			r.at++
		}
		n.items = append(n.items, r.value())
	}
	r.at++
}

// str reads a string and returns its characters.
func (r *reader) str() string {
	start := r.at
	escaped := false
	for r.at++; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			escaped = true
			r.at++
		}
	}
	r.at++
	if !escaped {
		return r.text[start+1 : r.at-1]
	}
	var s string
	// The text has been checked, so there is no error.
	_ = json.Unmarshal([]byte(r.text[start:r.at]), &s)
	return s
}

// size counts the values in n.
func (n *node) size() int {
	size := 1
	for _, m := range n.members {
		size += 1 + m.value.size()
	}
	for _, item := range n.items {
		size += item.size()
	}
	return size
}

// canonical is the same text for equal values and only for these: numbers are
// compared by value, objects without regard to order.
func (n *node) canonical() string {
	var b strings.Builder
	n.writeCanonical(&b)
	return b.String()
}

func (n *node) writeCanonical(b *strings.Builder) {
	switch n.kind {
	case kindString:
		b.WriteString(strconv.Quote(n.text))
	case kindNumber:
		b.WriteString(parseDecimal(n.text).String())
	case kindArray:
		b.WriteByte('[')
		for _, item := range n.items {
			item.writeCanonical(b)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case kindObject:
		// Of members of the same name the last one counts.
		last := make(map[string]*node, len(n.members))
		names := make([]string, 0, len(n.members))
		for _, m := range n.members {
			if _, ok := last[m.name]; !ok {
				names = append(names, m.name)
			}
			last[m.name] = m.value
		}
		sort.Strings(names)
		b.WriteByte('{')
		for _, name := range names {
			b.WriteString(strconv.Quote(name))
			b.WriteByte(':')
			last[name].writeCanonical(b)
			b.WriteByte(',')
		}
		b.WriteByte('}')
	default:
		b.WriteString(n.text)
	}
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// quote returns s as a JSON string.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Strings always can be encoded.
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}
