package code

import (
	"bytes"
	"strings"
)

// branch is an #if whose #endif has not come.
type branch struct {
	offset int
	before *frame // what was open at #if
	first  *frame // what was open at the end of the first branch, nil in it
}

// directive reads a line of C's preprocessor. What #if chooses between begins with
// the same things open, and the first branch counts. What a #define opens it need
// not close.
func directive(s *scanner) bool {
	if s.directive && !s.at("/*") { // behind a comment in a directive
		s.directive = false
		line, _, _ := bytes.Cut(s.src[s.i:], []byte("\n"))
		s.passLine(line)
		return s.i < len(s.src) && len(line) > 0
	}
	if s.src[s.i] != '#' || s.last != 0 || s.macro != nil {
		return false
	}
	line := s.src[s.i:]
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	name, rest := directiveName(line[1:min(len(line), 80)])
	switch name {
	case "if", "ifdef", "ifndef":
		s.branches = append(s.branches, branch{offset: s.i, before: s.top})
		if strings.TrimSpace(rest) == "0" {
			s.i += len(line)
			s.skipBranch()
			return true
		}
	case "else", "elif", "elifdef", "elifndef":
		if n := len(s.branches); n > 0 {
			b := &s.branches[n-1]
			if b.first == nil {
				b.first = s.top
			}
			s.top = b.before
		} else {
			s.problem(s.i, "#"+name+" without #if")
		}
	case "endif":
		s.endif()
	case "define":
		s.macro = s.top
		s.i += len("#define")
		s.last = 'a'
		return true
	}
	s.passLine(line)
	return true
}

// passLine reads the rest of a directive: its line, those that a backslash adds, and
// the beginning of a comment that goes on.
func (s *scanner) passLine(line []byte) {
	for {
		if open := bytes.LastIndex(line, []byte("/*")); open >= 0 && !bytes.Contains(line[open:], []byte("*/")) {
			s.i += open
			s.last, s.directive = 'a', true
			return
		}
		s.i += len(line)
		if s.i >= len(s.src) || !bytes.HasSuffix(bytes.TrimRight(line, "\r"), []byte("\\")) {
			return
		}
		s.i++
		line = s.src[s.i:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
	}
}

// directiveName splits a directive behind its #.
func directiveName(line []byte) (name, rest string) {
	text := strings.TrimLeft(string(line), " \t")
	i := 0
	for i < len(text) && text[i] >= 'a' && text[i] <= 'z' {
		i++
	}
	return text[:i], text[i:]
}

func (s *scanner) endif() {
	n := len(s.branches)
	if n == 0 {
		s.problem(s.i, "#endif without #if")
		return
	}
	b := s.branches[n-1]
	other := b.before
	if b.first != nil {
		other, s.top = s.top, b.first
	}
	// What is open depends on the condition: extern "C" { for C++ alone.
	s.unsure = s.unsure || other.depth != s.top.depth
	s.branches = s.branches[:n-1]
}

// skipBranch passes over what is behind #if 0, up to its #else or #endif.
func (s *scanner) skipBranch() {
	depth := 0
	for s.i < len(s.src) {
		end := bytes.IndexByte(s.src[s.i:], '\n')
		if end < 0 {
			s.i = len(s.src)
			return
		}
		s.i += end + 1
		line := bytes.TrimLeft(s.src[s.i:min(len(s.src), s.i+80)], " \t")
		if len(line) == 0 || line[0] != '#' {
			continue
		}
		switch line = bytes.TrimLeft(line[1:], " \t"); {
		case bytes.HasPrefix(line, []byte("if")):
			depth++
		case bytes.HasPrefix(line, []byte("endif")) && depth > 0:
			depth--
		case depth == 0 && (bytes.HasPrefix(line, []byte("el")) || bytes.HasPrefix(line, []byte("endif"))):
			s.last = 0
			return
		}
	}
}

// endDirectives: what a macro opened at the end of the text is not open.
func endDirectives(s *scanner) {
	if s.macro != nil && s.top.kind != text && s.top.kind != comment {
		s.top, s.macro = s.macro, nil
	}
}

// cSharp reads C#'s directives and strings with prefixes: @"…", $"…", """…""".
func cSharp(s *scanner) bool {
	c := s.src[s.i]
	if c == '#' && s.last == 0 {
		for _, free := range []string{"region", "error", "warning", "pragma", "nullable", "line", "endregion"} {
			if s.i++; s.at(free) {
				s.i--
				if end := bytes.IndexByte(s.src[s.i:], '\n'); end >= 0 {
					s.i += end
				} else {
					s.i = len(s.src)
				}
				return true
			}
			s.i--
		}
		if !s.at("#define") {
			return directive(s)
		}
	}
	if c != '@' && c != '$' && c != '"' {
		return false
	}
	n, code, exact := 0, 0, false
	for ; s.peek(n) == '@' || s.peek(n) == '$'; n++ {
		if s.peek(n) == '$' {
			code++
		} else {
			exact = true
		}
	}
	marks := 0
	for s.peek(n+marks) == '"' {
		marks++
	}
	switch {
	case marks >= 3 && !exact: // raw: as many quotes at the end
		end := strings.Repeat(`"`, marks)
		s.push(frame{kind: text, closer: end, rule: &quote{close: end, lines: true}}, n+marks)
		return true
	case marks == 0 && n > 0:
		s.i += n
		s.value, s.last, s.command = false, '@', false
		return true
	case n == 0:
		return false
	}
	q := quote{close: `"`, escape: '\\'}
	if exact {
		q = twice(`"`)
	}
	if code > 0 {
		q.code, q.codeEnd, q.format = "{", "}", true
	}
	s.push(frame{kind: text, closer: q.close, rule: &q}, n+1)
	return true
}
