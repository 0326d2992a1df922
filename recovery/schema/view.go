package schema

import (
	"slices"
	"strconv"
	"strings"
)

// A view is all that a place demands of a value at once: some rules with those
// that they refer to and consist of, and the choices that are still to be made.
type view struct {
	key      string
	base     []*rule
	choices  []choice
	kinds    kind // allowed; number includes integer
	listed   bool
	literals []literal // allowed, where listed
	required []string
	names    []string // of properties, sorted
	never    bool
	prefix   int  // items that have rules of their own
	whole    bool // rules say something about an object or array as a whole
}

// A choice is an anyOf, oneOf or if: each alternative is what holds besides.
type choice struct {
	id           int
	alternatives [][]*rule
}

const allKinds = anyKind | kindInteger

// view returns the view of rules; nil: there are none, so that anything goes.
func (f *fitter) view(rules []*rule) *view {
	if len(rules) == 0 {
		return nil
	}
	return f.extend(nil, nil, rules)
}

// extend adds rules to those of a view.
func (f *fitter) extend(base []*rule, choices []choice, rules []*rule) *view {
	// Copying, sorting and naming the rules is the work here.
	if !f.charge(4 * (1 + len(base) + len(choices))) {
		return &view{never: true, key: "limit"}
	}
	base, choices = slices.Clone(base), slices.Clone(choices)
	seen := map[int]bool{}
	for _, r := range base {
		seen[r.id] = true
	}
	var add func(r *rule)
	add = func(r *rule) {
		if seen[r.id] || !f.charge(1) {
			return
		}
		seen[r.id] = true
		base = append(base, r)
		for _, sub := range r.refs {
			add(sub)
		}
		for _, sub := range r.allOf {
			add(sub)
		}
		choices = append(choices, r.choices()...)
	}
	for _, r := range rules {
		add(r)
	}
	slices.SortFunc(base, func(a, b *rule) int { return a.id - b.id })
	var key strings.Builder
	for _, r := range base {
		key.WriteString(strconv.Itoa(r.id) + " ")
	}
	for _, c := range choices {
		key.WriteString("|" + strconv.Itoa(c.id))
	}
	if v, ok := f.views[key.String()]; ok {
		return v
	}
	v := newView(base, choices)
	v.key = key.String()
	f.views[v.key] = v
	return v
}

func (r *rule) choices() []choice {
	var choices []choice
	for i, branches := range [][]*rule{r.anyOf, r.oneOf} {
		if len(branches) == 0 {
			continue
		}
		c := choice{id: 4*r.id + i}
		for _, b := range branches {
			c.alternatives = append(c.alternatives, []*rule{b})
		}
		choices = append(choices, c)
	}
	if r.condition == nil || r.then == nil && r.otherwise == nil {
		return choices
	}
	with, without := []*rule{r.condition}, []*rule(nil)
	if r.then != nil {
		with = append(with, r.then)
	}
	if r.otherwise != nil {
		without = append(without, r.otherwise)
	}
	return append(choices, choice{4*r.id + 2, [][]*rule{with, without}})
}

func newView(base []*rule, choices []choice) *view {
	v := &view{base: base, choices: choices, kinds: allKinds}
	for _, r := range base {
		v.never = v.never || r.never
		if r.types != 0 {
			v.kinds &= widen(r.types)
		}
		if r.listed {
			v.restrict(r.values)
		}
		v.required = append(v.required, r.required...)
		v.names = append(v.names, r.names...)
		v.whole = v.whole || r.whole()
		v.prefix = max(v.prefix, len(r.prefix))
	}
	if v.listed {
		var kinds kind
		for _, l := range v.literals {
			kinds |= widen(l.kind)
		}
		v.kinds &= kinds
	}
	slices.Sort(v.names)
	v.names = slices.Compact(v.names)
	v.required = unique(v.required)
	v.never = v.never || v.kinds == 0
	return v
}

func widen(k kind) kind {
	if k&kindNumber != 0 {
		k |= kindInteger
	}
	return k
}

func (v *view) restrict(values []literal) {
	if !v.listed {
		v.listed, v.literals = true, values
		return
	}
	var both []literal
	for _, l := range v.literals {
		if slices.ContainsFunc(values, func(o literal) bool { return o.canonical == l.canonical }) {
			both = append(both, l)
		}
	}
	v.literals = both
}

// whole reports whether r has keywords that the parts of a value do not show.
func (r *rule) whole() bool {
	return r.not != nil || len(r.oneOf) > 0 || r.condition != nil || len(r.dependent) > 0 || r.propertyNames != nil ||
		r.minProps != nil || r.maxProps != nil || r.minItems != nil || r.maxItems != nil || r.unique || r.contains != nil ||
		r.unevaluated != nil || r.unevaluatedItems != nil || r.listed
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// branches returns the views that the first choice leads to.
func (f *fitter) branches(v *view) []*view {
	c := v.choices[0]
	var views []*view
	for _, alternative := range c.alternatives {
		views = append(views, f.extend(v.base, v.choices[1:], alternative))
	}
	return views
}

// A childKey names a part of the values of a view.
type childKey struct {
	view  *view
	name  string
	index int
}

// member returns the view of the value of that name; nil: anything goes.
func (f *fitter) member(v *view, name string) *view {
	if _, declared := slices.BinarySearch(v.names, name); !declared {
		return f.findMember(v, name) // there may be any number of these
	}
	key := childKey{view: v, name: name}
	if known, ok := f.children[key]; ok {
		return known
	}
	child := f.findMember(v, name)
	f.children[key] = child
	return child
}

func (f *fitter) findMember(v *view, name string) *view {
	var rules []*rule
	for _, r := range v.base {
		rules = append(rules, f.property(r, name)...)
	}
	if len(rules) == 0 {
		for _, r := range v.base {
			if r.unevaluated != nil {
				rules = append(rules, r.unevaluated)
			}
		}
	}
	return f.view(rules)
}

// declares reports whether v has a place of its own for that name.
func (f *fitter) declares(v *view, name string) bool {
	if _, ok := slices.BinarySearch(v.names, name); ok {
		return true
	}
	for _, r := range v.base {
		for _, p := range r.patterns {
			if f.chargeMatch(p.text, name) && p.re.MatchString(name) {
				return true
			}
		}
	}
	return false
}

// item returns the view of the i-th item; nil: anything goes.
func (f *fitter) item(v *view, i int) *view {
	i = min(i, v.prefix) // behind the last prefix all items are alike
	key := childKey{view: v, index: i + 1}
	if known, ok := f.children[key]; ok {
		return known
	}
	child := f.findItem(v, i)
	f.children[key] = child
	return child
}

func (f *fitter) findItem(v *view, i int) *view {
	var rules []*rule
	for _, r := range v.base {
		if sub := r.item(i); sub != nil {
			rules = append(rules, sub)
		}
	}
	if len(rules) == 0 {
		for _, r := range v.base {
			if r.unevaluatedItems != nil {
				rules = append(rules, r.unevaluatedItems)
			}
		}
	}
	return f.view(rules)
}

// allows reports whether n is valid by the whole view.
func (f *fitter) allows(n *node, v *view) bool {
	if v == nil {
		return true
	}
	for _, r := range v.base {
		if !f.valid(n, r) {
			return false
		}
	}
	return true
}
