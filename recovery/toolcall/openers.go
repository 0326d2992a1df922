package toolcall

// opener is a marker with which calls begin.
type opener struct {
	mark    string
	formats []Format
	bol     bool // only at the beginning of a line
	// enter looks at what stands behind the marker, which is at p and ends at q.
	enter func(m *machine, op opener, p, q int) verdict
}

// The tokens of DeepSeek are written with U+FF5C and U+2581; models and converters
// also write them otherwise.
var (
	deepSeekSections = []string{"<｜tool▁calls▁begin｜>", "<｜tool_calls_begin｜>", "<｜tool calls begin｜>", "<｜tool▁calls｜>", "<|tool▁calls▁begin|>", "<|tool_calls_begin|>"}
	deepSeekCalls    = []string{"<｜tool▁call▁begin｜>", "<｜tool_call_begin｜>", "<｜tool call begin｜>", "<|tool▁call▁begin|>"}
	deepSeekSeps     = []string{"<｜tool▁sep｜>", "<｜tool_sep｜>", "<｜tool sep｜>", "<|tool▁sep|>"}
	deepSeekEnds     = []string{"<｜tool▁call▁end｜>", "<｜tool_call_end｜>", "<｜tool call end｜>", "<|tool▁call▁end|>"}
	deepSeekTrailers = []string{"<｜tool▁calls▁end｜>", "<｜tool_calls_end｜>", "<｜tool calls end｜>", "<|tool▁calls▁end|>", "<｜end▁of▁sentence｜>"}
)

// Prefixes of <invoke>.
const (
	antml = "antml" + ":"
	dsml  = "｜DSML｜"
)

// openers is every marker. Where several begin alike the longer stands first.
var openers = makeOpeners()

func makeOpeners() []opener {
	tag := []Format{Hermes, Granite, Qwen3Coder, GLM, Invoke, Pythonic}
	list := []opener{
		{mark: "<tool_call>", formats: tag, enter: enterTag("</tool_call>")},
		{mark: "<tool_calls>", formats: tag, enter: enterTag("</tool_calls>")},
		{mark: "<TOOLCALL>", formats: []Format{Hermes}, enter: enterTag("</TOOLCALL>")},
		{mark: "<seed:tool_call>", formats: []Format{Qwen3Coder}, enter: enterTag("</seed:tool_call>")},
		{mark: "<minimax:tool_call>", formats: []Format{Invoke}, enter: enterTag("</minimax:tool_call>")},
		{mark: "<function_calls>", formats: []Format{Invoke}, enter: enterTag("</function_calls>")},
		{mark: "<" + antml + "function_calls>", formats: []Format{Invoke}, enter: enterTag("</" + antml + "function_calls>")},
		{mark: "<" + dsml + "function_calls>", formats: []Format{Invoke}, enter: enterTag("</" + dsml + "function_calls>")},
		{mark: "<|tool_call|>", formats: []Format{Granite}, enter: enterTag("<|/tool_call|>")},
		{mark: "<function_call>", formats: []Format{Granite}, enter: enterTag("</function_call>")},
		{mark: "<|tool_call_start|>", formats: []Format{Pythonic}, enter: enterTag("<|tool_call_end|>")},
		{mark: "<|python_start|>", formats: []Format{Pythonic}, enter: enterTag("<|python_end|>")},
		{mark: "<function=", formats: []Format{Qwen3Coder, Functionary}, enter: enterFunction("")},
		{mark: "<invoke name=", formats: []Format{Invoke}, enter: enterInvoke("", "")},
		{mark: "<" + antml + "invoke name=", formats: []Format{Invoke}, enter: enterInvoke(antml, "")},
		{mark: "<" + dsml + "invoke name=", formats: []Format{Invoke}, enter: enterInvoke(dsml, "")},
		{mark: "[TOOL_CALLS]", formats: []Format{Mistral}, enter: enterMistral},
		{mark: "<|tool_calls_section_begin|>", formats: []Format{Kimi}, enter: enterKimiSection},
		{mark: "<|tool_call_begin|>", formats: []Format{Kimi, DeepSeek}, enter: enterKimi},
		{mark: "<|START_ACTION|>", formats: []Format{CommandR}, enter: enterAction},
		{mark: "Action:", formats: []Format{CommandR}, bol: true, enter: enterActionFence},
		{mark: "<|python_tag|>", formats: []Format{Llama3JSON}, enter: enterPythonTag},
		{mark: "<|start|>assistant", formats: []Format{Harmony}, enter: enterHarmony},
		{mark: "<|channel|>", formats: []Format{Harmony}, enter: enterHarmony},
		{mark: ">>>", formats: []Format{Functionary}, bol: true, enter: enterFunctionary},
	}
	for _, s := range deepSeekSections {
		list = append(list, opener{mark: s, formats: []Format{DeepSeek}, enter: enterDeepSeekSection})
	}
	for _, s := range deepSeekCalls {
		list = append(list, opener{mark: s, formats: []Format{DeepSeek}, enter: enterDeepSeek})
	}
	return list
}

// tagStops are the markers that do not stand in the arguments of a call in tags.
var tagStops = []string{"<tool_call>", "<|im_end|>"}

// enterTag reads a call between a tag and its end, in whatever form.
func enterTag(end string) func(*machine, opener, int, int) verdict {
	return func(m *machine, op opener, p, q int) verdict {
		b := &block{ends: []string{end}, stops: tagStops, trailers: tagStops[1:]}
		if op.mark != "<tool_call>" {
			b.stops = []string{op.mark, "<|im_end|>"}
		}
		at := m.blanks(q)
		c, ok := m.peek(at)
		switch {
		case !ok:
			return m.cut(at)
		case c == '{' || c == '[':
			return m.enterJSON(b, op, at, c)
		case c == '`' && m.has(at, "```json"):
			at = m.blanks(at + len("```json"))
			if c, _ = m.peek(at); c == '{' || c == '[' {
				b.fence = true
				return m.enterJSON(b, op, at, c)
			}
		case c == '<':
			return m.enterInner(op, at, end)
		case isWord(c):
			return m.enterNamed(b, op, at, end)
		}
		return no
	}
}

// enterJSON reads descriptions of calls that begin at an offset.
func (m *machine) enterJSON(b *block, op opener, at int, c byte) verdict {
	b.format = m.firstEnabled(op, Hermes, Granite)
	if c == '[' {
		b.format = m.firstEnabled(op, Granite, Hermes)
		next := m.blanks(at + 1)
		d, ok := m.peek(next)
		if !ok {
			return m.cut(next)
		}
		if isWord(d) && m.enabled[Pythonic] {
			return m.enterPython(b, at, next)
		}
		if d != '{' && d != ']' {
			return no
		}
	}
	if b.format == "" {
		return no
	}
	return m.beginJSON(b, at)
}

// firstEnabled returns the first of formats that is enabled and has the marker.
func (m *machine) firstEnabled(op opener, list ...Format) Format {
	for _, f := range list {
		for _, g := range op.formats {
			if f == g && m.enabled[f] {
				return f
			}
		}
	}
	return ""
}

// enterInner reads a call in tags that stands in another tag, at an offset.
func (m *machine) enterInner(op opener, at int, end string) verdict {
	for _, prefix := range []string{"", antml, dsml} {
		mark := "<" + prefix + "invoke name="
		if m.enabled[Invoke] && m.has(at, mark) {
			return enterInvoke(prefix, end)(m, op, at, at+len(mark))
		}
	}
	if m.has(at, "<function=") {
		return enterFunction(end)(m, op, at, at+len("<function="))
	}
	if m.atEnd(at + 1) {
		return m.cut(at + 1)
	}
	return no
}

// enterNamed reads a call that begins with the function's name in a tag.
func (m *machine) enterNamed(b *block, op opener, at int, end string) verdict {
	name, q := m.name(at)
	next := m.blanks(q)
	c, ok := m.peek(next)
	switch {
	case m.starved:
		return wait
	case name == "":
		return no
	case !ok:
		return m.cutNamed(name, next)
	case c == '(' && m.enabled[Pythonic]:
		return m.enterPython(b, at, at)
	case m.enabled[GLM] && (m.has(next, "<arg_key>") || m.has(next, end)):
		b.format = GLM
		b.ends = []string{end}
		m.x = glmParams(m, name, at, end)
		return m.begin(b, next, stepParams)
	case c == '{' && m.enabled[Hermes] && (len(m.tools) == 0 || m.tools[name] != nil):
		b.format, b.args, b.name, b.nameAt = Hermes, true, name, at
		return m.beginJSON(b, next)
	}
	return no
}

// cutNamed removes what may be a call whose name ends the text.
func (m *machine) cutNamed(name string, p int) verdict {
	for tool := range m.tools {
		if len(name) <= len(tool) && tool[:len(name)] == name {
			return m.cut(p)
		}
	}
	return no
}

// enterFunction reads <function=NAME>, with parameters or JSON behind it.
func enterFunction(scope string) func(*machine, opener, int, int) verdict {
	return func(m *machine, op opener, p, q int) verdict {
		name, at := m.name(q)
		if name == "" || !m.has(at, ">") {
			if m.atEnd(at) {
				return m.cut(at)
			}
			return no
		}
		next := m.blanks(at + 1)
		c, ok := m.peek(next)
		b := &block{ends: []string{"</function>"}, stops: []string{"<function=", "</tool_call>", "<|im_end|>"}, nameAt: q}
		if scope != "" {
			b.trailers = []string{scope}
		}
		switch {
		case !ok:
			return m.cut(next)
		case c == '{' && m.enabled[Functionary]:
			b.format, b.args, b.name = Functionary, true, name
			return m.beginJSON(b, next)
		case m.enabled[Qwen3Coder] && c == '<':
			if !m.has(next, "<parameter=") && !m.has(next, "</function>") {
				if m.atEnd(next + 1) {
					return m.cut(next + 1)
				}
				return no
			}
			b.format = Qwen3Coder
			m.x = qwenParams(m, name, q, scope)
			return m.begin(b, next, stepParams)
		}
		return no
	}
}

// enterInvoke reads <invoke name="NAME">.
func enterInvoke(prefix, scope string) func(*machine, opener, int, int) verdict {
	return func(m *machine, op opener, p, q int) verdict {
		c, ok := m.peek(q)
		if !ok {
			return m.cut(q)
		}
		if c != '"' && c != '\'' {
			return no
		}
		name, at := m.name(q + 1)
		if d, _ := m.peek(at); name == "" || d != c || !m.has(at+1, ">") {
			if m.atEnd(at) || m.atEnd(at+1) {
				return m.cut(m.end())
			}
			return no
		}
		next := m.blanks(at + 2)
		if m.atEnd(next) {
			return m.cut(next)
		}
		if !m.has(next, "<"+prefix+"parameter name=") && !m.has(next, "</"+prefix+"invoke>") {
			if m.atEnd(next + 1) {
				return m.cut(next + 1)
			}
			return no
		}
		b := &block{format: Invoke, nameAt: q + 1}
		if scope != "" {
			b.trailers = []string{scope}
		}
		m.x = invokeParams(m, name, q+1, prefix, scope)
		return m.begin(b, next, stepParams)
	}
}
