package toolcall

import (
	"bytes"
	"slices"
	"strings"

	"github.com/unfray/unfray/jsonrepair"
)

// params reads a call whose parameters stand between tags, one by one.
type params struct {
	key      [2]string // around a key
	attrs    bool      // attributes may follow the key
	value    [2]string // around a value
	ends     []string  // of the call
	scopeEnd string    // of the tag around it
	line     bool      // a value has lines of its own: a newline at either end is not part of it
	quoted   bool      // unknown values may be JSON strings

	c      *call
	schema *schema
	n      int // parameters so far

	name   string   // of the parameter
	types  []string // that it may have; none: unknown
	text   bool     // the value is a string, and passed on as it comes
	raw    []byte   // it, if not
	lead   byte     // its first byte that is no white space
	opened bool     // the value has begun
	held   []byte   // the beginning of a character
	at     int      // offset of the value
}

func newParams(m *machine, f Format, name string, at int) *params {
	c := &call{Call: Call{Format: f, RepairAt: -1}, any: true}
	c.Start = at
	// The name is mended where the call begins: a look must not leave findings.
	c.Name = name
	return &params{c: c}
}

func qwenParams(m *machine, name string, at int, scope string) *params {
	x := newParams(m, Qwen3Coder, name, at)
	x.key, x.value = [2]string{"<parameter=", ">"}, [2]string{"", "</parameter>"}
	x.ends, x.scopeEnd, x.line = []string{"</function>"}, scope, true
	return x
}

func invokeParams(m *machine, name string, at int, prefix, scope string) *params {
	x := newParams(m, Invoke, name, at)
	x.key, x.value = [2]string{"<" + prefix + "parameter name=", ""}, [2]string{"", "</" + prefix + "parameter>"}
	x.ends, x.scopeEnd, x.attrs = []string{"</" + prefix + "invoke>"}, scope, true
	return x
}

func glmParams(m *machine, name string, at int, end string) *params {
	x := newParams(m, GLM, name, at)
	x.key, x.value = [2]string{"<arg_key>", "</arg_key>"}, [2]string{"<arg_value>", "</arg_value>"}
	x.ends, x.quoted = []string{end}, true
	return x
}

// openParams makes the call known.
func (m *machine) openParams() {
	x := m.x
	c := x.c
	at := c.Start
	c.Start = m.b.start
	m.nameCall(c, c.Name, at)
	x.schema = m.tools[c.Name]
	c.args = []byte("{")
	c.hidden = m.trial.on
	m.calls = append(m.calls, c)
	m.b.docs++
}

// stepParams reads what stands between parameters.
func stepParams(m *machine) bool {
	x := m.x
	if m.b.docs == 0 {
		m.openParams()
	}
	p := m.blanks(m.pos)
	if m.starved {
		return false
	}
	if m.atEnd(p) || m.partialTag(p) {
		m.take(ToolCall, m.end())
		m.closeParams(false, Truncated)
		return true
	}
	if m.has(p, x.key[0]) {
		return m.stepKey(p + len(x.key[0]))
	}
	if s := m.hasAny(p, x.ends); s != "" && !m.starved {
		m.take(ToolCall, p+len(s))
		m.closeParams(true, "")
		return true
	}
	if x.scopeEnd != "" && m.has(p, x.scopeEnd) {
		m.find(MissingEnd, p, 0, "the call's end tag is missing")
		m.closeParams(true, "")
		return true
	}
	if m.starved {
		return false
	}
	m.find(MissingEnd, p, 0, "text stands where a parameter or the call's end tag should")
	m.closeParams(false, Malformed)
	return true
}

// partialTag reports whether the text ends at p with the beginning of a tag of the
// call.
func (m *machine) partialTag(p int) bool {
	x := m.x
	return slices.ContainsFunc(append([]string{x.key[0], x.scopeEnd}, x.ends...), func(s string) bool { return s != "" && m.partial(p, s) })
}

// stepKey reads the key at p.
func (m *machine) stepKey(p int) bool {
	key, attrs, q, ok := m.keyAt(p)
	switch {
	case m.starved:
		return false
	case ok:
		m.openValue(strings.TrimSpace(key), attrs, q)
		return true
	case q >= m.end():
		m.take(ToolCall, m.end())
		m.closeParams(false, Truncated)
		return true
	}
	m.find(MissingEnd, p, 0, "a parameter's name does not end")
	m.closeParams(false, Malformed)
	return true
}

// keyAt reads a key at p and what stands before its value: q is where that begins, or
// where it was looked for in vain.
func (m *machine) keyAt(p int) (key, attrs string, q int, ok bool) {
	x := m.x
	end := x.key[1]
	if x.attrs {
		c, _ := m.peek(p)
		if c != '"' && c != '\'' {
			return "", "", p, false
		}
		p++
		end = string(c)
	}
	if q = m.until(p, end[0]); !m.has(q, end) {
		if m.partial(q, end) {
			q = m.end()
		}
		return "", "", q, false
	}
	key = string(m.source(p, q))
	q += len(end)
	if x.attrs {
		from := q
		if q = m.until(q, '>'); !m.has(q, ">") {
			return "", "", q, false
		}
		attrs = string(m.source(from, q))
		q++
	}
	if s := x.value[0]; s != "" {
		if q = m.blanks(q); !m.has(q, s) {
			if m.partial(q, s) {
				q = m.end()
			}
			return "", "", q, false
		}
		q += len(s)
	}
	return key, attrs, q, true
}

// until returns the offset of c, at most maxName bytes behind p.
func (m *machine) until(p int, c byte) int {
	for limit := p + maxName; p < limit; p++ {
		if d, ok := m.peek(p); !ok || d == c {
			break
		}
	}
	return p
}

// openValue begins the value of a parameter at an offset.
func (m *machine) openValue(key, attrs string, at int) {
	x := m.x
	if plain, ok := x.schema.key(key); ok {
		m.find(EscapedName, m.pos, 0, "Markdown escapes in the key "+key)
		key = plain
	}
	x.name, x.types = key, x.schema.typesOf(key)
	if len(x.types) == 0 && strings.Contains(attrs, `string="true"`) {
		x.types = []string{"string"}
	}
	x.text, x.opened, x.raw, x.held, x.lead = false, false, nil, nil, 0
	if x.n++; x.n > 1 {
		x.c.args = append(x.c.args, ", "...)
	}
	x.c.args = appendString(x.c.args, []byte(key))
	x.c.args = append(x.c.args, ": "...)
	m.take(ToolCall, at)
	m.state = stepValue
}

// stepValue reads a value up to its end.
func stepValue(m *machine) bool {
	x := m.x
	if !x.opened {
		p := m.pos
		if x.line {
			if c, _ := m.peek(p); c == '\r' && m.has(p+1, "\n") {
				p += 2
			} else if c == '\n' {
				p++
			}
		}
		if m.starved {
			return false
		}
		m.take(ToolCall, p)
		x.opened, x.at = true, p
		x.text = len(x.types) == 1 && x.types[0] == "string"
		if x.text {
			x.c.args = append(x.c.args, '"')
		}
	}
	for p := m.pos; ; p++ {
		for p < m.end() {
			if c := m.in[p-m.base]; c == '<' || x.line && (c == '\n' || c == '\r') {
				break
			}
			p++
		}
		if p == m.end() {
			m.valuePart(p)
			if m.eof {
				m.closeValue(false)
				m.closeParams(false, Truncated)
				return true
			}
			return false
		}
		end, known := m.valueEnd(p)
		if m.starved {
			m.valuePart(p)
			return false
		}
		if known {
			m.valuePart(p)
			m.take(ToolCall, end)
			m.closeValue(true)
			m.state = stepParams
			return true
		}
	}
}

// valueEnd reports whether a value ends at p, and where what follows begins.
func (m *machine) valueEnd(p int) (int, bool) {
	x := m.x
	q := p
	line := false
	if x.line {
		if m.in[p-m.base] == '\r' {
			if !m.has(p+1, "\n") {
				return 0, false
			}
			q++
		}
		if m.in[p-m.base] != '<' {
			q++
			line = true
		}
	}
	if m.has(q, x.value[1]) {
		return q + len(x.value[1]), true
	}
	if m.partial(q, x.value[1]) && m.end()-q > 1 {
		return m.end(), true
	}
	// Where the end tag of a value was forgotten, the next tag stands on its own line.
	if x.line && line && m.has(q, x.key[0]) {
		return q, true
	}
	if s := m.hasAny(q, x.ends); s != "" && !m.starved {
		r := m.blanks(q + len(s))
		if m.starved {
			return 0, false
		}
		if m.atEnd(r) || x.scopeEnd != "" && m.has(r, x.scopeEnd) {
			return q, true
		}
	}
	return 0, false
}

// valuePart reads a part of a value, up to an offset.
func (m *machine) valuePart(to int) {
	x := m.x
	p := m.source(m.pos, to)
	switch {
	case len(p) == 0:
	case x.text:
		x.string(p, false)
	default:
		if s := bytes.TrimLeft(p, " \t\r\n"); x.lead == 0 && len(s) > 0 {
			x.lead = s[0]
		}
		x.raw = append(x.raw, p...)
		// Only a string begins so, unless the schema knows better.
		if len(x.types) == 0 && x.lead != 0 && strings.IndexByte("{[-0123456789tfnTFN\"'(", x.lead) < 0 {
			x.text = true
			x.c.args = append(x.c.args, '"')
			x.string(x.raw, false)
			x.raw = nil
		}
	}
	m.take(ToolCall, to)
}

// string passes on a part of a string. The beginning of a character waits.
func (x *params) string(p []byte, last bool) {
	x.held = append(x.held, p...)
	n := len(x.held)
	if !last {
		n = wholeCharacters(x.held)
	}
	x.c.args = appendText(x.c.args, x.held[:n])
	x.held = append(x.held[:0], x.held[n:]...)
}

// closeValue ends a value. whole: its end tag was there.
func (m *machine) closeValue(whole bool) {
	x := m.x
	if x.text {
		x.string(nil, true)
		x.c.args = append(x.c.args, '"')
		return
	}
	x.c.args = append(x.c.args, m.value(x.raw, whole)...)
	x.raw = nil
}

// value returns the JSON of an untyped value.
func (m *machine) value(raw []byte, whole bool) []byte {
	x := m.x
	s := bytes.TrimSpace(raw)
	may := func(t string) bool { return len(x.types) == 0 || slices.Contains(x.types, t) }
	if !whole || len(s) == 0 {
		return appendString(nil, raw)
	}
	switch low := strings.ToLower(string(s)); {
	case (low == "true" || low == "false") && may("boolean"):
		return []byte(low)
	case (low == "null" || string(s) == "None") && may("null"):
		return []byte("null")
	}
	valid := jsonrepair.Check(s, m.o.JSON.MaxDepth) == nil
	switch c := s[0]; {
	case valid && (c == '-' || c >= '0' && c <= '9') && (may("number") || may("integer")),
		valid && c == '{' && may("object"), valid && c == '[' && may("array"):
		return s
	case valid && c == '"' && x.quoted && len(x.types) == 0:
		return s
	case (c == '{' && slices.Contains(x.types, "object") || c == '[' && slices.Contains(x.types, "array")) && !valid:
		if j, ok := m.repairValue(s, c); ok {
			return j
		}
	}
	if len(x.types) > 0 && !slices.Contains(x.types, "string") {
		m.find(DoubtfulValue, x.at, len(raw), "the value of "+x.name+" is not of the schema's type, and was taken for a string")
	}
	return appendString(nil, raw)
}

// repairValue repairs a value of which the schema says that it is an object or array.
func (m *machine) repairValue(s []byte, open byte) ([]byte, bool) {
	r := jsonrepair.Repair(s, m.o.JSON)
	if r.Outcome == jsonrepair.Failed || len(r.Text) == 0 || r.Text[0] != open {
		return nil, false
	}
	if c := m.x.c; c.Repair == nil || c.Repair.Outcome < r.Outcome {
		c.Repair, c.RepairAt = r, m.x.at
		if !m.whole {
			c.Repair = &jsonrepair.Result{Outcome: r.Outcome, Findings: r.Findings, Open: r.Open}
		}
	}
	return r.Text, true
}

// closeParams ends the call.
func (m *machine) closeParams(complete bool, why Problem) {
	c := m.x.c
	c.args = append(c.args, '}')
	c.ended, c.End = complete, m.pos
	c.Problem = problem(c.Problem, why)
	c.Complete = complete
	m.state = stepScope
}

// stepScope takes the end of the tag around the call.
func stepScope(m *machine) bool {
	x := m.x
	if p := m.blanks(m.pos); x.c.Complete && x.scopeEnd != "" && m.has(p, x.scopeEnd) {
		m.take(ToolCall, p+len(x.scopeEnd))
	}
	if m.starved {
		return false
	}
	m.x = nil
	m.finish()
	return true
}
