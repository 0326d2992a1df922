package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// fitSteps counts the steps that a fit takes.
func fitSteps(s *Schema, text string) (steps int, fit *fit) {
	f := s.newFitter(FitOptions{}, len(text))
	before := f.steps
	a := f.attempt(0, Reading{Text: []byte(text)})
	return before - f.steps, a.fit
}

// Twice the input takes about twice the steps.
func TestLinear(t *testing.T) {
	object := `{"type":"object","properties":{"user_name":{"type":"string"},"n":{"type":"integer"},"s":{"enum":["in_progress","done"]},"u":{"anyOf":[{"type":"integer"},{"type":"null"},{"type":"array","items":{"type":"string"}}]}},"required":["user_name","n"],"additionalProperties":false}`
	repeat := func(item string) func(n int) string {
		return func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]" }
	}
	for _, tt := range []struct {
		name, schema string
		text         func(n int) string
	}{
		{"valid", `{"items":` + object + `}`, repeat(`{"user_name":"Ann","n":1,"s":"done","u":null}`)},
		{"coerced", `{"type":"array","items":` + object + `}`, repeat(`{"userName":"Ann","n":"1,234,567","s":"In Progress","u":"x","more":[1,2,{"a":null}]}`)},
		{"failing", `{"type":"array","items":` + object + `}`, repeat(`{"name":"Ann","n":"x","s":"zzzzzzz"}`)},
		{"extra keys", object, func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `"k%d":%d,`, i, i)
			}
			return `{` + b.String() + `"user_name":"x","n":"1"}`
		}},
		{"long string", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}`, func(n int) string { return `{"a":"` + strings.Repeat("7, ", n) + `7"}` }},
		{"deep", `{"$ref":"#/$defs/t","$defs":{"t":{"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#/$defs/t"}}]}}}`, func(n int) string {
			depth := n / 20
			return strings.Repeat("[", depth) + `"5"` + strings.Repeat("]", depth)
		}},
		{"unions", `{"$ref":"#/$defs/t","$defs":{"t":{"anyOf":[{"type":"object","properties":{"k":{"const":"a"},"c":{"$ref":"#/$defs/t"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"},"c":{"$ref":"#/$defs/t"}},"required":["k"]}]}}}`, func(n int) string {
			depth := n / 20
			return strings.Repeat(`{"k":"A","c":`, depth) + `{"k":"B"}` + strings.Repeat("}", depth)
		}},
	} {
		s := mustParse(t, tt.schema)
		one, _ := fitSteps(s, tt.text(2000))
		two, _ := fitSteps(s, tt.text(4000))
		t.Logf("%-12s %9d %9d steps", tt.name, one, two)
		if float64(two) > 2.6*float64(one)+1000 {
			t.Errorf("%s: %d steps, for twice the input %d", tt.name, one, two)
		}
	}
}

// Schemas and values that would take exponential or quadratic work end in a failure that
// says so, or in a result.
func TestHostile(t *testing.T) {
	chain := func(keyword string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"d%d":{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, keyword, i+1, i+1)
		}
		return fmt.Sprintf(`{"$defs":{%s"d%d":{"type":"integer","minimum":10}},"$ref":"#/$defs/d0"}`, b.String(), n)
	}
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"anyOf":[{"properties":{"a%d":{"type":"integer"}}},{"properties":{"b%d":{"type":"integer"}}}]},`, i, i)
		}
		return `{"type":"object","allOf":[` + strings.TrimSuffix(b.String(), ",") + `],"required":["x"]}`
	}
	var claims strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&claims, `"%s":%d,`, strings.Repeat("_", i%50)+"user"+strings.Repeat("-", i/50)+"name", i)
	}
	var enum strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&enum, `"option number %d",`, i)
	}
	for _, tt := range []struct{ name, schema, value string }{
		{"allOf", chain("allOf", 40), `"3"`}, {"anyOf", chain("anyOf", 40), `"3"`}, {"oneOf", chain("oneOf", 40), `"3"`},
		{"choices", many(40), `{"y":"1"}`},
		{"claims", `{"type":"object","properties":{"username":{"type":"integer"}},"required":["username"]}`, `{` + claims.String() + `"z":1}`},
		{"enum", `{"type":"array","items":{"enum":[` + strings.TrimSuffix(enum.String(), ",") + `]}}`, `[` + strings.TrimSuffix(strings.Repeat(`"option numbr 77x",`, 3_000), ",") + `]`},
		{"unique", `{"uniqueItems":true,"items":{"type":"string"}}`, `[` + strings.TrimSuffix(strings.Repeat(`"x",`, 20_000), ",") + `]`},
		{"pattern", `{"patternProperties":{"` + strings.Repeat("(a|b|ab)*", 200) + `$":{"type":"integer"}}}`, `{"` + strings.Repeat("ab", 50_000) + `":"x"}`},
		{"long number", `{"type":"number","multipleOf":0.3}`, `"` + strings.Repeat("7", 400_000) + `"`},
		{"huge exponent", `{"type":"integer","multipleOf":3,"maximum":5}`, `"1e999999999999999999"`},
		{"text in text", `{"type":"object","required":["a"]}`, quote(quote(quote(`{"a":1}`)))},
		{"wide view", `{"type":"object","additionalProperties":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}}`, `{` + strings.Repeat(`"a":"1",`, 30_000) + `"b":"x"}`},
		{"deep value", `{"type":"integer"}`, strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)},
		{"implied for ever", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"n":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"array","items":{"$ref":"#/$defs/n"}}]}},"required":["n"]}}}`, `[[["5"]]]`},
		{"ties", `{"type":"array","items":{"type":"array","items":{"type":"string"}}}`, `[` + strings.TrimSuffix(strings.Repeat(`"a, b",`, 5000), ",") + `]`},
	} {
		s, err := Parse([]byte(tt.schema), Options{MaxSteps: 300_000})
		if err != nil {
			t.Fatal(err)
		}
		readings := []Reading{{Text: []byte(tt.value)}}
		fit := s.Fit(readings, FitOptions{})
		checkFit(t, s, readings, fit)
		if !testing.Short() {
			s.Score([]byte(tt.value))
			s.IncompleteFields([]byte(tt.value), []string{"/a/b"})
		}
		t.Logf("%-16s %v %.80v", tt.name, fit.Outcome, fit.Violations)
	}
	s, err := Parse([]byte(`{"type":"array","items":{"type":"integer"}}`), Options{MaxSteps: 100})
	if err != nil {
		t.Fatal(err)
	}
	long := "[" + strings.Repeat(`"1",`, 200) + "1]"
	fit := fitOne(s, long, FitOptions{})
	if fit.Outcome != jsonrepair.Failed || len(fit.Violations) != 1 || fit.Violations[0].Keyword != "limit" {
		t.Errorf("%+v", fit)
	}
	if v := s.Validate([]byte(long)); len(v) != 1 || v[0].Keyword != "limit" {
		t.Errorf("%v", v)
	}
}
