package toolcall

import (
	"bytes"
	"slices"
	"strings"
)

// lines is where in Markdown the text stands.
type lines struct {
	bol    bool // nothing but white space is before pos on its line
	fence  byte // the character of the fence that is open, or 0
	length int  // of that fence
	code   int  // backticks that opened the code span that is open
}

// verdict is what a look at a marker gives.
type verdict uint8

const (
	no   verdict = iota // it is text
	wait                // that depends on what follows
	yes                 // a call begins, and state says how to go on
)

// stepText passes on text up to what may be a call.
func stepText(m *machine) bool {
	p := m.pos
	c, ok := m.peek(p)
	if !ok {
		return false
	}
	l := &m.lines
	switch {
	case l.bol && (c == '`' || c == '~'):
		return m.stepFence(p, c)
	case c == '`':
		n := m.runLength(p, c)
		if m.starved {
			return false
		}
		if l.fence == 0 {
			if l.code == n {
				l.code = 0
			} else if l.code == 0 {
				l.code = n
			}
		}
		m.text(p + n)
		return true
	case c == '\n':
		m.text(p + 1)
		l.bol, l.code = true, 0
		return true
	case l.fence == 0 && l.code == 0 && !m.full():
		switch m.look(p, c) {
		case wait:
			return false
		case yes:
			return true
		}
	case l.fence != 0 && c == '<' && m.has(p, "<tool_call>"):
		m.find(FencedCall, p, len("<tool_call>"), "a call in a code fence is text")
	}
	if m.starved {
		return false
	}
	l.bol = l.bol && isSpace(c)
	m.text(m.plain(p + 1))
	return true
}

// docsPerCall is how many beginnings of calls are read for each call that is allowed.
const docsPerCall = 8

// full reports whether no more calls are read.
func (m *machine) full() bool {
	return len(m.calls) >= m.o.MaxCalls || m.docs >= docsPerCall*m.o.MaxCalls
}

// plain returns the offset of the next byte from p on that may begin something.
func (m *machine) plain(p int) int {
	if m.lines.bol {
		return p
	}
	for ; p < m.end(); p++ {
		c := m.in[p-m.base]
		if c == '\n' || c == '`' || len(m.marks[c]) > 0 {
			break
		}
	}
	return p
}

// look reports whether a call begins at p.
func (m *machine) look(p int, c byte) verdict {
	for _, op := range m.marks[c] {
		if !m.has(p, op.mark) {
			if m.starved {
				return wait
			}
			continue
		}
		if op.bol && !m.lines.bol {
			continue
		}
		switch v := op.enter(m, op, p, p+len(op.mark)); {
		case m.starved:
			return wait
		case v == yes:
			return yes
		}
	}
	if p == 0 && isWord(c) && len(m.tools) > 0 {
		return m.bareName(p)
	}
	if m.lines.bol && (c == '{' || c == '[') {
		v := m.enterBare(p, c)
		if m.starved {
			return wait
		}
		if v == no {
			m.inert = inert{}
			m.state = stepInert
			return yes
		}
		return v
	}
	return no
}

// runLength is how many times c stands at p; more than maxBlank are not counted.
func (m *machine) runLength(p int, c byte) int {
	n := 0
	for ; n < maxBlank; n++ {
		if d, ok := m.peek(p + n); !ok || d != c {
			break
		}
	}
	return n
}

// stepFence reads a run of fence characters at the beginning of a line.
func (m *machine) stepFence(p int, c byte) bool {
	l := &m.lines
	n := m.runLength(p, c)
	if m.starved {
		return false
	}
	switch {
	case n < 3 && c == '`' && l.fence == 0:
		l.code = n
	case n < 3:
	case l.fence == 0:
		span := m.spanOnLine(p+n, c)
		if m.starved {
			return false
		}
		if span {
			l.code = n
		} else {
			l.fence, l.length = c, n
		}
	case l.fence == c && n >= l.length:
		q := p + n
		for ; ; q++ {
			if d, ok := m.peek(q); !ok || d != ' ' && d != '\t' && d != '\r' || q-p > maxBlank {
				break
			}
		}
		d, ok := m.peek(q)
		if m.starved {
			return false
		}
		if !ok || d == '\n' {
			l.fence = 0
		}
	}
	l.bol = false
	m.text(p + n)
	return true
}

// spanOnLine reports whether the line goes on with a backtick, so that those before p
// do not open a fence (CommonMark 0.31, §4.5).
func (m *machine) spanOnLine(p int, c byte) bool {
	for limit := p + maxBlank; c == '`' && p < limit; p++ {
		d, ok := m.peek(p)
		if !ok || d == '\n' {
			break
		}
		if d == c {
			return true
		}
	}
	return false
}

// inert reads a JSON value that is text, so that nothing in its strings counts as
// a call.
type inert struct {
	depth int
	open  bool // a string is
	esc   bool
}

// stepInert passes on a JSON value at the beginning of a line. It ends with the value,
// or where that turns out not to be JSON.
func stepInert(m *machine) bool {
	v := &m.inert
	p := m.pos
	for ; p < m.end(); p++ {
		c := m.in[p-m.base]
		switch {
		case v.open && v.esc:
			v.esc = false
		case v.open && c == '\\':
			v.esc = true
		case v.open && c == '"':
			v.open = false
		case v.open && c != '\n':
		case v.open:
			return m.endInert(p)
		case c == '"':
			v.open = true
		case c == '{' || c == '[':
			v.depth++
		case c == '}' || c == ']':
			if v.depth--; v.depth <= 0 {
				return m.endInert(p + 1)
			}
		case bytes.IndexByte(jsonBytes, c) < 0:
			return m.endInert(p)
		}
	}
	m.text(p)
	return false
}

// jsonBytes may stand in JSON outside of strings, besides quotes and brackets.
var jsonBytes = []byte(" \t\r\n,:+-.0123456789eEtrufalsn")

func (m *machine) endInert(p int) bool {
	m.lines.bol = p > m.base && m.in[p-1-m.base] == '\n'
	m.text(p)
	m.state = stepText
	return true
}

// stepBetween reads what stands between calls: white space and end markers are
// removed if they belong to the calls.
func stepBetween(m *machine) bool {
	b := m.after
	p := m.blanks(m.pos)
	if m.starved {
		return false
	}
	if s := m.hasAny(p, b.trailers); s != "" && !m.starved {
		m.take(ToolCall, p+len(s))
		return true
	}
	if m.starved {
		return false
	}
	if m.trial.on {
		return m.settle(p)
	}
	next, found := m.nextCall(p)
	switch {
	case m.starved:
		return false
	case found:
		if m.b != nil && m.b.format == b.format {
			m.b.trailers = union(m.b.trailers, b.trailers)
		}
		m.take(Separator, next)
		return true
	}
	m.state = stepText
	m.lines.bol = bytes.IndexByte(m.source(m.pos, p), '\n') >= 0 || m.lines.bol
	m.text(p)
	return true
}

// nextCall returns where another call begins: at p, or behind a comma or semicolon
// there.
func (m *machine) nextCall(p int) (int, bool) {
	c, ok := m.peek(p)
	if ok && (c == ',' || c == ';') {
		p = m.blanks(p + 1)
		c, ok = m.peek(p)
	}
	if !ok || m.starved || m.full() {
		return p, false
	}
	from, bol := m.pos, m.lines.bol
	m.pos, m.lines.bol = p, true
	v := m.lookAgain(p, c)
	m.pos, m.lines.bol = from, bol
	return p, v == yes
}

// union returns the elements of both lists.
func union(a, b []string) []string {
	a = slices.Clip(a)
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// lookAgain reports whether another call with a marker begins at p.
func (m *machine) lookAgain(p int, c byte) verdict {
	for _, op := range m.marks[c] {
		if m.has(p, op.mark) {
			if v := op.enter(m, op, p, p+len(op.mark)); v == yes || m.starved {
				return v
			}
		}
		if m.starved {
			return wait
		}
	}
	if c == '{' || c == '[' {
		return m.enterBare(p, c)
	}
	return no
}

// begin takes the text up to an offset as the beginning of a call in block b, and
// goes on with a state.
func (m *machine) begin(b *block, to int, state func(*machine) bool) verdict {
	if m.starved {
		return wait
	}
	b.start, b.to, b.state = -1, to, state
	m.b = b
	m.state = stepBegin
	return yes
}

// beginJSON begins a call whose JSON begins at an offset.
func (m *machine) beginJSON(b *block, at int) verdict {
	b.described = !b.args
	return m.begin(b, at, stepJSON)
}

// stepBegin takes the beginning of a call.
func stepBegin(m *machine) bool {
	b := m.b
	b.start = m.pos
	if (b.bare != notBare || b.described) && !m.trial.on {
		m.trial.on, m.trial.late, m.trial.from = true, b.bare == late, m.pos
		m.trial.marked = b.bare == notBare
		m.trial.calls, m.trial.finds, m.trial.spans = len(m.calls), len(m.findings), len(m.spans)
	}
	m.take(ToolCall, b.to)
	m.state = b.state
	return true
}

// cut removes a call that breaks off before its name ends, and of which the text is read
// up to an offset. It counts at the beginning of a line, and where the marker follows the
// text directly: behind a blank or a quote the text may speak of it.
func (m *machine) cut(p int) verdict {
	ends := m.atEnd(m.blanks(p))
	if m.starved {
		return wait
	}
	direct := false
	if m.pos > m.base {
		direct = strings.IndexByte(" \t\r\n`'\"(", m.in[m.pos-1-m.base]) < 0
	}
	if !ends || !m.lines.bol && !direct {
		return no
	}
	m.state = func(m *machine) bool {
		m.find(CutCall, m.pos, m.end()-m.pos, "the call breaks off before its name")
		m.take(CutCall, m.end())
		m.state = stepText
		return false
	}
	return yes
}
