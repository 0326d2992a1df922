package prefixcache

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/unfray/unfray/vocab"
)

// A PageHasher computes the hashes by which SGLang names pages in its KV events:
// a chain of SHA-256 over the hash of the page before and the page's tokens.
// Unlike vLLM's, it starts from nothing that an engine draws. It is safe for use
// by several goroutines while LoRAIDs does not change. Source: SGLang 0.5.23,
// mem_cache/utils.py, compute_node_event_hash_values; mem_cache/events.py,
// KVCacheEventRecorder; cpp_utils/hash_binding.cpp.
type PageHasher struct {
	// LoRAIDs are the ids that the engine drew for its adapters, by name.
	LoRAIDs map[string]string
	// Bigrams is set for EAGLE's speculative decoding; see [RadixOptions].
	Bigrams bool
}

// AppendHashes appends to dst the hashes of the whole pages of ids, of pageSize
// tokens, one after the other, each of 32 bytes. Only the salt of k goes into
// them. It fails for a prompt with [Keys.Media], whose tokens SGLang replaces.
func (h *PageHasher) AppendHashes(dst []byte, ids []vocab.ID, pageSize int, k Keys) ([]byte, error) {
	if pageSize < 1 {
		return dst, fmt.Errorf("prefixcache: pages of %d tokens; the page size must be the engine's", pageSize)
	}
	if len(k.Media) > 0 {
		return dst, fmt.Errorf("prefixcache: SGLang hashes what it puts in the place of %d items, which cannot be told from outside; take a prompt of text only", len(k.Media))
	}
	var parent []byte
	if k.Salt != "" {
		seed := sha256.Sum256([]byte("sglang-cache-salt-v1\x00" + k.Salt))
		parent = seed[:]
	}
	more := 0
	if h.Bigrams {
		more = 1
	}
	var buf []byte
	for ; len(ids) >= pageSize+more; ids = ids[pageSize:] {
		buf = append(buf[:0], parent...)
		for i, id := range ids[:pageSize] {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
			if h.Bigrams {
				buf = binary.LittleEndian.AppendUint32(buf, uint32(ids[i+1]))
			}
		}
		sum := sha256.Sum256(buf)
		dst = append(dst, sum[:]...)
		parent = dst[len(dst)-sha256.Size:]
	}
	return dst, nil
}

// EventHash is the number that stands in KV events for the page of that hash. It
// fails if k names an adapter that LoRAIDs does not have.
func (h *PageHasher) EventHash(hash []byte, k Keys) (int64, error) {
	n := int64(binary.BigEndian.Uint64(hash))
	if k.LoRA == "" {
		return n, nil
	}
	id, ok := h.LoRAIDs[k.LoRA]
	if !ok {
		return 0, fmt.Errorf("prefixcache: no id of adapter %q: put the engine's lora_id of it into LoRAIDs", k.LoRA)
	}
	// kv_event_namespace_seed and namespaced_block_hash (disaggregation/kv_events.py).
	extra := k.Extra + id
	seed := append([]byte("sglang-kv-event-namespace-v1"), 1)
	seed = binary.LittleEndian.AppendUint64(seed, uint64(len(extra)))
	seed = append(append(seed, extra...), 0)
	space := sha256.Sum256(seed)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(space[:], uint64(n)))
	return int64(binary.BigEndian.Uint64(sum[:])), nil
}
