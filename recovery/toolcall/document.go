package toolcall

import (
	"bytes"
	"slices"

	"github.com/unfray/unfray/jsonrepair"
)

// doc repairs the JSON of a region as it arrives and hands it to a walker.
type doc struct {
	m      *machine
	b      *block
	start  int // offset of the region
	end    int
	stream *jsonrepair.Stream
	edits  []jsonrepair.Edit
	w      walker
	calls  int // before it
	finds  int
	marked bool // a marker ended the region
	solid  bool // there is more in it than an empty array

	// The edits before nth have moved the byte placed by shift.
	placed, shift, nth int
}

func newDoc(m *machine, b *block, start int) *doc {
	d := &doc{m: m, b: b, start: start, end: start, calls: len(m.calls), finds: len(m.findings)}
	d.stream = jsonrepair.NewStream(m.o.JSON)
	d.w = walker{m: m, b: b, doc: d}
	d.w.view.MaxRaw = maxNameText
	return d
}

func (d *doc) write(p []byte) {
	d.end += len(p)
	d.solid = d.solid || len(bytes.Trim(p, "[] \t\r\n")) > 0
	d.stream.Write(p) // Close returns the error
	d.edits = append(d.edits, d.stream.Edits()...)
	d.w.write(d.stream.Committed())
}

// close ends the region.
func (d *doc) close(marked bool) {
	d.marked = marked
	r := d.stream.Close()
	d.edits = append(d.edits, d.stream.Edits()...)
	d.w.final, d.w.cut = true, r.Open
	d.w.write(d.stream.Committed())
	if d.m.whole && r.Outcome != jsonrepair.Valid {
		r = d.hindsight(r)
	}
	d.settle(r)
}

// hindsight reads an ambiguous region again as a whole. It returns the receipt. A reading
// in which other functions are called does not count.
func (d *doc) hindsight(r *jsonrepair.Result) *jsonrepair.Result {
	whole := jsonrepair.Repair(d.m.source(d.start, d.end), d.m.o.JSON)
	if r.Outcome != jsonrepair.Ambiguous || whole.Outcome != jsonrepair.Ambiguous || d.m.trial.on {
		return whole
	}
	m := d.m
	calls, findings, before := slices.Clone(m.calls), slices.Clone(m.findings), *d
	m.calls, m.findings = m.calls[:d.calls], m.findings[:d.finds]
	d.edits, d.placed, d.shift, d.nth = slices.Collect(whole.Edits()), 0, 0, 0
	d.w = walker{m: m, b: d.b, doc: d, final: true, cut: r.Open}
	d.w.view.MaxRaw = maxNameText
	d.w.write(whole.Text)
	if !slices.EqualFunc(calls, m.calls, func(a, b *call) bool { return a.Name == b.Name }) {
		*d = before
		m.calls, m.findings = calls, findings
		return r
	}
	return whole
}

// settle gives the calls of the region their receipt and their places.
func (d *doc) settle(r *jsonrepair.Result) {
	m := d.m
	if c := d.w.c; c != nil && c.Name != "" {
		d.w.endUnended()
	}
	calls := m.calls[min(d.calls, len(m.calls)):]
	for i, c := range calls {
		if r.Outcome != jsonrepair.Valid && c.Repair == nil {
			c.Repair = r
		}
		if r.Outcome == jsonrepair.Failed || r.Outcome == jsonrepair.Ambiguous && m.o.JSON.Strict {
			c.Problem = problem(c.Problem, Malformed)
			c.Complete = false
		}
		if i > 0 {
			c.Start = d.place(c.Start - d.start)
		}
		if c.End = d.place(c.End - d.start); i == len(calls)-1 {
			c.End = d.end
		}
		if c.Problem == NoObject || c.Problem == Malformed {
			if c.sent == 0 {
				c.args = nil
			}
		}
	}
	if len(calls) > 0 || d.b.bare != notBare || d.nothing() {
		return
	}
	k, text := UnreadableCall, "no function's name is in this call, which was removed"
	switch {
	case d.breaksOff():
		k, text = CutCall, "the call breaks off before its name"
	case m.trial.on:
		text = "no function's name is in this call, which was left as text"
	}
	m.find(k, d.start, d.end-d.start, text)
}

// breaksOff reports whether the region ends before its JSON does.
func (d *doc) breaksOff() bool { return len(d.w.cut) > 0 && !d.marked }

// nothing reports whether the region is an empty array: no calls.
func (d *doc) nothing() bool { return !d.solid }

// endUnended ends a call where its JSON could not be read to its end.
func (w *walker) endUnended() {
	c := w.c
	w.c = nil
	c.Problem = problem(c.Problem, Malformed)
	c.Complete = false
	c.End = w.doc.end
	if w.mode == argObject && c.sent == 0 {
		c.args = nil
	}
}

// place returns where in the text a byte of the repaired region comes from. Those that
// are asked for one after another should grow.
func (d *doc) place(at int) int {
	if at < d.placed {
		d.placed, d.shift, d.nth = 0, 0, 0
	}
	d.placed = at
	for ; d.nth < len(d.edits); d.nth++ {
		e := d.edits[d.nth]
		if e.Offset+d.shift >= at {
			break
		}
		d.shift += len(e.After) - len(e.Before)
	}
	return min(max(d.start, d.start+at-d.shift), d.end)
}

// inner repairs arguments that are the content of a string.
type inner struct {
	m      *machine
	c      *call
	stream *jsonrepair.Stream
	view   jsonrepair.View
	raw    []byte // of a whole text
	first  byte
	begun  bool // the object has begun
	over   bool // it has ended
	ended  bool // and nothing was wrong with it
}

func newInner(m *machine, c *call) *inner {
	return &inner{m: m, c: c, stream: jsonrepair.NewStream(m.o.JSON)}
}

func (n *inner) write(p []byte) {
	for i := 0; n.first == 0 && i < len(p); i++ {
		if !isSpace(p[i]) {
			n.first = p[i]
		}
	}
	if n.m.whole {
		n.raw = append(n.raw, p...)
	}
	n.stream.Write(p) // close sees the error
	n.take()
}

// take copies what has been committed, up to the end of the object.
func (n *inner) take() {
	p := n.stream.Committed()
	if n.first != '{' || n.over {
		return
	}
	at := 0
	for i := range p {
		// A byte at a time, so that the end is found at its byte.
		if p[i] != '}' && i+1 < len(p) {
			continue
		}
		n.view.Write(p[at : i+1])
		at = i + 1
		for ev := range n.view.Events() {
			n.over = n.over || ev.Kind == jsonrepair.ObjectEnd && len(ev.Path) == 0
		}
		if n.over {
			p = p[:at]
			break
		}
	}
	if !n.begun {
		p = bytes.TrimLeft(p, " \t\r\n")
		n.begun = len(p) > 0
	}
	n.c.add(n.m, p)
}

// close ends the string. cut: it breaks off.
func (n *inner) close(cut bool) {
	r := n.stream.Close()
	n.take()
	c := n.c
	switch {
	case n.first == 0 && !cut:
		c.args, n.ended = []byte("{}"), true
		return
	case n.first != '{':
		c.args, n.ended = nil, true
		c.Problem = problem(c.Problem, NoObject)
		return
	case r.Outcome == jsonrepair.Valid:
		n.ended = true
		return
	}
	if n.m.whole {
		whole := jsonrepair.Repair(n.raw, n.m.o.JSON)
		if r.Outcome == jsonrepair.Ambiguous && whole.Outcome == jsonrepair.Ambiguous && bytes.HasPrefix(bytes.TrimSpace(whole.Text), []byte("{")) {
			c.args, c.keys = nil, keys{}
			c.add(n.m, bytes.TrimSpace(whole.Text))
		}
		r = whole
	}
	c.Repair, c.RepairAt = r, -1
	if !n.over || r.Outcome == jsonrepair.Failed {
		c.args = nil
		c.Problem = problem(c.Problem, Malformed)
	}
	n.ended = r.Outcome != jsonrepair.Truncated && r.Outcome != jsonrepair.Failed
}
