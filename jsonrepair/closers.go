package jsonrepair

// opener reads the beginning of a container.
func (e *engine) opener(t token) bool {
	p := e.pos
	if e.state == objStart || e.state == objAfter {
		// There is no key. Either the object should have ended, or this should
		// not have begun.
		if e.state == objAfter && e.stack.n > 1 && !e.stack.at(1).isObject() {
			e.insertCloser(e.valueEnd)
			e.state = arrAfter
		} else {
			e.edit(SurplusOpener, p, p+t.n, "")
			e.pos = p + t.n
			return true
		}
	}
	f := e.frameAt(p, t)
	single := f == tuple && e.parenthesized(p+t.n)
	text := f == tuple && !single && t.n == 1 && e.state != objStart && e.state != objAfter && !e.tuple(p) && !e.emptyTuple(p)
	if e.starved {
		return false
	}
	if single {
		e.edit(SurplusOpener, p, p+t.n, "")
		e.calls++
		e.pos = p + t.n
		return true
	}
	if text {
		e.beginString(p, token{quote: noQuote}, roleValue)
		return true
	}
	e.beginContainer(p, t, f)
	return true
}

// emptyTuple reports whether nothing but white space is between the parentheses
// that stand at p, and nothing belongs to them behind. It looks ahead.
func (e *engine) emptyTuple(p int) bool {
	r := e.skip(p + 1)
	if !e.has(r, ")") {
		return false
	}
	r = e.skip(r + 1)
	_, more := e.peek(r)
	t := e.classify(r)
	return !more || t.kind == tComma || t.kind == tClose
}

// frameAt is the container that an opener at p begins. It looks ahead.
func (e *engine) frameAt(p int, t token) frame {
	switch {
	case t.frame == object && e.setAt(p+t.n):
		return set
	case t.frame == array && e.keyInArray(e.skip(p+t.n)) && !e.starved && e.doubt(DoubtfulBracket, p, t.n, "the bracket stands for a brace"):
		return object
	}
	return t.frame
}

// beginContainer commits an opener.
func (e *engine) beginContainer(p int, t token, f frame) {
	e.value(p)
	if want := "[{[["[f : f+1]; t.n > 1 || e.in[p-e.base] != want[0] {
		e.edit(Bracket, p, p+t.n, want)
	}
	e.push(f, p)
	e.pos = p + t.n
	e.flush(e.pos)
	if f.isObject() {
		e.endValue(objStart, e.pos)
	} else {
		e.endValue(arrStart, e.pos)
	}
}

// parenthesized reports whether a single scalar and then a parenthesis stand at p.
// It looks ahead.
func (e *engine) parenthesized(p int) bool {
	from := e.skip(p)
	r := from
	if q, n := e.quoteAt(r); n > 0 {
		var ok bool
		if r, ok = e.stringEnd(r+n, q); !ok {
			return false
		}
	} else if r = e.wordEnd(r); r == from {
		return false
	}
	if r = e.skip(r); !e.has(r, ")") {
		return false
	}
	_, more := e.peek(e.skip(r + 1))
	t := e.classify(e.skip(r + 1))
	return !more || t.kind == tComma || t.kind == tClose
}

// setAt reports whether what follows a brace is a set: at least two strings or
// numbers between commas and then a brace, without a colon. It looks ahead.
func (e *engine) setAt(p int) bool {
	for n := 0; ; n++ {
		p = e.skip(p)
		if q, w := e.quoteAt(p); w > 0 {
			var ok bool
			if p, ok = e.stringEnd(p+w, q); !ok {
				return false
			}
		} else {
			from := p
			if p = e.wordEnd(p); p == from {
				return false
			}
		}
		p = e.skip(p)
		switch c, _ := e.peek(p); {
		case c == ',':
			p++
		case c == '}' || c == ']':
			return n > 0
		default:
			return false
		}
	}
}

// A closer of the run that is being aligned.
type closing struct {
	at, n int
	frame frame
}

// maxRun is the most closers that are aligned together.
const maxRun = 16

// closers reads a closer. It is judged together with those behind it: where they
// all fit, they are taken as they are; where one does not, or where the document
// would end and yet goes on, the whole run is aligned with the open containers at
// the least cost.
func (e *engine) closers(t token) bool {
	if len(e.plan) == 0 {
		run, next := e.closerRun()
		fits := !e.starved && e.fits(run, next)
		var what follow
		if !fits && !e.starved {
			what = e.following(next)
		}
		if e.starved {
			return false
		}
		if fits {
			e.plan = append(e.plan[:0], make([]alignment, len(run))...)
		} else {
			e.plan = e.align(run, next, what)
		}
	}
	op, p := e.plan[0], e.pos
	e.plan = e.plan[1:]
	for range op.inserts {
		e.insertCloser(p)
	}
	if op.drop {
		if t.frame == tuple {
			e.calls = max(0, e.calls-1)
		}
		e.edit(SurplusCloser, p, p+t.n, "")
		e.pos = p + t.n
		return true
	}
	e.close(closing{p, t.n, t.frame})
	return true
}

// fits reports whether a run of closers is that of the open containers, and the
// document goes on if and only if it may.
func (e *engine) fits(run []closing, next int) bool {
	for i, c := range run {
		if i >= e.stack.n || !closes(c.frame, e.stack.at(i)) {
			return false
		}
	}
	return (len(run) < e.stack.n || e.endsAt(next) || len(run) == 1 && e.anotherOpens(next)) && e.inPlace(run, next)
}

// closerRun returns the closers from pos on, with nothing but white space and
// surplus commas between them, and what follows.
func (e *engine) closerRun() (run []closing, next int) {
	e.look(e.pos)
	run = e.runs[:0]
	defer func() { e.runs = run }()
	for p := e.pos; ; {
		t := e.classify(p)
		if _, ok := e.peek(p); !ok || t.kind != tClose || len(run) == maxRun {
			return run, next
		}
		run = append(run, closing{p, t.n, t.frame})
		next = e.skip(p + t.n)
		p = next
		for e.has(p, ",") {
			p = e.skip(p + 1)
		}
	}
}

// closes reports whether a closer is that of a frame.
func closes(written, f frame) bool { return written == f || f == set && written != tuple }

// endsAt reports whether a document may well have ended before p: the input
// does, or goes on with what cannot belong to it.
func (e *engine) endsAt(p int) bool {
	if _, ok := e.peek(p); !ok {
		return true
	}
	t := e.classify(p)
	return t.kind != tComma && t.kind != tQuote && t.kind != tClose
}

// anotherOpens reports whether a comma and another container stand at p, which a
// document of its own begins with.
func (e *engine) anotherOpens(p int) bool {
	if !e.has(p, ",") {
		return false
	}
	t := e.classify(e.skip(p + 1))
	return t.kind == tOpen && t.frame != tuple
}

// close commits a closer that fits the innermost container, or stands for the
// one that does.
func (e *engine) close(c closing) {
	e.settle(c.at)
	f := e.stack.at(0)
	e.pop()
	want := string(f.closer())
	switch {
	case !closes(c.frame, f):
		e.edit(WrongCloser, c.at, c.at+c.n, want)
	case c.n > 1 || f > object:
		e.edit(Bracket, c.at, c.at+c.n, want)
	}
	e.pos = c.at + c.n
	e.flush(e.pos)
	e.endValue(e.after(), e.pos)
	e.closed = f.isObject()
	if e.stack.n == 0 {
		e.endDocument(e.pos)
	}
}

// settle gives a key without a value one and drops a trailing comma, so that the
// container can end before p.
func (e *engine) settle(p int) {
	if e.state == objKey || e.state == objValue {
		e.insertNull(p)
	}
	e.dropComma(SurplusComma)
}

// insertCloser ends the innermost container at an offset, behind the last value.
func (e *engine) insertCloser(p int) {
	e.settle(p)
	f := e.stack.at(0)
	e.pop()
	at := max(e.valueEnd, e.done)
	e.edit(MissingCloser, at, at, string(f.closer()))
	e.flush(at)
	e.endValue(e.after(), at)
	if e.stack.n == 0 {
		e.endDocument(at)
	}
}

// follow is what stands behind a run of closers.
type follow uint8

const (
	fEnd     follow = iota // the end of the input
	fKey                   // a key and its colon
	fElement               // another value
	fOther                 // text
)

func (e *engine) following(p int) follow {
	e.limit = p + e.window
	if _, ok := e.peek(p); !ok {
		return fEnd
	}
	comma := false
	for e.has(p, ",") {
		comma = true
		p = e.skip(p + 1)
	}
	c, ok := e.peek(p)
	if !ok {
		return fEnd
	}
	switch e.keyAt(p, comma) { // a bare key is one behind a comma only
	case yes:
		return fKey
	case unknown:
		if !comma {
			return fOther
		}
	}
	switch t := e.classify(p); {
	case comma && t.kind == tQuote && e.stack.n > 0 && e.noColon(p, t):
		return fKey
	case t.kind == tOpen && t.frame != tuple:
		return fElement
	case comma && (t.kind == tQuote || e.wordByte(p) > 0 || c == '-'):
		return fElement
	}
	return fOther
}

// alignment is what is done at one closer: containers that end before it, and
// whether it is dropped.
type alignment struct {
	inserts int
	drop    bool
}

// Costs of an alignment. An edit costs 4.
const (
	costEdit     = 4
	costWrong    = 5  // a closer of the wrong kind: a missing one is likelier
	costLeftOpen = 3  // a container at the end of the input, to be closed there
	costMisplace = 12 // what follows cannot stand where it would
	costSeparate = 6  // what follows becomes a document of its own
)

// align finds the cheapest way to read a run of closers: each is taken for that
// of the innermost container, be it of its kind or not, or dropped, and
// containers may end before it. The cost of a way counts what follows, too.
func (e *engine) align(run []closing, next int, what follow) []alignment {
	depth := min(e.stack.n, len(run)+8)
	const far = 1 << 20
	// cost[i][d] is that of run[i:] when d containers have ended.
	cost := make([][]int, len(run)+1)
	best := make([][]alignment, len(run))
	cost[len(run)] = make([]int, depth+1)
	for d := range depth + 1 {
		cost[len(run)][d] = e.costAfter(d, what) + e.costNext(next, d)
	}
	for i := len(run) - 1; i >= 0; i-- {
		cost[i], best[i] = make([]int, depth+1), make([]alignment, depth+1)
		for d := range depth + 1 {
			cost[i][d] = far
			for ins := 0; d+ins < depth && ins <= 8; ins++ {
				c := ins*costEdit + cost[i+1][d+ins+1] + e.costLine(run[i], d+ins)
				if !closes(run[i].frame, e.stack.at(d+ins)) {
					c += costWrong
					if ins > 0 {
						continue // end fewer and take it for the last of them
					}
				}
				if c < cost[i][d] {
					cost[i][d], best[i][d] = c, alignment{inserts: ins}
				}
			}
			drop := costEdit
			if run[i].frame == tuple {
				drop = 1 // of a call whose name was dropped
			}
			if c := drop + cost[i+1][d]; c < cost[i][d] {
				cost[i][d], best[i][d] = c, alignment{drop: true}
			}
		}
	}
	var ops []alignment
	for i, d := 0, 0; i < len(run); i++ {
		op := best[i][d]
		ops = append(ops, op)
		if !op.drop {
			d += op.inserts + 1
		}
	}
	return ops
}

// costAfter is the cost of what follows a run when d containers have ended.
func (e *engine) costAfter(d int, what follow) int {
	left := e.stack.n - d
	switch what {
	case fEnd:
		return left * costLeftOpen
	case fKey:
		if left == 0 || !e.stack.at(d).isObject() {
			return costMisplace
		}
	case fElement:
		switch {
		case left == 0:
			return costSeparate
		case e.stack.at(d).isObject():
			return costMisplace
		}
	}
	return 0
}
