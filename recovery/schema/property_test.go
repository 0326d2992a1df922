package schema

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/jsonrepair/jsontest"
)

// A maker makes schemas and values that are valid by them.
type maker struct{ *rand.Rand }

// A made schema is its text and a way to make values.
type made struct {
	text   string
	sample func() string
}

// texts are what strings of models hold: much that another type could be read from.
var texts = []string{"", "x", "1,234", "42", "-1.5", "true", "False", "yes", "null", "None", "N/A", "[1]", `{"a": 1}`, "a, b", "not active",
	"In Progress", "line\nbreak", `say "hi"`, `C:\new`, "naïve 😀", "45%", "$5", "```json\n{}\n```", "result", "properties", "2024-01-02"}

var fieldNames = []string{"a", "user_name", "userId", "items", "result", "type", "Value", "x-y", "is active", "properties", "data", "n", "long_field_name_2"}

func (m *maker) pick(list []string) string { return list[m.IntN(len(list))] }

func (m *maker) space() string { return m.pick([]string{"", "", "", " ", "\n  "}) }

func (m *maker) number() string {
	return m.pick([]string{"0", "7", "-3", "1.10", "1e3", "12345678901234567890", "3.7", "0.5", "100", "1E400"})
}

func (m *maker) value(depth int) made {
	kinds := 7
	if depth > 0 {
		kinds = 12
	}
	switch m.IntN(kinds) {
	case 0:
		return made{`{"type":"integer"}`, func() string { return m.pick([]string{"0", "7", "-3", "12345678901234567890", "100"}) }}
	case 1:
		return made{`{"type":"number"}`, m.number}
	case 2, 3:
		return made{`{"type":"string"}`, func() string { return quote(m.pick(texts)) }}
	case 4:
		return made{`{"type":"boolean"}`, func() string { return m.pick([]string{"true", "false"}) }}
	case 5:
		list := []string{"active", "in_progress", "not active", "Done"}
		return made{`{"enum":["active","in_progress","not active","Done"]}`, func() string { return quote(m.pick(list)) }}
	case 6:
		v := m.value(0)
		return made{`{"anyOf":[` + v.text + `,{"type":"null"}]}`, func() string {
			if m.IntN(3) == 0 {
				return "null"
			}
			return v.sample()
		}}
	case 7, 8:
		return m.array(depth)
	case 9:
		a, b := m.value(depth-1), m.value(depth-1)
		return made{`{"anyOf":[` + a.text + `,` + b.text + `]}`, func() string {
			if m.IntN(2) == 0 {
				return a.sample()
			}
			return b.sample()
		}}
	}
	return m.object(depth)
}

func (m *maker) array(depth int) made {
	item := m.value(depth - 1)
	return made{`{"type":"array","items":` + item.text + `}`, func() string {
		var b strings.Builder
		b.WriteString("[" + m.space())
		for i := range m.IntN(4) {
			if i > 0 {
				b.WriteString(m.space() + "," + m.space())
			}
			b.WriteString(item.sample())
		}
		return b.String() + m.space() + "]"
	}}
}

func (m *maker) object(depth int) made {
	type field struct {
		name     string
		required bool
		made
	}
	var fields []field
	var props, required []string
	for _, i := range m.Perm(len(fieldNames))[:1+m.IntN(4)] {
		f := field{fieldNames[i], m.IntN(3) > 0, m.value(depth - 1)}
		fields = append(fields, f)
		props = append(props, quote(f.name)+":"+f.text)
		if f.required {
			required = append(required, quote(f.name))
		}
	}
	text := `{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(required, ",") + `]`
	open := m.IntN(2) == 0
	if !open {
		text += `,"additionalProperties":false`
	}
	return made{text + "}", func() string {
		var members []string
		for _, i := range m.Perm(len(fields)) {
			if f := fields[i]; f.required || m.IntN(2) == 0 {
				members = append(members, quote(f.name)+m.space()+":"+m.space()+f.sample())
			}
		}
		if open && m.IntN(3) == 0 {
			members = append(members, `"more": [1, {"x": null}]`)
		}
		return "{" + m.space() + strings.Join(members, m.space()+","+m.space()) + m.space() + "}"
	}}
}

func newMaker(seed uint64) *maker { return &maker{rand.New(rand.NewPCG(seed, 42))} }

// What is valid comes back byte for byte, with nothing done to it.
func TestValidIsUntouched(t *testing.T) {
	for seed := range rounds(1500) {
		m := newMaker(seed)
		made := m.value(3)
		s := mustParse(t, made.text)
		for range 4 {
			value := m.space() + made.sample() + m.space()
			if v := s.Validate([]byte(value)); len(v) > 0 {
				t.Fatalf("seed %d: %s: %s: %v", seed, made.text, value, v)
			}
			fit := s.Fit([]Reading{{Text: []byte(value)}}, FitOptions{})
			if fit.Outcome != jsonrepair.Valid || !bytes.Equal(fit.Value, []byte(value)) || len(fit.Edits) > 0 || s.Score([]byte(value)) != 0 {
				t.Fatalf("seed %d: %s: %s: %+v", seed, made.text, value, fit)
			}
		}
	}
}

func rounds(n uint64) uint64 {
	if testing.Short() {
		return n / 10
	}
	return n
}

// The library says of each value what we say, and so it does of each fitted value.
func TestAgreesWithLibrary(t *testing.T) {
	agree := 0
	for seed := range rounds(1200) {
		m := newMaker(seed)
		text := m.keywords(2)
		s, err := Parse([]byte(text), Options{})
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, text, err)
		}
		library := libraryFor(t, text)
		for range 8 {
			value := m.value(2).sample()
			want := libraryValid(t, library, value)
			if got := len(s.Validate([]byte(value))) == 0; got != want {
				t.Fatalf("seed %d: %s: %s: valid is %v, want %v", seed, text, value, got, want)
			}
			agree++
			readings := []Reading{{Text: []byte(value)}}
			fit := s.Fit(readings, FitOptions{Defaults: m.IntN(2) == 0})
			checkFit(t, s, readings, fit)
			if fit.Value != nil && !libraryValid(t, library, string(fit.Value)) {
				t.Fatalf("seed %d: %s: %s became %s, which is not valid", seed, text, value, fit.Value)
			}
		}
	}
	t.Logf("%d values", agree)
}

func libraryFor(t testing.TB, text string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("test://x", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("test://x")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func libraryValid(t testing.TB, s *jsonschema.Schema, value string) bool {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v) == nil
}

// keywords makes a schema of any keywords, which few values may be valid by.
func (m *maker) keywords(depth int) string {
	if depth < 0 || m.IntN(8) == 0 {
		return m.pick([]string{"true", "false", "{}", `{"type":"integer"}`, `{"type":["string","null"]}`, `{"type":"number"}`})
	}
	sub := func() string { return m.keywords(depth - 1) }
	list := func() string { return "[" + sub() + "," + sub() + "]" }
	name := func() string { return quote(m.pick(fieldNames)) }
	parts := map[string]string{}
	for range 1 + m.IntN(4) {
		switch m.IntN(22) {
		case 0:
			parts["type"] = quote(m.pick([]string{"object", "array", "string", "number", "integer", "boolean", "null"}))
		case 1:
			parts["type"] = m.pick([]string{`["object","array"]`, `["integer","string","null"]`, `["number","boolean"]`})
		case 2:
			parts["enum"] = m.pick([]string{`["active",1,null]`, `[{"a":1},[1]]`, `["true","1,234",true]`})
		case 3:
			parts["const"] = m.pick([]string{`1.0`, `"x"`, `null`, `[]`})
		case 4:
			parts[m.pick([]string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})] = m.pick([]string{"0", "5", "1.1"})
		case 5:
			parts["multipleOf"] = m.pick([]string{"2", "0.1"})
		case 6:
			parts[m.pick([]string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"})] = strconv.Itoa(m.IntN(4))
		case 7:
			parts["pattern"] = m.pick([]string{`"^[a-z]+$"`, `"[0-9]"`, `"^\\s*$"`})
		case 8, 9:
			parts["properties"] = "{" + name() + ":" + sub() + "}"
		case 10, 11:
			parts["required"] = "[" + name() + "]"
		case 12:
			parts["additionalProperties"] = sub()
		case 13:
			parts["items"] = sub()
		case 14:
			parts["prefixItems"] = list()
		case 15:
			parts[m.pick([]string{"anyOf", "oneOf", "allOf"})] = list()
		case 16:
			parts["not"] = sub()
		case 17:
			parts["if"], parts["then"], parts["else"] = sub(), sub(), sub()
		case 18:
			parts["contains"] = sub()
			parts[m.pick([]string{"minContains", "maxContains"})] = strconv.Itoa(m.IntN(3))
		case 19:
			parts[m.pick([]string{"unevaluatedProperties", "unevaluatedItems"})] = sub()
		case 20:
			parts["patternProperties"] = `{"^[a-u]":` + sub() + "}"
		case 21:
			parts["propertyNames"] = `{"maxLength":5}`
			parts["dependentSchemas"] = "{" + name() + ":" + sub() + "}"
			parts["uniqueItems"] = "true"
		}
	}
	var members []string
	for k, v := range parts {
		members = append(members, quote(k)+":"+v)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Any value for any schema gives a fit that keeps its promises.
func TestAnyValue(t *testing.T) {
	for seed := range rounds(1500) {
		m := newMaker(seed)
		s := mustParse(t, m.value(3).text)
		var readings []Reading
		for range 1 + m.IntN(3) {
			text := []byte(m.value(3).sample())
			if m.IntN(4) == 0 {
				text = jsontest.Document(seed, 200)
			}
			readings = append(readings, Reading{text, m.IntN(3)})
		}
		checkFit(t, s, readings, s.Fit(readings, FitOptions{Defaults: m.IntN(2) == 0, Margin: m.IntN(3)}))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Values that were changed as models change them come back or are refused.
func TestChangesAreUndone(t *testing.T) {
	counts := map[string]int{}
	for seed := range rounds(4000) {
		m := newMaker(seed)
		made := m.value(3)
		s := mustParse(t, made.text)
		value := made.sample()
		root, _ := readDocument([]byte(value), 0, 0)
		changed := m.change(value, root)
		if changed == value {
			continue
		}
		readings := []Reading{{Text: []byte(changed)}}
		fit := s.Fit(readings, FitOptions{})
		checkFit(t, s, readings, fit)
		switch {
		case fit.Outcome == jsonrepair.Valid:
			counts["valid as it is"]++
		case fit.Value == nil:
			counts[fit.Outcome.String()]++
			if testing.Verbose() {
				t.Logf("seed %d: %s\n  %s\n  changed: %s\n  %v: %v", seed, made.text, value, changed, fit.Outcome, fit.Violations)
			}
		case sameValue(t, fit.Value, []byte(value), true):
			counts["right"]++
		default:
			counts["wrong"]++
			t.Logf("seed %d: %s\n  %s\n  changed: %s\n  fitted:  %s %v", seed, made.text, value, changed, fit.Value, fit.Coercions)
		}
	}
	t.Log(counts)
	if counts["wrong"]*200 > counts["right"] || counts["right"] < counts["failed"] {
		t.Errorf("too few are right: %v", counts)
	}
}

// change spells one value or name of root otherwise.
func (m *maker) change(text string, root *node) string {
	var places []*node
	var keys []member
	var visit func(n *node)
	visit = func(n *node) {
		places = append(places, n)
		for _, item := range n.items {
			visit(item)
		}
		for _, member := range n.members {
			keys = append(keys, member)
			visit(member.value)
		}
	}
	visit(root)
	put := func(start, end int, s string) string { return text[:start] + s + text[end:] }
	if len(keys) > 0 && m.IntN(3) == 0 {
		k := keys[m.IntN(len(keys))]
		name := m.pick([]string{strings.ToUpper(k.name), strings.ReplaceAll(k.name, "_", "-"), strings.ReplaceAll(k.name, "_", `\_`), strings.ToLower(k.name), " " + k.name})
		return put(k.start, k.end, quote(name))
	}
	n := places[m.IntN(len(places))]
	raw := text[n.start:n.end]
	switch n.kind {
	case kindNumber:
		return put(n.start, n.end, m.pick([]string{quote(raw), quote(" " + raw), "[" + raw + "]"}))
	case kindBoolean:
		return put(n.start, n.end, m.pick([]string{quote(raw), quote(strings.ToUpper(raw)), "[" + raw + "]"}))
	case kindNull:
		return put(n.start, n.end, m.pick([]string{`"null"`, `"None"`}))
	case kindString:
		return put(n.start, n.end, m.pick([]string{quote(strings.ToUpper(n.text)), quote("`" + n.text + "`"), "[" + raw + "]"}))
	case kindArray:
		if len(n.items) == 1 && m.IntN(2) == 0 {
			return put(n.start, n.end, text[n.items[0].start:n.items[0].end])
		}
	}
	return put(n.start, n.end, m.pick([]string{quote(raw), `{"result": ` + raw + `}`, "[" + raw + "]"}))
}

func ExampleSchema_Fit() {
	s, err := Parse([]byte(`{
		"type": "object",
		"properties": {
			"user_name": {"type": "string"},
			"status": {"enum": ["active", "in_progress"]},
			"scores": {"type": "array", "items": {"type": "number"}}
		},
		"required": ["user_name", "status", "scores"]
	}`), Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fit := s.Fit([]Reading{{Text: []byte(`{"userName": "Ann", "status": "In Progress", "scores": "1.50"}`)}}, FitOptions{})
	fmt.Println(fit.Outcome, string(fit.Value))
	for _, c := range fit.Coercions {
		fmt.Println(c.Score, c.Kind, c.Path, c.Before, "→", c.After)
	}
	// Output:
	// repaired {"user_name": "Ann", "status": "in_progress", "scores": [1.50]}
	// 1 key_name /user_name "userName" → "user_name"
	// 1 spelling /status "In Progress" → "in_progress"
	// 3 to_array /scores "1.50" → ["1.50"]
	// 2 string_to_number /scores/0 "1.50" → 1.50
}
