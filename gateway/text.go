package gateway

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// unit returns the length of the character that b begins with. What is no
// character is split as the Unicode standard recommends (§3.9, "maximal
// subparts"): a truncated sequence is one unit, any other stray byte too.
func unit(b []byte) (n int, ok bool) {
	if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
		return n, true
	}
	// FullRune is false exactly for proper prefixes of a character.
	n = 1
	for n < min(3, len(b)) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n, false
}

// appendValid appends b to dst with U+FFFD for each unit that is no character.
func appendValid(dst *strings.Builder, b []byte) {
	for len(b) > 0 {
		n, ok := unit(b)
		if ok {
			dst.Write(b[:n])
		} else {
			dst.WriteRune(utf8.RuneError)
		}
		b = b[n:]
	}
}

// validText returns b as JSON can carry it and, if that is not the same, the
// exact bytes.
func validText(b []byte) (text string, exact []byte) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	var s strings.Builder
	appendValid(&s, b)
	return s.String(), b
}

// utf8Joiner passes bytes on in whole units, so that a text cut anywhere gives
// the same string as the whole.
type utf8Joiner struct{ held []byte }

// next takes the next bytes of the text and returns those that are ready.
func (j *utf8Joiner) next(b []byte) []byte {
	all := append(j.held, b...)
	cut := len(all)
	for back := 1; back <= min(3, len(all)); back++ {
		if i := len(all) - back; utf8.RuneStart(all[i]) {
			if !utf8.FullRune(all[i:]) {
				cut = i
			}
			break
		}
	}
	j.held = append([]byte(nil), all[cut:]...)
	return all[:cut:cut]
}

// rest returns what was held back for a continuation that did not come.
func (j *utf8Joiner) rest() []byte {
	b := j.held
	j.held = nil
	return b
}

// charCounter turns byte offsets of a growing text into character offsets.
// The offsets asked for must not decrease.
type charCounter struct {
	text  []byte
	pos   int // bytes of text counted
	chars int // characters in text[:pos]
}

// at returns the index of the character that holds the byte at offset.
func (c *charCounter) at(offset int) int {
	for c.pos < min(offset, len(c.text)) {
		n, _ := unit(c.text[c.pos:])
		if c.pos+n > offset {
			break
		}
		c.pos += n
		c.chars++
	}
	return c.chars
}

// tokenText shows a token's bytes as OpenAI does: text, or escaped bytes where
// they are no text of their own.
func tokenText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	s := []byte("bytes:")
	for _, c := range b {
		s = append(s, `\x`...)
		if c < 16 {
			s = append(s, '0')
		}
		s = strconv.AppendUint(s, uint64(c), 16)
	}
	return string(s)
}
