package split

import (
	"sync"
	"unicode/utf8"
)

// program is a regular expression compiled for simulation of all its
// alternatives at once (R. Cox, "Regular Expression Matching: the Virtual
// Machine Approach"): time is linear in the text, the match is that of a
// backtracking engine, and the simulation reads no further than some
// alternative could go on, so that it knows what the match depends on.
type program struct {
	code []instruction
	pool sync.Pool // of *threads
}

// maxAhead is how far (in bytes) alternatives may go on beyond a match of less
// priority: a pattern like a.*b|a could read all the text for every letter.
const maxAhead = 4096

type operation uint8

const (
	opChar  operation = iota // a character of set, then next
	opSplit                  // next, or other with less priority
	opNext                   // next
	opLook                   // next if sub matches here (or not, if not)
	opEnd                    // next at the end of the text
	opLine                   // next at the end of the text or before a line feed
	opMatch
)

type instruction struct {
	op          operation
	next, other int
	set         charset
	not         bool
	sub         *program
}

// looks reports whether an instruction asserts something of the text after it.
func (in instruction) looks() bool { return in.op == opLook || in.op == opEnd || in.op == opLine }

// threads are the alternatives that are alive, by priority.
type threads struct {
	now, then queue
}

type queue struct {
	list []thread
	seen []uint32 // the step in which an instruction was added last
	step uint32
}

// thread is the instruction that an alternative is at, and where it began.
type thread struct{ pc, start int }

func (p *program) newThreads() *threads {
	if t, ok := p.pool.Get().(*threads); ok {
		return t
	}
	n := len(p.code)
	return &threads{queue{seen: make([]uint32, n)}, queue{seen: make([]uint32, n)}}
}

func (q *queue) clear() {
	q.list = q.list[:0]
	if q.step++; q.step == 0 {
		clear(q.seen)
		q.step = 1
	}
}

// run gives the first match in text[from:], start < 0 for none, and the offset of
// the last character that decided that. If anchored, it must begin at from. A
// match at from must not be empty, unless anchored.
func (p *program) run(text []byte, from int, anchored bool) (start, end, look int) {
	t := p.newThreads()
	defer p.pool.Put(t)
	start, look = -1, from
	t.now.clear()
	for i := from; ; {
		if start < 0 && (i == from || !anchored) {
			look = max(look, p.add(&t.now, thread{0, i}, text, i))
		}
		if len(t.now.list) == 0 && (start >= 0 || anchored) {
			return start, end, look
		}
		look = max(look, i)
		r, n := rune(-1), 0
		if i < len(text) {
			r, n = decode(text[i:])
		}
		t.then.clear()
		for _, th := range t.now.list {
			in := &p.code[th.pc]
			if in.op == opMatch {
				if i == from && th.start == i && !anchored {
					continue // empty
				}
				start, end = th.start, i
				break // the others have less priority
			}
			if n > 0 && in.set.has(r) {
				look = max(look, p.add(&t.then, thread{in.next, th.start}, text, i+n))
			}
		}
		if n == 0 || start >= 0 && i > end+maxAhead {
			return start, end, look
		}
		i += n
		t.now, t.then = t.then, t.now
	}
}

// decode gives the first character of b, U+FFFF for a byte that is not UTF-8:
// that is in no class but negated ones.
func decode(b []byte) (rune, int) {
	if b[0] < utf8.RuneSelf {
		return rune(b[0]), 1
	}
	r, n := utf8.DecodeRune(b)
	if n == 1 {
		r = 0xffff
	}
	return r, n
}

// add adds a thread and all it leads to without a character, and gives the
// offset of the last character that assertions looked at.
func (p *program) add(q *queue, th thread, text []byte, i int) (look int) {
	if q.seen[th.pc] == q.step {
		return 0
	}
	q.seen[th.pc] = q.step
	in := &p.code[th.pc]
	switch in.op {
	case opSplit:
		look = p.add(q, thread{in.next, th.start}, text, i)
		return max(look, p.add(q, thread{in.other, th.start}, text, i))
	case opNext:
		return p.add(q, thread{in.next, th.start}, text, i)
	case opLook:
		at, _, l := in.sub.run(text, i, true)
		look = l
		if (at >= 0) == in.not {
			return look
		}
	case opEnd:
		look = i
		if i < len(text) {
			return look
		}
	case opLine:
		look = i
		if i < len(text) && text[i] != '\n' {
			return look
		}
	default:
		q.list = append(q.list, th)
		return 0
	}
	return max(look, p.add(q, thread{in.next, th.start}, text, i))
}
