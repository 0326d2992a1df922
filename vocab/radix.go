package vocab

import (
	"bytes"
	"cmp"
	"slices"
)

// sortItem is a token to be sorted. The key is the first eight bytes of its
// text, the first one highest; bytes that a shorter one lacks are zero.
type sortItem struct {
	key  uint64
	id   ID
	size uint32 // bytes of the text
}

// sortTokens sorts text tokens by their bytes; those with the same bytes as
// Lookup prefers them. The first eight bytes are sorted by as numbers, digit by
// digit from the last, which leaves short runs to compare in full.
func (v *Vocab) sortTokens(items []sortItem) {
	sortKeys(items)
	for lo := 0; lo < len(items); {
		hi := lo + 1
		for hi < len(items) && items[hi].key == items[lo].key {
			hi++
		}
		if hi-lo > 1 {
			slices.SortFunc(items[lo:hi], func(a, b sortItem) int {
				return cmp.Or(
					bytes.Compare(v.Bytes(a.id), v.Bytes(b.id)),
					cmp.Compare(preference(v.kinds[a.id]), preference(v.kinds[b.id])),
					cmp.Compare(a.id, b.id),
				)
			})
		}
		lo = hi
	}
}

// sortKeys sorts by key alone.
func sortKeys(items []sortItem) {
	var counts [8][256]uint32
	for _, it := range items {
		for d := range counts {
			counts[d][byte(it.key>>(8*d))]++
		}
	}
	from, to := items, make([]sortItem, len(items))
	for d := range counts {
		at := uint32(0)
		for b, n := range counts[d] {
			counts[d][b] = at
			at += n
		}
		for _, it := range from {
			c := &counts[d][byte(it.key>>(8*d))]
			to[*c] = it
			*c++
		}
		from, to = to, from
	}
	// An even number of rounds ends where it began.
}
