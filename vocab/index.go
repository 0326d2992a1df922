package vocab

import (
	"bytes"
	"cmp"
	"slices"
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
	maxLen int // bytes of the longest text token

	// byOne[b] is where the tokens with first byte b begin.
	byOne [257]uint32
	// byTwo[b<<8|c] is where, among those, the ones of two bytes or more whose
	// second byte is c or above begin. The one-byte tokens stand before all of
	// them, also before those that go on with a zero byte.
	byTwo []uint32
}

// preference orders the kinds of text tokens for Lookup.
func preference(k Kind) int {
	switch k {
	case Normal:
		return 0
	case UserDefined:
		return 1
	}
	return 2
}

func newIndex(v *Vocab) index {
	var x index
	for i := range v.kinds {
		if id := ID(i); v.IsText(id) {
			x.sorted = append(x.sorted, id)
			x.maxLen = max(x.maxLen, len(v.Bytes(id)))
		}
	}
	slices.SortFunc(x.sorted, func(a, b ID) int {
		return cmp.Or(
			bytes.Compare(v.Bytes(a), v.Bytes(b)),
			cmp.Compare(preference(v.kinds[a]), preference(v.kinds[b])),
			cmp.Compare(a, b),
		)
	})

	// The bounds rise, so that one pass over the tokens serves all of them.
	next := 0
	skipTo := func(bound ...byte) uint32 {
		for next < len(x.sorted) && bytes.Compare(v.Bytes(x.sorted[next]), bound) < 0 {
			next++
		}
		return uint32(next)
	}
	x.byTwo = make([]uint32, 1<<16)
	for b := range 256 {
		x.byOne[b] = skipTo(byte(b))
		for c := range 256 {
			x.byTwo[b<<8|c] = skipTo(byte(b), byte(c))
		}
	}
	x.byOne[256] = uint32(len(x.sorted))
	return x
}

// MaxLen is the number of bytes of the longest text token.
func (v *Vocab) MaxLen() int { return v.index.maxLen }

// Sorted lists the tokens of a range in byte order. Those with the same bytes
// are all there. It must not be modified.
func (v *Vocab) Sorted(r Range) []ID { return v.index.sorted[r.Lo:r.Hi:r.Hi] }

// PrefixRange finds all text tokens that begin with prefix, tokens that are
// the prefix itself included. The empty prefix gives all text tokens.
func (v *Vocab) PrefixRange(prefix []byte) Range {
	x := &v.index
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
	if len(prefix) == 2 {
		return r
	}
	// All tokens of r share the first two bytes.
	rest := prefix[2:]
	lo, hi := r.Lo, r.Hi
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(v.Bytes(x.sorted[mid])[2:], rest) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	first, last := lo, r.Hi
	for lo, hi = first, last; lo < hi; {
		mid := int(uint(lo+hi) >> 1)
		if bytes.HasPrefix(v.Bytes(x.sorted[mid])[2:], rest) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return Range{first, lo}
}

// Lookup finds the text token with exactly these bytes. If there are several,
// a Normal one is preferred to UserDefined and that to Byte, then the lowest
// ID. No token has no bytes.
func (v *Vocab) Lookup(b []byte) (ID, bool) {
	if len(b) == 0 || len(b) > v.index.maxLen {
		return None, false
	}
	// A token sorts before all others that it is a prefix of.
	r := v.PrefixRange(b)
	if r.Len() == 0 {
		return None, false
	}
	if id := v.index.sorted[r.Lo]; len(v.Bytes(id)) == len(b) {
		return id, true
	}
	return None, false
}

// AppendPrefixes appends every text token whose bytes are a prefix of text,
// text itself included, the shortest first. Tokens with the same bytes are all
// there.
func (v *Vocab) AppendPrefixes(dst []ID, text []byte) []ID {
	x := &v.index
	if len(text) == 0 {
		return dst
	}
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
		r = v.narrow(r, n, text[n])
	}
}

// narrow keeps of r, whose tokens all have the same first n bytes and more,
// those whose next byte is b.
func (v *Vocab) narrow(r Range, n int, b byte) Range {
	x := &v.index
	lo, hi := r.Lo, r.Hi
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if v.Bytes(x.sorted[mid])[n] < b {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	first := lo
	for hi = r.Hi; lo < hi; {
		mid := int(uint(lo+hi) >> 1)
		if v.Bytes(x.sorted[mid])[n] == b {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return Range{first, lo}
}
