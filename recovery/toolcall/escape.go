package toolcall

import "unicode/utf8"

// appendString appends text as a JSON string.
func appendString(dst, text []byte) []byte {
	dst = append(dst, '"')
	dst = appendText(dst, text)
	return append(dst, '"')
}

const hex = "0123456789abcdef"

// appendText appends text as it stands in a JSON string. Bytes that are not UTF-8 become
// U+FFFD.
func appendText(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case c == '"' || c == '\\':
				dst = append(dst, '\\', c)
			case c == '\n':
				dst = append(dst, '\\', 'n')
			case c == '\r':
				dst = append(dst, '\\', 'r')
			case c == '\t':
				dst = append(dst, '\\', 't')
			case c < ' ':
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			default:
				dst = append(dst, c)
			}
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return dst
}

// wholeCharacters returns how many bytes of text are before a character that may go on.
func wholeCharacters(text []byte) int {
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
