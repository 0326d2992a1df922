package toolcall

import (
	"bytes"
	"slices"

	"github.com/unfray/unfray/jsonrepair"
)

// Bounds of looks ahead, in bytes.
const (
	maxBlank = 256 // white space between the parts of a call
	maxName  = 256
	kept     = 8 // bytes before pos that are kept
)

// machine is the automaton. Offsets are those of the text. What is before pos has
// been dealt with: passed on as text, or taken as a part of a call.
//
// A step looks ahead first and acts then. Where a look passes the end of what has
// arrived, starved is set, the step does nothing, and is made again when there is
// more: so no decision depends on how the text is cut into pieces.
type machine struct {
	o       Options
	tools   map[string]*schema
	enabled map[Format]bool
	whole   bool          // the text is there as a whole, and hindsight counts
	marks   [256][]opener // by their first byte

	in      []byte
	base    int // offset of in[0]
	pos     int
	eof     bool
	starved bool
	looks   int // bytes looked at, for tests
	state   func(*machine) bool

	out      []byte // text that has not been taken
	spans    []span
	calls    []*call
	docs     int // documents that were read, calls or not
	findings []jsonrepair.Finding

	lines lines
	inert inert
	b     *block  // the call that is being read
	r     *region // its JSON
	x     *params // or its parameters
	py    *pyCall // or its Python arguments
	after *block  // the call before pos, with nothing but white space between
	trial trial   // a form without a marker that may turn out to be text
	begun bool    // text other than white space has been passed on
}

// span is a part of the text that was removed.
type span struct {
	kind     jsonrepair.Kind
	from, to int
}

// call is a Call that is being read.
type call struct {
	Call
	args   []byte // what of the arguments has been read and, of a stream, not taken
	sent   int    // bytes of them that were taken
	keys   keys
	any    bool // arguments have begun
	ended  bool // they have ended
	done   bool // nothing will change
	follow bool // it has its name from the call before
	hidden bool // it may turn out to be text
}

// empty reports whether the arguments are an empty object.
func (c *call) empty() bool {
	s := bytes.TrimSpace(c.args)
	return c.sent == 0 && len(s) > 1 && s[0] == '{' && len(bytes.TrimSpace(s[1:len(s)-1])) == 0
}

// trial is a form without a marker, or what a marker stands before.
type trial struct {
	on   bool
	late bool // it counts only if nothing follows
	// It has a marker, and counts as soon as it has a name.
	marked bool
	from   int
	// How many there were before it.
	calls, finds, spans int
	spent               int // no late trial begins before this offset
}

func newMachine(o Options) *machine {
	o = o.withDefaults()
	m := &machine{o: o, tools: map[string]*schema{}, enabled: map[Format]bool{}, state: stepText}
	for _, t := range o.Tools {
		m.tools[t.Name] = readSchema(t.Parameters)
	}
	list := o.Formats
	if list == nil {
		list = formats
	}
	for _, f := range list {
		m.enabled[f] = true
	}
	for _, op := range openers {
		if slices.ContainsFunc(op.formats, func(f Format) bool { return m.enabled[f] }) {
			m.marks[op.mark[0]] = append(m.marks[op.mark[0]], op)
		}
	}
	m.lines.bol = true
	return m
}

// run goes as far as the text allows.
func (m *machine) run() {
	for {
		m.starved = false
		if !m.state(m) {
			return
		}
	}
}

// write takes the next piece.
func (m *machine) write(p []byte) {
	from := m.pos
	if m.trial.on {
		from = min(from, m.trial.from)
	}
	if n := from - kept - m.base; n > len(m.in)/2 {
		m.in = m.in[:copy(m.in, m.in[n:])]
		m.base += n
	}
	m.in = append(m.in, p...)
	m.run()
}

func (m *machine) end() int { return m.base + len(m.in) }

// peek returns the byte at p, or false at the end of the text.
func (m *machine) peek(p int) (byte, bool) {
	m.looks++
	if p < m.end() {
		return m.in[p-m.base], true
	}
	if !m.eof {
		m.starved = true
	}
	return 0, false
}

func (m *machine) atEnd(p int) bool {
	_, ok := m.peek(p)
	return !ok && !m.starved
}

func (m *machine) source(from, to int) []byte { return m.in[from-m.base : to-m.base] }

// has reports whether s stands at p.
func (m *machine) has(p int, s string) bool {
	m.looks++
	rest := m.in[min(p, m.end())-m.base:]
	if len(rest) >= len(s) {
		return string(rest[:len(s)]) == s
	}
	if !m.eof && string(rest) == s[:len(rest)] {
		m.starved = true
	}
	return false
}

// hasAny returns the first of marks that stands at p.
func (m *machine) hasAny(p int, marks []string) string {
	for _, s := range marks {
		if m.has(p, s) {
			return s
		}
	}
	return ""
}

// blanks returns the offset behind white space at p, at most maxBlank bytes of it.
func (m *machine) blanks(p int) int {
	for limit := p + maxBlank; p < limit; p++ {
		if c, ok := m.peek(p); !ok || !isSpace(c) {
			break
		}
	}
	return p
}

// name reads a function's name at p.
func (m *machine) name(p int) (string, int) {
	from := p
	for ; p-from < maxName; p++ {
		if c, ok := m.peek(p); !ok || !isName(c) {
			break
		}
	}
	if m.starved {
		return "", from
	}
	return string(m.source(from, p)), p
}

// text passes on the text up to an offset.
func (m *machine) text(to int) {
	if to <= m.pos {
		return
	}
	p := m.source(m.pos, to)
	if !m.begun && len(bytes.TrimSpace(p)) > 0 {
		m.begun = true
	}
	m.out = append(m.out, p...)
	m.pos = to
}

// take removes the text up to an offset.
func (m *machine) take(k jsonrepair.Kind, to int) {
	if to <= m.pos {
		return
	}
	if n := len(m.spans); n > 0 && m.spans[n-1].to == m.pos && m.spans[n-1].kind == k && n > m.trial.spans {
		m.spans[n-1].to = to
	} else if m.whole {
		m.spans = append(m.spans, span{k, m.pos, to})
	}
	m.pos = to
}

func (m *machine) find(k jsonrepair.Kind, at, n int, text string) {
	if len(m.findings) < maxFindings {
		m.findings = append(m.findings, jsonrepair.Finding{Kind: k, Offset: at, Length: n, Text: text})
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}

func isName(c byte) bool {
	return isWord(c) || c == '-' || c == '.' || c == ':' || c == '/' || c == '\\'
}
