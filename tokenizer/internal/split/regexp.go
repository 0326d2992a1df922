package split

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// engine is a dialect of regular expressions.
type engine uint8

const (
	fancy     engine = iota // fancy-regex, of tiktoken
	oniguruma               // of Hugging Face tokenizers, with the syntax of Ruby
	standard                // std::regex, of llama.cpp, which has the same syntax as far as it goes
)

// maxProgram is the most instructions of a pattern: time for each byte of text
// is proportional to it.
const maxProgram = 4000

// newRegexp gives a splitter at the matches of a pattern without a scanner of
// its own.
func newRegexp(text string, b behavior, invert bool, e engine) (stage, error) {
	p, err := compile(text, e)
	if err != nil {
		return nil, fmt.Errorf("pattern %q is not supported: %w", text, err)
	}
	if b == removed && slices.ContainsFunc(p.code, instruction.looks) {
		return nil, fmt.Errorf("pattern %q is not supported: with behavior Removed it must not look ahead", text)
	}
	return &inexact{delimited{&pattern{p}, "regexp " + text, b, invert}, findRun(text, e)}, nil
}

// inexact has examples for probes only.
type inexact struct {
	delimited
	run *run // nil for most patterns
}

// run is a pattern of the form A?B+, B+, B or B+$, where A and B are single
// characters of a set. From a cut inside a match on, the rest of it matches,
// too, and nothing that starts inside of what is between matches does.
type run struct {
	first, more charset // first is empty without A
	repeated    bool
	toEnd       bool // with $
}

// findRun gives the run that a pattern is; nil if it is none.
func findRun(text string, e engine) *run {
	p := &parser{text: text, engine: e}
	if !p.more() {
		return nil // the empty pattern
	}
	r := new(run)
	f, err := p.atom()
	if err != nil || f.single == nil {
		return nil
	}
	if r.more = f.single; p.accept("?") && p.more() {
		r.first = r.more
		if f, err = p.atom(); err != nil || f.single == nil {
			return nil
		}
		r.more = f.single
	}
	r.repeated = p.accept("+")
	r.toEnd = r.repeated && p.accept("$")
	if p.more() || r.first != nil && !r.repeated {
		return nil
	}
	return r
}

// surely gives a place in part, the beginning of a text from which on the run
// splits it, before which it does not do so, given that it goes on beyond part
// without one.
func (r *run) surely(part []byte, from int) int {
	c, n := decode(part[from:])
	if !r.toEnd && r.repeated && (r.more.has(c) || r.first.has(c) && r.moreAt(part, from+n)) {
		return len(part) // inside of a match
	}
	end := len(part)
	for end > from {
		_, n := utf8.DecodeLastRune(part[from:end])
		if c, _ := decode(part[end-n:]); !r.first.has(c) && !(r.toEnd && r.more.has(c)) {
			break
		}
		if end -= n; !r.toEnd {
			break
		}
	}
	return end
}

func (r *run) moreAt(part []byte, i int) bool {
	if i == len(part) {
		return false
	}
	c, _ := decode(part[i:])
	return r.more.has(c)
}

func (*inexact) Exact() bool { return false }

// pattern finds the matches of a program.
type pattern struct{ *program }

func (p *pattern) find(text []byte, from int) (start, end, look int) {
	start, end, look = p.run(text, from, false)
	if start < 0 {
		return len(text), len(text), len(text)
	}
	return start, end, look
}

func (p *pattern) probes() []string { return patternProbes }
func (p *pattern) odd() []rune      { return nil }

var patternProbes = []string{"", "a", "s", "A", "é", "中", "1", "!", "'", "/", " ", " a", "  ", "\n", " \n", "\n\n"}

// parser compiles a pattern as it reads it. Code is written in fragments that
// end by falling through to the next instruction.
type parser struct {
	text   string
	at     int
	engine engine
	fold   bool
	depth  int
	size   int
}

// fragment is code whose targets are relative to its start.
type fragment struct {
	code []instruction
	// single is the set of a fragment that is one character.
	single charset
}

func compile(text string, e engine) (*program, error) {
	p := &parser{text: text, engine: e}
	f, err := p.alternatives()
	if err == nil && p.at < len(text) {
		err = p.errorf("unmatched )")
	}
	if err != nil {
		return nil, err
	}
	return newProgram(f), nil
}

func newProgram(f fragment) *program {
	return &program{code: append(f.code, instruction{op: opMatch})}
}

func (p *parser) table() *table {
	if p.engine == standard {
		return unicode151()
	}
	return unicode160()
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("%s at offset %d", fmt.Sprintf(format, args...), p.at)
}

func (p *parser) more() bool { return p.at < len(p.text) }

func (p *parser) accept(s string) bool {
	if strings.HasPrefix(p.text[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

// one makes the fragment of one instruction.
func one(in instruction) fragment {
	in.next = 1
	return fragment{code: []instruction{in}, single: in.set}
}

// add appends g to f.
func (f *fragment) add(g fragment) {
	base := len(f.code)
	for _, in := range g.code {
		in.next += base
		in.other += base
		f.code = append(f.code, in)
	}
	f.single = nil
}

// either makes a choice between fragments, those that come first with priority.
func either(all []fragment) fragment {
	if len(all) == 1 {
		return all[0]
	}
	rest := 0
	for _, f := range all {
		rest += len(f.code) + 2
	}
	var out fragment
	for _, f := range all[:len(all)-1] {
		rest -= len(f.code) + 2
		out.add(one(instruction{op: opSplit, other: len(f.code) + 2}))
		out.add(f)
		skip := one(instruction{op: opNext})
		skip.code[0].next = rest - 1 // the last one has neither split nor skip
		out.add(skip)
	}
	out.add(all[len(all)-1])
	return out
}

func (p *parser) alternatives() (fragment, error) {
	if p.depth++; p.depth > 100 {
		return fragment{}, p.errorf("nesting too deep")
	}
	defer func() { p.depth-- }()
	fold := p.fold
	var all []fragment
	for {
		f, err := p.sequence()
		if err != nil {
			return f, err
		}
		all = append(all, f)
		if !p.accept("|") {
			break
		}
	}
	p.fold = fold
	return either(all), nil
}

func (p *parser) sequence() (fragment, error) {
	var f fragment
	for n := 0; p.more() && p.text[p.at] != '|' && p.text[p.at] != ')'; n++ {
		g, err := p.repeated()
		if err != nil {
			return f, err
		}
		if f.add(g); n == 0 {
			f.single = g.single
		}
		if p.size += len(g.code); len(f.code) > maxProgram || p.size > 4*maxProgram {
			return f, p.errorf("too many repetitions")
		}
	}
	return f, nil
}

// repeated parses an atom and its quantifiers.
func (p *parser) repeated() (fragment, error) {
	f, err := p.atom()
	for n := 0; err == nil && p.more(); n++ {
		least, most, ok := p.quantifier()
		if !ok {
			break
		}
		if n > 0 {
			p.size += len(f.code) // all that those before made is copied
		}
		if p.size > 4*maxProgram {
			return f, p.errorf("too many repetitions")
		}
		braces := p.text[p.at-1] == '}'
		switch {
		case braces && p.engine == oniguruma && p.accept("?"):
			return f, p.errorf("{}?")
		case p.accept("?"):
			f, err = p.repeat(f, least, most, true)
		case (!braces || p.engine != oniguruma) && p.accept("+"):
			f, err = p.possessive(f, least, most)
		default:
			f, err = p.repeat(f, least, most, false)
		}
	}
	return f, err
}

// quantifier parses * + ? {n} {n,} {,m} {n,m}; most is -1 for no limit.
func (p *parser) quantifier() (least, most int, ok bool) {
	switch {
	case p.accept("*"):
		return 0, -1, true
	case p.accept("+"):
		return 1, -1, true
	case p.accept("?"):
		return 0, 1, true
	}
	if p.text[p.at] != '{' {
		return 0, 0, false
	}
	inside, _, closed := strings.Cut(p.text[p.at+1:], "}")
	first, second, comma := strings.Cut(inside, ",")
	if !closed || first == "" && second == "" {
		return 0, 0, false
	}
	least, most = 0, -1
	var err error
	if first != "" {
		if least, err = strconv.Atoi(first); err != nil {
			return 0, 0, false
		}
	}
	if !comma {
		most = least
	} else if second != "" {
		if most, err = strconv.Atoi(second); err != nil {
			return 0, 0, false
		}
	}
	p.at += len(inside) + 2
	return least, most, true
}

func (p *parser) repeat(f fragment, least, most int, lazy bool) (fragment, error) {
	if most >= 0 && most < least || max(least, most) > maxProgram || max(least, most)*(len(f.code)+2) > maxProgram {
		return f, p.errorf("repetition {%d,%d}", least, most)
	}
	var out fragment
	for range least {
		out.add(f)
	}
	prefer := func(body, rest int) fragment {
		if lazy {
			body, rest = rest, body
		}
		return fragment{code: []instruction{{op: opSplit, next: body, other: rest}}}
	}
	if most < 0 {
		back := one(instruction{op: opNext})
		back.code[0].next = -len(f.code) - 1
		out.add(prefer(1, len(f.code)+2))
		out.add(f)
		out.add(back)
		return out, nil
	}
	for k := most - least; k > 0; k-- {
		out.add(prefer(1, k*(len(f.code)+1)))
		out.add(f)
	}
	return out, nil
}

// possessive is repeat without giving back: of one character, the longest run.
func (p *parser) possessive(f fragment, least, most int) (fragment, error) {
	if f.single == nil {
		return f, p.errorf("possessive repetition of more than one character")
	}
	stop := one(instruction{op: opLook, not: true, sub: newProgram(one(instruction{op: opChar, set: f.single}))})
	if most < 0 {
		g, err := p.repeat(f, least, most, false)
		g.add(stop)
		return g, err
	}
	g, err := p.repeat(f, least, most, false)
	if err != nil || most == least {
		return g, err
	}
	// The run has all that it may: nothing is to be asked of what follows.
	g.code[len(g.code)-1].next++
	g.add(stop)
	return g, nil
}

func (p *parser) char(s charset) fragment {
	if p.fold {
		s = s.folded()
	}
	return one(instruction{op: opChar, set: s})
}

func (p *parser) atom() (fragment, error) {
	switch c := p.text[p.at]; c {
	case '(':
		return p.group()
	case '[':
		s, err := p.class()
		if err != nil {
			return fragment{}, err
		}
		return one(instruction{op: opChar, set: s}), nil
	case '.':
		p.at++
		return one(instruction{op: opChar, set: charset{{'\n', '\n'}}.negated()}), nil
	case '$':
		p.at++
		if p.engine == oniguruma {
			return one(instruction{op: opLine}), nil
		}
		return one(instruction{op: opEnd}), nil
	case '^':
		return fragment{}, p.errorf("^ looks at the text before a match")
	case '*', '+', '?':
		return fragment{}, p.errorf("nothing to repeat")
	case '\\':
		if p.accept(`\z`) {
			return one(instruction{op: opEnd}), nil
		}
		s, isSet, err := p.escape(false)
		if err != nil || isSet {
			return one(instruction{op: opChar, set: s}), err
		}
		return p.char(s), nil
	}
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	return p.char(charset{{r, r}}), nil
}

// group parses what parentheses stand for.
func (p *parser) group() (fragment, error) {
	p.at++
	fold, look, not := p.fold, false, false
	switch {
	case p.accept("?:"):
	case p.accept("?i:"):
		p.fold = true
	case p.accept("?-i:"):
		p.fold = false
	case p.accept("?i)"):
		p.fold = true // until the group around ends
		return fragment{}, nil
	case p.accept("?="):
		look = true
	case p.accept("?!"):
		look, not = true, true
	case p.accept("?"):
		return fragment{}, p.errorf("(?%.2s", p.text[p.at:])
	}
	f, err := p.alternatives()
	p.fold = fold
	if err != nil {
		return f, err
	}
	if !p.accept(")") {
		return f, p.errorf("missing )")
	}
	if !look {
		return f, nil
	}
	for i, in := range f.code {
		if in.next <= i {
			return f, p.errorf("look-ahead of any length")
		}
	}
	return one(instruction{op: opLook, not: not, sub: newProgram(f)}), nil
}

// rubyWord is \w in Oniguruma: without the two joiners and, unless in brackets,
// with those numbers of Latin-1 that its own table of it counts in.
func rubyWord(word charset, bracketed bool) charset {
	s := word.and(charset{{0x200c, 0x200d}}.negated())
	if !bracketed {
		s = append(s, charset{{0xb2, 0xb3}, {0xb9, 0xb9}, {0xbc, 0xbe}}...).normalized()
	}
	return s
}

// escape parses a backslash and what follows, inside of brackets or not. isSet
// is false for a character.
func (p *parser) escape(bracketed bool) (s charset, isSet bool, err error) {
	p.at++
	if !p.more() {
		return nil, false, p.errorf(`\ at the end`)
	}
	c := p.text[p.at]
	p.at++
	switch c {
	case 's', 'S', 'w', 'W', 'd', 'D':
		name := map[byte]string{'s': `\s`, 'w': `\w`, 'd': "Nd"}[c|0x20]
		if s, err = p.table().property(name); err != nil {
			return s, true, err
		}
		if p.engine == oniguruma && name == `\w` {
			s = rubyWord(s, bracketed)
		}
		if c < 'a' {
			s = s.negated()
		}
		return s, true, nil
	case 'p', 'P':
		name := p.text[p.at:min(p.at+1, len(p.text))]
		if name == "{" {
			var closed bool
			if name, _, closed = strings.Cut(p.text[p.at+1:], "}"); !closed {
				return nil, true, p.errorf(`\p{`)
			}
			p.at++
			defer func() { p.at++ }()
		}
		p.at += len(name)
		bare := strings.TrimPrefix(name, "^")
		if s, err = p.table().property(bare); err == nil && (c == 'P') != (bare != name) {
			s = s.negated()
		}
		return s, true, err
	case 'n', 'r', 't', 'v', 'f', 'a', 'e':
		r := map[byte]rune{'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', 'f': '\f', 'a': '\a', 'e': 0x1b}[c]
		return charset{{r, r}}, false, nil
	case 'x', 'u', 'U':
		r, err := p.hex(c)
		return charset{{r, r}}, false, err
	}
	if c < utf8.RuneSelf && (isASCIILetter(c) || c-'0' < 10) {
		return nil, false, p.errorf(`\%c`, c)
	}
	p.at--
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	return charset{{r, r}}, false, nil
}

// hex parses the digits of \xhh, \x{h…}, \uhhhh and \u{h…}.
func (p *parser) hex(c byte) (rune, error) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	text := p.text[p.at:min(p.at+digits, len(p.text))]
	size := len(text)
	if strings.HasPrefix(text, "{") {
		text, _, _ = strings.Cut(p.text[p.at+1:], "}")
		size = len(text) + 2
	}
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil || n > unicode.MaxRune || p.at+size > len(p.text) {
		return 0, p.errorf(`\%c`, c)
	}
	p.at += size
	return rune(n), nil
}

// class parses [...], with ranges, escapes, classes inside and &&.
func (p *parser) class() (charset, error) {
	if p.depth++; p.depth > 100 {
		return nil, p.errorf("nesting too deep")
	}
	defer func() { p.depth-- }()
	p.at++
	not := p.accept("^")
	var all charset
	var left []charset // of &&
	for first := true; ; first = false {
		switch {
		case !p.more():
			return nil, p.errorf("missing ]")
		case !first && p.accept("]"):
			s := all.normalized()
			for _, l := range left {
				s = s.and(l)
			}
			if p.fold {
				s = s.folded()
			}
			if not {
				s = s.negated()
			}
			return s, nil
		case p.accept("&&"):
			left = append(left, all.normalized())
			all = nil
			continue
		case strings.HasPrefix(p.text[p.at:], "[:"):
			return nil, p.errorf("[:")
		case p.text[p.at] == '[':
			s, err := p.class()
			if err != nil {
				return nil, err
			}
			all = append(all, s...)
			continue
		}
		s, err := p.classItem()
		if err != nil {
			return nil, err
		}
		all = append(all, s...)
	}
}

// classItem parses a character, a range or an escape that is a set.
func (p *parser) classItem() (charset, error) {
	lo, isSet, err := p.classChar()
	if err != nil || isSet {
		return lo, err
	}
	if rest := p.text[p.at:]; len(rest) < 2 || rest[0] != '-' || rest[1] == ']' || rest[1] == '[' {
		return lo, nil
	}
	p.at++
	hi, isSet, err := p.classChar()
	if err == nil && (isSet || hi[0].lo < lo[0].lo) {
		err = p.errorf("bad range")
	}
	if err != nil {
		return nil, err
	}
	return charset{{lo[0].lo, hi[0].lo}}, nil
}

func (p *parser) classChar() (s charset, isSet bool, err error) {
	if p.text[p.at] == '\\' {
		return p.escape(true)
	}
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	return charset{{r, r}}, false, nil
}
