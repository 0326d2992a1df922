package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxDepth is how deeply arrays and objects of a request may nest.
const MaxDepth = 64

// DecodeError says why a request cannot be read.
type DecodeError struct {
	Param  string // path of the field, as in messages[2].content; "" for the body
	Offset int    // bytes from the start of the body; -1 where Param says it
	Text   string
}

func (e *DecodeError) Error() string {
	switch {
	case e.Param != "":
		return e.Param + " " + e.Text
	case e.Offset >= 0:
		return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Text)
	}
	return "the request body " + e.Text
}

// Check reports whether body is one JSON value that Go's decoder reads without
// changing anything: valid UTF-8, whole surrogate pairs, bounded depth.
func Check(body []byte) error {
	if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
		return &DecodeError{Offset: -1, Text: "is empty: send a JSON object"}
	}
	if err := scanText(body); err != nil {
		return err
	}
	var raw json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			// Offset counts the bytes read, the offending one included.
			return &DecodeError{Offset: max(0, int(syntax.Offset)-1), Text: syntax.Error()}
		}
		return &DecodeError{Offset: -1, Text: "is invalid: " + err.Error()}
	}
	return nil
}

// scanText checks encoding and depth. It is not a JSON parser: on text that is
// no JSON it may say anything but must come to an end.
func scanText(b []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(b); {
		c := b[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return &DecodeError{Offset: i, Text: "not UTF-8; to continue text that ends inside a character, send token IDs"}
			}
			i += n
			continue
		case inString && c == '\\':
			n, ok := escape(b[i:])
			if !ok {
				return &DecodeError{Offset: i, Text: "half of a surrogate pair; to continue text that ends inside a character, send token IDs"}
			}
			i += n
			continue
		case c == '"':
			inString = !inString
		case !inString && (c == '{' || c == '['):
			if depth++; depth > MaxDepth {
				return &DecodeError{Offset: i, Text: fmt.Sprintf("nested more than %d levels deep", MaxDepth)}
			}
		case !inString && (c == '}' || c == ']'):
			depth--
		}
		i++
	}
	return nil
}

// escape returns the length of the escape sequence b begins with, a surrogate
// pair being one. It is false for half a pair; errors of syntax are left alone.
func escape(b []byte) (n int, ok bool) {
	first, isHex := hex4(b)
	switch {
	case !isHex:
		return min(2, len(b)), true
	case first >= 0xdc00 && first <= 0xdfff:
		return 6, false
	case first >= 0xd800 && first <= 0xdbff:
		second, _ := hex4(b[6:])
		return 12, second >= 0xdc00 && second <= 0xdfff
	}
	return 6, true
}

// hex4 reads the four digits of an escape such as \u00e9.
func hex4(b []byte) (v uint32, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint32(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = v<<4 | uint32(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
