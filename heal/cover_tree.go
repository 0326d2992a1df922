package heal

import (
	"slices"
	"sync"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/vocab"
)

// The most nodes that a choice may have beside the trunk, and on it. A node
// beside it may cost a decode step of its own, one on it a row of logits.
const (
	maxNodesBeside = 64
	maxNodesTrunk  = 64
)

// coverTree holds the covers of a plan by what they begin with. A node is a
// path from which covers leave; its row of logits weighs them. The tree does
// not change once made.
type coverTree struct {
	nodes []coverNode // the first is the root: the plan's Prompt
	trunk []vocab.ID  // the prompt's own tokens after Prompt

	mu     sync.Mutex // the report is for one goroutine
	report *boundary.Report
}

type coverNode struct {
	path     []vocab.ID // tokens after Prompt
	children []childNode
	leaves   []vocab.ID         // tokens after path that end where the prompt does
	fans     []*boundary.Branch // ways to leave the prompt by the token after path
	added    bool               // one of fans is for user-defined tokens alone
}

type childNode struct {
	token vocab.ID
	node  int
}

// newCoverTree makes a tree of the branches, the first of which is the trunk. It
// returns nil if there would be too many nodes.
func newCoverTree(r *boundary.Report, branches []boundary.Branch) *coverTree {
	t := &coverTree{nodes: make([]coverNode, 1), report: r, trunk: branches[0].Path}
	if len(t.trunk) > maxNodesTrunk {
		return nil
	}
	for i := range branches {
		b := &branches[i]
		if len(b.Rest) == 0 {
			last := len(b.Path) - 1
			n := &t.nodes[t.insert(b.Path[:last])]
			if !slices.Contains(n.leaves, b.Path[last]) {
				n.leaves = append(n.leaves, b.Path[last])
			}
		} else {
			n := &t.nodes[t.insert(b.Path)]
			n.fans = append(n.fans, b)
			n.added = n.added || b.Added
		}
		if len(t.nodes) > len(t.trunk)+maxNodesBeside {
			return nil
		}
	}
	return t
}

// insert returns the node of a path and makes those on the way to it.
func (t *coverTree) insert(path []vocab.ID) int {
	at := 0
	for i, id := range path {
		next := t.child(at, id)
		if next < 0 {
			next = len(t.nodes)
			t.nodes = append(t.nodes, coverNode{path: path[: i+1 : i+1]})
			t.nodes[at].children = append(t.nodes[at].children, childNode{id, next})
		}
		at = next
	}
	return at
}

// child returns the node that a token leads to, or -1.
func (t *coverTree) child(node int, token vocab.ID) int {
	for _, c := range t.nodes[node].children {
		if c.token == token {
			return c.node
		}
	}
	return -1
}

// find returns the node of a path, or -1.
func (t *coverTree) find(path []vocab.ID) int {
	at := 0
	for _, id := range path {
		if at = t.child(at, id); at < 0 {
			return -1
		}
	}
	return at
}

// isTrunk reports whether a path is the trunk.
func (t *coverTree) isTrunk(path []vocab.ID) bool { return slices.Equal(path, t.trunk) }

// follows reports whether a token makes a cover of a branch of the node.
func (t *coverTree) follows(v *vocab.Vocab, node int, b *boundary.Branch, id vocab.ID) bool {
	if v.IsEOG(id) || !b.Added && t.nodes[node].added && v.Kind(id) == vocab.UserDefined {
		return false // the end of everything, or another branch's
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.report.Follows(b, id)
}
