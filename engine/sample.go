package engine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

var (
	errEmptyMask = errors.New("engine: the mask allows no token")
	errNaN       = fmt.Errorf("%w: the logits are not numbers", backend.ErrEngine)
	errNoToken   = fmt.Errorf("%w: every token that is allowed has probability zero", backend.ErrEngine)
)

// defaultRepeatLastN is the window of the repeat penalty in tokens, as in llama.cpp.
const defaultRepeatLastN = 64

// candidate is a token that may be drawn.
type candidate struct {
	id    vocab.ID
	logit float32
}

// sampler chooses the tokens of one request. Its order of steps is llama.cpp's:
// mask and bias, penalties, top-k, top-p, min-p, temperature, draw. So top-p
// and min-p cut the distribution before the temperature flattens it.
type sampler struct {
	params backend.Sampling
	rng    *rand.Rand
	bias   []candidate      // LogitBias; the logit is what to add
	counts map[vocab.ID]int // of generated tokens, where a penalty needs them

	saved []candidate // logits to put back after a step, oldest first
	cands []candidate
	exps  []float64
}

// checkSampling rejects what cannot be sampled with.
func checkSampling(s *backend.Sampling, vocabSize int) error {
	for _, f := range []struct {
		name        string
		value       float64
		least, most float64
	}{
		{"temperature", s.Temperature, 0, math.MaxFloat64},
		{"top_p", s.TopP, 0, 1},
		{"min_p", s.MinP, 0, 1},
		{"repeat_penalty", s.RepeatPenalty, 0, 1e6},
		{"frequency_penalty", s.FrequencyPenalty, -1e6, 1e6},
		{"presence_penalty", s.PresencePenalty, -1e6, 1e6},
	} {
		if !(f.value >= f.least && f.value <= f.most) { // NaN too
			return fmt.Errorf("engine: %s is %v; give a number from %v to %v", f.name, f.value, f.least, f.most)
		}
	}
	for id, b := range s.LogitBias {
		if id < 0 || int(id) >= vocabSize {
			return &backend.InvalidTokenError{ID: id, Position: -1, VocabSize: vocabSize}
		}
		if math.IsNaN(b) || b > 1e30 {
			return fmt.Errorf("engine: logit_bias of token %d is %v; give a number up to 1e30", id, b)
		}
	}
	return nil
}

func newSampler(s backend.Sampling) *sampler {
	sm := &sampler{params: s}
	if s.Temperature > 0 {
		// The second word of the state is a constant of PCG's own reference code.
		if s.Seed != nil {
			sm.rng = rand.New(rand.NewPCG(*s.Seed, 0xda3e39cb94b95bdb))
		} else {
			sm.rng = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		}
	}
	for id, b := range s.LogitBias {
		sm.bias = append(sm.bias, candidate{id, float32(b)})
	}
	if s.FrequencyPenalty != 0 || s.PresencePenalty != 0 {
		sm.counts = make(map[vocab.ID]int)
	}
	return sm
}

// accept tells the sampler which token became part of the continuation.
func (s *sampler) accept(id vocab.ID) {
	if s.counts != nil {
		s.counts[id]++
	}
}

// adjusted calls f with a row in which bias and penalties are applied, as they
// stand once the tokens of path, the last of ids, are generated.
func (s *sampler) adjusted(row []float32, ids, path []vocab.ID, f func()) {
	if s.counts != nil {
		counts := maps.Clone(s.counts)
		for _, id := range path {
			s.counts[id]++
		}
		defer func() { s.counts = counts }()
	}
	s.adjust(row, ids)
	defer s.restore(row)
	f()
}

// sample chooses the token that follows ids, the prompt included. It writes
// to row but leaves it as it was.
func (s *sampler) sample(row []float32, mask vocab.Mask, ids []vocab.ID) (vocab.ID, error) {
	if mask != nil && mask.Empty() {
		return vocab.None, errEmptyMask
	}
	s.adjust(row, ids)
	defer s.restore(row)
	if s.params.Temperature <= 0 || s.params.TopK == 1 {
		return argmax(row, mask)
	}
	if err := s.collect(row, mask); err != nil {
		return vocab.None, err
	}
	s.cut()
	return s.draw(), nil
}

// adjust applies bias and penalties, which touch few tokens, in place.
func (s *sampler) adjust(row []float32, ids []vocab.ID) {
	s.saved = s.saved[:0]
	for _, b := range s.bias {
		s.save(row, b.id)
		row[b.id] += b.logit
	}
	if r := float32(s.params.RepeatPenalty); r != 0 && r != 1 {
		for _, id := range s.window(ids) {
			s.save(row, id)
			if row[id] > 0 {
				row[id] /= r
			} else {
				row[id] *= r
			}
		}
	}
	for id, n := range s.counts {
		s.save(row, id)
		row[id] -= float32(float64(n)*s.params.FrequencyPenalty + s.params.PresencePenalty)
	}
}

// window returns the different tokens among the last RepeatLastN.
func (s *sampler) window(ids []vocab.ID) []vocab.ID {
	n := s.params.RepeatLastN
	switch {
	case n == 0:
		n = defaultRepeatLastN
	case n < 0:
		n = len(ids)
	}
	w := slices.Clone(ids[max(0, len(ids)-n):])
	slices.Sort(w)
	return slices.Compact(w)
}

func (s *sampler) save(row []float32, id vocab.ID) {
	s.saved = append(s.saved, candidate{id, row[id]})
}

func (s *sampler) restore(row []float32) {
	for _, c := range slices.Backward(s.saved) {
		row[c.id] = c.logit
	}
}

// argmax returns the likeliest allowed token, the lowest ID among equals.
func argmax(row []float32, mask vocab.Mask) (vocab.ID, error) {
	best, top := vocab.None, float32(math.Inf(-1))
	if mask == nil {
		for i, l := range row {
			if !(l <= top) { // greater, or NaN: one comparison for both
				if l != l {
					return vocab.None, errNaN
				}
				best, top = vocab.ID(i), l
			}
		}
	} else {
		for w, word := range mask[:min(len(mask), (len(row)+31)/32)] {
			for ; word != 0; word &= word - 1 {
				i := w*32 + bits.TrailingZeros32(word)
				if i >= len(row) {
					break
				}
				if l := row[i]; !(l <= top) {
					if l != l {
						return vocab.None, errNaN
					}
					best, top = vocab.ID(i), l
				}
			}
		}
	}
	if best == vocab.None {
		return vocab.None, errNoToken
	}
	return best, nil
}

// collect fills cands with the allowed tokens of finite logit, in ID order.
func (s *sampler) collect(row []float32, mask vocab.Mask) error {
	s.cands = s.cands[:0]
	least := float32(math.Inf(-1))
	bad := false
	if mask == nil {
		for i, l := range row {
			if l > least {
				s.cands = append(s.cands, candidate{vocab.ID(i), l})
			} else if l != l {
				bad = true
			}
		}
	} else {
		for w, word := range mask[:min(len(mask), (len(row)+31)/32)] {
			for ; word != 0; word &= word - 1 {
				i := w*32 + bits.TrailingZeros32(word)
				if i >= len(row) {
					break
				}
				if l := row[i]; l > least {
					s.cands = append(s.cands, candidate{vocab.ID(i), l})
				} else if l != l {
					bad = true
				}
			}
		}
	}
	for _, c := range s.cands {
		bad = bad || c.logit > math.MaxFloat32
	}
	switch {
	case bad:
		return errNaN
	case len(s.cands) == 0:
		return errNoToken
	}
	return nil
}

// cut applies top-k, top-p and min-p. With top-k or top-p the candidates come
// out likeliest first, else they stay in ID order.
func (s *sampler) cut() {
	k, p := s.params.TopK, s.params.TopP
	if k <= 0 || k > len(s.cands) {
		k = len(s.cands)
	}
	if nucleus := p > 0 && p < 1; nucleus || k < len(s.cands) {
		if !nucleus {
			p = 1
		}
		s.keepLikeliest(k, p)
	}
	if s.params.MinP > 0 {
		least := float64(s.maxLogit()) + math.Log(s.params.MinP)
		s.cands = slices.DeleteFunc(s.cands, func(c candidate) bool { return float64(c.logit) < least })
	}
}

// keepLikeliest keeps the k likeliest candidates, likeliest first, and of
// those only as many as have p of their probability together. A heap finds
// them without sorting the rest.
func (s *sampler) keepLikeliest(k int, p float64) {
	h := likeliest(s.cands)
	h.init()
	most := float64(h[0].logit)
	weight := func(c candidate) float64 { return math.Exp(float64(c.logit) - most) }
	// With top-k, p is of the mass of the k, which is known only at the end.
	limit := math.Inf(1)
	if p < 1 && k == len(s.cands) {
		limit = p * sumOf(s.cands, weight)
	}
	n := 0
	for mass := 0.0; n < k && mass < limit; n++ {
		if h = h.pop(); limit < math.Inf(1) {
			mass += weight(s.cands[len(h)])
		}
	}
	// pop moved them to the end of the slice, likeliest last.
	kept := s.cands[len(h):]
	slices.Reverse(kept)
	if p < 1 && k < len(s.cands) {
		limit = p * sumOf(kept, weight)
		n = 0
		for mass := 0.0; n < len(kept) && mass < limit; n++ {
			mass += weight(kept[n])
		}
	}
	s.cands = s.cands[:copy(s.cands, kept[:n])]
}

func sumOf(cs []candidate, weight func(candidate) float64) float64 {
	sum := 0.0
	for _, c := range cs {
		sum += weight(c)
	}
	return sum
}

func (s *sampler) maxLogit() float32 {
	m := s.cands[0].logit
	for _, c := range s.cands {
		m = max(m, c.logit)
	}
	return m
}

// draw picks one of cands in proportion to exp(logit/temperature).
func (s *sampler) draw() vocab.ID {
	m, t := float64(s.maxLogit()), s.params.Temperature
	s.exps = slices.Grow(s.exps[:0], len(s.cands))[:len(s.cands)]
	sum := 0.0
	for i, c := range s.cands {
		e := math.Exp((float64(c.logit) - m) / t)
		s.exps[i] = e
		sum += e
	}
	x := s.rng.Float64() * sum
	last := 0
	for i, e := range s.exps {
		if e == 0 {
			continue
		}
		last = i
		if x -= e; x < 0 {
			break
		}
	}
	return s.cands[last].id
}

// likeliest is a heap with the likeliest candidate on top, the lowest ID among
// equals. It stands for container/heap, whose calls through an interface cost
// more than the comparisons.
type likeliest []candidate

func (h likeliest) before(i, j int) bool {
	return h[i].logit > h[j].logit || h[i].logit == h[j].logit && h[i].id < h[j].id
}

func (h likeliest) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// pop swaps the top with the last and returns the heap without it.
func (h likeliest) pop() likeliest {
	n := len(h) - 1
	h[0], h[n] = h[n], h[0]
	h = h[:n]
	h.down(0)
	return h
}

func (h likeliest) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h.before(right, child) {
			child = right
		}
		if !h.before(child, i) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
