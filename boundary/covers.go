package boundary

import (
	"slices"

	"github.com/unfray/unfray/vocab"
)

// Cover is a token path over the pending bytes whose last token reaches or
// passes the prompt's end.
type Cover struct {
	IDs  []vocab.ID // tokens after the stable prefix
	Text []byte     // their bytes; begins with the pending bytes
}

// Covers lists the first limit covers, the trunk first, and counts them all.
// The work grows with the number of tokens that begin with the last bytes:
// tens of thousands after a lone blank.
func (r *Report) Covers(limit int) (list []Cover, total int) {
	if len(r.Pending) == 0 {
		return nil, 0
	}
	c := newCanon(r.tok, len(r.tok.Decode(nil, r.fixed))+len(r.Pending))
	path := slices.Clone(r.fixed)
	add := func(tokens []vocab.ID, last ...vocab.ID) {
		path = append(append(path[:len(r.fixed)], tokens...), last...)
		if !c.canonical(path) {
			return
		}
		total++
		if len(list) < limit {
			ids := slices.Clone(path[len(r.fixed):])
			list = append(list, Cover{IDs: ids, Text: r.tok.Decode(nil, ids)})
		}
	}
	for _, b := range r.Branches {
		if len(b.Rest) == 0 {
			add(b.Path)
		}
		for id := range b.Extensions(r.tok.Vocab()) {
			add(b.Path, id)
		}
	}
	return list, total
}
