package bpe

import (
	"bytes"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// maxSeam is how many tokens on each side of the border between two windows
// are tried to be merged anew.
const maxSeam = 32

// appendWindows is appendAtOnce in linear time and in memory that does not
// depend on the piece's length. It merges windows of the piece each by itself.
// Where the tokens on both sides of a border would not stay apart it merges some
// of them anew, more and more until those at the ends do: then all neighbours
// are apart, and that makes the tokens those of the whole piece (see
// [Model.Proper]). It gives up, with false, where maxSeam tokens do not help.
func (m *Model) appendWindows(dst []vocab.ID, piece []byte, s *Scratch) ([]vocab.ID, bool) {
	first := len(dst)
	for len(piece) > 0 {
		n := min(shortPiece, len(piece))
		for i := n; n < len(piece) && i > n-utf8.UTFMax; i-- {
			if utf8.RuneStart(piece[i]) {
				n = i
				break
			}
		}
		s.window = m.appendRepeated(s.window[:0], piece[:n], s)
		if last := len(s.window) - 1; n < len(piece) && last > 0 {
			// What comes next mostly changes the last token only: begin there again.
			if b := m.vocab.Bytes(s.window[last]); s.window[last] != m.unknown && bytes.HasSuffix(piece[:n], b) {
				s.window = s.window[:last]
				n -= len(b)
			}
		}
		piece = piece[n:]
		var ok bool
		if dst, ok = m.join(dst, first, s.window, s); !ok {
			return dst[:first], false
		}
	}
	return dst, true
}

// join appends the tokens of a window to those of the windows before, which
// begin at first.
func (m *Model) join(dst []vocab.ID, first int, next []vocab.ID, s *Scratch) ([]vocab.ID, bool) {
	if len(dst) == first || len(next) == 0 || m.staysApart(dst[len(dst)-1], next[0], s) {
		return append(dst, next...), true
	}
	for n := 1; n <= maxSeam; n *= 2 {
		lo, hi := max(first, len(dst)-n), min(n, len(next))
		s.piece = s.piece[:0]
		for _, ids := range [2][]vocab.ID{dst[lo:], next[:hi]} {
			for _, id := range ids {
				if id == m.unknown {
					return dst, false // what it stood for is not known here
				}
				s.piece = append(s.piece, m.vocab.Bytes(id)...)
			}
		}
		s.ids = m.appendRepeated(s.ids[:0], s.piece, s)
		if (lo == first || m.staysApart(dst[lo-1], s.ids[0], s)) &&
			(hi == len(next) || m.staysApart(s.ids[len(s.ids)-1], next[hi], s)) {
			return append(append(dst[:lo], s.ids...), next[hi:]...), true
		}
	}
	return dst, false
}

// memo is what bytes came to.
type memo struct {
	piece []byte
	ids   []vocab.ID
}

// appendRepeated is appendAtOnce that remembers the last results. The longest
// pieces repeat themselves, and their windows and borders come to the same
// again and again.
func (m *Model) appendRepeated(dst []vocab.ID, piece []byte, s *Scratch) []vocab.ID {
	if s.owner != m {
		s.adopt(m)
	}
	last := &s.memos[len(piece)/32%len(s.memos)]
	if !bytes.Equal(last.piece, piece) {
		last.piece = append(last.piece[:0], piece...)
		last.ids = m.appendAtOnce(last.ids[:0], piece, s)
	}
	return append(dst, last.ids...)
}

const logBorders = 6

// border is two tokens and whether they stay apart.
type border struct {
	a, b  vocab.ID
	apart bool
}

// staysApart is Apart, and remembers the last results. It does without
// derivations, which take longer to make than most long pieces to encode.
func (m *Model) staysApart(a, b vocab.ID, s *Scratch) bool {
	last := &s.borders[pairKey(symbol(a), symbol(b))*golden>>(64-logBorders)]
	if last.a != a || last.b != b {
		s.both = append(append(s.both[:0], m.vocab.Bytes(a)...), m.vocab.Bytes(b)...)
		s.pair = m.appendAtOnce(s.pair[:0], s.both, s)
		*last = border{a, b, len(s.pair) == 2 && s.pair[0] == a && s.pair[1] == b}
	}
	return last.apart
}
