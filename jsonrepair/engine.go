package jsonrepair

import (
	"slices"
	"time"
)

// The parts of memory that no option bounds.
const (
	defaultWindow = 256
	maxHeld       = 64 << 10 // bytes read and neither committed nor dropped
	maxDropped    = 4 << 10  // bytes of one edit that drops text around the JSON
	lookBehind    = 16       // bytes before pos that a look may see
	kept          = 64       // bytes before done that are kept
	minWindow     = 32
	maxFindings   = 1000
)

// state is what stands before the next token.
type state uint8

const (
	rootStart state = iota // nothing
	rootValue              // nothing, and a document begins that is a scalar
	rootAfter              // a document
	objStart               // {
	objKey                 // a key, which is held
	objValue               // a key and its colon, which are held
	objAfter               // a member
	arrStart               // [
	arrAfter               // an element
)

type mode uint8

const (
	tokens mode = iota
	inString
	inLineComment
	inBlockComment
	inProse
	stopped
)

// engine is the automaton. Offsets are those of the input. What is before done
// has been committed to out; between done and pos tokens have been read whose
// fate depends on what follows, with their edits in held; pos is read next.
//
// A step looks ahead first and acts then. Where a look passes the end of what
// has arrived, starved is set, the step does nothing, and is made again when
// there is more: so no decision depends on how the input is cut into pieces.
type engine struct {
	o      Options
	window int
	hold   int  // maxHeld
	noFast bool // for tests

	in   []byte
	base int // offset of in[0]
	eof  bool

	starved bool
	limit   int // offset at which a look ends

	pos, done int
	held      []change
	out       []byte // what has been committed and not taken
	counts    bool   // it is only counted: the edits say what it is
	log       editLog
	findings  []Finding
	err       *Error

	mode   mode
	state  state
	stack  stack
	levels []level
	str    str

	runs []closing   // memory for closerRun
	plan []alignment // of the closers that come next

	comma    int  // first comma since the last value; none
	gone     bool // it was committed before what follows was known
	valueEnd int  // behind the last value or opener
	colon    int  // of the held key; none

	calls     int  // parentheses whose openers were dropped
	numberEnd int  // behind the last number
	closed    bool // the last value was an object
	equals    bool // a member had = for its colon
	implied   int  // 1: the outermost container has no brace and needs none
	keyStart  int  // offset of the held key
	prose     int  // where the text that is being dropped begins
	enclosed  bool
	docs      []doc     // documents that have begun
	open      []Open    // what was dropped because it had not ended
	cut       bool      // the input broke off
	doubted   int       // places that can be read in two ways
	doubts    []Finding // the first of them
	flip      int       // the doubt to read in the other way; 0: none
	deadline  time.Time
	steps     int

	taken    int // bytes of output that have been taken
	recorded int // edits so far
	scanned  int // how far a long token has been read already
}

const none = -1

// doc is a document of the input.
type doc struct {
	start, end int // offsets
	from, to   int // of what was committed, over all
}

func newEngine(o Options) *engine {
	e := &engine{o: o, window: o.Window, hold: maxHeld, comma: none, colon: none, prose: none}
	if o.hold > 0 {
		e.hold = o.hold
	}
	e.noFast = o.noFast
	if e.window <= 0 {
		e.window = defaultWindow
	}
	e.window = max(e.window, minWindow)
	if o.MaxTime > 0 {
		e.deadline = time.Now().Add(o.MaxTime)
	}
	return e
}

// run goes as far as the input allows.
func (e *engine) run() {
	for e.err == nil && e.mode != stopped && e.step() {
		if e.steps++; e.steps%4096 == 0 && !e.deadline.IsZero() && time.Now().After(e.deadline) {
			e.fail(e.pos, "the time limit was reached", "raise MaxTime")
		}
	}
}

func (e *engine) fail(at int, cause, tried string) {
	if e.err == nil {
		e.err = &Error{Offset: at, Cause: cause, Tried: tried}
	}
	e.mode = stopped
}

// end is the offset behind what has arrived.
func (e *engine) end() int { return e.base + len(e.in) }

// look begins a look from p on.
func (e *engine) look(p int) { e.starved, e.limit = false, p+e.window }

// peek returns the byte at p, or false at the end of what may be looked at: the
// end of the input, or that of the window.
func (e *engine) peek(p int) (byte, bool) {
	switch {
	case p >= e.limit:
		return 0, false
	case p < e.end():
		return e.in[p-e.base], true
	}
	if !e.eof {
		e.starved = true
	}
	return 0, false
}

// atEnd reports whether p is the end of the input, which is known to be that, and
// in view.
func (e *engine) atEnd(p int) bool { return e.eof && p >= e.end() && p < e.limit }

// before returns the byte before p, or 0.
func (e *engine) before(p int) byte {
	if p <= e.base {
		return 0
	}
	return e.in[p-1-e.base]
}

func (e *engine) text(from, to int) string { return string(e.in[from-e.base : to-e.base]) }

// change is an edit that is held.
type change struct {
	kind     Kind
	from, to int
	after    string
}

// edit holds a change of the bytes from..to, after those that are held there; an
// insertion stands before a change of the bytes behind it.
func (e *engine) edit(k Kind, from, to int, after string) {
	i := len(e.held)
	for i > 0 && (e.held[i-1].from > from || e.held[i-1].from == from && from == to && e.held[i-1].to > from) {
		i--
	}
	if i > 0 && i == len(e.held) && after == "" {
		if last := &e.held[i-1]; last.kind == k && last.to == from && last.after == "" && last.to > last.from {
			last.to = to // more of the same
			return
		}
	}
	e.held = slices.Insert(e.held, i, change{k, from, to, after})
}

// insert holds an insertion before what is held at the same place.
func (e *engine) insert(k Kind, at int, text string) {
	at = max(at, e.done)
	i := 0
	for i < len(e.held) && e.held[i].from < at {
		i++
	}
	e.held = slices.Insert(e.held, i, change{k, at, at, text})
}

// flush commits the input up to an offset, edited.
func (e *engine) flush(to int) {
	n := 0
	for _, c := range e.held {
		if c.from > to || c.from == to && c.to > c.from {
			break
		}
		n++
		e.emit(c.from)
		if e.counts {
			e.taken += len(c.after)
		} else {
			e.out = append(e.out, c.after...)
		}
		e.done = c.to
		e.record(c)
	}
	e.held = e.held[:copy(e.held, e.held[n:])]
	if to > e.done {
		e.emit(to)
		e.done = to
	}
}

// emit commits the input from done to an offset as it is.
func (e *engine) emit(to int) {
	if e.counts {
		e.taken += to - e.done
	} else {
		e.out = append(e.out, e.in[e.done-e.base:to-e.base]...)
	}
}

func (e *engine) record(c change) {
	if c.kind != SeveralValues && string(e.source(c.from, c.to)) == c.after {
		return // nothing has changed
	}
	e.log.add(c.kind, c.from, e.source(c.from, c.to), c.after)
	if e.recorded++; e.o.MaxEdits > 0 && e.recorded > e.o.MaxEdits {
		e.fail(c.from, "more edits are needed than allowed", "raise MaxEdits")
	}
}

func (e *engine) find(k Kind, at, n int, text string) {
	if len(e.findings) < maxFindings {
		e.findings = append(e.findings, Finding{k, at, n, text})
	}
}

// drop forgets what is held and drops the bytes from done to an offset.
func (e *engine) drop(k Kind, to int) {
	e.held = e.held[:0]
	if to > e.done {
		e.edit(k, e.done, to, "")
		e.flush(to)
	}
}

// seen is how many findings and doubts there are.
func (e *engine) seen() [3]int { return [3]int{e.doubted, len(e.doubts), len(e.findings)} }

// unsee forgets those of a step that is made again.
func (e *engine) unsee(n [3]int) {
	e.doubted, e.doubts, e.findings = n[0], e.doubts[:n[1]], e.findings[:n[2]]
}

// doubt notes that a place can be read in two ways and reports whether the
// second is wanted.
func (e *engine) doubt(k Kind, at, n int, text string) (second bool) {
	e.doubted++
	if len(e.doubts) < maxReadings {
		e.doubts = append(e.doubts, Finding{k, at, n, text})
	}
	e.find(k, at, n, text)
	return e.doubted == e.flip
}
