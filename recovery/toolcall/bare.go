package toolcall

import "slices"

// bareName reports whether the text begins with a function's name, and behind it a new
// line and JSON: a call of Functionary, whose prompt ends with the marker. Or the text is
// a call as in Python, without brackets.
func (m *machine) bareName(p int) verdict {
	if p < m.trial.spent {
		return no
	}
	name, q := m.name(p)
	if m.starved {
		return wait
	}
	if name == "" || m.tools[name] == nil {
		return no
	}
	if c, _ := m.peek(q); c == '(' && m.enabled[Pythonic] {
		return m.enterPython(&block{bare: late}, p, p)
	} else if c != '\n' || !m.enabled[Functionary] {
		return no
	}
	next := m.blanks(q)
	if c, ok := m.peek(next); !ok {
		return m.cut(next)
	} else if c != '{' {
		return no
	}
	b := &block{format: Functionary, args: true, name: name, nameAt: p, stops: functionaryStops, trailers: llamaTrailers}
	return m.beginJSON(b, next)
}

// bareKeys are the keys with which a call without a marker begins.
var bareKeys = []string{"name", "function", "tool_name", "tool", "type", "id", "arguments", "parameters", "tool_calls", "function_call", "tool_call", "role", "content"}

// enterBare reports whether a call without a marker may begin at p, with c.
func (m *machine) enterBare(p int, c byte) verdict {
	b := &block{bare: early, stops: llamaTrailers, trailers: []string{";", "</tool_call>", "<|eom_id|>", "<|eot_id|>"}}
	if m.begun {
		b.bare = late
		if p < m.trial.spent {
			return no
		}
	}
	at := m.blanks(p + 1)
	d, _ := m.peek(at)
	if c == '[' && isWord(d) {
		if !m.listed(Pythonic) {
			return no
		}
		name, next := m.name(at)
		if d, _ := m.peek(next); m.starved {
			return wait
		} else if d != '(' || !m.known(m.mendedName(name)) {
			return no
		}
		return m.enterPython(b, p, at)
	}
	if c == '[' {
		if d != '{' {
			return no
		}
		at = m.blanks(at + 1)
		d, _ = m.peek(at)
	}
	if d != '"' && d != '\'' {
		return no
	}
	key, next := m.name(at + 1)
	if e, _ := m.peek(next); m.starved {
		return wait
	} else if e != d || !slices.Contains(bareKeys, key) {
		return no
	}
	b.format = Llama3JSON
	if key == "tool_calls" || key == "function_call" || key == "tool_call" || key == "role" || key == "content" {
		b.format = OpenAI
	}
	if !m.listed(b.format) && !(b.format == OpenAI && m.o.Formats == nil && len(m.tools) == 0 && b.bare == early) {
		return no
	}
	b.quoted = b.format == OpenAI
	return m.beginJSON(b, p)
}

// listed reports whether a format without a marker is read.
func (m *machine) listed(f Format) bool {
	return m.enabled[f] && (len(m.tools) > 0 || m.o.Formats != nil)
}

// mendedName returns the name that a call would get.
func (m *machine) mendedName(name string) string {
	c := &call{}
	n := len(m.findings)
	m.nameCall(c, name, 0)
	m.findings = m.findings[:n]
	return c.Name
}
