package bpe

import (
	"bytes"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// windowedPiece is the number of bytes from which a piece is merged window by
// window: then what is saved pays for the derivations.
const windowedPiece = 1 << 14

// windowBytes is the length of a window. Long ones take longer, for merging is
// quadratic there, short ones have more borders: this is twice as fast for one
// letter again and again as 96, and as fast for random ones.
const windowBytes = 32

// maxSeam is how many tokens on each side of the border between two windows
// are tried to be merged anew.
const maxSeam = 32

// appendWindows is appendMerged in time and memory that do not depend on how
// long symbols and the piece are. It merges windows of the piece each by
// itself. Where the tokens on both sides of a border would not stay apart it
// merges some of them anew, more and more until those at the ends do: then all
// neighbours are apart, and that makes the tokens those of the whole piece (see
// [Model.Proper]). It gives up, with false, where maxSeam tokens do not help.
func (m *Model) appendWindows(dst []vocab.ID, piece []byte, s *Scratch) ([]vocab.ID, bool) {
	first := len(dst)
	for len(piece) > 0 {
		n := min(windowBytes, len(piece))
		for i := n; n < len(piece) && i > n-utf8.UTFMax; i-- {
			if utf8.RuneStart(piece[i]) {
				n = i
				break
			}
		}
		s.window = m.appendRepeated(s.window[:0], piece[:n], s)
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
	if len(dst) == first || len(next) == 0 || m.Apart(dst[len(dst)-1], next[0]) {
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
		if (lo == first || m.Apart(dst[lo-1], s.ids[0])) &&
			(hi == len(next) || m.Apart(s.ids[len(s.ids)-1], next[hi])) {
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
	last := &s.memos[len(piece)/windowBytes%len(s.memos)]
	if !bytes.Equal(last.piece, piece) {
		last.piece = append(last.piece[:0], piece...)
		last.ids = m.appendAtOnce(last.ids[:0], piece, s)
	}
	return append(dst, last.ids...)
}
