package audit

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// minAgain is how many bytes must be equal again after a difference of spelling.
const minAgain = 8

// again reports whether both texts go on equal, or one ends.
func (p *pair) again(oldEnd, newEnd int) bool {
	a, b := p.oldText()[oldEnd:], p.newText()[newEnd:]
	n := commonBytes(a, b)
	return n >= minAgain || n == min(len(a), len(b))
}

// blank is the number of bytes of white space that text begins with. What looks
// like nothing counts too.
func blank(text []byte) int {
	n := 0
	for n < len(text) {
		r, size := utf8.DecodeRune(text[n:])
		if !unicode.IsSpace(r) && r != '\ufeff' && r != '\u200b' {
			break
		}
		n += size
	}
	return n
}

// blankBefore is the number of bytes of white space before a byte.
func blankBefore(text []byte, at int) int {
	n := 0
	for n < at {
		r, size := utf8.DecodeLastRune(text[:at-n])
		if !unicode.IsSpace(r) && r != '\ufeff' && r != '\u200b' {
			break
		}
		n += size
	}
	return n
}

// runeBack is how many bytes before at begin the character that at is in.
func runeBack(text []byte, at int) int {
	for n := 1; n < utf8.UTFMax && n <= at; n++ {
		if c := text[at-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(text[at-n:at]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// whitespace: only blanks and newlines differ.
func (p *pair) whitespace() *finding {
	back := max(runeBack(p.newText(), p.l), runeBack(p.oldText(), p.lo))
	before := p.back(back + blankBefore(p.newText(), p.l-back))
	a, b := p.oldText()[p.lo-before:], p.newText()[p.l-before:]
	i, j := blank(a), blank(b)
	if i < before && j < before || bytes.Equal(a[:i], b[:j]) {
		return nil
	}
	equal, n, oldEnd, newEnd := respaced(a[i:], b[j:])
	if n < minAgain && oldEnd < len(a)-i && newEnd < len(b)-j {
		return nil
	}
	if n < minAgain && (i == 0 && insideWord(p.oldText(), p.lo) || j == 0 && insideWord(p.newText(), p.l)) {
		return nil // a word goes on where the other text ends
	}
	x, y := a[:i], b[:j]
	what := fmt.Sprintf("white space differs at byte %d: %q instead of %q", p.l-before, clip(y), clip(x))
	switch {
	case strings.ReplaceAll(string(x), "\r\n", "\n") == strings.ReplaceAll(string(y), "\r\n", "\n"):
		what = fmt.Sprintf("the line ends at byte %d with %q instead of %q: CRLF and LF are mixed", p.l-before, clip(y), clip(x))
	case i == len(a) || j == len(b):
		what += ", at the end of the text"
	case bytes.Count(y, []byte("\n")) != bytes.Count(x, []byte("\n")):
		what += ", another number of newlines"
	}
	f := p.at(Whitespace, before, p.lo-before+i, p.l-before+j, "%s", what)
	f.same, f.restorable = true, true
	f.reach = match{f.old.hi + oldEnd, f.new.hi + newEnd, n}
	for _, m := range equal {
		f.equal = append(f.equal, match{f.old.hi + m.old, f.new.hi + m.new, m.n})
	}
	return f
}

// letterCase: the same words, with other capitals.
func (p *pair) letterCase() *finding {
	before := p.back(wordStart(p.newText(), p.l))
	a, b := p.oldText()[p.lo-before:], p.newText()[p.l-before:]
	i, j := wordEnd(a), wordEnd(b)
	if i == 0 || j == 0 || bytes.Equal(a[:i], b[:j]) || !bytes.EqualFold(a[:i], b[:j]) {
		return nil
	}
	f := p.at(Case, before, p.lo-before+i, p.l-before+j, "%q at byte %d was %q before: upper and lower case differ", clip(b[:j]), p.l-before, clip(a[:i]))
	f.same, f.restorable = true, true
	return f
}

// maxWord bounds a word, in bytes.
const maxWord = 256

// wordStart is how many bytes before at belong to the word there.
func wordStart(text []byte, at int) int {
	n := 0
	for n < at && n < maxWord && wordByte(text[at-n-1]) {
		n++
	}
	return n
}

// wordEnd is the length of the word that text begins with.
func wordEnd(text []byte) int {
	n := 0
	for n < len(text) && n < maxWord && wordByte(text[n]) {
		n++
	}
	return n
}

// unicodeForm: the same characters in another normal form.
func (p *pair) unicodeForm() *finding {
	if f := p.typography(); f != nil {
		return f
	}
	before := p.back(wordStart(p.newText(), p.l))
	a, b := p.oldText()[p.lo-before:], p.newText()[p.l-before:]
	i, j := wordEnd(a), wordEnd(b)
	x, y := a[:i], b[:j]
	if bytes.Equal(x, y) {
		return nil
	}
	form := ""
	switch {
	case bytes.Equal(norm.NFC.Bytes(x), norm.NFC.Bytes(y)):
		form = "composed and decomposed characters (NFC, NFD)"
	case bytes.Equal(norm.NFKC.Bytes(x), norm.NFKC.Bytes(y)):
		form = "a character and its compatibility form (NFKC)"
	default:
		return nil
	}
	f := p.at(UnicodeForm, before, p.lo-before+i, p.l-before+j, "%+q at byte %d was %+q before: the same text as %s", clip(y), p.l-before, clip(x), form)
	f.same, f.restorable = true, true
	return f
}

// typed are signs of typography, and how a keyboard has them.
var typed = map[rune]string{'‘': "'", '’': "'", '‚': "'", '“': `"`, '”': `"`, '„': `"`, '–': "-", '—': "-", '−': "-", '‑': "-", '…': "..."}

// typography: a quotation mark or dash in one, and its plain form in the other.
func (p *pair) typography() *finding {
	before := p.back(max(runeBack(p.newText(), p.l), runeBack(p.oldText(), p.lo)))
	a, b := p.oldText()[p.lo-before:], p.newText()[p.l-before:]
	x, n := plain(a)
	y, m := plain(b)
	if n == 0 && m == 0 || n > 0 && m > 0 && x != y {
		return nil
	}
	if n == 0 {
		x, n = y, len(y)
		if !bytes.HasPrefix(a, []byte(y)) {
			return nil
		}
	}
	if m == 0 {
		m = len(x)
		if !bytes.HasPrefix(b, []byte(x)) {
			return nil
		}
	}
	if !p.again(p.lo-before+n, p.l-before+m) {
		return nil
	}
	f := p.at(UnicodeForm, before, p.lo-before+n, p.l-before+m, "%+q at byte %d was %+q before: typographic and plain signs are mixed", b[:m], p.l-before, a[:n])
	f.same, f.restorable = true, true
	return f
}

// plain is the plain form of the typographic sign that text begins with, and the
// length of that sign in bytes; 0 if there is none.
func plain(text []byte) (string, int) {
	r, n := utf8.DecodeRune(text)
	if s, ok := typed[r]; ok {
		return s, n
	}
	return "", 0
}

// reordered: the same lines, or parts of a line, in another order.
func (p *pair) reordered() *finding {
	tail := commonTail(p.oldRest(), p.newRest())
	oldEnd, newEnd := len(p.oldText())-tail, len(p.newText())-tail
	head, rest := p.newText()[:p.l], p.newText()[newEnd:]
	for _, by := range []struct{ separator, opening, closing string }{
		{"\n", "\n", "\n"}, {",", "\n,:[({", "\n,.])}"}, {";", "\n;:", "\n;."}, {"|", "\n|:", "\n|"},
	} {
		before := len(head) - 1 - bytes.LastIndexAny(head[max(0, len(head)-maxPart):], by.opening) - max(0, len(head)-maxPart)
		if before > p.lo || before > maxPart {
			continue
		}
		more := bytes.IndexAny(rest[:min(len(rest), maxPart)], by.closing)
		if more < 0 {
			more = min(len(rest), maxPart)
		}
		if closed(p.oldText(), oldEnd, by.closing) && closed(p.newText(), newEnd, by.closing) {
			more = 0
		}
		n := sameParts(p.oldText()[p.lo-before:oldEnd+more], p.newText()[p.l-before:newEnd+more], by.separator)
		if n == 0 {
			continue
		}
		parts := count(n, "line")
		if by.separator != "\n" {
			parts = fmt.Sprintf("%s between %q", count(n, "part"), by.separator)
		}
		f := p.at(Reordered, before, oldEnd+more, newEnd+more, "the same %s stand in another order from byte %d on: %q comes first instead of %q",
			parts, p.l-before, clip(p.newText()[p.l-before:]), clip(p.oldText()[p.lo-before:]))
		f.same, f.restorable = true, true
		return f
	}
	return nil
}

// maxPart bounds what of a part stands before the first differing byte and after
// the last, in bytes.
const maxPart = 16 << 10

// closed reports whether the byte before at is one of those.
func closed(text []byte, at int, closing string) bool {
	return at > 0 && strings.IndexByte(closing, text[at-1]) >= 0
}

var partSeed = maphash.MakeSeed()

func maphashOf(b []byte) uint64 { return maphash.Bytes(partSeed, b) }

// sameParts is the number of parts of a text if the other has the same ones in
// another order; 0 if it has not.
func sameParts(a, b []byte, separator string) int {
	n := bytes.Count(a, []byte(separator)) + 1
	if n < 2 || n != bytes.Count(b, []byte(separator))+1 {
		return 0
	}
	if slices.EqualFunc(bytes.Split(a, []byte(separator)), bytes.Split(b, []byte(separator)), func(x, y []byte) bool {
		return bytes.Equal(bytes.TrimSpace(x), bytes.TrimSpace(y))
	}) {
		return 0 // only white space differs
	}
	seen := make(map[uint64]int, n)
	for part := range bytes.SplitSeq(a, []byte(separator)) {
		seen[maphash.Bytes(partSeed, bytes.TrimSpace(part))]++
	}
	for part := range bytes.SplitSeq(b, []byte(separator)) {
		h := maphash.Bytes(partSeed, bytes.TrimSpace(part))
		if seen[h] == 0 {
			return 0
		}
		seen[h]--
	}
	return n
}
