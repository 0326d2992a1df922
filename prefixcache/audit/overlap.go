package audit

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
)

// span is bytes from lo to hi.
type span struct{ lo, hi int }

func (s span) len() int { return s.hi - s.lo }

// match is text that stands in both: n bytes at old and at new.
type match struct{ old, new, n int }

// grain is the number of bytes of which a match holds at least one run that
// begins at a multiple of it in the old text: all matches of 2*grain-1 bytes are
// found.
const grain = 16

// blocks is an index of the runs of grain bytes of a text: chains of their
// numbers by hash.
type blocks struct {
	head, next []int32
}

var blockTables = sync.Pool{New: func() any { return new(blocks) }}

// maxChain bounds how many runs with one hash are looked at.
const maxChain = 8

func hashRun(b []byte) uint64 {
	x := binary.LittleEndian.Uint64(b) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	x = (x + binary.LittleEndian.Uint64(b[8:])) * 0xbf58476d1ce4e5b9
	return x ^ x>>31
}

// overlap finds text of the old that stands in the new too, wherever it stands,
// as rsync's algorithm does: runs of the old are indexed, the new is read once.
// First comes what both end with. Text that stands several times in the new
// counts as often as in the old. The matches are in the order of the new.
func overlap(old, new []byte) []match {
	tail := commonTail(old, new)
	var found []match
	a, b := old[:len(old)-tail], new[:len(new)-tail]
	found = overlapMiddle(a, b)
	if tail > 0 {
		found = append(found, match{len(a), len(b), tail})
	}
	return found
}

// overlapMiddle looks first whether the one goes on where the other does a little
// later, which a run at a multiple of the grain might hide in text that repeats.
func overlapMiddle(a, b []byte) (found []match) {
	const probe = 2 * grain
	if len(b) >= probe {
		if k := bytes.Index(a, b[:probe]); k >= 0 {
			n := commonBytes(a[k:], b)
			return append([]match{{k, 0, n}}, shifted(overlapRuns(a, b[n:], span{k, k + n}), 0, n)...)
		}
	}
	if len(a) >= probe {
		if k := bytes.Index(b, a[:probe]); k >= 0 {
			n := commonBytes(a, b[k:])
			rest := a[n:]
			found = append(shifted(overlapRuns(rest, b[:k], span{}), n, 0), match{0, k, n})
			return append(found, shifted(overlapRuns(rest, b[k+n:], span{}), n, k+n)...)
		}
	}
	return overlapRuns(a, b, span{})
}

// shifted moves matches of parts to where the parts are.
func shifted(list []match, old, new int) []match {
	for i := range list {
		list[i].old += old
		list[i].new += new
	}
	return list
}

// overlapRuns finds a's runs in b. Those that touch taken are not used; behind it
// b is expected to go on.
func overlapRuns(a, b []byte, taken span) (found []match) {
	if len(a) < grain || len(b) < grain {
		return nil
	}
	x := blockTables.Get().(*blocks)
	defer blockTables.Put(x)
	mask := x.index(a)
	used := make([]bool, len(a)/grain)
	for u := taken.lo / grain; u*grain < taken.hi && u < len(used); u++ {
		used[u] = true
	}
	expected, from := (taken.hi+grain-1)/grain, 0
	for i := 0; i+grain <= len(b); {
		k := x.find(a, b, i, hashRun(b[i:])&mask, expected, used)
		if k < 0 {
			i++
			continue
		}
		lo, at := i, k*grain
		for lo > from && at > 0 && b[lo-1] == a[at-1] && !used[(at-1)/grain] {
			lo, at = lo-1, at-1
		}
		n := i - lo + grain
		n += commonBytes(a[at+n:], b[lo+n:])
		for u := at / grain; u*grain < at+n && u < len(used); u++ {
			used[u] = true
		}
		found = append(found, match{at, lo, n})
		i = lo + n
		from, expected = i, (at+n+grain-1)/grain
	}
	return found
}

// index fills the table with a's runs and gives the mask of its hashes.
func (x *blocks) index(a []byte) uint64 {
	size := 64
	for size < len(a)/grain*2 {
		size *= 2
	}
	x.head = slices.Grow(x.head[:0], size)[:size]
	x.next = slices.Grow(x.next[:0], len(a)/grain)[:len(a)/grain]
	clear(x.head)
	mask := uint64(size - 1)
	for k := len(a)/grain - 1; k >= 0; k-- {
		h := hashRun(a[k*grain:]) & mask
		x.next[k], x.head[h] = x.head[h], int32(k+1)
	}
	return mask
}

// find gives the number of a run of a that b has at i, -1 for none: the first
// from expected on, else any that is not used.
func (x *blocks) find(a, b []byte, i int, h uint64, expected int, used []bool) int {
	best := -1
	for k, n := int(x.head[h])-1, 0; k >= 0 && n < maxChain; k, n = int(x.next[k])-1, n+1 {
		if used[k] || string(a[k*grain:(k+1)*grain]) != string(b[i:i+grain]) {
			continue
		}
		if k >= expected {
			return k
		}
		if best < 0 {
			best = k
		}
	}
	return best
}
