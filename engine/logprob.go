package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// logprobs returns the log-probability of id by the model's own distribution,
// and those of the top likeliest tokens, likeliest first.
func logprobs(row []float32, id vocab.ID, top int) (float64, []backend.Logprob) {
	norm := logSumExp(row)
	best := largest(row, top)
	list := make([]backend.Logprob, len(best))
	for i, c := range best {
		list[i] = backend.Logprob{ID: c.id, Logprob: float64(c.logit) - norm}
	}
	return float64(row[id]) - norm, list
}

// logSumExp is the logarithm of the sum of the exponentials of row.
func logSumExp(row []float32) float64 {
	m := float64(slices.Max(row))
	sum := 0.0
	for _, l := range row {
		sum += math.Exp(float64(l) - m)
	}
	return m + math.Log(sum)
}

// largest returns the n largest logits, largest first, lowest ID first among
// equals. It keeps the best so far in a buffer of 2n and halves it when full,
// so time is linear in the row for small n.
func largest(row []float32, n int) []candidate {
	n = min(n, len(row))
	if n <= 0 {
		return nil
	}
	order := func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.logit, a.logit), cmp.Compare(a.id, b.id))
	}
	best := make([]candidate, 0, min(2*n, len(row)))
	// Once n are known, a later one must exceed the least of them: among
	// equals the earlier wins.
	floor, full := float32(0), false
	for i, l := range row {
		if full && l <= floor {
			continue
		}
		best = append(best, candidate{vocab.ID(i), l})
		if len(best) == cap(best) && len(best) > n {
			slices.SortFunc(best, order)
			best = best[:n]
			floor, full = best[n-1].logit, true
		}
	}
	slices.SortFunc(best, order)
	return best[:min(n, len(best))]
}
