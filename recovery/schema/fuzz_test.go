package schema

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// FuzzFit holds any value to any schema. Whatever comes, the promises of a fit hold, and
// a value is valid for the library where it is for us.
func FuzzFit(f *testing.F) {
	for _, c := range readPairs(f) {
		text := c.In
		if len(c.Readings) > 0 {
			text = c.Readings[0]
		}
		f.Add(string(c.Schema), text)
	}
	f.Add(`{"type":"json_schema","json_schema":{"name":"n","schema":{"nullable":true,"type":"string"}}}`, `5`)
	f.Fuzz(func(t *testing.T, doc, value string) {
		s, err := Parse([]byte(doc), Options{MaxSteps: 200_000, MaxDepth: 50})
		if err != nil {
			return
		}
		readings := []Reading{{Text: []byte(value)}}
		fit := s.Fit(readings, FitOptions{Defaults: len(value)%2 == 0, Margin: len(value) % 4})
		checkFit(t, s, readings, fit)
		s.Score([]byte(value))
		s.IncompleteFields([]byte(value), []string{"", "/a", "a~"})
		compareWithLibrary(t, s, doc, value)
	})
}

// compareWithLibrary compares verdicts where the library can be asked: it takes
// numbers for rationals, which it writes out, and has no limit of work.
func compareWithLibrary(t *testing.T, s *Schema, doc, value string) {
	if len(doc) > 2000 || len(value) > 2000 || strings.ContainsAny(value, "eE") || strings.Contains(doc, "nullable") || strings.Contains(doc, "exclusive") {
		return
	}
	for _, word := range []string{"$schema", "format", "content", "json_", "text", "function", "parameters", "schema", "dynamic", "recursive", `\\`} {
		if strings.Contains(doc, word) {
			return
		}
	}
	root, jsonErr := readDocument([]byte(value), 50, 0)
	if jsonErr != nil || hasDuplicates(root) {
		return
	}
	v := s.Validate([]byte(value))
	if len(v) > 0 && v[0].Keyword == "limit" {
		return
	}
	tree, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
	if err != nil {
		return
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(refusingLoader{})
	draft := jsonschema.Draft2020
	tree = rewriter{&draft, new(int)}.schema(tree)
	c.DefaultDraft(draft)
	if c.AddResource("test://x", tree) != nil {
		return
	}
	library, err := c.Compile("test://x")
	if err != nil || draft != jsonschema.Draft2020 {
		return
	}
	if want := libraryValid(t, library, value); want != (len(v) == 0) {
		t.Errorf("%s: %s: %v, but valid for the library is %v", doc, value, v, want)
	}
}

func hasDuplicates(n *node) bool {
	if len(n.names()) < len(n.members) {
		return true
	}
	for _, m := range n.members {
		if hasDuplicates(m.value) {
			return true
		}
	}
	for _, item := range n.items {
		if hasDuplicates(item) {
			return true
		}
	}
	return false
}
