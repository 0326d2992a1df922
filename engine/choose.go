package engine

import (
	"slices"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// choice is the state of a task that has a [backend.Chooser] and no answer from
// it yet.
type choice struct {
	chooser backend.Chooser
	keep    int // tokens before what is chosen
	rows    int // rows after Prompt[:keep], … that have come

	last  []float32  // the row after the whole prompt, for when its own tokens are chosen
	asked []vocab.ID // the path that is being evaluated; nil: the prompt is
	raw   []pathRow  // rows as the model gave them, where log-probabilities are wanted
}

type pathRow struct {
	path []vocab.ID
	row  []float32
}

// choose takes a row for a task that has a choice to make, and reports whether
// the task is over.
func (s *scheduler) choose(t *task, row []float32, eog vocab.Mask) (over bool) {
	c := t.choice
	switch at := c.keep + c.rows; {
	case c.asked != nil:
		t.weigh(c.asked, row)
	case at < t.prompt:
		c.rows++
		t.weigh(t.req.Prompt[c.keep:at:at], row)
		return t.err != nil
	default:
		c.rows++
		c.last = slices.Clone(row)
	}
	if t.err != nil {
		return true
	}
	path, done, err := t.next()
	switch {
	case err != nil:
		t.err = err
		return true
	case !done && c.keep+len(path) < s.lim.context:
		c.asked = slices.Clone(path)
		s.rewind(t, slices.Concat(t.req.Prompt[:c.keep], path), false)
		return false
	case !done:
		path = t.req.Prompt[c.keep:] // there is no room to evaluate others
	}
	return s.take(t, path, eog)
}

// take makes a path that was chosen part of the generation.
func (s *scheduler) take(t *task, path []vocab.ID, eog vocab.Mask) (over bool) {
	c := t.choice
	t.choice = nil
	own := slices.Equal(path, t.req.Prompt[c.keep:])
	s.rewind(t, slices.Concat(t.req.Prompt[:c.keep], path), own)
	t.ids = t.ids[:c.keep]
	for i, id := range path {
		tok := backend.Token{ID: id}
		if k := slices.IndexFunc(c.raw, func(r pathRow) bool { return slices.Equal(r.path, path[:i]) }); k >= 0 {
			tok.Logprob, tok.Top = logprobs(c.raw[k].row, id, t.req.TopLogprobs)
		}
		if over := t.append(tok, s.lim.context); over {
			return true
		}
	}
	if own {
		return t.advance(c.last, eog, s.lim.context)
	}
	return false
}

// rewind gives a task other tokens to evaluate. What its sequence has of them
// stays there, but for the last unless its row is known.
func (s *scheduler) rewind(t *task, ids []vocab.ID, known bool) {
	n := vocab.CommonPrefix(t.seq.tokens, ids)
	t.ids = ids
	if !known {
		n = min(n, len(ids)-1)
	}
	s.cache.truncate(t.seq, n)
}

// weigh hands a row to the task's Chooser.
func (t *task) weigh(path []vocab.ID, row []float32) {
	if t.req.Logprobs {
		t.choice.raw = append(t.choice.raw, pathRow{path, slices.Clone(row)})
	}
	ids := slices.Concat(t.req.Prompt[:t.choice.keep], path)
	defer recoverSteer(&t.err)
	t.sampler.adjusted(row, ids, path, func() { t.choice.chooser.Row(path, row) })
}

func (t *task) next() (path []vocab.ID, done bool, err error) {
	defer recoverSteer(&err)
	return t.choice.chooser.Next(t.sampler.rng)
}
