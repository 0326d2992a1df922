package code

import (
	"bytes"
	"strings"
)

// wordsLua follows Lua's blocks: every one but repeat … until ends in end.
func wordsLua(s *scanner, word string, start int, _ bool) {
	if start > 0 && (s.src[start-1] == '.' && (start < 2 || s.src[start-2] != '.') || s.src[start-1] == ':') {
		return // a field
	}
	switch word {
	case "function", "if", "do":
		s.block(word, "end", start)
	case "repeat":
		s.block(word, "until", start)
	case "end", "until":
		s.endBlock(word, start)
	}
}

// hookRuby reads heredocs, %w(…), =begin, ?a and symbols.
func hookRuby(s *scanner) bool {
	c := s.src[s.i]
	switch {
	case c == '=' && s.last == 0 && (s.i == 0 || s.src[s.i-1] == '\n') && s.at("=begin"):
		s.push(frame{kind: comment, closer: "\n=end"}, len("=begin"))
		return true
	case c == '_' && (s.i == 0 || s.src[s.i-1] == '\n') && s.at("__END__"):
		s.i = len(s.src)
		return true
	case s.at("<<"):
		return s.rubyHeredoc()
	case c == '%' && !s.value:
		return s.percent()
	case c == '%' || c == '/':
		// puts /a/ or a / b? A space before and none behind speaks for the first.
		if s.value && s.word != "" && s.i > 0 && s.src[s.i-1] == ' ' && s.peek(1) != ' ' && s.peek(1) != '=' {
			s.unsure = true
		}
	case c == '?' && !s.value && s.peek(1) > ' ' && !isIdent(s.peek(2)):
		s.i += 2
		if s.src[s.i-1] == '\\' {
			s.i++
		}
		s.i = min(s.i, len(s.src))
		s.value, s.last = true, 'a'
		return true
	case c == '$' && s.peek(1) != 0 && strings.IndexByte("\"'`/\\;,.<>~&+*$?!@:=", s.peek(1)) >= 0:
		s.i += 2
		s.value, s.last, s.command = true, 'a', false
		return true
	}
	return false
}

// percent reads %w(…) and its like.
func (s *scanner) percent() bool {
	c := s.peek(1)
	coded := quote{escape: '\\', code: "#{", codeEnd: "}"}
	switch {
	case c == 'q' || c == 'w' || c == 'i' || c == 's':
		return s.delimited(2, quote{escape: '\\'})
	case c == 'Q' || c == 'W' || c == 'I' || c == 'x':
		return s.delimited(2, coded)
	case c == 'r':
		coded.flags = true
		return s.delimited(2, coded)
	case c == '(' || c == '[' || c == '{' || c == '|' || c == '!':
		return s.delimited(1, coded)
	}
	return false
}

func (s *scanner) rubyHeredoc() bool {
	i := s.i + 2
	mark := i < len(s.src) && (s.src[i] == '~' || s.src[i] == '-')
	if mark {
		i++
	}
	tag, end := s.hereTag(i)
	// a <<B is no heredoc, nor is class <<self.
	if tag == "" || !mark && (s.value || tag[0] < 'A' || tag[0] > 'Z') {
		s.operator(s.src[s.i])
		return true
	}
	s.heredocs = append(s.heredocs, heredoc{opener: string(s.src[s.i:end]), tag: tag, offset: s.i, indent: mark})
	s.i = end
	s.value, s.last, s.command = true, '"', false
	return true
}

// wordsRuby follows the blocks that end in end.
func wordsRuby(s *scanner, word string, start int, command bool) {
	if start > 0 && (strings.IndexByte(".@$:", s.src[start-1]) >= 0) && !(start > 1 && s.src[start-1] == '.' && s.src[start-2] == '.') {
		s.value = true
		return // a method, a variable or a symbol
	}
	if s.peek(0) == ':' && s.peek(1) != ':' || s.peek(0) == '?' || s.peek(0) == '!' && s.peek(1) != '=' {
		return // a key, or a name with a mark
	}
	// A modifier stands behind what it modifies.
	begins := command || s.last == '=' || s.last == '(' || s.last == ',' || s.last == '[' || s.last == '{' || s.word == "return" || s.word == "else" || s.last == '|'
	switch word {
	case "class", "module", "begin", "case":
		if word == "class" && s.last == '.' {
			return
		}
		s.block(word, "end", start)
	case "def":
		if !endlessRuby(s.src[s.i:]) {
			s.block(word, "end", start)
			s.command = false
		}
	case "do":
		if f := s.top; f.kind == keyword && f.control && bytes.IndexByte(s.src[f.offset:start], '\n') < 0 {
			f.control = false // of while … do
			s.command = true
			return
		}
		s.block(word, "end", start)
	case "if", "unless", "while", "until", "for":
		if begins {
			s.block(word, "end", start)
			s.top.control = word == "while" || word == "until" || word == "for"
			s.command = false
		}
	case "then", "else", "ensure":
		s.command = true
	case "end":
		s.endBlock(word, start)
		s.value = true
	}
}

// endlessRuby reports whether a definition is def f(x) = …
func endlessRuby(rest []byte) bool {
	line := rest[:min(len(rest), 200)]
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	depth, space := 0, false
	line = bytes.TrimLeft(line, " ")
	for i, c := range line {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth > 0:
		case c == ';' || c == '#':
			return false
		case c == ' ':
			space = true
		case c == '=' && i > 0:
			return (space || line[i-1] == ')') && i+1 < len(line) && line[i+1] == ' '
		case space:
			return false
		}
	}
	return false
}

// beginPHP passes over what is before <?php. Without it the text is all code.
func beginPHP(s *scanner) {
	if bytes.Contains(s.src, []byte("<?php")) || bytes.Contains(s.src, []byte("<?=")) {
		s.skipPHP()
	}
}

// skipPHP passes over what is no PHP.
func (s *scanner) skipPHP() {
	i := bytes.Index(s.src[s.i:], []byte("<?"))
	if i < 0 {
		s.i = len(s.src)
		return
	}
	s.i += i + 2
	if s.at("php") {
		s.i += 3
	} else if s.at("=") {
		s.i++
	}
	s.value, s.last, s.command = false, 0, true
}

// hookPHP reads ?> and heredocs, and comments that ?> ends.
func hookPHP(s *scanner) bool {
	switch c := s.src[s.i]; {
	case s.at("?>"):
		s.i += 2
		s.skipPHP()
		return true
	case c == '/' && s.peek(1) == '/', c == '#' && s.peek(1) != '[':
		line := s.src[s.i:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		if end := bytes.Index(line, []byte("?>")); end >= 0 {
			s.i += end
			return true
		}
	case s.at("<<<"):
		i := s.i + 3
		for i < len(s.src) && s.src[i] == ' ' {
			i++
		}
		tag, end := s.hereTag(i)
		if tag == "" {
			return false
		}
		s.heredocs = append(s.heredocs, heredoc{opener: string(s.src[s.i:end]), tag: tag, offset: s.i, indent: true, loose: true})
		s.i = end
		s.value, s.last = true, '"'
		return true
	}
	return false
}

// notPHPComment: #[ begins an attribute.
func notPHPComment(s *scanner) bool { return s.at("#[") }

// beginPerl: what a slash or a brace means depends in Perl on what the program does, so
// that these rules are never sure.
func beginPerl(s *scanner) { s.unsure = true }

// hookPerl reads quotes with words, heredocs, documentation and variables.
func hookPerl(s *scanner) bool {
	c := s.src[s.i]
	lineStart := s.i == 0 || s.src[s.i-1] == '\n'
	switch {
	case lineStart && c == '=' && s.peek(1) >= 'a' && s.peek(1) <= 'z':
		s.push(frame{kind: comment, closer: "\n=cut"}, 1)
		return true
	case lineStart && (s.at("__END__") || s.at("__DATA__")):
		s.i = len(s.src)
		return true
	case c == '$' && s.peek(1) != 0 && strings.IndexByte("\"'`/\\;,.<>&#$?!@(|)[]-", s.peek(1)) >= 0:
		s.i += 2
		s.value, s.last, s.command = true, 'a', false
		return true
	case s.at("<<"):
		i := s.i + 2
		mark := i < len(s.src) && s.src[i] == '~'
		if mark {
			i++
		}
		tag, end := s.hereTag(i)
		if tag == "" || s.value {
			return false
		}
		s.heredocs = append(s.heredocs, heredoc{opener: string(s.src[s.i:end]), tag: tag, offset: s.i, indent: mark})
		s.i = end
		s.value, s.last = true, '"'
		return true
	case c == 'q' || c == 'm' || c == 's' || c == 't' || c == 'y':
		return (s.i == 0 || !isIdent(s.src[s.i-1]) && strings.IndexByte("$@%&>-{", s.src[s.i-1]) < 0) && s.perlQuote()
	}
	return false
}

// perlQuote reads q(…), qw(…), m{…}, s/…/…/ and the like.
func (s *scanner) perlQuote() bool {
	for _, w := range []string{"qq", "qw", "qr", "qx", "tr", "q", "m", "s", "y"} {
		n := len(w)
		if !s.at(w) || isIdent(s.peek(n)) {
			continue
		}
		if c := s.peek(n); c == '=' || c == ',' || c == ';' || c == ')' || c == '#' || c == '-' || c == '>' {
			return false
		}
		two := w == "s" || w == "tr" || w == "y"
		c := s.peek(n)
		if !s.delimited(n, quote{escape: '\\', flags: w != "q" && w != "qq" && w != "qw"}) {
			return false
		}
		if two && pairs[c] == 0 {
			// The same mark is in the middle: read the first half here.
			s.readText()
			if s.i < len(s.src) {
				s.i--
				s.delimited(0, quote{escape: '\\', flags: true})
			}
		}
		return true
	}
	return false
}
