package heal

import (
	"container/heap"
	"math"
	"slices"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/vocab"
)

// family is a set of covers that differ in their last token only: all that
// leave a node by one branch, or one that ends where the prompt does.
type family struct {
	node    int
	branch  *boundary.Branch // nil: a single cover
	base    weight           // of a token with the logit 0
	mass    weight           // of all that are left, those not looked at included
	ids     []vocab.ID
	logits  []float32
	temp    float64
	heaped  bool
	rejects int // draws of what was no cover
}

func (c *Choice) addFamily(node int, b *boundary.Branch, base weight, ids []vocab.ID, row []float32) {
	f := &family{node: node, branch: b, base: base, temp: c.s.Temperature, ids: ids, logits: make([]float32, len(ids))}
	for i, id := range ids {
		f.logits[i] = row[id]
	}
	f.weigh()
	if !math.IsInf(f.mass.one, -1) {
		c.covers = append(c.covers, f)
	}
}

// weigh computes the mass of what is left.
func (f *family) weigh() {
	f.mass = f.base
	one := logSumExp(f.logits, 1)
	f.mass.one += one
	if f.temp == 1 {
		f.mass.temp += one
		return
	}
	f.mass.temp += logSumExp(f.logits, f.temp)
}

// at is the weight of the i-th cover.
func (f *family) at(i int) weight {
	l := float64(f.logits[i])
	return weight{f.base.one + l, f.base.temp + l/f.temp}
}

// A family is a heap of its covers by their weight once it has been asked for
// the heaviest, the lowest ID first among equals.
func (f *family) Len() int { return len(f.ids) }
func (f *family) Less(i, j int) bool {
	return f.logits[i] > f.logits[j] || f.logits[i] == f.logits[j] && f.ids[i] < f.ids[j]
}
func (f *family) Swap(i, j int) {
	f.ids[i], f.ids[j] = f.ids[j], f.ids[i]
	f.logits[i], f.logits[j] = f.logits[j], f.logits[i]
}
func (f *family) Push(any) {}
func (f *family) Pop() any {
	n := len(f.ids) - 1
	f.ids, f.logits = f.ids[:n], f.logits[:n]
	return nil
}

// heaviest returns the weight of the family's heaviest cover, after it has
// thrown out what is heavier and no cover.
func (c *Choice) heaviest(f *family) (weight, bool) {
	if !f.heaped {
		f.ids = slices.Clone(f.ids) // they were the vocabulary's
		heap.Init(f)
		f.heaped = true
	}
	for len(f.ids) > 0 && !math.IsInf(float64(f.logits[0]), -1) {
		if c.isCover(f, f.ids[0]) {
			return f.at(0), true
		}
		c.pop(f)
	}
	f.drop()
	return weight{}, false
}

// pop takes the heaviest out of a family.
func (c *Choice) pop(f *family) {
	c.left -= math.Exp(f.at(0).one - c.scale)
	heap.Pop(f)
}

// drop empties a family in which nothing is left.
func (f *family) drop() {
	f.ids, f.logits = nil, nil
	f.weigh()
}

func (c *Choice) isCover(f *family, id vocab.ID) bool {
	if f.branch == nil {
		return true
	}
	return c.tree.follows(c.v, f.node, f.branch, id) && (c.allow == nil || c.allow(c.v.Bytes(id)[len(f.branch.Rest):]))
}

// manyRejects is after how many draws in vain a family is searched for all
// that are no covers, so that a draw ends soon also where most are none.
const manyRejects = 8

// reject takes out what was drawn and is no cover.
func (c *Choice) reject(f *family, i int) {
	f.logits[i] = float32(math.Inf(-1))
	if f.rejects++; f.rejects == manyRejects {
		for i, id := range f.ids {
			if !math.IsInf(float64(f.logits[i]), -1) && !c.isCover(f, id) {
				f.logits[i] = float32(math.Inf(-1))
			}
		}
	}
	f.weigh()
}

// logSumExp is the logarithm of the sum of exp(x/t) over xs, -Inf if they are
// all -Inf or there are none.
func logSumExp[T float32 | float64](xs []T, t float64) float64 {
	top := math.Inf(-1)
	for _, x := range xs {
		// A NaN stays on top.
		if !(float64(x) <= top) {
			top = float64(x)
		}
	}
	if math.IsInf(top, 0) || math.IsNaN(top) {
		return top
	}
	sum := 0.0
	for _, x := range xs {
		sum += math.Exp((float64(x) - top) / t)
	}
	return top/t + math.Log(sum)
}
