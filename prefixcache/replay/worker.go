package replay

import (
	"container/heap"
	"errors"
	"time"

	"github.com/unfray/unfray/prefixcache"
)

// A worker is one engine.
type worker struct {
	cache     prefixcache.Cache
	unlimited prefixcache.Cache // nil: loss is not told apart, or all share one
	running   queue
	free      time.Duration // when the last request began
	sent      int64         // tokens
	requests  int           // sent
	evictions int64         // when last asked
}

// A running request ends, as time is modelled, at a moment; of equal ones the
// one that began first ends first.
type running struct {
	*job
	lease, worker, all prefixcache.Lease
	end                time.Duration
	order              int64
}

// A queue holds running requests, the one that ends first at the front.
type queue struct {
	items []running
	order int64
}

func (q *queue) len() int { return len(q.items) }

func (q *queue) push(r running) {
	q.order++
	r.order = q.order
	heap.Push((*queueHeap)(q), r)
}

func (q *queue) pop() running { return heap.Pop((*queueHeap)(q)).(running) }

type queueHeap queue

func (q *queueHeap) Len() int { return len(q.items) }
func (q *queueHeap) Less(i, j int) bool {
	a, b := &q.items[i], &q.items[j]
	return a.end < b.end || a.end == b.end && a.order < b.order
}
func (q *queueHeap) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *queueHeap) Push(x any)    { q.items = append(q.items, x.(running)) }
func (q *queueHeap) Pop() any {
	last := q.items[len(q.items)-1]
	q.items[len(q.items)-1] = running{}
	q.items = q.items[:len(q.items)-1]
	return last
}

// admit begins a job on a worker's cache at the earliest at a moment, and says
// when. Requests that stand in the way end first; a prompt that does not fit
// when none runs is too large.
func (p *player) admit(w *worker, j *job, at time.Duration) (prefixcache.Lease, time.Duration, error) {
	at = max(at, w.free)
	p.endUntil(w, at)
	for {
		lease, err := j.begin(w.cache)
		if !errors.Is(err, prefixcache.ErrNoRoom) {
			return lease, at, err
		}
		if w.running.len() == 0 {
			return lease, at, prefixcache.ErrTooLarge
		}
		r := w.running.pop()
		at = max(at, r.end)
		p.end(w, r)
	}
}

// endUntil ends the requests of a worker that end by a moment; those of a
// replay without times all end at 0, and are ended to keep to its concurrency.
func (p *player) endUntil(w *worker, at time.Duration) {
	for w.running.len() > 0 {
		if p.opt.Timing != nil && w.running.items[0].end > at || p.opt.Timing == nil && w.running.len() < max(p.opt.Concurrency, 1) {
			return
		}
		p.end(w, w.running.pop())
	}
}

// end gives back what a request held and enters its output.
func (p *player) end(w *worker, r running) {
	w.cache.End(r.lease, r.output)
	if w.unlimited != nil {
		w.unlimited.End(r.worker, r.output)
	}
	if p.unlimited != nil {
		p.unlimited.End(r.all, r.output)
		if r.blocks == nil && len(r.output) > 0 {
			p.account.add(&r.Keys, r.Prompt, r.output)
		}
	}
}

// ends says when a request that begins at a moment ends.
func (t *Timing) ends(at time.Duration, j *job, cached int) time.Duration {
	out := j.generated
	if out < 0 {
		out = t.Output
	}
	s := float64(max(j.tokens-cached, 0))/t.Prefill + float64(out)/t.Decode
	const longest = 1 << 60 // nanoseconds, 36 years
	if d := s * float64(time.Second); d < longest-float64(at) {
		return at + time.Duration(d)
	}
	return longest
}
