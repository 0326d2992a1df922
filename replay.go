package unfray

import (
	"slices"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
)

// newReplay says as data what the masks of a plan's session say; nil if nothing
// is pending.
func newReplay(p *heal.Plan, t *tokenizer.Tokenizer) *backend.Replay {
	if len(p.Pending) == 0 {
		return nil
	}
	v := t.Vocab()
	r := &backend.Replay{Pending: p.Pending}
	for i := range p.Branches {
		b := &p.Branches[i]
		w := backend.Way{Path: b.Path, Rest: b.Rest}
		if len(b.Rest) > 0 {
			for id := range b.Extensions(v) {
				if b.Joins(t, id) && !v.IsEOG(id) {
					w.Last = append(w.Last, id)
				}
			}
			if len(w.Last) == 0 {
				continue // it leads nowhere
			}
			slices.Sort(w.Last)
			w.Last = slices.Compact(w.Last)
		}
		r.Ways = append(r.Ways, w)
	}
	return r
}
