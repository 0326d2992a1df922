package tokenizer

import (
	"bytes"
	"slices"
)

// trie holds words, each byte of a word a node, with the links of Aho and
// Corasick (Efficient string matching, CACM 18(6), 1975). Node 0 is the root.
// Nodes are numbered breadth first, so that the children of one stand side by
// side. It takes some 30 bytes for each byte of the words at most.
type trie struct {
	nodes  []trieNode
	labels []byte // labels[n] leads to node n from its parent
	root   [256]int32
}

type trieNode struct {
	children int32 // the first; the last is before that of the next node
	fail     int32 // node of the longest proper suffix of this node's path that has one
	word     int32 // the word that the path is, or -1
	longest  int32 // the longest word that the path ends with, or -1
	lo, hi   int32 // words that begin with the path
	depth    int32 // bytes of the path
}

// newTrie makes a trie of words in byte order, no two the same, none empty.
func newTrie(words [][]byte) *trie {
	t := &trie{labels: make([]byte, 1)}
	t.nodes = append(t.nodes, trieNode{word: -1, longest: -1, hi: int32(len(words))})
	for n := int32(0); int(n) < len(t.nodes); n++ {
		node := &t.nodes[n]
		node.children = int32(len(t.nodes))
		lo, hi, depth := node.lo, node.hi, node.depth
		if node.word >= 0 {
			lo++
		}
		for lo < hi {
			b, end := words[lo][depth], lo+1
			for end < hi && words[end][depth] == b {
				end++
			}
			child := trieNode{word: -1, lo: lo, hi: end, depth: depth + 1}
			if n > 0 {
				child.fail = t.next(t.nodes[n].fail, b)
			} else {
				t.root[b] = int32(len(t.nodes))
			}
			if len(words[lo]) == int(depth)+1 {
				child.word = lo
				child.longest = lo
			} else {
				child.longest = t.nodes[child.fail].longest
			}
			t.nodes = append(t.nodes, child)
			t.labels = append(t.labels, b)
			lo = end
		}
	}
	t.nodes = append(t.nodes, trieNode{children: int32(len(t.nodes))})
	return t
}

// newBackwardTrie makes a trie of the words read backward. Its words are
// numbered as those given.
func newBackwardTrie(words [][]byte) *trie {
	type reversed struct {
		text []byte
		word int32
	}
	all := make([]reversed, len(words))
	for i, w := range words {
		w = slices.Clone(w)
		slices.Reverse(w)
		all[i] = reversed{w, int32(i)}
	}
	slices.SortFunc(all, func(a, b reversed) int { return bytes.Compare(a.text, b.text) })
	words = make([][]byte, len(all))
	for i, r := range all {
		words[i] = r.text
	}
	t := newTrie(words)
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.word >= 0 {
			n.word = all[n.word].word
		}
		if n.longest >= 0 {
			n.longest = all[n.longest].word
		}
	}
	return t
}

// child gives the node that b leads to, or 0.
func (t *trie) child(n int32, b byte) int32 {
	if n == 0 {
		return t.root[b]
	}
	lo, hi := t.nodes[n].children, t.nodes[n+1].children
	if hi-lo == 1 {
		if t.labels[lo] == b {
			return lo
		}
		return 0
	}
	if k := bytes.IndexByte(t.labels[lo:hi], b); k >= 0 {
		return lo + int32(k)
	}
	return 0
}

// next gives the node for the longest end of n's path and b that has one.
func (t *trie) next(n int32, b byte) int32 {
	for n > 0 {
		if c := t.child(n, b); c > 0 {
			return c
		}
		n = t.nodes[n].fail
	}
	return t.root[b]
}

// longest gives the longest word that text begins with, or -1, its bytes and
// the bytes read to find it.
func (t *trie) longest(text []byte) (word int32, size, steps int) {
	word = -1
	n := int32(0)
	for i, b := range text {
		if n = t.child(n, b); n == 0 {
			return word, size, i + 1
		}
		if w := t.nodes[n].word; w >= 0 {
			word, size = w, i+1
		}
	}
	return word, size, len(text)
}
