package textrepair

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
)

const (
	escape     = 0x1B
	csi        = 0x9B // C1 control that is ESC [
	backspace  = '\b'
	bell       = 0x07
	lineSep    = 0x2028
	paraSep    = 0x2029
	bom        = 0xFEFF
	nonJoiner  = 0x200C
	joiner     = 0x200D
	blackFlag  = 0x1F3F4
	firstTag   = 0xE0000
	behindTags = 0xE0080
)

// gone is the character of a cell that was dropped, until compact takes it out.
const gone = -1

// drop marks a cell as dropped.
func (e *engine) drop(c *cell, k jsonrepair.Kind) {
	if c.end > c.start {
		e.dropped = append(e.dropped, span{c.start, c.end, k})
	}
	c.r, e.holes = gone, true
}

// compact takes the dropped cells out.
func (e *engine) compact(cells []cell) []cell {
	if !e.holes {
		return cells
	}
	e.holes = false
	return slices.DeleteFunc(cells, func(c cell) bool { return c.r == gone })
}

// dropEscapes drops what was meant for a terminal (ECMA-48): control sequences, strings such as the hyperlinks of OSC 8,
// and overstriking.
func (e *engine) dropEscapes(cells []cell) []cell {
	if !e.does(TerminalEscape) {
		return cells
	}
	for i := 0; i < len(cells); {
		n := escapeLength(cells[i:])
		if n == 0 && cells[i].r == backspace {
			n = e.dropOverstrike(cells, i)
		}
		for j := range n {
			e.drop(&cells[i+j], TerminalEscape)
		}
		i += max(n, 1)
	}
	return e.compact(cells)
}

// dropOverstrike mends bold and underlined text as nroff writes it for printers: a character, the backspace at cells[i]
// and another character. It returns how many cells are to be dropped.
func (e *engine) dropOverstrike(cells []cell, i int) int {
	if i == 0 || i+1 == len(cells) || cells[i-1].r <= ' ' || cells[i+1].r <= ' ' {
		return 0
	}
	switch {
	case cells[i-1].r == cells[i+1].r:
		return 2
	case cells[i-1].r == '_' && cells[i-1].start >= e.floor:
		e.drop(&cells[i-1], TerminalEscape)
		return 1
	}
	return 0
}

// escapeLength returns how many cells an escape sequence takes that begins with the first; 0: none does.
func escapeLength(cells []cell) int {
	switch {
	case cells[0].r == csi && len(cells) > 1 && (digit(cells[1].r) || cells[1].r == '?'):
		return sequenceLength(cells, 1)
	case cells[0].r != escape || len(cells) < 2:
		return 0
	}
	switch r := cells[1].r; {
	case r == '[':
		return sequenceLength(cells, 2)
	case r == ']' || r == 'P' || r == '_' || r == '^' || r == 'X':
		return stringLength(cells)
	case r >= '(' && r <= '/' || r == '#' || r == '%': // character sets
		if len(cells) > 2 && cells[2].r >= '0' && cells[2].r < 0x7F {
			return 3
		}
		return 2
	case r == '7' || r == '8' || r == '=' || r == '>' || r == 'c' || r == 'M':
		return 2
	}
	return 0
}

func digit(r rune) bool { return r >= '0' && r <= '9' }

// sequenceLength returns the length of a control sequence whose parameters begin at cells[i]. One that was cut off
// counts too; where no sequence follows only what introduces it does.
func sequenceLength(cells []cell, i int) int {
	begin := i
	for i < len(cells) && cells[i].r >= 0x30 && cells[i].r <= 0x3F {
		i++
	}
	for i < len(cells) && cells[i].r >= 0x20 && cells[i].r <= 0x2F {
		i++
	}
	switch {
	case i == len(cells):
		return i
	case cells[i].r >= 0x40 && cells[i].r <= 0x7E:
		return i + 1
	}
	return begin
}

// stringLength returns the length of a command string, up to its terminator in the same line. Without one it is only
// what introduces it.
func stringLength(cells []cell) int {
	for i := 2; i < len(cells); i++ {
		switch r := cells[i].r; {
		case r == bell || r == 0x9C:
			return i + 1
		case r == escape:
			if i+1 < len(cells) && cells[i+1].r == '\\' {
				return i + 2
			}
			return 2
		}
	}
	if cells[1].r == ']' {
		return 2
	}
	return 0 // the letter may be text
}

// dropControls drops control characters and byte order marks, and mends line ends.
func (e *engine) dropControls(cells []cell) []cell {
	for i := range cells {
		c := &cells[i]
		switch r := c.r; {
		case r == '\r':
			e.mendReturn(cells, i)
		case r == lineSep || r == paraSep:
			if e.does(LineEnd) && !e.code {
				c.r, c.kind = '\n', LineEnd
			}
		case r == bom:
			if e.does(ByteOrderMark) {
				e.drop(c, ByteOrderMark)
			}
		case r < ' ' && r >= 0 && r != '\t' && r != '\n' && r != '\f', r == 0x7F, r >= 0x206A && r <= 0x206F, r >= 0xFFF9 && r <= 0xFFFB:
			if e.does(Control) {
				e.drop(c, Control)
			}
		}
	}
	return e.compact(cells)
}

// mendReturn drops a carriage return before that of a line end: text mode was applied twice.
func (e *engine) mendReturn(cells []cell, i int) {
	j := i
	for j < len(cells) && cells[j].r == '\r' {
		j++
	}
	atEnd := j < len(cells) && cells[j].r == '\n'
	c := &cells[i]
	switch {
	case e.options.LineFeeds && e.does(LineEnd):
		if atEnd {
			e.drop(c, LineEnd)
		} else {
			c.r, c.kind = '\n', LineEnd
		}
	case atEnd && j > i+1 && e.does(LineEnd):
		e.drop(c, LineEnd)
	}
}

// dropInvisible drops characters that show nothing and that nothing beside them needs.
func (e *engine) dropInvisible(cells []cell) []cell {
	rtl := 0 // 1: the line has right-to-left letters, -1: it has none
	var last rune
	for i := range cells {
		c := &cells[i]
		next := rune(-1)
		if i+1 < len(cells) {
			next = cells[i+1].r
		}
		switch r := c.r; {
		case r == 0x200B || r == 0x2060 || r > 0x2060 && r <= 0x2064 && e.code || r == 0x180E && !mongolian(last): // invisible operators belong to formulas
			if e.does(ZeroWidth) && (e.code || word(last) && (word(next) || invisible(next))) {
				e.drop(c, ZeroWidth)
			}
		case r == nonJoiner || r == joiner:
			if e.does(ZeroWidth) && (e.code || word(last)) && !joins(last) && !joins(next) && (e.code || word(next) || invisible(next)) {
				e.drop(c, ZeroWidth)
			}
		case r >= firstTag && r < behindTags:
			if e.does(ZeroWidth) && last != blackFlag && (last < firstTag || last >= behindTags) {
				e.drop(c, ZeroWidth)
			}
		case bidi(r) && e.code && e.does(BidiControl):
			if rtl == 0 {
				rtl = rightToLeft(cells)
			}
			if rtl < 0 {
				e.drop(c, BidiControl)
			}
		}
		if c.r != gone {
			last = c.r
		}
	}
	return e.compact(cells)
}

func mongolian(r rune) bool { return unicode.Is(unicode.Mongolian, r) }

func word(r rune) bool { return r > 0 && r < utf8.RuneSelf && alnum(byte(r)) }

func invisible(r rune) bool {
	return r == 0x200B || r == nonJoiner || r == joiner || r >= 0x2060 && r <= 0x2064 || r == bom
}

// joins reports whether a joiner or non-joiner beside the character may matter: emoji, and scripts whose letters join.
func joins(r rune) bool {
	switch {
	case r < 0x300:
		return r == 0xA9 || r == 0xAE
	case r >= 0x1F000 || r == 0xFE0F || r >= 0x2190 && r < 0x2C00:
		return true
	case r < 0x530:
		return false
	case r >= 0x2000 && r < 0x3040:
		return false
	}
	return unicode.IsLetter(r) || unicode.IsMark(r)
}

func bidi(r rune) bool {
	return r == 0x200E || r == 0x200F || r == 0x61C || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}

// rightToLeft returns 1 if right-to-left letters are in the text, else -1.
func rightToLeft(cells []cell) int {
	for _, c := range cells {
		if c.r >= 0x590 && c.r < 0x900 || c.r >= 0xFB1D && c.r < 0xFE00 || c.r >= 0xFE70 && c.r < bom {
			return 1
		}
	}
	return -1
}

// fence is the Markdown code fence that is open; the zero value is none.
type fence struct {
	mark  byte
	count int
}

func (f *fence) open() bool { return f.count > 0 }

// line takes a line of the text.
func (f *fence) line(b []byte) {
	b = bytes.Trim(b, " \t\r\n")
	if len(b) < 3 || b[0] != '`' && b[0] != '~' {
		return
	}
	n := 1
	for n < len(b) && b[n] == b[0] {
		n++
	}
	switch {
	case n < 3:
	case f.count == 0:
		// A longer line of tildes alone may underline a heading.
		if b[0] == '~' && (n == 3 || n < len(b)) || b[0] == '`' && bytes.IndexByte(b[n:], '`') < 0 {
			*f = fence{b[0], n}
		}
	case b[0] == f.mark && n >= f.count && n == len(b):
		*f = fence{}
	}
}
