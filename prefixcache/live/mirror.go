package live

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// Mirror keeps which blocks an engine says are cached, and finds prompts among
// them. It does not compute the engine's hashes, which are not reproducible where
// vLLM hashes with pickle or with a random seed: it chains the tokens that the
// events carry by a hash of its own of 128 bits, and follows the engine's names
// from block to block. The hash has a seed of the mirror's own: two of n different
// blocks share one with a probability below n²/2¹²⁹, whoever picks the tokens.
//
// Of several groups of layers the first is followed. A Mirror is not safe for use
// by several goroutines.
type Mirror struct {
	max    int
	seed   uint64
	names  map[Hash]chain
	blocks map[chain]int32 // names of the block, as one that is stored again may have two
	tokens int             // of a block; 0: none was seen

	counts Counts
}

// Counts says what a mirror has seen.
type Counts struct {
	Blocks  int    `json:"blocks"`  // cached now
	Stored  uint64 `json:"stored"`  // blocks that were not known before
	Removed uint64 `json:"removed"` // blocks that were known
	Cleared uint64 `json:"cleared"` // times that all was thrown away
	// Orphans are blocks stored behind one that is not known, because events are
	// missing: nothing finds them.
	Orphans uint64 `json:"orphans"`
	Missed  uint64 `json:"missed"` // batches that did not arrive
	// Dropped are blocks that the mirror had no room for.
	Dropped uint64 `json:"dropped"`
}

// chain stands for a block with all that is before it.
type chain = xxh3.Uint128

// DefaultMaxBlocks is how many blocks a mirror holds where nothing else is said:
// 67 million tokens in blocks of 16.
const DefaultMaxBlocks = 1 << 22

// NewMirror returns an empty mirror of at most maxBlocks blocks; 0:
// [DefaultMaxBlocks].
func NewMirror(maxBlocks int) *Mirror {
	if maxBlocks <= 0 {
		maxBlocks = DefaultMaxBlocks
	}
	m := &Mirror{max: maxBlocks, seed: rand.Uint64()}
	m.clear()
	return m
}

func (m *Mirror) clear() {
	m.names, m.blocks = map[Hash]chain{}, map[chain]int32{}
}

// Counts says what the mirror has seen.
func (m *Mirror) Counts() Counts {
	c := m.counts
	c.Blocks = len(m.names)
	return c
}

// BlockTokens is the size of a block; 0 before one was stored.
func (m *Mirror) BlockTokens() int { return m.tokens }

// Apply takes an update of a subscription.
func (m *Mirror) Apply(u Update) {
	if u.Restarted {
		m.clear()
		m.counts.Cleared++
	}
	m.counts.Missed += u.Missed
	if u.Batch == nil {
		return
	}
	for i := range u.Events {
		m.apply(&u.Events[i])
	}
}

func (m *Mirror) apply(e *Event) {
	switch {
	case e.Kind == Cleared:
		m.clear()
		m.counts.Cleared++
	case e.Group != 0 || e.Medium != "" && !strings.EqualFold(e.Medium, "GPU"):
		// Other layers, or a copy outside the cache.
	case e.Kind == Removed:
		for _, h := range e.Hashes {
			m.remove(h)
		}
	case e.Kind == Stored:
		m.store(e)
	}
}

func (m *Mirror) store(e *Event) {
	var parent chain
	if e.Parent != "" {
		p, ok := m.names[e.Parent]
		if !ok {
			m.counts.Orphans += uint64(len(e.Hashes))
			return
		}
		parent = p
	}
	m.tokens = e.BlockTokens
	var buf []byte
	for i, h := range e.Hashes {
		extra := ""
		if e.Extra != nil {
			extra = e.Extra[i]
		} else if start := i * e.BlockTokens; e.Parent == "" {
			extra = extraOf(prefixcache.Keys{LoRA: e.LoRA, Salt: e.Salt}, start, start+e.BlockTokens)
		} else {
			extra = e.LoRA
		}
		parent, buf = m.link(buf, parent, extra, e.Tokens[i*e.BlockTokens:(i+1)*e.BlockTokens])
		if _, known := m.names[h]; known {
			continue
		}
		if len(m.names) >= m.max {
			m.counts.Dropped += uint64(len(e.Hashes) - i)
			return
		}
		m.names[h] = parent
		m.blocks[parent]++
		m.counts.Stored++
	}
}

func (m *Mirror) remove(h Hash) {
	c, ok := m.names[h]
	if !ok {
		return
	}
	delete(m.names, h)
	if m.blocks[c]--; m.blocks[c] == 0 {
		delete(m.blocks, c)
	}
	m.counts.Removed++
}

// link hashes a block behind another.
func (m *Mirror) link(buf []byte, parent chain, extra string, tokens []vocab.ID) (chain, []byte) {
	buf = binary.LittleEndian.AppendUint64(buf[:0], parent.Hi)
	buf = binary.LittleEndian.AppendUint64(buf, parent.Lo)
	for _, id := range tokens {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
	}
	return xxh3.Hash128Seed(append(buf, extra...), m.seed), buf
}

// Cached is how many of a prompt's tokens the engine would find: whole blocks
// from the first one on, at least one token left to compute. Events do not tell
// SGLang's extra_key: of a prompt with one nothing is known, and 0 is returned.
func (m *Mirror) Cached(prompt []vocab.ID, keys prefixcache.Keys) int {
	if m.tokens == 0 || len(prompt) == 0 || keys.Extra != "" {
		return 0
	}
	var parent chain
	var buf []byte
	cached := 0
	for cached+m.tokens < len(prompt) {
		extra := extraOf(keys, cached, cached+m.tokens)
		parent, buf = m.link(buf, parent, extra, prompt[cached:cached+m.tokens])
		if m.blocks[parent] == 0 {
			break
		}
		cached += m.tokens
	}
	return cached
}

// extraOf is what events name beside the tokens from start to end, in vLLM's
// order: adapter, items, salt.
func extraOf(k prefixcache.Keys, start, end int) string {
	var parts []string
	if k.LoRA != "" {
		parts = append(parts, k.LoRA)
	}
	for _, item := range k.Media {
		if item.Offset < end && item.Offset+item.Length > start {
			parts = append(parts, item.Hash+"@"+strconv.Itoa(item.Offset-start))
		}
	}
	if k.Salt != "" && start == 0 {
		parts = append(parts, k.Salt)
	}
	return joinExtra(parts)
}
