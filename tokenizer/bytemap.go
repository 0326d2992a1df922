package tokenizer

import "unicode/utf8"

// A vocabulary of GPT-2's kind spells each byte as one printable character:
// most of Latin-1 as itself, the others, in order, as the characters from
// U+0100. "Ġ" is the space, "Ċ" the newline.

// byteChars is one more than the last character that spells a byte.
const byteChars = 0x100 + 256 - 188

// byteOfChar inverts the map; -1 is no byte.
var byteOfChar = func() (m [byteChars]int16) {
	for i := range m {
		m[i] = -1
	}
	next := 0x100
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			m[b] = int16(b)
		} else {
			m[next] = int16(b)
			next++
		}
	}
	return m
}()

// appendSpelled appends the bytes that text spells. It reports false, with dst
// as it was, if text has a character that spells none.
func appendSpelled(dst, text []byte) ([]byte, bool) {
	start := len(dst)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r >= byteChars || byteOfChar[r] < 0 {
			return dst[:start], false
		}
		dst = append(dst, byte(byteOfChar[r]))
		text = text[n:]
	}
	return dst, true
}

// charOfByte is the map.
var charOfByte = func() (m [256]rune) {
	for r, b := range byteOfChar {
		if b >= 0 {
			m[b] = rune(r)
		}
	}
	return m
}()

// appendSpelling appends what text is spelt as.
func appendSpelling(dst, text []byte) []byte {
	for _, b := range text {
		dst = utf8.AppendRune(dst, charOfByte[b])
	}
	return dst
}
