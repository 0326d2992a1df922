package grammar

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ParseGBNF reads a grammar in llama.cpp's language, GBNF. Texts begin with the
// rule root. Characters are code points, \x41 is U+0041. Literals of tokens,
// <[1]> and <name>, are not supported: grammars here speak of bytes.
//
// Errors are [*SyntaxError].
func ParseGBNF(src string) (*Grammar, error) {
	p := &gbnf{src: src, ids: map[string]int{}}
	if len(src) > maxSource {
		return nil, errorAt(src, 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxSource))
	}
	if i := invalidUTF8(src); i >= 0 {
		return nil, errorAt(src, i, errors.New("not UTF-8"))
	}
	p.space(true)
	for p.at < len(src) {
		if err := p.rule(); err != nil {
			return nil, err
		}
	}
	root, ok := p.ids["root"]
	if !ok || p.rules[root].body == nil {
		return nil, errorAt(src, len(src), errors.New("no rule root: grammars begin with it"))
	}
	for _, r := range p.rules {
		if r.body == nil {
			return nil, errorAt(src, r.pos, fmt.Errorf("rule %s is not defined", r.name))
		}
	}
	return compile(&source{
		rules: p.rules, root: root,
		place: func(offset int, cause error) error { return errorAt(src, offset, cause) },
	})
}

func invalidUTF8(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// gbnf is a reader of GBNF.
type gbnf struct {
	src   string
	at    int
	depth int
	rules []rule // without body until it is found; pos is where the name was first seen
	ids   map[string]int
}

func (p *gbnf) fail(format string, args ...any) error {
	return errorAt(p.src, p.at, fmt.Errorf(format, args...))
}

// peek gives the next byte, 0 at the end.
func (p *gbnf) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

// space skips blanks and comments, and ends of lines where they mean nothing.
func (p *gbnf) space(lines bool) {
	for p.at < len(p.src) {
		switch c := p.src[p.at]; {
		case c == '#':
			if i := strings.IndexAny(p.src[p.at:], "\r\n"); i >= 0 {
				p.at += i
			} else {
				p.at = len(p.src)
			}
		case c == ' ' || c == '\t' || lines && (c == '\r' || c == '\n'):
			p.at++
		default:
			return
		}
	}
}

func isNameByte(c byte) bool {
	return c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// name reads the name of a rule and gives the rule's number.
func (p *gbnf) name() (int, error) {
	start := p.at
	for isNameByte(p.peek()) {
		p.at++
	}
	if p.at == start {
		return 0, p.fail("want the name of a rule: letters, digits and -")
	}
	name := p.src[start:p.at]
	id, ok := p.ids[name]
	if !ok {
		id = len(p.rules)
		p.ids[name] = id
		p.rules = append(p.rules, rule{name: name, pos: start})
	}
	return id, nil
}

func (p *gbnf) rule() error {
	start := p.at
	id, err := p.name()
	if err != nil {
		return err
	}
	p.space(false)
	if !strings.HasPrefix(p.src[p.at:], "::=") {
		return p.fail("want ::= after the name of a rule")
	}
	if p.rules[id].body != nil {
		return errorAt(p.src, start, fmt.Errorf("rule %s is defined twice", p.rules[id].name))
	}
	p.at += len("::=")
	p.space(true)
	body, err := p.choice()
	if err != nil {
		return err
	}
	p.rules[id].body, p.rules[id].pos = body, start
	if c := p.peek(); p.at < len(p.src) && c != '\n' && c != '\r' {
		return p.fail("unexpected %q: a rule ends with its line", c)
	}
	p.space(true)
	return nil
}

func (p *gbnf) choice() (*expr, error) {
	pos := p.at
	var subs []*expr
	for {
		sub, err := p.sequence()
		if err != nil {
			return nil, err
		}
		subs = append(subs, sub)
		if p.peek() != '|' {
			break
		}
		p.at++
		p.space(true)
	}
	if len(subs) == 1 {
		return subs[0], nil
	}
	return &expr{op: opChoice, subs: subs, pos: pos}, nil
}

func (p *gbnf) sequence() (*expr, error) {
	seq := &expr{op: opSequence, pos: p.at}
	for {
		e, err := p.item()
		if err != nil {
			return nil, err
		}
		if e == nil {
			return seq, nil
		}
		p.space(p.depth > 0)
		if e, err = p.repetitions(e); err != nil {
			return nil, err
		}
		seq.subs = append(seq.subs, e)
	}
}

// item reads one part of a sequence, nil if none is there.
func (p *gbnf) item() (*expr, error) {
	pos := p.at
	var e *expr
	var err error
	switch c := p.peek(); {
	case c == '"':
		e, err = p.literal()
	case c == '[':
		e, err = p.class()
	case c == '.':
		p.at++
		e = anyRune()
	case c == '(':
		e, err = p.group()
	case c == '<' || c == '!':
		return nil, p.fail("%w: literals of tokens: grammars here speak of bytes", ErrUnsupported)
	case c == '*' || c == '+' || c == '?' || c == '{':
		return nil, p.fail("%q has nothing before it to repeat", c)
	case isNameByte(c):
		var id int
		id, err = p.name()
		e = call(id)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e.pos = pos
	return e, nil
}

func (p *gbnf) group() (*expr, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.fail("%w: groups nested more than %d deep", ErrTooLarge, maxNesting)
	}
	p.at++
	p.space(true)
	sub, err := p.choice()
	if err != nil {
		return nil, err
	}
	if p.peek() != ')' {
		return nil, p.fail("want ) to end the group")
	}
	p.at++
	p.depth--
	return sequence(sub), nil
}

func (p *gbnf) literal() (*expr, error) {
	open := p.at
	p.at++
	var text []byte
	for p.peek() != '"' {
		if p.at >= len(p.src) {
			return nil, errorAt(p.src, open, errors.New("string without an end"))
		}
		start := p.at
		r, err := p.char()
		if err != nil {
			return nil, err
		}
		if surrogateFirst <= r && r <= surrogateLast || r > utf8.MaxRune {
			return nil, errorAt(p.src, start, fmt.Errorf("U+%04X is no character", r))
		}
		text = utf8.AppendRune(text, r)
	}
	p.at++
	return literal(string(text)), nil
}

func (p *gbnf) class() (*expr, error) {
	open := p.at
	p.at++
	negated := p.peek() == '^'
	if negated {
		p.at++
	}
	var pairs []rune
	for p.peek() != ']' {
		if p.at >= len(p.src) {
			return nil, errorAt(p.src, open, errors.New("class without an end"))
		}
		start := p.at
		low, err := p.char()
		if err != nil {
			return nil, err
		}
		high := low
		if p.peek() == '-' && p.at+1 < len(p.src) && p.src[p.at+1] != ']' {
			p.at++
			if high, err = p.char(); err != nil {
				return nil, err
			}
		}
		if low > high {
			return nil, errorAt(p.src, start, fmt.Errorf("range from U+%04X down to U+%04X", low, high))
		}
		if pairs = append(pairs, low, high); len(pairs) > 2*maxProgram {
			return nil, p.fail("%w: class", ErrTooLarge)
		}
	}
	p.at++
	if negated {
		return classExcept(pairs...), nil
	}
	return class(pairs...), nil
}

// char reads a character or an escape.
func (p *gbnf) char() (rune, error) {
	r, n := utf8.DecodeRuneInString(p.src[p.at:])
	if r != '\\' {
		if n == 0 {
			return 0, p.fail("unexpected end")
		}
		p.at += n
		return r, nil
	}
	if p.at+1 >= len(p.src) {
		return 0, p.fail("unexpected end")
	}
	digits := 0
	switch c := p.src[p.at+1]; c {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case 't':
		r = '\t'
	case 'r':
		r = '\r'
	case 'n':
		r = '\n'
	case '\\', '"', '[', ']', '-', '^':
		r = rune(c)
	default:
		return 0, p.fail(`unknown escape \%c: there are \t \r \n \\ \" \[ \] \- \^ \x \u \U`, c)
	}
	if digits == 0 {
		p.at += 2
		return r, nil
	}
	value := uint32(0)
	for i := range digits {
		d := -1
		if at := p.at + 2 + i; at < len(p.src) {
			d = hexDigit(p.src[at])
		}
		if d < 0 {
			return 0, p.fail("want %d hexadecimal digits", digits)
		}
		value = value<<4 | uint32(d)
	}
	if value > utf8.MaxRune {
		return 0, p.fail("U+%X is no character", value)
	}
	p.at += 2 + digits
	return rune(value), nil
}

// hexDigit gives the value of a digit, -1 if c is none.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// repetitions reads what follows an item.
func (p *gbnf) repetitions(e *expr) (*expr, error) {
	for n := 0; ; n++ {
		low, high, pos := 0, unlimited, p.at
		switch p.peek() {
		case '*':
		case '+':
			low = 1
		case '?':
			high = 1
		case '{':
			var err error
			if low, high, err = p.counts(); err != nil {
				return nil, err
			}
		default:
			return e, nil
		}
		if n > maxNesting {
			return nil, p.fail("%w: more than %d repetitions of one item", ErrTooLarge, maxNesting)
		}
		p.at++
		e = &expr{op: opRepeat, subs: []*expr{e}, min: low, max: high, pos: pos}
		p.space(p.depth > 0)
	}
}

// counts reads {n}, {n,} or {n,m} up to the brace that ends it.
func (p *gbnf) counts() (low, high int, err error) {
	open := p.at
	p.at++
	p.space(p.depth > 0)
	if low, err = p.number(); err != nil {
		return 0, 0, err
	}
	high = low
	p.space(p.depth > 0)
	if p.peek() == ',' {
		p.at++
		p.space(p.depth > 0)
		high = unlimited
		if c := p.peek(); '0' <= c && c <= '9' {
			if high, err = p.number(); err != nil {
				return 0, 0, err
			}
			if high < low {
				return 0, 0, errorAt(p.src, open, fmt.Errorf("at least %d repetitions, but at most %d", low, high))
			}
		}
		p.space(p.depth > 0)
	}
	if p.peek() != '}' {
		return 0, 0, p.fail("want } after the number of repetitions")
	}
	return low, high, nil
}

// number reads a count. Those beyond all bounds are all the same.
func (p *gbnf) number() (int, error) {
	const most = 1 << 30
	start, n := p.at, 0
	for '0' <= p.peek() && p.peek() <= '9' {
		n = min(n*10+int(p.peek()-'0'), most/10)
		p.at++
	}
	if p.at == start {
		return 0, p.fail("want a number of repetitions")
	}
	return n, nil
}
