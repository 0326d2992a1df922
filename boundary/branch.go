package boundary

import (
	"bytes"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// way is how a branch comes about: by a reading of the tail, leaving it at byte
// p. A path of several tokens may do so in several readings.
type way struct {
	reading int
	p       int
}

// branchTrials bounds the work of leaving dead branches out of a list. One that
// is there for want of trials has no cover.
const branchTrials = 128

// branches lists the ways over the tail from byte at on, where the first fixed
// tokens of the trunk end. The trunk is the first, then the longest rest: few
// tokens, and the likeliest, extend it.
func (a *analysis) branches(fixed, at int) []Branch {
	trunk := Branch{Path: slices.Clone(a.trunk[fixed:]), last: lastOf(nil, a.trunk)}
	if at == len(a.tail.Text) {
		return []Branch{trunk}
	}
	list := []Branch{trunk}
	a.work = branchTrials
	for i := range a.readings {
		rd := &a.readings[i]
		if rd.Until < len(a.tail.Text) {
			continue // the normalizer rewrites the text: that is no cover of it
		}
		if rd.Added != vocab.None {
			list = a.addBranch(list, fixed, rd, way{reading: i, p: rd.Open}, rd.closed, nil)
			continue
		}
		for p := a.firstRest(rd); p < rd.Until; p++ {
			if extensions(a.v, a.tail.Text[p:rd.Until]).Len() == 0 {
				continue
			}
			// A path that leaves the trunk before it is stable is none.
			shared, own := a.pathTo(rd, p)
			if a.commonPrefix(rd, shared, own) >= fixed && a.leaves(rd, p, lastOf(rd.ids[:shared], own)) {
				list = a.addBranch(list, fixed, rd, way{reading: i, p: p}, shared, own)
			}
		}
		list = a.addEnd(list, fixed, i)
	}
	for i := range list {
		if !list[i].Added {
			continue
		}
		for j := range list {
			if o := &list[j]; !o.Added && bytes.Equal(o.Rest, list[i].Rest) && slices.Equal(o.Path, list[i].Path) {
				o.plain = true
			}
		}
	}
	return list
}

// addEnd adds the paths of a reading that end where it does.
func (a *analysis) addEnd(list []Branch, fixed, i int) []Branch {
	rd := &a.readings[i]
	w := way{reading: i, p: rd.Until}
	shared, own := a.pathToEnd(rd)
	ends := a.endsHere(rd)
	if ends && a.commonPrefix(rd, shared, own) >= fixed {
		list = a.addBranch(list, fixed, rd, w, shared, own)
	}
	if ends && (rd.long || len(own) != 1) {
		return list
	}
	// A token that is all of the open pretoken may be one only if it ends there.
	whole := lastOf(nil, own)
	shared, own = a.pathTo(rd, rd.Until)
	if ends && len(own) == 1 && own[0] == whole {
		return list
	}
	if a.commonPrefix(rd, shared, own) >= fixed && a.goesOn(rd, lastOf(rd.ids[:shared], own)) {
		list = a.addBranch(list, fixed, rd, w, shared, own)
	}
	return list
}

// addBranch adds a path, the first shared tokens of the reading and own, or
// only the way if the path is there.
func (a *analysis) addBranch(list []Branch, fixed int, rd *reading, w way, shared int, own []vocab.ID) []Branch {
	b := Branch{ways: []way{w}, Added: rd.Added != vocab.None, last: lastOf(rd.ids[:shared], own)}
	b.joined = w.p > rd.Open
	if shared > fixed {
		b.Path = append(slices.Clone(rd.ids[fixed:shared]), own...)
	} else {
		b.Path = slices.Clone(own[fixed-shared:])
	}
	b.Rest = bytes.Clone(a.tail.Text[w.p:rd.Until])
	for i := range list {
		if o := &list[i]; o.Added == b.Added && bytes.Equal(o.Rest, b.Rest) && slices.Equal(o.Path, b.Path) {
			o.ways = append(o.ways, w)
			o.joined = o.joined && b.joined
			return list
		}
	}
	return append(list, b)
}
