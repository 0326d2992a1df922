package grammar

import (
	"runtime"
	"sync"
	"weak"

	"github.com/unfray/unfray/vocab"
)

const (
	maxMaskSteps = 1 << 22 // to compute the states of one mask
	maxMaskWords = 4 << 20 // of masks that a machine keeps
)

// A keptMask is the mask of a state for one vocabulary.
type keptMask struct {
	of   *vocab.Vocab
	mask vocab.Mask
}

// Mask makes m, made by vocab.NewMask(v.Len()), the set of all tokens that can
// come next: text tokens after whose bytes the state is not dead, and v's
// tokens that end a generation if the state is accepting. A token that ends a
// generation is never taken as text.
//
// It walks the tokens in byte order, shared beginnings once, so that its cost
// follows the tokens that can come. Masks are kept, within bounds; one that is
// costs a copy.
//
// The error is [ErrTooComplex]; m is then empty.
func (s State) Mask(v *vocab.Vocab, m vocab.Mask) error {
	if s.Dead() {
		clear(m)
		return s.Err()
	}
	if s.prefix == "" {
		if k := s.at.mask.Load(); k != nil && k.of == v {
			clear(m[copy(m, k.mask):])
			return nil
		}
	}
	clear(m)
	w := walk{machine: s.machine, trie: trieOf(v), sorted: v.Sorted(v.PrefixRange(nil)), mask: m}
	if !w.prefixed(s) {
		clear(m)
		return ErrTooComplex
	}
	for _, id := range v.Specials().EOG {
		m.Remove(id)
		if s.Accepting() {
			m.Set(id)
		}
	}
	if s.prefix == "" && len(m) == len(vocab.NewMask(v.Len())) {
		s.machine.keepMask(s.at, &keptMask{v, append(vocab.Mask(nil), m...)})
	}
	return nil
}

func (m *machine) keepMask(s *state, k *keptMask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.age == m.age && m.maskWords+len(k.mask) <= maxMaskWords {
		m.maskWords += len(k.mask)
		s.mask.Store(k)
	}
}

// A walk sets the bits of the tokens that can come.
type walk struct {
	machine *machine
	trie    *trie
	sorted  []vocab.ID
	mask    vocab.Mask
	states  []*state // by depth
	steps   int
}

// prefixed goes down to the node of the bytes that must come first, and from
// there with s. It reports false if that takes too long.
func (w *walk) prefixed(s State) bool {
	at := int32(0)
	for i := range len(s.prefix) {
		end := w.trie.end[at]
		for at++; at < end && w.trie.byte[at] != s.prefix[i]; {
			at = w.trie.end[at]
		}
		if at >= end {
			return true
		}
		w.set(at)
	}
	return w.below(at, s.at)
}

// set sets the tokens of a node.
func (w *walk) set(node int32) {
	w.mask.SetIDs(w.sorted[w.trie.first[node]:w.trie.first[node+1]])
}

// below sets the tokens below a node, where the state is s. It reports false
// if that takes too long.
func (w *walk) below(top int32, s *state) bool {
	t, m := w.trie, w.machine
	base := t.depth[top]
	w.states = append(w.states[:0], s)
	for node, end := top+1, t.end[top]; node < end; {
		d := t.depth[node] - base
		next, steps := m.step(w.states[d-1], m.classOf[t.byte[node]])
		if w.steps += steps; w.steps > maxMaskSteps || next == m.over {
			return false
		}
		if next == m.dead {
			node = t.end[node]
			continue
		}
		w.set(node)
		w.states = append(w.states[:d], next)
		node++
	}
	return true
}

// A trie has a node for each beginning of a text token, in byte order, a node
// before those below it. Node 0 is the empty beginning.
type trie struct {
	byte  []byte
	depth []int32
	end   []int32 // the first node after those below
	first []int32 // tokens in byte order before those of the node; one more than nodes
}

func newTrie(v *vocab.Vocab) *trie {
	t := &trie{byte: []byte{0}, depth: []int32{0}, end: []int32{0}, first: []int32{0}}
	path := []int32{0}
	var last []byte
	for i, id := range v.Sorted(v.PrefixRange(nil)) {
		text := v.Bytes(id)
		shared := 0
		for shared < len(last) && shared < len(text) && last[shared] == text[shared] {
			shared++
		}
		for _, node := range path[shared+1:] {
			t.end[node] = int32(len(t.byte))
		}
		path = path[:shared+1]
		for d := shared; d < len(text); d++ {
			path = append(path, int32(len(t.byte)))
			t.byte = append(t.byte, text[d])
			t.depth = append(t.depth, int32(d+1))
			t.end = append(t.end, 0)
			t.first = append(t.first, int32(i))
		}
		last = text
	}
	for _, node := range path {
		t.end[node] = int32(len(t.byte))
	}
	t.first = append(t.first, int32(len(v.Sorted(v.PrefixRange(nil)))))
	return t
}

// tries has the trie of each vocabulary that masks were made for, as long as
// the vocabulary lives.
var tries sync.Map // weak.Pointer[vocab.Vocab] → *lazyTrie

type lazyTrie struct {
	once sync.Once
	trie *trie
}

func trieOf(v *vocab.Vocab) *trie {
	key := weak.Make(v)
	entry, loaded := tries.Load(key)
	if !loaded {
		if entry, loaded = tries.LoadOrStore(key, new(lazyTrie)); !loaded {
			runtime.AddCleanup(v, func(key weak.Pointer[vocab.Vocab]) { tries.Delete(key) }, key)
		}
	}
	lazy := entry.(*lazyTrie)
	lazy.once.Do(func() { lazy.trie = newTrie(v) })
	return lazy.trie
}
