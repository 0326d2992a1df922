package toolcall

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/unfray/unfray/jsonrepair"
)

// pyCall reads calls as Python writes them, argument by argument.
type pyCall struct {
	c    *call
	list bool // in brackets
	n    int  // arguments so far
	p    int  // read so far, in a value
	key  string
	from int // offset of the value, or 0 where none has begun
	lex  pyLexer
}

// enterPython reads calls of which the first one's name is at an offset; a bracket stands
// before it at p, if p is not at.
func (m *machine) enterPython(b *block, p, at int) verdict {
	name, q := m.name(at)
	c, ok := m.peek(q)
	switch {
	case m.starved:
		return wait
	case !ok:
		return m.cut(q)
	case c != '(' || name == "":
		return no
	}
	if b.format == "" {
		b.format = Pythonic
	}
	m.py = &pyCall{list: p != at}
	return m.begin(b, at, stepPyName)
}

// stepPyName reads a function's name and its parenthesis.
func stepPyName(m *machine) bool {
	py := m.py
	p := m.blanks(m.pos)
	name, q := m.name(p)
	c, ok := m.peek(q)
	switch {
	case m.starved:
		return false
	case !ok:
		m.take(ToolCall, m.end())
		m.find(CutCall, p, m.end()-p, "the call breaks off before its name ends")
		return m.endPython()
	case name == "" || c != '(':
		return m.endPython()
	}
	py.c = &call{Call: Call{Format: m.b.format, Start: p, RepairAt: -1}, any: true, args: []byte("{")}
	if m.b.docs++; m.b.docs == 1 {
		py.c.Start = m.b.start
	}
	if m.b.format == Llama3JSON {
		name = strings.TrimSuffix(name, ".call")
	}
	m.nameCall(py.c, name, p)
	py.c.hidden = m.trial.on
	m.calls = append(m.calls, py.c)
	py.n, py.from = 0, 0
	m.take(ToolCall, q+1)
	m.state = stepPyArgument
	if m.trial.on {
		if !m.known(py.c.Name) {
			m.reject(m.pos)
			return true
		}
		m.believe()
	}
	return true
}

// stepPyArgument reads a key, or the parenthesis that ends the call.
func stepPyArgument(m *machine) bool {
	py := m.py
	p := m.blanks(m.pos)
	c, ok := m.peek(p)
	switch {
	case m.starved:
		return false
	case !ok:
		m.take(ToolCall, m.end())
		return m.closePy(false, Truncated)
	case c == ')':
		m.take(ToolCall, p+1)
		return m.closePy(true, "")
	}
	if c == ']' {
		m.take(ToolCall, p)
		return m.unparenthesized()
	}
	key, q := m.name(p)
	q = m.blanks(q)
	d, ok := m.peek(q)
	e, more := m.peek(q + 1)
	switch {
	case m.starved:
		return false
	case ok && d == '=' && !more || !ok && key != "":
		m.take(ToolCall, m.end())
		return m.closePy(false, Truncated)
	case ok && d == '=' && e != '=' && key != "":
		py.key, p = key, q+1
	default:
		py.key = ""
	}
	py.from, py.p, py.lex = p, p, pyLexer{}
	m.take(ToolCall, p)
	m.state = stepPyValue
	return true
}

// stepPyValue reads a value up to the comma or parenthesis behind it. It is taken as
// a whole.
func stepPyValue(m *machine) bool {
	py := m.py
	for py.p < m.end() {
		if m.trial.on && py.p-m.trial.from > m.o.MaxHold {
			m.reject(py.p)
			return true
		}
		c := m.in[py.p-m.base]
		if py.lex.top() && (c == ',' || c == ')' || c == ']' || c == '}') {
			break
		}
		n, ok := py.lex.step(m, py.p)
		if !ok {
			return false
		}
		py.p += n
	}
	if py.p >= m.end() {
		if !m.eof {
			return false
		}
		m.pyValue(m.source(py.from, m.end()), false)
		m.take(ToolCall, m.end())
		return m.closePy(false, Truncated)
	}
	if !m.pyValue(m.source(py.from, py.p), true) {
		py.c.Problem = problem(py.c.Problem, Malformed)
	}
	c := m.in[py.p-m.base]
	if c == ',' {
		py.p++
	}
	m.take(ToolCall, py.p)
	if c == ']' || c == '}' {
		return m.unparenthesized()
	}
	m.state = stepPyArgument
	return true
}

// unparenthesized ends a call whose parenthesis was forgotten. The receipt says no more
// than that it was mended.
func (m *machine) unparenthesized() bool {
	m.find(jsonrepair.MissingCloser, m.pos, 0, "a call's parenthesis is missing")
	m.py.c.Repair = &jsonrepair.Result{Outcome: jsonrepair.Repaired}
	return m.closePy(true, "")
}

// pyValue adds an argument. A value that breaks off is dropped, but for a string.
func (m *machine) pyValue(src []byte, whole bool) bool {
	py := m.py
	src = bytes.TrimSpace(src)
	v := pyReader{src: src, cut: !whole}
	j, ok := v.value(nil, 0)
	if v.blank(); !ok || v.p < len(src) {
		return false
	}
	if py.key == "" && m.allArguments(j) {
		m.find(UnnamedArgument, py.from, len(src), "an object without a name was taken for all arguments")
		py.c.Repair = &jsonrepair.Result{Outcome: jsonrepair.Repaired}
		return true
	}
	if py.key == "" {
		m.find(UnnamedArgument, py.from, len(src), "an argument has no name and was dropped")
		return false
	}
	key := py.key
	if plain, ok := m.tools[py.c.Name].key(key); ok {
		m.find(EscapedName, py.from, 0, "Markdown escapes in the key "+key)
		key = plain
	}
	if py.n++; py.n > 1 {
		py.c.args = append(py.c.args, ", "...)
	}
	py.c.args = appendString(py.c.args, []byte(key))
	py.c.args = append(py.c.args, ": "...)
	py.c.args = append(py.c.args, j...)
	return true
}

// allArguments takes an object that is the only argument for all of them, where the schema
// knows its keys.
func (m *machine) allArguments(j []byte) bool {
	py := m.py
	var members map[string]json.RawMessage
	s := m.tools[py.c.Name]
	if py.n > 0 || s == nil || s.open || len(j) == 0 || j[0] != '{' || json.Unmarshal(j, &members) != nil || len(members) == 0 {
		return false
	}
	for key := range members {
		if _, ok := s.types[key]; !ok {
			return false
		}
	}
	py.n += len(members)
	py.c.args = append(py.c.args, j[1:len(j)-1]...)
	return true
}

// closePy ends a call and reads what stands behind it: another one, or the end.
func (m *machine) closePy(complete bool, why Problem) bool {
	c := m.py.c
	c.args = append(c.args, '}')
	c.ended, c.End = complete, m.pos
	c.Problem = problem(c.Problem, why)
	c.Complete = complete
	m.state = stepPyNext
	return true
}

func stepPyNext(m *machine) bool {
	p := m.blanks(m.pos)
	c, ok := m.peek(p)
	if ok && (c == ',' || c == ';') && m.py.list {
		q := m.blanks(p + 1)
		name, r := m.name(q)
		d, ok := m.peek(r)
		if m.starved {
			return false
		}
		if name != "" && (d == '(' || !ok) && len(m.calls) < m.o.MaxCalls {
			m.take(ToolCall, q)
			m.state = stepPyName
			return true
		}
	}
	if m.starved {
		return false
	}
	if m.py.list && ok && c == ']' {
		m.take(ToolCall, p+1)
	}
	return m.endPython()
}

// endPython ends the calls.
func (m *machine) endPython() bool {
	m.py = nil
	m.state = stepTail
	return true
}

// pyLexer finds where a Python value ends.
type pyLexer struct {
	depth  int
	quote  byte
	triple bool
}

// top reports whether a comma or parenthesis would end the value.
func (l *pyLexer) top() bool { return l.depth == 0 && l.quote == 0 }

// step reads what stands at p, and returns how many bytes that are; false: it depends
// on what follows.
func (l *pyLexer) step(m *machine, p int) (int, bool) {
	c := m.in[p-m.base]
	if l.quote != 0 {
		switch {
		case c == '\\':
			_, ok := m.peek(p + 1)
			if !ok {
				return 1, !m.starved
			}
			return 2, true
		case c != l.quote:
			return 1, true
		case !l.triple:
			l.quote = 0
			return 1, true
		}
		if m.has(p, strings.Repeat(string(c), 3)) {
			l.quote = 0
			return 3, true
		}
		return 1, !m.starved
	}
	switch c {
	case '"', '\'':
		l.quote, l.triple = c, m.has(p, strings.Repeat(string(c), 3))
		if m.starved {
			l.quote = 0
			return 0, false
		}
		if l.triple {
			return 3, true
		}
	case '(', '[', '{':
		l.depth++
	case ')', ']', '}':
		l.depth--
	}
	return 1, true
}
