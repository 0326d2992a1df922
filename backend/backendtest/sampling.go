package backendtest

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// newDraw returns the request's own source of randomness.
func newDraw(seed *uint64) *rand.Rand {
	if seed == nil {
		return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	return rand.New(rand.NewPCG(*seed, 0x5eed))
}

type candidate struct {
	id    vocab.ID
	logit float64
}

// choose picks the next token. The mask comes before top-k, so that a narrow
// mask cannot leave top-k empty-handed.
func choose(row []float32, mask vocab.Mask, s *backend.Sampling, ids []vocab.ID, promptLen int, rng *rand.Rand) vocab.ID {
	logits := penalized(row, s, ids, promptLen)
	var cs []candidate
	for i, l := range logits {
		if id := vocab.ID(i); mask == nil || mask.Has(id) {
			cs = append(cs, candidate{id, l})
		}
	}
	slices.SortStableFunc(cs, func(a, b candidate) int { return cmp.Compare(b.logit, a.logit) })
	if s.Temperature <= 0 {
		return cs[0].id
	}
	if s.TopK > 0 && s.TopK < len(cs) {
		cs = cs[:s.TopK]
	}
	p := make([]float64, len(cs))
	sum := 0.0
	for i, c := range cs {
		p[i] = math.Exp((c.logit - cs[0].logit) / s.Temperature)
		sum += p[i]
	}
	cut, kept := 0, 0.0
	for cut < len(cs) {
		if cut > 0 && (p[cut] < s.MinP*p[0] || s.TopP > 0 && s.TopP < 1 && kept >= s.TopP*sum) {
			break
		}
		kept += p[cut]
		cut++
	}
	x := rng.Float64() * kept
	for i := range cut {
		if x -= p[i]; x < 0 {
			return cs[i].id
		}
	}
	return cs[cut-1].id
}

// penalized applies biases and penalties to a copy of row.
func penalized(row []float32, s *backend.Sampling, ids []vocab.ID, promptLen int) []float64 {
	logits := make([]float64, len(row))
	for i, l := range row {
		logits[i] = float64(l)
	}
	if r := s.RepeatPenalty; r != 0 && r != 1 {
		n := s.RepeatLastN
		if n == 0 {
			n = 64
		}
		seen := map[vocab.ID]bool{}
		for _, id := range ids[max(0, len(ids)-n):] {
			if seen[id] {
				continue
			}
			seen[id] = true
			if logits[id] > 0 {
				logits[id] /= r
			} else {
				logits[id] *= r
			}
		}
	}
	count := map[vocab.ID]int{}
	for _, id := range ids[promptLen:] {
		count[id]++
	}
	for id, n := range count {
		logits[id] -= float64(n)*s.FrequencyPenalty + s.PresencePenalty
	}
	for id, b := range s.LogitBias {
		logits[id] += b
	}
	return logits
}

// logprobs returns the log-probability of id by the raw row, and the top ones.
func logprobs(row []float32, id vocab.ID, top int) (float64, []backend.Logprob) {
	norm := logSumExp(row)
	var best []backend.Logprob
	if top > 0 {
		order := make([]vocab.ID, len(row))
		for i := range order {
			order[i] = vocab.ID(i)
		}
		slices.SortStableFunc(order, func(a, b vocab.ID) int { return cmp.Compare(row[b], row[a]) })
		for _, o := range order[:min(top, len(order))] {
			best = append(best, backend.Logprob{ID: o, Logprob: float64(row[o]) - norm})
		}
	}
	return float64(row[id]) - norm, best
}

func logSumExp(row []float32) float64 {
	m := float64(slices.Max(row))
	sum := 0.0
	for _, l := range row {
		sum += math.Exp(float64(l) - m)
	}
	return m + math.Log(sum)
}
