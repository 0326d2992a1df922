package toolcall

import (
	"slices"

	"github.com/unfray/unfray/jsonrepair"
)

// bare says whether a form has no marker.
type bareness uint8

const (
	notBare bareness = iota
	early            // at the beginning of the text: it counts once the function is known
	late             // behind other text: it counts only if nothing follows
)

// block is a call, or several in one pair of markers.
type block struct {
	format Format
	bare   bareness
	id     string
	name   string // the function, where it stands before the arguments
	nameAt int
	// ends close the call, and are removed with it. trailers may come behind.
	ends, trailers []string
	// stops are markers besides ends that do not stand in arguments.
	stops  []string
	fence  bool // the JSON is in a code fence
	args   bool // the JSON is the arguments, not a description of the call
	quoted bool // a string is the usual form of the arguments
	// The JSON describes calls. Without a name in it it is text.
	described bool

	start, to int
	state     func(*machine) bool
	docs      int
}

// region is the extent of a JSON document in the text.
type region struct {
	start  int
	root   byte // the first byte
	p      int  // read so far
	fed    int  // given to doc so far
	limit  int  // where a step ends
	depth  int
	quote  byte // of the string that is open, or 0
	sig    byte // the last byte outside of strings that is no white space
	marked bool // a marker ended it
	doc    *doc
}

// How many bytes of JSON are read before they are looked at.
const (
	maxStep      = 2 << 10
	maxTrialStep = 128
)

// stepJSON reads the JSON at pos.
func stepJSON(m *machine) bool {
	if m.r == nil {
		m.r = &region{start: m.pos, root: m.in[m.pos-m.base], p: m.pos, fed: m.pos}
		m.docs++
		m.r.doc = newDoc(m, m.b, m.pos)
		m.b.docs++
	}
	r := m.r
	r.limit = r.p + maxStep
	if m.trial.on {
		r.limit = r.p + maxTrialStep
	}
	done := m.scan(r)
	if m.trial.on {
		// What is decided must not depend on how much has arrived.
		m.feed(min(r.p, max(r.fed, m.trial.from+m.o.MaxHold)))
		if m.refused() {
			return true
		}
		if m.trial.on && r.fed < r.p {
			if !m.trial.marked {
				m.reject(m.trial.from + m.o.MaxHold)
				return true
			}
			m.accept()
		}
	}
	m.feed(r.p)
	m.take(ToolCall, r.p)
	switch {
	case done:
		r.doc.close(r.marked)
		if m.refused() || m.unread() {
			return true
		}
		m.r = nil
		m.state = stepTail
		return true
	case r.p < m.end() && !m.starved:
		return true
	case m.starved || !m.eof:
		return false
	}
	r.doc.close(false)
	if m.refused() || m.unread() {
		return true
	}
	m.r = nil
	m.finish()
	return true
}

// feed hands the region up to an offset to its doc.
func (m *machine) feed(to int) {
	m.r.doc.write(m.source(m.r.fed, to))
	m.r.fed = to
}

// scan reads on in a region and reports whether it has ended.
func (m *machine) scan(r *region) bool {
	m.starved = false
	for r.p < min(m.end(), r.limit) {
		m.looks++
		c := m.in[r.p-m.base]
		if r.quote != 0 {
			if !m.scanString(r, c) {
				return false
			}
			if r.marked || r.quote == 0 && r.depth == 0 {
				return true
			}
			continue
		}
		if c == '<' || c == '[' || c == '`' {
			if s := m.stop(r.p); m.starved {
				return false
			} else if s {
				r.marked = true
				return true
			}
		}
		if c == '{' && m.nextBegins(r) {
			r.marked = true
			return true
		}
		if m.starved {
			return false
		}
		switch c {
		case '"':
			if r.p == r.start || !isWord(m.in[r.p-1-m.base]) {
				r.quote = c
			}
		case '\'':
			if r.sig == '{' || r.sig == '[' || r.sig == ',' || r.sig == ':' {
				r.quote = c
			}
		case '{', '[':
			r.depth++
		case '}', ']':
			r.depth--
		}
		if !isSpace(c) {
			r.sig = c
		}
		if c == '}' || c == ']' {
			if r.depth <= 0 {
				if v := m.scanClosed(r); v != no {
					return v == yes
				}
				continue
			}
		}
		r.p++
	}
	return false
}

// nextBegins reports whether another description of a call begins in the one that is
// read, which lacks its brace: where a key would have to stand.
func (m *machine) nextBegins(r *region) bool {
	if !m.b.described || r.depth != 1 || r.sig != '}' && r.sig != ']' || r.root != '{' {
		return false
	}
	q := m.blanks(r.p + 1)
	if c, _ := m.peek(q); c != '"' && c != '\'' {
		return false
	}
	key, _ := m.name(q + 1)
	return slices.Contains(bareKeys, key)
}

// scanString reads on in a string and reports whether it could.
func (m *machine) scanString(r *region, c byte) bool {
	switch {
	case c == '\\':
		if _, ok := m.peek(r.p + 1); m.starved {
			return false
		} else if ok {
			r.p++
		}
	case c == r.quote:
		ends := m.quoteEnds(r.p + 1)
		if m.starved {
			return false
		}
		if ends {
			r.quote, r.sig = 0, c
		}
	case c == '<' || c == '[' || c == '`':
		s := m.stopInString(r.p)
		if m.starved {
			return false
		}
		if s {
			r.marked = true
			return true
		}
	}
	r.p++
	return true
}

// quoteEnds reports whether what stands at p may stand behind a string.
func (m *machine) quoteEnds(p int) bool {
	q := m.blanks(p)
	c, ok := m.peek(q)
	switch {
	case m.starved:
		return false
	case !ok, q-p >= maxBlank, c == ',', c == ':', c == '}', c == ']', c == ';':
		return true
	case c == '"':
		for ; p < q; p++ {
			if m.in[p-m.base] == '\n' {
				return true
			}
		}
	}
	return m.stop(q)
}

// stop reports whether a marker at p ends the JSON.
func (m *machine) stop(p int) bool {
	b := m.b
	if m.hasAny(p, b.ends) != "" || m.hasAny(p, b.stops) != "" {
		return true
	}
	if b.fence && m.has(p, "```") {
		return true
	}
	return false
}

// stopInString reports whether a marker at p ends the JSON although a string is open:
// where the text ends behind it, or goes on as no string does.
func (m *machine) stopInString(p int) bool {
	b := m.b
	s := m.hasAny(p, b.ends)
	if s == "" {
		s = m.hasAny(p, b.stops)
	}
	if s == "" || m.starved {
		return false
	}
	q := p + len(s)
	c, ok := m.peek(q)
	if m.starved {
		return false
	}
	if !ok || c == '\n' {
		return true
	}
	q = m.blanks(q)
	return m.hasAny(q, b.stops) != "" || m.hasAny(q, b.trailers) != "" || m.atEnd(q)
}

// maxClosers is how many surplus brackets are looked at behind a document.
const maxClosers = 16

// scanClosed reads the bracket that closes the document: yes if that has ended.
// Surplus brackets belong to it; where a member follows behind a comma the bracket
// was surplus.
func (m *machine) scanClosed(r *region) verdict {
	end := r.p + 1
	q, closers := end, 0
	for ; closers < maxClosers; closers++ {
		q = m.blanks(q)
		c, ok := m.peek(q)
		if m.starved {
			return wait
		}
		if !ok || c != '}' && c != ']' {
			break
		}
		q++
		end = q
	}
	if c, ok := m.peek(q); ok && c == ',' && m.b.bare == notBare {
		q = m.blanks(q + 1)
		c, ok = m.peek(q)
		if m.starved {
			return wait
		}
		if ok && c == '"' {
			r.p, r.depth, r.sig = q, 1, ','
			return no
		}
	}
	r.p, r.depth = end, 0
	return yes
}

// stepTail reads what stands behind a document: its end markers, or the next one.
func stepTail(m *machine) bool {
	b := m.b
	p := m.blanks(m.pos)
	c, ok := m.peek(p)
	if m.starved {
		return false
	}
	if b.fence {
		if m.has(p, "```") {
			m.take(ToolCall, p+3)
			b.fence = false
			return true
		}
		if m.starved {
			return false
		}
	}
	if s := m.hasAny(p, b.ends); s != "" {
		m.take(ToolCall, p+len(s))
		m.finish()
		return true
	}
	if m.starved {
		return false
	}
	q := p
	if ok && (c == ';' || c == ',') {
		q = m.blanks(p + 1)
		c, ok = m.peek(q)
		if m.starved {
			return false
		}
	}
	if ok && (c == '{' || c == '[' && !b.args && m.opensObject(q)) && b.docs < m.o.MaxCalls && b.bare == notBare {
		if m.starved {
			return false
		}
		if b.args {
			m.again()
		}
		m.take(ToolCall, q)
		m.state = stepJSON
		return true
	}
	if m.starved {
		return false
	}
	if end := m.junk(p); m.starved {
		return false
	} else if end > p {
		m.find(jsonrepair.Junk, p, end-p, "text between a call and its end marker was dropped")
		m.take(ToolCall, end)
		m.finish()
		return true
	}
	if len(b.ends) > 0 && ok {
		m.find(MissingEnd, m.pos, 0, "the call's end marker is missing")
	}
	m.finish()
	return true
}

// maxJunk is how many bytes may stand between a call and its end marker.
const maxJunk = 64

// junk returns the offset behind the end marker that follows p after a few words, or p.
func (m *machine) junk(p int) int {
	for q := p; q < p+maxJunk && len(m.b.ends) > 0; q++ {
		c, ok := m.peek(q)
		if !ok {
			break
		}
		if c != '<' {
			continue
		}
		if s := m.hasAny(q, m.b.ends); s != "" {
			return q + len(s)
		}
		break
	}
	return p
}

// opensObject reports whether an object stands in the bracket at p.
func (m *machine) opensObject(p int) bool {
	c, _ := m.peek(m.blanks(p + 1))
	return c == '{'
}

// finish ends the block.
func (m *machine) finish() {
	b := m.b
	if n := len(m.calls); n > 0 && m.calls[n-1].Start >= b.start {
		m.calls[n-1].End = m.pos
	}
	m.endArguments(b)
	m.after, m.b = b, nil
	m.lines.bol = false
	m.state = stepBetween
}

// again is called where other arguments follow those of a call whose name stands
// before them. Empty ones are a placeholder.
func (m *machine) again() {
	c := m.calls[len(m.calls)-1]
	if c.empty() && c.Problem == "" {
		m.find(Placeholder, c.Start, c.End-c.Start, "{} before the arguments was dropped")
		m.b.id, m.b.docs = c.ID, 0
		m.calls = m.calls[:len(m.calls)-1]
		return
	}
	m.find(SeveralArguments, m.pos, 0, "several arguments for one name were taken for several calls")
}

// endArguments drops a placeholder behind the arguments, and ends the calls.
func (m *machine) endArguments(b *block) {
	n := len(m.calls)
	if n > 1 && m.calls[n-1].follow && m.calls[n-1].Start >= b.start && m.calls[n-1].empty() {
		c := m.calls[n-1]
		m.find(Placeholder, c.Start, c.End-c.Start, "{} behind the arguments was dropped")
		m.calls[n-2].End = c.End
		m.calls = m.calls[:n-1]
	}
	for i := len(m.calls) - 1; i >= 0 && !m.calls[i].done; i-- {
		m.calls[i].done = true
	}
}

// refused makes a trial text if its JSON turned out to be no call.
func (m *machine) refused() bool {
	d := m.r.doc
	if !m.trial.on || !d.w.refused {
		return false
	}
	m.reject(d.w.refusedAt)
	return true
}

// unread makes what stands behind a marker text if there is no name in it, unless it
// breaks off.
func (m *machine) unread() bool {
	t, r := &m.trial, m.r
	if !t.on || !t.marked {
		return false
	}
	if r.doc.breaksOff() || r.doc.nothing() {
		m.accept()
		return false
	}
	t.on = false
	m.spans = m.spans[:t.spans]
	m.pos = t.from
	m.text(r.p)
	m.b, m.r, m.after = nil, nil, nil
	m.lines.bol = false
	m.state = stepText
	return true
}

// believe is called where the function of a trial's call is known and its arguments
// begin: one at the beginning of the text counts.
func (m *machine) believe() {
	if m.trial.on && !m.trial.late {
		m.accept()
	}
}

// known reports whether a form without a marker may call a function.
func (m *machine) known(name string) bool {
	if len(m.tools) == 0 {
		return true // its format is listed
	}
	_, ok := m.tools[name]
	return ok
}

// accept makes the calls of a trial count.
func (m *machine) accept() {
	for _, c := range m.calls[m.trial.calls:] {
		c.hidden = false
	}
	m.trial.on = false
}

// reject makes a trial text, which was read up to an offset. That must not depend
// on how much has arrived.
func (m *machine) reject(at int) {
	t := &m.trial
	t.on = false
	t.spent = max(t.spent, at)
	m.calls, m.findings, m.spans = m.calls[:t.calls], m.findings[:t.finds], m.spans[:t.spans]
	m.pos = t.from
	m.b, m.r, m.py, m.after = nil, nil, nil, nil
	m.inert = inert{}
	m.state = stepInert
}

// settle ends a trial at p, behind its last call: it counts if that ends the text.
func (m *machine) settle(p int) bool {
	c, ok := m.peek(p)
	switch {
	case m.starved:
		return false
	case p-m.trial.from > m.o.MaxHold:
	case !ok:
		if m.trial.calls == len(m.calls) {
			break
		}
		m.accept()
		return true
	case c == '{' || c == '[':
		if v := m.enterBare(p, c); v == yes {
			m.take(Separator, p)
			return true
		}
		if m.starved {
			return false
		}
	}
	m.reject(p)
	return true
}
