package schema

import (
	"slices"
	"strings"

	"github.com/unfray/unfray/jsonrepair"
)

// structures lists the fits that put something around a value or take it away.
func (f *fitter) structures(n *node, v *view, s step) []*fit {
	var list []*fit
	add := func(ft *fit) {
		if ft != nil {
			list = append(list, ft)
		}
	}
	if s&stepFromArray == 0 {
		add(f.fromArray(n, v, s))
	}
	if s&stepText == 0 && s&insideText == 0 {
		add(f.jsonText(n, v, s))
	}
	if s&stepUnwrapMore == 0 {
		for _, ft := range f.unwrap(n, v, s) {
			add(ft)
		}
	}
	if s&stepImplied == 0 && v.kinds&kindObject != 0 {
		if n.kind == kindObject || !v.takes(n) {
			add(f.implied(n, v, s))
		}
		if !v.takes(n) {
			add(f.pairs(n, v))
		}
	}
	if s&stepToArray == 0 && v.kinds&kindArray != 0 && (!v.takes(n) || f.lacksLevel(n, v)) {
		add(f.toArray(n, v, s))
		for _, ft := range f.split(n, v) {
			add(ft)
		}
	}
	return list
}

// lacksLevel reports whether n is an array that may be an item where arrays of arrays
// are wanted.
func (f *fitter) lacksLevel(n *node, v *view) bool {
	if n.kind != kindArray || len(n.items) == 0 {
		return false
	}
	item := f.item(v, 0)
	if item == nil || item.kinds != kindArray {
		return false
	}
	return f.allows(n, item) || !slices.ContainsFunc(n.items, func(i *node) bool { return i.kind == kindArray })
}

func (f *fitter) raw(n *node) string { return string(f.text[n.start:n.end]) }

// excerpt is the beginning of a range of the text, for people.
func (f *fitter) excerpt(start, end int) string {
	return shorten(string(f.text[start:min(end, start+maxShown+1)]))
}

// toArray makes an array of a value. Not of null or nothing, and not of a text that
// looks like JSON.
func (f *fitter) toArray(n *node, v *view, s step) *fit {
	switch text := strings.TrimSpace(n.text); {
	case n.kind == kindNull, n.kind == kindObject && len(n.members) == 0:
		return nil
	case n.kind == kindString && (text == "" || isNullWord(text) || looksLikeJSON(text)):
		return nil
	}
	item := f.item(v, 0)
	if n.kind == kindObject && f.isMap(n, item) {
		return nil
	}
	inner := f.fit(n, item, s|stepToArray)
	if !inner.ok {
		return nil
	}
	raw := f.excerpt(n.start, n.end)
	ft := &fit{ok: true}
	ft.add(change{kind: ToArray, start: n.start, end: n.start, after: "[", cost: costToArray, was: raw, is: "[" + raw + "]"})
	ft.include(inner, "/0")
	ft.add(change{kind: ToArray, start: n.end, end: n.end, after: "]"})
	return f.whole(n, v, ft)
}

// isMap reports whether n looks like several objects, each under a name, and not like
// one of those that v is about.
func (f *fitter) isMap(n *node, v *view) bool {
	for _, m := range n.members {
		if m.value.kind != kindObject || v != nil && f.declares(v, m.name) {
			return false
		}
	}
	return len(n.members) > 1
}

// looksLikeJSON reports whether s begins as an object or array. Such a text is read as
// JSON or not at all.
func looksLikeJSON(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && (s[0] == '{' || s[0] == '[')
}

// fromArray takes the only item of an array.
func (f *fitter) fromArray(n *node, v *view, s step) *fit {
	if n.kind != kindArray || len(n.items) != 1 {
		return nil
	}
	item := n.items[0]
	if v.kinds&kindArray != 0 && item.kind != kindArray {
		return nil
	}
	return f.without(n, item, v, s|stepFromArray, FromArray, costFromArray)
}

// without takes away what is around inner.
func (f *fitter) without(n, inner *node, v *view, s step, kind jsonrepair.Kind, cost int) *fit {
	sub := f.fit(inner, v, s)
	if !sub.ok {
		return nil
	}
	ft := &fit{ok: true}
	ft.add(change{kind: kind, start: n.start, end: inner.start, cost: cost, was: f.excerpt(n.start, n.end), is: f.excerpt(inner.start, inner.end)})
	ft.include(sub, "")
	ft.add(change{kind: kind, start: inner.end, end: n.end})
	return ft
}

// jsonText reads the JSON in a string, once, and only where it is all of the string
// and no string is wanted.
func (f *fitter) jsonText(n *node, v *view, s step) *fit {
	if n.kind != kindString || v.kinds&kindString != 0 || v.kinds&(kindObject|kindArray) == 0 {
		return nil
	}
	text := strings.TrimSpace(n.text)
	if !looksLikeJSON(text) || !f.chargeBytes(4*len(text)) {
		return nil
	}
	if jsonrepair.Check([]byte(text), f.schema.maxDepth) != nil {
		return nil
	}
	inner := *f
	inner.text = []byte(text)
	root := inner.read(inner.text)
	sub := inner.fit(root, v, s|stepText|insideText)
	if !sub.ok {
		return nil
	}
	ft := &fit{ok: true, score: sub.score, ambiguous: sub.ambiguous}
	c := inner.textChange(n, root, sub, nil)
	ft.add(c)
	for _, instead := range sub.replacements(nil) {
		other := &fit{ok: true, score: sub.score}
		other.add(inner.textChange(n, root, sub, instead))
		ft.alternatives = append(ft.alternatives, other)
	}
	return ft
}

func (f *fitter) textChange(n, root *node, sub *fit, instead map[*fit]*fit) change {
	c := change{kind: JSONText, start: n.start, end: n.end, cost: costJSONText, is: shorten(string(f.text))}
	out, coercions := f.edited(root, sub, instead)
	c.after = string(out.text)
	c.inner = coercions
	return c
}

// implied puts a value under the one name that an object has, or must have.
func (f *fitter) implied(n *node, v *view, s step) *fit {
	name := ""
	switch {
	case len(v.names) == 1:
		name = v.names[0]
	case len(v.required) == 1 && slices.Contains(v.names, v.required[0]):
		name = v.required[0]
	}
	if name == "" || n.kind == kindNull || len(v.required) > 1 || len(v.required) == 1 && v.required[0] != name {
		return nil
	}
	if n.kind == kindString && !isBareValue(n.text) {
		return nil
	}
	sub := f.member(v, name)
	if sub == nil || sub.kinds == allKinds && !sub.listed && len(sub.choices) == 0 {
		return nil // anything goes there, so nothing speaks for it
	}
	if n.kind == kindObject && (n.get(name) != nil || !f.knowsAll(sub, n)) {
		return nil
	}
	inner := f.fit(n, sub, s|stepImplied)
	if !inner.ok {
		return nil
	}
	raw := f.excerpt(n.start, n.end)
	ft := &fit{ok: true}
	before := "{" + quote(name) + ": "
	ft.add(change{kind: ImpliedKey, start: n.start, end: n.start, after: before, cost: costImpliedKey, was: raw, is: before + raw + "}"})
	ft.include(inner, "/"+pointerEscaper.Replace(name))
	ft.add(change{kind: ImpliedKey, start: n.end, end: n.end, after: "}"})
	return f.whole(n, v, ft)
}

const maxBareValue = 100 // bytes

// isBareValue reports whether a text can be a value that lacks its name. Prose, as of
// who declines to answer, is none, and JSON is not one either.
func isBareValue(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && len(s) <= maxBareValue && !looksLikeJSON(s) && !strings.ContainsAny(s, "\n") &&
		!strings.Contains(s, ". ") && !strings.HasSuffix(s, ".")
}

// knowsAll reports whether n has members and v, in one of its branches, properties of
// all their names.
func (f *fitter) knowsAll(v *view, n *node) bool {
	known := map[string]bool{}
	seen := map[int]bool{}
	var visit func(r *rule)
	visit = func(r *rule) {
		if seen[r.id] || !f.charge(1) {
			return
		}
		seen[r.id] = true
		for _, name := range r.names {
			known[name] = true
		}
		r.inPlace(visit)
	}
	for _, r := range v.base {
		visit(r)
	}
	for _, m := range n.members {
		if !known[m.name] {
			return false
		}
	}
	return len(n.members) > 0
}

var (
	// Names that say only that the answer is inside.
	wrappers = []string{"answer", "arguments", "args", "content", "data", "input", "json", "object", "output", "parameters", "params", "payload", "properties", "response", "result", "results", "value"}
	// Names of what may stand beside it.
	envelope = []string{"$schema", "additionalproperties", "description", "function", "id", "message", "name", "ok", "required", "role", "schema", "status", "strict", "success", "title", "tool", "type"}
	// Names of what is no answer.
	refusals = []string{"error", "errors", "exception", "refusal", "warning", "warnings", "failure", "reason"}
)

// unwrap takes the value out of an object around it: of one member, or of one that
// is known to hold answers.
func (f *fitter) unwrap(n *node, v *view, s step) []*fit {
	if n.kind != kindObject || len(n.members) == 0 || len(n.members) > 8 {
		return nil
	}
	var list []*fit
	for _, m := range n.members {
		name := fold(m.name)
		known := slices.Contains(wrappers, name) || f.namesSchema(name, v) || name == fold(f.named[n.id])
		if name == "" || slices.Contains(refusals, name) || f.declares(v, m.name) && v.kinds&kindObject != 0 {
			continue
		}
		if !known && (len(n.members) > 1 || !f.mayHold(m, v, s)) {
			continue
		}
		if len(n.members) > 1 && !f.onlyEnvelope(n, m.name) {
			continue
		}
		if name == "properties" && echoes(m.value) {
			continue
		}
		cost := costUnwrap
		if len(n.members) > 1 {
			cost = costUnwrapMore
		}
		next := s | stepUnwrap
		if s&stepUnwrap != 0 {
			next |= stepUnwrapMore
		}
		if ft := f.without(n, m.value, v, next, Unwrap, cost); ft != nil {
			list = append(list, ft)
		}
	}
	return list
}

// mayHold reports whether the only member of an object, of any name, may be the answer:
// an object or array where one is wanted, or a value of a list, but that of a name that
// negates.
func (f *fitter) mayHold(m member, v *view, s step) bool {
	words := splitWords(m.name)
	if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(negations, w) }) {
		return false
	}
	if m.value.kind&(kindObject|kindArray) != 0 {
		return m.value.kind&v.kinds != 0
	}
	return v.listed && s&stepUnwrap == 0
}

// namesSchema reports whether a folded name is the schema's or its title.
func (f *fitter) namesSchema(name string, v *view) bool {
	if name == fold(f.schema.Name) {
		return true
	}
	return slices.ContainsFunc(v.base, func(r *rule) bool { return fold(r.title) == name })
}

// onlyEnvelope reports whether the other members of n say nothing of their own, nor
// that there is no answer.
func (f *fitter) onlyEnvelope(n *node, inside string) bool {
	for _, m := range n.members {
		if m.name == inside {
			continue
		}
		nested := m.value.kind&(kindObject|kindArray) != 0
		if !slices.Contains(envelope, strings.ToLower(m.name)) || nested && fold(m.name) != "required" {
			return false
		}
		if m.value.text == "false" && m.value.kind == kindBoolean && fold(m.name) != "strict" && fold(m.name) != "additionalproperties" {
			return false
		}
		if fold(m.name) == "status" && m.value.kind == kindString && slices.Contains([]string{"error", "failed", "failure", "fail"}, strings.ToLower(m.value.text)) {
			return false
		}
	}
	return true
}

// echoes reports whether the members of n are schemas: who answers with these has
// repeated the question.
func echoes(n *node) bool {
	if n.kind != kindObject || len(n.members) == 0 {
		return false
	}
	for _, m := range n.members {
		if m.value.kind != kindObject {
			return false
		}
		t := m.value.get("type")
		typed := t != nil && (t.kind == kindArray || t.kind == kindString && kindOf(t.text) != 0)
		if !typed && m.value.get("$ref") == nil && m.value.get("anyOf") == nil && m.value.get("allOf") == nil && m.value.get("oneOf") == nil && m.value.get("enum") == nil && m.value.get("const") == nil {
			return false
		}
	}
	return true
}

// isSchema reports whether a whole answer is a schema, perhaps in an object around it.
func isSchema(n *node) bool {
	if n.kind != kindObject {
		return false
	}
	if p := n.get("properties"); p != nil && echoes(p) {
		return true
	}
	for _, name := range []string{"schema", "json_schema", "parameters", "function"} {
		if inner := n.get(name); inner != nil && isSchema(inner) {
			return true
		}
	}
	return n.get("$schema") != nil && n.get("properties") != nil && echoes(n.get("properties"))
}
