package jsonrepair

import "bytes"

// A document that is laid out in lines says by its indentation, too, which
// container a line belongs to. The automaton does not look at that: it could not
// tell a line that is out of place from one that shows a closer to be missing
// before the document has ended. Of whole documents whose brackets had to be
// mended, [Repair] makes a second reading that does.

// maxColumn is the most bytes of an indentation.
const maxColumn = 1 << 10

// column returns how many bytes of white space stand before p on its line, or -1
// if anything else does.
func (e *engine) column(p int) int {
	for i := p; i >= max(e.base, p-maxColumn); i-- {
		switch {
		case i == 0 || i > e.base && e.in[i-1-e.base] == '\n':
			return p - i
		case i > e.base && !isSpace(e.in[i-1-e.base]):
			return none
		}
	}
	return none
}

// indent returns the indentation of the line of p.
func (e *engine) indent(p int) int {
	for i := p; i >= max(e.base, p-maxColumn); i-- {
		if i == 0 || i > e.base && e.in[i-1-e.base] == '\n' {
			n := 0
			for i+n < p && isSpace(e.in[i+n-e.base]) {
				n++
			}
			return n
		}
	}
	return none
}

// place notes where a member or element of the innermost container begins.
func (e *engine) place(p int) {
	if l := e.level(); e.o.layout && l != nil && l.column < 0 {
		l.column = e.column(p)
	}
}

// outdent ends the containers that a member or element at p is too far left for,
// if it stands where those of an outer one do.
func (e *engine) outdent(p int, key bool) {
	if !e.o.layout || e.stack.n != len(e.levels) {
		return
	}
	col := e.column(p)
	if col < 0 {
		return
	}
	for i := len(e.levels) - 1; i >= 0; i-- {
		l := &e.levels[i]
		if l.column < 0 || l.column > col {
			continue
		}
		if l.column < col || l.object != key || i == len(e.levels)-1 {
			return
		}
		comma := e.comma
		for e.stack.n > i+1 {
			e.comma = none
			e.insertCloser(e.valueEnd)
		}
		e.comma = comma
		return
	}
}

// Costs of an alignment with the layout.
const (
	costColumn  = 3 // a closer that is not where its opener's line begins
	costOutline = 6 // what follows is not where the others of its container are
)

// costLine is the cost of taking a closer for that of the container that is d
// levels out.
func (e *engine) costLine(c closing, d int) int {
	k := e.stack.n - 1 - d
	if !e.o.layout || k >= len(e.levels) || d == 0 && (e.state == objStart || e.state == arrStart) {
		return 0 // an empty container may end anywhere
	}
	if col := e.column(c.at); col >= 0 && e.levels[k].indent >= 0 && e.levels[k].indent != col {
		return costColumn
	}
	return 0
}

// costNext is the cost of what stands at p when d containers have ended.
func (e *engine) costNext(p, d int) int {
	k := e.stack.n - 1 - d
	if !e.o.layout || k < 0 || k >= len(e.levels) {
		return 0
	}
	for p < e.end() && (isSpace(e.in[p-e.base]) || e.in[p-e.base] == ',') {
		p++
	}
	if col := e.column(p); p < e.end() && col >= 0 && e.levels[k].column >= 0 && e.levels[k].column != col {
		return costOutline
	}
	return 0
}

// inPlace reports whether the closers of a run stand where the lines of their
// openers begin, as far as that can be told, and what follows where it should.
func (e *engine) inPlace(run []closing, next int) bool {
	if !e.o.layout {
		return true
	}
	for i, c := range run {
		if e.costLine(c, i) > 0 {
			return false
		}
	}
	return e.costNext(next, len(run)) == 0
}

// laidOut reports whether the lines of a text are indented as containers are: more
// behind a line that opens one, less where one closes, and otherwise as the line
// before. A few lines may be out of place.
func laidOut(data []byte) bool {
	fits, others, last := 0, 0, none
	opened := false
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		text := bytes.TrimSpace(line)
		if len(text) == 0 {
			continue
		}
		column := bytes.Index(line, text[:1])
		closes := text[0] == '}' || text[0] == ']'
		fit := column == last
		switch {
		case closes && opened:
			fit = column <= last
		case closes:
			fit = column < last
		case opened:
			fit = column > last
		}
		switch {
		case last == none:
		case fit:
			fits++
		default:
			others++
		}
		end := text[len(text)-1]
		last, opened = column, end == '{' || end == '['
	}
	return fits >= 3*others+1 && others <= 3+fits/50
}

// closedOutside reports whether the last line of a text closes a container as far
// left as the first line begins: a text that was merely cut is still inside.
func closedOutside(data []byte) bool {
	data = bytes.TrimRight(data, " \t\r\n")
	last := data[bytes.LastIndexByte(data, '\n')+1:]
	text := bytes.TrimLeft(last, " \t")
	if len(text) == 0 || text[0] != '}' && text[0] != ']' {
		return false
	}
	first := data[len(data)-len(bytes.TrimLeft(data, "\r\n")):]
	return len(last)-len(text) <= len(first)-len(bytes.TrimLeft(first, " \t"))
}
