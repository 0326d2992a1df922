package boundary

import (
	"bytes"
	"iter"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// Cover is a token path over the pending bytes whose last token reaches or
// passes the prompt's end.
type Cover struct {
	IDs  []vocab.ID // tokens after the stable prefix
	Text []byte     // their bytes; begins with the pending bytes
}

// coverWork bounds the trials of one count or list, a few milliseconds.
const coverWork = 1 << 16

// Covers lists the first limit covers, the trunk first, and counts them all, as
// [Report.Count] does.
func (r *Report) Covers(limit int) (list []Cover, total int) {
	total, _ = r.Count()
	if limit <= 0 {
		return nil, total
	}
	for c := range r.All() {
		if list = append(list, c); len(list) == limit {
			break
		}
	}
	return list, total
}

// All lists the covers, the trunk first, then by branch and in byte order of
// the last token. Each is found when it is asked for: after a lone blank tens of
// thousands of tokens may follow.
func (r *Report) All() iter.Seq[Cover] {
	return func(yield func(Cover) bool) {
		r.each(func(b *Branch, id vocab.ID) bool {
			ids := slices.Clone(b.Path)
			if id != vocab.None {
				ids = append(ids, id)
			}
			c := Cover{IDs: ids}
			for _, id := range ids {
				c.Text = append(c.Text, r.a.v.Bytes(id)...)
			}
			return yield(c)
		})
	}
}

// each calls f with each cover: a branch and the token after it, None if the
// branch is itself one.
func (r *Report) each(f func(b *Branch, id vocab.ID) bool) {
	if len(r.Pending) == 0 {
		return
	}
	for i := range r.Branches {
		b := &r.Branches[i]
		if len(b.Rest) == 0 {
			if !f(b, vocab.None) {
				return
			}
			continue
		}
		for id := range b.Extensions(r.a.v) {
			if r.Follows(b, id) && !f(b, id) {
				return
			}
		}
	}
}

// IsCover reports whether a path is one of the covers.
func (r *Report) IsCover(path []vocab.ID) bool {
	if len(r.Pending) == 0 || len(path) == 0 {
		return false
	}
	last := path[len(path)-1]
	for i := range r.Branches {
		b := &r.Branches[i]
		if len(b.Rest) == 0 {
			if slices.Equal(path, b.Path) {
				return true
			}
			continue
		}
		token := r.a.v.Bytes(last)
		if slices.Equal(path[:len(path)-1], b.Path) && len(token) > len(b.Rest) && bytes.HasPrefix(token, b.Rest) && r.Follows(b, last) {
			return true
		}
	}
	return false
}

// Follows reports whether a token that begins with the branch's Rest makes a
// cover of its Path. The branch is one of the report's.
func (r *Report) Follows(b *Branch, id vocab.ID) bool {
	a := r.a
	if defined := a.v.Kind(id) == vocab.UserDefined; b.Added || defined && b.plain {
		return defined && b.Added
	}
	for _, w := range b.ways {
		if a.joins(&a.readings[w.reading], w.p, b.last, id) {
			return true
		}
	}
	return false
}

// Count counts the covers. Where that would take longer than some milliseconds
// it stops counting, and n is the number found until then: there are at least as
// many. exact says that n is all there are.
func (r *Report) Count() (n int, exact bool) {
	if len(r.Pending) == 0 || len(r.Branches) == 0 {
		return 0, true
	}
	a := r.a
	a.work = coverWork
	// Short ranges first: long ones are what takes time.
	order := make([]*Branch, len(r.Branches))
	for i := range order {
		order[i] = &r.Branches[i]
	}
	size := func(b *Branch) int {
		if len(b.Rest) == 0 {
			return 0
		}
		return extensions(a.v, b.Rest).Len()
	}
	slices.SortStableFunc(order, func(b, c *Branch) int { return size(b) - size(c) })
	for _, b := range order {
		if len(b.Rest) == 0 {
			n++
			continue
		}
		if k, ok := a.countHeads(b); ok {
			n += k
			continue
		}
		for id := range b.Extensions(a.v) {
			if a.work <= 0 {
				return n, false
			}
			if r.Follows(b, id) {
				n++
			}
		}
	}
	return n, true
}
