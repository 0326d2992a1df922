package grammar

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	maxSchemas = 1 << 14 // combinations of schemas that a value is held to
	maxMerged  = 1 << 8  // schemas that hold for one value
	maxRead    = 1 << 16 // schemas, and members of each, looked at in all
)

// ParseJSONSchema reads a JSON Schema of draft 2020-12. Texts are JSON values
// that are valid by it, one for every such value or fewer: where the schema
// leaves a choice that does not matter to most, the grammar has made it. The
// package comment has the list of keywords, and of such choices.
//
// Errors are [*SyntaxError], with the JSON pointer of the keyword. Keywords
// that restrict values but are not kept are [ErrUnsupported].
func ParseJSONSchema(src []byte) (*Grammar, error) {
	if len(src) > maxSource {
		return nil, errorAt("", 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxSource))
	}
	root, err := readJSON(src)
	if err != nil {
		return nil, err
	}
	r := &schemaReader{src: string(src), doc: root, ids: map[string]int{}, shared: map[string]int{}}
	if _, err := r.value(root.pos, subschema{"", root}); err != nil {
		return nil, err
	}
	for len(r.todo) > 0 {
		job := r.todo[0]
		r.todo = r.todo[1:]
		body, err := r.body(job.all)
		if err != nil {
			return nil, err
		}
		r.rules[job.rule].body = body
	}
	places := r.pointers
	return compile(&source{rules: r.rules, place: func(offset int, cause error) error {
		e := errorAt(r.src, offset, cause)
		e.Pointer = places[offset]
		return e
	}})
}

// A subschema is a schema within the document.
type subschema struct {
	pointer string
	value   *jsonValue
}

func (s subschema) member(names ...string) subschema {
	for _, name := range names {
		s.pointer += "/" + pointerEscaper.Replace(name)
		s.value = s.value.get(name)
	}
	return s
}

func (s subschema) item(i int) subschema {
	return subschema{s.pointer + "/" + strconv.Itoa(i), s.value.items[i]}
}

// A schemaReader makes a rule for each combination of schemas that values are
// held to at once.
type schemaReader struct {
	src      string
	doc      *jsonValue
	rules    []rule
	ids      map[string]int // of rules, by the pointers of the schemas
	shared   map[string]int // of rules, by name: those that no schema is behind
	todo     []schemaJob
	pointers map[int]string
	read     int
}

type schemaJob struct {
	rule int
	all  []subschema
}

func (r *schemaReader) fail(s subschema, cause error) error {
	pos := 0
	if s.value != nil {
		pos = s.value.pos
	}
	e := errorAt(r.src, pos, cause)
	e.Pointer = plainPointer(s.pointer)
	return e
}

// removed marks, in a pointer, a schema without one of its keywords. It cannot
// occur in a name: pointerEscaper writes it otherwise.
const removed = "\x00"

var (
	pointerEscaper   = strings.NewReplacer("~", "~0", "/", "~1", removed, "~2")
	pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// plainPointer takes out what without has added.
func plainPointer(pointer string) string {
	for _, name := range []string{"$ref", "allOf", "anyOf", "oneOf"} {
		pointer = strings.ReplaceAll(pointer, removed+name, "")
	}
	return pointer
}

func (r *schemaReader) unsupported(s subschema, format string, args ...any) error {
	return r.fail(s, fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...)))
}

// addRule makes a rule without a body yet.
func (r *schemaReader) addRule(pos int) int {
	r.rules = append(r.rules, rule{pos: pos})
	return len(r.rules) - 1
}

// define makes a rule.
func (r *schemaReader) define(body *expr) *expr {
	id := r.addRule(body.pos)
	r.rules[id].body = body
	return call(id)
}

// value gives an expr for values that are valid by all of some schemas.
func (r *schemaReader) value(pos int, all ...subschema) (*expr, error) {
	var resolved []subschema
	var key []string
	for _, s := range all {
		s, err := r.resolve(s)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(key, s.pointer) {
			resolved = append(resolved, s)
			key = append(key, s.pointer)
		}
	}
	slices.Sort(key)
	name := strings.Join(key, "\n")
	if id, ok := r.ids[name]; ok && len(all) > 0 {
		return call(id), nil
	}
	if len(all) == 0 {
		return r.any(), nil
	}
	if len(r.ids) >= maxSchemas {
		return nil, r.fail(all[0], fmt.Errorf("%w: more than %d combinations of schemas", ErrTooLarge, maxSchemas))
	}
	id := r.addRule(resolved[0].value.pos)
	if r.pointers == nil {
		r.pointers = map[int]string{}
	}
	r.pointers[resolved[0].value.pos] = plainPointer(resolved[0].pointer)
	r.ids[name] = id
	r.todo = append(r.todo, schemaJob{id, resolved})
	return &expr{op: opCall, rule: id, pos: pos}, nil
}

// resolve follows a schema that is nothing but a reference.
func (r *schemaReader) resolve(s subschema) (subschema, error) {
	seen := map[string]bool{}
	for s.value.kind == '{' {
		ref := s.value.get("$ref")
		if ref == nil || slices.ContainsFunc(s.value.members, func(m jsonMember) bool { return m.name != "$ref" && !annotations[m.name] }) {
			break
		}
		if err := r.checkID(s); err != nil {
			return s, err
		}
		to, err := r.target(s.member("$ref"))
		if err != nil {
			return s, err
		}
		if s = to; seen[s.pointer] {
			return s, r.fail(s, ErrLeftRecursion)
		}
		seen[s.pointer] = true
	}
	return s, nil
}

// checkID refuses a schema below the root that begins a document of its own.
func (r *schemaReader) checkID(s subschema) error {
	if s.pointer == "" || s.value.kind != '{' || s.value.get("$id") == nil {
		return nil
	}
	return r.unsupported(s.member("$id"), "an $id below the root: references from there would be to another document")
}

// target finds what a reference, the value of a $ref, is to.
func (r *schemaReader) target(ref subschema) (subschema, error) {
	if ref.value.kind != '"' {
		return ref, r.fail(ref, errors.New("want a string"))
	}
	path, local := strings.CutPrefix(ref.value.text, "#")
	if !local || path != "" && path[0] != '/' {
		return ref, r.unsupported(ref, "reference %q: only JSON pointers into the same schema, such as #/$defs/name", ref.value.text)
	}
	path, err := url.PathUnescape(path)
	if err != nil {
		return ref, r.fail(ref, err)
	}
	at := subschema{"", r.doc}
	if path == "" {
		return at, nil
	}
	for _, part := range strings.Split(path[1:], "/") {
		if err := r.checkID(at); err != nil {
			return ref, err
		}
		part = pointerUnescaper.Replace(part)
		switch at.value.kind {
		case '{':
			at = at.member(part)
		case '[':
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at.value.items) {
				return ref, r.fail(ref, fmt.Errorf("reference to %q, which is not there", ref.value.text))
			}
			at = at.item(i)
		default:
			at.value = nil
		}
		if at.value == nil {
			return ref, r.fail(ref, fmt.Errorf("reference to %q, which is not there", ref.value.text))
		}
	}
	return at, nil
}

// annotations are keywords that do not restrict values.
var annotations = set("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
	"$schema", "$id", "id", "$comment", "$defs", "definitions", "$anchor", "$vocabulary",
	"contentEncoding", "contentMediaType", "contentSchema")

// restricting are keywords that this package keeps, by the type of value that
// they speak of.
var restricting = map[string]string{
	"type": "", "enum": "", "const": "", "anyOf": "", "oneOf": "", "allOf": "", "$ref": "",
	"properties": "object", "required": "object", "additionalProperties": "object",
	"items": "array", "prefixItems": "array", "minItems": "array", "maxItems": "array",
	"minLength": "string", "maxLength": "string", "pattern": "string", "format": "string",
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number",
}

// unkept are keywords of some draft, or of OpenAPI, that restrict values in ways
// that are not kept.
var unkept = set("not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies", "patternProperties",
	"propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "minContains",
	"maxContains", "uniqueItems", "additionalItems", "multipleOf", "divisibleBy", "disallow", "extends", "nullable",
	"$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor")

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, name := range names {
		m[name] = true
	}
	return m
}

// harmless reports whether a keyword that is not kept restricts nothing as it
// stands.
func harmless(name string, v *jsonValue) bool {
	switch name {
	case "uniqueItems", "nullable":
		return v.text == "false"
	case "minProperties", "minContains":
		return v.text == "0"
	case "unevaluatedProperties", "unevaluatedItems", "additionalItems", "propertyNames":
		return v.kind == 't' && v.text == "true"
	case "patternProperties", "dependentSchemas", "dependentRequired", "dependencies":
		return v.kind == '{' && len(v.members) == 0
	}
	return false
}

// body gives the expr for values valid by all of some schemas.
func (r *schemaReader) body(all []subschema) (*expr, error) {
	all = slices.Clone(all)
	seen := map[string]bool{}
	for _, s := range all {
		seen[s.pointer] = true
	}
	add := func(s subschema) {
		if !seen[s.pointer] {
			seen[s.pointer] = true
			all = append(all, s)
		}
	}
	for i := 0; i < len(all); i++ {
		s := all[i]
		if r.read += 1 + len(s.value.members); r.read > maxRead || len(all) > maxMerged {
			return nil, r.fail(s, fmt.Errorf("%w: too many schemas in combination", ErrTooLarge))
		}
		switch {
		case s.value.kind == 't' && s.value.text == "false":
			return choice(), nil
		case s.value.kind == 't':
			continue
		case s.value.kind != '{':
			return nil, r.fail(s, errors.New("want a schema: an object, true or false"))
		}
		if err := r.checkID(s); err != nil {
			return nil, err
		}
		if err := r.checkKeywords(s); err != nil {
			return nil, err
		}
		if ref := s.value.get("$ref"); ref != nil {
			to, err := r.target(s.member("$ref"))
			if err != nil {
				return nil, err
			}
			add(to)
			all[i] = all[i].without("$ref")
		}
		if list := s.value.get("allOf"); list != nil {
			for j := range list.items {
				add(s.member("allOf").item(j))
			}
			all[i] = all[i].without("allOf")
		}
	}
	for i, s := range all {
		for _, name := range []string{"anyOf", "oneOf"} {
			if s.value.kind == '{' && s.value.get(name) != nil {
				return r.distribute(all, i, name)
			}
		}
	}
	return r.plain(all)
}

// without gives what a schema says beside a keyword, under a pointer of its own.
func (s subschema) without(name string) subschema {
	rest := &jsonValue{kind: '{', pos: s.value.pos}
	for _, m := range s.value.members {
		if m.name != name && !annotations[m.name] {
			rest.members = append(rest.members, m)
		}
	}
	return subschema{s.pointer + removed + name, rest}
}

// distribute gives a choice: all schemas with each of those that schema i
// leaves a choice of.
func (r *schemaReader) distribute(all []subschema, i int, name string) (*expr, error) {
	s := all[i]
	others := slices.Delete(slices.Clone(all), i, i+1)
	if rest := s.without(name); len(rest.value.members) > 0 {
		others = append(others, rest)
	}
	e := &expr{op: opChoice, pos: s.value.pos}
	for j := range s.value.get(name).items {
		branch := s.member(name).item(j)
		sub, err := r.value(branch.value.pos, append(others[:len(others):len(others)], branch)...)
		if err != nil {
			return nil, err
		}
		e.subs = append(e.subs, sub)
	}
	return e, nil
}

func (r *schemaReader) checkKeywords(s subschema) error {
	for _, m := range s.value.members {
		if unkept[m.name] {
			if m.name == "multipleOf" && m.value.text == "1" && s.value.get("type") != nil && s.value.get("type").text == "integer" {
				continue
			}
			if !harmless(m.name, m.value) {
				return r.unsupported(s.member(m.name), "keyword %s", m.name)
			}
			continue
		}
		if _, ok := restricting[m.name]; !ok {
			continue // annotations, and keywords that no draft knows
		}
		want := byte('0')
		switch m.name {
		case "properties":
			want = '{'
		case "required", "enum", "anyOf", "oneOf", "allOf", "prefixItems":
			want = '['
		case "pattern", "format", "$ref":
			want = '"'
		case "type", "const", "additionalProperties", "items":
			continue
		}
		if m.value.kind != want {
			return r.fail(s.member(m.name), fmt.Errorf("want %s", map[byte]string{'{': "an object", '[': "an array", '"': "a string", '0': "a number"}[want]))
		}
	}
	return nil
}
