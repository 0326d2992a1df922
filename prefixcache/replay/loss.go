package replay

import (
	"encoding/binary"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// An account knows every prompt and output so far, as tokens and as bytes.
type account struct {
	vocab  *vocab.Vocab // nil: no bytes
	tokens *tree[vocab.ID]
	text   *tree[byte]
	roots  map[string]root
	media  map[string]vocab.ID // of each item's first placeholder; that of the others is one less
	blocks *index
	names  int64 // bytes of the maps' keys

	// Of the sequence that was read last.
	key    []byte // of roots
	seq    []vocab.ID
	decode []byte
	ends   []int // of its tokens in decode
}

// A root is where the sequences of equal keys begin in both trees.
type root struct{ tokens, text uint32 }

func newAccount(v *vocab.Vocab) *account {
	return &account{vocab: v, tokens: newTree[vocab.ID](), text: newTree[byte](), roots: map[string]root{}, media: map[string]vocab.ID{}, blocks: newIndex()}
}

// add enters a prompt, or a prompt with its output. It gives how many tokens at
// its start it shares with one sequence entered before, and how many lie inside
// the bytes that it shares with one: at least as many.
func (a *account) add(keys *prefixcache.Keys, prompt, output []vocab.ID) (tokens, inside int) {
	a.read(keys, prompt, output)
	r, ok := a.roots[string(a.key)]
	if !ok {
		r = root{a.tokens.newRoot(), a.text.newRoot()}
		a.roots[string(a.key)] = r
		a.names += int64(len(a.key))
	}
	tokens = a.tokens.insert(r.tokens, a.seq)
	if a.vocab == nil {
		return tokens, tokens
	}
	return tokens, a.inside(tokens, a.text.insert(r.text, a.decode))
}

// find gives what add would, and enters nothing.
func (a *account) find(keys *prefixcache.Keys, prompt, output []vocab.ID) (tokens, inside int) {
	a.read(keys, prompt, output)
	r, ok := a.roots[string(a.key)]
	if !ok {
		return 0, 0
	}
	tokens = a.tokens.match(r.tokens, a.seq)
	if a.vocab == nil {
		return tokens, tokens
	}
	return tokens, a.inside(tokens, a.text.match(r.text, a.decode))
}

// bytes is about the memory that the account holds, in bytes.
func (a *account) bytes() int64 {
	const entry = 64 // of a map
	return a.tokens.bytes() + a.text.bytes() + int64(cap(a.blocks.keys))*8 + int64(len(a.blocks.table))*4 +
		int64(len(a.roots)+len(a.media))*entry + a.names
}

// inside is how many tokens of the sequence that was read end within its first n
// bytes; those given do. One without bytes counts only between others.
func (a *account) inside(tokens, n int) int {
	end := 0
	if tokens > 0 {
		end = a.ends[tokens-1]
	}
	for i := tokens; i < len(a.ends) && a.ends[i] <= n; i++ {
		if a.ends[i] > end {
			tokens, end = i+1, a.ends[i]
		}
	}
	return tokens
}

// read prepares a sequence, as tokens and as bytes, and the name of its keys:
// sequences are shared under equal ones.
func (a *account) read(keys *prefixcache.Keys, prompt, output []vocab.ID) {
	a.key = a.key[:0]
	for _, s := range []string{keys.Salt, keys.LoRA, keys.Extra} {
		a.key = append(binary.AppendUvarint(a.key, uint64(len(s))), s...)
	}
	a.seq = append(append(a.seq[:0], prompt...), output...)
	for _, m := range keys.Media {
		id, ok := a.media[m.Hash]
		if !ok {
			id = -vocab.ID(2*len(a.media)) - 1 // no token's
			a.media[m.Hash] = id
			a.names += int64(len(m.Hash))
		}
		for i := max(m.Offset, 0); i < min(m.Offset+m.Length, len(prompt)); i++ {
			if a.seq[i] = id; i > m.Offset {
				a.seq[i]--
			}
		}
	}
	a.decode, a.ends = a.decode[:0], a.ends[:0]
	if a.vocab == nil {
		return
	}
	for _, id := range a.seq {
		if a.vocab.Valid(id) {
			a.decode = append(a.decode, a.vocab.Bytes(id)...)
		} else {
			// No text of tokens is equal to this, but for the same item's.
			a.decode = binary.BigEndian.AppendUint32(append(a.decode, 0xff), uint32(id))
		}
		a.ends = append(a.ends, len(a.decode))
	}
}

// addBlocks enters a prompt of block identities, and gives how many of its
// tokens lie in blocks seen before.
func (a *account) addBlocks(blocks []uint64, blockTokens, tokens int) int {
	seen := len(blocks)
	for i, b := range blocks {
		if _, isNew := a.blocks.add(b); isNew {
			seen = min(seen, i)
		}
	}
	return min(seen*blockTokens, tokens)
}

// lossOf divides a prompt of n tokens by the counts that Loss names, in its order.
// A cache that gives more than a later count leaves nothing to lose between them.
func lossOf(hit, worker, all, tokens, inside, n int) Loss {
	worker = max(worker, hit)
	all = max(all, worker)
	tokens = max(tokens, all)
	inside = max(inside, tokens)
	return Loss{
		Hit: int64(hit), Capacity: int64(worker - hit), Routing: int64(all - worker),
		Rounding: int64(tokens - all), Boundary: int64(inside - tokens), Content: int64(n - inside),
	}
}

// add sums losses.
func (l *Loss) add(o Loss) {
	l.Hit += o.Hit
	l.Capacity += o.Capacity
	l.Routing += o.Routing
	l.Rounding += o.Rounding
	l.Boundary += o.Boundary
	l.Content += o.Content
}
