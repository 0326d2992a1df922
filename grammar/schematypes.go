package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

const maxNames = 1 << 16 // bytes of names that a key is compared with

// typeNames lists the types in the order in which a grammar tries them, which
// does not matter.
var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// plain gives the expr for values valid by schemas without references and
// choices.
func (r *schemaReader) plain(all []subschema) (*expr, error) {
	schemas := slices.DeleteFunc(slices.Clone(all), func(s subschema) bool { return s.value.kind != '{' })
	types, err := r.types(schemas)
	if err != nil {
		return nil, err
	}
	if values, at, ok, err := r.values(schemas); err != nil {
		return nil, err
	} else if ok {
		return r.enum(schemas, types, values, at)
	}
	if !slices.ContainsFunc(schemas, restricts) {
		return r.any(), nil
	}
	e := choice()
	for _, name := range types {
		var sub *expr
		var err error
		switch name {
		case "object":
			sub, err = r.object(schemas)
		case "array":
			sub, err = r.array(schemas)
		case "string":
			sub, err = r.str(schemas)
		case "number", "integer":
			sub, err = r.number(schemas, name == "integer")
		case "boolean":
			sub = choice(literal("true"), literal("false"))
		case "null":
			sub = literal("null")
		}
		if err != nil {
			return nil, err
		}
		e.subs = append(e.subs, sub)
	}
	if len(schemas) > 0 {
		e.pos = schemas[0].value.pos
	}
	return e, nil
}

// restricts reports whether a schema has a keyword that is kept.
func restricts(s subschema) bool {
	return slices.ContainsFunc(s.value.members, func(m jsonMember) bool { _, ok := restricting[m.name]; return ok })
}

// types gives the types that values may have. Where no schema says, they are
// those that its keywords speak of.
func (r *schemaReader) types(schemas []subschema) ([]string, error) {
	types := slices.Clone(typeNames)
	said, spoken := false, map[string]bool{}
	for _, s := range schemas {
		for _, m := range s.value.members {
			if t := restricting[m.name]; t != "" {
				spoken[t] = true
			}
			said = said || m.name == "enum" || m.name == "const"
		}
		v := s.value.get("type")
		if v == nil {
			continue
		}
		said = true
		var names []string
		for _, item := range append(v.items[:len(v.items):len(v.items)], v) {
			if item.kind == '"' && slices.Contains(typeNames, item.text) {
				names = append(names, item.text)
			} else if item != v || v.kind != '[' {
				return nil, r.fail(s.member("type"), fmt.Errorf("%s is no type: there are %v", item.canonical(), typeNames))
			}
		}
		types = slices.DeleteFunc(types, func(t string) bool {
			return !slices.Contains(names, t) && !(t == "integer" && slices.Contains(names, "number"))
		})
	}
	if !said && len(spoken) > 0 {
		types = slices.DeleteFunc(types, func(t string) bool { return !spoken[t] })
	}
	if slices.Contains(types, "number") {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
	}
	return types, nil
}

// space is the whitespace between parts.
func (r *schemaReader) space() *expr {
	return r.common("space", func() *expr {
		blank := class(' ', ' ', '\t', '\t')
		return choice(sequence(), literal(" "), sequence(repeat(literal("\n"), 1, 2), repeat(blank, 0, 20)))
	})
}

// common gives a call of the rule of that name, made when it is first asked
// for. The rule may call itself.
func (r *schemaReader) common(name string, body func() *expr) *expr {
	id, ok := r.shared[name]
	if !ok {
		id = r.addRule(0)
		r.shared[name] = id
		b := body()
		r.rules[id].body = b
	}
	return call(id)
}

// any is any JSON value.
func (r *schemaReader) any() *expr {
	return r.common("any", func() *expr {
		member := sequence(r.anyString(), r.space(), literal(":"), r.space(), r.any())
		return choice(r.list("{", "}", member, 0, unlimited), r.list("[", "]", r.any(), 0, unlimited), r.anyString(),
			r.common("number", anyNumber), literal("true"), literal("false"), literal("null"))
	})
}

// list gives a list of low to high items, with commas between.
func (r *schemaReader) list(open, end string, item *expr, low, high int) *expr {
	item = sequence(item, r.space())
	parts := sequence()
	if high != 0 {
		more := unlimited
		if high > 0 {
			more = high - 1
		}
		parts = sequence(item, repeat(sequence(literal(","), r.space(), item), max(low-1, 0), more))
		if low == 0 {
			parts = optional(parts)
		}
	}
	return sequence(literal(open), r.space(), parts, literal(end))
}

// A property is a member of an object that schemas name.
type property struct {
	name     string
	all      []subschema
	required bool
	pos      int
}

func (r *schemaReader) object(schemas []subschema) (*expr, error) {
	properties, named, err := r.properties(schemas)
	if err != nil {
		return nil, err
	}
	var additional []subschema
	free := !named
	for _, s := range schemas {
		if s.value.get("additionalProperties") != nil {
			free = true
			additional = append(additional, s.member("additionalProperties"))
		}
	}
	var extra *expr
	if free {
		value, err := r.value(0, additional...)
		if err != nil {
			return nil, err
		}
		var names []string
		size := 0
		for _, p := range properties {
			names = append(names, p.name)
			if size += len(p.name); size > maxNames {
				return nil, r.fail(schemas[0], fmt.Errorf("%w: names of more than %d bytes beside other properties", ErrTooLarge, maxNames))
			}
		}
		extra = r.member(r.otherKey(names), value)
	}
	return r.members(properties, extra)
}

// properties gives all that schemas name, in their order. Each is held to what
// every schema says of it. It reports whether any has the keyword properties.
func (r *schemaReader) properties(schemas []subschema) (list []property, named bool, err error) {
	at := map[string]int{}
	add := func(name string, pos int) *property {
		i, ok := at[name]
		if !ok {
			i = len(list)
			at[name] = i
			list = append(list, property{name: name, pos: pos})
		}
		return &list[i]
	}
	for _, s := range schemas {
		if v := s.value.get("properties"); v != nil {
			named = true
			for _, m := range v.members {
				add(m.name, m.value.pos)
			}
		}
	}
	for _, s := range schemas {
		if v := s.value.get("required"); v != nil {
			for _, item := range v.items {
				if item.kind != '"' {
					return nil, false, r.fail(s.member("required"), errors.New("want the names of properties"))
				}
				add(item.text, item.pos).required = true
			}
		}
	}
	for _, s := range schemas {
		if r.read += len(list); r.read > maxRead {
			return nil, false, r.fail(s, fmt.Errorf("%w: too many properties in combination", ErrTooLarge))
		}
		own := s.value.get("properties")
		names := map[string]*jsonValue{}
		if own != nil {
			for _, m := range own.members {
				names[m.name] = m.value
			}
		}
		for i := range list {
			p := &list[i]
			if v := names[p.name]; v != nil {
				in := subschema{s.pointer + "/properties", &jsonValue{kind: '{', members: []jsonMember{{p.name, v}}}}
				p.all = append(p.all, in.member(p.name))
			} else if s.value.get("additionalProperties") != nil {
				p.all = append(p.all, s.member("additionalProperties"))
			}
		}
	}
	return list, named, nil
}

func (r *schemaReader) member(key, value *expr) *expr {
	return sequence(key, r.space(), literal(":"), r.space(), value, r.space())
}

// members gives an object with properties in their order, then any number of
// extra members unless that is nil. From the end on, there is a rule for what
// may follow a property with a member before it, and one without.
func (r *schemaReader) members(properties []property, extra *expr) (*expr, error) {
	comma := sequence(literal(","), r.space())
	rest, first := sequence(), sequence()
	if extra != nil {
		rest = r.define(repeat(sequence(comma, extra), 0, unlimited))
		first = r.define(optional(sequence(extra, rest)))
	}
	for _, p := range slices.Backward(properties) {
		value, err := r.value(p.pos, p.all...)
		if err != nil {
			return nil, err
		}
		m := r.member(literal(quoteJSON(p.name)), value)
		m.pos = p.pos
		alone, after := sequence(m, rest), sequence(comma, m, rest)
		if !p.required {
			alone, after = choice(alone, first), choice(after, rest)
		}
		first, rest = r.define(alone), r.define(after)
	}
	return sequence(literal("{"), r.space(), first, literal("}")), nil
}

// otherKey gives the keys that are none of some names: without escapes, so that
// no name hides behind one.
func (r *schemaReader) otherKey(names []string) *expr {
	if len(names) == 0 {
		return r.anyString()
	}
	type node struct {
		next map[rune]*node
		end  bool
	}
	top := &node{}
	for _, name := range names {
		at := top
		for _, c := range name {
			if at.next == nil {
				at.next = map[rune]*node{}
			}
			if at.next[c] == nil {
				at.next[c] = &node{}
			}
			at = at.next[c]
		}
		at.end = true
	}
	plain := classExcept(0, 0x1f, '"', '"', '\\', '\\')
	var build func(n *node) *expr
	build = func(n *node) *expr {
		e := choice()
		if !n.end {
			e.subs = append(e.subs, sequence())
		}
		not := []rune{0, 0x1f, '"', '"', '\\', '\\'}
		var order []rune
		for c := range n.next {
			order = append(order, c)
		}
		slices.Sort(order)
		for _, c := range order {
			not = append(not, c, c)
			if c >= 0x20 && c != '"' && c != '\\' {
				e.subs = append(e.subs, sequence(class(c, c), build(n.next[c])))
			}
		}
		e.subs = append(e.subs, sequence(classExcept(not...), repeat(plain, 0, unlimited)))
		return r.define(e)
	}
	return sequence(literal(`"`), build(top), literal(`"`))
}

func (r *schemaReader) array(schemas []subschema) (*expr, error) {
	low, high, prefix := 0, unlimited, 0
	open := true // whether items may follow those of prefixItems
	for _, s := range schemas {
		var err error
		if low, high, err = r.bounds(s, "minItems", "maxItems", low, high); err != nil {
			return nil, err
		}
		items := s.value.get("items")
		if items != nil && items.kind == '[' {
			return nil, r.unsupported(s.member("items"), "items as an array: write prefixItems")
		}
		if p := s.value.get("prefixItems"); p != nil {
			prefix = max(prefix, len(p.items))
			open = open && items != nil
		}
	}
	if high != unlimited {
		prefix = min(prefix, high)
	}
	at := func(i int) (*expr, error) {
		var all []subschema
		for _, s := range schemas {
			if p := s.value.get("prefixItems"); p != nil && i < len(p.items) {
				all = append(all, s.member("prefixItems").item(i))
			} else if s.value.get("items") != nil {
				all = append(all, s.member("items"))
			} else if p != nil {
				return choice(), nil
			}
		}
		return r.value(0, all...)
	}
	rest := choice()
	if open {
		var err error
		if rest, err = at(prefix); err != nil {
			return nil, err
		}
	}
	if prefix == 0 {
		if high != unlimited && low > high {
			return choice(), nil
		}
		return r.list("[", "]", rest, low, high), nil
	}
	return r.tuple(prefix, at, rest, low, high)
}

// tuple gives an array of up to prefix items, each of its own, and then others.
func (r *schemaReader) tuple(prefix int, at func(int) (*expr, error), rest *expr, low, high int) (*expr, error) {
	if high != unlimited && low > high {
		return choice(), nil
	}
	more := unlimited
	if high != unlimited {
		more = high - prefix
	}
	comma := sequence(literal(","), r.space())
	tail := repeat(sequence(comma, rest, r.space()), max(low-prefix, 0), more)
	for i := prefix - 1; i >= 0; i-- {
		item, err := at(i)
		if err != nil {
			return nil, err
		}
		e := sequence(item, r.space(), tail)
		if i > 0 {
			e = sequence(comma, e)
		}
		if i >= low {
			e = optional(e)
		}
		tail = r.define(e)
	}
	return sequence(literal("["), r.space(), tail, literal("]")), nil
}

// bounds narrows two counts by the keywords of a schema.
func (r *schemaReader) bounds(s subschema, least, most string, low, high int) (int, int, error) {
	count := func(name string) (int, bool, error) {
		v := s.value.get(name)
		if v == nil {
			return 0, false, nil
		}
		n, err := strconv.Atoi(v.text)
		if err != nil || n < 0 {
			return 0, false, r.fail(s.member(name), errors.New("want a number of 0 or more, written as an integer"))
		}
		return n, true, nil
	}
	n, ok, err := count(least)
	if err != nil {
		return 0, 0, err
	}
	if ok {
		low = max(low, n)
	}
	if n, ok, err = count(most); err != nil {
		return 0, 0, err
	}
	if ok && (high == unlimited || n < high) {
		high = n
	}
	return low, high, nil
}
