package jsonrepair

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
)

// Repair reads a document. Strict JSON comes back as it is, without a copy.
func Repair(data []byte, o Options) *Result {
	if o.MaxBytes > 0 && len(data) > o.MaxBytes {
		return failed(&Error{Offset: o.MaxBytes, Cause: "the document is longer than allowed", Tried: "raise MaxBytes"})
	}
	if !o.LaTeX && !o.Paths && Check(data, o.MaxDepth) == nil {
		return &Result{Outcome: Valid, Text: data, Findings: Suspicions(data)}
	}
	return repair(data, o)
}

func repair(data []byte, o Options) *Result {
	r, doubts := read(data, o, 0)
	if r.Outcome == Failed {
		return r
	}
	others := []Reading{}
	var results []*Result
	consider := func(o Options, flip int, why string) {
		other, _ := read(data, o, flip)
		if other.Outcome == Failed || bytes.Equal(other.Text, r.Text) || o.layout && r.Outcome == Truncated && other.Outcome == Truncated {
			return
		}
		for _, b := range others {
			if bytes.Equal(b.Text, other.Text) {
				return
			}
		}
		others = append(others, Reading{Text: other.Text, Why: why, Cost: cost(other.Edits())})
		results = append(results, other)
	}
	if (mended(r.Edits()) || r.Outcome == Truncated && closedOutside(data)) && laidOut(data) {
		o := o
		o.layout = true
		consider(o, 0, "the indentation says which container a line belongs to")
		for _, other := range results {
			other.evident, other.layout = true, true
		}
	}
	for i := 0; i < len(doubts) && len(others) < maxReadings-1; i++ {
		n := len(results)
		consider(o, i+1, doubts[i].Text)
		if n < len(results) && doubts[i].Kind == DoubtfulBracket {
			results[n].evident = true
		}
	}
	if len(others) == 0 {
		return r
	}
	all := append([]Reading{{Text: r.Text, Why: "each place by itself, as a stream reads it", Cost: cost(r.Edits())}}, others...)
	results = append([]*Result{r}, results...)
	best := 0
	for i := range all {
		// Where brackets are in doubt the fewest edits decide; of equal ones the
		// layout's, for there is evidence for it. Where a mark is, fewer edits only
		// show that more has become part of the string.
		if !results[i].evident {
			continue
		}
		if all[i].Cost < all[best].Cost || all[i].Cost == all[best].Cost && best == 0 && results[i].layout {
			best = i
		}
	}
	r = results[best]
	all[0], all[best] = all[best], all[0]
	slices.SortStableFunc(all[1:], func(a, b Reading) int { return cmp.Compare(a.Cost, b.Cost) })
	r.Outcome, r.Readings = Ambiguous, all
	if o.Strict {
		r.Text, r.values, r.log = nil, nil, editLog{}
	}
	return r
}

// read reads a whole document in one way, and returns what the doubts were.
func read(data []byte, o Options, flip int) (*Result, []Finding) {
	e := newEngine(o)
	e.in, e.eof, e.flip, e.counts = data, true, flip, true
	e.run()
	r := e.result()
	if r.Outcome != Failed {
		r.Text = e.apply(&e.log, e.taken)
	}
	if len(e.docs) > 1 && r.Outcome != Failed {
		e.several(r)
	}
	return r, e.doubts
}

func failed(err *Error) *Result { return &Result{Outcome: Failed, Err: err} }

// maxReadings is the most readings that are given of an ambiguous document.
const maxReadings = 4

// cost is how many changes a reading needs, other than those around the JSON.
func cost(edits iter.Seq[Edit]) int {
	n := 0
	for ed := range edits {
		switch ed.Kind {
		case Prose, Fence, Reasoning, Comment, SeveralValues, ByteOrderMark, SpecialSpace:
		default:
			n++
		}
	}
	return n
}

// mended reports whether brackets had to be mended.
func mended(edits iter.Seq[Edit]) bool {
	for ed := range edits {
		switch ed.Kind {
		case MissingOpener, MissingCloser, SurplusOpener, SurplusCloser, WrongCloser:
			return true
		}
	}
	return false
}

// result puts together what the engine has found, at the end of the input.
func (e *engine) result() *Result {
	if e.err == nil && len(e.docs) == 0 {
		e.err = &Error{Offset: 0, Cause: "no JSON was found", Tried: "neither an object nor an array begins anywhere in the text, and it is no other JSON value"}
	}
	if e.err != nil {
		return &Result{Outcome: Failed, Err: e.err, Findings: e.findings}
	}
	r := &Result{Outcome: Repaired, data: e.in, log: e.log, Findings: e.findings}
	if e.cut {
		r.Outcome = Truncated
		r.Open = e.open
	} else if e.recorded == 0 {
		r.Outcome = Valid
	}
	return r
}

// several makes the array of several documents. Empty ones beside others are
// placeholders and are left out.
func (e *engine) several(r *Result) {
	keep := make([]bool, len(e.docs))
	kept := 0
	for i, d := range e.docs {
		if keep[i] = !empty(r.Text[d.from:d.to]) || e.cut && i == len(e.docs)-1; keep[i] {
			kept++
		}
	}
	if kept == 0 {
		for i := range keep {
			keep[i] = true
		}
		kept = len(keep)
	}
	m := merger{e: e, keep: keep, kept: kept}
	m.begin(0)
	for ed := range e.log.all(e.in) {
		m.edit(ed)
	}
	m.end()
	documents := r.Text
	r.Text, r.log = e.apply(&m.log, len(documents)+2), m.log
	if kept > 1 {
		r.values = func(yield func([]byte) bool) {
			for i, d := range e.docs {
				if keep[i] && !yield(documents[d.from:d.to:d.to]) {
					return
				}
			}
		}
	}
}

// empty reports whether a JSON text is an empty object, array or string.
func empty(text []byte) bool {
	return len(text) < 2 || len(bytes.TrimSpace(text[1:len(text)-1])) == 0
}

// merger makes the edits of an array of documents out of those of the documents.
type merger struct {
	e      *engine
	keep   []bool
	kept   int
	log    editLog
	i      int  // the document
	begun  bool // its own edits have begun
	some   bool // a document that is kept has begun
	closed bool
}

func (m *merger) add(k Kind, at int, before []byte, after string) {
	if string(before) != after {
		m.log.add(k, at, before, after)
	}
}

// begin notes that the edits of a document come next.
func (m *merger) begin(i int) { m.i, m.begun = i, false }

// start puts what stands before a document.
func (m *merger) start() {
	if m.begun {
		return
	}
	m.begun = true
	d := m.e.docs[m.i]
	switch {
	case !m.keep[m.i]:
		m.add(Placeholder, d.start, m.e.source(d.start, d.end), "")
	case !m.some:
		m.some = true
		if m.kept > 1 {
			m.add(SeveralValues, d.start, nil, "[")
		}
	}
}

// stop puts what stands behind the last document.
func (m *merger) stop() {
	m.start()
	if m.kept > 1 && m.i == len(m.e.docs)-1 && !m.closed {
		m.closed = true
		m.add(SeveralValues, m.e.docs[m.i].end, nil, "]")
	}
}

func (m *merger) edit(ed Edit) {
	d := m.e.docs[m.i]
	switch {
	case !m.begun && ed.Offset < d.start:
	case ed.Offset >= d.end && ed.Kind == SeveralValues:
		m.start()
		ed.After = ""
		if m.keep[m.i+1] && m.some {
			ed.After = ","
		}
		m.begin(m.i + 1)
	case ed.Offset >= d.end && ed.Before != "":
		m.stop()
	default:
		if m.start(); !m.keep[m.i] {
			return
		}
	}
	m.add(ed.Kind, ed.Offset, []byte(ed.Before), ed.After)
}

func (m *merger) end() { m.stop() }

func (e *engine) source(from, to int) []byte { return e.in[from-e.base : to-e.base] }

// apply returns the input with edits applied, which is about size bytes long.
func (e *engine) apply(l *editLog, size int) []byte {
	return apply(make([]byte, 0, size), e.in, l.all(e.in))
}

// Apply returns data with edits applied, which must be in order and must fit it.
func Apply(data []byte, edits iter.Seq[Edit]) []byte {
	return apply(make([]byte, 0, len(data)), data, edits)
}

func apply(out, data []byte, edits iter.Seq[Edit]) []byte {
	at := 0
	for ed := range edits {
		out = append(out, data[at:ed.Offset]...)
		out = append(out, ed.After...)
		at = ed.Offset + len(ed.Before)
	}
	return append(out, data[at:]...)
}

// mayBeSuspicious is false for most texts. A line's end or tab is suspicious only
// behind a dollar sign, or in a path, which begins with a drive.
func mayBeSuspicious(data []byte) bool {
	looked := false
	for i := 0; ; i += 2 {
		n := bytes.IndexByte(data[i:], '\\')
		if n < 0 {
			return false
		}
		i += n
		switch data[i+1] {
		case '"', '\\', '/', 'n', 'r', 't':
		default:
			return true
		}
		if data[i-1] == ':' || !looked && bytes.IndexByte(data, '$') >= 0 {
			return true
		}
		looked = true
	}
}

// Suspicions returns the valid escapes of a strict JSON text that may be LaTeX or
// parts of a path: the findings of [Repair] for a document that is [Valid].
func Suspicions(data []byte) []Finding {
	if !mayBeSuspicious(data) {
		return nil
	}
	e := newEngine(Options{})
	e.in, e.eof = data, true
	e.limit = len(data)
	var open bool
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			open = !open
			if open {
				e.str = str{}
				e.limit = i + e.window
				e.str.drive, _ = e.drive(i + 1)
				e.limit = len(data)
			}
		case c == '$':
			e.str.math = !e.str.math
		case c == '\\':
			if d := data[i+1]; d == 'u' {
				e.pos = i
				a := e.unicodeEscape(i)
				e.act(&a)
				i = e.pos - 1
				continue
			} else if d == 'b' || d == 'f' || d == 'n' || d == 'r' || d == 't' {
				e.pos = i
				a := e.suspicious(i, d)
				e.act(&a)
			}
			i++
		}
	}
	return e.findings
}
