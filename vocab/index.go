package vocab

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// Range is a run of text tokens in byte order, Hi excluded. Ranges are made by
// [Vocab.PrefixRange] and read by [Vocab.Sorted].
type Range struct{ Lo, Hi int }

// Len is the number of tokens in the range.
func (r Range) Len() int { return r.Hi - r.Lo }

// index holds the text tokens in byte order. Tokens with the same bytes stand
// side by side, the one that Lookup prefers first.
type index struct {
	sorted []ID
	// keys has the bytes three to ten of each token in sorted as a number, the
	// first one highest. Bytes that a token lacks are zero.
	keys []uint64

	// byOne[b] is where the tokens with first byte b begin.
	byOne [257]uint32
	// byTwo[b<<8|c] is where, among those, the ones of two bytes or more whose
	// second byte is c or above begin. The one-byte tokens stand before all of
	// them, also before those that go on with a zero byte.
	byTwo [1 << 16]uint32
}

// head is the number of bytes that the tables serve, before the keys.
const head = 2

// lazyIndex is an index made by the first that asks for it.
type lazyIndex struct {
	made atomic.Pointer[index]
	once sync.Once
}

func (v *Vocab) sortedIndex() *index {
	if x := v.index.made.Load(); x != nil {
		return x
	}
	v.index.once.Do(func() { v.index.made.Store(newIndex(v)) })
	return v.index.made.Load()
}

func newIndex(v *Vocab) *index {
	n := 0
	for i := range v.kinds {
		if v.IsText(ID(i)) {
			n++
		}
	}
	items := make([]sortItem, 0, n)
	for i := range v.kinds {
		if id := ID(i); v.IsText(id) {
			b := v.Bytes(id)
			items = append(items, sortItem{bigEndian(b, 0), id, uint32(len(b))})
		}
	}
	v.sortTokens(items)

	x := &index{sorted: make([]ID, n), keys: make([]uint64, n)}
	one, two := 0, 0 // the entries of byOne and byTwo that are filled
	for i, it := range items {
		x.sorted[i] = it.id
		pair := int(it.key >> 48)
		for ; one <= pair>>8; one++ {
			x.byOne[one] = uint32(i)
		}
		if it.size < head {
			// What begins with a smaller byte comes before this token.
			for ; two < pair; two++ {
				x.byTwo[two] = uint32(i)
			}
			continue
		}
		// The bytes are read only where the key lacks some: they are scattered.
		if x.keys[i] = it.key << (8 * head); it.size > 8 {
			x.keys[i] = bigEndian(v.Bytes(it.id)[head:], 0)
		}
		for ; two <= pair; two++ {
			x.byTwo[two] = uint32(i)
		}
	}
	for ; one < len(x.byOne); one++ {
		x.byOne[one] = uint32(n)
	}
	for ; two < len(x.byTwo); two++ {
		x.byTwo[two] = uint32(n)
	}
	return x
}

// bigEndian gives the first eight bytes of b as a number, the first byte
// highest. Bytes that b lacks are those of pad.
func bigEndian(b []byte, pad uint64) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	key := uint64(0)
	for _, c := range b {
		key = key<<8 | uint64(c)
	}
	missing := 64 - 8*len(b)
	return key<<missing | pad&(1<<missing-1)
}

// Sorted lists the tokens of a range in byte order. Those with the same bytes
// are all there. It must not be modified.
func (v *Vocab) Sorted(r Range) []ID { return v.sortedIndex().sorted[r.Lo:r.Hi:r.Hi] }

// PrefixRange finds all text tokens that begin with prefix, tokens that are
// the prefix itself included. The empty prefix gives all text tokens.
func (v *Vocab) PrefixRange(prefix []byte) Range {
	x := v.sortedIndex()
	switch len(prefix) {
	case 0:
		return Range{0, len(x.sorted)}
	case 1:
		return Range{int(x.byOne[prefix[0]]), int(x.byOne[int(prefix[0])+1])}
	}
	pair := int(prefix[0])<<8 | int(prefix[1])
	r := Range{int(x.byTwo[pair]), int(x.byOne[int(prefix[0])+1])}
	if prefix[1] < 0xff {
		r.Hi = int(x.byTwo[pair+1])
	}
	if len(prefix) == head || r.Lo == r.Hi {
		return r
	}
	rest := prefix[head:]
	r = x.narrow(r, rest[:min(len(rest), 8)])
	// A key does not say where a token ends and zero bytes begin, nor what
	// comes after its eight bytes.
	if r.Lo < r.Hi && (len(rest) > 8 || rest[len(rest)-1] == 0) {
		return v.search(x, r, prefix)
	}
	return r
}

// lowerBound gives the number of keys below key. The loop has no branch that
// depends on a key.
func lowerBound(keys []uint64, key uint64) int {
	base, n := 0, len(keys)
	for n > 0 {
		half := (n + 1) >> 1
		if keys[base+half-1] < key {
			base += half
		}
		n -= half
	}
	return base
}

// upTo gives the number of keys not above last. It looks nearby first: most
// prefixes have few tokens.
func upTo(keys []uint64, last uint64) int {
	n, step := 0, 4
	for n+step <= len(keys) && keys[n+step-1] <= last {
		n += step
		step *= 2
	}
	keys = keys[n:min(n+step, len(keys))]
	if last == ^uint64(0) {
		return n + len(keys)
	}
	return n + lowerBound(keys, last+1)
}

// search narrows a range that holds all tokens which begin with prefix down to
// them. All its tokens have two bytes or more.
func (v *Vocab) search(x *index, r Range, prefix []byte) Range {
	lo, hi := r.Lo, r.Hi
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(v.Bytes(x.sorted[mid]), prefix) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	first := lo
	for hi = r.Hi; lo < hi; {
		mid := int(uint(lo+hi) >> 1)
		if bytes.HasPrefix(v.Bytes(x.sorted[mid]), prefix) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return Range{first, lo}
}

// AppendPrefixes appends every text token whose bytes are a prefix of text,
// text itself included, the shortest first. Tokens with the same bytes are all
// there.
func (v *Vocab) AppendPrefixes(dst []ID, text []byte) []ID {
	if len(text) == 0 {
		return dst
	}
	x := v.sortedIndex()
	// r holds the tokens that begin with text[:n], those that are text[:n]
	// first.
	r := v.PrefixRange(text[:1])
	for n := 1; ; n++ {
		for r.Lo < r.Hi && len(v.Bytes(x.sorted[r.Lo])) == n {
			dst = append(dst, x.sorted[r.Lo])
			r.Lo++
		}
		if r.Lo == r.Hi || n == len(text) {
			return dst
		}
		switch {
		case n < head:
			// All tokens of two bytes or more: the tables have them.
			r = v.PrefixRange(text[:head])
		case n < head+8:
			r = x.narrow(r, text[head:n+1])
		default:
			r = v.search(x, r, text[:n+1])
		}
	}
}

// narrow keeps of r, whose tokens all have the same first two bytes, those that
// go on with rest, at most eight bytes. Where rest ends with zero bytes there
// may be shorter tokens too, in front.
func (x *index) narrow(r Range, rest []byte) Range {
	r.Lo += lowerBound(x.keys[r.Lo:r.Hi], bigEndian(rest, 0))
	r.Hi = r.Lo + upTo(x.keys[r.Lo:r.Hi], bigEndian(rest, ^uint64(0)))
	return r
}
