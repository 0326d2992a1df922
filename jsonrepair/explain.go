package jsonrepair

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// explain says in words why the text stops being JSON at data[i], where n is
// needed. What stands before it has been scanned, so that looking back is safe.
func explain(data []byte, i int, n need) *Error {
	switch {
	case n == aScalar && data[i] == '"':
		return explainString(data, i)
	case n == aScalar && (data[i] == '-' || isDigit(data[i])):
		return explainNumber(data, i)
	case n == aScalar:
		return explainLiteral(data, i)
	case n == aLevel:
		return &Error{i, "containers are nested deeper than the limit", "raise the limit, or close some before this one"}
	}
	if i >= len(data) {
		return ended(data, n)
	}
	c, last := data[i], lastToken(data, i)
	cause := ""
	switch {
	case n != aValue && n != aName && isDigit(c) && i > 0 && data[i-1] == '0':
		cause = "a number must not begin with zero"
	case c < ' ':
		cause = "a control character must not come outside a string"
	case bytes.HasPrefix(data[i:], []byte("\ufeff")):
		cause = "a byte order mark must not come here"
	case c == '/' || c == '#':
		cause = "JSON has no comments"
	case (c == '}' || c == ']') && last == ',':
		cause = "a comma must not come before a closing bracket"
	case n == aValue:
		cause = wrongValue(c, last)
	case n == aName && c == '\'':
		cause = "a member's name must be in double quotes"
	case n == aName:
		cause = "a member must begin with its name in double quotes"
	case n == aColon:
		cause = "a colon must come between a member's name and its value"
	case n == theEnd:
		cause = "nothing must come after the value"
	case n == inObject && c == '"':
		cause = "a comma must come before the next member"
	case n == inObject && c == ']':
		cause = "an object must be closed by a brace"
	case n == inObject:
		cause = "a member must end here"
	case c == '}':
		cause = "an array must be closed by a square bracket"
	case c == '"' || c == '{' || c == '[' || c == '-' || isDigit(c) || isLetter(c):
		cause = "a comma must come before the next element"
	default:
		cause = "an element must end here"
	}
	return &Error{i, cause, "expected " + expected(n, last) + ", found " + found(data, i)}
}

func wrongValue(c, last byte) string {
	switch {
	case c == '\'' || c == '`':
		return "a string must be in double quotes"
	case c == '.' || c == '+':
		return "a number must begin with a digit or a minus sign"
	case isLetter(c):
		return "a word that is not true, false or null must be in double quotes"
	case c == ',' || c == ']' || c == '}' || c == ':':
		if last == ':' {
			return "a member must have a value"
		}
		return "a value must come first"
	}
	return "no value begins like this"
}

// ended says what is open at the end of the text.
func ended(data []byte, n need) *Error {
	cause := "the text ends inside an array"
	last := lastToken(data, len(data))
	switch {
	case n == aValue && last == 0:
		cause = "the text is empty"
	case n == aName || n == inObject || n == aColon:
		cause = "the text ends inside an object"
	case n == aValue && last == ':':
		cause = "the text ends before a member's value"
	}
	return &Error{len(data), cause, "expected " + expected(n, last)}
}

// expected names what can come where n is needed behind the byte last.
func expected(n need, last byte) string {
	switch n {
	case aName:
		if last == '{' {
			return `a name in double quotes or "}"`
		}
		return "a name in double quotes"
	case aColon:
		return `":"`
	case inObject:
		return `"," or "}"`
	case inArray:
		return `"," or "]"`
	case theEnd:
		return "the end"
	}
	if last == '[' {
		return `a value or "]"`
	}
	return "a value"
}

// found shows the character at data[i].
func found(data []byte, i int) string {
	if i >= len(data) {
		return "the end"
	}
	r, size := utf8.DecodeRune(data[i:])
	if r == utf8.RuneError && size == 1 {
		return fmt.Sprintf("the byte 0x%02x", data[i])
	}
	if r == '"' {
		return "a double quote"
	}
	return fmt.Sprintf("%q", string(r))
}

// lastToken returns the last byte before data[i] that is not white space, 0 if
// there is none.
func lastToken(data []byte, i int) byte {
	if before := bytes.TrimRight(data[:i], " \t\r\n"); len(before) > 0 {
		return before[len(before)-1]
	}
	return 0
}

func explainString(data []byte, start int) *Error {
	for i := start + 1; i < len(data); {
		switch c := data[i]; {
		case c == '\n' || c == '\r':
			return &Error{i, "a string must not have a line break", `expected \n in its place, or a closing quote before it`}
		case c < ' ':
			return &Error{i, "a control character must be escaped in a string", fmt.Sprintf(`expected \u%04x in its place`, c)}
		case c == '\\':
			n := escapeLength(data, i)
			if n < 0 {
				return explainEscape(data, i, start)
			}
			i += n
		default:
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n == 1 {
				return notUTF8(data, i, start)
			}
			i += n
		}
	}
	return openString(data, start)
}

func openString(data []byte, start int) *Error {
	return &Error{len(data), fmt.Sprintf("the text ends inside the string that begins at byte %d", start), "expected a closing quote"}
}

func notUTF8(data []byte, i, start int) *Error {
	if !utf8.FullRune(data[i:]) {
		return openString(data, start)
	}
	return &Error{i, "a string must be UTF-8", "expected a character, found " + found(data, i)}
}

func explainEscape(data []byte, i, start int) *Error {
	if i++; i >= len(data) {
		return openString(data, start)
	}
	if data[i] != 'u' {
		return &Error{i, "a backslash must begin an escape", `expected one of "\/bfnrtu, found ` + found(data, i)}
	}
	for i++; i < len(data); i++ {
		if !hexDigit[data[i]] {
			return &Error{i, `\u must have four hexadecimal digits`, "expected a hexadecimal digit, found " + found(data, i)}
		}
	}
	return openString(data, start)
}

func explainNumber(data []byte, i int) *Error {
	wanted := func(i int, behind string) *Error {
		cause := "a digit must come after " + behind
		if i >= len(data) {
			cause = "the text ends inside a number"
		}
		return &Error{i, cause, "expected a digit, found " + found(data, i)}
	}
	digitAt := func(i int) bool { return i < len(data) && isDigit(data[i]) }
	if data[i] == '-' {
		if i++; !digitAt(i) {
			return wanted(i, "the minus sign")
		}
	}
	if data[i] == '0' {
		i++
	} else {
		i = skipDigits(data, i)
	}
	if i < len(data) && data[i] == '.' {
		if i++; !digitAt(i) {
			return wanted(i, "the decimal point")
		}
		i = skipDigits(data, i)
	}
	if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
		return wanted(i+1, "the exponent's sign")
	}
	return wanted(i, "the e of the exponent")
}

func explainLiteral(data []byte, i int) *Error {
	want := map[byte]string{'t': "true", 'f': "false", 'n': "null"}[data[i]]
	n := 0
	for n < len(want) && i+n < len(data) && data[i+n] == want[n] {
		n++
	}
	cause := "a word that is not true, false or null must be in double quotes"
	if i+n >= len(data) {
		cause = "the text ends inside a word"
	}
	return &Error{i + n, cause, fmt.Sprintf("expected %q, found %s", want, found(data, i+n))}
}

func isDigit(c byte) bool { return c-'0' < 10 }

func isLetter(c byte) bool { return c|0x20-'a' < 26 || c == '_' || c == '$' || c >= 0x80 }
