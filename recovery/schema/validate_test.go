package schema

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestViolations(t *testing.T) {
	for _, tt := range []struct{ schema, value, want string }{
		{`{"type":"integer"}`, `3`, ``},
		{`{"type":"integer"}`, `3.0`, ``},
		{`{"type":"integer"}`, `3.5`, `:type`},
		{`{"type":"integer"}`, `3`, ``},
		{`{"type":"integer"}`, `[`, `:json`},
		{`{"type":"integer"}`, `1 2`, `:json`},
		// Structure before content, required members first, then in the order of the text.
		{`{"properties":{"a":{"enum":["x"]},"b":{"type":"string"},"c":{"maximum":3},"d":{}},"required":["d","e"],"additionalProperties":false}`,
			`{"a":"y","b":1,"z":0,"c":4}`, `/d:required /e:required /b:type /z:additionalProperties /a:enum /c:maximum`},
		{`{"properties":{"a":{"type":"string"}}}`, `{"a":"x","a":1}`, `/a:type`},
		{`{"properties":{"a~/":{"type":"string"}}}`, `{"a~/":1}`, `/a~0~1:type`},
		{`{"minimum":1e30}`, `999999999999999999999999999999`, `:minimum`},
		{`{"minimum":1e30}`, `1000000000000000000000000000000.0`, ``},
		{`{"maximum":1}`, `1e999999999`, `:maximum`},
		{`{"exclusiveMinimum":0}`, `1e-999999999`, ``},
		{`{"exclusiveMinimum":0}`, `-1e-999999999`, `:exclusiveMinimum`},
		{`{"type":"integer"}`, `1e999999999`, ``},
		{`{"type":"integer"}`, `1e-999999999`, `:type`},
		{`{"multipleOf":7}`, `1e999999999`, `:multipleOf`},
		{`{"multipleOf":0.01}`, `19.99`, ``},
		{`{"multipleOf":0.01}`, `19.999`, `:multipleOf`},
		{`{"const":12345678901234567891}`, `12345678901234567890`, `:const`},
		{`{"const":1.10}`, `1.1`, ``},
		{`{"uniqueItems":true}`, `[1,{"a":1,"b":2},{"b":2.0,"a":1}]`, `/2:uniqueItems`},
		{`{"anyOf":[{"type":"string"},{"type":"object","required":["x"]}]}`, `{}`, `/x:required`},
		{`{"anyOf":[{"type":"string"},{"type":"object"}]}`, `5`, `:anyOf`},
		{`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `3`, `:oneOf`},
		{`{"not":{"type":"string"}}`, `"x"`, `:not`},
		{`{"if":{"required":["k"]},"then":{"required":["v"]},"else":{"required":["w"]}}`, `{"k":1}`, `/v:required`},
		{`{"if":{"required":["k"]},"then":{"required":["v"]},"else":{"required":["w"]}}`, `{}`, `/w:required`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `/b:dependentRequired`},
		{`{"propertyNames":{"maxLength":2}}`, `{"abc":1}`, `/abc:propertyNames`},
		{`{"items":{"type":"integer"},"minItems":3}`, `[1,"x"]`, `/1:type :minItems`},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1]`, `:maxContains`},
		{`{"properties":{"a":{}},"allOf":[{"properties":{"b":{}}}],"unevaluatedProperties":false}`, `{"a":1,"b":2,"c":3}`, `/c:unevaluatedProperties`},
		{`{"prefixItems":[{}],"unevaluatedItems":false}`, `[1,2]`, `/1:unevaluatedItems`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `/a:false`},
		{`{"minLength":3}`, `"éé"`, `:minLength`},
		{`{"pattern":"^a+$"}`, `"ab"`, `:pattern`},
	} {
		var got []string
		for _, v := range mustParse(t, tt.schema).Validate([]byte(tt.value)) {
			if v.Message == "" {
				t.Errorf("%s: %s: no message", tt.schema, tt.value)
			}
			got = append(got, v.Path+":"+v.Keyword)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: %s: %s, want %s", tt.schema, tt.value, s, tt.want)
		}
	}
}

// Numbers are compared like rationals, where these can be computed.
func TestDecimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	number := func() string {
		s := fmt.Sprint(rng.IntN(2000) - 1000)
		if rng.IntN(2) == 0 {
			s += fmt.Sprintf(".%0*d", 1+rng.IntN(4), rng.IntN(50))
		}
		if rng.IntN(3) == 0 {
			s += fmt.Sprintf("e%+d", rng.IntN(12)-6)
		}
		return s
	}
	for range 20_000 {
		a, b := number(), number()
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		if got, want := parseDecimal(a).compare(parseDecimal(b)), x.Cmp(y); got != want {
			t.Fatalf("%s and %s: %d, want %d", a, b, got, want)
		}
		if got, want := parseDecimal(a).isInteger(), x.IsInt(); got != want {
			t.Fatalf("%s is an integer: %v", a, got)
		}
		if (parseDecimal(a).String() == parseDecimal(b).String()) != (x.Cmp(y) == 0) {
			t.Fatalf("%s and %s: equal texts for other values", a, b)
		}
		if d := ratDecimal(x); d.compare(parseDecimal(a)) != 0 {
			t.Fatalf("%s: %v", a, d)
		}
		if y.Sign() > 0 {
			if got, want := parseDecimal(a).multipleOf(y), new(big.Rat).Quo(x, y).IsInt(); got != want {
				t.Fatalf("%s is a multiple of %s: %v", a, b, got)
			}
		}
		if text := parseDecimal(a).integerText(); text != "" {
			if z, _ := new(big.Rat).SetString(text); z.Cmp(x) != 0 {
				t.Fatalf("%s as an integer: %s", a, text)
			}
		}
	}
}
