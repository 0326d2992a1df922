package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const maxNameBytes = 128

// checkName says what is wrong with a name of a model, an upstream or a key.
func checkName(s string) string {
	switch {
	case s == "":
		return "the name is empty"
	case len(s) > maxNameBytes:
		return fmt.Sprintf("the name has more than %d bytes", maxNameBytes)
	case strings.ContainsAny(s, " \"'`<>{}[],\\") || !isPrintable(s):
		return "a name has no blanks, quotes, brackets, commas or backslashes"
	}
	return ""
}

// str is a text that check finds nothing wrong with.
func str(name string, schema map[string]any, check func(string) string) value[string] {
	v := value[string]{form: form{name: name, schema: schema}}
	if v.schema == nil {
		v.schema = map[string]any{"type": "string", "minLength": 1}
	}
	v.decode = func(d *decoder, n *node, path string, to *string) {
		if !d.isText(n, path) {
			return
		}
		if why := check(n.text); why != "" {
			d.fail(n.place, path, "%s", why)
			return
		}
		*to = n.text
	}
	return v
}

// isText reports whether a node is text that is not empty, and no reference.
func (d *decoder) isText(n *node, path string) bool {
	switch {
	case n.kind == nullKind:
		d.fail(n.place, path, "there is no value; give one, or leave the key out")
	case n.kind == numberKind || n.kind == boolKind:
		d.fail(n.place, path, "give text, not %s; put it in quotes", n.kind)
	case n.kind != textKind:
		d.fail(n.place, path, "give text, not %s", n.kind)
	case n.text == "":
		d.fail(n.place, path, "the text is empty")
	case strings.Contains(n.text, "${"):
		d.fail(n.place, path, "${NAME} is replaced in key and api_key only")
	default:
		return true
	}
	return false
}

func anyText(string) string { return "" }

// oneOf is one of some words. Its zero value is the default.
func oneOf[T ~string](name string, words ...T) value[T] {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	v := value[T]{form: form{name: name, schema: map[string]any{"enum": names}}}
	v.decode = func(d *decoder, n *node, path string, to *T) {
		if !d.isText(n, path) {
			return
		}
		for _, w := range words {
			if n.text == string(w) {
				*to = w
				return
			}
		}
		d.fail(n.place, path, "%s", noWord(n.text, names))
	}
	return v
}

func noWord(s string, words []string) string {
	msg := "give one of " + strings.Join(words, ", ")
	if word := nearest(s, words); word != "" {
		msg += "; did you mean " + word + "?"
	}
	return msg
}

// boolean is true or false.
func boolean() value[bool] {
	v := value[bool]{form: form{name: "true or false", schema: map[string]any{"type": "boolean"}}}
	v.decode = func(d *decoder, n *node, path string, to *bool) {
		on, ok := switched(n)
		if !ok {
			d.fail(n.place, path, "give true or false")
		}
		*to = on
	}
	return v
}

// toggle is on or off.
func toggle() value[Toggle] {
	v := value[Toggle]{form: form{name: "on or off", schema: map[string]any{"enum": []any{"on", "off", true, false}}}}
	v.decode = func(d *decoder, n *node, path string, to *Toggle) {
		on, ok := switched(n)
		switch {
		case !ok:
			d.fail(n.place, path, "give on or off")
		case on:
			*to = On
		default:
			*to = Off
		}
	}
	return v
}

func switched(n *node) (on, ok bool) {
	if n.kind != boolKind && n.kind != textKind {
		return false, false
	}
	switch strings.ToLower(n.text) {
	case "true", "on":
		return true, true
	case "false", "off":
		return false, true
	}
	return false, false
}

// integer is a whole number. With zero set, the file's 0 becomes -1, "none".
func integer(name string, least, most int, zero bool) value[int] {
	v := value[int]{form: form{name: name, schema: map[string]any{"type": "integer", "minimum": least, "maximum": most}}}
	v.decode = func(d *decoder, n *node, path string, to *int) {
		if n.kind != numberKind {
			d.fail(n.place, path, "give a number from %d to %d, not %s", least, most, n.kind)
			return
		}
		i, err := strconv.Atoi(n.text)
		if err != nil || i < least || i > most || len(n.text) > 1 && n.text[0] == '0' {
			d.fail(n.place, path, "give a whole number from %d to %d", least, most)
			return
		}
		if zero && i == 0 {
			i = -1
		}
		*to = i
	}
	return v
}

const (
	maxDuration = 30 * 24 * time.Hour
	none        = "none"
)

// duration is a time as Go writes it, from a millisecond to 30 days. With off
// set it may be the word none, which becomes -1.
func duration(off bool) value[time.Duration] {
	v := value[time.Duration]{form: form{name: "duration"}}
	pattern, or := `([0-9.]+(ns|us|µs|ms|s|m|h))+`, ""
	if off {
		v.name = "duration or none"
		pattern, or = pattern+"|"+none, ", or none"
	}
	v.schema = map[string]any{"type": "string", "pattern": "^(" + pattern + ")$"}
	v.decode = func(d *decoder, n *node, path string, to *time.Duration) {
		if off && n.kind == textKind && n.text == none {
			*to = -1
			return
		}
		if n.kind == numberKind {
			d.fail(n.place, path, "the unit is missing; give a duration such as 500ms, 30s or 5m%s", or)
			return
		}
		if n.kind != textKind {
			d.fail(n.place, path, "give a duration such as 500ms, 30s or 5m%s, not %s", or, n.kind)
			return
		}
		t, err := time.ParseDuration(n.text)
		switch {
		case err != nil:
			d.fail(n.place, path, "give a duration such as 500ms, 30s or 5m%s", or)
		case t < time.Millisecond || t > maxDuration:
			d.fail(n.place, path, "give a duration from 1ms to 720h%s", or)
		default:
			*to = t
		}
	}
	return v
}

var units = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
}

// size is a number of bytes.
func size(least, most int64) value[int64] {
	v := value[int64]{form: form{name: "size"}}
	v.schema = map[string]any{"type": []string{"string", "integer"}, "pattern": "^[0-9]+ ?([KMG]i?)?B$", "minimum": least, "maximum": most}
	v.decode = func(d *decoder, n *node, path string, to *int64) {
		if n.kind != numberKind && n.kind != textKind {
			d.fail(n.place, path, "give a size such as 512KiB or 8MiB, not %s", n.kind)
			return
		}
		bytes, ok := parseSize(n.text)
		switch {
		case !ok:
			d.fail(n.place, path, "give a size such as 512KiB or 8MiB, or a number of bytes")
		case bytes < least || bytes > most:
			d.fail(n.place, path, "give a size from %s to %s", sizeText(least), sizeText(most))
		default:
			*to = bytes
		}
	}
	return v
}

// parseSize reads a size. One that is too large for an int64 is the largest.
func parseSize(s string) (int64, bool) {
	factor := int64(1)
	for _, u := range units {
		if digits, ok := strings.CutSuffix(s, u.name); ok {
			s, factor = strings.TrimSuffix(digits, " "), u.bytes
			break
		}
	}
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt64/factor {
		return math.MaxInt64, true
	}
	return n * factor, true
}

func sizeText(n int64) string {
	for i := 2; i >= 0; i-- {
		if n >= units[i].bytes && n%units[i].bytes == 0 {
			return fmt.Sprintf("%d%s", n/units[i].bytes, units[i].name)
		}
	}
	return fmt.Sprintf("%dB", n)
}
