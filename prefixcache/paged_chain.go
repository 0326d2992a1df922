package prefixcache

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/unfray/unfray/vocab"
)

// mediaWalk goes along a prompt's media while blocks of tokens pass by. Which
// items count for a block is vLLM's rule (0.32.0, v1/core/kv_cache_utils.py,
// _gen_mm_extra_hash_keys): those whose placeholders touch it.
type mediaWalk struct {
	items []Media
	at    int
}

// next calls yield for every item that counts for the block of the tokens from
// start to end, with the offset of its first placeholder from the block's
// first token, negative where it began before. Blocks come in order.
func (w *mediaWalk) next(start, end int, yield func(hash string, offset int)) {
	if n := len(w.items); n == 0 || w.items[n-1].Offset+w.items[n-1].Length <= start {
		return
	}
	for w.at < len(w.items) {
		m := &w.items[w.at]
		if end <= m.Offset {
			return
		}
		if start >= m.Offset+m.Length {
			w.at++
			continue
		}
		yield(m.Hash, m.Offset-start)
		if end < m.Offset+m.Length {
			return
		}
		w.at++
	}
}

// A pagedChain turns tokens into identities of blocks: XXH3 with 128 bits over the
// identity of the block before, the tokens and the media, with a seed drawn for
// every cache. Two different prefixes among n get one identity with probability
// n²/2^128 (10^7 blocks: 10^-24), where no one picks tokens to break XXH3 and
// knows the seed.
type pagedChain struct {
	buf  []byte
	seed uint64
}

// root is the identity before the first block.
func (c *pagedChain) root(k *Keys) blockID {
	b := binary.LittleEndian.AppendUint64(c.buf[:0], uint64(len(k.LoRA)))
	b = append(b, k.LoRA...)
	b = append(b, k.Salt...)
	c.buf = b
	return c.sum()
}

// block returns the identity of the block of ids that follows parent.
func (c *pagedChain) block(parent blockID, ids []vocab.ID, start int, media *mediaWalk) blockID {
	b := binary.LittleEndian.AppendUint64(c.buf[:0], parent.lo)
	b = binary.LittleEndian.AppendUint64(b, parent.hi)
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	if len(media.items) > 0 {
		media.next(start, start+len(ids), func(hash string, offset int) {
			b = binary.LittleEndian.AppendUint64(b, uint64(offset))
			b = binary.LittleEndian.AppendUint64(b, uint64(len(hash)))
			b = append(b, hash...)
		})
	}
	c.buf = b
	return c.sum()
}

func (c *pagedChain) sum() blockID {
	h := xxh3.Hash128Seed(c.buf, c.seed)
	return blockID{lo: h.Lo, hi: h.Hi | 1<<63}
}
