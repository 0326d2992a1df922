package code

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	goscanner "go/scanner"
	"go/token"

	"github.com/goccy/go-yaml"
	yamlparser "github.com/goccy/go-yaml/parser"
)

// checkGo parses Go: a file, or the declarations, statements or expression of a
// snippet. s has read it by the lexical rules.
func checkGo(src []byte, s *scanner, r *Report) {
	if s.overflow {
		return
	}
	r.Parser = "go/parser"
	at, message := parseGo(src)
	r.Problems = nil
	if at < 0 {
		r.Status, r.Open = Parses, nil
		return
	}
	end := len(bytes.TrimRight(src, " \t\r\n"))
	if len(s.problems) == 0 && at < end && len(s.open()) > 0 {
		// In an open string or comment the parser complains where that begins.
		if tail, ok := s.closing(); ok {
			at, _ = parseGo(tail.apply(src))
			if at < 0 {
				at = end
			}
		}
	}
	if len(s.problems) == 0 && (at >= end || end == len(src) && mayGoOn(src[at:], message)) {
		r.Status, r.Open = Cut, s.open()
		return
	}
	at, message = firstProblem(src, s, at, message)
	r.Status = Broken
	r.Problems = []Problem{{at, lineOf(src, at), message}}
}

// mayGoOn reports whether the rest of Go code, where the parser objects to it, may be
// only the beginning of what was to come: its last token, or a list at the end of
// which = or := may follow.
func mayGoOn(rest []byte, message string) bool {
	if message == "expected 1 expression" {
		return bytes.IndexByte(rest, '\n') < 0
	}
	var s goscanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(rest)), rest, func(token.Position, string) {}, goscanner.ScanComments)
	s.Scan()
	_, tok, lit := s.Scan()
	return tok == token.EOF || tok == token.SEMICOLON && lit == "\n"
}

// firstProblem prefers what the lexical rules found if it comes first.
func firstProblem(src []byte, s *scanner, at int, message string) (int, string) {
	at = min(at, len(src))
	if len(s.problems) > 0 && s.problems[0].Offset < at {
		return s.problems[0].Offset, s.problems[0].Message
	}
	return at, message
}

// parseGo returns -1 if src is Go, and otherwise where it stops being Go in the
// reading that gets furthest, in bytes of src, and why.
func parseGo(src []byte) (at int, message string) {
	readings := []struct{ before, after string }{
		{"", ""},
		{"package p\n", ""},
		{"package p\nfunc _() {\n", "\n}"},
		{"package p\nvar _ = ", "\n"},
	}
	if first := firstWord(src); first == "package" {
		readings = readings[:1]
	} else {
		readings = readings[1:]
	}
	for _, reading := range readings {
		text := reading.before + string(src) + reading.after
		f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
		if err == nil && (len(reading.after) < 3 || isOneFunction(f)) {
			return -1, ""
		}
		place, why := len(reading.before)+len(src), "this is not one function body"
		var list goscanner.ErrorList
		if errors.As(err, &list) && len(list) > 0 {
			place, why = list[0].Pos.Offset, list[0].Msg
		}
		if place -= len(reading.before); message == "" || place > at {
			at, message = max(place, 0), why
		}
	}
	return at, message
}

// isOneFunction reports whether a snippet did not end the function that it was put
// into.
func isOneFunction(f *ast.File) bool { return len(f.Decls) == 1 }

// firstWord returns the first word of Go code behind comments, if it is near.
func firstWord(src []byte) string {
	var s goscanner.Scanner
	fset := token.NewFileSet()
	s.Init(fset.AddFile("", -1, len(src)), src, func(token.Position, string) {}, 0)
	_, tok, lit := s.Scan()
	if tok.IsKeyword() || tok == token.IDENT {
		return lit
	}
	return ""
}

// checkYAML parses YAML. It gives the parser, which recurses, nothing that is large
// or deeply nested.
func checkYAML(src []byte, r *Report) {
	r.Parser = "goccy/go-yaml"
	text := bytes.ReplaceAll(bytes.ReplaceAll(src, []byte("\r\n"), []byte(" \n")), []byte("\r"), []byte("\n"))
	if len(src) > maxYAML || yamlDepth(src) > maxYAMLDepth || slowYAML(text) {
		return
	}
	line, column, message, err := parseYAML(text)
	if err == nil {
		r.Status = Parses
		return
	}
	at := offsetOf(text, line, column)
	if end := len(bytes.TrimRight(src, " \t\r\n")); line > 0 && yamlOpen(src, r) && at >= min(end-1, r.Open[0].Offset) {
		r.Status = Cut
		return
	}
	r.Status, r.Open = Broken, nil
	r.Problems = []Problem{{at, lineOf(src, at), message}}
}

// parseYAML returns where the parser's error is, from 1; 0 if it does not say.
func parseYAML(src []byte) (line, column int, message string, err error) {
	defer func() {
		if p := recover(); p != nil {
			message, err = "the YAML parser failed on this text", fmt.Errorf("code: the YAML parser failed: %v", p)
		}
	}()
	if _, err = yamlparser.ParseBytes(src, 0); err == nil {
		return 0, 0, "", nil
	}
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) || syntax.Token == nil || syntax.Token.Position == nil {
		return 0, 0, err.Error(), err
	}
	p := syntax.Token.Position
	return p.Line, p.Column, syntax.Message, err
}

// offsetOf returns the byte offset of a line and a column of runes, both from 1.
func offsetOf(src []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		i := bytes.IndexByte(src[at:], '\n')
		if i < 0 {
			return len(src)
		}
		at += i + 1
	}
	for i := range string(src[at:]) {
		if column--; column <= 0 {
			return at + i
		}
	}
	return len(src)
}

// slowYAML reports whether a text has runs in which the parser's time is quadratic.
func slowYAML(text []byte) bool {
	const most = 64
	for _, run := range []string{"<", "- ", "? ", ": "} {
		if bytes.Contains(text, bytes.Repeat([]byte(run), most)) {
			return true
		}
	}
	blank := 0
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		if blank++; len(bytes.TrimSpace(line)) > 0 {
			blank = 0
		}
		if blank > most {
			return true
		}
	}
	return false
}

// yamlDepth is more than the depth that a parser of YAML would go to: by brackets, and
// by the indentation and marks of a line.
func yamlDepth(src []byte) int {
	flow, deepest := 0, 0
	levels := []int{}
	for line := range bytes.SplitSeq(src, []byte{'\n'}) {
		text := bytes.TrimLeft(line, " ")
		indent := len(line) - len(text)
		for len(levels) > 0 && levels[len(levels)-1] >= indent {
			levels = levels[:len(levels)-1]
		}
		if len(text) > 0 {
			levels = append(levels, indent)
		}
		marks := 0
		for bytes.HasPrefix(text, []byte("- ")) || bytes.HasPrefix(text, []byte("? ")) {
			text = bytes.TrimLeft(text[2:], " ")
			marks++
		}
		deepest = max(deepest, flow+len(levels)+marks)
		for _, c := range text {
			switch c {
			case '[', '{':
				flow++
			case ']', '}':
				flow = max(0, flow-1)
			}
			deepest = max(deepest, flow+len(levels)+marks)
		}
	}
	return deepest
}

// yamlOpen looks for a quoted value or a bracket that is open at the end: one that
// begins a value in the last lines.
func yamlOpen(src []byte, r *Report) bool {
	s := scan(languages["yaml"], src, Options{})
	r.Open = s.open()
	return len(s.problems) == 0 && len(r.Open) > 0
}
