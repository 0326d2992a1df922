package code

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A scanner reads code from its beginning to its end, byte by byte, with a stack of
// what is open. The stack is a linked list that is only added to, so that the state
// at an #if can be taken up again at its #else.
type scanner struct {
	lang *language
	src  []byte
	i    int
	top  *frame

	problems []Problem
	unsure   bool // there is something that the rules do not cover
	overflow bool // more is open than Options.MaxDepth

	// Of what was read last.
	value     bool   // it is a value, so that a / divides it
	word      string // it is this word, empty if it is none
	last      byte   // its last byte, 0 at the beginning of a line
	command   bool   // a command of a shell, or a statement, begins here
	lineOpen  bool   // a comment up to the end of the line is open
	dangling  bool   // an escape that the end of the text interrupts
	noRegex   int    // no regular expression begins before this byte
	heredocs  []heredoc
	macro     *frame // stack at the beginning of a #define, nil outside
	branches  []branch
	directive bool // a comment is in a line of the preprocessor
	indent    indentation
	maxDepth  int
}

// kind says what a frame stands for.
type kind uint8

const (
	root kind = iota
	bracket
	interpolation // code in a string
	text          // a string
	comment
	hereText
	keyword // a block of words: do … end
	element // of a markup
)

// frame is something open.
type frame struct {
	up     *frame
	kind   kind
	offset int
	opener string
	closer string
	rule   *quote // of text
	nested int    // openers of the same kind inside text or a comment
	depth  int

	value    bool // of a bracket: it holds a value, not statements
	control  bool // of a bracket: the condition of a statement
	plain    bool // of code in a string: an expansion of a shell, which has rules of its own
	nests    bool // of a comment
	indented bool // of a heredoc: white space may be before the end
	loose    bool // of a heredoc: more may follow the end
}

// scan reads src. The language must not be nil.
func scan(l *language, src []byte, o Options) *scanner {
	s := &scanner{lang: l, src: src, maxDepth: o.maxDepth(), command: true}
	s.top = &frame{kind: root}
	if l.begin != nil {
		l.begin(s)
	}
	for s.i < len(s.src) && len(s.problems) < maxProblems && !s.overflow {
		switch s.top.kind {
		case text:
			s.readText()
		case comment:
			s.readComment()
		case hereText:
			s.readHeredoc()
		default:
			s.readCode()
		}
	}
	if l.end != nil && !s.overflow {
		l.end(s)
	}
	return s
}

// push opens something of length n at the current byte.
func (s *scanner) push(f frame, n int) {
	f.up, f.offset, f.depth = s.top, s.i, s.top.depth+1
	if f.opener == "" {
		f.opener = string(s.src[s.i : s.i+n])
	}
	s.top = &f
	s.overflow = s.overflow || f.depth > s.maxDepth
	s.i += n
	s.value, s.word, s.last, s.command = false, "", 0, true
}

func (s *scanner) pop() { s.top = s.top.up }

func (s *scanner) problem(offset int, message string) {
	if s.macro == nil {
		s.problems = append(s.problems, Problem{offset, lineOf(s.src, offset), message})
	}
}

func (s *scanner) at(prefix string) bool {
	return prefix != "" && s.i+len(prefix) <= len(s.src) && string(s.src[s.i:s.i+len(prefix)]) == prefix
}

// peek returns the byte n behind the current one, 0 at the end.
func (s *scanner) peek(n int) byte {
	if s.i+n < len(s.src) && s.i+n >= 0 {
		return s.src[s.i+n]
	}
	return 0
}

// readCode reads one token outside of strings and comments.
func (s *scanner) readCode() {
	c := s.src[s.i]
	s.lineOpen = false
	if c == '\n' {
		s.newline()
		return
	}
	if s.lang.hook != nil && s.lang.hook(s) {
		return
	}
	if c == ' ' || c == '\t' || c == '\r' || c == '\f' {
		s.i++
		return
	}
	if s.top.plain && c != '}' && c != '\\' && c != '"' {
		s.i++
		return
	}
	switch {
	case c == ':' && s.top.kind == interpolation && s.format():
	case s.comment(), s.quoted(c), c == '/' && s.lang.regex && s.regex():
	case isIdent(c):
		s.identifier()
	case strings.IndexByte("([{", c) >= 0 && strings.IndexByte(s.lang.brackets, c) >= 0:
		s.open1(c)
	case strings.IndexByte(")]}", c) >= 0 && strings.IndexByte(s.lang.brackets, c) >= 0:
		s.close1(c)
	case c == '\\' && s.lang.escapes && s.peek(1) == '\n':
		s.i += 2 // the line goes on
	case c == '\\' && s.lang.escapes:
		s.i = min(s.i+2, len(s.src))
		s.dangling = s.i == len(s.src) && s.src[s.i-1] == '\\'
		s.value, s.last, s.command, s.word = true, 'a', false, ""
	default:
		s.operator(c)
	}
}

// operator reads a byte that is nothing else.
func (s *scanner) operator(c byte) {
	double := s.last == c && (c == '+' || c == '-') && s.i > 0 && s.src[s.i-1] == c
	// <b> where a value is expected is markup in a script.
	s.unsure = s.unsure || s.lang.jsx && c == '<' && !s.value && (isIdent(s.peek(1)) || s.peek(1) == '>')
	s.value = double && s.value || c >= utf8.RuneSelf
	s.command = strings.IndexByte(";|&!", c) >= 0
	s.word, s.last = "", c
	if !double && (c == '+' || c == '-') && s.peek(1) == c {
		// a++ / b: the value stays one.
		s.value = s.i > 0 && s.last == c && isValueEnd(s.src, s.i)
	}
	s.i++
}

// isValueEnd reports whether a value ends directly before byte i.
func isValueEnd(src []byte, i int) bool {
	return i > 0 && (isIdent(src[i-1]) || src[i-1] == ')' || src[i-1] == ']')
}

// newline reads the end of a line.
func (s *scanner) newline() {
	continued := s.i > 0 && (s.src[s.i-1] == '\\' || s.i > 1 && s.src[s.i-1] == '\r' && s.src[s.i-2] == '\\')
	if s.macro != nil && !continued {
		s.top, s.macro = s.macro, nil
	}
	if s.lang.line != nil {
		s.lang.line(s, continued)
	}
	s.i++
	s.last, s.lineOpen, s.directive = 0, false, false
	if !continued {
		s.command = true
	}
	if len(s.heredocs) > 0 {
		s.beginHeredoc()
	}
}

// comment reads the beginning of a comment, all of it if it ends with the line.
func (s *scanner) comment() bool {
	for _, mark := range s.lang.lineComments {
		if !s.at(mark) || s.lang.wordComments && s.i > 0 && !isCommentStart(s.src[s.i-1]) {
			continue
		}
		if s.lang.notComment != nil && s.lang.notComment(s) {
			continue
		}
		end := bytes.IndexByte(s.src[s.i:], '\n')
		if end < 0 {
			s.i, s.lineOpen = len(s.src), true
			return true
		}
		s.i += end
		if s.lang.continuedComments && s.src[s.i-1] == '\\' {
			s.i++ // the comment goes on
			s.lineComment()
		}
		return true
	}
	for _, b := range s.lang.blockComments {
		if s.at(b.open) {
			value, word := s.value, s.word
			s.push(frame{kind: comment, closer: b.close, nests: b.nested}, len(b.open))
			s.value, s.word, s.command = value, word, false
			return true
		}
	}
	return false
}

// lineComment reads on to the end of a comment that a backslash has continued.
func (s *scanner) lineComment() {
	for s.i < len(s.src) {
		end := bytes.IndexByte(s.src[s.i:], '\n')
		if end < 0 {
			s.i, s.lineOpen = len(s.src), true
			return
		}
		s.i += end
		if s.i == 0 || s.src[s.i-1] != '\\' {
			return
		}
		s.i++
	}
}

// isCommentStart reports whether a # behind c begins a comment of a shell.
func isCommentStart(c byte) bool { return strings.IndexByte(" \t\r\n;|&()`", c) >= 0 }

// readComment reads on in a comment that has its own end.
func (s *scanner) readComment() {
	f := s.top
	rest := s.src[s.i:]
	if !f.nests {
		end := bytes.Index(rest, []byte(f.closer))
		if end < 0 {
			s.i = len(s.src)
			return
		}
		s.i += end + len(f.closer)
		s.pop()
		return
	}
	for s.i < len(s.src) {
		switch {
		case s.at(f.closer):
			s.i += len(f.closer)
			if f.nested == 0 {
				s.pop()
				return
			}
			f.nested--
		case s.at(f.opener):
			f.nested++
			s.i += len(f.opener)
		default:
			s.i++
		}
	}
}

// identifier reads a word or a number.
func (s *scanner) identifier() {
	start := s.i
	for s.i < len(s.src) && (isIdent(s.src[s.i]) || s.src[s.i] == '\'' && s.lang.primes) {
		s.i++
	}
	if s.src[start] >= '0' && s.src[start] <= '9' {
		s.number(start)
	}
	word := string(s.src[start:min(s.i, start+32)])
	command := s.command
	s.value, s.command = !s.lang.operators[word], false
	if s.lang.prefix != nil && s.i < len(s.src) {
		if q, n := s.lang.prefix(s, word); q != nil {
			s.i = start
			s.push(frame{kind: text, closer: q.close, rule: q}, n)
			return
		}
	}
	if s.lang.words != nil {
		s.lang.words(s, word, start, command)
	}
	s.word, s.last = word, s.src[s.i-1]
}

// number reads what may follow digits: fractions, and marks between digits.
func (s *scanner) number(start int) {
	for s.i+1 < len(s.src) {
		c, next := s.src[s.i], s.src[s.i+1]
		if !(c == '.' && next >= '0' && next <= '9' || c == '\'' && s.lang.digitMarks && isIdent(next)) {
			return
		}
		for s.i++; s.i < len(s.src) && isIdent(s.src[s.i]); s.i++ {
		}
	}
}

// open1 reads an opening bracket.
func (s *scanner) open1(c byte) {
	f := frame{kind: bracket, closer: string(")]}"[strings.IndexByte("([{", c)])}
	f.control = c == '(' && controls[s.word]
	// An object is where a value is expected, a block elsewhere.
	f.value = c != '{' || s.last != 0 && s.last != ')' && s.last != ';' && s.last != '}' && s.last != '{' && !s.value && s.word != "else" && s.word != "do" && s.last != '>'
	s.push(f, 1)
	s.last = c
}

// controls are the words whose condition in parentheses is no value.
var controls = map[string]bool{"if": true, "while": true, "for": true, "with": true}

// close1 reads a closing bracket.
func (s *scanner) close1(c byte) {
	f := s.top
	if (f.kind == bracket || f.kind == interpolation) && f.closer[0] == c {
		s.i++
		s.pop()
		s.value, s.word, s.last, s.command = f.value && !f.control, "", c, c == '}'
		return
	}
	if s.lang.stray != nil && s.lang.stray(s, c) {
		return
	}
	switch {
	case f.kind == root:
		s.problem(s.i, "nothing is open that this "+string(c)+" could close")
	case f.kind == keyword:
		s.problem(s.i, "this "+string(c)+" comes before the end of "+f.opener)
	default:
		s.problem(s.i, "this "+string(c)+" is where "+f.closer+" is expected")
		if s.macro == nil && f.kind == bracket {
			s.pop()
		}
	}
	s.i++
	s.value, s.word, s.last, s.command = true, "", c, false
}

func isIdent(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= utf8.RuneSelf
}

// open lists what is open, the outermost first.
func (s *scanner) open() []Open {
	var list []Open
	for f := s.top; f.kind != root; f = f.up {
		list = append(list, Open{f.name(), f.opener, f.offset})
	}
	for _, b := range s.branches {
		list = append(list, Open{"directive", "#if", b.offset})
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	if o := s.indent.header; o != nil {
		list = append(list, *o)
	}
	for _, h := range s.heredocs {
		list = append(list, Open{"heredoc", h.opener, h.offset})
	}
	return list
}

func (f *frame) name() string {
	switch f.kind {
	case bracket:
		return "bracket"
	case interpolation:
		return "interpolation"
	case comment:
		return "comment"
	case hereText:
		return "heredoc"
	case keyword:
		return "block"
	case element:
		return "tag"
	}
	if f.rule != nil && f.rule.name != "" {
		return f.rule.name
	}
	return "string"
}
