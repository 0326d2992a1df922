package grammar

import (
	"fmt"
	"math"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// quoteJSON writes a string as JSON, with escapes only where they are needed.
func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		b.WriteString(jsonChar(c))
	}
	b.WriteByte('"')
	return b.String()
}

// jsonChar is how a character is written in a string.
func jsonChar(c rune) string {
	switch {
	case c == '"' || c == '\\':
		return `\` + string(c)
	case c >= 0x20:
		return string(c)
	}
	if i := strings.IndexRune("\b\f\n\r\t", c); i >= 0 {
		return `\` + "bfnrt"[i:i+1]
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// anyChar is a character of a string, in every way to write it. Halves of
// surrogate pairs come only together.
func (r *schemaReader) anyChar() *expr {
	return r.common("char", func() *expr {
		hex := func() *expr { return class('0', '9', 'a', 'f', 'A', 'F') }
		d := func() *expr { return class('d', 'd', 'D', 'D') }
		plain := sequence(class('0', '9', 'a', 'c', 'e', 'f', 'A', 'C', 'E', 'F'), hex(), hex(), hex())
		low := sequence(d(), class('0', '7'), hex(), hex())
		pair := sequence(d(), class('8', '9', 'a', 'b', 'A', 'B'), hex(), hex(), literal(`\u`), d(), class('c', 'f', 'C', 'F'), hex(), hex())
		escape := choice(class('"', '"', '\\', '\\', '/', '/', 'b', 'b', 'f', 'f', 'n', 'n', 'r', 'r', 't', 't'),
			sequence(literal("u"), choice(plain, low, pair)))
		return choice(classExcept(0, 0x1f, '"', '"', '\\', '\\'), sequence(literal(`\`), escape))
	})
}

func (r *schemaReader) anyString() *expr {
	return r.common("string", func() *expr {
		return sequence(literal(`"`), repeat(r.anyChar(), 0, unlimited), literal(`"`))
	})
}

func digits(low, high int) *expr { return repeat(class('0', '9'), low, high) }

// maxDigits is how many digits a number has before its point, after it at most.
const maxDigits = 16

func anyInteger() *expr {
	return sequence(optional(literal("-")), choice(literal("0"), sequence(class('1', '9'), digits(0, maxDigits-1))))
}

func anyNumber() *expr {
	fraction := sequence(literal("."), digits(1, maxDigits))
	exponent := sequence(class('e', 'e', 'E', 'E'), optional(class('+', '+', '-', '-')), digits(1, 3))
	return sequence(anyInteger(), optional(fraction), optional(exponent))
}

// formats are regular expressions for values of a format. All that match are
// valid; some rare values do not match.
var formats = map[string]string{
	"date":      datePattern,
	"time":      timePattern,
	"date-time": datePattern + "T" + timePattern,
	"uuid":      `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,
	"ipv4":      octetPattern + `(?:\.` + octetPattern + `){3}`,
	"ipv6":      `[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){7}`,
	"email":     `[0-9a-zA-Z_+-]{1,30}(?:\.[0-9a-zA-Z_+-]{1,30})?@` + hostPattern,
	"hostname":  hostPattern,
	"duration":  `P(?:[0-9]{1,9}W|(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?|[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D)(?:` + durationTime + `)?|` + durationTime + `)`,
}

const (
	datePattern = `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|` +
		`(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
	clockPattern = `(?:[01][0-9]|2[0-3]):[0-5][0-9]`
	timePattern  = clockPattern + `:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-]` + clockPattern + `)`
	octetPattern = `(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	hostPattern  = `[0-9a-z](?:[0-9a-z-]{0,30}[0-9a-z])?(?:\.[0-9a-z](?:[0-9a-z-]{0,30}[0-9a-z])?){0,6}`
	durationTime = `T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S)`
)

func (r *schemaReader) str(schemas []subschema) (*expr, error) {
	low, high := 0, unlimited
	var pattern *expr
	var from subschema
	for _, s := range schemas {
		var err error
		if low, high, err = r.bounds(s, "minLength", "maxLength", low, high); err != nil {
			return nil, err
		}
		for _, name := range []string{"pattern", "format"} {
			if s.value.get(name) == nil {
				continue
			}
			at := s.member(name)
			if pattern != nil && from.value.text != at.value.text {
				return nil, r.unsupported(at, "a second pattern or format for one string")
			}
			from = at
			if pattern, err = r.pattern(at, name == "format"); err != nil {
				return nil, err
			}
		}
	}
	if high != unlimited && low > high {
		return choice(), nil
	}
	if pattern != nil {
		if low > 0 || high != unlimited {
			return nil, r.unsupported(from, "a length beside a pattern or format: write it into the pattern")
		}
		return sequence(literal(`"`), pattern, literal(`"`)), nil
	}
	if low == 0 && high == unlimited {
		return r.anyString(), nil
	}
	chars := repeat(r.anyChar(), low, high)
	chars.pos = schemas[0].value.pos
	return sequence(literal(`"`), chars, literal(`"`)), nil
}

func (r *schemaReader) pattern(at subschema, format bool) (*expr, error) {
	if format {
		src, ok := formats[at.value.text]
		if !ok {
			return nil, r.unsupported(at, "format %q", at.value.text)
		}
		return parseRegex(src)
	}
	re, err := syntax.Parse(at.value.text, syntax.Perl)
	if err != nil {
		return nil, r.fail(at, err)
	}
	e, err := searchExpr(re, true, true)
	if err != nil {
		return nil, r.fail(at, err)
	}
	return encoded(e), nil
}

// searchExpr translates an expression that is to match anywhere: what is not
// anchored has any text before and after it.
func searchExpr(re *syntax.Regexp, first, last bool) (*expr, error) {
	if !first && !last {
		return regexExpr(re, false, false)
	}
	switch re.Op {
	case syntax.OpCapture:
		return searchExpr(re.Sub[0], first, last)
	case syntax.OpAlternate:
		e := choice()
		for _, sub := range re.Sub {
			s, err := searchExpr(sub, first, last)
			if err != nil {
				return nil, err
			}
			e.subs = append(e.subs, s)
		}
		return e, nil
	case syntax.OpConcat, syntax.OpBeginText, syntax.OpEndText:
		return searchConcat(re, first, last)
	}
	e, err := regexExpr(re, false, false)
	if err != nil {
		return nil, err
	}
	return around(e, first, last), nil
}

func searchConcat(re *syntax.Regexp, first, last bool) (*expr, error) {
	subs := re.Sub
	if re.Op != syntax.OpConcat {
		subs = []*syntax.Regexp{re}
	}
	begins, ends := false, false
	for first && len(subs) > 0 && subs[0].Op == syntax.OpBeginText {
		begins, subs = true, subs[1:]
	}
	for last && len(subs) > 0 && subs[len(subs)-1].Op == syntax.OpEndText {
		ends, subs = true, subs[:len(subs)-1]
	}
	switch {
	case len(subs) == 0:
		// One anchor by itself matches in every text.
		return around(sequence(), first && last && !(begins && ends), false), nil
	case subs[0] == re:
		return regexExpr(re, false, false)
	}
	e := sequence()
	for i, sub := range subs {
		s, err := searchExpr(sub, first && !begins && i == 0, last && !ends && i == len(subs)-1)
		if err != nil {
			return nil, err
		}
		e.subs = append(e.subs, s)
	}
	return e, nil
}

func around(e *expr, before, after bool) *expr {
	e = sequence(e)
	if before {
		e.subs = slices.Insert(e.subs, 0, repeat(anyRune(), 0, unlimited))
	}
	if after {
		e.subs = append(e.subs, repeat(anyRune(), 0, unlimited))
	}
	return e
}

// encoded gives the expr for the texts of e as they are written in a JSON
// string.
func encoded(e *expr) *expr {
	if e.op == opClass {
		not := classExcept(append(complement(e.ranges), 0, 0x1f, '"', '"', '\\', '\\')...)
		out := choice(not)
		for i := 0; i < len(e.ranges) && e.ranges[i] <= '\\'; i += 2 {
			for c := e.ranges[i]; c <= min(e.ranges[i+1], '\\'); c++ {
				if s := jsonChar(c); len(s) > 1 {
					out.subs = append(out.subs, literal(s))
				}
			}
		}
		if len(out.subs) == 1 {
			return not
		}
		return out
	}
	out := *e
	out.subs = make([]*expr, len(e.subs))
	for i, sub := range e.subs {
		out.subs[i] = encoded(sub)
	}
	return &out
}

// values gives the values that enum and const leave, if any schema has one, and
// where the last of them is.
func (r *schemaReader) values(schemas []subschema) (values []*jsonValue, at subschema, ok bool, err error) {
	for _, s := range schemas {
		for _, name := range []string{"enum", "const"} {
			v := s.value.get(name)
			if v == nil {
				continue
			}
			list := []*jsonValue{v}
			if name == "enum" {
				list = v.items
			}
			if at = s.member(name); ok {
				kept := map[string]bool{}
				for _, v := range list {
					kept[v.canonical()] = true
				}
				list = slices.DeleteFunc(slices.Clone(values), func(v *jsonValue) bool { return !kept[v.canonical()] })
			}
			values, ok = list, true
		}
	}
	return values, at, ok, nil
}

func (r *schemaReader) enum(schemas []subschema, types []string, values []*jsonValue, at subschema) (*expr, error) {
	names := map[byte][]string{'{': {"object"}, '[': {"array"}, '"': {"string"}, '0': {"number", "integer"}, 't': {"boolean"}, 'n': {"null"}}
	e := &expr{op: opChoice, pos: at.value.pos}
	for _, v := range values {
		of := names[v.kind]
		if v.kind == '0' && strings.ContainsAny(v.text, ".eE") {
			of = of[:1]
		}
		if !slices.ContainsFunc(of, func(t string) bool { return slices.Contains(types, t) }) {
			continue
		}
		for _, s := range schemas {
			for _, m := range s.value.members {
				if t := restricting[m.name]; t != "" && slices.Contains(of, t) {
					return nil, r.unsupported(s.member(m.name), "%s beside enum or const", m.name)
				}
			}
		}
		e.subs = append(e.subs, r.constant(v))
	}
	return e, nil
}

// constant gives one value, its members in the order in which they are given.
func (r *schemaReader) constant(v *jsonValue) *expr {
	var items []*expr
	open, end := "[", "]"
	switch v.kind {
	case '"':
		return literal(quoteJSON(v.text))
	case '[':
		for _, item := range v.items {
			items = append(items, r.constant(item))
		}
	case '{':
		open, end = "{", "}"
		for _, m := range v.members {
			items = append(items, sequence(literal(quoteJSON(m.name)), r.space(), literal(":"), r.space(), r.constant(m.value)))
		}
	default:
		return literal(v.text)
	}
	e := sequence(literal(open), r.space())
	for i, item := range items {
		if i > 0 {
			e.subs = append(e.subs, literal(","), r.space())
		}
		e.subs = append(e.subs, item, r.space())
	}
	e.subs = append(e.subs, literal(end))
	return e
}

// A bound is one end of a range of numbers.
type bound struct {
	at   int64
	open bool // whether at itself is out
	set  bool
}

func (r *schemaReader) number(schemas []subschema, integer bool) (*expr, error) {
	var low, high bound
	for _, s := range schemas {
		for _, k := range []struct {
			name string
			sign int64
			open bool
		}{{"minimum", 1, false}, {"exclusiveMinimum", 1, true}, {"maximum", -1, false}, {"exclusiveMaximum", -1, true}} {
			v := s.value.get(k.name)
			if v == nil {
				continue
			}
			b, err := newBound(v.text, k.sign, k.open, integer)
			if err != nil {
				return nil, r.fail(s.member(k.name), err)
			}
			of := &low
			if k.sign < 0 {
				of = &high
			}
			if !of.set || b.at*k.sign > of.at*k.sign || b.at == of.at && b.open {
				*of = b
			}
		}
	}
	switch {
	case !low.set && !high.set && integer:
		return r.common("integer", anyInteger), nil
	case !low.set && !high.set:
		return r.common("number", anyNumber), nil
	case integer:
		return signed(low, high, integerRange), nil
	}
	return signed(low, high, numberRange), nil
}

// maxBound is the largest bound of a number, in magnitude.
const maxBound = 1e15

// newBound reads a bound: a minimum if sign is 1, a maximum if it is -1.
func newBound(text string, sign int64, open, integer bool) (bound, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(f) > maxBound {
		return bound{}, fmt.Errorf("%w: a bound beyond %.0f", ErrUnsupported, float64(maxBound))
	}
	whole := math.Trunc(f)
	if whole != f {
		if !integer {
			return bound{}, fmt.Errorf("%w: a bound of numbers that is not an integer", ErrUnsupported)
		}
		// The next integer inwards is in.
		whole, open = math.Ceil(f), false
		if sign < 0 {
			whole = math.Floor(f)
		}
	}
	if b := (bound{int64(whole), open, true}); !integer || !open {
		return b, nil
	}
	return bound{int64(whole) + sign, false, true}, nil
}

// signed gives the numbers between two bounds, by a function for those of 0 and
// above.
func signed(low, high bound, positive func(low, high bound) *expr) *expr {
	e := choice()
	if !high.set || high.at >= 0 {
		from := low
		if !low.set || low.at < 0 {
			from = bound{0, false, true}
		}
		e.subs = append(e.subs, positive(from, high))
	}
	if !low.set || low.at < 0 {
		// The same, mirrored.
		from, to := bound{-high.at, high.open, true}, bound{-low.at, low.open, low.set}
		if !high.set || high.at >= 0 {
			from = bound{0, true, true}
		}
		e.subs = append(e.subs, sequence(literal("-"), positive(from, to)))
	}
	return e
}

// integerRange gives integers from 0 on. That low is open only says that 0 is
// out: newBound leaves no other open bound of integers.
func integerRange(low, high bound) *expr {
	if low.open {
		low.at++
	}
	if high.set {
		return wholes(low.at, high.at)
	}
	text := strconv.FormatInt(low.at, 10)
	most, _ := strconv.ParseInt(strings.Repeat("9", len(text)), 10, 64)
	e := choice(wholes(low.at, most))
	if len(text) < maxDigits {
		e.subs = append(e.subs, sequence(class('1', '9'), digits(len(text), maxDigits-1)))
	}
	return e
}

// numberRange gives numbers from 0 on, without exponents. They have so few
// digits after the point that none becomes a bound when it is read as a
// float64.
func numberRange(low, high bound) *expr {
	const exact = 15 // significant digits that a float64 tells apart
	places := max(1, exact-len(strconv.FormatInt(max(low.at, high.at), 10)))
	e := choice()
	if high.set && !high.open && (low.at < high.at || low.at == high.at && !low.open) {
		zeros := sequence(literal("."), repeat(literal("0"), 1, places))
		e.subs = append(e.subs, sequence(wholes(high.at, high.at), optional(zeros)))
	}
	below := high
	if high.set {
		below = bound{high.at - 1, false, true} // with any fraction
	}
	from := low.at
	if low.open {
		from++
		if !high.set || low.at < high.at {
			some := choice()
			for zeros := range places {
				point := literal("." + strings.Repeat("0", zeros))
				some.subs = append(some.subs, sequence(point, class('1', '9'), digits(0, places-zeros-1)))
			}
			e.subs = append(e.subs, sequence(wholes(low.at, low.at), some))
		}
	}
	fraction := sequence(literal("."), digits(1, places))
	return choice(e, sequence(integerRange(bound{from, false, true}, below), optional(fraction)))
}

// wholes gives the integers from low to high, which are not negative.
func wholes(low, high int64) *expr {
	e := choice()
	if low > high {
		return e
	}
	least, most := strconv.FormatInt(low, 10), strconv.FormatInt(high, 10)
	for n := len(least); n <= len(most); n++ {
		from, to := "1"+strings.Repeat("0", n-1), strings.Repeat("9", n)
		if n == len(least) {
			from = least
		}
		if n == len(most) {
			to = most
		}
		e.subs = append(e.subs, between(from, to))
	}
	return e
}

// between gives the numbers from one to another of as many digits.
func between(from, to string) *expr {
	if from == to {
		return literal(from)
	}
	n := len(from) - 1
	if from[0] == to[0] {
		return sequence(literal(from[:1]), between(from[1:], to[1:]))
	}
	zeros, nines := strings.Repeat("0", n), strings.Repeat("9", n)
	low, high := rune(from[0]), rune(to[0])
	e := choice()
	if from[1:] != zeros {
		e.subs = append(e.subs, sequence(literal(from[:1]), between(from[1:], nines)))
		low++
	}
	if to[1:] != nines {
		e.subs = append(e.subs, sequence(literal(to[:1]), between(zeros, to[1:])))
		high--
	}
	if low <= high {
		e.subs = append(e.subs, sequence(class(low, high), digits(n, n)))
	}
	return e
}
