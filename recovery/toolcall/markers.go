package toolcall

import "strings"

// Calls whose parts special tokens separate.

// enterMistral reads what stands behind [TOOL_CALLS]: an array of calls, or names each
// with [ARGS] or a brace behind it.
func enterMistral(m *machine, op opener, p, q int) verdict {
	b := &block{format: Mistral, stops: []string{"[TOOL_CALLS]", "</s>"}, trailers: []string{"</s>"}}
	at := m.blanks(q)
	c, ok := m.peek(at)
	switch {
	case !ok:
		return m.cut(at)
	case c == '{':
		return m.beginJSON(b, at)
	case c == '[' && !m.has(at, "[TOOL_CALLS]"):
		next := m.blanks(at + 1)
		if d, ok := m.peek(next); d == '{' || d == ']' {
			return m.beginJSON(b, at)
		} else if !ok {
			return m.cut(next)
		}
		return no
	case !isWord(c):
		return no
	}
	name, next := m.name(at)
	b.args, b.name, b.nameAt = true, name, at
	next = m.blanks(next)
	if m.has(next, "[CALL_ID]") {
		from := next + len("[CALL_ID]")
		_, to := m.name(from)
		if m.starved {
			return wait
		}
		b.id = string(m.source(from, to))
		next = m.blanks(to)
	}
	if m.has(next, "[ARGS]") {
		next = m.blanks(next + len("[ARGS]"))
	} else if c, ok := m.peek(next); ok && c == '[' {
		if s := "[ARGS]"; m.partial(next, s) || m.partial(next, "[CALL_ID]") {
			return m.cut(m.end())
		}
		return no
	}
	c, ok = m.peek(next)
	switch {
	case !ok:
		return m.cut(next)
	case c != '{' && c != '"':
		return no
	}
	return m.beginJSON(b, next)
}

// partial reports whether the text ends at p with the beginning of s.
func (m *machine) partial(p int, s string) bool {
	rest := m.in[min(p, m.end())-m.base:]
	return m.eof && len(rest) < len(s) && string(rest) == s[:len(rest)]
}

// enterDeepSeekSection reads the token before all calls, which one must follow.
func enterDeepSeekSection(m *machine, op opener, p, q int) verdict {
	at := m.blanks(q)
	if s := m.hasAny(at, deepSeekCalls); s != "" && !m.starved {
		return enterDeepSeek(m, op, p, at+len(s))
	}
	if m.starved {
		return wait
	}
	if m.atEnd(at) {
		return m.cut(at)
	}
	for _, s := range deepSeekCalls {
		if m.partial(at, s) {
			return m.cut(m.end())
		}
	}
	return enterDeepSeek(m, op, p, at)
}

// enterDeepSeek reads what stands behind the token before a call: of V3 and R1 the
// type, a separator, the name and a fence; of V3.1 the name, a separator and JSON.
func enterDeepSeek(m *machine, op opener, p, q int) verdict {
	b := &block{format: DeepSeek, args: true, ends: deepSeekEnds, trailers: deepSeekTrailers}
	b.stops = append(append(b.stops, deepSeekCalls...), deepSeekTrailers...)
	first, at := m.name(m.blanks(q))
	sep := m.hasAny(at, deepSeekSeps)
	if m.starved {
		return wait
	}
	if sep == "" {
		for _, s := range deepSeekSeps {
			if m.partial(at, s) {
				return m.cut(m.end())
			}
		}
		return no
	}
	b.name, b.nameAt = first, at-len(first)
	next := m.blanks(at + len(sep))
	c, ok := m.peek(next)
	if ok && isWord(c) && (first == "function" || first == "") {
		b.nameAt = next
		b.name, next = m.name(next)
		next = m.blanks(next)
		c, ok = m.peek(next)
	}
	if ok && c == '`' {
		if !m.has(next, "```") {
			if m.partial(next, "```") {
				return m.cut(m.end())
			}
			return no
		}
		b.fence = true
		next += 3
		if m.has(next, "json") {
			next += 4
		} else if m.partial(next, "json") {
			return m.cut(m.end())
		}
		next = m.blanks(next)
		c, ok = m.peek(next)
	}
	switch {
	case m.starved:
		return wait
	case b.name == "":
		return no
	case !ok:
		return m.cut(next)
	case c != '{' && c != '"':
		return no
	}
	return m.beginJSON(b, next)
}

const kimiArgs = "<|tool_call_argument_begin|>"

// enterKimiSection reads the token before all calls, which one must follow.
func enterKimiSection(m *machine, op opener, p, q int) verdict {
	at := m.blanks(q)
	if m.has(at, "<|tool_call_begin|>") {
		return enterKimi(m, op, p, at+len("<|tool_call_begin|>"))
	}
	if m.partial(at, "<|tool_call_begin|>") {
		return m.cut(m.end())
	}
	return no
}

// enterKimi reads functions.NAME:INDEX and the token before its arguments.
func enterKimi(m *machine, op opener, p, q int) verdict {
	at := m.blanks(q)
	id, to := m.name(at)
	next := m.blanks(to)
	if m.starved {
		return wait
	}
	if !m.has(next, kimiArgs) {
		if m.starved {
			return wait
		}
		if m.partial(next, kimiArgs) {
			return m.cut(m.end())
		}
		if m.enabled[DeepSeek] {
			return enterDeepSeek(m, op, p, q)
		}
		return no
	}
	if id == "" || !m.enabled[Kimi] {
		return no
	}
	b := &block{format: Kimi, args: true, id: id, nameAt: at}
	b.name = strings.TrimPrefix(id, "functions.")
	if i := strings.LastIndexByte(b.name, ':'); i > 0 && strings.Trim(b.name[i+1:], "0123456789") == "" {
		b.name = b.name[:i]
	}
	b.ends = []string{"<|tool_call_end|>"}
	b.stops = []string{"<|tool_call_begin|>", "<|tool_calls_section_end|>", "<|im_end|>"}
	b.trailers = []string{"<|tool_calls_section_end|>", "<|im_end|>"}
	next = m.blanks(next + len(kimiArgs))
	c, ok := m.peek(next)
	switch {
	case !ok:
		return m.cut(next)
	case c != '{' && c != '"':
		return no
	}
	return m.beginJSON(b, next)
}

// enterAction reads the calls of Command R.
func enterAction(m *machine, op opener, p, q int) verdict {
	b := &block{format: CommandR, ends: []string{"<|END_ACTION|>"}, trailers: []string{"<|END_OF_TURN_TOKEN|>"}}
	return m.enterArray(b, m.blanks(q))
}

// enterActionFence reads them as the first Command R writes them, in a fence.
func enterActionFence(m *machine, op opener, p, q int) verdict {
	at := m.blanks(q)
	if !m.has(at, "```json") {
		return no
	}
	b := &block{format: CommandR, fence: true}
	at = m.blanks(at + len("```json"))
	next := m.blanks(at + 1)
	if c, _ := m.peek(at); c != '[' {
		return no
	}
	if c, _ := m.peek(next); c != '{' {
		return no
	}
	if q := m.blanks(next + 1); !m.has(q, `"tool_name"`) && !m.has(q, `"tool_call_id"`) {
		return no
	}
	return m.beginJSON(b, at)
}

// enterArray reads descriptions of calls, in an array or not.
func (m *machine) enterArray(b *block, at int) verdict {
	c, ok := m.peek(at)
	if c == '[' {
		next := m.blanks(at + 1)
		if c, ok = m.peek(next); c == ']' {
			c = '{'
		}
	}
	switch {
	case !ok:
		return m.cut(m.end())
	case c != '{':
		return no
	}
	return m.beginJSON(b, at)
}

var llamaTrailers = []string{"<|eom_id|>", "<|eot_id|>"}

// enterPythonTag reads what stands behind the token that Llama 3 writes before calls.
func enterPythonTag(m *machine, op opener, p, q int) verdict {
	b := &block{format: Llama3JSON, stops: llamaTrailers, trailers: llamaTrailers}
	at := m.blanks(q)
	c, ok := m.peek(at)
	if ok && isWord(c) {
		name, next := m.name(at)
		if !strings.HasSuffix(name, ".call") && m.tools[name] == nil {
			if m.starved {
				return wait
			}
			if m.atEnd(next) {
				return m.cut(next)
			}
			return no
		}
		return m.enterPython(b, at, at)
	}
	return m.enterArray(b, at)
}

// functionaryStops do not stand in the arguments of a call of Functionary.
var functionaryStops = []string{"<|eot_id|>"}

// enterFunctionary reads >>>NAME, a new line and JSON.
func enterFunctionary(m *machine, op opener, p, q int) verdict {
	name, at := m.name(q)
	if c, ok := m.peek(at); name == "" || !ok || c != '\n' {
		return no
	}
	if name == "all" && (!m.begun || m.after != nil) {
		m.b = nil
		m.state = func(m *machine) bool { // what follows is for the user
			m.take(Separator, at+1)
			m.lines.bol, m.state = true, stepText
			return true
		}
		return yes
	}
	at = m.blanks(at)
	if c, _ := m.peek(at); c != '{' {
		return no
	}
	b := &block{format: Functionary, args: true, name: name, nameAt: q, stops: functionaryStops, trailers: llamaTrailers}
	return m.beginJSON(b, at)
}

// maxHeader is how long the header of a harmony message may be.
const maxHeader = 256

// enterHarmony reads the header of a message: a channel and a recipient, in either
// order, up to <|message|>. It is a call if the recipient is a function.
func enterHarmony(m *machine, op opener, p, q int) verdict {
	const message = "<|message|>"
	at := q
	for ; at-q < maxHeader; at++ {
		c, ok := m.peek(at)
		if !ok || c == '\n' || c == '{' {
			break
		}
		if c == '<' && m.has(at, message) {
			break
		}
	}
	if m.starved {
		return wait
	}
	header := string(m.source(q, min(at, m.end())))
	i := strings.Index(header, "to=")
	if i < 0 {
		return no
	}
	from := q + i + len("to=")
	if m.has(from, "functions.") {
		from += len("functions.")
	} else if to, _ := m.name(from); m.tools[to] == nil {
		return no // a channel or a tool that the server has
	}
	if !m.has(at, message) {
		if m.atEnd(at) {
			return m.cut(at)
		}
		return no
	}
	name, _ := m.name(from)
	if name == "" {
		return no
	}
	b := &block{format: Harmony, args: true, name: name, nameAt: from}
	b.ends = []string{"<|call|>"}
	b.stops = []string{"<|start|>", "<|end|>", "<|channel|>", "<|return|>"}
	b.trailers = []string{"<|end|>"}
	next := m.blanks(at + len(message))
	c, ok := m.peek(next)
	switch {
	case !ok:
		return m.cut(next)
	case c != '{' && c != '"':
		return no
	}
	return m.beginJSON(b, next)
}
