package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	kinds "github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Options says how a schema is read. The zero value is right for most.
type Options struct {
	// Formats asserts the keyword format: date, email, uuid and the like. By default
	// it is an annotation, as draft 2020-12 has it.
	Formats bool
	// MaxBytes limits the schema's text; 0: 1 MiB.
	MaxBytes int
	// MaxDepth limits nested arrays and objects, in the schema and in values; 0: 256.
	MaxDepth int
	// MaxSteps limits the work on one value or one set of readings: a value held to
	// one schema is a step, and so are about 64 bytes that are compared; 0: a million
	// and 16 for each byte of the texts. Where it is reached there is no result but that.
	MaxSteps int
}

const (
	defaultMaxBytes = 1 << 20
	defaultMaxDepth = 256
	baseSteps       = 1_000_000
	stepsPerByte    = 16
	maxExponent     = 1000 // of numbers in schemas
	maxSchemas      = 5000 // the library's time grows with their square
)

// Error is why a document is no schema that can be used.
type Error struct {
	Pointer string // JSON Pointer (RFC 6901) to the place in the document
	Cause   string // what is wrong there, and what to do
}

func (e *Error) Error() string {
	where := e.Pointer
	if where == "" {
		where = "the document"
	}
	return "schema: " + where + ": " + e.Cause
}

// A Schema is a compiled JSON Schema. It may be used by several goroutines.
type Schema struct {
	// Name is that of the response format or tool that the schema came with, "" where
	// there was none.
	Name string
	// Strict is what the response format or tool said.
	Strict bool

	root     *rule
	maxDepth int
	maxSteps int
}

// stepsFor returns the limit of steps for texts of so many bytes.
func (s *Schema) stepsFor(bytes int) int {
	if s.maxSteps > 0 {
		return s.maxSteps
	}
	return baseSteps + stepsPerByte*bytes
}

// Parse reads a JSON Schema of draft 2020-12, 2019-09, 7, 6 or 4, by $schema; without
// one it is 2020-12, or draft 7 where items is an array. OpenAPI's nullable and draft
// 4's boolean exclusiveMinimum and exclusiveMaximum are understood in all of them.
//
// The document may also be what requests carry a schema in: a response_format
// (json_schema, or json_object for any object), a tool with parameters or
// input_schema, or the inner object of these.
//
// Errors are [*Error]. Among them are more than 5,000 schemas or 1,000 patterns in one
// document, references to other documents, which are never
// loaded, patterns that Go's regular expressions do not have, and references that
// lead back to themselves.
func Parse(doc []byte, o Options) (*Schema, error) {
	s := &Schema{maxDepth: o.MaxDepth, maxSteps: o.MaxSteps}
	if s.maxDepth <= 0 {
		s.maxDepth = defaultMaxDepth
	}
	limit := o.MaxBytes
	if limit <= 0 {
		limit = defaultMaxBytes
	}
	if len(doc) > limit {
		return nil, &Error{"", fmt.Sprintf("more than %d bytes; raise MaxBytes or use a smaller schema", limit)}
	}
	root, jsonErr := readDocument(doc, s.maxDepth, 0)
	if jsonErr != nil {
		return nil, &Error{"", fmt.Sprintf("not JSON: byte %d: %s", jsonErr.Offset, jsonErr.Cause)}
	}
	tree, err := toTree(root, "")
	if err != nil {
		return nil, err
	}
	value, at, err := s.unwrap(tree)
	if err != nil {
		return nil, err
	}
	if err := checkDynamic(value, at); err != nil {
		return nil, err
	}
	draft := jsonschema.Draft2020
	rewriter := rewriter{&draft, new(int)}
	value = rewriter.schema(value)
	if *rewriter.count > maxSchemas {
		return nil, &Error{at, fmt.Sprintf("more than %d schemas within it", maxSchemas)}
	}
	compiled, err := compile(value, at, draft, o.Formats)
	if err != nil {
		return nil, err
	}
	c := &compiler{at: at, formats: o.Formats, rules: map[*jsonschema.Schema]*rule{}}
	if s.root, err = c.compile(compiled); err != nil {
		return nil, err
	}
	return s, nil
}

// checkDynamic refuses references whose target depends on how a value was come to.
// Where there is one target, they are plain references.
func checkDynamic(value any, at string) error {
	anchors := map[string]int{}
	dynamic, recursive, ids := false, false, 0
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				visit(item)
			}
		case map[string]any:
			if name, ok := v["$dynamicAnchor"].(string); ok {
				anchors[name]++
			}
			if _, ok := v["$id"].(string); ok {
				ids++
			}
			_, ok := v["$dynamicRef"].(string)
			dynamic = dynamic || ok
			_, ok = v["$recursiveRef"].(string)
			recursive = recursive || ok
			for _, sub := range v {
				visit(sub)
			}
		}
	}
	visit(value)
	several := false
	for _, n := range anchors {
		several = several || n > 1
	}
	if dynamic && several || recursive && ids > 1 {
		return &Error{at, "a $dynamicRef or $recursiveRef that can be to several places; use $ref, which is to one"}
	}
	return nil
}

// toTree converts n to the types of encoding/json.
func toTree(n *node, at string) (any, error) {
	switch n.kind {
	case kindObject:
		m := make(map[string]any, len(n.members))
		for _, member := range n.members {
			pointer := at + "/" + pointerEscaper.Replace(member.name)
			if _, ok := m[member.name]; ok {
				return nil, &Error{pointer, "the name is there twice; only one of the two can be meant"}
			}
			v, err := toTree(member.value, pointer)
			if err != nil {
				return nil, err
			}
			m[member.name] = v
		}
		return m, nil
	case kindArray:
		items := make([]any, len(n.items))
		for i, item := range n.items {
			v, err := toTree(item, at+"/"+strconv.Itoa(i))
			if err != nil {
				return nil, err
			}
			items[i] = v
		}
		return items, nil
	case kindString:
		return n.text, nil
	case kindBoolean:
		return n.text == "true", nil
	case kindNumber:
		if d := parseDecimal(n.text); d.exp > maxExponent || d.exp < -maxExponent || len(d.digits) > maxExponent {
			return nil, &Error{at, fmt.Sprintf("the number has more than %d digits or an exponent beyond that", maxExponent)}
		}
		return json.Number(n.text), nil
	}
	return nil, nil
}

// unwrap finds the schema in what requests carry it in, and says where it is.
func (s *Schema) unwrap(tree any) (any, string, error) {
	m, ok := tree.(map[string]any)
	if !ok {
		return tree, "", nil
	}
	object := map[string]any{"type": "object"}
	switch m["type"] {
	case "json_object":
		return object, "", nil
	case "text":
		return nil, "", &Error{"/type", "the response format asks for text, so there is no schema"}
	case "json_schema":
		if inner, ok := m["json_schema"].(map[string]any); ok {
			return s.carried(inner, "/json_schema", "schema")
		}
		return s.carried(m, "", "schema")
	case "function":
		if inner, ok := m["function"].(map[string]any); ok {
			return s.carried(inner, "/function", "parameters")
		}
		if _, ok := m["name"].(string); ok {
			return s.carried(m, "", "parameters")
		}
	}
	if _, named := m["name"].(string); named && !hasKeyword(m) {
		for _, key := range []string{"schema", "input_schema", "parameters"} {
			if _, ok := m[key].(map[string]any); ok {
				return s.carried(m, "", key)
			}
		}
	}
	return tree, "", nil
}

func (s *Schema) carried(m map[string]any, at, key string) (any, string, error) {
	s.Name, _ = m["name"].(string)
	s.Strict, _ = m["strict"].(bool)
	value, ok := m[key]
	if !ok || value == nil {
		if key == "parameters" {
			return map[string]any{"type": "object"}, at, nil // a tool without arguments
		}
		return nil, "", &Error{at, "there is no " + key + " in it"}
	}
	return value, at + "/" + key, nil
}

func hasKeyword(m map[string]any) bool {
	for _, key := range []string{"type", "properties", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "items", "$schema", "required"} {
		if _, ok := m[key]; ok {
			return true
		}
	}
	return false
}

// A rewriter turns what OpenAPI 3.0 and draft 4 say otherwise into the keywords
// of JSON Schema, and sees which draft a schema without $schema is of.
type rewriter struct {
	draft **jsonschema.Draft
	count *int // of schemas
}

var (
	schemaKeys = []string{"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	listKeys   = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	mapKeys    = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

func (r rewriter) schema(v any) any {
	*r.count++
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for _, key := range schemaKeys {
		if sub, ok := m[key].(map[string]any); ok {
			m[key] = r.schema(sub)
		}
	}
	for _, key := range listKeys {
		list, ok := m[key].([]any)
		if !ok {
			continue
		}
		if key == "items" {
			*r.draft = jsonschema.Draft7
		}
		for i := range list {
			list[i] = r.schema(list[i])
		}
	}
	for _, key := range mapKeys {
		if subs, ok := m[key].(map[string]any); ok {
			for name := range subs {
				subs[name] = r.schema(subs[name])
			}
		}
	}
	exclusive(m, "exclusiveMinimum", "minimum")
	exclusive(m, "exclusiveMaximum", "maximum")
	if m["nullable"] == true {
		return nullable(m)
	}
	return m
}

// exclusive gives a boolean exclusiveMinimum the form that it has since draft 6.
func exclusive(m map[string]any, key, bound string) {
	flag, ok := m[key].(bool)
	if !ok {
		return
	}
	delete(m, key)
	if limit, ok := m[bound]; ok && flag {
		m[key] = limit
		delete(m, bound)
	}
}

func nullable(m map[string]any) any {
	delete(m, "nullable")
	if enum, ok := m["enum"].([]any); ok {
		m["enum"] = appendMissing(enum, nil)
	}
	switch t := m["type"].(type) {
	case string:
		m["type"] = appendMissing([]any{t}, "null")
		return m
	case []any:
		m["type"] = appendMissing(t, "null")
		return m
	}
	if _, ok := m["enum"]; ok {
		return m
	}
	return map[string]any{"anyOf": []any{m, map[string]any{"type": "null"}}}
}

func appendMissing(list []any, v any) []any {
	for _, item := range list {
		if item == v {
			return list
		}
	}
	return append(list, v)
}

// documentURL is the base of references. It is no address of anything.
const documentURL = "schema://document"

// refusingLoader loads nothing: who wrote a schema must not make us open files or
// connections.
type refusingLoader struct{}

var errRemote = errors.New("other documents are not loaded")

func (refusingLoader) Load(string) (any, error) { return nil, errRemote }

// compile checks a schema against its meta-schema and resolves references.
func compile(value any, at string, draft *jsonschema.Draft, formats bool) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(refusingLoader{})
	c.DefaultDraft(draft)
	c.UseRegexpEngine((&patternCompiler{}).compile)
	if formats {
		c.AssertFormat()
	}
	if err := c.AddResource(documentURL, value); err != nil {
		return nil, compileError(err, at)
	}
	compiled, err := c.Compile(documentURL)
	if err != nil {
		return nil, compileError(err, at)
	}
	return compiled, nil
}

// fragment returns the JSON Pointer of a URL, which may be of another document.
func fragment(url string) string {
	_, f, _ := strings.Cut(url, "#")
	return f
}

func compileError(err error, at string) error {
	var (
		invalid *jsonschema.SchemaValidationError
		load    *jsonschema.LoadURLError
		pointer *jsonschema.JSONPointerNotFoundError
		anchor  *jsonschema.AnchorNotFoundError
		pattern *jsonschema.InvalidRegexError
		draft   *jsonschema.UnsupportedDraftError
	)
	switch {
	case errors.As(err, &load):
		return &Error{at, fmt.Sprintf("a reference to another document, %s, which is never loaded: put the schema under $defs and refer to #/$defs/…", strings.TrimPrefix(load.URL, documentURL+"/"))}
	case errors.As(err, &pointer):
		return &Error{at, fmt.Sprintf("a reference to %q, where nothing is", fragment(pointer.URL))}
	case errors.As(err, &anchor):
		return &Error{at, fmt.Sprintf("a reference to the anchor %q, which is nowhere", fragment(anchor.Reference))}
	case errors.As(err, &pattern):
		return &Error{at + fragment(pattern.URL), fmt.Sprintf("the pattern %q cannot be used: %v; look-around and back-references are not available", pattern.Regex, pattern.Err)}
	case errors.As(err, &draft):
		return &Error{at + "/$schema", "an unknown draft; known are 2020-12, 2019-09, 7, 6 and 4"}
	case errors.As(err, &invalid):
		var v *jsonschema.ValidationError
		if errors.As(invalid.Err, &v) {
			for len(v.Causes) > 0 {
				v = v.Causes[0]
			}
			place := at
			for _, name := range v.InstanceLocation {
				place += "/" + pointerEscaper.Replace(name)
			}
			if f, ok := v.ErrorKind.(*kinds.Format); ok && f.Want == "regex" {
				return &Error{place, fmt.Sprintf("the pattern %q cannot be used: %v; look-around and back-references are not available", f.Got, f.Err)}
			}
			return &Error{place, "not valid in a schema: " + v.ErrorKind.LocalizedString(message.NewPrinter(language.English))}
		}
	}
	return &Error{at, strings.ReplaceAll(err.Error(), documentURL, "")}
}
