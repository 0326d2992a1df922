package toolcall

import (
	"bytes"
	"encoding/json"
)

// keys mends the keys of arguments that come in pieces: those of the object itself, where
// the schema proves that a backslash is Markdown's. It reads strict JSON.
type keys struct {
	depth int
	open  bool // a string is
	esc   bool
	value bool   // it is not a key
	held  []byte // a key that has not ended
}

// add adds to the arguments what has been committed of them.
func (c *call) add(m *machine, p []byte) {
	s := m.tools[c.Name]
	if s == nil || s.open {
		c.args = append(c.args, p...)
		return
	}
	k := &c.keys
	from := 0
	for i, b := range p {
		switch {
		case k.open && k.esc:
			k.esc = false
		case k.open && b == '\\':
			k.esc = true
		case k.open && b == '"':
			if k.open = false; k.depth == 1 && !k.value {
				k.held = append(k.held, p[from:i+1]...)
				from = i + 1
				c.args = append(c.args, m.mendKey(c, s, k.held)...)
				k.held = k.held[:0]
			}
		case k.open:
		case b == '"':
			if k.open = true; k.depth == 1 && !k.value {
				c.args = append(c.args, p[from:i]...)
				from = i
			}
		case b == '{' || b == '[':
			k.depth++
		case b == '}' || b == ']':
			k.depth--
		case b == ':' && k.depth == 1:
			k.value = true
		case b == ',' && k.depth == 1:
			k.value = false
		}
	}
	if k.open && k.depth == 1 && !k.value {
		k.held = append(k.held, p[from:]...)
		return
	}
	c.args = append(c.args, p[from:]...)
}

// mendKey returns a key, a JSON string, as the schema has it.
func (m *machine) mendKey(c *call, s *schema, raw []byte) []byte {
	var key string
	if bytes.IndexByte(raw, '\\') < 0 || json.Unmarshal(raw, &key) != nil {
		return raw
	}
	plain, ok := s.key(key)
	if !ok {
		return raw
	}
	m.find(EscapedName, c.Start, 0, "Markdown escapes in the key "+key)
	return appendString(nil, []byte(plain))
}
