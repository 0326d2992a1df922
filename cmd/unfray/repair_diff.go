package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/unfray/unfray/jsonrepair"
)

// A diff shows every place that was changed in two rows, before and after, with
// marks below what differs, so that it needs no colours:
//
//	byte 9, line 1: literal
//	- {"ok": True, "n": 1}
//	         ~~~~
//	+ {"ok": true, "n": 1}
//	         ~~~~
//
// A place that was only found has one row, and says what it may mean.
const (
	removedSGR  = "31" // red
	insertedSGR = "32" // green
	foundSGR    = "33" // yellow
	placeSGR    = "1"  // bold
	diffContext = 24   // bytes shown before and behind what was changed
	diffText    = 48   // columns of one edit's text at most
	minColumns  = 10   // of a reading's row, however narrow the terminal says it is
	maxColumns  = 4096
)

// diffRow is one row of a place with the marks below it.
type diffRow struct {
	text, marks strings.Builder
	columns     int
	marked      bool
}

func (r *diffRow) add(d display, sgr, text string) {
	columns := runewidth.StringWidth(text)
	r.columns += columns
	r.text.WriteString(d.paint(sgr, text))
	if sgr == "" {
		r.marks.WriteString(strings.Repeat(" ", columns))
		return
	}
	r.marked = r.marked || columns > 0
	r.marks.WriteString(d.paint(sgr, strings.Repeat("~", columns)))
}

func (r *diffRow) write(w io.Writer, sign string) {
	fmt.Fprintf(w, "%s %s\n", sign, r.text.String())
	if r.marked {
		fmt.Fprintf(w, "  %s\n", strings.TrimRight(r.marks.String(), " "))
	}
}

// changes is what a diff shows.
type changes struct {
	outcome  jsonrepair.Outcome
	edits    []jsonrepair.Edit
	findings []jsonrepair.Finding // by offset
	readings []jsonrepair.Reading
}

func changesOf(r *jsonrepair.Result) changes {
	return changes{r.Outcome, slices.Collect(r.Edits()), r.Findings, r.Readings}
}

// diff prints what was changed in data, and a line that counts it.
func (d display) diff(out io.Writer, data []byte, c changes) error {
	w := bufio.NewWriter(out)
	lines := lineCounter{data: data, line: 1}
	findings := c.findings
	before := 0 // the end of the last place
	for edits := c.edits; len(edits) > 0; {
		n := d.together(data, edits)
		for len(findings) > 0 && findings[0].Offset < edits[0].Offset {
			d.finding(w, &lines, findings[0])
			findings = findings[1:]
		}
		behind := len(data)
		if n < len(edits) {
			behind = edits[n].Offset
		}
		d.place(w, &lines, edits[:n], before, behind)
		before = edits[n-1].Offset + len(edits[n-1].Before)
		edits = edits[n:]
	}
	for _, f := range findings {
		d.finding(w, &lines, f)
	}
	columns := min(max(d.columns, minColumns), maxColumns)
	for i, reading := range c.readings {
		fmt.Fprintf(w, "%s %s\n  %s\n", d.paint(placeSGR, fmt.Sprintf("reading %d:", i+1)), reading.Why,
			runewidth.Truncate(contextText(reading.Text[:min(len(reading.Text), 4*columns)]), columns-2, "…"))
	}
	fmt.Fprintln(w, summary(c.outcome, countKinds(nil, slices.Values(c.edits))))
	return w.Flush()
}

// together returns how many edits are shown as one place: those that are near each
// other and fit into a row.
func (d display) together(data []byte, edits []jsonrepair.Edit) int {
	columns := 2 + 2*diffContext
	at := edits[0].Offset
	for i, e := range edits {
		if e.Offset-at > 2*diffContext {
			return i
		}
		columns += max(shownColumns(e.Before), shownColumns(e.After)) + runewidth.StringWidth(contextText(data[at:e.Offset]))
		if i > 0 && columns > d.columns {
			return i
		}
		at = e.Offset + len(e.Before)
	}
	return len(edits)
}

func shownColumns(s string) int { return runewidth.StringWidth(editText(s)) }

// place prints edits as one place. The places before and behind it are not shown in
// its context, which says what stands there now.
func (d display) place(w io.Writer, lines *lineCounter, edits []jsonrepair.Edit, before, behind int) {
	var kinds []string
	for _, e := range edits {
		if !slices.Contains(kinds, string(e.Kind)) {
			kinds = append(kinds, string(e.Kind))
		}
	}
	first, last := edits[0], edits[len(edits)-1]
	d.title(w, lines.at(first.Offset), strings.Join(kinds, ", "))
	var old, now diffRow
	both := func(text string) {
		old.add(d, "", text)
		now.add(d, "", text)
	}
	both(leftContext(lines.data, before, first.Offset))
	for i, e := range edits {
		if i > 0 {
			p := edits[i-1]
			both(contextText(lines.data[p.Offset+len(p.Before) : e.Offset]))
		}
		old.add(d, removedSGR, editText(e.Before))
		now.add(d, insertedSGR, editText(e.After))
	}
	both(rightContext(lines.data, last.Offset+len(last.Before), behind))
	old.write(w, "-")
	now.write(w, "+")
}

// finding prints a place that was left as it is.
func (d display) finding(w io.Writer, lines *lineCounter, f jsonrepair.Finding) {
	d.title(w, lines.at(f.Offset), fmt.Sprintf("%s: %s", f.Kind, f.Text))
	var row diffRow
	row.add(d, "", leftContext(lines.data, 0, f.Offset))
	row.add(d, foundSGR, editText(string(lines.data[f.Offset:f.Offset+f.Length])))
	row.add(d, "", rightContext(lines.data, f.Offset+f.Length, len(lines.data)))
	row.write(w, "?")
}

func (d display) title(w io.Writer, place, what string) {
	fmt.Fprintf(w, "%s %s\n", d.paint(placeSGR, place+":"), what)
}

// lineCounter numbers the lines of a text.
type lineCounter struct {
	data      []byte
	line, pos int
}

// at names a place that is not before the last one.
func (l *lineCounter) at(offset int) string {
	if offset > l.pos {
		l.line += bytes.Count(l.data[l.pos:offset], []byte("\n"))
		l.pos = offset
	}
	return fmt.Sprintf("byte %d, line %d", offset, l.line)
}

// leftContext shows what stands before an offset, not going back behind first.
func leftContext(data []byte, first, at int) string {
	from := max(first, at-diffContext)
	for from > 0 && from < at && !utf8.RuneStart(data[from]) {
		from++
	}
	text := contextText(data[from:at])
	if from > 0 {
		text = "…" + text
	}
	return text
}

// rightContext shows what stands behind an offset, up to last.
func rightContext(data []byte, at, last int) string {
	to := min(last, at+diffContext)
	for to < len(data) && to > at && !utf8.RuneStart(data[to]) {
		to--
	}
	text := contextText(data[at:to])
	if to < len(data) {
		text += "…"
	}
	return text
}

// contextText writes bytes so that each can be seen, single spaces as they are.
func contextText(b []byte) string {
	parts := strings.Split(string(b), " ")
	for i, p := range parts {
		parts[i] = visible([]byte(p))
	}
	return strings.Join(parts, " ")
}

// editText writes the text of an edit so that each byte can be seen, a long one
// without its middle.
func editText(s string) string {
	const keep = diffText / 3
	if len(s) > 4*diffText {
		head, tail := s[:2*diffText], s[len(s)-2*diffText:]
		for len(head) > 0 && !utf8.RuneStart(s[len(head)]) {
			head = head[:len(head)-1]
		}
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
		return fmt.Sprintf("%s … %s … %s", runewidth.Truncate(visible([]byte(head)), keep, ""),
			counted(len(s), "byte"), runewidth.TruncateLeft(visible([]byte(tail)), max(0, runewidth.StringWidth(visible([]byte(tail)))-keep), ""))
	}
	text := visible([]byte(s))
	if w := runewidth.StringWidth(text); w > diffText {
		return runewidth.Truncate(text, keep, "") + fmt.Sprintf(" … %s … ", counted(len(s), "byte")) + runewidth.TruncateLeft(text, w-keep, "")
	}
	return text
}
