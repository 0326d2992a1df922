package remote

import (
	"bytes"
	"slices"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// replay follows a generation over what it must begin with.
type replay struct {
	v       *vocab.Vocab
	pending []byte // what is left
	// ways are those that agree with the tokens so far, without these. Where
	// there were none from the start, free is true.
	ways []backend.Way
	free bool
}

// newReplay returns nil where nothing is pending.
func newReplay(v *vocab.Vocab, r *backend.Replay) *replay {
	if r == nil || len(r.Pending) == 0 {
		return nil
	}
	return &replay{v: v, pending: r.Pending, ways: slices.Clone(r.Ways), free: len(r.Ways) == 0}
}

// done reports whether any token may follow.
func (r *replay) done() bool { return r == nil || len(r.pending) == 0 }

// allows reports whether a token may come next.
func (r *replay) allows(id vocab.ID) bool {
	switch {
	case r.done():
		return true
	case !r.v.Valid(id):
		return false
	case r.free:
		b := r.v.Bytes(id)
		n := min(len(b), len(r.pending))
		return n > 0 && r.v.IsText(id) && !r.v.IsEOG(id) && bytes.Equal(b[:n], r.pending[:n])
	}
	for i := range r.ways {
		if r.wayAllows(&r.ways[i], id) {
			return true
		}
	}
	return false
}

func (r *replay) wayAllows(w *backend.Way, id vocab.ID) bool {
	if len(w.Path) > 0 {
		return w.Path[0] == id
	}
	_, ok := slices.BinarySearch(w.Last, id)
	return ok
}

// mask returns the tokens that may come next.
func (r *replay) mask() vocab.Mask {
	m := vocab.NewMask(r.v.Len())
	if r.free {
		r.v.PrefixMask(m, r.pending)
		m.SetIDs(r.v.AppendPrefixes(nil, r.pending))
		for _, id := range r.v.Specials().EOG {
			m.Remove(id)
		}
		return m
	}
	for i := range r.ways {
		if w := &r.ways[i]; len(w.Path) > 0 {
			m.Set(w.Path[0])
		} else {
			m.SetIDs(w.Last)
		}
	}
	return m
}

// accept takes the next token, which allows has let pass.
func (r *replay) accept(id vocab.ID) {
	if r.done() {
		return
	}
	n := min(len(r.v.Bytes(id)), len(r.pending))
	r.pending = r.pending[n:]
	var ways []backend.Way
	for i := range r.ways {
		w := r.ways[i]
		if len(w.Path) > 0 && w.Path[0] == id {
			w.Path = w.Path[1:]
			ways = append(ways, w)
		}
	}
	r.ways = ways
}

// size is how many tokens the ways that are left name. It stops counting beyond
// most.
func (r *replay) size(most int) int {
	n := 0
	for i := range r.ways {
		if n += len(r.ways[i].Path) + len(r.ways[i].Last); n > most {
			break
		}
	}
	return n
}
