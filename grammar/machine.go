package grammar

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// Bounds on one state and on what is kept of all.
const (
	maxLive  = 1 << 12 // places in a state
	maxSteps = 1 << 15 // to compute a state
	maxKept  = 1 << 20 // words that kept states and frames take
)

// endOfText is the return address below the root rule.
const endOfText = -1

// A frame is what a call returns to. Calls of a rule at one place of the text
// share a frame, so that the number of frames does not follow the number of
// readings. A frame does not change.
type frame struct {
	id    uint64 // from 1
	edges []edge
}

type edge struct {
	ret int32
	up  *frame // nil at endOfText
}

// A place is an instruction that reads a byte, and where its rule returns to.
type place struct {
	pc    int32
	frame *frame
}

// A state is all places that a text can have led to. It does not change, but
// for what is kept of its successors and mask.
type state struct {
	places    []place
	accepting bool
	age       uint32                  // of the machine when this was made
	next      []atomic.Pointer[state] // by class of bytes
	mask      atomic.Pointer[keptMask]
}

// A machine computes states as they are asked for and keeps them. Equal states
// are the same one, until more than maxKept is kept: then the machine forgets
// all and begins anew. Goroutines share it.
type machine struct {
	*program
	dead, over *state // over stands for one with too many readings
	start      atomic.Pointer[state]

	mu        sync.Mutex
	age       uint32
	kept      int
	maskWords int
	frames    map[string]*frame
	states    map[string]*state
	frameID   uint64
	scratch
}

// scratch is the working memory of compute.
type scratch struct {
	work    []place
	seen    map[place]struct{}
	found   []place
	called  [][]edge // by order of the rule
	waiting []uint64 // the rules in called, one bit each
	key     []byte
	steps   int
}

func newMachine(p *program) *machine {
	m := &machine{program: p, dead: &state{}, over: &state{}}
	m.seen = map[place]struct{}{}
	m.called = make([][]edge, len(p.entries))
	m.waiting = make([]uint64, len(p.entries)/64+1)
	m.frames, m.states = map[string]*frame{}, map[string]*state{}
	return m
}

// first gives the state before any byte.
func (m *machine) first() *state {
	if s := m.start.Load(); s != nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.start.Load(); s != nil {
		return s
	}
	m.reset()
	m.call(m.root, edge{endOfText, nil})
	s := m.compute(m.nullable[m.root])
	m.start.Store(s)
	return s
}

// step gives the state after a byte of a class, and the work that it took.
func (m *machine) step(s *state, class uint8) (next *state, steps int) {
	if s.next == nil {
		return s, 0 // dead and over
	}
	if next := s.next[class].Load(); next != nil {
		return next, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if next := s.next[class].Load(); next != nil {
		return next, 0
	}
	m.reset()
	b := m.example[class]
	for _, p := range s.places {
		in := &m.code[p.pc]
		if m.sets[in.set].has(b) {
			m.work = append(m.work, place{in.next, p.frame})
		}
	}
	next = m.compute(false)
	if s.age == m.age {
		s.next[class].Store(next)
	}
	return next, m.steps + len(s.places)
}

func (m *machine) reset() {
	m.work, m.found, m.steps = m.work[:0], m.found[:0], 0
	if len(m.seen) > 1<<10 {
		m.seen = map[place]struct{}{}
	}
	clear(m.seen)
}

// compute makes the state of the places in work and the calls that wait. First
// go the ways that need no new frame. Then rules are begun in their order, so
// that all who call one at this place of the text are known when its frame is
// made. A rule that returns at once is not followed there: whoever calls it has
// also gone on without it.
func (m *machine) compute(accepting bool) *state {
	for len(m.work) > 0 {
		p := m.work[len(m.work)-1]
		m.work = m.work[:len(m.work)-1]
		if m.steps++; m.steps > maxSteps {
			return m.giveUp()
		}
		if _, ok := m.seen[p]; ok {
			continue
		}
		m.seen[p] = struct{}{}
		switch in := &m.code[p.pc]; in.op {
		case iRead:
			m.found = append(m.found, p)
		case iBranch:
			for _, to := range in.alts {
				m.work = append(m.work, place{to, p.frame})
			}
		case iReturn:
			for _, e := range p.frame.edges {
				if e.ret == endOfText {
					accepting = true
					continue
				}
				m.work = append(m.work, place{e.ret, e.up})
			}
		case iCall:
			m.callFrom(callSite{in.rule, in.next}, p.frame)
			if m.nullable[in.rule] {
				m.work = append(m.work, place{in.next, p.frame})
			}
		}
	}
	for i := range m.waiting {
		for m.waiting[i] != 0 {
			at := i*64 + bits.TrailingZeros64(m.waiting[i])
			m.waiting[i] &= m.waiting[i] - 1
			f := m.internFrame(m.called[at])
			m.called[at] = m.called[at][:0]
			for _, pc := range m.opening[at].reads {
				m.found = append(m.found, place{pc, f})
			}
			for _, c := range m.opening[at].calls {
				m.callFrom(c, f)
			}
			if m.steps += len(m.opening[at].reads) + 1; m.steps > maxSteps {
				return m.giveUp()
			}
		}
	}
	return m.internState(accepting)
}

// callFrom notes a call. One at the end of its rule returns to where the rule
// does, so that a list takes no frame for each of its members.
func (m *machine) callFrom(c callSite, f *frame) {
	if m.code[c.next].op == iReturn {
		m.call(c.rule, f.edges...)
		return
	}
	m.call(c.rule, edge{c.next, f})
}

func (m *machine) call(rule int32, edges ...edge) {
	at := m.order[rule]
	m.called[at] = append(m.called[at], edges...)
	m.waiting[at/64] |= 1 << (at % 64)
	m.steps += len(edges)
}

func (m *machine) giveUp() *state {
	for i := range m.called {
		m.called[i] = nil
	}
	clear(m.waiting)
	m.work = m.work[:0]
	return m.over
}

func (f *frame) order() uint64 {
	if f == nil {
		return 0
	}
	return f.id
}

func (m *machine) internFrame(edges []edge) *frame {
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.ret, b.ret), cmp.Compare(a.up.order(), b.up.order()))
	})
	edges = slices.Compact(edges)
	m.key = m.key[:0]
	for _, e := range edges {
		m.key = binary.AppendVarint(m.key, int64(e.ret))
		m.key = binary.AppendUvarint(m.key, e.up.order())
	}
	if f := m.frames[string(m.key)]; f != nil {
		return f
	}
	m.frameID++
	f := &frame{m.frameID, slices.Clone(edges)}
	m.frames[string(m.key)] = f
	m.kept += 8 + 2*len(edges) + len(m.key)/4
	return f
}

func (m *machine) internState(accepting bool) *state {
	slices.SortFunc(m.found, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.pc, b.pc), cmp.Compare(a.frame.id, b.frame.id))
	})
	m.found = slices.Compact(m.found)
	switch {
	case len(m.found) == 0 && !accepting:
		return m.dead
	case len(m.found) > maxLive:
		return m.over
	}
	m.key = append(m.key[:0], 0)
	if accepting {
		m.key[0] = 1
	}
	for _, p := range m.found {
		m.key = binary.AppendUvarint(m.key, uint64(p.pc))
		m.key = binary.AppendUvarint(m.key, p.frame.id)
	}
	if s := m.states[string(m.key)]; s != nil {
		return s
	}
	if m.kept > maxKept {
		// States made from here on do not lead back to older ones.
		m.age++
		m.kept, m.maskWords = 0, 0
		m.frames, m.states = map[string]*frame{}, map[string]*state{}
		m.start.Store(nil)
	}
	s := &state{places: slices.Clone(m.found), accepting: accepting, age: m.age}
	s.next = make([]atomic.Pointer[state], m.classes)
	m.states[string(m.key)] = s
	m.kept += 16 + 2*len(s.places) + m.classes + len(m.key)/4
	return s
}
