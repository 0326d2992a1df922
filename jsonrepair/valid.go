package jsonrepair

// IsValid reports whether data is one JSON text by RFC 8259. See [Check].
func IsValid(data []byte) bool {
	_, n := scan(data, 0)
	return n == nothing
}

// Check returns nil if data is one JSON text by RFC 8259, and otherwise where it
// stops being one and what was expected there: Offset is the first byte that
// nothing valid has there, len(data) if the text can go on. For bytes that are
// not UTF-8 it is the first of the character.
//
// Strings must be valid UTF-8 (§8.1). A lone surrogate written as an escape is
// allowed, as the grammar has it (§8.2), and so are duplicate names (§4) and
// numbers of any size (§6). A byte order mark is not.
//
// maxDepth limits the containers that are open at once; 0: no limit. Nothing
// recurses: each level takes one bit of memory, and no valid text of less than
// 1,000 levels allocates.
func Check(data []byte, maxDepth int) *Error {
	if i, n := scan(data, maxDepth); n != nothing {
		return explain(data, i, n)
	}
	return nil
}

// A need is what the grammar asks for at the place where a text stops being JSON.
type need uint8

const (
	nothing need = iota
	aValue
	aName
	aColon
	inObject // comma or closing brace
	inArray  // comma or closing bracket
	theEnd
	aString // that begins here to be a whole one; likewise:
	aNumber
	aLiteral
	aLevel // less depth
)

// scan returns nothing, or what is needed and where.
//
// It keeps one bit for each open container, 1 for an object: the innermost ones
// in top, every 64 outer ones in an element of below.
func scan(data []byte, maxDepth int) (int, need) {
	if maxDepth <= 0 {
		maxDepth = len(data)
	}
	var (
		fixed [16]uint64
		below = fixed[:0]
		top   uint64
		depth int
		j     int // behind a value
	)
	c, i := skipSpace(data, 0)
value:
	switch c {
	case '"':
		if j = skipString(data, i+1); j < 0 {
			return i, aString
		}
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if j = skipNumber(data, i); j < 0 {
			return i, aNumber
		}
	case 't', 'f', 'n':
		if j = skipLiteral(data, i); j < 0 {
			return i, aLiteral
		}
	case '{', '[':
		if depth >= maxDepth {
			return i, aLevel
		}
		if depth&63 == 0 {
			below = append(below, top)
		}
		depth++
		if c == '[' {
			top <<= 1
			if c, i = skipSpace(data, i+1); c != ']' {
				goto value
			}
		} else {
			top = top<<1 | 1
			if c, i = skipSpace(data, i+1); c != '}' {
				goto name
			}
		}
		goto pop
	default:
		return i, aValue
	}
after:
	c, i = skipSpace(data, j)
	switch {
	case depth == 0:
		if i == len(data) {
			return i, nothing
		}
		return i, theEnd
	case top&1 != 0:
		if c == ',' {
			c, i = skipSpace(data, i+1)
			goto name
		}
		if c != '}' {
			return i, inObject
		}
	default:
		if c == ',' {
			c, i = skipSpace(data, i+1)
			goto value
		}
		if c != ']' {
			return i, inArray
		}
	}
pop:
	j = i + 1
	top >>= 1
	if depth--; depth&63 == 0 {
		last := len(below) - 1
		top, below = below[last], below[:last]
	}
	goto after

name:
	if c != '"' {
		return i, aName
	}
	if j = skipString(data, i+1); j < 0 {
		return i, aString
	}
	if c, i = skipSpace(data, j); c != ':' {
		return i, aColon
	}
	c, i = skipSpace(data, i+1)
	goto value
}
