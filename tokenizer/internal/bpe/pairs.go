package bpe

import "math/bits"

// noOrder is the order of pairs that do not merge.
const noOrder = 1<<symbolBits - 1

// pairTable finds the merge of two neighbours: a hash table with linear
// probing, at most 60 % full. Most neighbours do not merge, and the table does
// not fit into a core's cache: so a filter that does says no to nearly all of
// these.
type pairTable struct {
	// A slot is occupied<<63 | left<<42 | right<<21 | order.
	slots []uint64
	shift uint8 // of a hash, to a place in slots

	// filter is a Bloom filter of two bits per pair, both in one word.
	filter      []uint64
	filterShift uint8
}

const occupied = 1 << 63

// newPairTable enters pairs. Of equal ones the first counts, or with last the
// last; repeated says that there are any.
func newPairTable(pairs []pair, last bool) (t pairTable, repeated bool) {
	logSlots := max(4, bits.Len(uint(len(pairs)+2*len(pairs)/3)))
	logWords := max(1, bits.Len(uint(len(pairs)+len(pairs)/2))-4) // 6 to 12 bits a pair
	t = pairTable{
		slots:       make([]uint64, 1<<logSlots),
		shift:       uint8(64 - logSlots),
		filter:      make([]uint64, 1<<logWords),
		filterShift: uint8(64 - logWords),
	}
	for _, p := range pairs {
		if !t.add(p, last) {
			repeated = true
		}
	}
	return t, repeated
}

// golden is 2^64 divided by the golden ratio: it spreads the high bits of the
// product.
const golden = 0x9e3779b97f4a7c15

// pairKey is a slot's content but for the order.
func pairKey(left, right symbol) uint64 {
	return occupied>>symbolBits | uint64(left)<<symbolBits | uint64(right)
}

func filterBits(h uint64) uint64 { return 1<<(h>>20&63) | 1<<(h>>26&63) }

// add enters a pair. It reports false if it is there: then it is replaced or
// kept.
func (t *pairTable) add(p pair, replace bool) bool {
	key := pairKey(p.left, p.right)
	h := key * golden
	for i := h >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) {
		switch {
		case t.slots[i] == 0:
			t.slots[i] = key<<symbolBits | uint64(p.order)
			t.filter[h>>t.filterShift] |= filterBits(h)
			return true
		case t.slots[i]>>symbolBits == key:
			if replace {
				t.slots[i] = key<<symbolBits | uint64(p.order)
			}
			return false
		}
	}
}

// slotPair is the pair in a slot.
func slotPair(slot uint64) pair {
	return pair{
		left:  symbol(slot >> (2 * symbolBits) & noOrder),
		right: symbol(slot >> symbolBits & noOrder),
		order: uint32(slot & noOrder),
	}
}

// find gives the order of the merge of two neighbours, noOrder if there is
// none.
func (t *pairTable) find(left, right symbol) uint32 {
	key := pairKey(left, right)
	if !t.mayHold(key) {
		return noOrder
	}
	return t.probe(key)
}

// mayHold is false for most keys that are not in the table. It and probe are
// small enough to be inlined where merging looks up both new neighbours: the
// waits for their two words of the filter overlap then.
func (t *pairTable) mayHold(key uint64) bool {
	h := key * golden
	mask := filterBits(h)
	return t.filter[h>>t.filterShift]&mask == mask
}

func (t *pairTable) probe(key uint64) uint32 {
	for i := key * golden >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) {
		slot := t.slots[i]
		if slot>>symbolBits == key {
			return uint32(slot) & noOrder
		}
		if slot == 0 {
			return noOrder
		}
	}
}
