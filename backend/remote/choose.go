package remote

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// detail is how much of a row is asked for.
type detail int

const (
	someValues detail = iota
	moreValues
	allValues
)

// partRow is a row of which some values are known: natural logarithms of
// probabilities, by the model's own distribution.
type partRow struct {
	known map[vocab.ID]float64
	// bound is the largest that a value not known can be.
	bound float64
	// top lists the likeliest tokens, likeliest first, as many as are known to be
	// so.
	top  []backend.Logprob
	most detail // what was asked for
	full bool   // more cannot be had
}

// newPartRow makes a row of the likeliest tokens and of further ones. size is
// that of the vocabulary.
func newPartRow(top, others []backend.Logprob, size int, d detail) *partRow {
	r := &partRow{known: make(map[vocab.ID]float64, len(top)+len(others)), top: top, most: d, bound: 0}
	for _, l := range top {
		r.known[l.ID] = l.Logprob
		r.bound = min(r.bound, l.Logprob)
	}
	for _, l := range others {
		r.known[l.ID] = l.Logprob
	}
	mass := 0.0
	for _, l := range r.known {
		mass += math.Exp(l)
	}
	// What is left of all probability bounds each of the others, too.
	if left := 1 - mass; left < math.Exp(r.bound) {
		r.bound = math.Log(max(left, 1e-12))
	}
	r.full = len(r.known) >= size || d >= allValues
	return r
}

// rowsAsked says which rows are wanted, and how well they have to be known.
type rowsAsked struct {
	path   []vocab.ID
	detail detail
	// matters lists, for each row, the tokens that it is looked at for, ascending.
	// nil: all of the vocabulary.
	matters [][]vocab.ID
}

// checkChoice refuses choices that cannot be made.
func checkChoice(req *backend.Request) error {
	switch s := &req.Sampling; {
	case req.Keep < 1 || req.Keep >= len(req.Prompt):
		return fmt.Errorf("remote: a choice that keeps %d of %d tokens of the prompt; at least one must stay and one must go", req.Keep, len(req.Prompt))
	case req.Grammar != nil:
		return &backend.UnsupportedError{Param: "grammar", Text: "a server reads a grammar from its beginning, which a choice among tokens may have passed; heal with stable"}
	case req.Replay != nil:
		return &backend.UnsupportedError{Param: "prompt", Text: "a choice and a replay exclude each other"}
	case len(s.LogitBias) > 0:
		return plainOnly("logit_bias")
	case s.RepeatPenalty != 0 && s.RepeatPenalty != 1:
		return plainOnly("repeat_penalty")
	case s.FrequencyPenalty != 0:
		return plainOnly("frequency_penalty")
	case s.PresencePenalty != 0:
		return plainOnly("presence_penalty")
	}
	return nil
}

func plainOnly(param string) error {
	return &backend.UnsupportedError{Param: param, Text: "the server's probabilities are the model's own; a choice by them cannot heed it; heal with stable"}
}

// pcgStream is the second word of the state of a seed's generator, as the
// engine in process has it.
const pcgStream = 0xda3e39cb94b95bdb

// chooseDraw returns the source of a choice's draws, from the beginning.
func chooseDraw(s *backend.Sampling, fresh uint64) *rand.Rand {
	switch {
	case s.Temperature <= 0:
		return nil
	case s.Seed != nil:
		return rand.New(rand.NewPCG(*s.Seed, pcgStream))
	}
	return rand.New(rand.NewPCG(fresh, pcgStream))
}

// choice makes the choice of one generation.
type choice struct {
	g    *generation
	part backend.PartChooser // nil: whole rows are wanted

	rows  map[string]*partRow
	order []string // keys of rows, beginnings first
	paths map[string][]vocab.ID
	fresh uint64
}

// choose asks the request's Chooser, and makes the tokens that it chose the
// first of the generation.
func (g *generation) choose() error {
	keep := g.req.Keep
	g.ids = g.ids[:keep:keep]
	c := &choice{g: g, rows: map[string]*partRow{}, paths: map[string][]vocab.ID{}, fresh: rand.Uint64()}
	c.part, _ = g.req.Choose.(backend.PartChooser)
	path, err := c.run()
	if err != nil {
		return err
	}
	for i, id := range path {
		if !g.server.vocab.Valid(id) {
			return fmt.Errorf("remote: token %d was chosen, which is none of the vocabulary", id)
		}
		tok := backend.Token{ID: id}
		if r := c.rows[pathKey(path[:i])]; g.req.Logprobs && r != nil {
			if l, known := r.known[id]; known {
				tok.Logprob = l
			} else {
				tok.Logprob = math.Inf(-1)
			}
			tok.Top = r.top[:min(len(r.top), g.req.TopLogprobs)]
		}
		g.ready = append(g.ready, tok)
	}
	return nil
}

func pathKey(path []vocab.ID) string {
	var b []byte
	for _, id := range path {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return string(b)
}

// run returns the path that is chosen.
func (c *choice) run() ([]vocab.ID, error) {
	trunk := c.g.req.Prompt[c.g.req.Keep:]
	if err := c.fetch(trunk[:len(trunk)-1], 0); err != nil {
		return nil, err
	}
	if c.part == nil {
		return c.attempt()
	}
	for {
		c.part.Reset()
		path, err := c.attempt()
		if err != nil {
			return nil, err
		}
		rough := c.rough(path)
		if rough < 0 {
			return path, nil
		}
		if err := c.refine(path[:rough]); err != nil {
			return nil, err
		}
	}
}

// attempt makes the choice from the rows at hand, and gets those that it asks
// for besides.
func (c *choice) attempt() ([]vocab.ID, error) {
	for _, key := range c.order {
		if err := c.give(key); err != nil {
			return nil, err
		}
	}
	rng := chooseDraw(&c.g.req.Sampling, c.fresh)
	for {
		path, done, err := c.g.req.Choose.Next(rng)
		if err != nil {
			return nil, err
		}
		if done {
			return slices.Clone(path), nil
		}
		if n := c.g.server.info.ContextLength; n > 0 && c.g.req.Keep+len(path) >= n {
			return c.g.req.Prompt[c.g.req.Keep:], nil // there is no room to evaluate others
		}
		key := pathKey(path)
		if c.rows[key] != nil {
			return nil, fmt.Errorf("remote: the same row is asked for twice in a choice, of a path of %d tokens", len(path))
		}
		path = slices.Clone(path)
		if err := c.fetch(path, len(path)); err != nil {
			return nil, err
		}
		if err := c.give(key); err != nil {
			return nil, err
		}
	}
}

// fetch gets the rows after path[:from], …, path.
func (c *choice) fetch(path []vocab.ID, from int) error {
	d := someValues
	if c.part == nil {
		d = allValues
	}
	rows, err := c.ask(path, from, d)
	if err != nil {
		return err
	}
	for i, row := range rows {
		p := path[: from+i : from+i]
		key := pathKey(p)
		c.rows[key], c.paths[key] = row, p
		c.order = append(c.order, key)
	}
	return nil
}

func (c *choice) ask(path []vocab.ID, from int, d detail) ([]*partRow, error) {
	g := c.g
	call := g.call()
	call.ids = slices.Concat(g.req.Prompt[:g.req.Keep], path[:from])
	asked := rowsAsked{path: path[from:], detail: d}
	for n := from; n <= len(path) && c.part != nil; n++ {
		asked.matters = append(asked.matters, c.part.Matters(path[:n:n]))
	}
	rows, a, err := g.server.engine.rows(g.ctx, call, asked)
	g.add(a)
	if err != nil {
		return nil, err
	}
	if len(rows) != len(path)-from+1 {
		return nil, &backend.ProtocolError{Text: fmt.Sprintf("it has %d rows of log-probabilities, not %d", len(rows), len(path)-from+1)}
	}
	return rows, nil
}

// refine gets a row again in more detail.
func (c *choice) refine(path []vocab.ID) error {
	key := pathKey(path)
	most := c.rows[key].most + 1
	rows, err := c.ask(path, len(path), most)
	if err != nil {
		return err
	}
	c.rows[key] = rows[0]
	rows[0].most = most
	rows[0].full = rows[0].full || most >= allValues
	return nil
}

// rough returns how many tokens of path lead to a row that is known too roughly
// to have chosen the next of them, or negative.
func (c *choice) rough(path []vocab.ID) int {
	for i, id := range path {
		r := c.rows[pathKey(path[:i])]
		if r == nil || r.full {
			continue
		}
		if _, known := r.known[id]; !known {
			return i
		}
	}
	return -1
}

// negligible is how much of what a draw is made from may be known by a bound
// only.
const negligible = 1e-3

// give hands a row to the Chooser: what is not known of it at its bound.
func (c *choice) give(key string) error {
	path := c.paths[key]
	row := make([]float32, c.g.server.vocab.Len())
	for i := range row {
		row[i] = float32(math.Inf(-1))
	}
	if c.part == nil {
		for id, l := range c.rows[key].known {
			row[id] = float32(l)
		}
		c.g.req.Choose.Row(path, row)
		return nil
	}
	matters := c.part.Matters(path)
	for c.g.req.Sampling.Temperature > 0 && !c.rows[key].full && c.rows[key].unknown(matters) > negligible {
		if err := c.refine(path); err != nil {
			return err
		}
	}
	r := c.rows[key]
	for id, l := range r.known {
		row[id] = float32(l)
	}
	for _, id := range matters {
		if _, known := r.known[id]; !known && !r.full {
			row[id] = float32(r.bound)
		}
	}
	c.part.Part(path, row)
	return nil
}

// unknown is what the values not known of some tokens may weigh at most,
// relative to those known.
func (r *partRow) unknown(ids []vocab.ID) float64 {
	known, others := 0.0, 0
	for _, id := range ids {
		if l, ok := r.known[id]; ok {
			known += math.Exp(l)
		} else {
			others++
		}
	}
	if others == 0 {
		return 0
	}
	return float64(others) * math.Exp(r.bound) / known
}
