package upstream

import (
	"context"
	"hash/maphash"
	"math/bits"
	"sync"
)

const (
	affinityEntries = 1 << 17   // prefixes remembered, about 6 MB when full
	affinityBytes   = 256 << 10 // of a key that are looked at
	firstChunk      = 64        // bytes
)

type keyContext struct{}

// WithKey gives requests under ctx a key, usually the prompt's bytes. Requests
// whose keys share a long prefix go to the endpoint that served it, while it
// is healthy and not overloaded. The first 256 KiB count; keys shorter than 64
// bytes have no effect. The key must not change while a request runs.
func WithKey(ctx context.Context, key []byte) context.Context {
	return context.WithValue(ctx, keyContext{}, key)
}

// affinity remembers which endpoint last served each prefix, for a bounded
// number of prefixes: the least recently used is forgotten first.
type affinity struct {
	seed  maphash.Seed // random: nobody can craft prefixes that collide
	limit int

	mu         sync.Mutex
	index      map[uint64]int32 // prefix → its entry
	entries    []prefixEntry    // grows up to limit, then entries are used again
	head, tail int32            // most and least recently used; -1: none
}

type prefixEntry struct {
	prefix     uint64
	endpoint   int32
	prev, next int32
}

func newAffinity(limit int) *affinity {
	return &affinity{seed: maphash.MakeSeed(), limit: limit, index: map[uint64]int32{}, head: -1, tail: -1}
}

// prefixes appends the hashes of the key's prefixes to dst, shortest first.
// They end where chunks end; each chunk is an eighth of what is before it, at
// least 64 bytes. So a prefix is known to an eighth of its length, by at most
// 61 hashes for a whole key, in one pass over it.
func (a *affinity) prefixes(dst []uint64, key []byte) []uint64 {
	key = key[:min(len(key), affinityBytes)]
	var sum uint64
	for at := 0; ; {
		n := max(firstChunk, at/8)
		if n > len(key)-at {
			return dst
		}
		hi, lo := bits.Mul64(sum^0x9e3779b97f4a7c15, maphash.Bytes(a.seed, key[at:at+n])|1)
		sum = hi ^ lo
		at += n
		dst = append(dst, sum)
	}
}

// find returns the endpoint that served the longest known prefix, -1 if none
// is known.
func (a *affinity) find(prefixes []uint64) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(prefixes) - 1; i >= 0; i-- {
		if at, ok := a.index[prefixes[i]]; ok {
			return int(a.entries[at].endpoint)
		}
	}
	return -1
}

// put remembers the endpoint for every prefix, the shortest as the most
// recently used: what many keys share is forgotten last.
func (a *affinity) put(prefixes []uint64, endpoint int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(prefixes) - 1; i >= 0; i-- {
		at, ok := a.index[prefixes[i]]
		switch {
		case ok:
			a.unlink(at)
		case len(a.entries) < a.limit:
			at = int32(len(a.entries))
			a.entries = append(a.entries, prefixEntry{})
		default:
			at = a.tail
			a.unlink(at)
			delete(a.index, a.entries[at].prefix)
		}
		a.entries[at] = prefixEntry{prefix: prefixes[i], endpoint: int32(endpoint), prev: -1, next: a.head}
		if a.head >= 0 {
			a.entries[a.head].prev = at
		} else {
			a.tail = at
		}
		a.head = at
		a.index[prefixes[i]] = at
	}
}

func (a *affinity) unlink(at int32) {
	e := a.entries[at]
	if e.prev >= 0 {
		a.entries[e.prev].next = e.next
	} else {
		a.head = e.next
	}
	if e.next >= 0 {
		a.entries[e.next].prev = e.prev
	} else {
		a.tail = e.prev
	}
}
