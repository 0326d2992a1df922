package continuation

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// overlap finds the longest beginning of head that is an end of tail, by the prefix
// function. shorter is the next shorter one. Time is linear in both.
func overlap(tail, head []byte) (longest, shorter int) {
	if len(head) > len(tail) {
		head = head[:len(tail)]
	}
	if len(head) == 0 {
		return 0, 0
	}
	border := make([]int, len(head)+1) // border[n]: of head[:n]
	for i, k := 1, 0; i < len(head); i++ {
		for k > 0 && head[i] != head[k] {
			k = border[k]
		}
		if head[i] == head[k] {
			k++
		}
		border[i+1] = k
	}
	k := 0
	for _, c := range tail {
		for k > 0 && (k == len(head) || head[k] != c) {
			k = border[k]
		}
		if head[k] == c {
			k++
		}
	}
	return k, border[k]
}

// weight counts the characters of text that are not white space.
func weight(text []byte) int {
	n := 0
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if text = text[size:]; !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

// start is a place in an answer where its text may begin.
type start struct {
	at     int
	fenced bool // behind a fence that the answer opens
	prose  bool // behind a line that speaks of going on
}

// longestIntroduction is how long a line may be that is taken for one.
const longestIntroduction = 160

// starts lists where the text of an answer may begin, in order: at its first byte,
// behind white space, an ellipsis, a fence, a line of introduction.
func starts(head []byte) []start {
	all := []start{{}}
	add := func(s start) {
		if last := all[len(all)-1]; s.at > last.at && s.at < len(head) {
			all = append(all, s)
		}
	}
	behind := func(from int, prose bool) {
		i := skipSpace(head, from)
		add(start{at: i, prose: prose})
		for _, dots := range []string{"...", "…"} {
			if bytes.HasPrefix(head[i:], []byte(dots)) {
				add(start{at: i + len(dots), prose: prose})
			}
		}
		if n := bytes.IndexByte(head[i:], '\n'); n >= 0 {
			if f, ok := fenceLine(head[i : i+n]); ok && f.length > 0 {
				add(start{at: i + n + 1, prose: prose, fenced: true})
				add(start{at: skipSpace(head, i+n+1), prose: prose, fenced: true})
			}
		}
	}
	behind(0, false)
	first := skipSpace(head, 0)
	n := bytes.IndexByte(head[first:], '\n')
	if n < 0 || n > longestIntroduction {
		return all
	}
	line := bytes.TrimRight(head[first:first+n], " \t\r*_")
	switch {
	case len(line) == 0:
	case bytes.HasSuffix(line, []byte("…")), bytes.IndexByte([]byte(":.!"), line[len(line)-1]) >= 0:
		behind(first+n+1, true)
	}
	return all
}

// restarts reports whether an answer begins as the text does: with the same first
// name or element of JSON, the same line, or the same characters.
func restarts(text, answer []byte, json bool) bool {
	n := 0
	for n < len(text) && n < len(answer) && text[n] == answer[n] {
		n++
	}
	if n >= 24 || n > 0 && n == len(text) {
		return true
	}
	if line := bytes.IndexByte(text, '\n'); line > 8 && n >= line {
		return true
	}
	return json && sameOpening(text, answer)
}

// sameOpening reports whether both begin with the same container and the same first
// name or element in it, whatever the white space.
func sameOpening(text, answer []byte) bool {
	a, b := opening(text), opening(answer)
	return len(a) > 1 && bytes.Equal(a, b)
}

// opening is the beginning of JSON up to the end of its first name or scalar, without
// white space.
func opening(text []byte) []byte {
	m, out := &machine{}, []byte(nil)
	for _, c := range text {
		scalar := m.inScalar()
		if !m.step(c) {
			return nil
		}
		if scalar && !m.inScalar() || len(out) > 256 {
			return out
		}
		if m.inText() || !isSpace(c) {
			out = append(out, c)
		}
	}
	return nil
}
