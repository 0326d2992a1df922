package schema

import (
	"slices"
	"strings"
)

// objects fits an object member by member. There are several fits where several
// members claim the same name.
func (f *fitter) objects(n *node, v *view, s step) []*fit {
	var list []*fit
	for _, names := range f.renamings(n, v) {
		list = append(list, f.object(n, v, names, s))
	}
	return list
}

const maxRenamings = 8

// renamings lists the ways to give members the names that the schema has for them,
// by case and style alone. A member is renamed only where the name is required, or
// where it may not stay as it is.
func (f *fitter) renamings(n *node, v *view) []map[int]string {
	present := n.names()
	wanted := map[string]string{} // folded name: the only absent property of it
	for _, name := range v.names {
		if present[name] || !f.charge(1) {
			continue
		}
		if _, ok := wanted[fold(name)]; ok {
			wanted[fold(name)] = "" // two properties that differ in style alone
		} else {
			wanted[fold(name)] = name
		}
	}
	claims := map[string][]int{}
	if len(wanted) > 0 {
		for i, m := range n.members {
			if name := wanted[fold(m.name)]; name != "" && f.charge(1) && !f.declares(v, m.name) {
				claims[name] = append(claims[name], i)
			}
		}
	}
	ways := []map[int]string{{}}
	for _, name := range v.names {
		members := f.differing(n, claims[name])
		if len(members) == 0 || !f.mustRename(n, v, name, members) {
			continue
		}
		var next []map[int]string
		for _, way := range ways {
			for _, i := range members {
				if len(next) == maxRenamings {
					break
				}
				other := make(map[int]string, len(way)+1)
				for k, v := range way {
					other[k] = v
				}
				other[i] = name
				next = append(next, other)
			}
		}
		ways = next
	}
	return ways
}

// differing leaves out members whose value one before has too.
func (f *fitter) differing(n *node, members []int) []int {
	var kept []int
	for _, i := range members {
		same := func(j int) bool {
			return f.canonicalOf(n.members[i].value) == f.canonicalOf(n.members[j].value)
		}
		if !slices.ContainsFunc(kept, same) {
			kept = append(kept, i)
		}
	}
	return kept
}

func (f *fitter) mustRename(n *node, v *view, name string, members []int) bool {
	if slices.Contains(v.required, name) {
		return true
	}
	for _, i := range members {
		if !f.allows(n.members[i].value, f.member(v, n.members[i].name)) {
			return true
		}
	}
	return false
}

// A fate is what becomes of a member.
type fate struct {
	drop *change // dropped, and why
	name string
	fit  *fit
}

func (f *fitter) object(n *node, v *view, names map[int]string, s step) *fit {
	ft := &fit{ok: true}
	fates := make([]fate, len(n.members))
	kept, extra := 0, 0
	for i, m := range n.members {
		fates[i] = f.fate(m, v, names[i], s)
		switch d := fates[i].drop; {
		case d == nil:
			kept++
		case d.kind == ExtraKey:
			extra++
		}
	}
	if kept == 0 && extra > 0 {
		// Nothing of the object would be left.
		return &fit{faults: 1 + extra}
	}
	last := n.start + 1
	for i, m := range n.members {
		if fates[i].drop != nil {
			f.drop(ft, n, fates, i)
		} else {
			f.keep(ft, m, fates[i])
		}
		last = m.value.end
	}
	f.addMissing(ft, n, v, fates, last)
	return f.whole(n, v, ft)
}

// fate decides what becomes of a member that is to have a name, "" for its own.
func (f *fitter) fate(m member, v *view, name string, s step) fate {
	if name == "" {
		name = m.name
	}
	token := "/" + pointerEscaper.Replace(name)
	raw := f.excerpt(m.start, m.value.end)
	sub := f.member(v, name)
	required := slices.Contains(v.required, name)
	if sub != nil && sub.never && !required {
		return fate{drop: &change{kind: ExtraKey, cost: costExtraKey, token: token, was: raw}}
	}
	if m.value.kind == kindObject {
		f.named[m.value.id] = name
	}
	inner := f.fit(m.value, sub, s&insideText)
	if !inner.ok && !required {
		switch {
		case m.value.kind == kindNull:
			return fate{drop: &change{kind: DropNull, cost: costDropNull, token: token, was: raw}}
		case m.value.kind == kindString && isNullWord(m.value.text):
			return fate{drop: &change{kind: DropNull, cost: costDropNullText, token: token, was: raw}}
		}
	}
	return fate{name: name, fit: inner}
}

func (f *fitter) keep(ft *fit, m member, fa fate) {
	token := "/" + pointerEscaper.Replace(fa.name)
	if fa.name != m.name {
		ft.add(change{kind: KeyName, start: m.start, end: m.end, after: quote(fa.name), cost: costKeyName, token: token})
	}
	ft.include(fa.fit, token)
}

// drop takes the i-th member out, with one of the commas beside it.
func (f *fitter) drop(ft *fit, n *node, fates []fate, i int) {
	c := *fates[i].drop
	m := n.members[i]
	c.start, c.end = m.start, m.value.end
	before := slices.ContainsFunc(fates[:i], func(fa fate) bool { return fa.drop == nil })
	switch {
	case before:
		c.start = n.members[i-1].value.end
	case i+1 < len(n.members):
		c.end = n.members[i+1].start
	}
	ft.add(c)
}

// addMissing puts in what is required and not there, where that is no invention:
// null where null is allowed, and defaults if the options ask for them.
func (f *fitter) addMissing(ft *fit, n *node, v *view, fates []fate, at int) {
	has := func(name string) bool {
		return slices.ContainsFunc(fates, func(fa fate) bool { return fa.drop == nil && fa.name == name })
	}
	some := slices.ContainsFunc(fates, func(fa fate) bool { return fa.drop == nil })
	comma, colon := f.style(n)
	for _, name := range v.required {
		if has(name) || !f.charge(1+len(fates)/16) {
			continue
		}
		c, ok := f.missing(v, name)
		if !ok || f.droppedFor(n, v, fates, name) {
			ft.ok = false
			ft.faults += 2 // structure before content
			continue
		}
		c.start, c.end = at, at
		c.is = quote(name) + ": " + c.after
		c.after = quote(name) + colon + c.after
		if some {
			c.after = comma + c.after
		}
		some = true
		ft.add(c)
	}
}

// droppedFor reports whether a member that is dropped may be the one that is missing,
// under another name.
func (f *fitter) droppedFor(n *node, v *view, fates []fate, name string) bool {
	sub := f.member(v, name)
	for i, fa := range fates {
		if fa.drop == nil || fa.drop.kind != ExtraKey || n.members[i].value.kind == kindNull {
			continue
		}
		if f.fit(n.members[i].value, sub, stepMask|insideText).ok {
			return true
		}
	}
	return false
}

// missing returns what stands for a required member that is not there.
func (f *fitter) missing(v *view, name string) (change, bool) {
	token := "/" + pointerEscaper.Replace(name)
	sub := f.member(v, name)
	if f.o.Defaults && sub != nil {
		for _, r := range sub.base {
			if r.initial != nil && f.allows(f.read([]byte(r.initial.text)), sub) {
				return change{kind: AddDefault, after: r.initial.text, cost: costAddDefault, token: token}, true
			}
		}
	}
	// A schema that allows anything does not ask for null.
	nullable := sub != nil && (sub.kinds != allKinds || len(sub.choices) > 0)
	if nullable && f.allows(&node{kind: kindNull, id: -1, text: "null"}, sub) {
		return change{kind: AddNull, after: "null", cost: costAddNull, token: token}, true
	}
	return change{}, false
}

// style returns how n separates its members and their names from values.
func (f *fitter) style(n *node) (comma, colon string) {
	comma, colon = ", ", ": "
	if len(n.members) == 0 {
		return comma, colon
	}
	first := n.members[0]
	colon = string(f.text[first.end:first.value.start])
	if len(n.members) > 1 {
		comma = string(f.text[first.value.end:n.members[1].start])
	} else if space := string(f.text[n.start+1 : first.start]); strings.Contains(space, "\n") {
		comma = "," + space
	}
	return comma, colon
}
