package loop

import "bytes"

// lines follows the lines of a text as far as fences and reasoning go.
type lines struct {
	head      [16]byte // the line's first bytes
	n         int      // bytes of the line
	fence     byte     // the character of the open fence, 0 if none is open
	width     int      // its length
	json      bool     // it says that it holds JSON
	tag       [12]byte // what follows the last <
	tagLen    int
	inTag     bool
	reasoning bool
}

func (l *lines) fenced() bool { return l.fence != 0 }

func (l *lines) add(b byte) {
	switch {
	case b == '<':
		l.inTag, l.tagLen = true, 0
	case l.inTag && b == '>':
		l.inTag = false
		switch string(l.tag[:l.tagLen]) {
		case "think", "thinking", "reasoning", "thought":
			l.reasoning = true
		case "/think", "/thinking", "/reasoning", "/thought":
			l.reasoning = false
		}
	case l.inTag && l.tagLen < len(l.tag):
		l.tag[l.tagLen] = b
		l.tagLen++
	default:
		l.inTag = false
	}
	if b != '\n' {
		if l.n < len(l.head) {
			l.head[l.n] = b
		}
		l.n++
		return
	}
	l.end()
	l.n = 0
}

// end looks whether the line opens or closes a fence. Blanks and the marks of lists
// and quotations may be before it.
func (l *lines) end() {
	s := l.head[:min(l.n, len(l.head))]
	if l.fence == 0 {
		s = bytes.TrimLeft(s, " \t>-*+.)0123456789")
	} else {
		s = bytes.TrimLeft(s, " \t>")
	}
	if len(s) < 3 || s[0] != '`' && s[0] != '~' {
		return
	}
	width := 0
	for width < len(s) && s[width] == s[0] {
		width++
	}
	switch {
	case width < 3:
	case l.fence == 0:
		l.fence, l.width = s[0], width
		l.json = bytes.HasPrefix(bytes.TrimSpace(s[width:]), []byte("json"))
	case s[0] == l.fence && width >= l.width && len(bytes.TrimSpace(s[width:])) == 0:
		l.fence = 0
	}
}
