package schema

import (
	"slices"
	"strconv"
	"strings"
)

// IncompleteFields names what a truncated value still lacks: required members that are
// missing, and those that are in openPaths, the JSON Pointers (RFC 6901) of what had
// not ended where the text broke off, as in [jsonrepair.Result].Open. The result is
// JSON Pointers in the order of the text, a member before what is in it. Of an anyOf
// or oneOf the branch counts that lacks least. value is strict JSON, what is there of
// the truncated one; if it is not, or if that is too much work, the result is the path of the document, "".
func (s *Schema) IncompleteFields(value []byte, openPaths []string) []string {
	root, err := readDocument(value, s.maxDepth, 0)
	if err != nil {
		return []string{""}
	}
	f := s.newFitter(FitOptions{}, len(value))
	f.text = value
	*f.next = root.size()
	open := make(map[string]bool, len(openPaths))
	for _, path := range openPaths {
		// What holds something open is open too.
		for ; ; path = path[:strings.LastIndexByte(path, '/')] {
			open[path] = true
			if path == "" || !strings.Contains(path, "/") {
				break
			}
		}
	}
	c := &completeness{f, open, map[fitKey]lack{}}
	found := c.fields(root, f.view([]*rule{s.root}), "")
	if f.exceeded {
		return []string{""}
	}
	return found.fields
}

type completeness struct {
	*fitter
	open map[string]bool
	memo map[fitKey]lack
}

// A lack is what a value is short of, and how far it is from what it is held to: what
// is of the wrong type, or has names that are not known.
type lack struct {
	fields  []string
	strange int
}

func (l *lack) add(other lack) {
	l.fields = append(l.fields, other.fields...)
	l.strange += other.strange
}

func (c *completeness) fields(n *node, v *view, path string) lack {
	if v == nil || !c.charge(1) {
		return lack{}
	}
	key := fitKey{node: n.id, view: v.key}
	if known, ok := c.memo[key]; ok {
		return known
	}
	var found lack
	switch {
	case len(v.choices) > 0:
		found = c.bestBranch(n, v, path)
	case v.never || !v.takes(n):
		found.strange = 10
	default:
		if v.listed && !c.open[path] && !c.allows(n, v) {
			found.strange = 10
		}
		c.inside(n, v, path, &found)
	}
	c.memo[key] = found
	return found
}

func (c *completeness) inside(n *node, v *view, path string, found *lack) {
	for i, item := range n.items {
		found.add(c.fields(item, c.item(v, i), path+"/"+strconv.Itoa(i)))
	}
	if n.kind != kindObject {
		return
	}
	names := n.names()
	for _, m := range n.members {
		at := path + "/" + pointerEscaper.Replace(m.name)
		if slices.Contains(v.required, m.name) && c.open[at] {
			found.fields = append(found.fields, at)
		}
		if !c.declares(v, m.name) {
			found.strange++
		}
		found.add(c.fields(m.value, c.member(v, m.name), at))
	}
	for _, name := range v.required {
		if !names[name] {
			found.fields = append(found.fields, path+"/"+pointerEscaper.Replace(name))
		}
	}
}

func (c *completeness) bestBranch(n *node, v *view, path string) lack {
	var best lack
	least := -1
	for _, b := range c.branches(v) {
		found := c.fields(n, b, path)
		if cost := 10*found.strange + len(found.fields); least < 0 || cost < least {
			best, least = found, cost
		}
	}
	return best
}
