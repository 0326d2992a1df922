package prefixcache

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/unfray/unfray/vocab"
)

// DefaultHashSeed is what vLLM 0.32.0 starts its chains of sha256 and
// sha256_cbor hashes from where PYTHONHASHSEED is not set
// (v1/core/kv_cache_utils.py, DEFAULT_NONE_HASH_SEED). Earlier versions, and
// xxhash_cbor in all versions, draw one at every start.
const DefaultHashSeed = "vllm-none-hash"

// A BlockHasher computes the hashes by which vLLM 0.32.0 names blocks
// (v1/core/kv_cache_utils.py, hash_block_tokens and
// generate_block_hash_extra_keys; utils/hashing.py): in its KV events, and
// between engines that share a cache. It is safe for use by several goroutines
// while LoRAPaths does not change.
type BlockHasher struct {
	// LoRAPaths are the paths of the adapters as the engine knows them
	// (--lora-modules name=path), by name: vLLM hashes the path, too.
	LoRAPaths map[string]string

	sum  func(dst, data []byte) []byte
	root []byte // NONE_HASH, the parent of first blocks
}

// NewBlockHasher returns a hasher for the engine's --prefix-caching-hash-algo,
// which must be sha256_cbor or xxhash_cbor, and the PYTHONHASHSEED it was
// started with; see [DefaultHashSeed].
func NewBlockHasher(algorithm, seed string) (*BlockHasher, error) {
	h := &BlockHasher{}
	switch algorithm {
	case "sha256_cbor":
		h.sum = func(dst, data []byte) []byte {
			d := sha256.Sum256(data)
			return append(dst, d[:]...)
		}
	case "xxhash_cbor":
		h.sum = func(dst, data []byte) []byte {
			d := xxh3.Hash128(data).Bytes()
			return append(dst, d[:]...)
		}
	case "sha256", "xxhash":
		return nil, fmt.Errorf("prefixcache: vLLM's %s hashes blocks as Python pickles them, "+
			"which nothing but that version of Python repeats; "+
			"start the engine with --prefix-caching-hash-algo %[1]s_cbor and with PYTHONHASHSEED set", algorithm)
	default:
		return nil, fmt.Errorf("prefixcache: %q is no hash algorithm of vLLM's; "+
			"sha256_cbor and xxhash_cbor can be computed", algorithm)
	}
	h.root = h.sum(nil, cborText(nil, seed))
	return h, nil
}

// Size is the length of a hash in bytes.
func (h *BlockHasher) Size() int { return len(h.root) }

// AppendHashes appends to dst the hashes of the full blocks of ids, of
// blockSize tokens, one after the other, each of [BlockHasher.Size] bytes.
// blockSize is that of the engine; where groups of layers have several, their
// greatest common divisor (its hash_block_size). It fails if k names an adapter
// of which LoRAPaths knows no path.
func (h *BlockHasher) AppendHashes(dst []byte, ids []vocab.ID, blockSize int, k Keys) ([]byte, error) {
	if blockSize < 1 {
		return dst, fmt.Errorf("prefixcache: blocks of %d tokens; the block size must be the engine's", blockSize)
	}
	extra := extraKeys{lora: k.LoRA, salt: k.Salt, media: mediaWalk{items: k.Media}}
	if k.LoRA != "" {
		path, ok := h.LoRAPaths[k.LoRA]
		if !ok {
			return dst, fmt.Errorf("prefixcache: no path of the adapter %q is known, which vLLM hashes with its name; "+
				"put it into BlockHasher.LoRAPaths", k.LoRA)
		}
		extra.path = path
	}
	parent := h.root
	var buf []byte
	for start := 0; start+blockSize <= len(ids); start += blockSize {
		buf = append(buf[:0], cborArray|3)
		buf = append(cborHead(buf, cborBytes, uint64(len(parent))), parent...)
		buf = cborHead(buf, cborArray, uint64(blockSize))
		for _, id := range ids[start : start+blockSize] {
			if id < 0 {
				buf = cborHead(buf, cborNegative, uint64(-1-int64(id)))
			} else {
				buf = cborHead(buf, cborUint, uint64(id))
			}
		}
		buf = extra.appendTo(buf, start, start+blockSize)
		dst = h.sum(dst, buf)
		parent = dst[len(dst)-h.Size():]
	}
	return dst, nil
}

// BlockKeys returns what vLLM's KV events call the full blocks of ids; see
// [BlockHasher.AppendHashes] and [EventHash].
func (h *BlockHasher) BlockKeys(ids []vocab.ID, blockSize int, k Keys) ([]uint64, error) {
	hashes, err := h.AppendHashes(nil, ids, blockSize, k)
	if err != nil {
		return nil, err
	}
	keys := make([]uint64, 0, len(hashes)/h.Size())
	for ; len(hashes) > 0; hashes = hashes[h.Size():] {
		keys = append(keys, EventHash(hashes[:h.Size()]))
	}
	return keys, nil
}

// EventHash is a block's hash as vLLM's KV events carry it: its last eight
// bytes, unless VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES is 0 (then all of it).
func EventHash(hash []byte) uint64 { return binary.BigEndian.Uint64(hash[len(hash)-8:]) }

// extraKeys are what a block's hash covers beside tokens.
type extraKeys struct {
	lora, path, salt string
	media            mediaWalk
}

// appendTo appends the keys of the block of the tokens from start to end, an
// array, or null if there are none: the adapter, the media that touch the
// block, and in a prompt's first block the salt.
func (e *extraKeys) appendTo(buf []byte, start, end int) []byte {
	at := len(buf)
	buf = append(buf, cborNull)
	n := 0
	if e.lora != "" {
		buf = append(buf, cborArray|3)
		buf = cborText(cborText(cborText(buf, "lora"), e.lora), e.path)
		n++
	}
	e.media.next(start, end, func(hash string, offset int) {
		buf = append(buf, cborArray|3)
		buf = cborText(cborText(buf, "mm"), hash)
		if offset < 0 {
			buf = cborHead(buf, cborNegative, uint64(-1-offset))
		} else {
			buf = cborHead(buf, cborUint, uint64(offset))
		}
		n++
	})
	if start == 0 && e.salt != "" {
		buf = append(buf, cborArray|2)
		buf = cborText(cborText(buf, "cache_salt"), e.salt)
		n++
	}
	switch {
	case n == 0:
	case n < 24:
		buf[at] = cborArray | byte(n)
	default:
		// A head of several bytes; so many media in one block are rare.
		items := append([]byte(nil), buf[at+1:]...)
		buf = append(cborHead(buf[:at], cborArray, uint64(n)), items...)
	}
	return buf
}

// CBOR (RFC 8949) in its canonical form: major types, and null.
const (
	cborUint     = 0 << 5
	cborNegative = 1 << 5
	cborBytes    = 2 << 5
	cborString   = 3 << 5
	cborArray    = 4 << 5
	cborNull     = 0xf6
)

// cborHead appends the first bytes of an item, in the shortest form.
func cborHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n < 1<<8:
		return append(dst, major|24, byte(n))
	case n < 1<<16:
		return append(dst, major|25, byte(n>>8), byte(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, major|27), n)
	}
}

func cborText(dst []byte, s string) []byte {
	return append(cborHead(dst, cborString, uint64(len(s))), s...)
}
