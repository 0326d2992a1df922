package boundary

import (
	"slices"

	"github.com/unfray/unfray/vocab"
)

// windowBytes is how much of a long pretoken is encoded anew for each prefix.
// A few times the usual token length keeps the seam away from what moves.
const windowBytes = 256

// loadLong finds the tokens of a long open pretoken.
func (a *analysis) loadLong(rd *reading) {
	rd.long = true
	rd.ids = a.merged(rd.ids, a.tail.Text[rd.Open:rd.Until])
	at := 0
	for _, id := range rd.ids[rd.closed:] {
		at += len(a.v.Bytes(id))
		rd.ends = append(rd.ends, at)
	}
}

// pathTo gives the tokens up to byte p of the tail, in the reading's open
// pretoken: the first shared of rd.ids and then own, which is valid until the
// next call. The pretoken goes on after p.
//
// In a long pretoken only a window before p is encoded. What is put together so
// is the canonical sequence exactly if the tokens at the seam are apart, for
// then each adjacent pair is.
func (a *analysis) pathTo(rd *reading, p int) (shared int, own []vocab.ID) {
	open := a.tail.Text[rd.Open:p]
	a.path = a.path[:0]
	if rd.long && p == rd.Until {
		return len(rd.ids), nil
	}
	if !rd.long || len(open) <= windowBytes || !a.t.Pairwise() {
		a.path = a.merged(a.path, open)
		return rd.closed, a.path
	}
	seam, _ := slices.BinarySearch(rd.ends, len(open)-windowBytes)
	for tries := 0; seam > 0 && tries < 16; tries++ {
		a.path = a.merged(a.path[:0], open[rd.ends[seam-1]:])
		if a.t.Apart(rd.ids[rd.closed+seam-1], a.path[0]) {
			return rd.closed + seam, a.path
		}
		seam--
	}
	a.path = a.merged(a.path[:0], open)
	return rd.closed, a.path
}

// pathToEnd gives the tokens of the reading if its last pretoken ends there, as
// pathTo does.
func (a *analysis) pathToEnd(rd *reading) (shared int, own []vocab.ID) {
	if rd.long {
		return len(rd.ids), nil
	}
	a.path = a.t.EncodePiece(a.path[:0], a.tail.Text[rd.Open:rd.Until])
	return rd.closed, a.path
}

// separators are bytes that hardly any token holds: UTF-8 has none of them.
const separators = "\xff\xfe\xc0\xc1\xf5\x00"

// merged appends the tokens that the beginning of a longer pretoken has if one
// of them ends where it does. They differ from those of the piece alone if that
// is a token which comes from no merge, or an added token.
func (a *analysis) merged(dst []vocab.ID, piece []byte) []vocab.ID {
	n := len(dst)
	dst = a.t.EncodePiece(dst, piece)
	if len(dst)-n != 1 || len(piece) == 1 && a.v.Kind(dst[n]) != vocab.UserDefined {
		return dst
	}
	for i := range len(separators) {
		a.piece = append(append(a.piece[:0], piece...), separators[i])
		dst = a.t.EncodePiece(dst[:n], a.piece)
		at := 0
		for k, id := range dst[n:] {
			if at += len(a.v.Bytes(id)); at == len(piece) {
				return dst[:n+k+1]
			}
		}
	}
	return a.t.EncodePiece(dst[:n], piece)
}
