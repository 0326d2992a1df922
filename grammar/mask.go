package grammar

import (
	"runtime"
	"sync"
	"weak"

	"github.com/unfray/unfray/vocab"
)

const (
	maxMaskSteps = 1 << 20 // to compute the states of one mask
	worthChain   = 32      // nodes below
	maxChain     = 32      // bytes
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
	w := walk{machine: s.machine, trie: trieOf(v), mask: m}
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
	mask    vocab.Mask
	states  []*state // by depth
	steps   int
}

// prefixed goes down to the node of the bytes that must come first, and from
// there with s. It reports false if that takes too long.
func (w *walk) prefixed(s State) bool {
	at, nodes := int32(0), w.trie.nodes
	for i := range len(s.prefix) {
		end := nodes[at].end
		for at++; at < end && nodes[at].byte != s.prefix[i]; {
			at = nodes[at].end
		}
		if at >= end {
			return true
		}
		w.mask.SetIDs(w.trie.tokens(at, at+1))
	}
	return w.below(at, s.at)
}

// below sets the tokens below a node, where the state is s. It reports false
// if that takes too long.
func (w *walk) below(top int32, s *state) bool {
	t, m := w.trie, w.machine
	var same chain
	if t.nodes[top].end-top > worthChain {
		var ok bool
		if same, ok = w.chain(s); !ok {
			return false
		}
	}
	base := t.nodes[top].depth
	w.states = append(w.states, make([]*state, t.depth+1-base)...)
	w.states[0] = s
	for at, end := top+1, t.nodes[top].end; at < end; {
		node := &t.nodes[at]
		d := node.depth - base
		from, class := w.states[d-1], m.classOf[node.byte]
		next := from.next[class].Load()
		if next == nil {
			if next = w.step(from, class); next == nil {
				return false
			}
		}
		switch {
		case next.next == nil: // dead or over
			if next == m.over {
				return false
			}
			at = node.end
		case same.states != nil && same.covers(next, d, node.deepest-base, node.below):
			w.mask.SetIDs(t.tokens(at, node.end))
			at = node.end
		default:
			w.states[d] = next
			for i := node.first; i < t.nodes[at+1].first; i++ {
				w.mask.Set(t.sorted[i])
			}
			at++
		}
	}
	return true
}

// step computes a state. It gives nil if the walk takes too long.
func (w *walk) step(s *state, class uint8) *state {
	next, steps := w.machine.step(s, class)
	if w.steps += steps; w.steps > maxMaskSteps {
		return nil
	}
	return next
}

// A chain is what a letter leads to from a state, again and again, and the
// bytes that lead to the same: texts of those bytes need no walk. A string ends
// in a state that leads to itself; one of bounded length goes on from state to
// state.
type chain struct {
	states []*state
	ends   bool   // whether the last state leads to itself
	groups uint64 // of such bytes
}

// covers reports whether all below a node of a depth, where the state is s, is
// known to be alive.
func (c *chain) covers(s *state, depth, deepest int32, below uint64) bool {
	last := int32(len(c.states)) - 1
	return below&^c.groups == 0 && s == c.states[min(depth, last)] && (c.ends || deepest <= last)
}

// chain follows a letter that most vocabularies are full of. It reports false
// if that takes too long.
func (w *walk) chain(s *state) (c chain, ok bool) {
	m := w.machine
	c = chain{states: []*state{s}, groups: ^uint64(0)}
	var apart [256]bool // classes of bytes that lead elsewhere
	for from := s; len(c.states) <= maxChain && !c.ends; {
		next := w.step(from, m.classOf['e'])
		if next == nil {
			return c, false
		}
		if next.next == nil {
			break
		}
		for class := range m.classes {
			if apart[class] {
				continue
			}
			other := w.step(from, uint8(class))
			if other == nil {
				return c, false
			}
			apart[class] = other != next
		}
		if c.ends = next == from; !c.ends {
			c.states = append(c.states, next)
		}
		from = next
	}
	for b := range 256 {
		if apart[m.classOf[b]] {
			c.groups &^= group(byte(b))
		}
	}
	return c, true
}

// group is the bit of four bytes that stand side by side.
func group(b byte) uint64 { return 1 << (b >> 2) }

// A trie has a node for each beginning of a text token, in byte order, a node
// before those below it. Node 0 is the empty beginning; one more stands after
// the last.
type trie struct {
	nodes  []node
	sorted []vocab.ID
	depth  int32 // of the deepest node
}

type node struct {
	below uint64 // groups of bytes of the nodes below
	end   int32  // the first node after those below
	first int32  // tokens in byte order that come before those of the node
	depth int32
	// deepest is the depth of the deepest node below, or its own.
	deepest int32
	byte    byte
}

// tokens lists those of the nodes from one to another.
func (t *trie) tokens(from, to int32) []vocab.ID {
	return t.sorted[t.nodes[from].first:t.nodes[to].first]
}

func newTrie(v *vocab.Vocab) *trie {
	t := &trie{nodes: make([]node, 1, 2*v.Len()+2), sorted: v.Sorted(v.PrefixRange(nil))}
	path := []int32{0}
	// leave ends the nodes of the path deeper than a depth.
	leave := func(depth int) {
		for len(path) > depth+1 {
			last := path[len(path)-1]
			path = path[:len(path)-1]
			n := &t.nodes[last]
			n.end = int32(len(t.nodes))
			up := &t.nodes[path[len(path)-1]]
			up.below |= n.below | group(n.byte)
			up.deepest = max(up.deepest, n.deepest)
		}
	}
	var last []byte
	for i, id := range t.sorted {
		text := v.Bytes(id)
		shared := 0
		for shared < len(last) && shared < len(text) && last[shared] == text[shared] {
			shared++
		}
		leave(shared)
		for d := shared; d < len(text); d++ {
			path = append(path, int32(len(t.nodes)))
			t.nodes = append(t.nodes, node{first: int32(i), depth: int32(d + 1), deepest: int32(d + 1), byte: text[d]})
		}
		t.depth = max(t.depth, int32(len(text)))
		last = text
	}
	leave(0)
	t.nodes[0].end = int32(len(t.nodes))
	t.nodes = append(t.nodes, node{first: int32(len(t.sorted))})
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
