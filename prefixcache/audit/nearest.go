package audit

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// entry is a sequence in the order of sequences: a prompt, or a prompt with its
// output.
type entry struct {
	i    int
	held bool
}

// order says how the sequences of views are compared.
type order struct {
	compare func(a, b entry) int
	common  func(i, j int) int // of prompt i and what j holds
	long    func(i int) bool   // i holds more than its prompt
}

// nearest finds for each prompt the earlier one that holds the longest common
// beginning with it, -1 for the first. It sorts, and then takes the prompts out
// from the last to the first: the neighbours of a prompt among the earlier ones
// have the longest beginning in common with it.
func nearest(n int, o order) []int {
	entries := make([]entry, 0, 2*n)
	for i := range n {
		entries = append(entries, entry{i: i})
		if o.long(i) {
			entries = append(entries, entry{i: i, held: true})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(o.compare(a, b), cmp.Compare(a.i, b.i))
	})
	m := len(entries)
	prev, next := make([]int, m+2), make([]int, m+2) // by place from 1; 0 and m+1 are the ends
	at := make([][2]int, n)                          // places of the prompt and of what is held
	for k, e := range entries {
		at[e.i][place(e.held)] = k + 1
	}
	for k := range m + 2 {
		prev[k], next[k] = k-1, k+1
	}
	remove := func(k int) { next[prev[k]], prev[next[k]] = next[k], prev[k] }
	found := make([]int, n)
	for i := n - 1; i >= 0; i-- {
		if k := at[i][1]; k > 0 {
			remove(k)
		}
		k := at[i][0]
		found[i] = -1
		best := -1
		for _, side := range [2]int{prev[k], next[k]} {
			if side < 1 || side > m {
				continue
			}
			j := entries[side-1].i
			if c := o.common(i, j); c > best || c == best && j > found[i] {
				found[i], best = j, c
			}
		}
		remove(k)
	}
	return found
}

func place(held bool) int {
	if held {
		return 1
	}
	return 0
}

// byText orders views by their bytes, in all namespaces or by namespace.
func byText(views []view, spaces bool) order {
	text := func(e entry) []byte {
		if e.held {
			return views[e.i].text
		}
		return views[e.i].text[:views[e.i].size]
	}
	return order{
		compare: func(a, b entry) int {
			if c := cmp.Compare(views[a.i].space, views[b.i].space); spaces && c != 0 {
				return c
			}
			return bytes.Compare(text(a), text(b))
		},
		common: func(i, j int) int {
			if spaces && views[i].space != views[j].space {
				return -1
			}
			return commonBytes(text(entry{i: i}), views[j].text)
		},
		long: func(i int) bool { return len(views[i].text) > views[i].size },
	}
}

// byTokens orders views by their tokens, by namespace.
func byTokens(views []view) order {
	ids := func(e entry) []vocab.ID {
		if e.held {
			return views[e.i].keyed[:views[e.i].held]
		}
		return views[e.i].keyed[:views[e.i].n]
	}
	return order{
		compare: func(a, b entry) int {
			return cmp.Or(cmp.Compare(views[a.i].space, views[b.i].space), slices.Compare(ids(a), ids(b)))
		},
		common: func(i, j int) int {
			if views[i].space != views[j].space {
				return -1
			}
			return vocab.CommonPrefix(ids(entry{i: i}), views[j].keyed[:views[j].held])
		},
		long: func(i int) bool { return views[i].held > views[i].n },
	}
}

// commonBytes is how many bytes a and b begin with in common.
func commonBytes(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// commonTail is how many bytes a and b end with in common.
func commonTail(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[len(a)-i-8:]) ^ binary.LittleEndian.Uint64(b[len(b)-i-8:]); x != 0 {
			return i + bits.LeadingZeros64(x)/8
		}
	}
	for i < n && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	return i
}
