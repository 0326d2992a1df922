package code

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
)

// Close ends what is open at the end of code that was cut, from the inside out:
// strings, comments, brackets, blocks that end in a word. Half an escape or half a
// character at the very end is dropped with it. It gives no edits for code
// that is whole or broken, in a language that is not known, or where the end depends on
// what is missing: a Python header without its block, half a tag.
//
// The report is that of src itself; its Closed says whether the code is in order with
// the edits.
func Close(lang string, src []byte) ([]jsonrepair.Edit, *Report) {
	r, s := check(lang, src, Options{})
	switch {
	case r.Status != Cut:
		return nil, r
	case r.Language == "json":
		fixed := jsonrepair.Repair(src, jsonrepair.Options{})
		if fixed.Outcome != jsonrepair.Truncated {
			return nil, r
		}
		r.Closed = true
		var edits []jsonrepair.Edit
		for e := range fixed.Edits() {
			edits = append(edits, e)
		}
		return edits, r
	case s == nil:
		return nil, r
	}
	tail, ok := s.closing()
	if !ok || tail.after == "" {
		return nil, r
	}
	closed, _ := check(r.Language, tail.apply(src), Options{})
	r.Closed = closed.Status == Parses
	if !r.Closed && r.Parser == "lexer" {
		return nil, r // what the rules do not see through they leave alone
	}
	return []jsonrepair.Edit{{Kind: CodeCut, Offset: tail.offset, Before: string(src[tail.offset:]), After: tail.after}}, r
}

// A tail is what to put in place of the text from offset on.
type tail struct {
	offset int
	after  string
}

func (t tail) apply(src []byte) []byte {
	return append(append([]byte(nil), src[:t.offset]...), t.after...)
}

// closing returns what ends all that is open. It returns false if that is not known.
func (s *scanner) closing() (tail, bool) {
	t := tail{offset: len(s.src)}
	if len(s.problems) > 0 || s.overflow || s.indent.header != nil && s.top.kind == root {
		return t, false
	}
	var b strings.Builder
	t.offset -= cutCharacter(s.src)
	if s.dangling {
		t.offset-- // half an escape
	}
	inside := 0 // strings around
	for f := s.top; f.kind != root; f = f.up {
		if f.kind == text {
			inside++
		}
	}
	if s.lineOpen {
		if inside > 0 {
			return t, false
		}
		b.WriteByte('\n')
	}
	for _, h := range s.heredocs {
		b.WriteString("\n" + h.tag)
	}
	line := bytes.LastIndexByte(s.src, '\n') + 1 // where the line begins that we are in
	if len(s.heredocs) > 0 {
		line = len(s.src) + 1
	}
	own := len(s.src) + 1 // where the line begins that the opener is in
	for f := s.top; f.kind != root; f = f.up {
		if f.kind == text {
			inside--
		}
		if f.closer == "" {
			return t, false
		}
		if f.kind == text && f.rule.format && f.closer == "}" {
			f = f.up // the format ends with its code
		}
		if f.offset < own {
			own = bytes.LastIndexByte(s.src[:f.offset], '\n') + 1
		}
		switch {
		case f.kind == text && b.Len() == 0 && !s.dangling || f.kind == comment:
			b.WriteString(rest(s.src[min(len(s.src), f.offset+len(f.opener)):], f.closer, f.kind == text && f.rule.escape != 0))
			for range f.nested {
				b.WriteString(f.closer)
			}
		case f.kind == text:
			b.WriteString(f.closer)
		case f.kind == hereText:
			if len(s.src) > 0 && s.src[len(s.src)-1] != '\n' || b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(f.closer)
			if inside == 0 {
				b.WriteByte('\n')
			}
			line = len(s.src) + 1
		case (f.kind == bracket || f.kind == keyword || f.kind == element) && inside == 0 && own < line:
			if !(b.Len() == 0 && len(s.src) > 0 && s.src[len(s.src)-1] == '\n') && !strings.HasSuffix(b.String(), "\n") {
				b.WriteByte('\n')
			}
			b.WriteString(indentOf(s.src[own:f.offset]) + f.closer)
			line = own
		case f.kind == keyword:
			b.WriteString("\n" + f.closer)
		default:
			b.WriteString(f.closer)
		}
	}
	for range s.branches {
		b.WriteString("\n#endif")
	}
	t.after = b.String()
	return t, true
}

// cutCharacter returns how many bytes at the end of src are the beginning of a
// character in UTF-8.
func cutCharacter(src []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(src); n++ {
		if c := src[len(src)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(src[len(src)-n:]) {
				return n
			}
			break
		}
	}
	return 0
}

// rest is what is missing of an end of which the text may have the beginning.
func rest(text []byte, closer string, escapes bool) string {
	for n := min(len(closer)-1, len(text)); n > 0; n-- {
		if !strings.HasSuffix(string(text[len(text)-n:]), closer[:n]) {
			continue
		}
		if escapes && endsInEscape(text[:len(text)-n]) {
			continue
		}
		return closer[n:]
	}
	return closer
}

// indentOf returns the white space that a line begins with.
func indentOf(line []byte) string {
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}
