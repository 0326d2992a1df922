package extract

import (
	"cmp"
	"slices"
)

// Rank returns the candidates, the likeliest to be the answer first. What counts is
// in this order:
//
//  1. the cost: how badly a candidate fits what was asked for, such as a JSON Schema,
//     by a function of the caller's; smaller is better, nil is none;
//  2. that it holds something, and is meant as JSON: not Placeholder, not Doubtful;
//  3. that it is not a part of another one;
//  4. that it is complete, else that it is closed;
//  5. where it is: the whole text, a fence, prose, code, reasoning;
//  6. objects before arrays before scalars;
//  7. that it is not much smaller (less than a quarter) than the largest one;
//  8. that it comes first; in reasoning that never ends, that it comes last.
//
// Two that differ in the last place alone may both be meant, as calls of two tools
// are.
func Rank(candidates []Candidate, cost func(Candidate) float64) []Candidate {
	largest := 0
	for _, c := range candidates {
		largest = max(largest, c.End-c.Start)
	}
	type ranked struct {
		cost float64
		c    Candidate
	}
	all := make([]ranked, len(candidates))
	for i, c := range candidates {
		all[i].c = c
		if cost != nil {
			all[i].cost = cost(c)
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(
			cmp.Compare(a.cost, b.cost),
			boolean(a.c.Placeholder || a.c.Doubtful, b.c.Placeholder || b.c.Doubtful),
			boolean(a.c.Inside, b.c.Inside),
			boolean(!a.c.Complete, !b.c.Complete),
			boolean(!a.c.Closed, !b.c.Closed),
			cmp.Compare(a.c.Where, b.c.Where),
			cmp.Compare(a.c.Type, b.c.Type),
			boolean(4*(a.c.End-a.c.Start) < largest, 4*(b.c.End-b.c.Start) < largest),
			a.c.order()-b.c.order(),
		)
	})
	out := make([]Candidate, len(all))
	for i, r := range all {
		out[i] = r.c
	}
	return out
}

// order is the place of a candidate among its equals.
func (c Candidate) order() int {
	if c.Where == InReasoning {
		return -c.Index
	}
	return c.Index
}

// boolean orders false before true.
func boolean(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
