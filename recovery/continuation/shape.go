package continuation

import (
	"bytes"
)

// Form is what a text is.
type Form string

// The forms.
const (
	// Auto is JSON where the text, an open fence in it, or its last part is JSON so
	// far, else text.
	Auto Form = ""
	Text Form = "text"
	JSON Form = "json"
)

// shape is what a text consists of at its end.
type shape struct {
	body int // where reasoning at the beginning ends; all offsets are bytes of the text
	// thinking is where reasoning begins that has not ended, call where a tool call
	// does; none if there is none.
	thinking, call int
	fence          fence // the one that is open
	// json is where JSON begins that lasts until the end of the text, and m has read
	// it; none if there is none.
	json int
	m    *machine
	// prose says that the body begins with JSON that is whole, and goes on.
	prose bool
	// wrapped says that all of the body is one closed fence.
	wrapped bool
}

const none = -1

// fence is the line that opens a code block.
type fence struct {
	at     int // where the line begins; none: no fence
	mark   byte
	length int // of the run of marks
	info   string
	inside int // where the block's content begins
}

// whole reports whether the JSON at the end is complete.
func (s *shape) whole() bool { return s.json != none && s.m.end > 0 }

// reasoningTags begin what a model thinks; each ends with its closing tag.
var reasoningTags = []struct{ open, end string }{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"},
	{"<reflection>", "</reflection>"},
	{"[THINK]", "[/THINK]"},
	{"<|channel|>analysis<|message|>", "<|end|>"},
}

// callTags begin tool calls in text. One without an end lasts until the end.
var callTags = []struct{ open, end string }{
	{"<tool_call>", "</tool_call>"},
	{"<tool_calls>", "</tool_calls>"},
	{"<function_call>", "</function_call>"},
	{"<function_calls>", "</function_calls>"},
	{"<function=", "</function>"},
	{"<|tool_call_begin|>", "<|tool_call_end|>"},
	{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},
	{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
	{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"},
	{"<|python_tag|>", ""},
	{"[TOOL_CALLS]", ""},
	{"<|tool_call|>", ""},
}

// look reads a text once or, where JSON is looked for in prose, a bounded number of
// times.
func look(text []byte, form Form) *shape {
	s := &shape{thinking: none, call: none, json: none, fence: fence{at: none}}
	s.body = skipSpace(text, 0)
	for _, tag := range reasoningTags {
		if !bytes.HasPrefix(text[s.body:], []byte(tag.open)) {
			continue
		}
		n := bytes.Index(text[s.body:], []byte(tag.end))
		if n < 0 {
			s.thinking = s.body
			return s
		}
		s.body = skipSpace(text, s.body+n+len(tag.end))
		break
	}
	if form != Text && s.read(text, s.body, form) {
		return s
	}
	last := s.fences(text)
	if form != Text && s.fence.at != none && s.read(text, skipSpace(text, s.fence.inside), Auto) {
		return s
	}
	s.findCall(text)
	if form != Text && s.fence.at == none && s.call == none {
		s.findJSON(text, last)
	}
	return s
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

// read takes the rest of the text for JSON if it is.
func (s *shape) read(text []byte, at int, form Form) bool {
	if at >= len(text) || form != JSON && text[at] != '{' && text[at] != '[' {
		return false
	}
	m := &machine{}
	if n := m.run(text[at:]); n < len(text)-at {
		s.prose = s.prose || m.end > 0
		return false
	}
	if form != JSON && m.depth > 0 && text[at] == '[' && m.pos < 3 {
		return false // "[" or "[1": as likely a footnote
	}
	s.json, s.m = at, m
	return true
}

// fences finds the fence that is open at the end, and returns where the last
// closed one ends.
func (s *shape) fences(text []byte) (last int) {
	count, first := 0, none
	last = s.body
	for at := s.body; at < len(text); {
		next := len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			next = at + n + 1
		}
		f, ok := fenceLine(text[at:next])
		switch {
		case !ok:
		case s.fence.at == none:
			f.at, f.inside = at, next
			s.fence = f
			if count++; first == none {
				first = at
			}
		case f.mark == s.fence.mark && f.length >= s.fence.length && f.info == "":
			s.fence = fence{at: none}
			last = next
		}
		at = next
	}
	s.wrapped = count == 1 && first == s.body && s.fence.at == none && skipSpace(text, last) == len(text)
	return last
}

// fenceLine reads a line that opens or closes a code block, which may stand in a
// list.
func fenceLine(line []byte) (fence, bool) {
	line = bytes.TrimLeft(line, " \t")
	if len(line) < 3 || line[0] != '`' && line[0] != '~' {
		return fence{}, false
	}
	f := fence{mark: line[0]}
	for f.length < len(line) && line[f.length] == f.mark {
		f.length++
	}
	info := bytes.TrimSpace(line[f.length:])
	if f.length < 3 || f.mark == '`' && bytes.IndexByte(info, '`') >= 0 {
		return fence{}, false
	}
	f.info = string(info)
	return f, true
}

// findCall finds a tool call that is open, outside of code.
func (s *shape) findCall(text []byte) {
	from := s.body
	if s.fence.at != none {
		return
	}
	for _, tag := range callTags {
		at := bytes.LastIndex(text[from:], []byte(tag.open))
		if at < 0 {
			continue
		}
		at += from
		// What has no end counts where it begins a line only: else it is spoken of.
		if tag.end == "" && at > s.body && text[at-1] != '\n' {
			continue
		}
		if tag.end == "" || bytes.LastIndex(text[at:], []byte(tag.end)) < 0 {
			if s.call == none || at < s.call {
				s.call = at
			}
		}
	}
}

// tries is how many places are looked at for JSON in the middle of prose.
const tries = 8

// findJSON looks for an object that begins in prose and lasts until the end.
func (s *shape) findJSON(text []byte, from int) {
	for range tries {
		n := bytes.IndexByte(text[from:], '{')
		if n < 0 {
			return
		}
		at := from + n
		from = at + 1
		if in := skipSpace(text, at+1); in >= len(text) || text[in] != '"' {
			continue
		}
		m := &machine{}
		if read := m.run(text[at:]); read == len(text)-at && m.end == 0 {
			s.json, s.m = at, m
			return
		} else if m.end > 0 {
			from = at + m.end
		}
	}
}
