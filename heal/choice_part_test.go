package heal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// partRow gives the n largest log-probabilities of a row and bounds what else
// matters by the least of them.
func (c *toyCase) partRow(ch *Choice, path []vocab.ID, n int) (row []float32, known []bool) {
	full := c.row(path)
	norm := logSumExp(full, 1)
	ids := make([]int, len(full))
	for i := range ids {
		ids[i] = i
	}
	slices.SortFunc(ids, func(a, b int) int { return cmp.Compare(full[b], full[a]) })
	row, known = make([]float32, len(full)), make([]bool, len(full))
	for i := range row {
		row[i] = float32(math.Inf(-1))
	}
	least := 0.0
	for _, id := range ids[:min(n, len(ids))] {
		least = float64(full[id]) - norm
		row[id], known[id] = float32(least), true
	}
	for _, id := range ch.Matters(path) {
		if !known[id] {
			row[id] = float32(least)
		}
	}
	return row, known
}

// Rows that are known in part lead to the same choice once those are completed
// from which a bound was chosen.
func TestPartsAreEnough(t *testing.T) {
	incomplete := 0
	for _, c := range toyCases(t, 400) {
		_, want, _ := c.choose(t, Sampling{}, nil, true)
		detail := map[string]int{}
		ch := c.plan.NewChoice(Sampling{}, nil)
		got, ok := c.chooseByParts(ch, detail)
		for range 100 {
			if ok {
				break
			}
			incomplete++
			ch.Reset()
			got, ok = c.chooseByParts(ch, detail)
		}
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("%q: by parts %v, by rows %v", c.text, got, want)
		}
	}
	if incomplete == 0 {
		t.Error("no row was ever too short")
	}
}

// chooseByParts is false if a bound was chosen; detail, by path, then asks for
// more of that row.
func (c *toyCase) chooseByParts(ch *Choice, detail map[string]int) (path []vocab.ID, ok bool) {
	knowns := map[string][]bool{}
	part := func(path []vocab.ID) {
		key := fmt.Sprint(path)
		row, known := c.partRow(ch, path, max(2, detail[key]))
		knowns[key] = known
		ch.Part(path, row)
	}
	for i := range c.plan.Trunk {
		part(c.plan.Trunk[:i])
	}
	for {
		path, done, err := ch.Next(nil)
		if err != nil {
			return nil, false
		}
		if !done {
			part(path)
			continue
		}
		for i, id := range path {
			if key := fmt.Sprint(path[:i]); !knowns[key][id] {
				detail[key] = max(2, detail[key]) * 2
				return nil, false
			}
		}
		return path, true
	}
}
