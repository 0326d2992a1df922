package schema

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// bytesPerStep is how many compared bytes count as one step.
const bytesPerStep = 64

type pair struct{ node, rule int }

// An evaluator holds values to rules. It looks at each pair of a value and a rule
// once, so the work is at most the product of both, and stops at a limit of steps.
type evaluator struct {
	known     map[pair]bool
	canonical map[int]string // of nodes by ID
	steps     int            // that are left
	exceeded  bool
}

func newEvaluator(steps int) *evaluator {
	return &evaluator{known: map[pair]bool{}, canonical: map[int]string{}, steps: steps}
}

// charge counts work. It reports false once there is no more to be done.
func (e *evaluator) charge(steps int) bool {
	if e.exceeded {
		return false
	}
	if e.steps -= steps; e.steps < 0 {
		e.exceeded = true
	}
	return !e.exceeded
}

func (e *evaluator) chargeBytes(n int) bool { return e.charge(1 + n/bytesPerStep) }

// valid reports whether n is valid by r. Once the limit is exceeded it says false.
func (e *evaluator) valid(n *node, r *rule) bool {
	if e.exceeded {
		return false
	}
	// What is looked at quickly is not remembered.
	remember := n.id >= 0 && (!r.scalar || n.kind&(kindArray|kindObject) != 0 && r.listed)
	key := pair{n.id, r.id}
	if remember {
		if v, ok := e.known[key]; ok {
			return v
		}
	}
	if !e.charge(1) {
		return false
	}
	v := e.evaluate(n, r) && !e.exceeded
	if remember {
		e.known[key] = v
	}
	return v
}

func (e *evaluator) evaluate(n *node, r *rule) bool {
	if r.never || !r.allows(n) {
		return false
	}
	if r.listed && !e.isListed(n, r) {
		return false
	}
	for _, list := range [...][]*rule{r.refs, r.allOf} {
		for _, sub := range list {
			if !e.valid(n, sub) {
				return false
			}
		}
	}
	switch n.kind {
	case kindString:
		if e.stringFault(n, r) != "" {
			return false
		}
	case kindNumber:
		if e.numberFault(n, r) != "" {
			return false
		}
	case kindArray:
		if !e.array(n, r) {
			return false
		}
	case kindObject:
		if !e.object(n, r) {
			return false
		}
	}
	return e.choices(n, r) && e.unevaluated(n, r)
}

// allows reports whether the type of n is one of r's.
func (r *rule) allows(n *node) bool {
	if r.types == 0 || r.types&n.kind != 0 {
		return true
	}
	if n.kind != kindNumber || r.types&kindInteger == 0 {
		return false
	}
	return parseDecimal(n.text).isInteger()
}

func (e *evaluator) isListed(n *node, r *rule) bool {
	e.charge(len(r.values) / 16)
	if n.kind == kindString {
		return slices.ContainsFunc(r.values, func(l literal) bool { return l.kind == kindString && l.value == n.text })
	}
	c := e.canonicalOf(n)
	return slices.ContainsFunc(r.values, func(l literal) bool { return l.kind == n.kind && l.canonical == c })
}

func (e *evaluator) canonicalOf(n *node) string {
	if n.id < 0 {
		return n.canonical()
	}
	if c, ok := e.canonical[n.id]; ok {
		return c
	}
	if !e.chargeBytes(n.end - n.start) {
		return ""
	}
	c := n.canonical()
	e.canonical[n.id] = c
	return c
}

// stringFault returns the keyword that a string is not valid by, or "".
func (e *evaluator) stringFault(n *node, r *rule) string {
	if r.minLength != nil || r.maxLength != nil {
		length := utf8.RuneCountInString(n.text)
		if r.minLength != nil && length < *r.minLength {
			return "minLength"
		}
		if r.maxLength != nil && length > *r.maxLength {
			return "maxLength"
		}
	}
	if r.pattern != nil {
		if !e.chargeMatch(r.pattern.String(), n.text) || !r.pattern.MatchString(n.text) {
			return "pattern"
		}
	}
	if r.format != nil {
		e.chargeBytes(len(n.text))
		if r.format.Validate(n.text) != nil {
			return "format"
		}
	}
	return ""
}

// chargeMatch counts a match: RE2 takes time in proportion to both.
func (e *evaluator) chargeMatch(pattern, text string) bool {
	work := int64(len(pattern)) * int64(len(text)) / bytesPerStep
	return e.charge(1 + int(min(work, 1<<30)))
}

// numberFault returns the keyword that a number is not valid by, or "".
func (e *evaluator) numberFault(n *node, r *rule) string {
	if r.minimum == nil && r.maximum == nil && r.above == nil && r.below == nil && r.multipleOf == nil && r.format == nil {
		return ""
	}
	e.chargeBytes(len(n.text))
	d := parseDecimal(n.text)
	switch {
	case r.minimum != nil && d.compare(*r.minimum) < 0:
		return "minimum"
	case r.maximum != nil && d.compare(*r.maximum) > 0:
		return "maximum"
	case r.above != nil && d.compare(*r.above) <= 0:
		return "exclusiveMinimum"
	case r.below != nil && d.compare(*r.below) >= 0:
		return "exclusiveMaximum"
	}
	if r.multipleOf != nil {
		// Division takes time beyond the number's length.
		e.charge(min(len(d.digits), maxDigits) * min(len(d.digits), maxDigits) / 4096)
		if !d.multipleOf(r.multipleOf) {
			return "multipleOf"
		}
	}
	if r.format != nil && len(n.text) < maxDigits && r.format.Validate(json.Number(n.text)) != nil {
		return "format"
	}
	return ""
}

func (e *evaluator) array(n *node, r *rule) bool {
	if r.minItems != nil && len(n.items) < *r.minItems || r.maxItems != nil && len(n.items) > *r.maxItems {
		return false
	}
	for i, item := range n.items {
		if sub := r.item(i); sub != nil && !e.valid(item, sub) {
			return false
		}
	}
	if r.unique && e.duplicate(n) >= 0 {
		return false
	}
	return r.contains == nil || e.containsFault(n, r) == ""
}

// item returns the rule of the i-th item, or nil.
func (r *rule) item(i int) *rule {
	if i < len(r.prefix) {
		return r.prefix[i]
	}
	return r.rest
}

// duplicate returns the index of an item that equals one before it, or -1.
func (e *evaluator) duplicate(n *node) int {
	seen := make(map[string]bool, len(n.items))
	for i, item := range n.items {
		c := e.canonicalOf(item)
		if e.exceeded || seen[c] {
			return i
		}
		seen[c] = true
	}
	return -1
}

func (e *evaluator) containsFault(n *node, r *rule) string {
	count := 0
	for _, item := range n.items {
		if e.valid(item, r.contains) {
			count++
		}
	}
	least := 1
	if r.minContains != nil {
		least = *r.minContains
	}
	switch {
	case count < least && r.minContains != nil:
		return "minContains"
	case count < least:
		return "contains"
	case r.maxContains != nil && count > *r.maxContains:
		return "maxContains"
	}
	return ""
}

func (e *evaluator) object(n *node, r *rule) bool {
	var names map[string]bool
	if len(r.required)*len(n.members) > 256 || len(r.dependent) > 0 || r.minProps != nil || r.maxProps != nil {
		names = n.names()
		if r.minProps != nil && len(names) < *r.minProps || r.maxProps != nil && len(names) > *r.maxProps {
			return false
		}
	}
	for _, name := range r.required {
		if names == nil && n.get(name) == nil || names != nil && !names[name] {
			return false
		}
	}
	for _, m := range n.members {
		if !e.member(m, r) {
			return false
		}
	}
	return len(r.dependent) == 0 || e.dependencies(n, r, names)
}

func (e *evaluator) member(m member, r *rule) bool {
	if r.propertyNames != nil && !e.valid(nameNode(m.name), r.propertyNames) {
		return false
	}
	if len(r.patterns) == 0 {
		sub := r.properties[m.name]
		if sub == nil {
			sub = r.additional
		}
		return sub == nil || e.valid(m.value, sub)
	}
	for _, sub := range e.property(r, m.name) {
		if !e.valid(m.value, sub) {
			return false
		}
	}
	return true
}

func (e *evaluator) dependencies(n *node, r *rule, names map[string]bool) bool {
	for _, d := range r.dependent {
		if !names[d.name] {
			continue
		}
		if slices.ContainsFunc(d.required, func(name string) bool { return !names[name] }) {
			return false
		}
		if d.rule != nil && !e.valid(n, d.rule) {
			return false
		}
	}
	return true
}

func (n *node) names() map[string]bool {
	names := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		names[m.name] = true
	}
	return names
}

// nameNode is a name as a value of its own, for propertyNames.
func nameNode(name string) *node { return &node{kind: kindString, id: -1, text: name} }

// property returns the rules that r has for the value of that name.
func (e *evaluator) property(r *rule, name string) []*rule {
	var subs []*rule
	if sub, ok := r.properties[name]; ok {
		subs = append(subs, sub)
	}
	for _, p := range r.patterns {
		if e.chargeMatch(p.text, name) && p.re.MatchString(name) {
			subs = append(subs, p.rule)
		}
	}
	if len(subs) == 0 && r.additional != nil {
		subs = append(subs, r.additional)
	}
	return subs
}

// choices looks at anyOf, oneOf, not and if.
func (e *evaluator) choices(n *node, r *rule) bool {
	if len(r.anyOf) > 0 && !slices.ContainsFunc(r.anyOf, func(sub *rule) bool { return e.valid(n, sub) }) {
		return false
	}
	if len(r.oneOf) > 0 && e.countValid(n, r.oneOf) != 1 {
		return false
	}
	if r.not != nil && e.valid(n, r.not) {
		return false
	}
	if r.condition == nil {
		return true
	}
	if e.valid(n, r.condition) {
		return r.then == nil || e.valid(n, r.then)
	}
	return r.otherwise == nil || e.valid(n, r.otherwise)
}

// countValid counts the rules that n is valid by, up to two.
func (e *evaluator) countValid(n *node, rules []*rule) int {
	count := 0
	for _, r := range rules {
		if e.valid(n, r) {
			if count++; count == 2 {
				break
			}
		}
	}
	return count
}

// unevaluated holds what no other keyword has looked at to the keywords for that.
func (e *evaluator) unevaluated(n *node, r *rule) bool {
	if r.unevaluated != nil && n.kind == kindObject {
		for _, m := range e.unevaluatedMembers(n, r) {
			if !e.valid(m.value, r.unevaluated) {
				return false
			}
		}
	}
	if r.unevaluatedItems != nil && n.kind == kindArray {
		for _, i := range e.unevaluatedIndexes(n, r) {
			if !e.valid(n.items[i], r.unevaluatedItems) {
				return false
			}
		}
	}
	return true
}

func (e *evaluator) unevaluatedMembers(n *node, r *rule) []member {
	seen := map[string]bool{}
	e.markNames(n, r, true, seen, map[int]bool{})
	return slices.DeleteFunc(slices.Clone(n.members), func(m member) bool { return seen[m.name] })
}

// markNames marks the names that r, which n is valid by, and the rules in its
// place evaluate. Of r itself, if it is the root, unevaluatedProperties is what is
// asked for.
func (e *evaluator) markNames(n *node, r *rule, root bool, seen map[string]bool, visited map[int]bool) {
	if visited[r.id] || !e.charge(1+len(n.members)) {
		return
	}
	visited[r.id] = true
	for _, m := range n.members {
		if len(e.property(r, m.name)) > 0 || !root && r.unevaluated != nil {
			seen[m.name] = true
		}
	}
	e.applied(n, r, func(sub *rule) { e.markNames(n, sub, false, seen, visited) })
}

func (e *evaluator) unevaluatedIndexes(n *node, r *rule) []int {
	seen := make([]bool, len(n.items))
	e.markItems(n, r, true, seen, map[int]bool{})
	var indexes []int
	for i, s := range seen {
		if !s {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

func (e *evaluator) markItems(n *node, r *rule, root bool, seen []bool, visited map[int]bool) {
	if visited[r.id] || !e.charge(1+len(n.items)) {
		return
	}
	visited[r.id] = true
	for i, item := range n.items {
		if r.item(i) != nil || !root && r.unevaluatedItems != nil {
			seen[i] = true
		}
		if r.contains != nil && r.containsCounts && e.valid(item, r.contains) {
			seen[i] = true
		}
	}
	e.applied(n, r, func(sub *rule) { e.markItems(n, sub, false, seen, visited) })
}

// applied calls f with each rule in the place of r that n is valid by.
func (e *evaluator) applied(n *node, r *rule, f func(*rule)) {
	each := func(sub *rule) {
		if sub != nil && e.valid(n, sub) {
			f(sub)
		}
	}
	for _, list := range [][]*rule{r.refs, r.allOf, r.anyOf, r.oneOf} {
		for _, sub := range list {
			each(sub)
		}
	}
	if r.condition != nil {
		each(r.condition)
		if e.valid(n, r.condition) {
			each(r.then)
		} else {
			each(r.otherwise)
		}
	}
	for _, d := range r.dependent {
		if d.rule != nil && n.get(d.name) != nil {
			each(d.rule)
		}
	}
}
