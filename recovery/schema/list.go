package schema

import (
	"strings"
)

const maxSplit = 1000 // items

// split makes an array of a text that lists things: by lines, semicolons or commas.
// Where the text could also be one item, both are fits at the same cost, and so a
// tie.
func (f *fitter) split(n *node, v *view) []*fit {
	if n.kind != kindString || looksLikeJSON(n.text) || !f.chargeBytes(len(n.text)) {
		return nil
	}
	for _, mark := range []string{"\n", ";", ","} {
		if !strings.Contains(n.text, mark) {
			continue
		}
		if ft := f.splitBy(n, v, mark); ft != nil {
			return []*fit{ft}
		}
		return nil
	}
	return nil
}

func (f *fitter) splitBy(n *node, v *view, mark string) *fit {
	pieces := strings.Split(n.text, mark)
	if len(pieces) > maxSplit {
		return nil
	}
	var text strings.Builder
	cost := costSplitText
	for i, piece := range pieces {
		piece = strings.TrimSpace(piece)
		if mark == "\n" {
			piece = strings.TrimSpace(strings.TrimLeft(piece, "-*•"))
		}
		if piece == "" {
			return nil
		}
		item := f.read([]byte(quote(piece)))
		inner := *f
		inner.text = []byte(quote(piece))
		ft := inner.fit(item, f.item(v, i), stepMask|insideText)
		if !ft.ok || ft.ambiguous {
			return nil
		}
		cost += ft.score
		if i > 0 {
			text.WriteString(", ")
		}
		text.Write(inner.render(item, ft))
	}
	whole := "[" + text.String() + "]"
	if !f.allows(f.read([]byte(whole)), v) {
		return nil
	}
	ft := &fit{ok: true}
	ft.add(change{kind: SplitText, start: n.start, end: n.end, after: whole, cost: cost})
	return ft
}

// pairs makes an object of an array of keys with values: [["a", 1], ["b", 2]] or
// [{"key": "a", "value": 1}]. All must be pairs, and no key may be there twice.
func (f *fitter) pairs(n *node, v *view) *fit {
	if n.kind != kindArray || len(n.items) == 0 {
		return nil
	}
	var text strings.Builder
	seen := map[string]bool{}
	text.WriteByte('{')
	for i, item := range n.items {
		key, value := pairOf(item)
		if key == nil || seen[key.text] || !f.chargeBytes(item.end-item.start) {
			return nil
		}
		seen[key.text] = true
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(quote(key.text) + ": " + f.raw(value))
	}
	text.WriteByte('}')
	inner := *f
	inner.text = []byte(text.String())
	object := inner.read(inner.text)
	sub := inner.fit(object, v, stepMask)
	if !sub.ok || sub.ambiguous {
		return nil
	}
	ft := &fit{ok: true}
	out, coercions := inner.edited(object, sub, nil)
	ft.score = sub.score
	ft.add(change{kind: PairsToObject, start: n.start, end: n.end, after: string(out.text), cost: costPairs, is: shorten(text.String()), inner: coercions})
	return ft
}

func pairOf(n *node) (key, value *node) {
	switch {
	case n.kind == kindArray && len(n.items) == 2:
		key, value = n.items[0], n.items[1]
	case n.kind == kindObject && len(n.members) == 2:
		value = n.get("value")
		for _, name := range []string{"key", "name", "field"} {
			if key = n.get(name); key != nil {
				break
			}
		}
	}
	if key == nil || value == nil || key.kind != kindString {
		return nil, nil
	}
	return key, value
}
