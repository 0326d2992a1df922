package split

// byteMaps has a map of each class of bytes: bit i is byte i of the window.
type byteMaps struct {
	upper, lower, digit uint64
	space               uint64 // ' '
	tab                 uint64 // \t \v \f
	line                uint64 // \r \n
	quote, slash        uint64 // ' and /
	control             uint64 // other controls
	wide                uint64 // not ASCII
}

// spread has the classes of each byte, class k in bit 8k, so that the bytes of a
// word, each shifted by its place, add up to eight maps. Two classes at once
// make a ninth and tenth.
var spread = func() (t [256]uint64) {
	const tab, line, quote, slash = 1 << 32, 1 << 40, 1 << 48, 1 << 56
	for c := range 256 {
		switch b := byte(c); {
		case b >= 'A' && b <= 'Z':
			t[c] = 1
		case b >= 'a' && b <= 'z':
			t[c] = 1 << 8
		case b >= '0' && b <= '9':
			t[c] = 1 << 16
		case b == ' ':
			t[c] = 1 << 24
		case b == '\t' || b == '\v' || b == '\f':
			t[c] = tab
		case b == '\r' || b == '\n':
			t[c] = line
		case b == '\'':
			t[c] = quote
		case b == '/':
			t[c] = slash
		case b < ' ' || b == 0x7f:
			t[c] = tab | line
		case b >= 0x80:
			t[c] = quote | slash
		}
	}
	return t
}()

// classifyBytes is classify without vector instructions.
func (m *byteMaps) classifyBytes(b *[windowSize]byte) {
	var upper, lower, digit, space, tab, line, quote, slash uint64
	for k := 0; k < windowSize; k += 8 {
		p := (*[8]byte)(b[k : k+8])
		w := spread[p[0]] | spread[p[1]]<<1 | spread[p[2]]<<2 | spread[p[3]]<<3 |
			spread[p[4]]<<4 | spread[p[5]]<<5 | spread[p[6]]<<6 | spread[p[7]]<<7
		upper |= w & 0xff << k
		lower |= w >> 8 & 0xff << k
		digit |= w >> 16 & 0xff << k
		space |= w >> 24 & 0xff << k
		tab |= w >> 32 & 0xff << k
		line |= w >> 40 & 0xff << k
		quote |= w >> 48 & 0xff << k
		slash |= w >> 56 << k
	}
	*m = byteMaps{
		upper: upper, lower: lower, digit: digit, space: space,
		tab: tab &^ line, line: line &^ tab, control: tab & line,
		quote: quote &^ slash, slash: slash &^ quote, wide: quote & slash,
	}
}
