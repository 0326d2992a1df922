package audit

import (
	"bytes"
	"fmt"
	"regexp"
)

const months = `(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b`
const weekdays = `(?:Mon(?:day)?|Tue(?:s(?:day)?)?|Wed(?:nesday)?|Thu(?:r(?:s(?:day)?)?)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?)\b`
const clock = `\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp](?:[Mm]\b|\.[Mm]\.))?(?: ?(?:Z\b|UTC\b|GMT\b|[+-]\d{2}:?\d{2}\b))?`

// times are the usual ways to write a date, a clock or both: ISO 8601 and RFC
// 3339, RFC 1123, dates in words and in figures, Unix time from 2014 to 2039 in
// seconds to nanoseconds.
var times = regexp.MustCompile(
	`\b\d{4}-\d{2}-\d{2}(?:[T ]` + clock + `)?` +
		`|\b\d{4}[/.]\d{1,2}[/.]\d{1,2}(?:,? ` + clock + `)?` +
		`|\b\d{1,2}(?:/\d{1,2}/(?:\d{2})?|\.\d{1,2}\.(?:19|20)|-\d{1,2}-(?:19|20))\d{2}\b(?:,? ` + clock + `)?` +
		`|\b` + clock +
		`|\b(?:` + weekdays + `\.?,? )?(?:\d{1,2}(?:st|nd|rd|th)?[ -]` + months + `\.?|` + months + `\.? \d{1,2}(?:st|nd|rd|th)?\b)(?:,?[ -]\d{4})?(?:,? (?:at )?` + clock + `)?` +
		`|\b` + months + `\.?,? \d{4}\b` +
		`|\b` + weekdays +
		`|\b(?:1[4-9]|2[01])\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b`)

// ids are the forms of random identifiers; a run of letters and digits is one
// only if it looks drawn.
var ids = regexp.MustCompile(
	`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b` +
		`|\b(?:[A-Za-z]{1,12}[_-])?[A-Za-z0-9]{8,}(?:[_-][A-Za-z0-9]+)*`)

var numbers = regexp.MustCompile(`\d+(?:[.,]\d+)*%?`)

// How much text around a divergence is searched for a value.
const (
	valueBefore = 80
	valueAfter  = 96
)

// value finds a match of a form that both texts have at the same place and that
// holds the first differing byte.
func (p *pair) value(form *regexp.Regexp) (old, new span, ok bool) {
	a, aLo := window(p.oldText(), p.lo)
	b, bLo := window(p.newText(), p.l)
	for _, m := range form.FindAllIndex(b, -1) {
		n := span{bLo + m[0], bLo + m[1]}
		if n.lo > p.l {
			break
		}
		if n.hi < p.l {
			continue
		}
		for _, m := range form.FindAllIndex(a, -1) {
			o := span{aLo + m[0], aLo + m[1]}
			if p.lo-o.lo == p.l-n.lo && o.hi >= p.lo && (o.hi > p.lo || n.hi > p.l) {
				return o, n, true
			}
		}
	}
	return span{}, span{}, false
}

// window is the text around a byte.
func window(text []byte, at int) ([]byte, int) {
	lo := max(0, at-valueBefore)
	return text[lo:min(len(text), at+valueAfter)], lo
}

// valued makes the finding about a value.
func (p *pair) valued(cause Cause, what string, o, n span) *finding {
	f := &finding{cause: cause, old: o, new: n}
	f.why = fmt.Sprintf("%s at byte %d reads %q instead of %q", what, n.lo, clip(p.newText()[n.lo:n.hi]), clip(p.oldText()[o.lo:o.hi]))
	return f
}

// timestamp: a date or a clock.
func (p *pair) timestamp() *finding {
	o, n, ok := p.value(times)
	if !ok {
		return nil
	}
	return p.valued(Timestamp, "a date or time", o, n)
}

// randomID: an identifier that looks drawn, on both sides.
func (p *pair) randomID() *finding {
	o, n, ok := p.value(ids)
	if !ok || !drawn(p.oldText()[o.lo:o.hi]) || !drawn(p.newText()[n.lo:n.hi]) {
		return nil
	}
	return p.valued(RandomID, "an identifier", o, n)
}

// drawn reports whether letters and digits change as often as they do where they
// are drawn: words, versions and names with a number do not.
func drawn(b []byte) bool {
	if i := bytes.LastIndexAny(b, "_"); i >= 0 && len(b)-i > 8 {
		b = b[i+1:]
	}
	changes, digits, hex := 0, 0, true
	kind := func(c byte) int {
		switch {
		case '0' <= c && c <= '9':
			return 1
		case 'a' <= c && c <= 'z':
			return 2
		case 'A' <= c && c <= 'Z':
			return 3
		}
		return 0
	}
	for i, c := range b {
		k := kind(c)
		if k == 1 {
			digits++
		}
		hex = hex && (k == 1 || c == '-' || 'a' <= c|0x20 && c|0x20 <= 'f')
		if i > 0 && k != kind(b[i-1]) && k != 0 && kind(b[i-1]) != 0 {
			changes++
		}
	}
	switch {
	case digits == 0 || digits == len(b):
		return false
	case hex:
		return changes >= 2
	}
	return changes >= 4
}

// counter: a number, which is what the prompt is about unless much equal text
// stands after it.
func (p *pair) counter() *finding {
	o, n, ok := p.value(numbers)
	if !ok {
		return nil
	}
	equal, end := 0, p.opening(p.new)
	for _, m := range p.matches() {
		equal += max(0, min(m.n, end-m.new))
	}
	if equal < minCounted {
		return nil
	}
	return p.valued(Counter, "a number", o, n)
}
