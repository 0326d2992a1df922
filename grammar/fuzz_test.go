package grammar_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"regexp/syntax"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/grammar"
)

// checkParsed holds what a parser gave: an error with its place, or a grammar
// that some text is in.
func checkParsed(t *testing.T, src string, g *grammar.Grammar, err error) bool {
	t.Helper()
	if err != nil {
		var se *grammar.SyntaxError
		if !errors.As(err, &se) || se.Offset < 0 || se.Offset > len(src) || se.Line < 1 || se.Column < 1 || se.Cause == nil {
			t.Fatalf("%#v is not a SyntaxError within the source", err)
		}
		return false
	}
	if s := g.Start(); s.Dead() && s.Err() == nil {
		t.Fatal("the start is dead")
	}
	return true
}

// advance goes on while it can. All that is not the end of the text can be
// completed.
func advance(t *testing.T, g *grammar.Grammar, text []byte) (grammar.State, bool) {
	t.Helper()
	s := g.Start()
	for i, b := range text {
		next, ok := s.Advance(b)
		if ok == next.Dead() || next.Dead() && next.Accepting() || ok && s.Ended() {
			t.Fatalf("at byte %d of %q: ok %v, dead %v, accepting %v", i, text, ok, next.Dead(), next.Accepting())
		}
		if !ok {
			return next, false
		}
		s = next
	}
	return s, !s.Dead()
}

func FuzzGBNF(f *testing.F) {
	for _, src := range []string{jsonGBNF, arithmeticGBNF, listGBNF, `root ::= "a"{2,3}`, "root ::= a\na ::= [^\\x00-\\uFFFF]", `root ::= root`, `root ::= "\q`, `root ::= (((`} {
		f.Add(src, []byte(`{"a":1}`))
	}
	f.Fuzz(func(t *testing.T, src string, text []byte) {
		if len(src) > 4096 || len(text) > 256 {
			return
		}
		g, err := grammar.ParseGBNF(src)
		if checkParsed(t, src, g, err) {
			advance(t, g, text)
		}
	})
}

func FuzzRegex(f *testing.F) {
	for _, src := range regexes {
		f.Add(src, []byte("ab\n"))
	}
	f.Fuzz(func(t *testing.T, src string, text []byte) {
		if len(src) > 1024 || len(text) > 64 {
			return
		}
		g, err := grammar.ParseRegex(src)
		if !checkParsed(t, src, g, err) {
			return
		}
		s, _ := advance(t, g, text)
		parsed, err := syntax.Parse(src, syntax.Perl)
		if err != nil || s.Err() != nil {
			return
		}
		re, err := regexp.Compile(`\A(?:` + parsed.String() + `)\z`)
		if err != nil {
			return
		}
		if want := utf8.Valid(text) && re.Match(text); s.Accepting() != want {
			t.Fatalf("%q accepts %q: %v", src, text, s.Accepting())
		}
	})
}

func FuzzJSONSchema(f *testing.F) {
	for _, test := range schemas {
		f.Add([]byte(test.schema), []byte(test.in[0]))
	}
	f.Fuzz(func(t *testing.T, src, text []byte) {
		if len(src) > 4096 || len(text) > 256 {
			return
		}
		g, err := grammar.ParseJSONSchema(src)
		if !checkParsed(t, string(src), g, err) {
			return
		}
		if s, _ := advance(t, g, text); s.Accepting() && !json.Valid(text) {
			t.Fatalf("%s accepts %q", src, text)
		}
	})
}

// FuzzMask compares masks with what Advance says of each token.
func FuzzMask(f *testing.F) {
	f.Add(jsonGBNF, []byte(""), []byte(`{"a":1`))
	f.Add(`root ::= "a" root "b" | ""`, []byte("ab"), []byte("aba"))
	f.Add(`root ::= [^a]* "é"`, []byte("\xc3"), []byte("\xc3\xc3"))
	v := toyVocab(f)
	f.Fuzz(func(t *testing.T, src string, prefix, text []byte) {
		if len(src) > 1024 || len(prefix) > 16 || len(text) > 64 {
			return
		}
		g, err := grammar.ParseGBNF(src)
		if err != nil {
			return
		}
		if s, ok := advance(t, g.WithPrefix(prefix), text); ok && s.Mask(v, make([]uint32, 2)) == nil {
			checkMask(t, v, s, text)
		}
	})
}
