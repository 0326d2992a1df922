package code

import (
	"bytes"
	"strings"
)

// Strings whose ends depend on how they begin.

// rawCPP reads R"x(…)x" with the prefixes that it may have.
func rawCPP(s *scanner, word string) (*quote, int) {
	if s.src[s.i] != '"' || !strings.HasSuffix(word, "R") || len(word) > 3 {
		return nil, 0
	}
	n := bytes.IndexByte(s.src[s.i:min(len(s.src), s.i+18)], '(')
	if n < 0 {
		return nil, 0
	}
	return &quote{close: ")" + string(s.src[s.i+1:s.i+n]) + `"`, lines: true}, len(word) + n + 1
}

// rawRust reads r"…", r#"…"# and the like.
func rawRust(s *scanner, word string) (*quote, int) {
	if word != "r" && word != "br" && word != "cr" {
		return nil, 0
	}
	n := 0
	for s.peek(n) == '#' {
		n++
	}
	if s.peek(n) != '"' {
		return nil, 0
	}
	return &quote{close: `"` + strings.Repeat("#", n), lines: true}, len(word) + n + 1
}

// rawSwift reads #"…"# and #"""…"""#.
func rawSwift(s *scanner) bool {
	n := 0
	for s.peek(n) == '#' {
		n++
	}
	if n == 0 {
		return false
	}
	if s.peek(n) != '"' {
		s.i += n // #if and the like
		s.value, s.last, s.command = false, '#', false
		return true
	}
	marks := strings.Repeat("#", n)
	q := &quote{close: `"` + marks, code: `\` + marks + "(", codeEnd: ")"}
	if s.peek(n+1) == '"' && s.peek(n+2) == '"' {
		q.close, q.lines = `"""`+marks, true
		n += 2
	}
	s.push(frame{kind: text, closer: q.close, rule: q}, n+1)
	return true
}

func dartQuotes(raw bool) []quote {
	var list []quote
	for _, mark := range []string{`"""`, "'''", `"`, "'"} {
		q := quote{open: mark, close: mark, lines: len(mark) == 3}
		if !raw {
			q.escape, q.code, q.codeEnd = '\\', "${", "}"
		}
		list = append(list, q)
	}
	return list
}

var rawDartQuotes = dartQuotes(true)

func rawDart(s *scanner, word string) (*quote, int) {
	if word != "r" {
		return nil, 0
	}
	return s.firstOf(rawDartQuotes, word)
}

// firstOf returns the quote that begins here, behind a prefix.
func (s *scanner) firstOf(quotes []quote, word string) (*quote, int) {
	for i := range quotes {
		if s.at(quotes[i].open) {
			return &quotes[i], len(word) + len(quotes[i].open)
		}
	}
	return nil, 0
}

var scalaQuotes = []quote{coded(overLines(verbatim(`"""`)), "${", "}"), coded(doubled, "${", "}")}

// codedScala reads s"…", f"…" and those of any other interpolator.
func codedScala(s *scanner, word string) (*quote, int) {
	if operatorsScala[word] {
		return nil, 0
	}
	return s.firstOf(scalaQuotes, word)
}

var operatorsScala = wordSet("case return if else match yield throw")

// rawR reads r"(…)" and r"---[…]---".
func rawR(s *scanner, word string) (*quote, int) {
	mark := s.src[s.i]
	if word != "r" && word != "R" || mark != '"' && mark != '\'' {
		return nil, 0
	}
	n := 1
	for s.peek(n) == '-' {
		n++
	}
	i := strings.IndexByte("([{", s.peek(n))
	if i < 0 || s.peek(n) == 0 {
		return nil, 0
	}
	return &quote{close: ")]}"[i:i+1] + strings.Repeat("-", n-1) + string(mark), lines: true}, len(word) + n + 1
}

// longLua reads [[…]], [==[…]==] and comments in such brackets.
func longLua(s *scanner) bool {
	mark := 0
	if s.at("--") {
		mark = 2
	}
	if s.peek(mark) != '[' {
		return false
	}
	n := mark + 1
	for s.peek(n) == '=' {
		n++
	}
	if s.peek(n) != '[' {
		return false
	}
	end := "]" + strings.Repeat("=", n-mark-1) + "]"
	if mark > 0 {
		s.push(frame{kind: comment, closer: end}, n+1)
		return true
	}
	s.push(frame{kind: text, closer: end, rule: &quote{close: end, lines: true}}, n+1)
	return true
}

// dollarSQL reads $$…$$ and $tag$…$tag$.
func dollarSQL(s *scanner) bool {
	if s.src[s.i] == 'E' || s.src[s.i] == 'e' {
		if s.peek(1) == '\'' && (s.i == 0 || !isIdent(s.src[s.i-1])) {
			q := quote{open: "'", close: "'", escape: '\\', double: true, lines: true}
			s.push(frame{kind: text, closer: "'", rule: &q}, 2)
			return true
		}
	}
	if s.src[s.i] != '$' || s.i > 0 && isIdent(s.src[s.i-1]) {
		return false
	}
	n := 1
	for n < 64 && s.peek(n) != '$' && isIdent(s.peek(n)) {
		n++
	}
	if s.peek(n) != '$' || s.peek(1) >= '0' && s.peek(1) <= '9' {
		return false
	}
	end := string(s.src[s.i : s.i+n+1])
	s.push(frame{kind: text, closer: end, rule: &quote{close: end, lines: true}}, n+1)
	return true
}

// cssURL reads url(…) without quotes.
func cssURL(s *scanner) bool {
	if !s.at("url(") {
		return false
	}
	rest := bytes.TrimLeft(s.src[s.i+4:], " \t\n")
	if len(rest) == 0 || rest[0] == '"' || rest[0] == '\'' {
		return false
	}
	q := &quote{close: ")", escape: '\\', lines: true}
	s.push(frame{kind: text, closer: ")", rule: q}, 4)
	return true
}

// operatorHaskell reports whether dashes are part of an operator, such as -->.
func operatorHaskell(s *scanner) bool {
	n := 0
	for s.peek(n) == '-' {
		n++
	}
	const symbols = "!#$%&*+./<=>?@\\^|~:"
	if s.peek(n) != 0 && strings.IndexByte(symbols, s.peek(n)) >= 0 || s.i > 0 && strings.IndexByte(symbols, s.src[s.i-1]) >= 0 {
		s.i += n
		return true
	}
	return false
}

var pairs = map[byte]byte{'(': ')', '[': ']', '{': '}', '<': '>'}

// delimited opens a string whose delimiter is the byte n behind the current one.
func (s *scanner) delimited(n int, q quote) bool {
	c := s.peek(n)
	if c == 0 || c == ' ' || c == '\n' || c == '\t' || isIdent(c) {
		return false
	}
	end, nested := pairs[c]
	if !nested {
		end = c
	} else {
		q.nest = c
	}
	q.close, q.lines = string(end), true
	s.push(frame{kind: text, closer: q.close, rule: &q}, n+1)
	return true
}
