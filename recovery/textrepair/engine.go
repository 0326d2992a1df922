package textrepair

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
)

// A cell is a character of a segment and the bytes of the input that it stands for.
type cell struct {
	r          rune
	start, end int             // bytes of input; equal for the second character of two that came from one place
	kind       jsonrepair.Kind // of the last rule that changed it; "": none
}

// A span is a part of the input that was dropped.
type span struct {
	start, end int
	kind       jsonrepair.Kind
}

// An engine mends one text: what it keeps of it is its state between segments.
type engine struct {
	options  Options
	leave    map[jsonrepair.Kind]bool
	raw      rawFlags // characters that the text holds unescaped so far
	fence    fence
	edits    []jsonrepair.Edit
	made     int // edits, those that a stream has given away too
	findings []jsonrepair.Finding

	dropped []span // of the segment
	holes   bool   // a cell of it is gone
	cells   []cell // memory for it
	input   []byte // the segment, or the document that it is a string of
	base    int    // offset of input in what the caller gave
	quoted  bool   // input is JSON: what edits insert is escaped
	context []byte // text before the segment
	floor   int    // offset in input that no edit begins before: a stream has committed what is there
	code    bool   // the segment is code
}

func newEngine(o Options) *engine {
	e := &engine{options: o}
	if len(o.Leave) > 0 {
		e.leave = map[jsonrepair.Kind]bool{}
		for _, k := range o.Leave {
			e.leave[k] = true
		}
	}
	return e
}

// full reports whether no more edits may be made.
func (e *engine) full() bool { return e.options.MaxEdits > 0 && e.made >= e.options.MaxEdits }

func (e *engine) does(k jsonrepair.Kind) bool { return !e.leave[k] }

// repairSegment mends a segment that begins at offset start of the text. Its first floor bytes are known to be as they
// should. last says that the text ends with it.
func (e *engine) repairSegment(segment []byte, start, floor int, before []byte, last bool) {
	if e.full() {
		return
	}
	e.raw |= rawIn(segment)
	e.input, e.base, e.quoted, e.floor = segment, start, false, floor
	e.context = before[max(0, len(before)-contextSize):]
	e.code = e.options.Kind == Code || e.options.Kind == Auto && e.fence.open()
	e.dropped = e.dropped[:0]
	e.mend(e.cellsOf(segment, last))
	if len(before) == 0 || before[len(before)-1] == '\n' {
		e.fence.line(segment)
	}
}

// mend applies the rules to the cells of a segment and records what changed.
func (e *engine) mend(cells []cell) {
	found := len(e.findings)
	cells = e.settle(cells)
	cells = e.decodeEntities(cells)
	cells = e.settle(cells)
	cells = e.restyle(cells)
	e.record(cells)
	e.find(cells)
	slices.SortStableFunc(e.findings[found:], func(a, b jsonrepair.Finding) int { return cmp.Compare(a.Offset, b.Offset) })
}

// settle applies the rules that may make work for each other, until nothing changes.
func (e *engine) settle(cells []cell) []cell {
	for range 4 {
		n, work := len(cells), e.changes(cells)
		cells = e.dropEscapes(cells)
		cells = e.dropControls(cells)
		cells = e.dropInvisible(cells)
		cells = e.decodeMarks(cells)
		cells = e.decodeByteTokens(cells)
		if e.does(Mojibake) {
			m := mender{floor: e.floor}
			if e.code {
				m.caution = 2
			}
			cells = m.mend(cells, 0)
		}
		cells = e.mendC1(cells)
		if len(cells) == n && e.changes(cells) == work {
			break
		}
	}
	return cells
}

func (e *engine) changes(cells []cell) int {
	n := len(e.dropped)
	for _, c := range cells {
		if c.kind != "" {
			n++
		}
	}
	return n
}

// note records a finding.
func (e *engine) note(k jsonrepair.Kind, start, end int, text string) {
	if len(e.findings) < maxFindings {
		e.findings = append(e.findings, jsonrepair.Finding{Kind: k, Offset: e.base + start, Length: end - start, Text: text})
	}
}

// record makes edits of what changed: one for neighbours of one kind.
func (e *engine) record(cells []cell) {
	slices.SortStableFunc(e.dropped, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	dropped := e.dropped
	var open span
	var after []byte
	have := false
	flush := func() {
		if !have {
			return
		}
		have = false
		before := string(e.input[open.start:open.end])
		if before != string(after) {
			e.made++
			e.edits = append(e.edits, jsonrepair.Edit{Kind: open.kind, Offset: e.base + open.start, Before: before, After: string(after)})
		}
	}
	add := func(start, end int, k jsonrepair.Kind) {
		if !have || open.kind != k || open.end != start {
			flush()
			open, after, have = span{start, start, k}, nil, true
		}
		open.end = end
	}
	drop := func(until int) {
		for len(dropped) > 0 && dropped[0].start < until {
			// What a mended character stood for may hold one that was dropped before.
			if d := dropped[0]; d.start >= open.end {
				add(d.start, d.end, d.kind)
			}
			dropped = dropped[1:]
		}
	}
	for _, c := range cells {
		drop(c.start)
		if c.kind == "" {
			continue
		}
		add(c.start, c.end, c.kind)
		after = e.appendAfter(after, c)
		for len(dropped) > 0 && dropped[0].start < c.end { // inside of what the cell stands for
			dropped = dropped[1:]
		}
	}
	drop(len(e.input) + 1)
	flush()
}

// appendAfter appends what stands for a changed cell.
func (e *engine) appendAfter(after []byte, c cell) []byte {
	if e.quoted {
		return appendJSON(after, c.r, c.start < c.end && e.input[c.start] == '\\')
	}
	return utf8.AppendRune(after, c.r)
}

// cellsOf splits a segment into cells; last says that the text ends with it.
func (e *engine) cellsOf(segment []byte, last bool) []cell {
	cells := e.cells[:0]
	broken := false
	for i := 0; i < len(segment); {
		if b := segment[i]; b < utf8.RuneSelf {
			cells = append(cells, cell{r: rune(b), start: i, end: i + 1})
			i++
			continue
		}
		r, n := utf8.DecodeRune(segment[i:])
		c := cell{r: r, start: i, end: i + n}
		if r == utf8.RuneError && n == 1 {
			c = readBroken(segment, i)
			broken = broken || c.kind == InvalidUTF8
		}
		cells = append(cells, c)
		i = c.end
	}
	e.cells = cells
	if broken {
		cells = e.mendBroken(cells, segment, last)
	}
	for i := range cells {
		if k := cells[i].kind; k != "" && !e.does(k) {
			cells[i].kind = ""
		}
	}
	return cells
}

// readBroken reads what is no UTF-8 at segment[i]: surrogates, a pair or one (CESU-8), or the longest beginning of a
// character.
func readBroken(segment []byte, i int) cell {
	if high, ok := surrogateAt(segment, i); ok {
		if low, ok := surrogateAt(segment, i+3); ok && high < 0xDC00 && low >= 0xDC00 {
			return cell{r: 0x10000 + (high-0xD800)<<10 + (low - 0xDC00), start: i, end: i + 6, kind: Surrogate}
		}
		return cell{r: utf8.RuneError, start: i, end: i + 3, kind: Surrogate}
	}
	n := 1
	for n < 3 && i+n < len(segment) && segment[i+n]&0xC0 == 0x80 && !utf8.FullRune(segment[i:i+n]) && !utf8.FullRune(segment[i:i+n+1]) {
		n++
	}
	return cell{r: utf8.RuneError, start: i, end: i + n, kind: InvalidUTF8}
}

func surrogateAt(b []byte, i int) (rune, bool) {
	if i+3 > len(b) || b[i] != 0xED || b[i+1] < 0xA0 || b[i+1] > 0xBF || b[i+2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 + rune(b[i+1]&0x3F)<<6 + rune(b[i+2]&0x3F), true
}

// mendBroken decides what bytes that are no UTF-8 are: Windows-1252, the beginning of a last character, or lost.
func (e *engine) mendBroken(cells []cell, segment []byte, last bool) []cell {
	if end := len(cells) - 1; last && e.does(CutCharacter) && cutOff(cells, segment) && (!e.does(SingleByte) || !e.singleByte(cells, segment) || !accentAtEnd(segment)) {
		e.drop(&cells[end], CutCharacter)
		cells = e.compact(cells)
	}
	if e.does(SingleByte) && e.singleByte(cells, segment) {
		out := make([]cell, 0, len(segment))
		for _, c := range cells {
			if c.kind != InvalidUTF8 {
				out = append(out, c)
				continue
			}
			for i := c.start; i < c.end; i++ {
				out = append(out, cell{r: pageRune(segment[i]), start: i, end: i + 1, kind: SingleByte})
			}
		}
		return out
	}
	return cells
}

// cutOff reports whether the last cell is a character that had only begun.
func cutOff(cells []cell, segment []byte) bool {
	c := cells[len(cells)-1]
	return c.kind == InvalidUTF8 && !utf8.FullRune(segment[c.start:])
}

// accentAtEnd reports whether a text ends like café in Windows-1252. Ã is no such end, and the first bytes of typographic
// quotes, kana, full-width forms and emoji are none.
func accentAtEnd(segment []byte) bool {
	n := len(segment)
	b := segment[n-1]
	return n > 1 && b >= 0xE0 && b < 0xEF && b != 0xE2 && b != 0xE3 && segment[n-2] >= 'a' && segment[n-2] <= 'z'
}

// singleByte reports whether a line proves to be Windows-1252: nothing in it is UTF-8, every byte is assigned, and one
// stands in a word.
func (e *engine) singleByte(cells []cell, segment []byte) bool {
	proof := false
	for _, c := range cells {
		if c.r >= utf8.RuneSelf && c.kind != InvalidUTF8 || c.r < ' ' && c.r != '\t' && c.r != '\n' && c.r != '\r' {
			return false
		}
		if c.kind != InvalidUTF8 {
			continue
		}
		for i := c.start; i < c.end; i++ {
			r := pageRune(segment[i])
			if classOf(r) == controlClass {
				return false
			}
			letter := i > 0 && alnum(segment[i-1]) || i+1 < len(segment) && alnum(segment[i+1])
			proof = proof || letter && (classOf(r).letter() || r >= 0x2013 && r <= 0x2026)
		}
	}
	return proof
}

// pageRune returns the character of a byte above 0x7F in Windows-1252.
func pageRune(b byte) rune {
	if r, ok := windows1252(rune(b)); ok {
		return r
	}
	return rune(b)
}

// mendC1 replaces C1 controls by what they are in Windows-1252.
func (e *engine) mendC1(cells []cell) []cell {
	if !e.does(C1Control) {
		return cells
	}
	for i := 0; i < len(cells); {
		j, all := i, true
		for ; j < len(cells) && classOf(cells[j].r) == controlClass; j++ {
			r, ok := windows1252(cells[j].r)
			all = all && ok && (r != '€' || besideDigit(cells, j))
		}
		for ; i < j && all; i++ {
			cells[i].r, _ = windows1252(cells[i].r)
			cells[i].kind = C1Control
		}
		i = max(j, i+1)
	}
	return cells
}

// besideDigit reports whether an amount stands before or behind cells[i].
func besideDigit(cells []cell, i int) bool {
	for _, step := range []int{-1, 1} {
		j := i + step
		if j >= 0 && j < len(cells) && cells[j].r == ' ' {
			j += step
		}
		if j >= 0 && j < len(cells) && digit(cells[j].r) {
			return true
		}
	}
	return false
}
