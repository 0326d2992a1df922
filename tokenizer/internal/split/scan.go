package split

import (
	"encoding/binary"
	"math/bits"
)

// scanWindows writes the ends of the pretokens of text[from:], as many as there
// are or fit, and returns how many. A window gives many, the matcher one.
func scanWindows(p matcher, s *style, ends []int, text []byte, from int) int {
	n := 0
	var m byteMaps
	var pad [windowSize]byte
	for n < len(ends) && from < len(text) {
		var b *[windowSize]byte
		switch {
		case from+windowSize <= len(text):
			b = (*[windowSize]byte)(text[from:])
		case from+8 <= len(text):
			b = &pad
			for i := copy(pad[:], text[from:]); i < windowSize; i++ {
				pad[i] = 0x80 // what cannot be told
			}
		}
		if b != nil && isASCII8(b) {
			m.classify(b)
			starts, trusted := m.starts(s, b)
			starts &= 1<<trusted - 1
			for over := bits.OnesCount64(starts) - (len(ends) - n); over > 0; over-- {
				starts &^= 1 << (63 - bits.LeadingZeros64(starts))
			}
			if starts != 0 {
				base := from
				for ; starts != 0; starts &= starts - 1 {
					from = base + bits.TrailingZeros64(starts)
					ends[n] = from
					n++
				}
				continue
			}
		}
		from, _ = p.next(text, from)
		ends[n] = from
		n++
	}
	return n
}

// isASCII8 reports whether the first 8 bytes of a window are ASCII: else it
// would not get far.
func isASCII8(b *[windowSize]byte) bool {
	return binary.LittleEndian.Uint64(b[:8])&0x8080808080808080 == 0
}
