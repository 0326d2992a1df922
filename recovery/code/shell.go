package code

import (
	"bytes"
	"strings"
)

// hookShell reads what only shells have.
func hookShell(s *scanner) bool {
	c := s.src[s.i]
	switch {
	case s.top.plain: // in ${…}
		switch {
		case c == '\'' && s.top.up.kind == text:
			s.i++ // no quotes in quotes
			return true
		case s.at("${"):
			s.push(frame{kind: interpolation, closer: "}", value: true, plain: true}, 2)
			return true
		case c == '\'':
			s.quoted(c)
			return true
		}
		return (c == '$' || c == '`') && s.shellCode(c)
	case c == '#' && s.top.opener == "`" && s.i > 0 && isCommentStart(s.src[s.i-1]):
		for s.i < len(s.src) && s.src[s.i] != '`' && s.src[s.i] != '\n' {
			s.i++
		}
		return true
	case s.at("${"):
		s.push(frame{kind: interpolation, closer: "}", value: true, plain: true}, 2)
		return true
	case c == '`', c == '$' && s.peek(1) == '(':
		return s.shellCode(c)
	case c == '$' && (s.peek(1) == '#' || s.peek(1) == '$'):
		s.i += 2 // $#, $$
		s.last, s.command = 'a', false
		return true
	case c == '<' && s.peek(1) == '<':
		return s.shellHeredoc()
	case c == '(' && s.peek(1) == '(' && s.command:
		s.push(frame{kind: bracket, closer: ")", value: true}, 1)
		s.push(frame{kind: bracket, closer: ")", value: true}, 1)
		return true
	case c == '#' && s.arithmetic():
		s.i++
		return true
	case s.at("[[") && s.command:
		// Patterns and regular expressions have quotes and brackets of their own.
		s.i += 2
		s.command = false
		return true
	case s.at("=~"):
		s.unsure = true
	case c == '(' && s.top.kind == keyword && s.top.opener == "case":
		s.i++ // of a pattern
		return true
	}
	return false
}

// arithmetic reports whether this is in (( … )).
func (s *scanner) arithmetic() bool {
	return s.top.kind == bracket && s.top.value && s.top.closer == ")" && s.top.up.value
}

// shellCode opens $(…), $((…)) or `…`.
func (s *scanner) shellCode(c byte) bool {
	switch {
	case c == '`':
		for f := s.top; f.kind != root && f.depth > s.top.depth-8; f = f.up {
			if f.opener == "`" {
				s.i++
				for s.top != f {
					s.pop()
				}
				s.pop()
				s.value, s.last, s.command = true, 'a', false
				return true
			}
		}
		s.push(frame{kind: interpolation, closer: "`"}, 1)
	case s.at("$(("):
		s.push(frame{kind: interpolation, closer: ")", value: true}, 2)
		s.push(frame{kind: bracket, closer: ")", value: true}, 1)
	case s.at("$("):
		s.push(frame{kind: interpolation, closer: ")"}, 2)
	default:
		return false
	}
	return true
}

// shellHeredoc reads << and its tag.
func (s *scanner) shellHeredoc() bool {
	if s.peek(2) == '<' {
		s.i += 3
		return true
	}
	i := s.i + 2
	dash := i < len(s.src) && s.src[i] == '-'
	if dash {
		i++
	}
	for i < len(s.src) && (s.src[i] == ' ' || s.src[i] == '\t') {
		i++
	}
	tag, end := s.hereTag(i)
	if tag == "" || s.arithmetic() {
		s.i += 2
		return true
	}
	s.heredocs = append(s.heredocs, heredoc{opener: string(s.src[s.i:end]), tag: tag, offset: s.i, indent: dash})
	s.i = end
	s.last, s.command = 'a', false
	return true
}

var shellBlocks = map[string]string{"if": "fi", "case": "esac", "do": "done"}

// wordsShell follows the blocks that words open and close.
func wordsShell(s *scanner, word string, start int, command bool) {
	if s.peek(0) == ')' && s.top.kind == keyword && s.top.opener == "case" {
		return // a pattern
	}
	if s.i < len(s.src) && strings.IndexByte("-=.:/", s.src[s.i]) >= 0 || start > 0 && strings.IndexByte("-=.:/$", s.src[start-1]) >= 0 {
		return
	}
	if word == "in" && s.top.kind == keyword && s.top.opener == "case" {
		s.command = true
		return
	}
	if !command && word != "do" || s.top.plain || s.arithmetic() {
		return
	}
	switch word {
	case "if", "case":
		s.block(word, shellBlocks[word], start)
		s.command = word == "if"
	case "do":
		if command {
			s.block(word, "done", start)
		}
	case "then", "else", "elif", "while", "until", "time":
		s.command = true
	case "fi", "esac", "done":
		s.endBlock(word, start)
	}
}

// block opens a block with a word.
func (s *scanner) block(word, closer string, start int) {
	i := s.i
	s.i = start
	s.push(frame{kind: keyword, opener: word, closer: closer}, len(word))
	s.i = i
}

// endBlock closes a block with a word.
func (s *scanner) endBlock(word string, start int) {
	if s.top.kind == keyword && s.top.closer == word {
		s.pop()
		s.command = false
		return
	}
	if s.i == len(s.src) {
		return // the word may go on
	}
	if s.top.kind == root {
		s.problem(start, "nothing is open that this "+word+" could close")
		return
	}
	s.problem(start, "this "+word+" is where "+s.top.closer+" is expected")
}

// strayShell: the pattern of a case ends in a parenthesis.
func strayShell(s *scanner, c byte) bool {
	if c == ')' && s.top.kind == keyword && s.top.opener == "case" {
		s.i++
		s.command, s.last = true, c
		return true
	}
	return false
}

// hookDocker reads heredocs and comments. Nothing else of a Dockerfile has structure.
func hookDocker(s *scanner) bool {
	switch {
	case s.src[s.i] == '#' && s.last == 0:
		s.lineOpen = true
		if end := bytes.IndexByte(s.src[s.i:], '\n'); end >= 0 {
			s.i += end
			s.lineOpen = false
		} else {
			s.i = len(s.src)
		}
		return true
	case s.at("<<") && s.i > 0 && s.src[s.i-1] == ' ' && s.peek(2) != ' ':
		return s.shellHeredoc()
	}
	return false
}

// hookMake reads $(…) and ${…}, comments, and the blocks of lines.
func hookMake(s *scanner) bool {
	c := s.src[s.i]
	switch {
	case c == '#' && s.top.kind == root && (s.i == 0 || s.src[s.i-1] != '\\'):
		if end := bytes.IndexByte(s.src[s.i:], '\n'); end >= 0 {
			s.i += end
		} else {
			s.i, s.lineOpen = len(s.src), true
		}
		return true
	case c == '$' && s.peek(1) == '$':
		s.i += 2
		return true
	case s.at("$("), s.at("${"):
		s.push(frame{kind: interpolation, closer: string(pairs[s.peek(1)])}, 2)
		return true
	case s.top.kind == root && (c == '(' || c == '{' || c == ')' || c == '}'),
		s.top.kind == interpolation && c != s.top.closer[0] && (c == ')' || c == '}'),
		s.top.kind == interpolation && (c == '(' || c == '{') && pairs[c] != s.top.closer[0]:
		s.i++ // a shell's, and no concern of make
		s.last = c
		return true
	}
	return false
}

func strayMake(s *scanner, _ byte) bool {
	s.i++
	return true
}
