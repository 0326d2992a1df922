package heal

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/vocab"
)

// Sampling says how a [Choice] draws. The zero value takes the heaviest cover.
// A choice among covers treats them as a draw of one token treats tokens:
// top-k, top-p and min-p keep the heaviest of them, and only then the
// temperature applies.
type Sampling struct {
	Temperature float64 // 0 takes the heaviest
	TopK        int     // covers; 0: off
	TopP        float64 // share of the covers' mass; 0 or 1: off
	MinP        float64 // relative to the heaviest cover; 0: off
}

func (s *Sampling) greedy() bool { return s.Temperature <= 0 || s.TopK == 1 }
func (s *Sampling) cuts() bool   { return s.TopK > 0 || s.TopP > 0 && s.TopP < 1 || s.MinP > 0 }

// negligible bounds what a cut may leave out unseen: covers below a node that
// is this much less probable than the heaviest cover.
const negligible = 1e-4

// coldest is the temperature below which the heaviest cover is taken: logits
// divided by less would leave the range of numbers.
const coldest = 1e-6

// Choice draws one cover of a plan's pending bytes by its probability. Rows of
// logits are given to it, the trunk's first; [Choice.Next] asks for further
// ones only where they can matter. It is for one goroutine.
//
// A cover's weight is the product of its tokens' probabilities. What lies
// below a node whose row is not known weighs at most what the node itself
// does. So the heaviest cover is known once no such bound exceeds it; and a
// draw among covers and bounds, where a bound drawn is replaced by what is
// found to lie below it and drawn again for what it was too large, is a draw
// among the covers by their weights: rejection sampling, exact however many
// bounds are left (docs/rationale.md has both proofs).
type Choice struct {
	tree  *coverTree
	v     *vocab.Vocab
	s     Sampling
	allow func(beyond []byte) bool // nil: all

	state  []nodeState // by node of the tree
	open   []int       // nodes with a bound and without a row
	covers []*family
	drawn  int // the open node that was drawn and asked for; -1: none

	// Of all families' mass, the logarithm of which is scale, the share that cut
	// has not taken out yet.
	left, scale float64

	kept   []pick // what cut took out
	chosen weight
	err    error
}

// weight is the logarithm of a probability: at temperature 1, which orders
// covers and cuts them, and at the temperature of the draw.
type weight struct{ one, temp float64 }

func (w weight) plus(logit float64, norm weight, t float64) weight {
	return weight{w.one + logit - norm.one, w.temp + logit/t - norm.temp}
}

type nodeState struct {
	weight weight // of the path up to the node
	bound  bool   // weight is known
	row    bool   // the row has been given
}

var errRow = errors.New("heal: a row of logits holds values that are not numbers")

// NewChoice begins a choice, or returns nil if the plan leaves none. Covers
// whose bytes beyond the prompt allow refuses have no weight; a nil allow
// refuses none. allow is called during Next.
func (p *Plan) NewChoice(s Sampling, allow func(beyond []byte) bool) *Choice {
	if p.tree == nil {
		return nil
	}
	if s.greedy() || s.Temperature < coldest {
		s = Sampling{Temperature: 1, TopK: 1}
	}
	c := &Choice{tree: p.tree, v: p.vocab, s: s, allow: allow}
	c.Reset()
	return c
}

// Reset forgets all rows.
func (c *Choice) Reset() {
	*c = Choice{tree: c.tree, v: c.v, s: c.s, allow: c.allow, state: make([]nodeState, len(c.tree.nodes)), open: []int{0}, drawn: -1}
	c.state[0].bound = true
}

// Matters returns the tokens whose values the row of path is looked at for,
// ascending.
func (c *Choice) Matters(path []vocab.ID) []vocab.ID {
	node := c.tree.find(path)
	if node < 0 {
		return nil
	}
	n := &c.tree.nodes[node]
	ids := slices.Clone(n.leaves)
	for _, child := range n.children {
		ids = append(ids, child.token)
	}
	for _, b := range n.fans {
		ids = append(ids, c.fan(b)...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// fan returns the tokens that may leave the prompt by a branch. The slice may be
// the vocabulary's.
func (c *Choice) fan(b *boundary.Branch) []vocab.ID {
	ids := c.v.Sorted(b.Range(c.v))
	if b.Added {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id vocab.ID) bool { return c.v.Kind(id) != vocab.UserDefined })
	}
	return ids
}

// Row takes the logits of the token after the plan's Prompt and path. A path's
// row must come after those of its beginnings. The row is not kept.
func (c *Choice) Row(path []vocab.ID, row []float32) {
	norm := weight{one: logSumExp(row, 1)}
	norm.temp = norm.one
	if c.s.Temperature != 1 {
		norm.temp = logSumExp(row, c.s.Temperature)
	}
	if math.IsNaN(norm.one) || math.IsInf(norm.one, 0) {
		c.err = errRow
		return
	}
	c.take(path, row, norm)
}

// Part is Row for log-probabilities of which some may be missing, which is
// negative infinity, or too high.
func (c *Choice) Part(path []vocab.ID, logprobs []float32) {
	var norm weight
	if c.s.Temperature != 1 {
		norm.temp = logSumExp(logprobs, c.s.Temperature)
	}
	if math.IsNaN(norm.temp) || math.IsInf(norm.temp, 0) {
		c.err = errRow
		return
	}
	c.take(path, logprobs, norm)
}

// take is Row for a row whose sum is known.
func (c *Choice) take(path []vocab.ID, row []float32, norm weight) {
	node := c.tree.find(path)
	if node < 0 || c.state[node].row || !c.state[node].bound {
		return
	}
	st := &c.state[node]
	st.row = true
	if i := slices.Index(c.open, node); i >= 0 {
		c.open = slices.Delete(c.open, i, i+1)
	}
	base := st.weight.plus(0, norm, c.s.Temperature)
	n := &c.tree.nodes[node]
	for _, child := range n.children {
		l := float64(row[child.token])
		c.state[child.node] = nodeState{weight: st.weight.plus(l, norm, c.s.Temperature), bound: true}
		if !math.IsInf(l, -1) && !c.v.IsEOG(child.token) {
			c.open = append(c.open, child.node)
		}
	}
	for _, id := range n.leaves {
		if !c.v.IsEOG(id) || c.tree.isTrunk(append(slices.Clone(n.path), id)) {
			c.addFamily(node, nil, base, []vocab.ID{id}, row)
		}
	}
	for _, b := range n.fans {
		c.addFamily(node, b, base, c.fan(b), row)
	}
}

// Next returns the tokens that were chosen, in place of those after the plan's
// Prompt, and done; or, not done, the path whose row it needs. rng is used if
// the choice has a temperature.
func (c *Choice) Next(rng *rand.Rand) (path []vocab.ID, done bool, err error) {
	if c.err != nil {
		return nil, false, c.err
	}
	var p pick
	switch {
	case c.s.TopK == 1:
		p = c.takeHeaviest()
	case c.s.cuts():
		p = c.drawCut(rng)
	default:
		p = c.draw(rng)
	}
	switch p.kind {
	case pickNode:
		return c.tree.nodes[p.node].path, false, nil
	case pickNone:
		// No cover has any probability, say because a bias forbids them all: the
		// prompt stays as it was given.
		return c.tree.trunk, true, nil
	}
	c.chosen = p.w
	return append(slices.Clone(c.tree.nodes[p.f.node].path), p.id), true, nil
}

// Logprob is the natural logarithm of the probability of the cover that was
// chosen, among all covers, by the model's own distribution: that of the text
// that its last token adds to the prompt. It is for after the choice, and asks of
// every token that could have left the prompt whether it makes a cover, of those
// at least that are not negligible. Bounds that were left open count as they
// are, so it may be too low by what they exceed the truth.
func (c *Choice) Logprob() float64 {
	masses := []float64{}
	for _, k := range c.kept {
		masses = append(masses, k.w.one)
	}
	for _, n := range c.open {
		masses = append(masses, c.state[n].weight.one)
	}
	least := c.chosen.one + math.Log(negligible*negligible)
	for _, f := range c.covers {
		for i, id := range f.ids {
			if w := f.at(i).one; w < least || c.isCover(f, id) {
				masses = append(masses, w)
			}
		}
	}
	return min(0, c.chosen.one-logSumExp(masses, 1))
}

// pick is the outcome of one attempt to choose.
type pick struct {
	kind pickKind
	f    *family
	id   vocab.ID
	w    weight
	node int
}

type pickKind int

const (
	pickNone   pickKind = iota // there is nothing to choose from
	pickCover                  // f, id and w
	pickNode                   // the row of node is needed
	pickReject                 // what was drawn is no cover: draw again
)

// mass is the logarithm of what the families and bounds at and below a node
// weigh together at the temperature of the draw, or -Inf.
func (c *Choice) mass(node int) float64 {
	var list []float64
	for _, f := range c.covers {
		if c.below(f.node, node) {
			list = append(list, f.mass.temp)
		}
	}
	for _, n := range c.open {
		if c.below(n, node) {
			list = append(list, c.state[n].weight.temp)
		}
	}
	return logSumExp(list, 1)
}

// below reports whether node is at or below top.
func (c *Choice) below(node, top int) bool {
	p, q := c.tree.nodes[node].path, c.tree.nodes[top].path
	return len(p) >= len(q) && slices.Equal(p[:len(q)], q)
}

// heaviestOpen returns the open node of the largest bound, or -1.
func (c *Choice) heaviestOpen() (node int, bound float64) {
	node, bound = -1, math.Inf(-1)
	for _, n := range c.open {
		if w := c.state[n].weight.one; node < 0 || w > bound {
			node, bound = n, w
		}
	}
	return node, bound
}

// best returns the family with the heaviest cover, the earliest among equals.
func (c *Choice) best() (best *family, w weight) {
	for _, f := range c.covers {
		if fw, ok := c.heaviest(f); ok && (best == nil || fw.one > w.one) {
			best, w = f, fw
		}
	}
	return best, w
}

// takeHeaviest is best first: a row is asked for only while its node's bound
// exceeds the heaviest cover known.
func (c *Choice) takeHeaviest() pick {
	f, w := c.best()
	n, bound := c.heaviestOpen()
	switch {
	case n >= 0 && (f == nil || bound > w.one):
		return pick{kind: pickNode, node: n}
	case f == nil:
		return pick{}
	}
	return pick{kind: pickCover, f: f, id: f.ids[0], w: w}
}

// draw draws among covers and bounds.
func (c *Choice) draw(rng *rand.Rand) pick {
	if n := c.drawn; n >= 0 {
		// Of the bound that was drawn, keep what truly lies below the node.
		c.drawn = -1
		if p := c.drawFrom(rng, n, c.state[n].weight.temp); p.kind == pickCover || p.kind == pickNode {
			return p
		}
	}
	for {
		if p := c.drawFrom(rng, 0, math.Inf(-1)); p.kind != pickReject {
			return p
		}
	}
}

// drawFrom draws once among the families and open nodes at and below a node.
// The envelope is what they weigh, or bound if that is more; a draw that falls
// into the difference is rejected.
func (c *Choice) drawFrom(rng *rand.Rand, node int, bound float64) pick {
	envelope := max(bound, c.mass(node))
	if math.IsInf(envelope, -1) || math.IsNaN(envelope) {
		return pick{}
	}
	x := rng.Float64()
	for _, f := range c.covers {
		if !c.below(f.node, node) {
			continue
		}
		if x -= math.Exp(f.mass.temp - envelope); x < 0 {
			return c.drawMember(rng, f)
		}
	}
	for _, n := range c.open {
		if !c.below(n, node) {
			continue
		}
		if x -= math.Exp(c.state[n].weight.temp - envelope); x < 0 {
			c.drawn = n
			return pick{kind: pickNode, node: n}
		}
	}
	return pick{kind: pickReject}
}

// drawMember draws one of a family. What is no cover is taken out.
func (c *Choice) drawMember(rng *rand.Rand, f *family) pick {
	x, last := rng.Float64(), -1
	for i := range f.ids {
		p := math.Exp(f.at(i).temp - f.mass.temp)
		if p == 0 {
			continue
		}
		last = i
		if x -= p; x < 0 {
			break
		}
	}
	if last < 0 {
		f.drop()
		return pick{kind: pickReject}
	}
	if id := f.ids[last]; c.isCover(f, id) {
		return pick{kind: pickCover, f: f, id: id, w: f.at(last)}
	}
	c.reject(f, last)
	return pick{kind: pickReject}
}

// drawCut applies top-k, top-p and min-p to the covers and draws among the
// rest. Rows are asked for until what is still unknown is negligible.
func (c *Choice) drawCut(rng *rand.Rand) pick {
	best, w := c.best()
	n, bound := c.heaviestOpen()
	switch {
	case n >= 0 && (best == nil || bound > w.one+math.Log(negligible)):
		return pick{kind: pickNode, node: n}
	case best == nil:
		return pick{}
	}
	kept := c.cut(w.one)
	top := math.Inf(-1)
	for _, k := range kept {
		top = max(top, k.w.temp)
	}
	sum := 0.0
	for _, k := range kept {
		sum += math.Exp(k.w.temp - top)
	}
	x := rng.Float64() * sum
	for _, k := range kept {
		if x -= math.Exp(k.w.temp - top); x < 0 {
			return k
		}
	}
	return kept[0]
}

// cut takes the heaviest covers that the sampling leaves out of their families,
// heaviest first. The first weighs top.
func (c *Choice) cut(top float64) (kept []pick) {
	most, p, least := c.s.TopK, c.s.TopP, math.Inf(-1)
	if most <= 0 {
		most = math.MaxInt
	}
	if c.s.MinP > 0 && (p <= 0 || p >= 1) {
		least = top + math.Log(c.s.MinP)
	}
	var masses []float64
	for _, f := range c.covers {
		f.weigh() // some may have been found to be no covers
		masses = append(masses, f.mass.one)
	}
	c.left, c.scale = 1, logSumExp(masses, 1)
	for mass := 0.0; len(kept) < most; {
		f, w := c.best()
		if f == nil || w.one < least || c.s.TopK <= 0 && c.left < negligible*mass {
			break
		}
		mass += math.Exp(w.one - c.scale)
		kept = append(kept, pick{kind: pickCover, f: f, id: f.ids[0], w: w})
		c.pop(f)
	}
	c.kept = slices.Clone(kept)
	if p > 0 && p < 1 {
		kept = nucleus(kept, top, p)
	}
	if c.s.MinP > 0 {
		least = top + math.Log(c.s.MinP)
		kept = slices.DeleteFunc(kept, func(k pick) bool { return k.w.one < least })
	}
	return kept
}

// nucleus keeps the heaviest that have p of the mass of all.
func nucleus(kept []pick, top, p float64) []pick {
	all := 0.0
	for _, k := range kept {
		all += math.Exp(k.w.one - top)
	}
	n := 0
	for mass := 0.0; n < len(kept) && mass < p*all; n++ {
		mass += math.Exp(kept[n].w.one - top)
	}
	return kept[:n]
}
