package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Violation is a place where a value is not valid by the schema.
type Violation struct {
	Path    string `json:"path"`    // JSON Pointer (RFC 6901) into the value; for a missing member its own
	Keyword string `json:"keyword"` // of the schema; json where the text is not JSON, limit where the work was too much
	Message string `json:"message"` // for people
}

const maxViolations = 100

// Validate says where a value, one JSON text, is not valid; nil: it is. What is wrong
// with the structure comes first: missing members, then types, then members that may
// not be there, then the values themselves; each in the order of the text. Of an anyOf
// or oneOf that no branch fits, the violations are those of the branch that comes
// closest. There are at most 100.
//
// Members given twice are all looked at, and numbers are compared as they are written.
func (s *Schema) Validate(value []byte) []Violation {
	root, jsonErr := readDocument(value, s.maxDepth, 0)
	if jsonErr != nil {
		return []Violation{{"", "json", fmt.Sprintf("not JSON: byte %d: %s", jsonErr.Offset, jsonErr.Cause)}}
	}
	e := newEvaluator(s.stepsFor(len(value)))
	if e.valid(root, s.root) {
		return nil
	}
	return e.violations(root, s.root)
}

var limitViolation = Violation{"", "limit", "holding the value to the schema takes more steps than allowed; raise MaxSteps or use a simpler schema"}

func (e *evaluator) violations(n *node, r *rule) []Violation {
	if e.exceeded {
		return []Violation{limitViolation}
	}
	p := &reporter{evaluator: e, visited: map[pair]bool{}}
	p.report(n, r, "")
	if e.exceeded {
		return []Violation{limitViolation}
	}
	slices.SortStableFunc(p.found, func(a, b placed) int {
		return cmp.Or(cmp.Compare(rank(a.Keyword), rank(b.Keyword)), cmp.Compare(a.offset, b.offset))
	})
	var list []Violation
	for _, v := range p.found {
		if !slices.Contains(list, v.Violation) && len(list) < maxViolations {
			list = append(list, v.Violation)
		}
	}
	return list
}

// rank orders keywords: structure before content.
func rank(keyword string) int {
	switch keyword {
	case "required", "dependentRequired":
		return 0
	case "type", "false":
		return 1
	case "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames", "minItems", "maxItems", "minProperties", "maxProperties":
		return 2
	}
	return 3
}

type placed struct {
	Violation
	offset int
}

// A reporter collects why values are not valid.
type reporter struct {
	*evaluator
	visited map[pair]bool
	found   []placed
}

func (p *reporter) add(n *node, path, keyword, format string, args ...any) {
	p.found = append(p.found, placed{Violation{path, keyword, fmt.Sprintf(format, args...)}, n.start})
}

// report adds the violations of n, which may be none.
func (p *reporter) report(n *node, r *rule, path string) {
	if p.valid(n, r) || p.visited[pair{n.id, r.id}] || len(p.found) >= 4*maxViolations || !p.charge(1) {
		return
	}
	p.visited[pair{n.id, r.id}] = true
	if r.never {
		p.add(n, path, "false", "nothing may be here")
		return
	}
	if !r.allows(n) {
		p.add(n, path, "type", "%s is not %s", describe(n), article(r.types.String()))
		return
	}
	if r.listed && !p.isListed(n, r) {
		p.reportListed(n, r, path)
	}
	for _, list := range [][]*rule{r.refs, r.allOf} {
		for _, sub := range list {
			p.report(n, sub, path)
		}
	}
	switch n.kind {
	case kindString:
		if k := p.stringFault(n, r); k != "" {
			p.add(n, path, k, "%s: %s", describe(n), r.demand(k))
		}
	case kindNumber:
		if k := p.numberFault(n, r); k != "" {
			p.add(n, path, k, "%s: %s", describe(n), r.demand(k))
		}
	case kindArray:
		p.reportArray(n, r, path)
	case kindObject:
		p.reportObject(n, r, path)
	}
	p.reportChoices(n, r, path)
	p.reportUnevaluated(n, r, path)
}

func (p *reporter) reportListed(n *node, r *rule, path string) {
	var texts []string
	for i, v := range r.values {
		if i == 8 {
			texts = append(texts, fmt.Sprintf("or %d others", len(r.values)-i))
			break
		}
		texts = append(texts, shorten(v.text))
	}
	if r.isEnum {
		p.add(n, path, "enum", "%s is none of %s", describe(n), strings.Join(texts, ", "))
	} else {
		p.add(n, path, "const", "%s is not %s", describe(n), strings.Join(texts, ", "))
	}
}

// demand says what a keyword asks for.
func (r *rule) demand(keyword string) string {
	number := func(d *decimal) string {
		if t := d.integerText(); t != "" {
			return t
		}
		return d.String()
	}
	switch keyword {
	case "minLength":
		return fmt.Sprintf("fewer than %d characters", *r.minLength)
	case "maxLength":
		return fmt.Sprintf("more than %d characters", *r.maxLength)
	case "pattern":
		return fmt.Sprintf("does not match the pattern %s", shorten(r.pattern.String()))
	case "format":
		return "is not of the format " + r.format.Name
	case "minimum":
		return "less than " + number(r.minimum)
	case "maximum":
		return "more than " + number(r.maximum)
	case "exclusiveMinimum":
		return "not more than " + number(r.above)
	case "exclusiveMaximum":
		return "not less than " + number(r.below)
	case "multipleOf":
		return "no multiple of " + r.multipleOf.RatString()
	}
	return ""
}

func (p *reporter) reportArray(n *node, r *rule, path string) {
	if r.minItems != nil && len(n.items) < *r.minItems {
		p.add(n, path, "minItems", "%d items, at least %d are wanted", len(n.items), *r.minItems)
	}
	if r.maxItems != nil && len(n.items) > *r.maxItems {
		p.add(n, path, "maxItems", "%d items, at most %d are wanted", len(n.items), *r.maxItems)
	}
	for i, item := range n.items {
		if sub := r.item(i); sub != nil {
			p.report(item, sub, path+"/"+strconv.Itoa(i))
		}
	}
	if r.unique {
		if i := p.duplicate(n); i >= 0 {
			p.add(n.items[i], path+"/"+strconv.Itoa(i), "uniqueItems", "%s is there twice", describe(n.items[i]))
		}
	}
	if r.contains != nil {
		if k := p.containsFault(n, r); k != "" {
			p.add(n, path, k, "too few or too many items are of the kind that is wanted")
		}
	}
}

func (p *reporter) reportObject(n *node, r *rule, path string) {
	names := n.names()
	for _, name := range r.required {
		if !names[name] {
			p.add(n, path+"/"+pointerEscaper.Replace(name), "required", "%s is missing", strconv.Quote(name))
		}
	}
	if r.minProps != nil && len(names) < *r.minProps {
		p.add(n, path, "minProperties", "%d members, at least %d are wanted", len(names), *r.minProps)
	}
	if r.maxProps != nil && len(names) > *r.maxProps {
		p.add(n, path, "maxProperties", "%d members, at most %d are wanted", len(names), *r.maxProps)
	}
	for _, m := range n.members {
		at := path + "/" + pointerEscaper.Replace(m.name)
		for _, sub := range p.property(r, m.name) {
			if sub == r.additional && sub.never {
				p.add(m.value, at, "additionalProperties", "%s may not be here", strconv.Quote(m.name))
			} else {
				p.report(m.value, sub, at)
			}
		}
		if r.propertyNames != nil && !p.valid(nameNode(m.name), r.propertyNames) {
			p.add(m.value, at, "propertyNames", "%s is no allowed name", strconv.Quote(m.name))
		}
	}
	for _, d := range r.dependent {
		if !names[d.name] {
			continue
		}
		for _, name := range d.required {
			if !names[name] {
				p.add(n, path+"/"+pointerEscaper.Replace(name), "dependentRequired", "%s is missing, which %s needs", strconv.Quote(name), strconv.Quote(d.name))
			}
		}
		if d.rule != nil {
			p.report(n, d.rule, path)
		}
	}
}

func (p *reporter) reportChoices(n *node, r *rule, path string) {
	if len(r.anyOf) > 0 && !slices.ContainsFunc(r.anyOf, func(sub *rule) bool { return p.valid(n, sub) }) {
		p.reportBranches(n, r.anyOf, path, "anyOf")
	}
	if len(r.oneOf) > 0 {
		switch p.countValid(n, r.oneOf) {
		case 0:
			p.reportBranches(n, r.oneOf, path, "oneOf")
		case 2:
			p.add(n, path, "oneOf", "%s fits several of the forms, but must fit one", describe(n))
		}
	}
	if r.not != nil && p.valid(n, r.not) {
		p.add(n, path, "not", "%s is what may not be here", describe(n))
	}
	if r.condition == nil {
		return
	}
	if p.valid(n, r.condition) {
		if r.then != nil {
			p.report(n, r.then, path)
		}
	} else if r.otherwise != nil {
		p.report(n, r.otherwise, path)
	}
}

// reportBranches adds the violations of the branch that comes closest: the one
// with the least structure wrong, then with the fewest violations.
func (p *reporter) reportBranches(n *node, branches []*rule, path, keyword string) {
	var best []placed
	bestCost := -1
	tie := false
	for _, b := range branches {
		sub := &reporter{evaluator: p.evaluator, visited: map[pair]bool{}}
		sub.report(n, b, path)
		cost := 0
		for _, v := range sub.found {
			cost += []int{100, 1000, 10, 1}[rank(v.Keyword)]
			if v.Path == path && v.Keyword == "type" {
				cost += 1_000_000 // not even of the kind
			}
		}
		if bestCost < 0 || cost < bestCost {
			best, bestCost, tie = sub.found, cost, false
		} else if cost == bestCost {
			tie = true
		}
	}
	if tie || bestCost >= 1_000_000 {
		p.add(n, path, keyword, "%s fits none of the %d forms", describe(n), len(branches))
		return
	}
	p.found = append(p.found, best...)
}

func (p *reporter) reportUnevaluated(n *node, r *rule, path string) {
	if r.unevaluated != nil && n.kind == kindObject {
		for _, m := range p.unevaluatedMembers(n, r) {
			at := path + "/" + pointerEscaper.Replace(m.name)
			if r.unevaluated.never {
				p.add(m.value, at, "unevaluatedProperties", "%s may not be here", strconv.Quote(m.name))
			} else {
				p.report(m.value, r.unevaluated, at)
			}
		}
	}
	if r.unevaluatedItems != nil && n.kind == kindArray {
		for _, i := range p.unevaluatedIndexes(n, r) {
			at := path + "/" + strconv.Itoa(i)
			if r.unevaluatedItems.never {
				p.add(n.items[i], at, "unevaluatedItems", "item %d may not be here", i)
			} else {
				p.report(n.items[i], r.unevaluatedItems, at)
			}
		}
	}
}

// describe names a value for people.
func describe(n *node) string {
	switch n.kind {
	case kindObject:
		return "an object"
	case kindArray:
		return "an array"
	case kindString:
		return "the string " + shorten(quote(n.text))
	case kindNumber:
		return "the number " + shorten(n.text)
	}
	return n.text
}

func article(name string) string {
	if strings.HasPrefix(name, "null") {
		return name
	}
	if strings.IndexByte("aeio", name[0]) >= 0 {
		return "an " + name
	}
	return "a " + name
}

const maxShown = 60

// shorten keeps the beginning of a long text.
func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}
