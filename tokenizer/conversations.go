package tokenizer

import (
	"bytes"
	"container/list"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/unfray/unfray/vocab"
)

// Conversations encodes texts that begin as earlier ones did, such as the
// prompts of a conversation, at the cost of what is new in them. It remembers
// the texts of least recent use up to a number of bytes. The tokens are those
// of [Tokenizer.Encode]: it goes on from a place that the new text is proved
// not to reach.
//
// A Conversations may be shared by goroutines.
type Conversations struct {
	t       *Tokenizer
	special bool
	seed    maphash.Seed
	max     int

	mu     sync.Mutex
	size   int                      // bytes of all entries
	recent *list.List               // of *remembered, the latest first
	blocks map[uint64]*list.Element // by the hash of what a text begins with, up to a mark
}

// remembered is an encoded text. It does not change.
type remembered struct {
	text   []byte
	ids    []vocab.ID
	marks  []mark
	hashes []uint64 // of text[:n*markEvery], n from 1
}

// cost is an entry's memory in bytes, about.
func (r *remembered) cost() int {
	return len(r.text) + 4*len(r.ids) + 32*len(r.marks) + 64*len(r.hashes)
}

// NewConversations makes an empty memory of at most about maxBytes. With special
// it encodes as [Tokenizer.EncodeSpecial] does.
func (t *Tokenizer) NewConversations(maxBytes int, special bool) *Conversations {
	return &Conversations{
		t: t, special: special, seed: maphash.MakeSeed(), max: maxBytes,
		recent: list.New(), blocks: map[uint64]*list.Element{},
	}
}

// Encode appends the tokens of text and remembers it.
func (c *Conversations) Encode(dst []vocab.ID, text []byte) []vocab.ID {
	hashes := c.hashes(text)
	x := c.t.NewText(c.special)
	if known := c.find(hashes); known != nil {
		x.resume(known, text)
	}
	x.Append(text[len(x.text):])
	dst = append(dst, x.IDs()...)
	c.remember(&remembered{x.text, x.ids, x.marks, hashes})
	return dst
}

// hashes gives the hash of each whole number of blocks that text begins with.
func (c *Conversations) hashes(text []byte) []uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	var all []uint64
	for len(text) >= markEvery {
		h.Write(text[:markEvery])
		all = append(all, h.Sum64())
		text = text[markEvery:]
	}
	return all
}

// find gives the text that has most blocks in common with one of these hashes.
func (c *Conversations) find(hashes []uint64) *remembered {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range slices.Backward(hashes) {
		if e, ok := c.blocks[h]; ok {
			c.recent.MoveToFront(e)
			return e.Value.(*remembered)
		}
	}
	return nil
}

// resume makes x what it has in common with a known text.
func (x *Text) resume(known *remembered, text []byte) {
	n := 0
	for n+markEvery <= min(len(text), len(known.text)) && bytes.Equal(text[n:n+markEvery], known.text[n:n+markEvery]) {
		n += markEvery
	}
	n += commonBytes(text[n:], known.text[n:])
	x.marks = append(x.marks[:0], known.marks...)
	x.ids = append(x.ids[:0], known.ids...)
	x.text = append(x.text[:0], text[:n]...)
	x.Truncate(n)
}

// remember keeps r and drops what it goes on from, then what was used least
// recently.
func (c *Conversations) remember(r *remembered) {
	if len(r.hashes) == 0 || r.cost() > c.max {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.blocks[r.hashes[len(r.hashes)-1]]; ok && bytes.HasPrefix(e.Value.(*remembered).text, r.text) {
		return
	}
	for _, h := range slices.Backward(r.hashes) {
		if e, ok := c.blocks[h]; ok {
			if bytes.HasPrefix(r.text, e.Value.(*remembered).text) {
				c.drop(e)
			}
			break
		}
	}
	e := c.recent.PushFront(r)
	c.size += r.cost()
	for _, h := range r.hashes {
		c.blocks[h] = e
	}
	for c.size > c.max {
		c.drop(c.recent.Back())
	}
}

// drop forgets an entry.
func (c *Conversations) drop(e *list.Element) {
	r := c.recent.Remove(e).(*remembered)
	c.size -= r.cost()
	for _, h := range r.hashes {
		if c.blocks[h] == e {
			delete(c.blocks, h)
		}
	}
}
