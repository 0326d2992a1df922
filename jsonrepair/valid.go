package jsonrepair

// IsValid reports whether data is one JSON text by RFC 8259. See [Check].
func IsValid(data []byte) bool { return Check(data, 0) == nil }

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
// recurses: each level takes one bit of memory, and no valid text of up to 1,024
// levels allocates.
func Check(data []byte, maxDepth int) *Error {
	if maxDepth <= 0 {
		maxDepth = len(data)
	}
	if i, n := scan(data, maxDepth); n != theEnd || i < len(data) {
		return explain(data, i, n)
	}
	return nil
}

// A need is what the grammar asks for at a place.
type need uint8

const (
	aValue need = iota
	aName
	aColon
	inObject // a comma or a closing brace
	inArray  // a comma or a closing bracket
	theEnd
	aScalar // that begins there to be a whole one
	aLevel  // less depth
)

// nesting is the open containers, one bit for each, 1 for an object: the
// innermost 1 to 64 in top, every 64 outer ones in an element of outer and then
// of more.
type nesting struct {
	top   uint64
	depth int
	outer [16]uint64
	more  []uint64
}

func (n *nesting) push(object uint64) {
	if n.depth&63 == 0 {
		if k := n.depth >> 6; k < len(n.outer) {
			n.outer[k] = n.top
		} else {
			n.more = append(n.more, n.top)
		}
	}
	n.depth++
	n.top = n.top<<1 | object
}

func (n *nesting) pop() {
	n.depth--
	n.top >>= 1
	if n.depth&63 == 0 {
		if k := n.depth >> 6; k < len(n.outer) {
			n.top = n.outer[k]
		} else {
			n.top = n.more[k-len(n.outer)]
			n.more = n.more[:k-len(n.outer)]
		}
	}
}

// scan goes as far as the text is valid and returns what is needed there: theEnd
// at len(data) if all of it is.
//
// White space is looked for in place because calls cost more than most tokens.
func scan(data []byte, maxDepth int) (int, need) {
	var open nesting
	end := 0                   // of a value or name
	c, i := skipSpace(data, 0) // c is data[i], 0 at the end
value:
	switch c {
	case '"':
		end = skipString(data, i+1)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		end = skipNumber(data, i)
	case 't', 'f', 'n':
		end = skipLiteral(data, i)
	case '{', '[':
		if open.depth >= maxDepth {
			return i, aLevel
		}
		open.push(uint64(c) >> 5 & 1) // 0x7b, 0x5b
		i++
		if c = peek(data, i); c <= ' ' {
			c, i = skipSpace(data, i)
		}
		if object := open.top&1 != 0; object && c != '}' {
			goto name
		} else if !object && c != ']' {
			goto value
		}
		goto closer
	default:
		return i, aValue
	}
	if end < 0 {
		return i, aScalar
	}
behind: // a value
	i = end
	if c = peek(data, i); c <= ' ' {
		c, i = skipSpace(data, i)
	}
	switch {
	case open.depth == 0:
		return i, theEnd
	case c == ',':
		i++
		if c = peek(data, i); c <= ' ' {
			c, i = skipSpace(data, i)
		}
		if open.top&1 == 0 {
			goto value
		}
		goto name
	case open.top&1 != 0 && c != '}':
		return i, inObject
	case open.top&1 == 0 && c != ']':
		return i, inArray
	}
closer:
	open.pop()
	end = i + 1
	goto behind
name:
	if c != '"' {
		return i, aName
	}
	if end = skipString(data, i+1); end < 0 {
		return i, aScalar
	}
	if c, i = peek(data, end), end; c <= ' ' {
		c, i = skipSpace(data, i)
	}
	if c != ':' {
		return i, aColon
	}
	i++
	if c = peek(data, i); c <= ' ' {
		c, i = skipSpace(data, i)
	}
	goto value
}
