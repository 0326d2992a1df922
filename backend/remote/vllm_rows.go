package remote

import (
	"context"
	"math"
	"slices"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

const (
	// maxNamed is how many log-probabilities vLLM gives by ID.
	maxNamed = 128
	// someTop and moreTop are how many alternatives are asked for where the
	// server has no limit of its own.
	someTop, moreTop = 64, 2048
	// ignored is the share of a set's probability at which its rest is left out.
	ignored = 1e-4
)

// rows implements engine. A row costs one request, and only those that turn out
// to be needed in more detail cost more.
func (v *VLLM) rows(ctx context.Context, c *call, asked rowsAsked) ([]*partRow, answered, error) {
	told := answered{slot: -1}
	rows := make([]*partRow, 0, len(asked.path)+1)
	for i := range len(asked.path) + 1 {
		r := &rowReader{v: v, ctx: ctx, req: c.req, ids: slices.Concat(c.ids, asked.path[:i]), told: &told}
		if asked.matters != nil {
			r.matters = asked.matters[i]
		}
		row, err := r.read(asked.detail)
		if err != nil {
			return nil, told, err
		}
		rows = append(rows, row)
	}
	return rows, told, nil
}

// rowReader reads one row.
type rowReader struct {
	v       *VLLM
	ctx     context.Context
	req     *backend.Request
	ids     []vocab.ID // the row is of what follows them
	matters []vocab.ID // nil: all
	told    *answered
}

func (r *rowReader) read(d detail) (*partRow, error) {
	size := r.v.vocab.Len()
	switch all := r.v.inspection.Logprobs < 0; {
	case d == someValues || r.matters == nil:
		return r.some(d)
	case all && d == moreValues:
		top, _, err := r.ask(moreTop, nil, nil)
		return newPartRow(top, nil, size, d), err
	case all:
		top, _, err := r.ask(size, nil, nil)
		return newPartRow(top, nil, size, d), err
	case d == moreValues:
		return r.ofSet(1, d)
	}
	return r.ofSet(maxNamed/max(1, r.most(maxNamed)), d)
}

// most is how many alternatives may be asked for, n at most.
func (r *rowReader) most(n int) int {
	if m := r.v.inspection.Logprobs; m >= 0 {
		n = min(n, m)
	}
	return min(n, r.v.vocab.Len())
}

// some reads the likeliest tokens, or the tokens that matter if they are few.
func (r *rowReader) some(d detail) (*partRow, error) {
	n := r.most(someTop)
	// At a temperature other than 1 the sum of all values is needed, to which the
	// likeliest contribute most.
	t := r.req.Sampling.Temperature
	sum := t > 0 && t != 1
	if len(r.matters) > 0 && len(r.matters) <= maxNamed && r.req.TopLogprobs <= 1 && !sum {
		// With IDs named the likeliest token comes beside them, no other.
		top, named, err := r.ask(1, r.matters, nil)
		return newPartRow(top, named, r.v.vocab.Len(), d), err
	}
	top, _, err := r.ask(max(n, r.req.TopLogprobs), nil, nil)
	if err != nil || len(r.matters) > maxNamed || len(r.matters) == 0 || d != someValues {
		return newPartRow(top, nil, r.v.vocab.Len(), d), err
	}
	_, others, err := r.ask(1, r.matters, nil)
	return newPartRow(top, others, r.v.vocab.Len(), d), err
}

// ofSet reads the likeliest of the tokens that matter: those that a grammar of
// them lets through, as many at a time as the server gives, in at most rounds
// requests. Their log-probabilities are relative to those of the set and show
// only the order; one request more has the true ones.
func (r *rowReader) ofSet(rounds int, d detail) (*partRow, error) {
	rest, left, least := r.matters, 1.0, math.Inf(-1)
	var found []vocab.ID
	for range rounds {
		if left < ignored || len(rest) == 0 {
			break
		}
		top, _, err := r.ask(r.most(maxNamed), nil, rest)
		if err != nil {
			return nil, err
		}
		share := 0.0
		for _, l := range top {
			if _, ok := slices.BinarySearch(rest, l.ID); ok { // others fill the list up
				found = append(found, l.ID)
				share += math.Exp(l.Logprob)
			}
		}
		left *= max(0, 1-share)
		rest = slices.DeleteFunc(slices.Clone(rest), func(id vocab.ID) bool { return slices.Contains(found, id) })
	}
	found = found[:min(len(found), maxNamed)]
	top, named, err := r.ask(1, found, nil)
	if err != nil {
		return nil, err
	}
	row := newPartRow(top, named, r.v.vocab.Len(), d)
	for _, l := range named {
		if len(found) > 0 && l.ID == found[len(found)-1] {
			least = l.Logprob
		}
	}
	// The last one found was the likeliest of what was left then, or less.
	if !math.IsInf(least, -1) {
		row.bound = min(row.bound, least)
	}
	if t := r.req.Sampling.Temperature; r.req.TopLogprobs > 1 || t > 0 && t != 1 {
		row.top, _, err = r.ask(max(r.req.TopLogprobs, r.most(someTop)), nil, nil)
		for _, l := range row.top {
			row.known[l.ID] = l.Logprob
		}
	}
	return row, err
}

// ask has one token drawn, of set unless that is nil, and returns the n likeliest
// and those named. Without a set all values are the model's own.
func (r *rowReader) ask(n int, named, set []vocab.ID) (top, others []backend.Logprob, err error) {
	b := r.v.plain(r.req, r.ids)
	b["logprobs"] = n
	if named != nil {
		b["logprob_token_ids"] = named
	}
	if set != nil {
		tree := &tokenTree{nodes: []tokenNode{{last: set}}}
		source, err := tree.lark()
		if err != nil {
			return nil, nil, err
		}
		b["structured_outputs"] = map[string]any{"grammar": source}
	}
	// All values are wanted, also where the server gives more than n.
	t, _, a, err := r.v.one(r.ctx, b, true, r.v.vocab.Len())
	r.told.requests += a.requests
	if r.told.requests == 1 {
		r.told.cached = a.cached
	}
	if err != nil {
		return nil, nil, err
	}
	if named == nil {
		return t.Top[:min(n, len(t.Top))], nil, nil
	}
	for _, l := range t.Top {
		if _, ok := slices.BinarySearch(named, l.ID); ok || slices.Contains(named, l.ID) {
			others = append(others, l)
		}
	}
	if len(others) < len(named) {
		return nil, nil, &backend.ProtocolError{Text: "it lacks log-probabilities that were asked for by ID"}
	}
	// The token that was drawn is the likeliest.
	return []backend.Logprob{{ID: t.ID, Logprob: t.Logprob}}, others, nil
}
