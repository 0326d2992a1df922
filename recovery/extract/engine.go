package extract

// A run is a part of a segment that is committed. It begins where the one before
// it ends.
type run struct {
	kind            Kind
	part            Part
	segment         int
	end             int // bytes of the whole text
	info            string
	quotes, columns int
	line            fenceLine
	given           bool // by a Scanner
}

// An engine is the automaton. It commits each byte once, in order, when it is
// decided what the byte is part of; what is looked at to decide lies in e.b.
type engine struct {
	look
	base  int // offset of b[0]
	pos   int // in b: what is before is committed
	marks *marks
	runs  []run
	last  run // the last one, also where runs is empty

	hold      bool // a closing tag may still make all before it reasoning
	unopened  int  // for so many bytes
	unwrapped bool // Options.unwrapped

	mode   uint8 // of prose, reasoning and fences
	prose  prose
	tag    int // of the reasoning that is open
	fence  fence
	before byte // the byte before pos, 0 at the beginning
}

const (
	inProse uint8 = iota
	inReasoning
	inFence
)

// prose is what is known of the prose before e.pos.
type prose struct {
	fresh    bool // nothing of the answer has come
	thought  bool // reasoning has
	start    bool // a line begins here
	indent   int  // spaces since the line began; -1 behind anything else
	prev     byte // the byte before
	end      byte // the last that is no space
	filled   bool // the line has more than white space
	above    byte // the last that is no space of the line before, 0 of a blank one
	ticks    int  // backticks that opened inline code
	run      int  // backticks just before
	json     track
	odd      bool      // quotation marks in the line
	quoted   bool      // the answer begins with a quotation mark that is not closed
	mentions []mention // of each tag
	wrapper  int8      // index+1 in wrappers of the tag around the answer
	framed   bool      // a head of harmony has come
	toTool   bool      // the last one is addressed to a tool
}

// A mention counts the opening tags that opened nothing. The closing tag of each is
// text too: of one that is followed by something any, of one that is spoken of, as
// in "<think> tags", only one inside a line.
type mention struct{ pairs, spoken uint16 }

func (m *mention) add(pair bool) {
	if pair {
		m.pairs = min(m.pairs+1, 1000)
	} else {
		m.spoken = min(m.spoken+1, 1000)
	}
}

// take reports whether a closing tag belongs to one of them.
func (m *mention) take(lineStart bool) bool {
	switch {
	case m.pairs > 0:
		m.pairs--
	case m.spoken > 0 && !lineStart:
		m.spoken--
	default:
		return false
	}
	return true
}

func newEngine(o Options) *engine {
	e := &engine{marks: o.marks(), unopened: o.Unopened, unwrapped: o.unwrapped}
	e.last.segment = -1
	e.prose = prose{fresh: true, start: true, mentions: make([]mention, len(e.marks.tags))}
	e.hold = o.Unopened > 0 && len(e.marks.tags) > 0
	if o.Opened && len(e.marks.tags) > 0 {
		e.hold = false
		e.openReasoning(e.marks.all)
	}
	return e
}

func (e *engine) run() {
	e.starved = false
	for !e.starved && e.pos < len(e.b) {
		switch e.mode {
		case inProse:
			e.stepProse()
		case inReasoning:
			e.stepReasoning()
		default:
			e.stepFence()
		}
	}
}

// holding reports whether what is committed may still become reasoning.
func (e *engine) holding() bool {
	if e.hold && (e.base+e.pos > e.unopened || e.eof && e.pos >= len(e.b)) {
		e.hold = false
	}
	return e.hold
}

// commit says what the bytes up to p, in b, are part of.
func (e *engine) commit(kind Kind, part Part, p int) {
	end := e.base + p
	if p > e.pos {
		e.before = e.b[p-1]
	}
	e.pos = p
	if end == e.last.end && part != Closing {
		return
	}
	r := run{kind: kind, part: part, segment: e.last.segment, end: end}
	if r.segment < 0 || kind != e.last.kind || part < e.last.part || part == e.last.part && part != Body {
		r.segment++
	}
	if n := len(e.runs); n > 0 && r.segment == e.last.segment && part == e.last.part {
		e.runs[n-1].end, e.runs[n-1].given = end, false
		e.last.end = end
		return
	}
	e.runs = append(e.runs, r)
	e.last = r
}

// asProse commits up to p as prose.
func (e *engine) asProse(p int) { e.commit(Prose, Body, p) }

// maxSegments is how many segments a text is parted into; the rest of it is prose.
const maxSegments = 50_000

// stepProse reads prose until something else begins or more text is needed.
func (e *engine) stepProse() {
	p := &e.prose
	i := e.pos
	if e.last.segment >= maxSegments {
		e.asProse(len(e.b))
		return
	}
	for i < len(e.b) {
		if p.start {
			if e.lineStart(i) {
				return
			}
			if e.starved {
				break
			}
			p.start, p.indent, p.ticks, p.run = false, 0, 0, 0
		}
		if i = e.skip(i); i >= len(e.b) {
			break
		}
		c := e.b[i]
		json := p.json.active()
		switch {
		case json && (p.json.inString() || p.indent < 0 || !e.marks.first[c]):
		case e.marks.first[c], c == '{', c == '[', c == 0xef, p.fresh && c > ' ':
			if e.special(i, c) {
				return
			}
		}
		n := 1
		if json && !e.starved {
			n = p.json.step(&e.look, i)
		}
		if e.starved {
			break
		}
		for ; n > 0; n-- {
			p.take(e.b[i])
			i++
		}
	}
	e.asProse(i)
}

// skip passes what means nothing in prose, from i on, and notes it.
func (e *engine) skip(i int) int {
	p := &e.prose
	if p.run > 0 || p.indent >= 0 || p.fresh || p.json.active() && !p.json.inString() {
		return i
	}
	from := i
	if p.json.active() {
		if p.json.skip {
			return i
		}
		for i < len(e.b) && !endsText[e.b[i]] {
			i++
		}
	} else {
		for i < len(e.b) && !e.marks.stop[e.b[i]] {
			i++
		}
	}
	for k := i; k > from; k-- {
		if c := e.b[k-1]; c > ' ' {
			p.end, p.filled = c, true
			break
		}
	}
	if i > from {
		p.prev = e.b[i-1]
	}
	return i
}

// endsText are bytes that mean something in a string of JSON.
var endsText = [256]bool{'"': true, '\'': true, '`': true, '\\': true, '&': true, 0xe2: true, '\n': true}

// take notes a byte of prose.
func (p *prose) take(c byte) {
	if c == '`' {
		p.run++
	} else if p.run > 0 {
		if p.ticks == 0 {
			p.ticks = p.run
		} else if p.ticks == p.run {
			p.ticks = 0
		}
		p.run = 0
	}
	switch {
	case c == '\n':
		if p.above = 0; p.filled {
			p.above = p.end
		}
		p.start, p.quoted, p.odd, p.filled = true, false, false, false
	case c == ' ' && p.indent >= 0:
		p.indent++
	case c > ' ':
		if c == '"' && (p.fresh || p.prev != '\\') {
			p.quoted, p.odd = p.fresh, !p.odd
		}
		p.indent, p.end, p.fresh, p.filled = -1, c, false, true
	}
	p.prev = c
}

// code reports whether the next byte is inside inline code.
func (p *prose) code() bool {
	if p.run > 0 {
		return p.ticks != p.run
	}
	return p.ticks > 0
}

// plain reports whether a tag may stand here: not in a string, in code, or behind
// a quotation mark.
func (p *prose) plain() bool {
	return !p.quoted && !p.code() && p.prev != '"' && p.prev != '\'' && p.prev != '`'
}

// behind notes that a tag ended here: what follows is like the beginning of a
// line.
func (p *prose) behind() {
	p.start, p.indent, p.prev, p.end, p.ticks, p.run, p.quoted, p.odd = true, 0, 0, 0, 0, 0, false, false
	p.json.reset()
}

// special looks at a byte that may begin something, and begins it.
func (e *engine) special(i int, c byte) bool {
	p := &e.prose
	if e.beginJSON(i, c) {
		return true
	}
	if e.starved || !e.marks.first[c] && !p.fresh {
		return false
	}
	if e.marks.harmony >= 0 && c == '<' && e.head(i) {
		return true
	}
	if e.starved {
		return false
	}
	k, n := e.find(e.marks.openers[c], i)
	if n > 0 && !e.starved {
		if e.opens(i+n, k) {
			e.asProse(i)
			e.hold = false
			e.commit(Reasoning, Opening, i+n)
			e.openReasoning(k.tag)
			return true
		}
		next, ok := e.at(i + n)
		if !e.starved {
			p.mentions[k.tag].add(ok && (isWord(next) || next == '\n'))
		}
		return false
	}
	if e.starved {
		return false
	}
	if k, n = e.find(e.marks.closers[c], i); n > 0 && !e.starved {
		return e.stray(i, n, k)
	}
	return !e.starved && c == '<' && !e.unwrapped && e.wrapped(i)
}

// beginJSON begins to follow JSON at i.
func (e *engine) beginJSON(i int, c byte) bool {
	p := &e.prose
	if c != '{' && c != '[' && c != 0xef || p.json.active() || p.quoted || p.code() {
		return false
	}
	s, n := e.structAt(i)
	if s != '{' && s != '[' {
		return false
	}
	loose := p.indent >= 0
	if v := e.begins(i, loose); e.starved || v != sure && !(v == weak && loose) {
		return false
	}
	p.json.reset()
	p.json.structure(s)
	p.indent, p.end, p.fresh = -1, s, false
	p.prev = s
	e.asProse(i + n)
	return true
}

// opens reports whether the tag that ends before next opens reasoning there.
func (e *engine) opens(next int, k mark) bool {
	p := &e.prose
	if !p.plain() {
		return false
	}
	t := e.marks.tags[k.tag]
	if t.Open == bare {
		c, ok := e.at(next)
		return p.fresh && ok && ('A' <= c && c <= 'Z' || c >= 0x80)
	}
	switch {
	case p.fresh, t.Place == Anywhere:
		return true
	case t.Place == AtStart:
		return false
	case 0 <= p.indent && p.indent <= 3:
		return true
	}
	c, ok := e.at(next)
	return ok && !p.odd && (isWord(c) || c == '\n') && (p.end == '.' || p.end == '!' || p.end == '?')
}

// openReasoning begins reasoning that the given tag marks.
func (e *engine) openReasoning(tag int) {
	e.mode, e.tag = inReasoning, tag
}

// closeReasoning ends it at p, where its closing tag ends.
func (e *engine) closeReasoning(p int) {
	e.commit(Reasoning, Closing, p)
	e.mode = inProse
	e.prose.behind()
	e.prose.thought, e.prose.fresh = true, true
}

// stepReasoning looks for the end of reasoning.
func (e *engine) stepReasoning() {
	stop := e.marks.stops[e.tag]
	for i := e.pos; i < len(e.b); i++ {
		if !stop[e.b[i]] {
			continue
		}
		_, n := e.find(e.marks.ends[e.tag], i)
		if n > 0 && !e.starved && !e.quotedAt(i, n) && !e.starved {
			e.commit(Reasoning, Body, i)
			e.closeReasoning(i + n)
			return
		}
		for _, s := range e.marks.until[e.tag] {
			if !e.starved && e.has(i, s) {
				e.commit(Reasoning, Body, i)
				e.closeReasoning(i)
				return
			}
		}
		if e.starved {
			e.commit(Reasoning, Body, i)
			return
		}
	}
	e.commit(Reasoning, Body, len(e.b))
}

// quotedAt reports whether the n bytes at i stand between two equal marks, as a
// tag that is spoken of does.
func (e *engine) quotedAt(i, n int) bool {
	before := e.before
	if i > e.pos {
		before = e.b[i-1]
	}
	if before != '`' && before != '"' && before != '\'' {
		return false
	}
	c, ok := e.at(i + n)
	return ok && c == before
}

// stray deals with a closing tag that nothing has opened, or a frame.
func (e *engine) stray(i, n int, k mark) bool {
	p := &e.prose
	switch {
	case k.tag >= 0 && p.mentions[k.tag].take(p.indent >= 0):
		return false
	case !p.plain():
		return false
	case k.tag < 0:
		e.mark(i, n)
		return true
	}
	if p.indent < 0 && p.odd {
		return false // "…</think>…"
	}
	if p.indent < 0 && (p.prev == ' ' || p.prev == '(') {
		c, ok := e.at(i + n)
		if e.starved || ok && !isWord(c) && c != '\n' && c != '{' && c != '[' && c != '<' {
			return false // "the </think> tag"
		}
	}
	e.asProse(i)
	if e.hold && !p.thought && e.base+i+n <= e.unopened {
		e.last = run{kind: Reasoning, part: Body, end: e.base + i}
		e.runs = append(e.runs[:0], e.last)
		if e.last.end == 0 {
			e.runs, e.last.segment = e.runs[:0], -1
		}
	}
	e.hold = false
	e.closeReasoning(i + n)
	return true
}

// mark commits the n bytes at i as a marker.
func (e *engine) mark(i, n int) {
	fresh := e.prose.fresh
	e.asProse(i)
	e.commit(Marker, Body, i+n)
	e.prose.behind()
	e.prose.fresh = fresh
}

// wrapped looks for a tag around the answer.
func (e *engine) wrapped(i int) bool {
	p := &e.prose
	for w, name := range wrappers {
		open := p.wrapper == 0
		if open && !(p.fresh && p.thought) || !open && int(p.wrapper) != w+1 {
			continue
		}
		if n := e.markAt(mark{text: name, name: true, open: open}, i); n > 0 && !e.starved {
			p.wrapper = 0
			if open {
				p.wrapper = int8(w + 1)
			}
			e.mark(i, n)
			return true
		}
	}
	return false
}
