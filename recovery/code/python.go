package code

import "strings"

// indentation follows the blocks of Python.
type indentation struct {
	levels []int // of the blocks that are open, in columns
	header *Open // a line that ends in a colon and whose block has not begun
	sig    byte  // the last byte of the logical line that is neither space nor comment
	sigAt  int
	start  int  // where the logical line begins
	goesOn bool // a backslash continues the line
}

func pythonQuotes(raw bool) []quote {
	var list []quote
	for _, mark := range []string{`"""`, "'''", `"`, "'"} {
		list = append(list, quote{open: mark, close: mark, escape: '\\', lines: len(mark) == 3})
	}
	if raw {
		for i := range list {
			list[i].code, list[i].codeEnd, list[i].format = "{", "}", true
		}
	}
	return list
}

var formatQuotes, plainQuotes = pythonQuotes(true), pythonQuotes(false)

// prefixPython reads strings with prefixes. A backslash keeps a quote from ending a raw
// string too.
func prefixPython(s *scanner, word string) (*quote, int) {
	if len(word) > 2 {
		return nil, 0
	}
	switch strings.ToLower(word) {
	case "f", "fr", "rf", "t", "tr", "rt":
		return s.firstOf(formatQuotes, word)
	case "r", "b", "u", "br", "rb":
		return s.firstOf(plainQuotes, word)
	}
	return nil, 0
}

func beginPython(s *scanner) { s.measure() }

// sigPython is called before each token in code. It reads nothing.
func sigPython(s *scanner) bool {
	switch c := s.src[s.i]; c {
	case ' ', '\t', '\r', '\f', '#', '\n':
	case '\\':
		s.indent.goesOn = s.peek(1) == '\n' || s.peek(1) == '\r'
		if !s.indent.goesOn {
			s.indent.sig, s.indent.sigAt = c, s.i
		}
	default:
		s.indent.sig, s.indent.sigAt = c, s.i
	}
	return false
}

// headPython keeps apart what begins a line.
func headPython(s *scanner, _ string, start int, _ bool) { s.indent.sig, s.indent.sigAt = 'a', start }

// linePython ends a line. A logical line ends where nothing is open.
func linePython(s *scanner, _ bool) {
	in := &s.indent
	goesOn := in.goesOn
	in.goesOn = false
	if s.top.kind != root || goesOn {
		return
	}
	if in.sig == ':' {
		in.header = &Open{"block", firstLine(s.src[in.start : in.sigAt+1]), in.start}
	}
	in.sig = 0
	s.i++
	s.measure()
	s.i--
}

// measure looks at the indentation of the line that begins here, unless it is empty.
func (s *scanner) measure() {
	column, i := 0, s.i
	for ; i < len(s.src); i++ {
		switch s.src[i] {
		case ' ':
			column++
		case '\t':
			column = column&^7 + 8
		case '\f':
			column = 0
		default:
			goto measured
		}
	}
measured:
	if i == len(s.src) || s.src[i] == '\n' || s.src[i] == '#' || s.src[i] == '\r' || s.src[i] == '\\' {
		return
	}
	in := &s.indent
	in.start = i
	header := in.header
	in.header = nil
	if len(in.levels) == 0 {
		in.levels = append(in.levels, column)
		return
	}
	top := in.levels[len(in.levels)-1]
	switch {
	case header != nil && column <= top:
		s.problem(i, "the block of "+header.Text+" is missing")
	case header == nil && column > top:
		s.problem(i, "this line is indented without a block around it")
	}
	if column > top {
		in.levels = append(in.levels, column)
		return
	}
	for len(in.levels) > 1 && in.levels[len(in.levels)-1] > column {
		in.levels = in.levels[:len(in.levels)-1]
	}
	if top = in.levels[len(in.levels)-1]; top > column {
		in.levels[0] = column // the snippet begins in a block
	} else if top < column {
		s.problem(i, "this line is indented like no block that is open")
		in.levels = append(in.levels, column)
	}
}

// endPython: a header at the very end has no block yet.
func endPython(s *scanner) {
	if in := &s.indent; in.header == nil && in.sig == ':' && s.top.kind == root {
		in.header = &Open{"block", firstLine(s.src[in.start : in.sigAt+1]), in.start}
	}
}

// firstLine returns the beginning of a text for a message.
func firstLine(src []byte) string {
	const most = 60
	line, _, _ := strings.Cut(string(src[:min(len(src), most)]), "\n")
	return strings.ToValidUTF8(line, "")
}
