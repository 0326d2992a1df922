package grammar

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Bounds on a compiled grammar.
const (
	maxProgram = 1 << 18 // instructions and their branches
	maxNesting = 500     // of groups, and of values in a schema
	maxSource  = 4 << 20 // bytes
)

// A program is a byte-level context-free grammar as a nondeterministic machine
// with a stack of return addresses.
type program struct {
	code    []instr
	sets    []byteSet
	entries []int32 // by rule: where it begins
	root    int32

	// classOf maps bytes that no set tells apart to one number.
	classOf [256]uint8
	classes int
	example [256]byte // of a class: one of its bytes

	nullable []bool    // by rule
	order    []int32   // by rule: a rule comes before those that it calls before any byte
	opening  []opening // by order
}

// An opening is what a rule can do before its first byte.
type opening struct {
	reads []int32 // instructions that read a byte
	calls []callSite
}

type callSite struct {
	rule, next int32
}

type instr struct {
	op   instrOp
	set  int32   // of iRead
	rule int32   // of iCall
	next int32   // of iRead and iCall
	alts []int32 // of iBranch
}

type instrOp uint8

const (
	iRead instrOp = iota
	iBranch
	iCall
	iReturn
)

type byteSet [4]uint64

func (s *byteSet) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *byteSet) has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }

type compiler struct {
	*program
	src     *source
	setIDs  map[byteSet]int32
	size    int
	bodies  []pendingBody
	rulePos []int // by rule, those made here too
}

// pendingBody is a part that was made a rule of its own, to be called often.
type pendingBody struct {
	rule int
	body *expr
}

// compile makes a Grammar of rules.
func compile(src *source) (*Grammar, error) {
	c := &compiler{program: &program{root: int32(src.root)}, src: src, setIDs: map[byteSet]int32{}}
	c.entries = make([]int32, len(src.rules))
	for i, r := range src.rules {
		c.rulePos = append(c.rulePos, r.pos)
		c.bodies = append(c.bodies, pendingBody{i, r.body})
	}
	for i := 0; i < len(c.bodies); i++ {
		b := c.bodies[i]
		end, err := c.emit(instr{op: iReturn}, b.body)
		if err != nil {
			return nil, err
		}
		if c.entries[b.rule], err = c.gen(b.body, end); err != nil {
			return nil, err
		}
	}
	productive := c.solve(true)
	if !productive[c.entries[c.root]] {
		return nil, src.place(src.rules[src.root].pos, ErrEmpty)
	}
	c.prune(productive)
	c.findNullable()
	if err := c.findOrder(); err != nil {
		return nil, err
	}
	c.findClasses()
	return newGrammar(c.program), nil
}

func (c *compiler) emit(in instr, from *expr) (int32, error) {
	if c.size += 1 + len(in.alts); c.size > maxProgram {
		return 0, c.src.place(from.pos, fmt.Errorf("%w: more than %d parts after repetitions are written out", ErrTooLarge, maxProgram))
	}
	c.code = append(c.code, in)
	return int32(len(c.code) - 1), nil
}

// gen emits instructions that match e and go on at next, and returns the first.
func (c *compiler) gen(e *expr, next int32) (int32, error) {
	var err error
	switch e.op {
	case opLiteral:
		for i := len(e.literal) - 1; i >= 0; i-- {
			var set byteSet
			set.add(e.literal[i])
			if next, err = c.read(set, next, e); err != nil {
				return 0, err
			}
		}
		return next, nil
	case opClass:
		return c.class(e, next)
	case opSequence:
		for _, sub := range slices.Backward(e.subs) {
			if next, err = c.gen(sub, next); err != nil {
				return 0, err
			}
		}
		return next, nil
	case opChoice:
		alts := make([]int32, len(e.subs))
		for i, sub := range e.subs {
			if alts[i], err = c.gen(sub, next); err != nil {
				return 0, err
			}
		}
		return c.branch(alts, e)
	case opRepeat:
		return c.repeat(e, next)
	}
	return c.emit(instr{op: iCall, rule: int32(e.rule), next: next}, e)
}

func (c *compiler) read(set byteSet, next int32, from *expr) (int32, error) {
	id, ok := c.setIDs[set]
	if !ok {
		id = int32(len(c.sets))
		c.sets = append(c.sets, set)
		c.setIDs[set] = id
	}
	return c.emit(instr{op: iRead, set: id, next: next}, from)
}

func (c *compiler) branch(alts []int32, from *expr) (int32, error) {
	if len(alts) == 1 {
		return alts[0], nil
	}
	return c.emit(instr{op: iBranch, alts: alts}, from)
}

func (c *compiler) repeat(e *expr, next int32) (int32, error) {
	copies := max(e.min, e.max)
	if copies > maxProgram {
		return 0, c.src.place(e.pos, fmt.Errorf("%w: %d repetitions, at most %d can be counted", ErrTooLarge, copies, maxProgram))
	}
	body := e.subs[0]
	if copies > 1 && worthRule(body) {
		body = &expr{op: opCall, rule: len(c.entries), pos: e.pos}
		c.entries = append(c.entries, 0)
		c.rulePos = append(c.rulePos, e.pos)
		c.bodies = append(c.bodies, pendingBody{body.rule, e.subs[0]})
	}
	must := e.min
	if e.max == unlimited {
		loop, err := c.emit(instr{op: iBranch, alts: make([]int32, 2)}, e)
		if err != nil {
			return 0, err
		}
		first, err := c.gen(body, loop)
		if err != nil {
			return 0, err
		}
		c.code[loop].alts[0], c.code[loop].alts[1] = first, next
		if next = loop; must > 0 {
			next = first
			must--
		}
	}
	after := next
	for range e.max - e.min { // none if unlimited
		first, err := c.gen(body, next)
		if err != nil {
			return 0, err
		}
		if next, err = c.branch([]int32{first, after}, e); err != nil {
			return 0, err
		}
	}
	for range must {
		var err error
		if next, err = c.gen(body, next); err != nil {
			return 0, err
		}
	}
	return next, nil
}

// worthRule reports whether copies of e are better calls. All that can hold a
// repetition is, so that those within each other do not multiply.
func worthRule(e *expr) bool {
	switch e.op {
	case opLiteral:
		return len(e.literal) > 2
	case opClass:
		return len(e.ranges) > 0 && e.ranges[len(e.ranges)-1] >= 0x80
	}
	return e.op != opCall
}

// class emits the bytes of code points: a branch for each group of lead bytes
// that go on alike.
func (c *compiler) class(e *expr, next int32) (int32, error) {
	var alts []int32
	memo := map[string]int32{}
	sizes := [...]struct {
		first, last rune
		tail        int
		lead        byte
	}{{0, 0x7f, 0, 0}, {0x80, 0x7ff, 1, 0xc0}, {0x800, 0xffff, 2, 0xe0}, {0x10000, 0x10ffff, 3, 0xf0}}
	for _, s := range sizes {
		ranges := clip(e.ranges, s.first, s.last, 0)
		some, err := c.units(ranges, s.tail, s.lead, next, memo, e)
		if err != nil {
			return 0, err
		}
		alts = append(alts, some...)
	}
	return c.branch(alts, e)
}

// units emits the first of tail+1 bytes of each code point in ranges, and those
// after it. The first byte is base plus the bits above those of the tail.
func (c *compiler) units(ranges []rune, tail int, base byte, next int32, memo map[string]int32, e *expr) ([]int32, error) {
	bits := 6 * tail
	var sets []byteSet
	var nexts []int32
	for i := 0; i < len(ranges); i += 2 {
		for unit := ranges[i] >> bits; unit <= ranges[i+1]>>bits; unit++ {
			if i > 0 && ranges[i-1]>>bits == unit {
				continue // came with the range before
			}
			to := next
			if tail > 0 {
				var err error
				rest := clip(ranges[i:], unit<<bits, (unit+1)<<bits-1, unit<<bits)
				if to, err = c.tail(rest, tail-1, next, memo, e); err != nil {
					return nil, err
				}
			}
			at := slices.Index(nexts, to)
			if at < 0 {
				at = len(nexts)
				sets, nexts = append(sets, byteSet{}), append(nexts, to)
			}
			sets[at].add(base + byte(unit))
		}
	}
	alts := make([]int32, len(sets))
	for i := range sets {
		var err error
		if alts[i], err = c.read(sets[i], nexts[i], e); err != nil {
			return nil, err
		}
	}
	return alts, nil
}

// tail emits continuation bytes, once for equal ranges.
func (c *compiler) tail(ranges []rune, tail int, next int32, memo map[string]int32, e *expr) (int32, error) {
	key := []byte{byte(tail)}
	for _, r := range ranges {
		key = binary.AppendUvarint(key, uint64(r))
	}
	if at, ok := memo[string(key)]; ok {
		return at, nil
	}
	alts, err := c.units(ranges, tail, 0x80, next, memo, e)
	if err != nil {
		return 0, err
	}
	at, err := c.branch(alts, e)
	memo[string(key)] = at
	return at, err
}

// clip gives the parts of ranges from first to last, less base.
func clip(ranges []rune, first, last, base rune) []rune {
	var out []rune
	for i := 0; i < len(ranges) && ranges[i] <= last; i += 2 {
		if lo, hi := max(ranges[i], first), min(ranges[i+1], last); lo <= hi {
			out = append(out, lo-base, hi-base)
		}
	}
	return out
}
