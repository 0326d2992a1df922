package grammar_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/unfray/unfray/grammar"
)

var schemas = []struct {
	schema  string
	in, out []string
}{
	{`{}`, []string{`1`, `"a"`, `null`, `{"a":[1,{"b":true}]}`, `[]`, `-1.5e+10`, `"\u00e9\n\ud83d\ude00"`, `{ "a" : 1 , "b":[ ] }`},
		[]string{``, `01`, `tru`, `{"a"}`, `"\ud800"`, "\"\n\"", `[1,]`, `1 `}},
	{`true`, []string{`1`}, []string{``}},
	{`{"type":"boolean"}`, []string{`true`, `false`}, []string{`1`, `"true"`}},
	{`{"type":["null","integer"]}`, []string{`null`, `-12`, `0`}, []string{`1.5`, `"a"`, `-`, `00`}},
	{`{"type":"number"}`, []string{`1`, `-1.5`, `1e5`, `0.25E-3`}, []string{`.5`, `1.`, `+1`, `-`}},
	{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":"null"}},"required":["b"],"additionalProperties":false}`,
		[]string{`{"a":1,"b":"x","c":null}`, `{"b":"x"}`, `{"b":"","c":null}`, "{\n  \"a\": 1,\n  \"b\": \"x\"\n}"},
		[]string{`{}`, `{"a":1}`, `{"b":"x","a":1}`, `{"b":"x","d":1}`, `{"b":1}`, `{"b":"x",}`, `{,"b":"x"}`}},
	{`{"properties":{"a":{},"ab":{}},"additionalProperties":{"type":"integer"}}`,
		[]string{`{}`, `{"a":"x"}`, `{"a":"x","ab":[],"b":1,"abc":2,"":3}`, `{"x":1}`}, []string{`{"x":"y"}`, `{"x":1,"a":"x"}`, `{"\u0061":1}`, `{"abc":""}`, `1`}},
	{`{"type":"object"}`, []string{`{}`, `{"x":[1]}`}, []string{`[]`}},
	{`{"type":"object","required":["x","y"]}`, []string{`{"x":1,"y":2}`, `{"x":1,"y":2,"z":3}`}, []string{`{}`, `{"x":1}`, `{"x":1,"y":2,"x":3}`}},
	{`{"additionalProperties":false}`, []string{`{}`}, []string{`{"a":1}`}},
	{`{"properties":{"é\"\n":{"const":1}}}`, []string{`{"é\"\n":1}`}, []string{`{"é":1}`}},
	{`{"properties":{"a":false,"b":{"type":"integer"}}}`, []string{`{}`, `{"b":1}`}, []string{`{"a":1}`}},
	{`{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3}`, []string{`[1]`, `[1, 2,3]`}, []string{`[]`, `[1,2,3,4]`, `["a"]`, `[1,]`}},
	{`{"items":{"const":"x"}}`, []string{`[]`, `["x","x"]`}, []string{`["y"]`, `{}`}},
	{`{"prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"minItems":1}`,
		[]string{`[1]`, `[1,"a"]`, `[1,"a",null,null]`}, []string{`[]`, `["a"]`, `[1,null]`, `[1,"a",1]`}},
	{`{"prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2}`, []string{`[1,"a"]`}, []string{`[1]`, `[1,"a",1]`}},
	{`{"prefixItems":[{},{},{}],"items":true,"maxItems":2}`, []string{`[]`, `[1,2]`}, []string{`[1,2,3]`}},
	{`{"type":"array","maxItems":0}`, []string{`[]`, `[ ]`}, []string{`[1]`}},
	{`{"enum":["a","b\n",1,-2.5,null,true,{"x":[1,"y"]}]}`, []string{`"a"`, `"b\n"`, `1`, `-2.5`, `null`, `true`, `{"x":[1,"y"]}`, `{ "x": [1, "y"] }`},
		[]string{`"c"`, `2`, `false`, `{"x":[1]}`}},
	{`{"type":"string","enum":["a",1]}`, []string{`"a"`}, []string{`1`}},
	{`{"type":"integer","enum":[1,2.5]}`, []string{`1`}, []string{`2.5`}},
	{`{"enum":[1,2,3],"allOf":[{"enum":[2,3,4]},{"const":3}]}`, []string{`3`}, []string{`2`, `1`, `4`}},
	{`{"anyOf":[{"type":"integer"},{"type":"object","properties":{"a":{"type":"null"}}}]}`, []string{`1`, `{"a":null}`, `{}`}, []string{`"x"`, `{"a":1}`}},
	{`{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"oneOf":[{"properties":{"k":{"const":"a"},"v":{"type":"integer"}}},{"properties":{"k":{"const":"b"}}}]}`,
		[]string{`{"k":"a","v":1}`, `{"k":"b"}`}, []string{`{"k":"c"}`, `{"k":"b","v":1}`, `{"v":1}`}},
	{`{"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"a":{"minimum":5},"b":{}},"required":["b"]}]}`,
		[]string{`{"a":5,"b":0}`}, []string{`{"a":4,"b":0}`, `{"a":5}`, `{"a":5.5,"b":0}`}},
	{`{"allOf":[{"type":["integer","string"]},{"type":["string","null"]}]}`, []string{`"x"`}, []string{`1`, `null`}},
	{`{"allOf":[{"properties":{"a":{}},"additionalProperties":false},{"properties":{"a":{"type":"null"},"b":{}}}]}`, []string{`{}`, `{"a":null}`}, []string{`{"b":1}`}},
	{`{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]}},"required":["v","next"],"additionalProperties":false}}}`,
		[]string{`{"v":1,"next":null}`, `{"v":1,"next":{"v":2,"next":{"v":3,"next":null}}}`}, []string{`{"v":1}`, `{"v":1,"next":{}}`}},
	{`{"items":{"$ref":"#"}}`, []string{`[]`, `[[],[[]]]`}, []string{`[1]`}},
	{`{"$ref":"#/definitions/a~1b%25","definitions":{"a/b%":{"type":"integer"}}}`, []string{`1`}, []string{`"a"`}},
	{`{"$defs":{"i":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/i","minimum":3,"description":"x"}}}`, []string{`{"a":3}`}, []string{`{"a":2}`}},
	{`{"$defs":{"p":{"anyOf":[{"type":"integer"},{"type":"string"}]}},"$ref":"#/$defs/p","minimum":3}`, []string{`3`}, []string{`2`}},
	{`{"$defs":{"t":{"properties":{"c":{"allOf":[{"$ref":"#/$defs/t"},{"required":["x"]}]},"x":{"type":"integer"}}}},"$ref":"#/$defs/t"}`,
		[]string{`{}`, `{"c":{"x":1}}`, `{"c":{"c":{"x":1},"x":1}}`}, []string{`{"c":{}}`, `{"c":{"c":{},"x":1}}`}},
	{`{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"é😀\n"`, `"\ud83d\ude00a"`}, []string{`"a"`, `"abcd"`, `"\n"`}},
	{`{"type":"string","pattern":"^[a-z]+\\.\"?$"}`, []string{`"ab."`, `"ab.\""`}, []string{`"."`, `"ab.""`, `"xab.x"`, `"AB."`}},
	{`{"type":"string","pattern":"b+"}`, []string{`"b"`, `"abc"`, `"\n\"b\\"`}, []string{`"ac"`, `""`}},
	{`{"type":"string","pattern":"^a|b$"}`, []string{`"a"`, `"ax"`, `"xb"`}, []string{`"x"`, `"xa"`}},
	{`{"type":"string","pattern":"^a$|^bc$"}`, []string{`"a"`, `"bc"`}, []string{`"ab"`, `"xa"`}},
	{`{"type":"string","pattern":"$"}`, []string{`""`, `"x"`}, []string{`x`}},
	{`{"type":"string","pattern":"^$"}`, []string{`""`}, []string{`"x"`}},
	{`{"type":"string","pattern":"^.$"}`, []string{`"x"`, `"\""`, `"\u0000"`, `"\\"`}, []string{`""`, `"\n"`, `"""`}},
	{`{"type":"string","format":"date"}`, []string{`"2024-02-29"`, `"2023-12-31"`, `"2000-02-29"`}, []string{`"2023-02-29"`, `"1900-02-29"`, `"2023-04-31"`, `"2023-13-01"`, `"2023-1-1"`}},
	{`{"type":"string","format":"date-time"}`, []string{`"2024-01-01T00:00:00Z"`, `"2024-01-01T23:59:59.123+05:30"`}, []string{`"2024-01-01"`, `"2024-01-01T24:00:00Z"`}},
	{`{"type":"string","format":"uuid"}`, []string{`"123e4567-e89b-12d3-a456-426614174000"`}, []string{`"123e4567"`}},
	{`{"type":"string","format":"ipv4"}`, []string{`"0.10.255.1"`}, []string{`"256.1.1.1"`, `"1.1.1"`, `"01.1.1.1"`}},
	{`{"type":"string","format":"email"}`, []string{`"a.b@example.org"`}, []string{`"a"`, `"@x"`}},
	{`{"type":"string","format":"duration"}`, []string{`"P1Y2M3DT4H5M6S"`, `"PT1S"`, `"P2W"`}, []string{`"P"`, `"P1YT"`, `"1S"`}},
	{`{"type":"number","minimum":0}`, []string{`0`, `0.5`, `123.25`}, []string{`-1`, `-0.5`}},
	{`{"type":"number","exclusiveMinimum":0,"maximum":2}`, []string{`0.5`, `2`, `2.0`, `1.99`, `0.001`}, []string{`0`, `0.0`, `2.1`, `3`, `-1`}},
	{`{"type":"number","minimum":-2,"exclusiveMaximum":-1}`, []string{`-2`, `-1.5`, `-2.0`}, []string{`-1`, `-1.0`, `-2.1`, `1.5`, `0`}},
	{`{"type":"integer","minimum":1.5,"exclusiveMaximum":4}`, []string{`2`, `3`}, []string{`1`, `4`}},
	{`{"type":"integer","multipleOf":1,"x-vendor":3,"title":"t","uniqueItems":false}`, []string{`2`}, []string{`2.5`}},
	{`{"title":"any"}`, []string{`2`, `{}`}, []string{``}},
	{`{"anyOf":[false,{"type":"null"}]}`, []string{`null`}, []string{`1`}},
}

func TestJSONSchema(t *testing.T) {
	for _, test := range schemas {
		g, err := grammar.ParseJSONSchema([]byte(test.schema))
		if err != nil {
			t.Errorf("%s: %v", test.schema, err)
			continue
		}
		for _, s := range test.in {
			if !g.Match([]byte(s)) {
				t.Errorf("%s is not valid by %s", s, test.schema)
			}
		}
		for _, s := range test.out {
			if g.Match([]byte(s)) {
				t.Errorf("%s is valid by %s", s, test.schema)
			}
		}
	}
}

func TestJSONSchemaErrors(t *testing.T) {
	tests := []struct {
		schema, pointer string
		cause           error
		text            string
	}{
		{``, "", nil, "end of JSON"},
		{`{"type":`, "", nil, "end of JSON"},
		{`{"type":"integer"} x`, "", nil, "more after"},
		{`[]`, "", nil, "want a schema"},
		{`{"a":1,"a":2}`, "", nil, "twice"},
		{`{"type":"text"}`, "/type", nil, "no type"},
		{`{"type":["integer",1]}`, "/type", nil, "no type"},
		{`{"properties":[]}`, "/properties", nil, "want an object"},
		{`{"properties":{"a/b":{"pattern":"("}}}`, "/properties/a~1b/pattern", nil, "missing closing"},
		{`{"properties":{"a":{"not":{}}}}`, "/properties/a/not", grammar.ErrUnsupported, "keyword not"},
		{`{"$defs":{"x":{"uniqueItems":true}},"anyOf":[{"$ref":"#/$defs/x"}]}`, "/$defs/x/uniqueItems", grammar.ErrUnsupported, ""},
		{`{"patternProperties":{"a":{}}}`, "/patternProperties", grammar.ErrUnsupported, ""},
		{`{"multipleOf":2}`, "/multipleOf", grammar.ErrUnsupported, ""},
		{`{"type":"string","format":"regex"}`, "/format", grammar.ErrUnsupported, ""},
		{`{"type":"string","format":"date","minLength":3}`, "/format", grammar.ErrUnsupported, ""},
		{`{"allOf":[{"pattern":"a"},{"pattern":"b"}]}`, "/allOf/1/pattern", grammar.ErrUnsupported, ""},
		{`{"enum":["a"],"minLength":2}`, "/minLength", grammar.ErrUnsupported, ""},
		{`{"type":"number","minimum":0.5}`, "/minimum", grammar.ErrUnsupported, ""},
		{`{"type":"integer","minimum":1e300}`, "/minimum", grammar.ErrUnsupported, ""},
		{`{"items":[{}]}`, "/items", grammar.ErrUnsupported, "prefixItems"},
		{`{"items":{"$ref":"other.json"}}`, "/items/$ref", grammar.ErrUnsupported, ""},
		{`{"$ref":"#/$defs/x"}`, "/$ref", nil, "not there"},
		{`{"$ref":"#"}`, "", grammar.ErrLeftRecursion, ""},
		{`{"anyOf":[{"$ref":"#"},{"type":"null"}]}`, "", grammar.ErrLeftRecursion, ""},
		{`false`, "", grammar.ErrEmpty, ""},
		{`{"enum":[]}`, "", grammar.ErrEmpty, ""},
		{`{"type":"integer","minimum":2,"maximum":1}`, "", grammar.ErrEmpty, ""},
		{`{"properties":{"a":false},"required":["a"]}`, "", grammar.ErrEmpty, ""},
		{`{"properties":{"a":{"$ref":"#"}},"required":["a"]}`, "", grammar.ErrEmpty, ""},
		{`{"type":"array","minItems":2,"maxItems":1}`, "", grammar.ErrEmpty, ""},
		{`{"type":"string","minLength":2,"maxLength":1}`, "", grammar.ErrEmpty, ""},
		{`{"type":"string","maxLength":1000000000}`, "", grammar.ErrTooLarge, ""},
		{`{"type":"string","maxLength":-1}`, "/maxLength", nil, "0 or more"},
		{strings.Repeat(`{"items":`, 100000), "", grammar.ErrTooLarge, "nested"},
	}
	for _, test := range tests {
		_, err := grammar.ParseJSONSchema([]byte(test.schema))
		var se *grammar.SyntaxError
		if !errors.As(err, &se) {
			t.Errorf("%.60s: %v is no SyntaxError", test.schema, err)
			continue
		}
		if test.cause != nil && !errors.Is(err, test.cause) || !strings.Contains(err.Error(), test.text) || se.Pointer != test.pointer {
			t.Errorf("%.60s: %v at %q, want %v %q at %q", test.schema, err, se.Pointer, test.cause, test.text, test.pointer)
		}
	}
}

// TestIntegerBounds compares ranges with the numbers in them.
func TestIntegerBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		size := []int{5, 30, 300, 2000}[r.IntN(4)]
		low, high := r.IntN(2*size)-size, r.IntN(2*size)-size
		var parts []string
		atLeast, atMost := r.IntN(4) > 0, r.IntN(4) > 0
		if atLeast {
			parts = append(parts, fmt.Sprintf(`"minimum":%d`, low))
		}
		if atMost {
			parts = append(parts, fmt.Sprintf(`"maximum":%d`, high))
		}
		src := `{"type":"integer",` + strings.Join(append(parts, `"title":""}`), ",")
		g, err := grammar.ParseJSONSchema([]byte(src))
		if atLeast && atMost && low > high {
			if !errors.Is(err, grammar.ErrEmpty) {
				t.Fatalf("%s: %v, want ErrEmpty", src, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		for n := -2100; n <= 2100; n++ {
			want := (!atLeast || n >= low) && (!atMost || n <= high)
			if g.Match(fmt.Append(nil, n)) != want {
				t.Fatalf("%s: %d is valid: %v", src, n, !want)
			}
		}
	}
}

// TestNumberBounds does it for numbers with fractions.
func TestNumberBounds(t *testing.T) {
	for low := -3; low <= 3; low++ {
		for high := low; high <= 3; high++ {
			for mode := range 4 {
				least, most := "minimum", "maximum"
				if mode&1 != 0 {
					least = "exclusiveMinimum"
				}
				if mode&2 != 0 {
					most = "exclusiveMaximum"
				}
				src := fmt.Sprintf(`{"type":"number",%q:%d,%q:%d}`, least, low, most, high)
				g, err := grammar.ParseJSONSchema([]byte(src))
				if low == high && mode > 0 {
					if !errors.Is(err, grammar.ErrEmpty) {
						t.Fatalf("%s: %v, want ErrEmpty", src, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", src, err)
				}
				for n := -160; n <= 160; n++ {
					x := float64(n) / 40
					want := x >= float64(low) && x <= float64(high) && !(mode&1 != 0 && x == float64(low)) && !(mode&2 != 0 && x == float64(high))
					text := fmt.Sprintf("%.3f", x)
					if g.Match([]byte(text)) != want {
						t.Fatalf("%s: %s is valid: %v", src, text, !want)
					}
				}
			}
		}
	}
}

// TestPatternSearch compares patterns in schemas with Go's search.
func TestPatternSearch(t *testing.T) {
	for _, src := range append(regexes, `b`, `^b`, `b$`, `^(a|b)c`, `(^a|b$)`, `a|^$`, `(^|a)b`) {
		re := regexp.MustCompile(src)
		quoted, err := json.Marshal(src)
		if err != nil {
			t.Fatal(err)
		}
		g, err := grammar.ParseJSONSchema([]byte(`{"type":"string","pattern":` + string(quoted) + `}`))
		if errors.Is(err, grammar.ErrUnsupported) {
			t.Logf("%s: %v", src, err)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		words("abc\nB", 4, func(text []byte) {
			quoted, err := json.Marshal(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if g.Match(quoted) != re.Match(text) {
				t.Fatalf("%s: %s matches: %v", src, quoted, !re.Match(text))
			}
		})
	}
}

// TestSchemaWalk draws texts from schemas at random. What the grammar accepts
// is JSON, and can always be completed.
func TestSchemaWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	const alphabet = "{}[]\":, 0123456789-.eEabcxyzklnrtusfTZP@\\\n\xc3\xa9"
	whole := 0
	for _, test := range schemas {
		g, err := grammar.ParseJSONSchema([]byte(test.schema))
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			s, text := g.Start(), []byte(nil)
			for range 300 {
				if s.Accepting() {
					if whole++; !json.Valid(text) {
						t.Fatalf("%s: %q is accepted", test.schema, text)
					}
				}
				from := r.IntN(len(alphabet))
				for i := range len(alphabet) {
					b := alphabet[(from+i)%len(alphabet)]
					if next, ok := s.Advance(b); ok {
						s, text = next, append(text, b)
						break
					}
				}
				if s.Ended() {
					break
				}
			}
		}
	}
	if whole < 1000 {
		t.Errorf("only %d whole texts were drawn", whole)
	}
}
