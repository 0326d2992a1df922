package code

import "bytes"

// hookYAML reads what the rules for strings and brackets must not: text in which they
// mean nothing. A string or a bracket has a meaning where a value begins.
func hookYAML(s *scanner) bool {
	c := s.src[s.i]
	begins := s.last == 0 || s.value
	switch {
	case c == '\n' || c == ' ' || c == '\t' || c == '\r':
		return false
	case (c == '|' || c == '>') && begins && s.top.kind == root:
		s.blockScalar()
		return true
	case c == '#':
		return false
	case (c == '"' || c == '\'' || c == '[' || c == '{') && !begins:
	case c == '"' || c == '\'' || c == '[' || c == '{':
		return false
	case (c == ']' || c == '}') && s.top.kind == bracket:
		return false
	}
	s.i++
	// A value may begin behind a mark and a space, or within brackets.
	next := s.peek(0)
	s.value = (c == ':' || c == '-' || c == '?') && (next == ' ' || next == '\n') || s.top.kind == bracket && (c == ',' || c == ':')
	s.last = c
	return true
}

// blockScalar passes over the lines of a value that begins with | or >: all that are
// indented more than the line with the mark, and empty ones.
func (s *scanner) blockScalar() {
	start := bytes.LastIndexByte(s.src[:s.i], '\n') + 1
	indent := len(s.src[start:]) - len(bytes.TrimLeft(s.src[start:], " -"))
	indent = min(indent, s.i-start)
	if first := bytes.TrimLeft(s.src[start:], " "); len(first) > 0 && first[0] == '-' {
		indent = len(s.src[start:]) - len(first)
	}
	for {
		end := bytes.IndexByte(s.src[s.i:], '\n')
		if end < 0 {
			s.i = len(s.src)
			return
		}
		s.i += end
		next := s.src[s.i+1:]
		text := bytes.TrimLeft(next, " ")
		if len(text) > 0 && text[0] != '\n' && text[0] != '\r' && len(next)-len(text) <= indent {
			return
		}
		s.i++
	}
}
