package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxVisits bounds the keys and values that are decoded, aliases expanded. A
	// file without aliases has fewer, see maxTokens.
	maxVisits = 100_000
	// maxMerges bounds mappings that are merged into one that is merged.
	maxMerges = 8
)

// decoder turns nodes into a Config and gathers what is wrong.
type decoder struct {
	reader   *Reader
	file     string
	dir      string // relative paths start here
	errors   findings
	warnings findings
	visits   int
	tooMuch  *Error // there were more visits than may be
	// places are those of the values that were decoded, by path.
	places map[string]place
	files  []fileCheck
	// secrets are the keys that were found, by path; hashes are the paths of
	// valid digests.
	secrets map[string]string
	hashes  map[string]bool
	// mappings are the paths of objects; other values in their place are
	// reported, and nothing more is said about them.
	mappings map[string]bool
}

func (d *decoder) fail(at place, path, format string, args ...any) {
	d.errors.add(d.file, at, path, fmt.Sprintf(format, args...))
}

// failAt reports a mistake at the value with that path or, if the file does not
// have it, at the value around it.
func (d *decoder) failAt(path, format string, args ...any) {
	d.fail(d.placeOf(path), path, format, args...)
}

func (d *decoder) warnAt(path, format string, args ...any) {
	d.warnings.add(d.file, d.placeOf(path), path, fmt.Sprintf(format, args...))
}

func (d *decoder) placeOf(path string) place {
	for p := path; p != ""; p = p[:max(strings.LastIndexAny(p, ".["), 0)] {
		if at, ok := d.places[p]; ok {
			return at
		}
	}
	return place{1, 1}
}

// has reports whether the file has a value, good or bad.
func (d *decoder) has(path string) bool {
	_, ok := d.places[path]
	return ok
}

// visit counts a value and reports whether there may be more.
func (d *decoder) visit(n *node, path string) bool {
	if !d.count(n.place, path) {
		return false
	}
	d.places[path] = n.place
	return true
}

func (d *decoder) count(at place, path string) bool {
	if d.visits++; d.visits == maxVisits+1 {
		// All else would be one mistake many times.
		d.tooMuch = &Error{File: d.file, Line: at.line, Column: at.column, Path: path, Text: fmt.Sprintf("aliases make more than %d keys and values of the file", maxVisits)}
	}
	return d.visits <= maxVisits
}

// value is a form of values: how one is decoded, and what a JSON Schema says of
// it.
type value[T any] struct {
	form
	decode func(d *decoder, n *node, path string, to *T)
}

// form is what a value looks like, for people and programs.
type form struct {
	name   string         // such as "duration"
	schema map[string]any // of a scalar, or what adds to the rest
	fields []described    // of an object
	item   *form          // of a list
	named  *form          // of a mapping from names
}

// described is a key of an object.
type described struct {
	key, doc string
	required bool
	form     form
}

// field is a key of an object that fills a part of T.
type field[T any] struct {
	described
	decode func(d *decoder, n *node, path string, to *T)
}

// key is the field with that name.
func key[T, V any](name string, v value[V], part func(*T) *V, doc string) field[T] {
	return field[T]{
		described: described{key: name, doc: doc, form: v.form},
		decode:    func(d *decoder, n *node, path string, to *T) { v.decode(d, n, path, part(to)) },
	}
}

// must makes the key one that has to be there.
func (f field[T]) must() field[T] {
	f.required = true
	return f
}

// object is a mapping with these keys.
func object[T any](fields ...field[T]) value[T] {
	o := value[T]{form: form{name: "mapping"}}
	words := make([]string, len(fields))
	for i, f := range fields {
		words[i] = f.key
		o.fields = append(o.fields, f.described)
	}
	o.decode = func(d *decoder, n *node, path string, to *T) {
		if n.kind != mappingKind {
			d.fail(n.place, path, "give a mapping with the keys %s, not %s", strings.Join(words, ", "), n.kind)
			return
		}
		d.mappings[path] = true
		pairs := d.pairs(n, path)
		for _, p := range pairs {
			i := slices.Index(words, p.key)
			if i < 0 {
				if path != "" || !strings.HasPrefix(p.key, "x-") {
					d.fail(p.place, path, "%s", unknown(p.key, words))
				}
				continue
			}
			at := join(path, p.key)
			if d.visit(p.value, at) {
				fields[i].decode(d, p.value, at, to)
			}
		}
		for _, f := range fields {
			if f.required && !slices.ContainsFunc(pairs, func(p pair) bool { return p.key == f.key }) {
				d.fail(n.place, join(path, f.key), "%s is missing; it has to be there", f.key)
			}
		}
	}
	return o
}

// also adds to what a JSON Schema says of a value.
func (v value[T]) also(schema map[string]any) value[T] {
	v.schema = schema
	return v
}

// unknown says that there is no such key. The key is repeated only where it is
// nearly one of the words: it may be anything, a secret too.
func unknown(key string, words []string) string {
	if word := nearest(key, words); word != "" {
		return fmt.Sprintf("there is no key %q; did you mean %s?", shorten(key), word)
	}
	return "there is no such key; the keys here are " + strings.Join(words, ", ")
}

// pairs are the keys of a mapping, those of merged mappings included. Keys that
// come twice are reported.
func (d *decoder) pairs(n *node, path string) []pair {
	seen := map[string]place{}
	var all []pair
	for _, p := range n.fields {
		if !d.count(p.place, path) {
			return all
		}
		if p.merge {
			continue
		}
		if first, ok := seen[p.key]; ok {
			d.fail(p.place, path, "the key stands twice; the first is on line %d", first.line)
			continue
		}
		seen[p.key] = p.place
		all = append(all, p)
	}
	return d.merge(all, seen, n, path, 0)
}

// merge adds the keys of merged mappings that are not there yet.
func (d *decoder) merge(all []pair, seen map[string]place, n *node, path string, depth int) []pair {
	for _, m := range n.fields {
		if !m.merge {
			continue
		}
		sources := []*node{m.value}
		if m.value.kind == listKind {
			sources = m.value.items
		}
		for _, source := range sources {
			if !d.count(source.place, path) {
				return all
			}
			if source.kind != mappingKind {
				d.fail(source.place, path, "<< takes an alias of a mapping, not %s", source.kind)
				continue
			}
			if depth == maxMerges {
				d.fail(source.place, path, "<< within << more than %d times", maxMerges)
				continue
			}
			for _, p := range source.fields {
				if !d.count(p.place, path) {
					return all
				}
				if _, ok := seen[p.key]; !ok && !p.merge {
					seen[p.key] = p.place
					all = append(all, p)
				}
			}
			all = d.merge(all, seen, source, path, depth+1)
		}
	}
	return all
}

// plural is the name of several.
func plural(name string) string {
	if stem, ok := strings.CutSuffix(name, "gy"); ok {
		return stem + "gies"
	}
	return name + "s"
}

// listOf is a list of at least so many values.
func listOf[T any](v value[T], least int) value[[]T] {
	l := value[[]T]{form: form{name: "list of " + plural(v.name), item: &v.form}}
	if least > 0 {
		l.schema = map[string]any{"minItems": least}
	}
	l.decode = func(d *decoder, n *node, path string, to *[]T) {
		switch {
		case n.kind != listKind:
			d.fail(n.place, path, "give a list, not %s", n.kind)
			return
		case len(n.items) < least:
			d.fail(n.place, path, "the list is empty; leave the key out, or give it a value")
		}
		for i, item := range n.items {
			at := path + "[" + strconv.Itoa(i) + "]"
			if !d.visit(item, at) {
				return
			}
			var v0 T
			v.decode(d, item, at, &v0)
			*to = append(*to, v0)
		}
	}
	return l
}

// named is a mapping from names to values.
func named[T any](v value[T], name func(*T) *string) value[[]*T] {
	m := value[[]*T]{form: form{name: "mapping from names", named: &v.form}}
	m.decode = func(d *decoder, n *node, path string, to *[]*T) {
		if n.kind != mappingKind {
			d.fail(n.place, path, "give a mapping from names, not %s", n.kind)
			return
		}
		for _, p := range d.pairs(n, path) {
			if why := checkName(p.key); why != "" {
				d.fail(p.place, path, "%s", why)
				continue
			}
			if p.value.kind != mappingKind {
				// What is no mapping has no name either, but may be a secret.
				d.fail(p.value.place, path, "give a mapping behind each name, not %s", p.value.kind)
				continue
			}
			at := join(path, p.key)
			if !d.visit(p.value, at) {
				return
			}
			v0 := new(T)
			*name(v0) = p.key
			v.decode(d, p.value, at, v0)
			*to = append(*to, v0)
		}
	}
	return m
}

// join is the path of a key.
func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, ".[]\""):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// shorten keeps an error one line.
func shorten(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
