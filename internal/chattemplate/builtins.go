package chattemplate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
)

// callable is a function as the engine calls it. Of a filter, the first
// argument is the value.
type callable = func(args []jinja.Value, named map[string]jinja.Value) (jinja.Value, error)

// filters replace those of the engine whose results differ from Python's:
// tojson keeps the order of members with indent too and knows ensure_ascii and
// sort_keys, trim and string write None, and so on.
var filters = map[string]callable{
	"tojson": toJSON,
	"trim":   trim,
	"string": output,
}

// builtins are this package's functions, by the names that [translate] gives
// them, for one rendering. Macros may call each other to a depth.
func builtins(now func() time.Time, deepest int) map[string]jinja.Value {
	depth := 0
	out := map[string]jinja.Value{
		prefix + "enter": jinja.NewCallable("enter", func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
			if depth++; depth > deepest {
				return jinja.Undefined(), fmt.Errorf("macros call each other more than %d deep", deepest)
			}
			return jinja.NewString(""), nil
		}),
		prefix + "leave": jinja.NewCallable("leave", func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
			depth--
			return jinja.NewString(""), nil
		}),
		prefix + "output": jinja.NewCallable("output", output),
		prefix + "scope":  jinja.NewCallable("scope", scope),
		"strftime_now": jinja.NewCallable("strftime_now", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
			if len(args) != 1 || !args[0].IsString() {
				return jinja.Undefined(), errors.New("strftime_now takes a format")
			}
			return jinja.NewString(strftime(now(), args[0].AsString())), nil
		}),
	}
	for name, f := range filters {
		out[prefix+name] = jinja.NewCallable(name, f)
	}
	return out
}

// output is what {{ v }} writes.
func output(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	s, err := pythonText(args[0])
	return jinja.NewString(s), err
}

// scope runs the body of a call block, in a scope of its own.
func scope(_ []jinja.Value, named map[string]jinja.Value) (jinja.Value, error) {
	return named["caller"].AsCallable().Fn(nil, nil)
}

func trim(args []jinja.Value, named map[string]jinja.Value) (jinja.Value, error) {
	s, err := pythonText(args[0])
	if err != nil {
		return jinja.Undefined(), err
	}
	is := isBlank
	if chars := argument(args, named, 1, "chars"); chars.IsString() {
		is = func(r rune) bool { return strings.ContainsRune(chars.AsString(), r) }
	}
	return jinja.NewString(strings.TrimFunc(s, is)), nil
}

// argument returns an argument by its place or name, undefined if it is not
// given.
func argument(args []jinja.Value, named map[string]jinja.Value, place int, name string) jinja.Value {
	if place < len(args) {
		return args[place]
	}
	return named[name]
}

// toJSON is the filter of transformers, which unlike Jinja's escapes no HTML.
func toJSON(args []jinja.Value, named map[string]jinja.Value) (jinja.Value, error) {
	w := &jsonWriter{
		item: ", ", key: ": ",
		ascii: argument(args, named, 1, "ensure_ascii").IsTruthy(), sort: argument(args, named, 4, "sort_keys").IsTruthy(),
	}
	switch indent := argument(args, named, 2, "indent"); {
	case indent.IsString():
		s := indent.AsString()
		w.indent, w.item = &s, ","
	case indent.IsInt():
		s := strings.Repeat(" ", int(max(0, min(indent.AsInt(), 1000))))
		w.indent, w.item = &s, ","
	}
	if seps := argument(args, named, 3, "separators"); seps.IsList() {
		list := seps.AsList()
		if list.Len() != 2 || !list.Get(0).IsString() || !list.Get(1).IsString() {
			return jinja.Undefined(), errors.New("tojson: separators must be two strings")
		}
		w.item, w.key = list.Get(0).AsString(), list.Get(1).AsString()
	}
	if err := w.value(args[0], 0); err != nil {
		return jinja.Undefined(), fmt.Errorf("tojson: %w", err)
	}
	return jinja.NewString(w.b.String()), nil
}
