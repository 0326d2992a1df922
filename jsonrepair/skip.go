package jsonrepair

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// The functions of this file read eight bytes at a time as a number, the first
// byte lowest, and compare all of them at once: a byte of the result has its
// highest bit set where the byte meets the condition. Bytes behind the first
// such one may have it by a carry; only the first is looked at.
//
// They have few branches that depend on lengths, which no processor can predict.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

func load(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// special marks what ends a run of plain characters in a string: double quotes,
// backslashes, control characters and bytes that are not ASCII.
func special(x uint64) uint64 {
	// Flipping the second bit makes the quote 0x20, which no other byte from 0x20
	// on becomes, and leaves control characters below it.
	controlOrQuote := (x ^ 0x02*ones) - 0x21*ones
	backslash := (x ^ '\\'*ones) - ones
	return (controlOrQuote | backslash | x) & highs
}

// peek returns data[i], 0 at the end.
func peek(data []byte, i int) byte {
	if uint(i) < uint(len(data)) {
		return data[i]
	}
	return 0
}

// skipSpace returns the first byte from i on that is not white space, 0 at the
// end, and its index. Most of it is one space, or a line break and an indent.
func skipSpace(data []byte, i int) (byte, int) {
	for {
		c := peek(data, i)
		if c == ' ' {
			i++
			if c = peek(data, i); c > ' ' {
				return c, i
			}
		}
		if c == '\n' {
			i++
		}
		for uint(i)+8 < uint(len(data)) {
			other := load(data[i:i+8]) ^ ' '*ones
			if other != 0 {
				i += bits.TrailingZeros64(other) >> 3
				break
			}
			i += 8
		}
		switch c = peek(data, i); c {
		case ' ', '\n':
		case '\t', '\r':
			i++
		default:
			return c, i
		}
	}
}

// skipString returns the index behind the closing quote of a string whose
// content begins at i, or -1.
func skipString(data []byte, i int) int {
	for uint(i)+8 < uint(len(data)) {
		x := special(load(data[i : i+8]))
		if x == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(x) >> 3
		if data[i] != '"' {
			break
		}
		return i + 1
	}
	return skipStringRest(data, i)
}

// skipStringRest is skipString for what is not plain ASCII.
func skipStringRest(data []byte, i int) int {
	for uint(i) < uint(len(data)) {
		switch c := data[i]; {
		case c == '\\':
			n := escapeLength(data, i)
			if n < 0 {
				return -1
			}
			if i += n; peek(data, i) == '\\' {
				continue // they come in runs
			}
		case c >= utf8.RuneSelf:
			if i = skipRunes(data, i); i < 0 {
				return -1
			}
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		}
		i = skipPlain(data, i)
	}
	return -1
}

// skipPlain returns the index of the first special byte.
func skipPlain(data []byte, i int) int {
	for uint(i)+8 < uint(len(data)) {
		if x := special(load(data[i : i+8])); x != 0 {
			return i + bits.TrailingZeros64(x)>>3
		}
		i += 8
	}
	for i < len(data) && special(uint64(data[i])|' '*(ones-1)) == 0 {
		i++
	}
	return i
}

// escapeLength returns the length of the escape that begins at i, or -1.
func escapeLength(data []byte, i int) int {
	switch peek(data, i+1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(data)-i >= 6 {
			if b := data[i+2 : i+6]; hexDigit[b[0]] && hexDigit[b[1]] && hexDigit[b[2]] && hexDigit[b[3]] {
				return 6
			}
		}
	}
	return -1
}

var hexDigit = func() (t [256]bool) {
	for _, c := range "0123456789abcdefABCDEF" {
		t[c] = true
	}
	return t
}()

// skipRunes skips characters that are not ASCII. It returns -1 if one is not
// UTF-8. The bounds are those of table 3-7 of the Unicode standard.
func skipRunes(data []byte, i int) int {
	for uint(i)+4 < uint(len(data)) {
		x := binary.LittleEndian.Uint32(data[i : i+4])
		switch {
		case x&0xc0c0f0 == 0x8080e0:
			if v := x & 0x200f; v == 0 || v == 0x200d { // E0 80–9F, ED A0–BF
				return -1
			}
			i += 3
		case x&0xc0e0 == 0x80c0:
			if x&0x1e == 0 { // C0, C1
				return -1
			}
			i = skipTwoByteRunes(data, i+2)
		case x&0xc0c0c0f8 == 0x808080f0:
			if v := x&7<<6 | x>>8&0x3f; v-0x10 >= 0x100 { // F0 80–8F, F4 90–BF, F5–F7
				return -1
			}
			i += 4
		case x&0x80 == 0:
			return i
		default:
			return -1
		}
	}
	for i < len(data) && data[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return -1
		}
		i += n
	}
	return i
}

// skipTwoByteRunes skips up to four characters of two bytes.
func skipTwoByteRunes(data []byte, i int) int {
	if uint(i)+8 >= uint(len(data)) {
		return i
	}
	x := load(data[i : i+8])
	other := x&0xc0e0c0e0c0e0c0e0 ^ 0x80c080c080c080c0
	tooSmall := ^(x>>1 | x>>2 | x>>3 | x>>4) & 0x0001000100010001 // C0, C1
	return i + bits.TrailingZeros64(other|tooSmall)>>4<<1
}

// skipLiteral returns the index behind true, false or null, or -1.
func skipLiteral(data []byte, i int) int {
	if len(data)-i >= 4 {
		switch word := data[i : i+4]; {
		case string(word) == "true", string(word) == "null":
			return i + 4
		case string(word) == "fals" && peek(data, i+4) == 'e':
			return i + 5
		}
	}
	return -1
}

// skipNumber returns the index behind a number that begins at i with a digit or
// a minus sign, or -1.
func skipNumber(data []byte, i int) int {
	if data[i] == '-' {
		if i++; !isDigit(peek(data, i)) {
			return -1
		}
	}
	if data[i] == '0' {
		i++
	} else {
		i = skipDigits(data, i)
	}
	if peek(data, i) == '.' {
		start := i + 1
		if i = skipDigits(data, start); i == start {
			return -1
		}
	}
	if peek(data, i)|0x20 == 'e' {
		start := i + 1
		if c := peek(data, start); c == '+' || c == '-' {
			start++
		}
		if i = skipDigits(data, start); i == start {
			return -1
		}
	}
	return i
}

func skipDigits(data []byte, i int) int {
	for uint(i)+8 < uint(len(data)) {
		x := load(data[i:i+8]) ^ '0'*ones // digits become 0 to 9
		if other := (x + 0x76*ones | x) & highs; other != 0 {
			return i + bits.TrailingZeros64(other)>>3
		}
		i += 8
	}
	for isDigit(peek(data, i)) {
		i++
	}
	return i
}
