package grammar_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/unfray/unfray/grammar"
	"github.com/unfray/unfray/vocab"
)

const jsonGBNF = `# JSON, whitespace where it may be
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
    string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= "-"? ([0-9] | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
`

const arithmeticGBNF = `root ::= (expr "=" ws term "\n")+
expr ::= term ([-+*/] term)*
term ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num ::= [0-9]+ ws
ws ::= [ \t\n]*
`

const listGBNF = `root ::= item+
# what llama.cpp calls a list
item ::= "- " [^\r\n\x0b\x0c\x85\u2028\u2029]+ "\n"
`

func mustGBNF(t testing.TB, src string) *grammar.Grammar {
	t.Helper()
	g, err := grammar.ParseGBNF(src)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGBNF(t *testing.T) {
	tests := []struct {
		src     string
		in, out []string
	}{
		{jsonGBNF, []string{`{}`, `{ }`, `{"a":1}`, `{"a": [1, -2.5e+3, {"b": null}], "é\u00e9": "x"}`, "{\n\t\"a\":1}"},
			[]string{``, `[]`, `{"a"}`, `{"a":1,}`, `{"a":01}`, "{\"a\":\"\x01\"}", "{\"\xff\":1}", `{"a":1}x`}},
		{arithmeticGBNF, []string{"1=2\n", "a+b*(c-1)=x\n", "( 1 +2 ) *3 = 4\n1=1\n"}, []string{"", "1=2", "1+=2\n", "((1)=1\n"}},
		{listGBNF, []string{"- a\n", "- a\n- é b\n"}, []string{"", "- \n", "- a", "- a\u2028\n", "- a\u0085\n"}},
		{`root ::= "a"{2,3} "b"{2} "c"{1,}`, []string{"aabbc", "aaabbccc"}, []string{"abbc", "aaaabbc", "aabbbc", "aabb"}},
		{`root ::= "\x41\u00e9\U0001F600\t\\\"" .`, []string{"Aé😀\t\\\"x", "Aé😀\t\\\"😀"}, []string{"Aé😀\t\\\"", "Aé😀\t\\\"xx"}},
		{`root ::= [a-c\-\]^] [^a-c-]`, []string{"ad", "]d", "^é", "-x"}, []string{"da", "aa", "a-"}},
		{"root ::= a |\n b # two\n\n a ::= \"x\"\r\nb ::= (\"y\"\n | \"z\")", []string{"x", "y", "z"}, []string{"", "xy"}},
		{`root ::= "a" root "b" | ""`, []string{"", "ab", "aaabbb"}, []string{"aab", "abb", "ba"}},
		{`root ::= "a" root "x" | "a" root "y" | "z"`, []string{"z", "aaazxyx"}, []string{"aaazxy", "az"}},
		{`root ::= e e "x"` + "\n" + `e ::= "a"?`, []string{"x", "ax", "aax"}, []string{"aaax"}},
		{`root ::= ("a"? "b"?)* "c"`, []string{"c", "abbac"}, []string{"ab"}},
		{"root ::= (e)* \"c\"\ne ::= \"a\"* f\nf ::= \"b\"?", []string{"c", "abbac"}, []string{"ab", "cc"}},
	}
	for _, test := range tests {
		g := mustGBNF(t, test.src)
		for _, s := range test.in {
			if !g.Match([]byte(s)) {
				t.Errorf("%q is not in\n%s", s, test.src)
			}
		}
		for _, s := range test.out {
			if g.Match([]byte(s)) {
				t.Errorf("%q is in\n%s", s, test.src)
			}
		}
	}
}

func TestGBNFErrors(t *testing.T) {
	tests := []struct {
		src    string
		offset int
		cause  error
		text   string
	}{
		{"", 0, nil, "no rule root"},
		{"root ::= a", 9, nil, "rule a is not defined"},
		{"x ::= \"a\"", 9, nil, "no rule root"},
		{"root ::= \"a", 9, nil, "string without an end"},
		{"root ::= [a", 9, nil, "class without an end"},
		{"root ::= (\"a\"", 13, nil, "want )"},
		{"root ::= \"\\q\"", 10, nil, "unknown escape"},
		{"root ::= \"\\x4\"", 10, nil, "hexadecimal"},
		{"root ::= \"\\ud800\"", 10, nil, "no character"},
		{"root ::= [b-a]", 10, nil, "range"},
		{"root ::= *", 9, nil, "nothing before it"},
		{"root ::= \"a\"{3,2}", 12, nil, "at least 3"},
		{"root ::= \"a\"\nroot ::= \"b\"", 13, nil, "twice"},
		{"root = \"a\"", 5, nil, "want ::="},
		{"root ::= \"a\" )", 13, nil, "unexpected"},
		{"root ::= <[12]>", 9, grammar.ErrUnsupported, ""},
		{"root ::= !<[12]>", 9, grammar.ErrUnsupported, ""},
		{"root ::= \"a\"{1,1000000000}", 12, grammar.ErrTooLarge, ""},
		{"root ::= (\"ab\"{200000} | \"c\"{200000})", 0, grammar.ErrTooLarge, "more than"},
		{"root ::= " + strings.Repeat("(", 100000), 509, grammar.ErrTooLarge, "nested"},
		{"root ::= root \"a\" | \"b\"", 0, grammar.ErrLeftRecursion, "rule root"},
		{"root ::= \"x\" a\na ::= e? b\nb ::= (a \"y\"){2} | \"z\"\ne ::= \"e\"", 0, grammar.ErrLeftRecursion, "rule"},
		{"root ::= \"a\" root", 0, grammar.ErrEmpty, ""},
		{"root ::= []", 0, grammar.ErrEmpty, ""},
		{"root ::= \"\xff\"", 10, nil, "UTF-8"},
	}
	for _, test := range tests {
		_, err := grammar.ParseGBNF(test.src)
		var se *grammar.SyntaxError
		if !errors.As(err, &se) {
			t.Errorf("%.40q: %v is no SyntaxError", test.src, err)
			continue
		}
		if test.cause == nil && se.Offset != test.offset || test.cause != nil && !errors.Is(err, test.cause) ||
			!strings.Contains(err.Error(), test.text) {
			t.Errorf("%.40q: %v at %d, want %v %q at %d", test.src, err, se.Offset, test.cause, test.text, test.offset)
		}
	}
	_, err := grammar.ParseGBNF("root ::= a\na ::= \"\\q\"")
	var se *grammar.SyntaxError
	if !errors.As(err, &se) || se.Line != 2 || se.Column != 8 {
		t.Errorf("%v is not at 2:8", err)
	}
}

// words calls f with all texts of up to n bytes of an alphabet.
func words(alphabet string, n int, f func([]byte)) {
	var walk func(text []byte)
	walk = func(text []byte) {
		f(text)
		if len(text) < n {
			for i := range len(alphabet) {
				walk(append(text[:len(text):len(text)], alphabet[i]))
			}
		}
	}
	walk(nil)
}

// checkAlive holds the states of all short words against a recognizer: a text
// is accepted if it says so, and dead only if none that goes on from it is.
func checkAlive(t *testing.T, name string, g *grammar.Grammar, alphabet string, n int, match func([]byte) bool) {
	t.Helper()
	words(alphabet, n, func(text []byte) {
		s, ok := g.Start().AdvanceBytes(text)
		if ok == s.Dead() && len(text) > 0 {
			t.Fatalf("%s: %q: Advance says %v, Dead %v", name, text, ok, s.Dead())
		}
		want := match(text)
		if s.Accepting() != want {
			t.Fatalf("%s: %q is accepted: %v, want %v", name, text, s.Accepting(), want)
		}
		if want {
			for i := range text {
				if s, ok := g.Start().AdvanceBytes(text[:i]); !ok || s.Dead() {
					t.Fatalf("%s: dead at %q before %q", name, text[:i], text)
				}
			}
		}
	})
}

var regexes = []string{
	``, `a`, `a*`, `a+b`, `(a|b)*c`, `(a|ab)(c|bc)`, `a{2,3}b{0,2}`, `(a*)*b`, `(a?b?)*`, `[^a]`, `.`, `(?s).`, `(?i)aB`,
	`^a$`, `\Aab\z`, `(^a|b)c`, `(a|b)+?c`, `(?:a{2}){2}`, `((a|b){2}c?){1,2}`, `é|[à-ü]a`, `[^é]`, `(a+)+b`, `[\x80-\x{10ffff}]`,
	`(((a+)+)+)+`, `[a-\x{ffff}]`, `(|a)(|b)(|c)`,
}

func TestRegex(t *testing.T) {
	for _, src := range regexes {
		g, err := grammar.ParseRegex(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		re := regexp.MustCompile(`\A(?:` + src + `)\z`)
		match := func(text []byte) bool { return utf8.Valid(text) && re.Match(text) }
		checkAlive(t, src, g, "abcAB\n", 5, match)
		checkAlive(t, src, g, "a\x80\xa9\xc3\xed\xf0\xff", 4, match)
	}
}

// TestRandomRegex does it with expressions made by chance.
func TestRandomRegex(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var make func(depth int) string
	make = func(depth int) string {
		if depth == 0 {
			return []string{"a", "b", "[ab]", "", "c", "[^a]"}[rng.IntN(6)]
		}
		switch rng.IntN(6) {
		case 0:
			return "(?:" + make(depth-1) + "|" + make(depth-1) + ")"
		case 1:
			return "(?:" + make(depth-1) + ")" + []string{"*", "+", "?", "{2}", "{1,3}", "{2,}"}[rng.IntN(6)]
		}
		return make(depth-1) + make(depth-1)
	}
	for range 300 {
		src := make(4)
		g, err := grammar.ParseRegex(src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		re := regexp.MustCompile(`\A(?:` + src + `)\z`)
		checkAlive(t, src, g, "abc", 6, re.Match)
	}
}

func TestRegexErrors(t *testing.T) {
	for src, want := range map[string]error{
		`a^b`: grammar.ErrUnsupported, `\bab`: grammar.ErrUnsupported, `(a$)*`: grammar.ErrUnsupported, `[^\x00-\x{10ffff}]`: grammar.ErrEmpty,
		`(`: nil, `a{1001}`: nil, `((a{100}){100}){100}`: nil, `(?=a)`: nil,
	} {
		_, err := grammar.ParseRegex(src)
		var se *grammar.SyntaxError
		if !errors.As(err, &se) || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", src, err, want)
		}
	}
}

// A naive recognizer of grammars: rules are lists of alternatives, each a list
// of parts, where capitals are rules and small letters bytes.
type naive map[byte][]string

// ends gives all places where a part sequence that begins at i can end. The
// rules in open began at i too: to begin one again leads nowhere.
func (n naive) ends(parts string, text string, i int, open string) map[int]bool {
	if parts == "" {
		return map[int]bool{i: true}
	}
	out := map[int]bool{}
	if c := parts[0]; c >= 'a' {
		if i < len(text) && text[i] == c {
			return n.ends(parts[1:], text, i+1, "")
		}
		return out
	}
	if strings.IndexByte(open, parts[0]) >= 0 {
		return out
	}
	for _, alt := range n[parts[0]] {
		for mid := range n.ends(alt, text, i, open+parts[:1]) {
			still := open
			if mid > i {
				still = ""
			}
			for end := range n.ends(parts[1:], text, mid, still) {
				out[end] = true
			}
		}
	}
	return out
}

func (n naive) gbnf() string {
	var b strings.Builder
	b.WriteString("root ::= S\n")
	for name, alts := range n {
		b.WriteString(string(name) + " ::= ")
		for i, alt := range alts {
			if i > 0 {
				b.WriteString(" | ")
			}
			if alt == "" {
				b.WriteString(` ""`)
			}
			for _, c := range alt {
				if c >= 'a' {
					b.WriteString(` "` + string(c) + `"`)
				} else {
					b.WriteString(" " + string(c))
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestRandomGrammar compares with the naive recognizer, on grammars with
// recursion, rules that match nothing and ambiguity.
func TestRandomGrammar(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	used := 0
	for range 2500 {
		n := naive{}
		for _, name := range []byte("SAB") {
			for range 1 + rng.IntN(3) {
				alt := ""
				for range rng.IntN(4) {
					alt += string("abcSAB"[rng.IntN(6)])
				}
				n[name] = append(n[name], alt)
			}
		}
		g, err := grammar.ParseGBNF(n.gbnf())
		if errors.Is(err, grammar.ErrLeftRecursion) || errors.Is(err, grammar.ErrEmpty) {
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, n.gbnf())
		}
		used++
		checkAlive(t, n.gbnf(), g, "abc", 5, func(text []byte) bool { return n.ends("S", string(text), 0, "")[len(text)] })
	}
	if used < 300 {
		t.Errorf("only %d grammars were compared", used)
	}
}

// TestDead: a state that is not dead can be completed.
func TestDead(t *testing.T) {
	g := mustGBNF(t, "root ::= \"a\" (b | \"c\" [] | \"d\") | \"e\" f\nb ::= \"x\" b\nf ::= \"f\" f | []")
	for text, dead := range map[string]bool{"": false, "a": false, "ad": false, "ax": true, "ac": true, "e": true} {
		if s, _ := g.Start().AdvanceBytes([]byte(text)); s.Dead() != dead {
			t.Errorf("%q is dead: %v", text, s.Dead())
		}
	}
}

func TestWithPrefix(t *testing.T) {
	g := mustGBNF(t, `root ::= "é" [0-9]+`).WithPrefix([]byte("b\xff")).WithPrefix([]byte("a"))
	s := g.Start()
	if s.Accepting() || s.Dead() {
		t.Error("the start is accepting or dead")
	}
	if !g.Match([]byte("ab\xffé12")) || g.Match([]byte("é12")) || g.Match([]byte("ab\xff")) {
		t.Error("Match is wrong with a prefix")
	}
	if s, ok := s.AdvanceBytes([]byte("ax")); ok || !s.Dead() || s.Err() != nil {
		t.Error("not dead where the prefix is left")
	}
	if _, ok := (grammar.State{}).Advance('a'); ok || !(grammar.State{}).Dead() || (grammar.State{}).Err() != nil {
		t.Error("the zero State is not dead")
	}
}

func TestEnded(t *testing.T) {
	g := mustGBNF(t, `root ::= "a" "b"?`)
	for text, want := range map[string]bool{"": false, "a": false, "ab": true} {
		if s, _ := g.Start().AdvanceBytes([]byte(text)); s.Ended() != want {
			t.Errorf("%q: Ended is %v", text, s.Ended())
		}
	}
}

// TestHostile: what could take exponential time or memory is linear or refused.
func TestHostile(t *testing.T) {
	start := time.Now()
	tests := []struct {
		src, text string
		err       error
	}{
		{`root ::= "a" root root | "a"`, strings.Repeat("a", 101), nil},
		{`root ::= "a" root root | "a"`, strings.Repeat("a", 2001), grammar.ErrTooComplex},
		{`root ::= "a" root "x" | "a" root "y" | "z"`, strings.Repeat("a", 2000) + "z" + strings.Repeat("xy", 1000), nil},
		{`root ::= (("a"*)*)* "b"`, strings.Repeat("a", 5000) + "b", nil},
		{`root ::= ("a" | "aa" | "aaa")* "b"`, strings.Repeat("a", 5000) + "b", nil},
		{`root ::= ("a"*){1000}`, strings.Repeat("a", 1000), nil},
		{`root ::= "a" root | "a"`, strings.Repeat("a", 100000), nil},
		{`root ::= ` + strings.Repeat("(", 400) + `"a"` + strings.Repeat(")+", 400), strings.Repeat("a", 100), nil},
		{`root ::= ""` + strings.Repeat("{2}", 100) + ` "a"`, "a", nil},
		{`root ::= (("a"{0,200}){0,200} "b"?){0,200}`, strings.Repeat("a", 300), nil},
		{`root ::= (("ab"{100}){100}){2} "c"`, strings.Repeat("ab", 20000) + "c", nil},
	}
	for _, test := range tests {
		g := mustGBNF(t, test.src)
		s, _ := g.Start().AdvanceBytes([]byte(test.text))
		if !errors.Is(s.Err(), test.err) || test.err == nil && !s.Accepting() {
			t.Errorf("%.60s: accepting %v, %v", test.src, s.Accepting(), s.Err())
		}
		t.Logf("%6.0f ms up to %.60s", float64(time.Since(start).Microseconds())/1000, test.src)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestForget runs through more states than are kept.
func TestForget(t *testing.T) {
	g := mustGBNF(t, `root ::= ("a" root "b" | "")`)
	first := g.Start()
	for range 3 {
		text := bytes.Repeat([]byte("a"), 60000)
		s, ok := g.Start().AdvanceBytes(text)
		if !ok {
			t.Fatal("dead after many a")
		}
		if s, ok = s.AdvanceBytes(bytes.Repeat([]byte("b"), 60000)); !ok || !s.Ended() {
			t.Fatal("not at the end after as many b")
		}
	}
	if s, ok := first.AdvanceBytes([]byte("ab")); !ok || !s.Accepting() {
		t.Error("an old state does not go on")
	}
}

// TestHostileSource: sources that could take long to read do not, or are
// refused.
func TestHostileSource(t *testing.T) {
	chain := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i, i+1)
		}
		return b.String()
	}
	var choices []string
	for i := range 12 {
		var list []string
		for j := range 12 {
			list = append(list, fmt.Sprintf(`{"properties":{"p%d":{"const":%d}}}`, i, j))
		}
		choices = append(choices, `{"anyOf":[`+strings.Join(list, ",")+`]}`)
	}
	gbnf, regex := grammar.ParseGBNF, grammar.ParseRegex
	schema := func(src string) (*grammar.Grammar, error) { return grammar.ParseJSONSchema([]byte(src)) }
	tests := []struct {
		name  string
		parse func(string) (*grammar.Grammar, error)
		src   string
		err   error
	}{
		{"many choices", gbnf, `root ::= ` + strings.Repeat(`"a" | `, 50000) + `"a"`, nil},
		{"too many choices", gbnf, `root ::= ` + strings.Repeat(`"a" | `, 500000) + `"a"`, grammar.ErrTooLarge},
		{"a chain of rules", gbnf, "root ::= r-0\n" + chain(20000, "r-%d ::= \"\" r-%d | \"x\"\n") + "r-20000 ::= \"y\"", nil},
		{"a circle of rules", gbnf, "root ::= r-0\n" + chain(20000, "r-%d ::= \"\"? r-%d | \"x\"\n") + "r-20000 ::= root", grammar.ErrLeftRecursion},
		{"many classes", gbnf, "root ::= " + chain(5000, "[\\U0000%04x-\\U0001%04x] "), nil},
		{"letters", regex, `(\p{L}{5}){50}|(?i:straße|\p{Greek}{200})`, nil},
		{"nested repetitions", regex, strings.Repeat("(", 240) + "a" + strings.Repeat("b)*", 240), nil},
		{"combinations", schema, `{"allOf":[` + strings.Join(choices, ",") + `]}`, grammar.ErrTooLarge},
		{"references", schema, `{"$ref":"#/$defs/0","$defs":{` + chain(300, `"%d":{"$ref":"#/$defs/%d"},`) + `"300":{}}}`, nil},
		{"properties", schema, `{"properties":{` + chain(5000, `"p%d":{"type":["string","null"],"title":"%d"},`) + `"x":{}}}`, nil},
		{"long names", schema, `{"additionalProperties":true,"properties":{"` + strings.Repeat("a", 1<<20) + `":{}}}`, grammar.ErrTooLarge},
		{"a long tuple", schema, `{"prefixItems":[` + strings.Repeat(`{},`, 10000) + `{}]}`, nil},
		{"a large enum", schema, `{"enum":[` + chain(10000, `"value %d of %d",`) + `0]}`, nil},
	}
	for _, test := range tests {
		start := time.Now()
		_, err := test.parse(test.src)
		if !errors.Is(err, test.err) || test.err == nil && err != nil {
			t.Errorf("%s: %v, want %v", test.name, err, test.err)
		}
		took := time.Since(start)
		t.Logf("%6.0f ms %s: %.150v", float64(took.Microseconds())/1000, test.name, err)
		if took > 20*time.Second {
			t.Errorf("%s took %v", test.name, took)
		}
	}
}

// TestParallel lets goroutines go through one grammar, from states that are not
// known yet.
func TestParallel(t *testing.T) {
	g := mustGBNF(t, jsonGBNF)
	v := toyVocab(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			m := vocab.NewMask(v.Len())
			s := g.WithPrefix([]byte(" "[:i%2])).Start()
			for _, b := range []byte(" "[:i%2] + jsonSample) {
				if err := s.Mask(v, m); err != nil {
					t.Error(err)
				}
				s, _ = s.Advance(b)
			}
			if !s.Accepting() {
				t.Error("the sample is not accepted")
			}
		})
	}
	group.Wait()
}
