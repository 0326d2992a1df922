package toolcall

import (
	"bytes"
	"strings"
)

// markWords are words of which each marker holds one, so that a text without them need
// not be searched for the markers.
var markWords = []string{"tool", "TOOL", "function", "invoke", "python_", "ACTION", "Action:", ">>>", "<|start|>", "<|channel|>"}

// absent reports whether a whole text certainly holds no call, which costs little. Of the
// markers it keeps those that are there.
func (m *machine) absent(text []byte) bool {
	marks := false
	for _, w := range markWords {
		marks = marks || bytes.Contains(text, []byte(w))
	}
	left := false
	for c := range m.marks {
		list := m.marks[c][:0]
		for _, op := range m.marks[c] {
			if marks && bytes.Contains(text, []byte(op.mark)) {
				list = append(list, op)
			}
		}
		m.marks[c] = list
		left = left || len(list) > 0
	}
	return !left && !m.mayBeBare(text)
}

// mayBeBare reports whether a text may hold a call without a marker: it names a tool, or
// any name counts.
func (m *machine) mayBeBare(text []byte) bool {
	if len(m.tools) == 0 {
		return m.o.Formats != nil || bytes.Contains(text, []byte("tool_call")) || bytes.Contains(text, []byte("function_call")) || bytes.Contains(text, []byte("role"))
	}
	for name := range m.tools {
		if bytes.Contains(text, []byte(longestWord(name))) {
			return true
		}
	}
	return false
}

// longestWord returns the longest part of a name that no escape divides.
func longestWord(name string) string {
	longest := ""
	for w := range strings.FieldsFuncSeq(name, func(r rune) bool { return r >= 0x80 || r == '_' || !isWord(byte(r)) }) {
		if len(w) > len(longest) {
			longest = w
		}
	}
	return longest
}
