package continuation

// A machine reads JSON byte by byte as long as it is strict JSON, and knows where
// nothing is half done. The zero value is at the start of a text.
type machine struct {
	state  state
	number numberPart
	hex    int    // digits of \uXXXX that are missing
	word   string // bytes of a literal that are missing

	objects []uint64 // a bit for each open container, 1 for an object
	depth   int

	pos   int // bytes taken
	token int // where the string, name, number or literal being read begins
	end   int // of the root value, 0: none yet
	// bounds are the last ends of whole members and of openers, the latest last.
	bounds [16]int
}

type state uint8

const (
	atValue     state = iota // a value must come
	atElement                // a value or the end of the array
	atName                   // a name must come
	atFirstName              // a name or the end of the object
	atColon
	inName
	inNameEscape
	inString
	inStringEscape
	inNumber
	inLiteral
	behind // a value inside a container
	ended  // the root value is whole
)

// numberPart is what of a number was read last.
type numberPart uint8

const (
	minus numberPart = iota
	zero
	integer
	point
	fraction
	exponent
	sign
	power
)

// whole reports whether a number may end behind the part.
func (p numberPart) whole() bool { return p == zero || p == integer || p == fraction || p == power }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// inText reports whether the machine is inside a string or name, where bytes stand
// for themselves.
func (m *machine) inText() bool { return m.state >= inName && m.state <= inStringEscape }

// inScalar reports whether something has begun that is no container.
func (m *machine) inScalar() bool { return m.state >= inName && m.state <= inLiteral }

func (m *machine) inObject() bool {
	k := m.depth - 1
	return k >= 0 && m.objects[k/64]>>(k%64)&1 == 1
}

func (m *machine) open(object bool) {
	k := m.depth
	if k/64 == len(m.objects) {
		m.objects = append(m.objects, 0)
	}
	m.objects[k/64] &^= 1 << (k % 64)
	m.state = atElement
	if object {
		m.objects[k/64] |= 1 << (k % 64)
		m.state = atFirstName
	}
	m.depth++
	m.bound(m.pos + 1)
}

// bound notes that nothing is half done at a place.
func (m *machine) bound(at int) {
	copy(m.bounds[:], m.bounds[1:])
	m.bounds[len(m.bounds)-1] = at
}

// done notes that a value ends before at.
func (m *machine) done(at int) {
	m.bound(at)
	m.state = behind
	if m.depth == 0 {
		m.state, m.end = ended, at
	}
}

// clone returns a machine that goes on by itself.
func (m *machine) clone() *machine {
	c := *m
	c.objects = append([]uint64(nil), m.objects...)
	return &c
}

// run takes bytes as long as they are JSON and returns how many it took.
func (m *machine) run(b []byte) int {
	for i, c := range b {
		if !m.step(c) {
			return i
		}
	}
	return len(b)
}

// step takes one byte. It reports false, and takes nothing, if the byte cannot
// stand there. Behind the root value only white space can.
func (m *machine) step(c byte) bool {
	if m.state == inNumber {
		if next, ok := m.number.next(c); ok {
			m.number = next
			m.pos++
			return true
		}
		if !m.number.whole() {
			return false
		}
		// The byte behind ends the number, if it can stand there itself.
		before := *m
		m.done(m.pos)
		if !m.stepBetween(c) {
			*m = before
			return false
		}
		m.pos++
		return true
	}
	var ok bool
	switch {
	case m.inText():
		ok = m.stepText(c)
	case m.state == inLiteral:
		if ok = c == m.word[0]; ok {
			if m.word = m.word[1:]; m.word == "" {
				m.done(m.pos + 1)
			}
		}
	default:
		ok = m.stepBetween(c)
	}
	if ok {
		m.pos++
	}
	return ok
}

func (p numberPart) next(c byte) (numberPart, bool) {
	digit := isDigit(c)
	switch {
	case p == minus && c == '0':
		return zero, true
	case (p == minus || p == integer) && digit:
		return integer, true
	case (p == zero || p == integer) && c == '.':
		return point, true
	case (p == point || p == fraction) && digit:
		return fraction, true
	case (p == zero || p == integer || p == fraction) && (c == 'e' || c == 'E'):
		return exponent, true
	case p == exponent && (c == '+' || c == '-'):
		return sign, true
	case (p == exponent || p == sign || p == power) && digit:
		return power, true
	}
	return p, false
}

func (m *machine) stepText(c byte) bool {
	plain := inString
	if m.state == inName || m.state == inNameEscape {
		plain = inName
	}
	switch {
	case m.hex > 0:
		low := c | 0x20
		if !isDigit(c) && (low < 'a' || low > 'f') {
			return false
		}
		if m.hex--; m.hex == 0 {
			m.state = plain
		}
	case m.state != plain: // behind a backslash
		switch c {
		case 'u':
			m.hex = 4
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			m.state = plain
		default:
			return false
		}
	case c == '\\':
		m.state++
	case c == '"' && plain == inName:
		m.state = atColon
	case c == '"':
		m.done(m.pos + 1)
	default:
		return c >= ' '
	}
	return true
}

func (m *machine) stepBetween(c byte) bool {
	if isSpace(c) {
		return true
	}
	switch m.state {
	case atValue, atElement:
		if c == ']' && m.state == atElement {
			m.close()
			return true
		}
		return m.stepValue(c)
	case atName, atFirstName:
		if c == '}' && m.state == atFirstName {
			m.close()
			return true
		}
		if c == '"' {
			m.state, m.token = inName, m.pos
			return true
		}
	case atColon:
		if c == ':' {
			m.state = atValue
			return true
		}
	case behind:
		object := m.inObject()
		switch {
		case c == ',' && object:
			m.state = atName
		case c == ',':
			m.state = atValue
		case c == '}' && object, c == ']' && !object:
			m.close()
		default:
			return false
		}
		return true
	}
	return false
}

func (m *machine) stepValue(c byte) bool {
	switch {
	case c == '{' || c == '[':
		m.open(c == '{')
	case c == '"':
		m.state, m.token = inString, m.pos
	case c == '-':
		m.state, m.number, m.token = inNumber, minus, m.pos
	case c == '0':
		m.state, m.number, m.token = inNumber, zero, m.pos
	case isDigit(c):
		m.state, m.number, m.token = inNumber, integer, m.pos
	case c == 't':
		m.literal("rue")
	case c == 'f':
		m.literal("alse")
	case c == 'n':
		m.literal("ull")
	default:
		return false
	}
	return true
}

func (m *machine) literal(rest string) { m.state, m.word, m.token = inLiteral, rest, m.pos }

func (m *machine) close() {
	m.depth--
	m.done(m.pos + 1)
}
