package schema

import (
	"errors"
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

func mustParse(t testing.TB, doc string) *Schema {
	t.Helper()
	s, err := Parse([]byte(doc), Options{})
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return s
}

func TestParseForms(t *testing.T) {
	const inner = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`
	for _, tt := range []struct {
		doc, name string
		strict    bool
	}{
		{inner, "", false},
		{`{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":` + inner + `}}`, "n", true},
		{`{"type":"json_schema","name":"n","schema":` + inner + `}`, "n", false},
		{`{"name":"n","schema":` + inner + `,"strict":true}`, "n", true},
		{`{"type":"function","function":{"name":"f","parameters":` + inner + `}}`, "f", false},
		{`{"type":"function","name":"f","parameters":` + inner + `,"strict":true}`, "f", true},
		{`{"name":"f","description":"d","input_schema":` + inner + `}`, "f", false},
		{`{"name":"f","parameters":` + inner + `}`, "f", false},
	} {
		s := mustParse(t, tt.doc)
		if s.Name != tt.name || s.Strict != tt.strict {
			t.Errorf("%s: name %q, strict %v", tt.doc, s.Name, s.Strict)
		}
		if v := s.Validate([]byte(`{"a":1}`)); len(v) > 0 {
			t.Errorf("%s: %v", tt.doc, v)
		}
		if v := s.Validate([]byte(`{"a":"x"}`)); len(v) != 1 || v[0].Path != "/a" || v[0].Keyword != "type" {
			t.Errorf("%s: %v", tt.doc, v)
		}
	}
	for _, doc := range []string{`{"type":"json_object"}`, `{"type":"function","function":{"name":"f"}}`, `{"type":"function","function":{"name":"f","parameters":null}}`} {
		s := mustParse(t, doc)
		if len(s.Validate([]byte(`{"x":[]}`))) > 0 || len(s.Validate([]byte(`[]`))) == 0 {
			t.Errorf("%s is not any object", doc)
		}
	}
	for doc, value := range map[string]string{
		`true`: `[1]`,
		// A schema that only has such names is none of these forms.
		`{"type":"object","properties":{"name":{"type":"string"},"schema":{}}}`:                                 `{"name":"x"}`,
		`{"type":"integer","nullable":true}`:                                                                    `null`,
		`{"enum":["a"],"nullable":true}`:                                                                        `null`,
		`{"type":"string","enum":["a"],"nullable":true}`:                                                        `null`,
		`{"$defs":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a","nullable":true}}}`:             `{"x":null}`,
		`{"properties":{"nullable":{"type":"boolean"}}}`:                                                        `{"nullable":true}`,
		`{"type":"number","minimum":1,"exclusiveMinimum":true}`:                                                 `2`,
		`{"type":"number","minimum":1,"exclusiveMinimum":false}`:                                                `1`,
		`{"type":"array","items":[{"type":"integer"},{"type":"string"}],"additionalItems":false}`:               `[1,"x"]`,
		`{"definitions":{"a":{"type":"integer"}},"$ref":"#/definitions/a"}`:                                     `5`,
		`{"$defs":{"n":{"$anchor":"node","type":"object","properties":{"n":{"$ref":"#node"}}}},"$ref":"#node"}`: `{"n":{"n":{}}}`,
		`{"$id":"https://example.com/x","$defs":{"a":{"type":"integer"}},"$ref":"#/$defs/a"}`:                   `5`,
		`{"pattern":"^[\\s\\u00e9]\\S\\cA?$"}`:                                                                  `"\u2003x"`,
	} {
		s := mustParse(t, doc)
		if v := s.Validate([]byte(value)); len(v) > 0 {
			t.Errorf("%s: %s: %v", doc, value, v)
		}
	}
	if s := mustParse(t, `{"type":"number","minimum":1,"exclusiveMinimum":true}`); len(s.Validate([]byte(`1`))) == 0 {
		t.Error("exclusiveMinimum: true is not kept")
	}
}

func TestParseErrors(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 300) + `{}` + strings.Repeat(`}`, 300)
	for _, tt := range []struct{ doc, pointer, cause string }{
		{`{"type":`, "", "not JSON: byte 8"},
		{``, "", "not JSON"},
		{`5`, "", "not valid in a schema"},
		{`{"type":"strin"}`, "/type", "not valid in a schema"},
		{`{"properties":{"a/b":{"type":5}}}`, "/properties/a~1b/type", "not valid in a schema"},
		{`{"properties":{"a":{"minLength":"3"}}}`, "/properties/a/minLength", "want integer"},
		{`{"required":["a","a"]}`, "/required", "not valid"},
		{`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":5}}}`, "/json_schema/schema/type", "not valid"},
		{`{"type":"json_schema","json_schema":{"name":"n"}}`, "/json_schema", "no schema"},
		{`{"type":"text"}`, "/type", "asks for text"},
		{`{"$ref":"https://example.com/x.json"}`, "", "another document, https://example.com/x.json, which is never loaded"},
		{`{"$ref":"other.json#/a"}`, "", "never loaded"},
		{`{"$ref":"file:///etc/passwd"}`, "", "never loaded"},
		{`{"$schema":"https://example.com/meta"}`, "", "never loaded"},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, "", "meta-schema"},
		{`{"$ref":"#/$defs/a"}`, "", `"/$defs/a", where nothing is`},
		{`{"$ref":"#a"}`, "", `anchor "a"`},
		{`{"$ref":"#"}`, "", "refers to itself"},
		{`{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"},{}]}},"$ref":"#/$defs/a"}`, "", "refers to itself"},
		{`{"properties":{"a":{"pattern":"(?=x)"}}}`, "/properties/a", "look-around"},
		{`{"patternProperties":{"(":{}}}`, "", `the pattern "(" cannot be used`},
		{`{"pattern":"` + strings.Repeat("a", 5000) + `"}`, "", "longer than 4096 bytes"},
		{`{"minimum":1e99999}`, "/minimum", "exponent"},
		{`{"multipleOf":0}`, "/multipleOf", "not valid"},
		{`{"const":1e-99999}`, "/const", "exponent"},
		{`{"type":"object","type":"string"}`, "/type", "twice"},
		{deep, "", "not JSON"},
		{`{"$defs":{"a":{"$dynamicAnchor":"x"},"b":{"$dynamicAnchor":"x"}},"$dynamicRef":"#x"}`, "", "several places"},
	} {
		_, err := Parse([]byte(tt.doc), Options{})
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.80s: error %v", tt.doc, err)
			continue
		}
		if !strings.Contains(e.Cause, tt.cause) || tt.pointer != "" && !strings.HasPrefix(e.Pointer, tt.pointer) {
			t.Errorf("%.80s: at %q: %s; want %q at %q", tt.doc, e.Pointer, e.Cause, tt.cause, tt.pointer)
		}
		if strings.Contains(err.Error(), "schema://") {
			t.Errorf("%.80s: %v", tt.doc, err)
		}
	}
	if _, err := Parse([]byte(`{"title":"long"}`), Options{MaxBytes: 5}); err == nil || !strings.Contains(err.Error(), "MaxBytes") {
		t.Errorf("too long: %v", err)
	}
	if _, err := Parse([]byte(`{"a":{"b":{}}}`), Options{MaxDepth: 2}); err == nil {
		t.Error("too deep, and no error")
	}
}

func TestFormats(t *testing.T) {
	const doc = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"string","format":"date"}`
	if v := mustParse(t, doc).Validate([]byte(`"x"`)); len(v) > 0 {
		t.Errorf("formats are asserted by default: %v", v)
	}
	s, err := Parse([]byte(doc), Options{Formats: true})
	if err != nil {
		t.Fatal(err)
	}
	if v := s.Validate([]byte(`"x"`)); len(v) != 1 || v[0].Keyword != "format" {
		t.Errorf("%v", v)
	}
	if f := s.Fit([]Reading{{Text: []byte(`"2024-01-02"`)}}, FitOptions{}); f.Outcome != jsonrepair.Valid {
		t.Errorf("%+v", f)
	}
}
