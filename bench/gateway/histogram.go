//go:build unix

package main

import (
	"math/bits"
	"time"
)

// subBits sets the width of a histogram's buckets: below 1/128 of the values in them.
const subBits = 7

// A histogram counts durations in buckets: exact below 256 ns, from there on with an error below 0.4 %. The zero value is
// empty.
type histogram struct {
	counts [(64 - subBits) << subBits]uint64
	n      uint64
	sum    time.Duration
	max    time.Duration
}

// bucket returns the index of the bucket of d: the position of its highest bit, then the subBits bits that follow it.
func bucket(d time.Duration) int {
	v := uint64(max(0, d))
	shift := max(0, bits.Len64(v)-1-subBits)
	return shift<<subBits + int(v>>shift)
}

// middle returns the middle of a bucket's durations.
func middle(index int) time.Duration {
	shift := max(0, index>>subBits-1)
	low := uint64(index-shift<<subBits) << shift
	return time.Duration(low + (uint64(1)<<shift)/2)
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(d)]++
	h.n++
	h.sum += d
	h.max = max(h.max, d)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
	h.sum += other.sum
	h.max = max(h.max, other.max)
}

// quantile returns the smallest duration that a share q of all are not above, within the width of its bucket. It is 0
// for an empty histogram.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := uint64(q * float64(h.n))
	if float64(rank) < q*float64(h.n) {
		rank++
	}
	rank = max(1, rank)
	for i, n := range h.counts {
		if n >= rank {
			return min(middle(i), h.max)
		}
		rank -= n
	}
	return h.max
}
