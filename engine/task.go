package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// task is an admitted request. It runs in a sequence once there is room; taken
// out of it, it can go on in another: ids is all the state the model needs.
type task struct {
	arrival uint64
	stream  *stream
	ids     []vocab.ID // prompt, then what was generated
	prompt  int        // tokens of the prompt

	// Of a request for tokens.
	req     *backend.Request
	sampler *sampler
	counted int     // generated tokens that MaxTokens counts
	made    int     // generated tokens
	choice  *choice // nil: there is nothing to choose (any more)

	// Of a request for logits (req is nil): rows from..len(ids)-1.
	from int
	rows [][]float32

	seq     *sequence // nil: waiting
	cached  int       // tokens of the prompt that were found, at first
	passes  int       // decode calls
	started time.Time // zero: never ran
	end     backend.End
	err     error
}

func newTask(s *stream, req *backend.Request) *task {
	t := &task{
		stream: s, req: req, sampler: newSampler(req.Sampling),
		ids: slices.Clone(req.Prompt), prompt: len(req.Prompt),
		end: backend.End{EndToken: vocab.None},
	}
	if req.Choose != nil {
		t.choice = &choice{chooser: req.Choose, keep: req.Keep}
	}
	return t
}

func newLogitsTask(s *stream, ids []vocab.ID, from int) *task {
	return &task{stream: s, ids: slices.Clone(ids), prompt: len(ids), from: from, end: backend.End{EndToken: vocab.None}}
}

// firstRow is the first position whose logits are still to come.
func (t *task) firstRow() int {
	switch {
	case t.req == nil:
		return t.from + len(t.rows)
	case t.choice != nil && t.choice.asked == nil:
		return t.choice.keep - 1 + t.choice.rows
	}
	return len(t.ids) - 1
}

// reusable is the part of ids that may be taken from the cache: not what
// gives wanted logits, and not the token before it. A single token is computed
// by other kernels than several, which round differently; two make a prompt
// that comes again give exactly the logits of the first time.
func (t *task) reusable() []vocab.ID { return t.ids[:max(0, t.firstRow()-1)] }

// remaining is how many tokens are to be evaluated before the task can go on:
// one while it generates.
func (t *task) remaining() int { return len(t.ids) - len(t.seq.tokens) }

// finish tells the reader that the task is over.
func (t *task) finish() {
	t.end.CachedTokens, t.end.ForwardPasses = t.cached, t.passes
	t.stream.finish(t.end, t.err)
}

// advance takes the logits after the last token and reports whether the task
// is over: t.err and t.end say how.
func (t *task) advance(row []float32, eog vocab.Mask, limit int) (over bool) {
	mask, err := t.mask()
	if err != nil {
		t.err = err
		return true
	}
	id, err := t.sampler.sample(row, mask, t.ids)
	if err != nil {
		t.err = err
		return true
	}
	if eog.Has(id) {
		t.end.Reason, t.end.EndToken = backend.FinishStop, id
		return true
	}
	tok := backend.Token{ID: id}
	if t.req.Logprobs {
		tok.Logprob, tok.Top = logprobs(row, id, t.req.TopLogprobs)
	}
	return t.append(tok, limit)
}

// append takes a token into the generation and reports whether the task is
// over.
func (t *task) append(tok backend.Token, limit int) (over bool) {
	verdict, err := t.accept(tok.ID)
	if err != nil {
		t.err = err
		return true
	}
	t.sampler.accept(tok.ID)
	t.ids = append(t.ids, tok.ID)
	t.made++
	if !verdict.Uncounted {
		t.counted++
	}
	t.stream.put(tok, t.cached, t.passes)
	switch {
	case verdict.Stop:
		t.end.Reason = backend.FinishStop
	case t.req.MaxTokens > 0 && t.counted >= t.req.MaxTokens, len(t.ids) >= limit:
		t.end.Reason = backend.FinishLength
	default:
		return false
	}
	return true
}

// mask asks the request's Steer, whose panic must not reach other requests.
func (t *task) mask() (m vocab.Mask, err error) {
	if t.req.Steer == nil {
		return nil, nil
	}
	defer recoverSteer(&err)
	return t.req.Steer.Mask(), nil
}

func (t *task) accept(id vocab.ID) (v backend.Verdict, err error) {
	if t.req.Steer == nil {
		return v, nil
	}
	defer recoverSteer(&err)
	return t.req.Steer.Accept(id), nil
}

func recoverSteer(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("engine: the request's Steer or Chooser panicked: %v", r)
	}
}
