package boundary

import (
	"slices"

	"github.com/unfray/unfray/vocab"
)

// prefixEncoder tokenizes several prefixes of one pretoken that end near its
// end. In a long pretoken it encodes the shared beginning once and joins a
// window at the end to it. The joined sequence is the canonical one exactly if
// the pair of tokens at the seam is, for a sequence is canonical iff each of
// its adjacent pairs is.
type prefixEncoder struct {
	c     *canon
	piece []byte
	ids   []vocab.ID // tokenization of the whole piece, if it is long
	ends  []int      // byte offset in piece at which each of ids ends
}

// windowBytes is how much of a long pretoken is encoded anew for each prefix.
// A few times the usual token length keeps the seam away from what moves.
const windowBytes = 256

func newPrefixEncoder(c *canon, piece []byte) *prefixEncoder {
	e := &prefixEncoder{c: c, piece: piece}
	if len(piece) <= 2*windowBytes {
		return e
	}
	e.ids = c.t.EncodePiece(nil, piece)
	e.ends = make([]int, len(e.ids))
	at := 0
	for i, id := range e.ids {
		at += len(c.t.Vocab().Bytes(id))
		e.ends[i] = at
	}
	return e
}

// encode appends the tokenization of piece[:p] to dst.
func (e *prefixEncoder) encode(dst []vocab.ID, p int) []vocab.ID {
	if e.ids == nil || p <= windowBytes {
		return e.c.t.EncodePiece(dst, e.piece[:p])
	}
	// The seam goes after the last token that ends a window before p; if the
	// pair there is not canonical, further to the left.
	seam, _ := slices.BinarySearch(e.ends, p-windowBytes)
	for tries := 0; seam > 0 && tries < 16; tries++ {
		window := e.c.t.EncodePiece(nil, e.piece[e.ends[seam-1]:p])
		if e.c.apart(e.ids[seam-1], window[0]) {
			return append(append(dst, e.ids[:seam]...), window...)
		}
		seam--
	}
	return e.c.t.EncodePiece(dst, e.piece[:p])
}
