package jsonrepair

import (
	"bytes"
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
	e := newEngine(o)
	e.in, e.eof = data, true
	e.out = make([]byte, 0, len(data)+len(data)/16+16)
	e.run()
	r := e.result()
	if len(e.docs) > 1 && r.Outcome != Failed {
		e.several(r)
	}
	if e.doubts > 0 && r.Outcome != Failed {
		readings(data, o, e.doubts, r)
	}
	return r
}

func failed(err *Error) *Result { return &Result{Outcome: Failed, Err: err} }

// maxReadings is the most readings that are given of an ambiguous document.
const maxReadings = 4

// readings reads the document again with each doubt decided in the other way.
func readings(data []byte, o Options, doubts int, r *Result) {
	why := "as written, each doubtful place read in the likelier way"
	all := []Reading{{Text: r.Text, Why: why, Cost: len(r.Edits)}}
	for flip := 1; flip <= doubts && len(all) < maxReadings; flip++ {
		e := newEngine(o)
		e.in, e.eof, e.flip = data, true, flip
		e.run()
		other := e.result()
		if len(e.docs) > 1 && other.Outcome != Failed {
			e.several(other)
		}
		same := other.Outcome == Failed
		for _, a := range all {
			same = same || bytes.Equal(a.Text, other.Text)
		}
		if !same {
			all = append(all, Reading{Text: other.Text, Why: e.why, Cost: len(other.Edits)})
		}
	}
	if len(all) == 1 {
		return
	}
	r.Outcome, r.Readings = Ambiguous, all
	if o.Strict {
		r.Text, r.Values, r.Edits = nil, nil, nil
	}
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
				e.suspicious(i, d)()
			}
			i++
		}
	}
	return e.findings
}
