package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/unfray/unfray/vocab"
)

// scheduler shares the decoder among tasks: continuous batching. Every step
// has one token of each generating task and, in what is left of the batch,
// pieces of the prompts of the others.
type scheduler struct {
	dec     decoder
	cache   *cache
	lim     limits
	waiting []*task // by arrival
	active  []*task // by arrival; each has a sequence
	over    []*task // ended, their readers not told yet
	totals  Stats   // only the totals are used
	plan    []share
	batch   []entry
}

// share is a task's part of a decode step.
type share struct {
	task    *task
	tokens  int
	outputs int // the last tokens that want their logits
}

// worthWaiting is how many tokens of prefill a task must save to wait until
// another's prompt, which begins the same, has been evaluated.
const worthWaiting = 8

// headroom is how many tokens a task must be able to generate at once when it
// is admitted, lest it be sent back after a step or two.
const headroom = 32

func byArrival(a, b *task) int { return cmp.Compare(a.arrival, b.arrival) }

// finish takes an active task out of its sequence, whose tokens stay.
func (s *scheduler) finish(t *task) {
	s.detach(t)
	s.over = append(s.over, t)
}

func (s *scheduler) detach(t *task) {
	t.seq.task, t.seq.used = nil, s.cache.tick()
	t.seq = nil
	s.active = slices.DeleteFunc(s.active, func(o *task) bool { return o == t })
}

// dropGivenUp ends the tasks that nobody waits for any more.
func (s *scheduler) dropGivenUp() {
	for _, t := range slices.Clone(s.active) {
		if t.err = t.stream.givenUp(); t.err != nil {
			s.finish(t)
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(t *task) bool {
		if t.err = t.stream.givenUp(); t.err != nil {
			s.over = append(s.over, t)
		}
		return t.err != nil
	})
}

// abandon ends every task with err.
func (s *scheduler) abandon(err error) {
	for _, t := range slices.Clone(s.active) {
		t.err = err
		s.finish(t)
	}
	for _, t := range s.waiting {
		t.err = err
	}
	s.over = append(s.over, s.waiting...)
	s.waiting = nil
}

// admit moves waiting tasks into idle sequences, in order of arrival: one that
// does not fit holds up those behind it, one that waits for another's prefill
// does not. With no task active the first always fits.
func (s *scheduler) admit() {
	for i := 0; i < len(s.waiting) && len(s.active) < s.lim.sequences; {
		t := s.waiting[i]
		reusable := t.reusable()
		p := s.cache.place(t.ids, len(reusable))
		if s.prefillUnderWay(t, reusable) >= p.reused+worthWaiting {
			i++
			continue
		}
		fresh := len(t.ids) - p.reused + min(headroom, s.lim.context-len(t.ids))
		if s.cache.busyCells(p.src, p.reused)+fresh > s.lim.cells {
			return
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.start(t, p)
	}
}

// prefillUnderWay returns the most tokens of ids that an earlier task's prompt
// begins with and that are being evaluated. Only earlier ones count, so
// waiting for them ends.
func (s *scheduler) prefillUnderWay(t *task, ids []vocab.ID) int {
	most := 0
	for _, o := range s.active {
		if o.arrival < t.arrival && o.remaining() > 1 {
			most = max(most, vocab.CommonPrefix(o.ids, ids))
		}
	}
	return most
}

func (s *scheduler) start(t *task, p placement) {
	reused := s.cache.occupy(p)
	t.seq, p.dst.task, p.dst.prompt = p.dst, t, t.prompt
	if t.started.IsZero() {
		t.started, t.cached = time.Now(), reused
		s.totals.PromptTokens += uint64(t.prompt)
		s.totals.CachedTokens += uint64(reused)
	}
	at, _ := slices.BinarySearchFunc(s.active, t, byArrival)
	s.active = slices.Insert(s.active, at, t)
}

// step runs one decode and hands out its results.
func (s *scheduler) step(eog vocab.Mask) {
	s.divide()
	s.makeRoom()
	s.batch = s.batch[:0]
	for _, sh := range s.plan {
		s.fill(sh)
	}
	if len(s.batch) == 0 {
		return
	}
	err := s.dec.decode(s.batch)
	s.totals.Decodes++
	at := 0
	for _, sh := range s.plan {
		sh.task.passes++
		at += sh.tokens
		switch {
		case err != nil:
			s.cache.truncate(sh.task.seq, 0)
			sh.task.err = err
			s.finish(sh.task)
		case sh.outputs > 0:
			s.deliver(sh, at-sh.outputs, eog)
		}
	}
}

// divide plans the step: a token for each generating task, and the rest of
// the batch in equal parts among the prompts, where short ones leave what
// they do not need to long ones. The plan is in order of arrival.
func (s *scheduler) divide() {
	s.plan = s.plan[:0]
	tokens, outputs := s.lim.batch, s.lim.outputs
	var prompts []*task
	for _, t := range s.active {
		if t.remaining() > 1 {
			prompts = append(prompts, t)
			continue
		}
		s.plan = append(s.plan, share{t, 1, 1})
		tokens--
		outputs--
	}
	slices.SortStableFunc(prompts, func(a, b *task) int { return cmp.Compare(a.remaining(), b.remaining()) })
	for i, t := range prompts {
		n := min(t.remaining(), (tokens+len(prompts)-i-1)/(len(prompts)-i))
		// Rows are wanted from firstRow on; the step must not have too many.
		first := t.firstRow() - len(t.seq.tokens)
		n = min(n, first+outputs)
		if t.remaining()-n == 1 && n > 1 {
			n-- // see [task.reusable]
		}
		if n <= 0 {
			continue
		}
		rows := max(0, n-first)
		s.plan = append(s.plan, share{t, n, rows})
		tokens -= n
		outputs -= rows
	}
	slices.SortFunc(s.plan, func(a, b share) int { return byArrival(a.task, b.task) })
}

// makeRoom sees to it that there are cells for the whole plan. It evicts idle
// sequences first, then sends tasks back to the queue, latest first. The
// earliest can always go on: cells hold at least one full context.
func (s *scheduler) makeRoom() {
	need := 0
	for _, sh := range s.plan {
		need += sh.tokens
	}
	for need > len(s.cache.free) {
		if s.cache.evict() {
			continue
		}
		last := s.active[len(s.active)-1]
		if i := slices.IndexFunc(s.plan, func(sh share) bool { return sh.task == last }); i >= 0 {
			need -= s.plan[i].tokens
			s.plan = slices.Delete(s.plan, i, i+1)
		}
		s.detach(last)
		at, _ := slices.BinarySearchFunc(s.waiting, last, byArrival)
		s.waiting = slices.Insert(s.waiting, at, last)
		s.totals.Preemptions++
	}
}

// fill appends a share's tokens to the batch and takes cells for them.
func (s *scheduler) fill(sh share) {
	seq := sh.task.seq
	from := len(seq.tokens)
	ids := sh.task.ids[from : from+sh.tokens]
	for i, id := range ids {
		s.batch = append(s.batch, entry{
			id: id, pos: int32(from + i), seq: int32(seq.num),
			output: i >= sh.tokens-sh.outputs,
		})
	}
	s.cache.extend(seq, ids)
}

// deliver gives a task its rows of logits, the first of which is that of the
// i-th entry of the batch.
func (s *scheduler) deliver(sh share, i int, eog vocab.Mask) {
	t := sh.task
	for range sh.outputs {
		row, err := s.dec.row(i)
		if err != nil {
			t.err = err
			s.finish(t)
			return
		}
		i++
		if t.req == nil {
			t.rows = append(t.rows, slices.Clone(row))
			if len(t.seq.tokens) == len(t.ids) && t.from+len(t.rows) == len(t.ids) {
				s.finish(t)
			}
			continue
		}
		before, over := t.made, false
		if t.choice != nil {
			over = s.choose(t, row, eog)
		} else {
			over = t.advance(row, eog, s.lim.context)
		}
		s.totals.GeneratedTokens += uint64(t.made - before)
		if over {
			s.finish(t)
		}
	}
}
