package textrepair

import "unicode/utf8"

// find records what a segment holds that looks wrong and was left.
func (e *engine) find(cells []cell) {
	rtl := 0
	for i := 0; i < len(cells); i++ {
		c := cells[i]
		if c.kind != "" {
			continue
		}
		switch r := c.r; {
		case r == utf8.RuneError:
			j := i
			for j+1 < len(cells) && cells[j+1].r == utf8.RuneError && cells[j+1].kind == "" {
				j++
			}
			e.note(ReplacementCharacter, c.start, cells[j].end, "a character was lost before")
			i = j
		case r == '\\':
			if escapedSurrogate(cells[i:]) {
				e.note(EscapedText, c.start, cells[i+5].end, "half of a surrogate pair, written out")
				i += 5
			}
		case r >= 0x80 && r < 0xA0:
			e.note(C1Control, c.start, c.end, "control character")
		case r == spaceLetter || r == newlineLetter || r == wordMark:
			e.note(TokenMark, c.start, c.end, "may be the mark of a vocabulary")
		case r == '<':
			if _, ok := byteToken(cells, i); ok {
				e.note(ByteToken, c.start, cells[i+5].end, "may be the name of a byte")
				i += 5
			}
		case r == '\r':
			if i+1 == len(cells) || cells[i+1].r != '\n' {
				e.note(LineEnd, c.start, c.end, "carriage return without line feed")
			}
		case r == lineSep || r == paraSep:
			e.note(LineEnd, c.start, c.end, "separator that some languages take for a line end")
		case bidi(r) && r != 0x200E && r != 0x200F && r != 0x61C:
			if rtl == 0 {
				rtl = rightToLeft(cells)
			}
			if e.code || rtl < 0 {
				e.note(BidiControl, c.start, c.end, "what is shown may not be in the order of the text")
			}
		}
	}
}

// escapedSurrogate reports whether \uD8xx is written out.
func escapedSurrogate(cells []cell) bool {
	if len(cells) < 6 || cells[1].r != 'u' || cells[2].r|0x20 != 'd' {
		return false
	}
	for i, c := range cells[2:6] {
		r := c.r | 0x20
		if !digit(c.r) && (r < 'a' || r > 'f') || i == 1 && c.r < '8' {
			return false
		}
	}
	return true
}
