package textrepair

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"

	"github.com/unfray/unfray/jsonrepair"
)

// restyles reports whether characters that are as they were written are to be changed.
func (o *Options) restyles() bool {
	return o.StraightQuotes || o.NarrowWidth || o.SplitLigatures || o.NFC
}

// restyle applies what was asked for beyond repair.
func (e *engine) restyle(cells []cell) []cell {
	if !e.options.restyles() {
		return cells
	}
	out := make([]cell, 0, len(cells))
	for _, c := range cells {
		text, kind := e.restyled(c.r)
		if kind == "" || c.start < e.floor {
			out = append(out, c)
			continue
		}
		c.kind = kind
		for _, r := range text {
			c.r = r
			out = append(out, c)
			c.start = c.end
		}
	}
	if e.options.NFC {
		out = e.compose(out)
	}
	return out
}

func (e *engine) restyled(r rune) (string, jsonrepair.Kind) {
	switch {
	case r < 0x80:
	case e.options.StraightQuotes && (r == '“' || r == '”' || r == '„' || r == '‟'):
		return `"`, CurlyQuote
	case e.options.StraightQuotes && (r == '‘' || r == '’' || r == '‚' || r == '‛'):
		return "'", CurlyQuote
	case e.options.SplitLigatures && (r >= 0xFB00 && r <= 0xFB06 || r >= 0x1C4 && r <= 0x1CC || r >= 0x1F1 && r <= 0x1F3 || r == 0x132 || r == 0x133 || r == 0x149):
		return norm.NFKC.String(string(r)), Ligature
	case e.options.NarrowWidth:
		if folded := width.Fold.String(string(r)); folded != string(r) {
			return folded, Width
		}
	}
	return "", ""
}

// compose puts cells into NFC.
func (e *engine) compose(cells []cell) []cell {
	out := make([]cell, 0, len(cells))
	for i := 0; i < len(cells); {
		j := i + 1
		for j < len(cells) && cells[j].r >= utf8.RuneSelf && !norm.NFC.PropertiesString(string(cells[j].r)).BoundaryBefore() {
			j++
		}
		text := make([]byte, 0, 16)
		for _, c := range cells[i:j] {
			text = utf8.AppendRune(text, c.r)
		}
		if norm.NFC.IsNormal(text) || cells[i].start < e.floor {
			out = append(out, cells[i:j]...)
			i = j
			continue
		}
		c := cell{start: cells[i].start, end: cells[j-1].end, kind: Composed}
		for _, r := range string(norm.NFC.Bytes(text)) {
			c.r = r
			out = append(out, c)
			c.start = c.end
		}
		i = j
	}
	return out
}
