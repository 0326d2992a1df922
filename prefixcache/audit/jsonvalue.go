package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// Bounds of the search for a JSON value around a divergence.
const (
	jsonBefore = 64 << 10  // bytes before it
	jsonLevels = 32        // enclosing values
	jsonBudget = 512 << 10 // bytes read
)

// json: the divergence is inside a JSON value that both texts have: an equal one,
// or a list with the same elements, or a list of tools.
func (p *pair) json() *finding {
	budget := jsonBudget
	head := p.newText()[max(0, p.l-jsonBefore):p.l]
	depth, levels := 0, 0
	for i := len(head) - 1; i >= 0 && levels < jsonLevels && budget > 0; i-- {
		switch head[i] {
		case '}', ']':
			depth++
			continue
		case '{', '[':
			if depth--; depth >= 0 {
				continue
			}
			depth = 0
		default:
			continue
		}
		before := len(head) - i
		if before > p.lo {
			return nil
		}
		levels++
		old, a, ok := readJSON(p.oldText()[p.lo-before:], &budget)
		if !ok || p.lo-before+a <= p.lo {
			continue
		}
		new, b, ok := readJSON(p.newText()[p.l-before:], &budget)
		if !ok || p.l-before+b <= p.l {
			continue
		}
		if f := p.jsonValues(old, new, before, a, b); f != nil {
			return f
		}
	}
	return nil
}

// jsonValues compares the values that begin before bytes before the divergence.
func (p *pair) jsonValues(old, new any, before, a, b int) *finding {
	oldEnd, newEnd := p.lo-before+a, p.l-before+b
	x, y := p.oldText()[p.lo-before:oldEnd], p.newText()[p.l-before:newEnd]
	if equalJSON(old, new) {
		f := p.at(JSONRewrite, before, oldEnd, newEnd, "the JSON value at byte %d is the same, but %s: %q instead of %q", p.l-before, respelled(x, y),
			clip(p.newText()[p.l-min(before, 12):newEnd]), clip(p.oldText()[p.lo-min(before, 12):oldEnd]))
		f.same, f.restorable = true, true
		return f
	}
	o, ok1 := old.([]any)
	n, ok2 := new.([]any)
	if !ok1 || !ok2 {
		return nil
	}
	if len(o) > 1 && sameElements(o, n) {
		what := count(len(o), "element")
		if _, ok := toolNames(o); ok {
			what = count(len(o), "tool")
		}
		f := p.at(Reordered, before, oldEnd, newEnd, "the same %s of the JSON list at byte %d stand in another order", what, p.l-before)
		f.same, f.restorable = true, true
		return f
	}
	return p.toolsChanged(o, n, before, oldEnd, newEnd)
}

// toolsChanged makes the finding about two lists of tools.
func (p *pair) toolsChanged(old, new []any, before, oldEnd, newEnd int) *finding {
	o, ok1 := toolNames(old)
	n, ok2 := toolNames(new)
	if !ok1 || !ok2 {
		return nil
	}
	var parts []string
	only := func(what string, a, b []string) {
		var names []string
		for _, name := range a {
			if !slices.Contains(b, name) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			parts = append(parts, what+" "+strings.Join(names[:min(len(names), 5)], ", "))
		}
	}
	only("new:", n, o)
	only("gone:", o, n)
	if len(parts) == 0 {
		parts = []string{"the same names, with other definitions"}
	}
	return p.at(ToolsChange, before, oldEnd, newEnd, "the list of %s at byte %d is another one (%s)", count(len(new), "tool"), p.l-before, strings.Join(parts, "; "))
}

// toolNames lists the names of tools as OpenAI's and Anthropic's APIs take them;
// ok is false if an element is none.
func toolNames(list []any) (names []string, ok bool) {
	for _, e := range list {
		m, _ := e.(map[string]any)
		if fn, ok := m["function"].(map[string]any); ok {
			m = fn
		}
		name, _ := m["name"].(string)
		_, a := m["parameters"]
		_, b := m["input_schema"]
		_, c := m["inputSchema"]
		_, d := m["description"]
		if name == "" || !(a || b || c || d) {
			return nil, false
		}
		names = append(names, name)
	}
	return names, len(names) > 0
}

// toolLines: a run of lines, each a JSON object that describes a tool, has other
// ones.
func (p *pair) toolLines() *finding {
	before := p.l - 1 - bytes.LastIndexByte(p.newText()[:p.l], '\n')
	if before > maxPart || before > p.lo {
		return nil
	}
	// Back to the first of the lines.
	for first := p.l - before; first > 0 && before <= maxPart; {
		at := bytes.LastIndexByte(p.newText()[:first-1], '\n') + 1
		if p.newText()[at] != '{' || p.l-at > p.lo {
			break
		}
		first, before = at, p.l-at
	}
	old, a := jsonLines(p.oldText()[p.lo-before:])
	new, b := jsonLines(p.newText()[p.l-before:])
	oldEnd, newEnd := p.lo-before+a, p.l-before+b
	if oldEnd < p.lo && newEnd < p.l || len(old) == 0 || len(new) == 0 {
		return nil
	}
	if len(old) > 1 && sameElements(old, new) && !slices.EqualFunc(old, new, equalJSON) {
		f := p.at(Reordered, before, oldEnd, newEnd, "the same %s stand in another order from byte %d on", count(len(old), "JSON line"), p.l-before)
		f.same, f.restorable = true, true
		return f
	}
	return p.toolsChanged(old, new, before, oldEnd, newEnd)
}

// jsonLines reads the lines that text begins with as long as each is a JSON
// object, and gives their length in bytes.
func jsonLines(text []byte) (list []any, n int) {
	budget := jsonBudget / 2
	for n < len(text) && text[n] == '{' && budget > 0 {
		line := text[n:]
		end := len(line)
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			end = i
		}
		value, size, ok := readJSON(line[:end], &budget)
		if !ok || size < len(bytes.TrimRight(line[:end], " \r,")) {
			break
		}
		list = append(list, value)
		n = min(n+end+1, len(text))
	}
	return list, n
}

// readJSON reads the value that text begins with, and gives its length in bytes.
func readJSON(text []byte, budget *int) (value any, n int, ok bool) {
	text = text[:min(len(text), *budget)]
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(&value)
	n = int(d.InputOffset())
	*budget -= max(n, 64)
	if err != nil {
		*budget -= len(text) / 4
		return nil, 0, false
	}
	return value, n, true
}

// equalJSON reports whether two values are equal, numbers by their value.
func equalJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equalJSON)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equalJSON)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || equalNumbers(string(a), string(b)))
	}
	return a == b
}

// equalNumbers compares numbers of a moderate size exactly.
func equalNumbers(a, b string) bool {
	big := func(s string) (*big.Rat, bool) {
		if i := strings.IndexAny(s, "eE"); len(s) > 64 || i >= 0 && len(s)-i > 5 {
			return nil, false
		}
		return new(big.Rat).SetString(s)
	}
	x, ok1 := big(a)
	y, ok2 := big(b)
	return ok1 && ok2 && x.Cmp(y) == 0
}

// sameElements reports whether two lists hold the same values in any order.
func sameElements(a, b []any) bool {
	if len(a) != len(b) || len(a) > 4096 {
		return false
	}
	seen := map[string]int{}
	key := func(v any) string { s, _ := json.Marshal(v); return string(s) }
	for _, v := range a {
		seen[key(v)]++
	}
	for _, v := range b {
		k := key(v)
		if seen[k] == 0 {
			return false
		}
		seen[k]--
	}
	return true
}

// respelled says in words how two spellings of one value differ.
func respelled(old, new []byte) string {
	var a, b bytes.Buffer
	if json.Compact(&a, old) == nil && json.Compact(&b, new) == nil && bytes.Equal(a.Bytes(), b.Bytes()) {
		return "its white space differs"
	}
	x, y := json.NewDecoder(bytes.NewReader(old)), json.NewDecoder(bytes.NewReader(new))
	x.UseNumber()
	y.UseNumber()
	for {
		s, err1 := x.Token()
		t, err2 := y.Token()
		if err1 != nil || err2 != nil {
			return "strings are escaped in another way"
		}
		if s == t {
			continue
		}
		m, ok1 := s.(json.Number)
		n, ok2 := t.(json.Number)
		if ok1 && ok2 && equalNumbers(string(m), string(n)) {
			return fmt.Sprintf("the number %s was written %s", n, m)
		}
		return fmt.Sprintf("its keys stand in another order (%v where %v was)", t, s)
	}
}
