package textrepair

import (
	"bytes"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxEntity is how many bytes an entity takes at most: the longest name is that of ∳.
const maxEntity = 34

// entityAt returns the length of the HTML entity that text begins with; 0: none. more says that there may be one once
// the text goes on.
func entityAt(text []byte) (n int, more bool) {
	for i := 1; i < maxEntity; i++ {
		if i == len(text) {
			return 0, true
		}
		switch b := text[i]; {
		case b == ';':
			if i == 1 || decodeEntity(text[:i+1]) == "" {
				return 0, false
			}
			return i + 1, false
		case b == '#' && i == 1, alnum(b):
		default:
			return 0, false
		}
	}
	return 0, false
}

// decodeEntity returns the characters of an entity, "" if it is none or one that nobody writes.
func decodeEntity(entity []byte) string {
	s := string(entity)
	text := html.UnescapeString(s)
	if strings.HasSuffix(text, ";") { // not known, or only a part of the name is
		if text = shoutedEntity(s); text == "" {
			return ""
		}
	}
	for _, r := range text {
		if r == utf8.RuneError || r < ' ' && r != '\n' && r != '\t' || r == 0x7F || r >= 0x80 && r < 0xA0 || !writable(r) {
			return ""
		}
	}
	return text
}

// shoutedEntity decodes the name of an accented letter that was put into capitals with its word: &EACUTE;.
func shoutedEntity(s string) string {
	if len(s) < 5 || strings.ToUpper(s) != s || s[1] == '#' {
		return ""
	}
	for _, name := range []string{s[:2] + strings.ToLower(s[2:]), strings.ToLower(s)} {
		text := html.UnescapeString(name)
		r, n := utf8.DecodeRuneInString(text)
		if n == len(text) && r > utf8.RuneSelf {
			return string(unicode.ToUpper(r))
		}
	}
	return ""
}

// decodeEntities decodes the entities of a segment once, where the policy or the evidence says so.
func (e *engine) decodeEntities(cells []cell) []cell {
	if e.options.Entities == Never || !e.does(Entity) {
		return cells
	}
	var out []cell
	about := -1
	ticks, open := 0, false
	for _, c := range cells {
		if c.r == '`' {
			ticks++
		}
	}
	for i := 0; i < len(cells); {
		n, text := 0, ""
		if cells[i].r == '`' {
			ticks--
			open = !open
		}
		if cells[i].r == '&' && cells[i].start >= e.floor {
			n, text = readEntity(cells[i:])
		}
		if n > 0 && e.options.Entities != Always {
			if about < 0 {
				about = 0
				line := textOf(cells)
				// In the address of a Markdown link an entity is as good as what it stands for.
				if e.code || aboutEntities(e.context) || aboutEntities(line) || bytes.Contains(line, []byte("](")) {
					about = 1
				}
			}
			if about == 1 || e.raw&escapedRaw(text) != 0 || shown(cells, text) || open && ticks > 0 || quotedEntity(cells, i, n) {
				e.note(Entity, cells[i].start, cells[i+n-1].end, "may stand for "+text+", or for itself")
				text = ""
			}
		}
		if n == 0 || text == "" {
			n = max(n, 1)
			if out != nil {
				out = append(out, cells[i:i+n]...)
			}
			i += n
			continue
		}
		if out == nil {
			out = append(make([]cell, 0, len(cells)), cells[:i]...)
		}
		c := cell{start: cells[i].start, end: cells[i+n-1].end, kind: Entity}
		for _, r := range text {
			c.r = r
			out = append(out, c)
			c.start = c.end
		}
		i += n
	}
	if out == nil {
		return cells
	}
	return out
}

// readEntity reads the entity that cells begin with.
func readEntity(cells []cell) (int, string) {
	var buf [maxEntity]byte
	for i := range min(len(cells), maxEntity) {
		r := cells[i].r
		if r >= utf8.RuneSelf || r < 0 {
			return 0, ""
		}
		buf[i] = byte(r)
		if r == ';' {
			if n, _ := entityAt(buf[:i+1]); n > 0 {
				return n, decodeEntity(buf[:n])
			}
			return 0, ""
		}
	}
	return 0, ""
}

// escapedRaw returns the flags that speak against decoding an entity for text: what was escaped as a whole has no raw <,
// and no other character of the kind either.
func escapedRaw(text string) rawFlags {
	switch text {
	case "&":
		return rawLess | rawAmpersand
	case ">":
		return rawLess | rawGreater
	case `"`:
		return rawLess | rawQuote
	case "'":
		return rawLess | rawApostrophe
	}
	return rawLess
}

// shown reports whether the line has the character of an entity beside it: then the entity is explained. A no-break
// space is too frequent to say so.
func shown(cells []cell, text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	if r < 0xA1 {
		return false
	}
	for _, c := range cells[:min(len(cells), 256)] {
		if c.r == r && c.kind == "" {
			return true
		}
	}
	return false
}

// quotedEntity reports whether an entity stands between quotes: then it is spoken of.
func quotedEntity(cells []cell, i, n int) bool {
	before, after := rune(-1), rune(-1)
	if i > 0 {
		before = cells[i-1].r
	}
	if i+n < len(cells) {
		after = cells[i+n].r
	}
	for _, q := range [][2]rune{{'"', '"'}, {'\'', '\''}, {'“', '”'}, {'‘', '’'}, {'«', '»'}, {'„', '“'}, {'(', ')'}} {
		if before == q[0] && after == q[1] {
			return true
		}
	}
	return false
}

// words of texts in which an entity may stand for itself.
var entityWords = [][]byte{
	[]byte("entit"), []byte("html"), []byte("xml"), []byte("sgml"), []byte("ampersand"), []byte("escap"), []byte("encod"),
}

// aboutEntities reports whether a text has such a word. The extension of a file name is none.
func aboutEntities(text []byte) bool {
	text = bytes.ToLower(text)
	for _, w := range entityWords {
		for rest := text; ; {
			i := bytes.Index(rest, w)
			if i < 0 {
				break
			}
			if i == 0 || rest[i-1] != '.' {
				return true
			}
			rest = rest[i+len(w):]
		}
	}
	return false
}

// textOf returns the ASCII characters of cells.
func textOf(cells []cell) []byte {
	b := make([]byte, 0, len(cells))
	for _, c := range cells {
		if c.r >= 0 && c.r < utf8.RuneSelf {
			b = append(b, byte(c.r))
		}
	}
	return b
}
