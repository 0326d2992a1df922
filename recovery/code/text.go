package code

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// quote is a rule for strings.
type quote struct {
	open, close string
	escape      byte   // takes away the meaning of what follows; 0: none does
	double      bool   // the end, written twice, stands for itself
	lines       bool   // may go over several lines
	code        string // what begins code in it, such as ${; empty: nothing
	codeEnd     string // what ends it
	format      bool   // a colon in such code begins a format
	nest        byte   // an opening bracket that nests, of %w(…)
	name        string // for [Open]; empty: string
	character   bool   // one character only: not all that begins like it is one
	flags       bool   // letters may follow the end, as those of a regular expression
}

// quoted reads the beginning of a string.
func (s *scanner) quoted(c byte) bool {
	for i := range s.lang.quotes {
		q := &s.lang.quotes[i]
		if q.open[0] != c || !s.at(q.open) {
			continue
		}
		if q.character {
			return s.character(q)
		}
		s.push(frame{kind: text, closer: q.close, rule: q}, len(q.open))
		return true
	}
	return false
}

// character reads a character literal, or what only begins like one: a lifetime, a
// symbol, a mark between digits.
func (s *scanner) character(q *quote) bool {
	const longest = 16 // of '\U0001F600' and of C's 'abcd'
	rest := s.src[s.i+1 : min(len(s.src), s.i+1+longest)]
	end := -1
	for i := 0; i < len(rest) && rest[i] != '\n'; i++ {
		if rest[i] == '\\' {
			i++
		} else if rest[i] == '\'' && i > 0 {
			end = i
			break
		}
	}
	_, size := utf8.DecodeRune(rest)
	switch {
	case end >= 0 && (rest[0] == '\\' || end == size || s.lang.longCharacters):
		s.i += end + 2
		s.value, s.word, s.last, s.command = true, "", '\'', false
		return true
	case s.lang.ticks:
		s.i++ // something else
		s.value, s.word, s.last = false, "", '\''
		return true
	case len(rest) < longest && bytes.IndexByte(rest, '\n') < 0 && end < 0:
		s.push(frame{kind: text, closer: "'", rule: q}, 1)
		s.i = len(s.src)
		s.dangling = endsInEscape(s.src)
		return true
	}
	s.problem(s.i, "this character literal does not end")
	s.i++
	s.value, s.last = true, '\''
	return true
}

// endsInEscape reports whether src ends in an odd number of backslashes.
func endsInEscape(src []byte) bool {
	return (len(src)-len(bytes.TrimRight(src, `\`)))%2 == 1
}

// readText reads on in a string until it ends or code begins in it.
func (s *scanner) readText() {
	f, q := s.top, s.top.rule
	for s.i < len(s.src) {
		c := s.src[s.i]
		switch {
		case q.escape != 0 && c == q.escape && !(q.code != "" && q.code[0] == c && s.at(q.code)):
			if s.i += 2; q.format && s.i <= len(s.src) && (s.src[s.i-1] == '{' || s.src[s.i-1] == '}') {
				s.i-- // braces have no escapes
			}
			if s.i > len(s.src) {
				s.i, s.dangling = len(s.src), true
			}
		case s.at(f.closer):
			if s.closeText() {
				return
			}
		case q.nest != 0 && c == q.nest:
			f.nested++
			s.i++
		case q.code != "" && s.at(q.code):
			if q.format && s.peek(1) == q.code[0] {
				s.i += 2 // {{
				continue
			}
			s.push(frame{kind: interpolation, closer: q.codeEnd, value: true, plain: s.lang.plainCode && q.code == "${"}, len(q.code))
			return
		case s.lang.shell && q.code != "" && (c == '$' || c == '`') && s.shellCode(c):
			return
		case c == '\n' && !q.lines:
			s.endOfLine()
			return
		default:
			s.i++
		}
	}
}

// closeText reads the end of a string. It returns false if the string goes on.
func (s *scanner) closeText() bool {
	f, q := s.top, s.top.rule
	n := len(f.closer)
	switch {
	case q.double && s.i+2*n <= len(s.src) && string(s.src[s.i+n:s.i+2*n]) == f.closer:
		s.i += 2 * n
		return false
	case f.nested > 0:
		f.nested--
		s.i += n
		return false
	}
	s.i += n
	if n == 3 && f.closer[0] == '"' && s.lang.longEnds {
		for s.peek(0) == '"' { // the string's own last quotes
			s.i++
		}
	}
	s.pop()
	s.indent.sig, s.indent.sigAt = '"', s.i-1
	if q.format && f.closer == "}" { // a format, and with it the code
		s.pop()
		return true
	}
	if q.flags {
		for s.i < len(s.src) && s.src[s.i] >= 'a' && s.src[s.i] <= 'z' {
			s.i++
		}
	}
	s.value, s.word, s.last, s.command = true, "", '"', false
	return true
}

// format begins the format behind a colon in code in a string.
func (s *scanner) format() bool {
	rule := s.top.up.rule
	if rule == nil || !rule.format {
		return false
	}
	q := &quote{close: "}", code: "{", codeEnd: "}", format: true, lines: rule.lines}
	s.push(frame{kind: text, closer: "}", rule: q}, 1)
	return true
}

// endOfLine reads the end of a line in a string that may not have one.
func (s *scanner) endOfLine() {
	f := s.top
	s.problem(f.offset, "this "+f.name()+" does not end on its line")
	for s.top.kind != root && s.top.offset >= f.offset {
		s.pop()
	}
	s.value, s.word, s.last = true, "", '"'
}

// regex reads a regular expression between slashes, if this is one.
func (s *scanner) regex() bool {
	if s.value || s.i < s.noRegex {
		return false
	}
	if s.lang.jsx && (s.i > 0 && s.src[s.i-1] == '<' || s.unsure && s.peek(1) == '>') {
		return false // of a tag
	}
	class := false
	for i := s.i + 1; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '\\':
			i++
		case c == '\n':
			s.noRegex = i
			return false
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			for i++; i < len(s.src) && isIdent(s.src[i]); i++ {
			}
			s.i = i
			s.value, s.word, s.last, s.command = true, "", '/', false
			return true
		}
	}
	q := &quote{close: "/", escape: '\\', name: "regex"}
	if class {
		q.close = "]/"
	}
	s.push(frame{kind: text, closer: q.close, rule: q}, 1)
	s.i = len(s.src)
	s.dangling = endsInEscape(s.src)
	return true
}

// heredoc is text that begins on the next line.
type heredoc struct {
	opener string
	tag    string
	offset int
	indent bool // white space may be before the end
	loose  bool // more may follow the end, as in PHP
}

// hereTag reads the tag of a heredoc at byte i: a word, in quotes or not.
func (s *scanner) hereTag(i int) (tag string, end int) {
	if i >= len(s.src) {
		return "", i
	}
	if c := s.src[i]; c == '"' || c == '\'' || c == '`' {
		n := bytes.IndexByte(s.src[i+1:min(len(s.src), i+66)], c)
		if n < 1 || bytes.IndexByte(s.src[i+1:i+1+n], '\n') >= 0 {
			return "", i
		}
		return string(s.src[i+1 : i+1+n]), i + n + 2
	}
	if s.src[i] == '\\' {
		i++
	}
	end = i
	for end < len(s.src) && isIdent(s.src[end]) && s.src[end] != '$' && end-i < 64 {
		end++
	}
	if end == i || s.src[i] >= '0' && s.src[i] <= '9' {
		return "", i
	}
	return string(s.src[i:end]), end
}

// beginHeredoc opens the first heredoc that was announced on the line before.
func (s *scanner) beginHeredoc() {
	h := s.heredocs[0]
	s.heredocs = s.heredocs[1:]
	command, value := s.command, s.value
	s.push(frame{kind: hereText, closer: h.tag, opener: h.opener, indented: h.indent, loose: h.loose}, 0)
	s.top.offset = h.offset
	s.command, s.value = command, value
}

// readHeredoc reads a line of a heredoc.
func (s *scanner) readHeredoc() {
	f := s.top
	end, next := len(s.src), len(s.src)
	if n := bytes.IndexByte(s.src[s.i:], '\n'); n >= 0 {
		end, next = s.i+n, s.i+n+1
	}
	line := s.src[s.i:end]
	if f.indented {
		line = bytes.TrimLeft(line, " \t")
	}
	tag := len(f.closer)
	whole := string(bytes.TrimRight(line, "\r")) == f.closer
	if f.loose && !whole && strings.HasPrefix(string(line[:min(len(line), tag)]), f.closer) && tag < len(line) && !isIdent(line[tag]) {
		s.i = end - len(line) + tag
		s.pop()
		s.value, s.last = true, '"'
		return
	}
	if !whole {
		s.i = next
		return
	}
	s.pop()
	s.i = next
	if f.loose {
		s.i = end
	}
	s.value, s.last, s.command = true, 0, true
	if len(s.heredocs) > 0 && next <= len(s.src) {
		s.beginHeredoc()
	}
}
