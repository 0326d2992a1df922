package bpe

import (
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// Breaks cuts text where no merge can reach across, so that models without a
// pre-tokenizer get short pieces, too. The tokens of the pieces are together
// those of the whole text: merging starts from symbols within the pieces, no
// symbol holds the two bytes on both sides of a cut, and so what happens on one
// side does not depend on the other.
//
// Cuts lie between whole characters only. It has the methods of a
// pre-tokenizer (split.Splitter), which are exact.
type Breaks struct {
	joined [256][4]uint64 // for each byte, those that follow it in some symbol
	lost   lostCuts
	model  *Model
	uncut  bool          // there are no cuts
	plain  bool          // between valid characters only the bytes beside a cut count
	probes [256][]string // by the last byte of a text
}

// lostCuts says what cuts need beside characters without a token.
type lostCuts int

const (
	lostApart lostCuts = iota // nothing: each is on its own
	lostFused                 // a token on one side, for neighbouring Unknowns become one
	lostMeet                  // a token on both sides, for what is lost lets these meet
)

// Breaks gives the places where the model's pieces may be cut further.
func (m *Model) Breaks() *Breaks { return m.breaks }

func newBreaks(m *Model, list *mergeList) *Breaks {
	b := &Breaks{model: m}
	switch {
	case m.unknown != vocab.None && m.fuse && !m.fallsBack():
		b.lost = lostFused
	case m.unknown == vocab.None && m.dropFirst && !m.fallsBack():
		b.lost = lostMeet
	}
	if m.whole || m.chars == nil {
		// The Whole rule speaks of the uncut piece, and pieces of bytes come from
		// pre-tokenizers.
		b.uncut = true
		for i := range b.joined {
			b.joined[i] = [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
		}
	} else {
		last := noSymbol
		for _, sym := range list.made() {
			if sym != last { // lists have all ways to make a token side by side
				b.join(m.symbolBytes(sym))
			}
			last = sym
		}
	}
	b.plain = !b.uncut && b.lost == lostApart
	lost := b.sampleLost()
	for a := range b.probes {
		b.probes[a] = append([]string{""}, lost...)
		if next, ok := b.follower(byte(a)); ok {
			b.probes[a] = append(b.probes[a], next)
		}
	}
	return b
}

func (m *Model) symbolBytes(sym symbol) []byte {
	if int(sym) < m.tokens {
		return m.vocab.Bytes(vocab.ID(sym))
	}
	return m.extras[int(sym)-m.tokens]
}

func (b *Breaks) join(token []byte) {
	for i := 1; i < len(token); i++ {
		c := token[i]
		b.joined[token[i-1]][c>>6] |= 1 << (c & 63)
	}
}

func (b *Breaks) isJoined(left, right byte) bool {
	return b.joined[left][right>>6]>>(right&63)&1 != 0
}

// cuts reports whether text may be cut at i, where the character text[i:i+size]
// begins. One of the bytes beside the cut that is not part of valid UTF-8 never
// merges.
func (b *Breaks) cuts(text []byte, i, size int, valid, validBefore bool) bool {
	if b.uncut || valid && validBefore && b.isJoined(text[i-1], text[i]) {
		return false
	}
	if b.lost == lostApart {
		return true
	}
	before := 1
	if validBefore {
		_, before = utf8.DecodeLastRune(text[:i])
	}
	left, right := b.stays(text[i-before:i]), b.stays(text[i:i+size])
	if b.lost == lostFused {
		return left || right
	}
	return left && right
}

// stays reports whether a character has tokens of its own.
func (b *Breaks) stays(char []byte) bool {
	return b.model.Known(char) || b.model.hasFallback(char)
}

// Scan writes the ends of the pieces of text[from:] into ends and returns how
// many. It stops when ends is full or the text used up.
func (b *Breaks) Scan(ends []int, text []byte, from int) int {
	n := 0
	for from < len(text) && n < len(ends) {
		from = b.end(text, from)
		ends[n] = from
		n++
	}
	return n
}

// Next gives the end of the piece that begins at from, and whether it stays
// there whatever is appended to text.
func (b *Breaks) Next(text []byte, from int) (end int, fixed bool) {
	end = b.end(text, from)
	return end, end < wholeLen(text)
}

// end gives the end of the piece that begins at from.
func (b *Breaks) end(text []byte, from int) int {
	size, valid := charSize(text[from:])
	for i := from + size; i < len(text); i += size {
		if b.plain && valid {
			// ASCII after a character, most of the time: only the two bytes count.
			for last := text[i-1]; text[i] < utf8.RuneSelf; {
				c := text[i]
				if !b.isJoined(last, c) {
					return i
				}
				last = c
				if i++; i == len(text) {
					return i
				}
			}
		}
		last := valid
		size, valid = charSize(text[i:])
		if b.cuts(text, i, size, valid, last) {
			return i
		}
	}
	return len(text)
}

// wholeLen is the length of text without a character at its end of which only
// part has come.
func wholeLen(text []byte) int {
	for i := len(text) - 1; i >= 0 && i > len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// Probes lists continuations of text, which ends with a whole character, that
// show all that may become of its pieces from the one at from on: whether the
// last one ends with the text.
func (b *Breaks) Probes(text []byte, from int) []string {
	if from >= len(text) {
		return b.probes[0][:1]
	}
	return b.probes[text[len(text)-1]]
}

// Completions lists rests for a character of which only part has come: some
// that complete it, for all that can become of the place before it, and some
// that do not.
func (b *Breaks) Completions(part []byte) []string {
	if len(part) == 0 || utf8.FullRune(part) {
		return []string{""}
	}
	return append(append(b.completing(part), " "), b.sampleLost()...)
}

// completing lists rests that make part whole, one for each kind of character
// that matters: with and without a token, followed by others in some token or
// not.
func (b *Breaks) completing(part []byte) []string {
	var rests []string
	var seen [4]bool
	lo, hi := codePoints(part)
	for r := lo; r < hi; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		char := utf8.AppendRune(nil, r)
		kind := 0
		if b.joined[char[len(char)-1]] != ([4]uint64{}) {
			kind = 1
		}
		if b.lost != lostApart && b.stays(char) {
			kind += 2
		}
		if !seen[kind] {
			seen[kind] = true
			rests = append(rests, string(char[len(part):]))
		}
		if b.lost == lostApart && r&0x3f == 0x3f {
			break // only the last byte matters
		}
	}
	return rests
}

// codePoints is the range of the characters that begin with part.
func codePoints(part []byte) (lo, hi rune) {
	var size int
	switch c := part[0]; {
	case c < 0xe0:
		size, lo = 2, rune(c&0x1f)
	case c < 0xf0:
		size, lo = 3, rune(c&0x0f)
	default:
		size, lo = 4, rune(c&0x07)
	}
	for _, c := range part[1:] {
		lo = lo<<6 | rune(c&0x3f)
	}
	shift := 6 * (size - len(part))
	lo, hi = lo<<shift, (lo+1)<<shift
	smallest := map[int]rune{2: 0x80, 3: 0x800, 4: 0x10000}[size]
	return max(lo, smallest), min(hi, utf8.MaxRune+1)
}

// follower gives a character whose first byte follows a byte in some token. It
// prefers graphic ASCII ones.
func (b *Breaks) follower(last byte) (string, bool) {
	for i := range 256 {
		c := byte(i + ' ')
		if c&0xc0 == 0x80 || !b.isJoined(last, c) {
			continue
		}
		switch {
		case c < utf8.RuneSelf:
			return string(rune(c)), true
		case c >= 0xc2 && c <= 0xf4:
			lo, _ := codePoints([]byte{c})
			return string(lo), true
		}
	}
	return "", false
}

// sampleLost gives characters that decide about cuts by having a token or not.
func (b *Breaks) sampleLost() []string {
	if b.lost == lostApart {
		return nil
	}
	var samples []string
	var seen [2]bool
	for r := rune(0); r <= utf8.MaxRune && !(seen[0] && seen[1]); r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		char := utf8.AppendRune(nil, r)
		kind := 0
		if b.stays(char) {
			kind = 1
		}
		if !seen[kind] {
			seen[kind] = true
			samples = append(samples, string(char))
		}
	}
	return samples
}

// Keeps reports that all pieces go to the model.
func (b *Breaks) Keeps([]byte) bool { return true }

// Exact reports that Next and Probes are proved.
func (b *Breaks) Exact() bool { return true }

// String names the way of cutting.
func (b *Breaks) String() string { return "between bytes that no token joins" }
