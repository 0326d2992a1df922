package jsonrepair

import (
	"bytes"
	"cmp"
	"slices"
)

// Repair reads a document. Strict JSON comes back as it is, without a copy.
func Repair(data []byte, o Options) *Result {
	if o.MaxBytes > 0 && len(data) > o.MaxBytes {
		return failed(&Error{Offset: o.MaxBytes, Cause: "the document is longer than allowed", Tried: "raise MaxBytes"})
	}
	if !o.LaTeX && !o.Paths && Check(data, o.MaxDepth) == nil {
		return &Result{Outcome: Valid, Text: data, Findings: suspicions(data)}
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
		others = append(others, Reading{Text: other.Text, Why: why, Cost: cost(other.Edits)})
		results = append(results, other)
	}
	if (mended(r.Edits) || r.Outcome == Truncated && closedOutside(data)) && laidOut(data) {
		o := o
		o.layout = true
		consider(o, 0, "the indentation says which container a line belongs to")
		if len(results) > 0 {
			results[0].evident, results[0].layout = true, true
		}
	}
	for i := 0; i < len(doubts) && len(others) < maxReadings-1; i++ {
		consider(o, i+1, doubts[i].Text)
		if n := len(results); n > 0 && doubts[i].Kind == DoubtfulBracket {
			results[n-1].evident = true
		}
	}
	if len(others) == 0 {
		return r
	}
	all := append([]Reading{{Text: r.Text, Why: "each place by itself, as a stream reads it", Cost: cost(r.Edits)}}, others...)
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
		r.Text, r.Values, r.Edits = nil, nil, nil
	}
	return r
}

// read reads a whole document in one way, and returns what the doubts were.
func read(data []byte, o Options, flip int) (*Result, []Finding) {
	e := newEngine(o)
	e.in, e.eof, e.flip = data, true, flip
	e.out = make([]byte, 0, len(data)+len(data)/16+16)
	e.run()
	r := e.result()
	if len(e.docs) > 1 && r.Outcome != Failed {
		e.several(r)
	}
	return r, e.doubts
}

func failed(err *Error) *Result { return &Result{Outcome: Failed, Err: err} }

// maxReadings is the most readings that are given of an ambiguous document.
const maxReadings = 4

// cost is how many changes a reading needs, other than those around the JSON.
func cost(edits []Edit) int {
	n := 0
	for _, ed := range edits {
		switch ed.Kind {
		case Prose, Fence, Reasoning, Comment, SeveralValues, ByteOrderMark, SpecialSpace:
		default:
			n++
		}
	}
	return n
}

// mended reports whether brackets had to be mended.
func mended(edits []Edit) bool {
	for _, ed := range edits {
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
	r := &Result{Outcome: Repaired, Text: e.out, Edits: e.edits, Findings: e.findings}
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
		if v := bytes.Join(bytes.Fields(e.out[d.from:d.to]), nil); len(v) > 2 {
			keep[i] = true
			kept++
		}
	}
	if kept == 0 {
		for i := range keep {
			keep[i] = true
		}
		kept = len(keep)
	}
	first := -1
	var edits []Edit
	next := 0 // of e.edits
	for i, d := range e.docs {
		end := len(e.edits)
		if i+1 < len(e.docs) {
			end = next
			for e.edits[end].Kind != SeveralValues || e.edits[end].Offset < d.end {
				end++
			}
		}
		own := e.edits[next:end]
		if i == 0 {
			n := before(own, d.start)
			edits, own = append(edits, own[:n]...), own[n:]
		}
		tail := len(own)
		for tail > 0 && own[tail-1].Offset >= d.end && own[tail-1].Before != "" {
			tail--
		}
		own, behind := own[:tail], own[tail:]
		switch {
		case !keep[i]:
			edits = append(edits, Edit{Placeholder, d.start, string(e.source(d.start, d.end)), ""})
		default:
			if first < 0 {
				first = i
				if kept > 1 {
					edits = append(edits, Edit{SeveralValues, d.start, "", "["})
				}
			}
			edits = append(edits, own...)
			r.Values = append(r.Values, e.out[d.from:d.to:d.to])
		}
		next = end
		if i+1 < len(e.docs) {
			edits = append(edits, behind...)
			sep := e.edits[end]
			next++
			sep.After = ""
			if keep[i+1] && first >= 0 {
				sep.After = ","
			}
			edits = append(edits, sep)
			continue
		}
		if kept > 1 {
			edits = append(edits, Edit{SeveralValues, d.end, "", "]"})
		}
		edits = append(edits, behind...)
	}
	r.Text, r.Edits = Apply(e.in, edits), edits
	if kept == 1 {
		r.Values = nil
	}
}

// before returns how many edits lie before an offset.
func before(edits []Edit, at int) int {
	n := 0
	for n < len(edits) && edits[n].Offset+len(edits[n].Before) <= at && edits[n].Offset < at {
		n++
	}
	return n
}

func (e *engine) source(from, to int) []byte { return e.in[from-e.base : to-e.base] }

// Apply returns data with edits applied, which must be in order and must fit it.
func Apply(data []byte, edits []Edit) []byte {
	var out []byte
	at := 0
	for _, ed := range edits {
		out = append(out, data[at:ed.Offset]...)
		out = append(out, ed.After...)
		at = ed.Offset + len(ed.Before)
	}
	return append(out, data[at:]...)
}

// suspicions finds valid escapes that may be LaTeX or parts of a path.
func suspicions(data []byte) []Finding {
	if bytes.IndexByte(data, '\\') < 0 {
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
			if d := data[i+1]; d == 'b' || d == 'f' || d == 'n' || d == 'r' || d == 't' {
				e.pos = i
				a := e.suspicious(i, d)
				e.act(&a)
			}
			i++
		}
	}
	return e.findings
}
