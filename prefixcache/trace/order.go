package trace

import (
	"container/heap"
	"fmt"
	"io"
	"time"
)

// maxHeld is how many bytes of requests are held back, about. Beyond it the first
// of them is handed out, and what belongs before that is bad.
const maxHeld = 1 << 30

// A queue holds requests back until none can come that belongs before them.
type queue struct {
	held  heldRequests
	bytes int // of them, about
	room  int // bytes that may be held; see maxHeld
	count int // of all requests, to keep equal times in order
	ended bool

	timed  bool          // requests have times; known from the first
	newest time.Duration // of the times seen
	given  bool          // a request was handed out
	first  time.Duration // its time
	last   time.Duration // of the one handed out last, as the trace tells it
}

type heldRequest struct {
	*Request
	number int
}

type heldRequests []heldRequest

func (h heldRequests) Len() int { return len(h) }
func (h heldRequests) Less(i, j int) bool {
	return h[i].At < h[j].At || h[i].At == h[j].At && h[i].number < h[j].number
}
func (h heldRequests) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *heldRequests) Push(x any) { *h = append(*h, x.(heldRequest)) }

// Pop implements [heap.Interface].
func (h *heldRequests) Pop() any {
	old := *h
	n := len(old) - 1
	x := old[n]
	old[n] = heldRequest{}
	*h = old[:n]
	return x
}

// ordered returns the next request in the order of times, its own counted from
// the first.
func (r *Reader) ordered() (*Request, error) {
	o := &r.queue
	for {
		if len(o.held) > 0 && (o.ended || o.newest-o.held[0].At >= r.reorder() || o.bytes > o.room) {
			q := heap.Pop(&o.held).(heldRequest).Request
			o.bytes -= q.size()
			return o.give(q), nil
		}
		if o.ended {
			return nil, io.EOF
		}
		q, err := r.inOrder()
		if err == io.EOF {
			o.ended = true
			continue
		}
		if err != nil {
			return nil, err
		}
		if r.clock(q); r.s.err != nil {
			if err := r.bad(r.placed(r.s.err)); err != nil {
				return nil, err
			}
			continue
		}
		if r.reorder() == 0 || !o.timed {
			return o.give(q), nil
		}
		o.bytes += q.size()
		heap.Push(&o.held, heldRequest{q.Clone(), o.count})
	}
}

func (r *Reader) reorder() time.Duration {
	if r.opt.Reorder == 0 && r.f != nil {
		return r.f.reorder
	}
	return r.opt.Reorder
}

// clock checks the time of a request that comes next in the trace.
func (r *Reader) clock(q *Request) {
	o := &r.queue
	has := r.timeAt >= 0
	least := max(o.last, o.newest-r.reorder())
	if o.count == 0 {
		o.timed = has
	}
	switch back := has && q.At < least; {
	case r.opt.LaxClock && (has != o.timed || back):
		r.stats.Redated++
		switch {
		case !o.timed:
			q.At = 0
		case back:
			q.At = least
		default:
			q.At = o.newest
		}
	case has && !o.timed:
		r.s.fail(r.timeAt, Content, "a request with a time in a trace whose first request has none")
	case !has && o.timed:
		r.s.fail(0, Missing, "a request without a time in a trace whose first request has one")
	case back:
		text := fmt.Sprintf("the clock runs back by %s", o.newest-q.At)
		switch {
		case q.At < o.newest-r.reorder() && r.reorder() > 0:
			text += fmt.Sprintf(", more than the %s that requests may be out of order", r.reorder())
		case r.reorder() > 0:
			text += fmt.Sprintf(", over more than the %d bytes of requests that are held back to be sorted", o.room)
		}
		r.s.fail(r.timeAt, Clock, text+": sort the trace, or allow more")
	}
	if r.s.err == nil {
		o.count++
		o.newest = max(o.newest, q.At)
	}
}

// give counts the time of q from the first request.
func (o *queue) give(q *Request) *Request {
	if !o.given {
		o.given, o.first = true, q.At
	}
	o.last = q.At
	q.At -= o.first
	return q
}

// size is about the memory that a copy of q takes, in bytes.
func (q *Request) size() int {
	return 512 + 8*len(q.Blocks) + 4*(len(q.IDs)+len(q.OutputIDs)) + len(q.Text) + len(q.Output) + len(q.Messages) + len(q.Tools) + 48*len(q.Keys.Media)
}
