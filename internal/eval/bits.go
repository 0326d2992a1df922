package eval

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Reader gives rows of logits, as backend.LogitsReader defines them.
type Reader interface {
	Logits(ctx context.Context, ids []vocab.ID, from int) ([][]float32, error)
}

// Weigher measures how probable a cut's truth is under ways of healing. It
// keeps the rows of one cut and is for one goroutine.
type Weigher struct {
	t      *tokenizer.Tokenizer
	r      Reader
	prompt []vocab.ID // the whole prompt's tokens, a BOS included
	before int        // how many of them stand before its text
	text   []byte
	rows   map[string]row
}

type row struct {
	logits []float32
	norm   float64 // logarithm of the sum of the exponentials
}

// NewWeigher begins the measurement of a cut with the given prompt. A BOS token
// is put before it where the vocabulary wants one.
func NewWeigher(t *tokenizer.Tokenizer, r Reader, prompt []byte) *Weigher {
	w := &Weigher{t: t, r: r, text: prompt, rows: map[string]row{}}
	if sp := t.Vocab().Specials(); sp.AddBOS && sp.BOS != vocab.None {
		w.prompt, w.before = []vocab.ID{sp.BOS}, 1
	}
	w.prompt = t.Encode(w.prompt, prompt)
	return w
}

// Bits is the negative binary logarithm of the probability that a continuation
// begins with truth, by the model's own distribution at temperature 1, healed as
// mode says. The truth's end is no end of a token: all tokens that go on from
// there count. Tokenizations that are not canonical do not. It reports false
// where that cannot be told: nothing to start from, or a tokenizer whose covers
// are not known.
//
// Off and Last begin after tokens that the truth may contradict; what follows
// them is then counted in the tokenizations of the rest by itself. Stable and
// Last are normalized over their mask at each step until the prompt's bytes are
// there again; Exact once, over all covers.
func (w *Weigher) Bits(ctx context.Context, mode heal.Mode, truth []byte) (bits float64, ok bool, err error) {
	plan := heal.New(w.t, w.prompt, mode)
	base := plan.Prompt
	if len(base) == 0 || len(truth) == 0 {
		return 0, false, nil
	}
	whole := w.t.Encode(slices.Clone(w.prompt[:w.before]), slices.Concat(w.text, truth))
	ways, ok := w.inText(base, whole)
	if !ok {
		ways, ok = w.alone(base, slices.Concat(plan.Pending, truth))
	}
	if !ok {
		return 0, false, nil
	}
	steps := &steps{w: w, base: base, plan: plan}
	if plan.Mode == heal.Exact {
		steps.plan = nil
	}
	mass, err := steps.mass(ctx, ways)
	if err != nil {
		return 0, false, err
	}
	if plan.Mode == heal.Exact && len(plan.Pending) > 0 {
		ways, ok := w.inText(base, w.prompt)
		if !ok {
			return 0, false, nil
		}
		all, err := steps.mass(ctx, ways)
		if err != nil {
			return 0, false, err
		}
		mass -= all
	}
	if math.IsInf(mass, 0) || math.IsNaN(mass) {
		return 0, false, nil
	}
	return -mass / math.Ln2, true, nil
}

// way is a family of token paths after a base: path alone, or path and one of
// last.
type way struct {
	path []vocab.ID
	last []vocab.ID // nil: path alone
}

// inText lists the covers of a text, given by its tokens, that begin with base.
// It reports false if the text's own tokens do not.
func (w *Weigher) inText(base, whole []vocab.ID) ([]way, bool) {
	if !hasPrefix(whole, base) {
		return nil, false
	}
	r, canonical := boundary.AnalyzeIDs(w.t, whole)
	if !canonical {
		return nil, false
	}
	return w.list(r, base, r.IDs[:r.Stable])
}

// alone lists the covers of a text by itself, behind base.
func (w *Weigher) alone(base []vocab.ID, text []byte) ([]way, bool) {
	x := w.t.NewTextAfter(base)
	x.Append(text)
	r := boundary.AnalyzeText(x)
	var spelled []byte
	for _, id := range r.IDs {
		spelled = append(spelled, w.t.Vocab().Bytes(id)...)
	}
	if !bytes.Equal(spelled, text) {
		return nil, false // with a space before it, or rewritten
	}
	return w.list(r, base, slices.Concat(base, r.IDs[:r.Stable]))
}

// list turns a report's branches into ways after base. stable are the tokens
// before the branches.
func (w *Weigher) list(r *boundary.Report, base, stable []vocab.ID) ([]way, bool) {
	if r.Loss != nil {
		return nil, false
	}
	if len(r.Pending) == 0 && len(stable) >= len(base) {
		return []way{{path: stable[len(base):]}}, true
	}
	var ways []way
	for i := range r.Branches {
		b := &r.Branches[i]
		path := slices.Concat(stable, b.Path)
		if !hasPrefix(path, base) {
			continue
		}
		wy := way{path: path[len(base):]}
		if len(b.Rest) > 0 {
			for id := range b.Extensions(w.t.Vocab()) {
				if r.Follows(b, id) {
					wy.last = append(wy.last, id)
				}
			}
			if wy.last == nil {
				continue
			}
		}
		ways = append(ways, wy)
	}
	return ways, len(ways) > 0
}

// negligible is the share of a mass below which a way is not followed: each
// costs a row of logits.
const negligible = 1e-6

// steps weighs paths after a base, one token after the other.
type steps struct {
	w    *Weigher
	base []vocab.ID
	plan *heal.Plan // nil: no mask
}

// mass is the logarithm of the ways' probability. The first is the trunk.
func (s *steps) mass(ctx context.Context, ways []way) (float64, error) {
	if err := s.w.fetch(ctx, slices.Concat(s.base, ways[0].path), len(s.base)); err != nil {
		return 0, err
	}
	total := math.Inf(-1)
	for _, wy := range ways {
		floor := total + math.Log(negligible)
		at, err := s.path(ctx, wy.path, floor)
		if err != nil {
			return 0, err
		}
		if wy.last != nil && at > floor {
			var sum float64
			if sum, err = s.fan(ctx, wy, at); err != nil {
				return 0, err
			}
			at = sum
		}
		if at > floor {
			total = logAdd(total, at)
		}
	}
	return total, nil
}

// path is the logarithm of a path's probability, or some value not above floor.
func (s *steps) path(ctx context.Context, path []vocab.ID, floor float64) (float64, error) {
	at := 0.0
	for i, id := range path {
		r, norm, mask, err := s.next(ctx, path[:i])
		if err != nil {
			return 0, err
		}
		if mask != nil && !mask.Has(id) {
			return math.Inf(-1), nil
		}
		if at += float64(r.logits[id]) - norm; !(at > floor) {
			return math.Inf(-1), nil
		}
	}
	return at, nil
}

// fan adds up what the last tokens of a way have, at being what its path has.
func (s *steps) fan(ctx context.Context, wy way, at float64) (float64, error) {
	r, norm, mask, err := s.next(ctx, wy.path)
	if err != nil {
		return 0, err
	}
	sum := math.Inf(-1)
	for _, id := range wy.last {
		if mask == nil || mask.Has(id) {
			sum = logAdd(sum, float64(r.logits[id]))
		}
	}
	return at + sum - norm, nil
}

// next is the row after a path, what it is normalized by, and the mask, if one
// applies there.
func (s *steps) next(ctx context.Context, path []vocab.ID) (r row, norm float64, mask vocab.Mask, err error) {
	if r, err = s.w.row(ctx, slices.Concat(s.base, path)); err != nil || s.plan == nil {
		return r, r.norm, nil, err
	}
	session := s.plan.NewSession()
	for _, id := range path {
		if _, err := session.Accept(id); err != nil {
			// The masks before this step leave no such path.
			return r, r.norm, vocab.NewMask(len(r.logits)), nil
		}
	}
	if mask = session.Mask(); mask == nil {
		return r, r.norm, nil, nil
	}
	norm = math.Inf(-1)
	for id := range mask.All() {
		norm = logAdd(norm, float64(r.logits[id]))
	}
	return r, norm, mask, nil
}

// fetch reads the rows after ids[:from], ids[:from+1] … ids at once.
func (w *Weigher) fetch(ctx context.Context, ids []vocab.ID, from int) error {
	rows, err := w.r.Logits(ctx, ids, from-1)
	if err != nil {
		return err
	}
	for i, logits := range rows {
		w.rows[rowKey(ids[:from+i])] = row{logits, logSumExp(logits)}
	}
	return nil
}

func (w *Weigher) row(ctx context.Context, ids []vocab.ID) (row, error) {
	key := rowKey(ids)
	if _, ok := w.rows[key]; !ok {
		if err := w.fetch(ctx, ids, len(ids)); err != nil {
			return row{}, err
		}
	}
	return w.rows[key], nil
}

func rowKey(ids []vocab.ID) string {
	var b []byte
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return string(b)
}

func logSumExp(row []float32) float64 {
	m := float64(slices.Max(row))
	sum := 0.0
	for _, l := range row {
		sum += math.Exp(float64(l) - m)
	}
	return m + math.Log(sum)
}

// logAdd is the logarithm of the sum of the exponentials of two numbers.
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
