package code

import (
	"bytes"

	"github.com/unfray/unfray/jsonrepair"
)

// fence is an open code fence.
type fence struct {
	mark   byte
	width  int
	prefix string // what the lines before its mark begin with: > and blanks
	quotes int    // > around it
	indent int    // columns of the list item that it is in
}

// CloseFence ends the Markdown code fence that is open at the true end of text: by a
// line with the same character, as many of them, within the same quotation or list
// item. A last line that is the beginning of such an end is completed. It returns false,
// and no edits, if no fence is open.
//
// Fences are those of CommonMark (§4.5), in quotations and list items too. A line that
// would end a fence but is indented less than its list item ends it as well: models
// write that, and mean it.
func CloseFence(text []byte) ([]jsonrepair.Edit, bool) {
	f := openFence(text)
	if f == nil {
		return nil, false
	}
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	begun := bytes.TrimLeft(last, " \t>")
	after := f.prefix + string(bytes.Repeat([]byte{f.mark}, f.width))
	switch {
	case len(last) == 0:
	case len(begun) > 0 && len(begun) < f.width && len(bytes.Trim(begun, string(f.mark))) == 0 && bytes.IndexByte(text, '\n') >= 0:
		after = string(bytes.Repeat([]byte{f.mark}, f.width-len(begun)))
	case len(bytes.Trim(last, " \t>")) == 0 && len(last) <= len(f.prefix) && bytes.HasPrefix([]byte(f.prefix), last):
		after = after[len(last):]
	default:
		after = "\n" + after
	}
	return []jsonrepair.Edit{{Kind: FenceOpen, Offset: len(text), After: after}}, true
}

// openFence returns the fence that is open at the end of text, nil if none is.
func openFence(text []byte) *fence {
	var open *fence
	var items []int // indents of the contents of the list items around, in columns
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		quotes, indent, rest := container(line)
		if open != nil {
			switch {
			case quotes < open.quotes && len(bytes.TrimSpace(rest)) > 0 && !isMark(rest, open):
				open = nil // the quotation ends, and the fence with it
			case quotes >= open.quotes && ends(line, open):
				open = nil
				continue
			case quotes < open.quotes && isMark(rest, open):
				open = nil
				continue
			default:
				continue
			}
		}
		if len(rest) == 0 {
			continue
		}
		for len(items) > 0 && items[len(items)-1] > indent {
			items = items[:len(items)-1]
		}
		column := indent
		for n := item(rest); n > 0 && indent-last(items) < 4; n = item(rest) {
			column += n
			rest = rest[n:]
			indent = column
			items = append(items, column)
			if len(items) > 64 {
				items = items[1:]
			}
		}
		if mark, width := fenceMark(rest); width > 0 && column-last(items) < 4 {
			open = &fence{mark: mark, width: width, quotes: quotes, indent: last(items)}
			open.prefix = blank(line[:len(line)-len(rest)])
		}
	}
	return open
}

func last(items []int) int {
	if len(items) == 0 {
		return 0
	}
	return items[len(items)-1]
}

// container takes the marks of quotations and blanks off a line. indent counts the
// columns behind the last mark.
func container(line []byte) (quotes, indent int, rest []byte) {
	for len(line) > 0 {
		switch {
		case line[0] == ' ':
			indent++
		case line[0] == '\t':
			indent = indent&^3 + 4
		case line[0] == '>' && indent < 4:
			quotes++
			indent = 0
			if len(line) > 1 && line[1] == ' ' {
				line = line[1:]
			}
		default:
			return quotes, indent, line
		}
		line = line[1:]
	}
	return quotes, indent, line
}

// item returns the length of a list marker and the blanks behind it, 0 if there is
// none.
func item(s []byte) int {
	n := 0
	switch {
	case s[0] == '-' || s[0] == '*' || s[0] == '+':
		n = 1
	default:
		for n < len(s) && n < 9 && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		if n == 0 || n == len(s) || s[n] != '.' && s[n] != ')' {
			return 0
		}
		n++
	}
	blanks := 0
	for n+blanks < len(s) && s[n+blanks] == ' ' {
		blanks++
	}
	if blanks == 0 || n+blanks == len(s) {
		return 0
	}
	if blanks > 4 {
		blanks = 1
	}
	return n + blanks
}

// fenceMark returns the character and the length of the fence that a line opens, 0 if
// it opens none.
func fenceMark(s []byte) (mark byte, width int) {
	if len(s) == 0 || s[0] != '`' && s[0] != '~' {
		return 0, 0
	}
	for width < len(s) && s[width] == s[0] {
		width++
	}
	if width < 3 || s[0] == '`' && bytes.IndexByte(s[width:], '`') >= 0 {
		return 0, 0
	}
	return s[0], width
}

// isMark reports whether a line is nothing but the end of f.
func isMark(s []byte, f *fence) bool {
	s = bytes.TrimRight(s, " \t")
	return len(s) >= f.width && len(bytes.Trim(s, string(f.mark))) == 0
}

// ends reports whether a line ends f: not if it is indented like code in its item.
func ends(line []byte, f *fence) bool {
	for range f.quotes {
		i := bytes.IndexByte(line, '>')
		line = line[i+1:]
		if len(line) > 0 && line[0] == ' ' {
			line = line[1:]
		}
	}
	s := bytes.TrimLeft(line, " \t")
	column := 0
	for _, c := range line[:len(line)-len(s)] {
		if column++; c == '\t' {
			column = (column-1)&^3 + 4
		}
	}
	return column-f.indent < 4 && isMark(s, f)
}

// blank is a prefix of lines with the markers of list items made blanks.
func blank(prefix []byte) string {
	out := bytes.Clone(prefix)
	for i, c := range out {
		if c != '>' && c != ' ' && c != '\t' {
			out[i] = ' '
		}
	}
	return string(out)
}
