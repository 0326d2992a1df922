package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// A picture of tokens is drawn in lines of two rows: the text cut at the ends of
// tokens, and the IDs below. A third row marks the tokens that may still move,
// and a double bar stands where they begin, so that the picture needs no
// colours:
//
//	const│·user‖Na
//	1024 │2188 ‖56
//	            ~~
type picture struct {
	cells []cell
	shown int // lines, the last ones; 0: all
}

// cell is one token in a picture.
type cell struct {
	text, id string
	moving   bool
	ends     bool // a newline ends the token, and with it the picture's line
	columns  int
}

const (
	bar       = "│"
	movingBar = "‖"
	movingSGR = "1;33" // bold yellow
	faintSGR  = "2"
)

// draw lays a picture out.
func (d display) draw(p picture) string {
	barColumns := runewidth.StringWidth(bar)
	columns := min(max(d.columns, 8+barColumns), maxColumns)
	cells := p.cells
	// A cell takes two columns or more.
	if most := p.shown * columns / 2; p.shown > 0 && len(cells) > most {
		cells = cells[len(cells)-most:]
	}
	var lines [][]cell
	used := 0
	for i, c := range cells {
		c.fit(columns - barColumns)
		if i == 0 || cells[i-1].ends || used+c.columns+barColumns > columns {
			lines, used = append(lines, nil), 0
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], c)
		used += c.columns + barColumns
	}
	if p.shown > 0 && len(lines) > p.shown {
		lines = lines[len(lines)-p.shown:]
	}
	drawn := 0
	for _, line := range lines {
		drawn += len(line)
	}
	var b strings.Builder
	if left := p.cells[:len(p.cells)-drawn]; len(left) > 0 {
		fmt.Fprintf(&b, "… %s", counted(len(left), "token"))
		if moving := slices.IndexFunc(left, func(c cell) bool { return c.moving }); moving >= 0 {
			fmt.Fprintf(&b, ", of which %d may move", len(left)-moving)
		}
		b.WriteString(" …\n")
	}
	before := len(p.cells) > drawn && p.cells[len(p.cells)-drawn-1].moving
	for _, line := range lines {
		d.drawLine(&b, line, before)
		before = line[len(line)-1].moving
	}
	return b.String()
}

// drawLine draws the two or three rows of a line. before says whether the token
// before it moves.
func (d display) drawLine(b *strings.Builder, line []cell, before bool) {
	var text, ids, marks strings.Builder
	for i, c := range line {
		sep, gap := "", ""
		switch {
		case c.moving && !before:
			sep = movingBar
		case i > 0:
			sep = bar
		}
		gap = strings.Repeat(" ", runewidth.StringWidth(sep))
		before = c.moving
		sgr := ""
		if c.moving {
			sgr = movingSGR
		}
		pad := func(s string) string {
			if i == len(line)-1 {
				return ""
			}
			return strings.Repeat(" ", c.columns-runewidth.StringWidth(s))
		}
		text.WriteString(d.paint(faintSGR, sep) + d.paint(sgr, c.text) + pad(c.text))
		ids.WriteString(d.paint(faintSGR, sep+c.id) + pad(c.id))
		if c.moving {
			marks.WriteString(gap + d.paint(sgr, strings.Repeat("~", c.columns)))
		} else {
			marks.WriteString(gap + strings.Repeat(" ", c.columns))
		}
	}
	b.WriteString(text.String() + "\n" + ids.String() + "\n")
	if line[len(line)-1].moving {
		b.WriteString(marks.String() + "\n")
	}
}

// fit cuts a cell's text down to a number of columns.
func (c *cell) fit(columns int) {
	if runewidth.StringWidth(c.text) > columns {
		c.text = runewidth.Truncate(c.text, columns, "…")
	}
	c.columns = max(runewidth.StringWidth(c.text), runewidth.StringWidth(c.id))
}

// tokenCells makes the cells of ids, of which those from moving on may move.
func tokenCells(t *tokenizer.Tokenizer, ids []vocab.ID, moving int) []cell {
	cells := make([]cell, len(ids))
	for i, id := range ids {
		b := t.Vocab().Bytes(id)
		cells[i] = cell{
			text: visible(b), id: strconv.Itoa(int(id)), moving: i >= moving,
			ends: len(b) > 0 && b[len(b)-1] == '\n' && t.Vocab().IsText(id),
		}
	}
	return cells
}

// visibleRun is how many equal marks of white space are shown one by one.
const visibleRun = 8

// visible writes a token's bytes so that each can be seen: a space as ·, a tab
// as →, a newline as ↵, other control characters as their picture, what has no
// shape of its own as its code point, and bytes that are no character in
// hexadecimal.
func visible(b []byte) string {
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		mark := mark(r, n, b[0], s.Len() == 0)
		run := 1
		if n == 1 && (r == ' ' || r == '\t' || r == '\n') {
			for run < len(b) && b[run] == b[0] {
				run++
			}
		}
		if run > visibleRun {
			fmt.Fprintf(&s, "%s×%d", mark, run)
		} else {
			s.WriteString(strings.Repeat(mark, run))
		}
		b = b[n*run:]
	}
	return s.String()
}

// mark shows one character of n bytes, the first of which is given.
func mark(r rune, n int, first byte, begins bool) string {
	switch {
	case r == utf8.RuneError && n == 1:
		return fmt.Sprintf(`\x%02x`, first)
	case r == ' ':
		return "·"
	case r == '\t':
		return "→"
	case r == '\n':
		return "↵"
	case r < ' ':
		return string('\u2400' + r)
	case r == 0x7f:
		return "\u2421"
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Co), unicode.Is(unicode.Variation_Selector, r), !unicode.IsGraphic(r):
		return fmt.Sprintf("‹%04X›", r)
	case begins && unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc):
		return "◌" + string(r) // it would join the bar before it
	}
	return string(r)
}

// counted puts a number and its noun together.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
