package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A rule is one schema of the document. The fields are its keywords.
type rule struct {
	id      int
	pointer string

	never  bool    // the schema false
	refs   []*rule // of every kind
	types  kind    // 0: any
	values []literal
	listed bool // values are enum or const; keyword says which
	isEnum bool
	not    *rule
	allOf  []*rule
	anyOf  []*rule
	oneOf  []*rule

	condition, then, otherwise *rule

	required         []string
	names            []string // of properties, sorted
	properties       map[string]*rule
	patterns         []patternRule
	additional       *rule
	propertyNames    *rule
	dependent        []dependency
	unevaluated      *rule // properties
	minProps         *int
	maxProps         *int
	prefix           []*rule
	rest             *rule // of the items behind prefix
	unevaluatedItems *rule
	contains         *rule
	containsCounts   bool // items that contains is valid for are evaluated
	minContains      *int
	maxContains      *int
	minItems         *int
	maxItems         *int
	unique           bool

	minLength, maxLength *int // characters
	pattern              *regexp.Regexp
	format               *jsonschema.Format

	minimum, maximum, above, below *decimal
	multipleOf                     *big.Rat

	scalar bool // says nothing of parts of a value, nor of other rules

	title   string
	initial *literal // default
}

type patternRule struct {
	re   *regexp.Regexp
	text string
	rule *rule
}

// A dependency holds where an object has the name.
type dependency struct {
	name     string
	required []string
	rule     *rule
}

// A literal is a value that stands in the schema.
type literal struct {
	kind      kind
	text      string // JSON
	value     string // of a string, its characters
	canonical string
	plain     string // of a string; see the functions of these names
	loose     string
	bare      string // plain without accents
}

func newLiteral(v any) literal {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// The value was read from JSON.
	_ = e.Encode(v)
	text := strings.TrimSuffix(b.String(), "\n")
	r := &reader{text: text}
	n := r.value()
	l := literal{kind: n.kind, text: text, value: n.text, canonical: n.canonical()}
	if n.kind == kindString {
		l.plain, l.loose = plain(n.text), loose(n.text)
		l.bare = withoutAccents(l.plain)
	}
	return l
}

// A compiler makes rules of schemas.
type compiler struct {
	at      string
	formats bool
	rules   map[*jsonschema.Schema]*rule
	next    int
	todo    []*jsonschema.Schema
}

func (c *compiler) compile(s *jsonschema.Schema) (*rule, error) {
	root := c.rule(s)
	for len(c.todo) > 0 {
		s := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		if err := c.fill(c.rules[s], s); err != nil {
			return nil, err
		}
	}
	return root, c.findLoop()
}

// rule returns the rule of s, to be filled later.
func (c *compiler) rule(s *jsonschema.Schema) *rule {
	if s == nil {
		return nil
	}
	if r, ok := c.rules[s]; ok {
		return r
	}
	r := &rule{id: c.next, pointer: c.at + fragment(s.Location)}
	c.next++
	c.rules[s] = r
	c.todo = append(c.todo, s)
	return r
}

func (c *compiler) all(list []*jsonschema.Schema) []*rule {
	var rules []*rule
	for _, s := range list {
		rules = append(rules, c.rule(s))
	}
	return rules
}

// either returns the rule of a keyword that holds a schema or a boolean.
func (c *compiler) either(v any) *rule {
	switch v := v.(type) {
	case bool:
		r := &rule{id: c.next, never: !v}
		c.next++
		return r
	case *jsonschema.Schema:
		return c.rule(v)
	}
	return nil
}

func (c *compiler) fill(r *rule, s *jsonschema.Schema) error {
	if (s.DynamicRef != nil || s.RecursiveRef != nil) && strings.Contains(s.Location, "//json-schema.org/") {
		return &Error{c.at, "a reference to a meta-schema, which is not one document; give the schema that values are held to"}
	}
	r.title = s.Title
	if s.Bool != nil {
		r.never = !*s.Bool
		return nil
	}
	if s.Ref != nil {
		r.refs = append(r.refs, c.rule(s.Ref))
		if s.DraftVersion < 2019 {
			return nil // what stands beside a reference does not count there
		}
	}
	if s.RecursiveRef != nil {
		r.refs = append(r.refs, c.rule(s.RecursiveRef))
	}
	if s.DynamicRef != nil {
		r.refs = append(r.refs, c.rule(s.DynamicRef.Ref))
	}
	if s.Types != nil {
		for _, name := range s.Types.ToStrings() {
			r.types |= kindOf(name)
		}
	}
	c.fillValues(r, s)
	r.not = c.rule(s.Not)
	r.allOf, r.anyOf, r.oneOf = c.all(s.AllOf), c.all(s.AnyOf), c.all(s.OneOf)
	r.condition, r.then, r.otherwise = c.rule(s.If), c.rule(s.Then), c.rule(s.Else)
	c.fillObject(r, s)
	c.fillArray(r, s)
	inPlace := false
	r.inPlace(func(*rule) { inPlace = true })
	r.scalar = !inPlace && len(r.properties) == 0 && len(r.patterns) == 0 && r.additional == nil && r.propertyNames == nil &&
		r.unevaluated == nil && len(r.prefix) == 0 && r.rest == nil && r.unevaluatedItems == nil && r.contains == nil
	return c.fillScalars(r, s)
}

func (c *compiler) fillValues(r *rule, s *jsonschema.Schema) {
	if s.Default != nil {
		initial := newLiteral(*s.Default)
		r.initial = &initial
	}
	if s.Enum != nil {
		r.listed, r.isEnum = true, true
		for _, v := range s.Enum.Values {
			r.values = append(r.values, newLiteral(v))
		}
	}
	if s.Const == nil {
		return
	}
	constant := newLiteral(*s.Const)
	if r.listed {
		r.values = slices.DeleteFunc(r.values, func(l literal) bool { return l.canonical != constant.canonical })
	} else {
		r.listed, r.values = true, []literal{constant}
	}
}

func (c *compiler) fillObject(r *rule, s *jsonschema.Schema) {
	r.required = s.Required
	r.minProps, r.maxProps = s.MinProperties, s.MaxProperties
	r.names = slices.Sorted(maps.Keys(s.Properties))
	r.properties = make(map[string]*rule, len(r.names))
	for _, name := range r.names {
		r.properties[name] = c.rule(s.Properties[name])
	}
	for re, sub := range s.PatternProperties {
		p := re.(pattern)
		r.patterns = append(r.patterns, patternRule{p.re, p.text, c.rule(sub)})
	}
	slices.SortFunc(r.patterns, func(a, b patternRule) int { return strings.Compare(a.text, b.text) })
	r.additional = c.either(s.AdditionalProperties)
	r.propertyNames = c.rule(s.PropertyNames)
	r.unevaluated = c.rule(s.UnevaluatedProperties)
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		switch d := s.Dependencies[name].(type) {
		case []string:
			r.dependent = append(r.dependent, dependency{name: name, required: d})
		case *jsonschema.Schema:
			r.dependent = append(r.dependent, dependency{name: name, rule: c.rule(d)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentRequired)) {
		r.dependent = append(r.dependent, dependency{name: name, required: s.DependentRequired[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		r.dependent = append(r.dependent, dependency{name: name, rule: c.rule(s.DependentSchemas[name])})
	}
}

func (c *compiler) fillArray(r *rule, s *jsonschema.Schema) {
	r.minItems, r.maxItems, r.unique = s.MinItems, s.MaxItems, s.UniqueItems
	r.contains, r.minContains, r.maxContains = c.rule(s.Contains), s.MinContains, s.MaxContains
	r.containsCounts = s.DraftVersion >= 2020
	r.unevaluatedItems = c.rule(s.UnevaluatedItems)
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		r.rest = c.rule(items)
	case []*jsonschema.Schema:
		r.prefix = c.all(items)
		r.rest = c.either(s.AdditionalItems)
	}
	if s.DraftVersion >= 2020 {
		r.prefix, r.rest = c.all(s.PrefixItems), c.rule(s.Items2020)
	}
}

func (c *compiler) fillScalars(r *rule, s *jsonschema.Schema) error {
	r.minLength, r.maxLength = s.MinLength, s.MaxLength
	if s.Pattern != nil {
		r.pattern = s.Pattern.(pattern).re
	}
	if c.formats {
		r.format = s.Format
	}
	r.minimum, r.maximum = ratDecimal(s.Minimum), ratDecimal(s.Maximum)
	r.above, r.below = ratDecimal(s.ExclusiveMinimum), ratDecimal(s.ExclusiveMaximum)
	if r.multipleOf = s.MultipleOf; r.multipleOf != nil && r.multipleOf.Sign() <= 0 {
		return &Error{r.pointer + "/multipleOf", "must be greater than 0"}
	}
	return nil
}

// inPlace calls f with each rule that is about the same value.
func (r *rule) inPlace(f func(*rule)) {
	for _, list := range [][]*rule{r.refs, r.allOf, r.anyOf, r.oneOf, {r.not, r.condition, r.then, r.otherwise}} {
		for _, sub := range list {
			if sub != nil {
				f(sub)
			}
		}
	}
	for _, d := range r.dependent {
		if d.rule != nil {
			f(d.rule)
		}
	}
}

// findLoop looks for a schema that says only what it says itself: no value could
// be held to it.
func (c *compiler) findLoop() error {
	const visiting, done = 1, 2
	state := make([]byte, c.next)
	var loop *rule
	var visit func(r *rule)
	visit = func(r *rule) {
		switch state[r.id] {
		case visiting:
			loop = r
		case 0:
			state[r.id] = visiting
			r.inPlace(visit)
			state[r.id] = done
		}
	}
	rules := slices.SortedFunc(maps.Values(c.rules), func(a, b *rule) int { return a.id - b.id })
	for _, r := range rules {
		if visit(r); loop != nil {
			return &Error{loop.pointer, "the schema refers to itself for the same value, so nothing can be held to it"}
		}
	}
	return nil
}

// A pattern is a regular expression as the schema has it.
type pattern struct {
	re   *regexp.Regexp
	text string
}

func (p pattern) String() string            { return p.text }
func (p pattern) MatchString(s string) bool { return p.re.MatchString(s) }

// maxPattern limits a pattern, in bytes: matching takes time in proportion to it.
const maxPattern = 4096

// maxPatterns limits how many patterns are compiled: each may take some 100 KB. The
// check of the meta-schema compiles each once more.
const maxPatterns = 2000

// A patternCompiler reads regular expressions of ECMA-262, as far as RE2 has them.
type patternCompiler struct{ count int }

func (c *patternCompiler) compile(text string) (jsonschema.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("it is longer than %d bytes", maxPattern)
	}
	if c.count++; c.count > maxPatterns {
		return nil, fmt.Errorf("there are more than %d patterns", maxPatterns/2)
	}
	re, err := regexp.Compile(goPattern(text))
	if err != nil {
		return nil, err
	}
	return pattern{re, text}, nil
}

// goPattern spells what ECMA-262 spells otherwise: \uFFFF, \cA, and \s, which is
// more than the white space of ASCII.
func goPattern(text string) string {
	const space = `\s\v\p{Z}\x{FEFF}`
	var b strings.Builder
	class := false
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			class = text[i] == '[' || class && text[i] != ']'
			b.WriteByte(text[i])
			continue
		}
		i++
		switch c := text[i]; {
		case c == 'u' && i+4 < len(text) && isHex(text[i+1:i+5]):
			b.WriteString(`\x{` + text[i+1:i+5] + `}`)
			i += 4
		case c == 'c' && i+1 < len(text):
			b.WriteString(`\x{` + strconv.FormatInt(int64(text[i+1]&31), 16) + `}`)
			i++
		case c == 's' && class:
			b.WriteString(space)
		case c == 's':
			b.WriteString("[" + space + "]")
		case c == 'S' && !class:
			b.WriteString("[^" + space + "]")
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isHex(s string) bool {
	_, err := strconv.ParseUint(s, 16, 32)
	return err == nil
}
