package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/unfray/unfray/jsonrepair"
)

// A fit is how a value is made valid, or how near it came.
type fit struct {
	ok     bool
	score  int
	faults int // places that stay wrong, where not ok
	parts  []part
	// alternatives fit as well and give other values.
	alternatives []*fit
	ambiguous    bool // alternatives here or below
}

// A part is an edit or a fit of a value within, in the order of the text.
type part struct {
	change *change
	inner  *fit
	token  string // what inner adds to the path, as "/name"
}

// A change is an edit, and a coercion where it has a cost: those that take several
// edits have it once.
type change struct {
	kind       jsonrepair.Kind
	start, end int
	after      string
	cost       int
	token      string
	was, is    string     // for the coercion, where these are not the edit's
	inner      []Coercion // within the new text
}

func (ft *fit) add(c change) {
	ft.score += c.cost
	ft.parts = append(ft.parts, part{change: &c})
}

func (ft *fit) include(inner *fit, token string) {
	ft.score += inner.score
	ft.faults += inner.faults
	ft.ok = ft.ok && inner.ok
	ft.ambiguous = ft.ambiguous || inner.ambiguous
	if len(inner.parts) > 0 || inner.ambiguous {
		ft.parts = append(ft.parts, part{inner: inner, token: token})
	}
}

// A step is a change of structure that is made around or inside a value at one
// place. Each is made once at most, but that what is wrapped twice is unwrapped, and no
// more than two are made together.
type step uint8

const (
	stepToArray step = 1 << iota
	stepFromArray
	stepUnwrap
	stepUnwrapMore // once more
	stepImplied
	stepText
	insideText // of a JSON text in a string: no other is read
	stepMask   = insideText - 1
)

func (s step) more() bool {
	n := 0
	for rest := s & stepMask; rest != 0; rest &= rest - 1 {
		n++
	}
	return n < 2
}

type fitKey struct {
	node int
	view string
	step step
}

// A fitter fits values of one text.
type fitter struct {
	*evaluator
	schema   *Schema
	o        FitOptions
	text     []byte
	views    map[string]*view
	memo     map[fitKey]*fit
	children map[childKey]*view
	named    map[int]string // names of members whose value is an object, by its ID
	next     *int           // ID of the next node
}

// fit makes n valid by v, at the least cost.
func (f *fitter) fit(n *node, v *view, s step) *fit {
	if v == nil || f.allows(n, v) {
		return &fit{ok: true}
	}
	if v.never || !f.charge(1) {
		return &fit{faults: 1}
	}
	key := fitKey{n.id, v.key, s}
	if known, ok := f.memo[key]; ok {
		return known
	}
	var candidates []*fit
	if len(v.choices) > 0 {
		for _, b := range f.branches(v) {
			candidates = append(candidates, f.fit(n, b, s))
		}
	} else {
		candidates = f.candidates(n, v, s)
	}
	best := f.pick(n, candidates)
	f.memo[key] = best
	return best
}

// candidates lists the ways to make n valid by v, which has no choices left.
func (f *fitter) candidates(n *node, v *view, s step) []*fit {
	var list []*fit
	if !v.takes(n) || v.listed {
		list = f.scalars(n, v)
	}
	if n.kind == kindObject && v.kinds&kindObject != 0 {
		list = append(list, f.objects(n, v, s)...)
	}
	if n.kind == kindArray && v.kinds&kindArray != 0 {
		list = append(list, f.array(n, v, s))
	}
	if s.more() {
		list = append(list, f.structures(n, v, s)...)
	}
	return list
}

// takes reports whether v allows values of n's type. Such a value is never turned into
// one of another type: that would be a way around what is demanded of it.
func (v *view) takes(n *node) bool {
	if n.kind == kindNumber && v.kinds&kindNumber == 0 && v.kinds&kindInteger != 0 {
		return parseDecimal(n.text).isInteger()
	}
	return v.kinds&n.kind != 0
}

// pick takes the cheapest of the fits of n. Where others cost the same and give
// other values, they are its alternatives.
func (f *fitter) pick(n *node, candidates []*fit) *fit {
	var best, failed *fit
	for _, c := range candidates {
		switch {
		case c.ok && (best == nil || c.score < best.score):
			best = c
		case !c.ok && (failed == nil || c.faults < failed.faults):
			failed = c
		}
	}
	switch {
	case best == nil && failed == nil:
		return &fit{faults: 1}
	case best == nil:
		return failed
	}
	var rivals []*fit
	for _, c := range candidates {
		if c != best && c.ok && c.score < best.score+f.o.margin() {
			rivals = append(rivals, c)
		}
	}
	if len(rivals) == 0 {
		return best
	}
	slices.SortStableFunc(rivals, func(a, b *fit) int { return cmp.Compare(a.score, b.score) })
	values := []string{f.result(n, best).canonical()}
	tied := *best
	for _, c := range rivals {
		if value := f.result(n, c).canonical(); !slices.Contains(values, value) {
			values = append(values, value)
			tied.alternatives = append(slices.Clone(tied.alternatives), c)
			tied.ambiguous = true
		}
	}
	return &tied
}

// result reads the value that n becomes.
func (f *fitter) result(n *node, ft *fit) *node {
	text := f.render(n, ft)
	if !f.chargeBytes(8 * len(text)) {
		return &node{kind: kindNull, id: -1, text: "null"}
	}
	return f.read(text)
}

// read reads text that is known to be JSON.
func (f *fitter) read(text []byte) *node {
	r := &reader{text: string(text), id: *f.next}
	n := r.value()
	*f.next = r.id
	return n
}

// render writes the value that n becomes.
func (f *fitter) render(n *node, ft *fit) []byte {
	var out []byte
	at := n.start
	ft.walk("", nil, func(c *change, _ string) {
		out = append(out, f.text[at:c.start]...)
		out = append(out, c.after...)
		at = c.end
	})
	return append(out, f.text[at:n.end]...)
}

// walk calls visit with each change and the path that it is at, in the order of
// the text. instead holds fits to be taken for others.
func (ft *fit) walk(path string, instead map[*fit]*fit, visit func(c *change, path string)) {
	for _, p := range ft.parts {
		if p.change != nil {
			visit(p.change, path+p.change.token)
			continue
		}
		inner := p.inner
		if other, ok := instead[inner]; ok {
			inner = other
		}
		inner.walk(path+p.token, instead, visit)
	}
}

// whole fails a fit of an object or array whose result, as a whole, is not valid.
func (f *fitter) whole(n *node, v *view, ft *fit) *fit {
	if !ft.ok || !v.whole || len(ft.parts) == 0 {
		if ft.ok && len(ft.parts) == 0 {
			// Nothing was to be changed and yet it is not valid.
			return &fit{faults: 1}
		}
		return ft
	}
	if !f.allows(f.result(n, ft), v) {
		ft.ok = false
		ft.faults++
	}
	return ft
}

// array fits the items of an array. None is ever dropped.
func (f *fitter) array(n *node, v *view, s step) *fit {
	ft := &fit{ok: true}
	for i, item := range n.items {
		ft.include(f.fit(item, f.item(v, i), s&insideText), "/"+strconv.Itoa(i))
	}
	return f.whole(n, v, ft)
}

// scalar is the fit that puts one scalar for n, if that is valid.
func (f *fitter) scalar(n *node, v *view, kind jsonrepair.Kind, text string, cost int) *fit {
	ft := &fit{}
	if f.allows(f.read([]byte(text)), v) {
		ft.ok = true
		ft.add(change{kind: kind, start: n.start, end: n.end, after: text, cost: cost})
	} else {
		ft.faults = 1
	}
	return ft
}

// scalars lists the fits that turn one scalar into another.
func (f *fitter) scalars(n *node, v *view) []*fit {
	var list []*fit
	switch n.kind {
	case kindString:
		list = f.ofString(n, v)
	case kindNumber:
		if v.kinds&kindString != 0 {
			list = append(list, f.scalar(n, v, ToString, quote(n.text), costToString))
		}
		if v.kinds&kindBoolean != 0 && (n.text == "1" || n.text == "0") {
			list = append(list, f.scalar(n, v, NumberToBoolean, strconv.FormatBool(n.text == "1"), costYesNo))
		}
	case kindBoolean:
		if v.kinds&kindString != 0 {
			list = append(list, f.scalar(n, v, ToString, quote(n.text), costToString))
		}
		if word := v.wordFor(n.text); word != "" {
			list = append(list, f.scalar(n, v, ToString, word, costYesNo))
		}
	}
	return list
}

// wordFor returns the listed string, as JSON, that stands for a boolean: of yes and no,
// or the like, where no other strings are listed.
func (v *view) wordFor(truth string) string {
	found, words := "", map[string]bool{}
	for _, l := range v.literals {
		if l.kind != kindString {
			continue
		}
		word, _ := boolean(l.value)
		if word == "" || words[word] {
			return ""
		}
		words[word] = true
		if word == truth {
			found = l.text
		}
	}
	if len(words) != 2 {
		return ""
	}
	return found
}

func (f *fitter) ofString(n *node, v *view) []*fit {
	var list []*fit
	if v.kinds&kindInteger != 0 {
		for _, number := range spelledNumbers(n.text, v.kinds&kindNumber == 0) {
			list = append(list, f.scalar(n, v, StringToNumber, number.text, number.cost))
		}
	}
	if v.kinds&kindBoolean != 0 {
		if text, cost := boolean(n.text); text != "" {
			list = append(list, f.scalar(n, v, StringToBoolean, text, cost))
		}
	}
	var spellings []spelling
	if v.listed && v.kinds&kindString != 0 {
		spellings = f.spellings(n.text, v.literals)
	}
	for _, sp := range spellings {
		list = append(list, f.scalar(n, v, sp.kind, sp.literal.text, sp.cost))
	}
	if v.kinds&kindNull != 0 && len(spellings) == 0 && (isNullWord(n.text) || strings.TrimSpace(n.text) == "") {
		list = append(list, f.scalar(n, v, StringToNull, "null", costNullText))
	}
	return list
}
