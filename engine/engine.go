package engine

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

var (
	_ backend.Backend      = (*Engine)(nil)
	_ backend.LogitsReader = (*Engine)(nil)
)

// Engine runs one model in this process. It is made by [Open]. All methods may
// be called from several goroutines.
type Engine struct {
	info backend.Info
	lim  limits
	eog  vocab.Mask // end-of-generation tokens

	wake    chan struct{} // holds a token when the scheduler has news to look at
	stopped chan struct{} // closed when the scheduler has returned

	mu       sync.Mutex
	closed   bool
	inbox    []*task // admitted, not seen by the scheduler yet
	admitted int     // tasks that have not ended, those in inbox included
	arrivals uint64
	service  time.Duration // how long a task runs, a moving average
	stats    Stats

	sched scheduler // the scheduler goroutine's own
}

// Stats are figures about an engine, at the end of a decode step.
type Stats struct {
	Sequences int // how many requests can run at once
	Active    int // requests that run
	Waiting   int // requests that wait for a sequence or for room
	Idle      int // sequences that hold nothing but reusable tokens, or nothing

	Cells     int // tokens that all sequences together can hold
	CellsUsed int // of these, how many are held, the reusable ones included

	// Totals since Open.
	Decodes         uint64 // decode steps
	PromptTokens    uint64 // tokens of prompts that began to run
	CachedTokens    uint64 // of these, how many were found in the cache
	GeneratedTokens uint64
	Preemptions     uint64 // requests sent back to the queue for want of cells
	Evictions       uint64 // idle sequences emptied for want of cells
}

// newEngine starts an engine over dec, which it closes at its end. The info's
// sizes are filled in.
func newEngine(dec decoder, info backend.Info, lim limits, eog vocab.Mask) *Engine {
	info.ContextLength, info.VocabSize = lim.context, lim.vocab
	info.Capabilities = backend.Capabilities{Steer: true, Logprobs: true, Logits: true, Choose: true}
	e := &Engine{
		info: info, lim: lim, eog: eog,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}),
		sched: scheduler{cache: newCache(dec, lim.sequences, lim.cells), dec: dec, lim: lim},
	}
	e.stats = Stats{Sequences: lim.sequences, Idle: lim.sequences, Cells: lim.cells}
	go e.run()
	return e
}

// Info implements [backend.Backend].
func (e *Engine) Info() backend.Info { return e.info }

// Stats returns the figures of the last decode step.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Waiting = e.admitted - s.Active
	return s
}

// Generate implements [backend.Backend].
func (e *Engine) Generate(ctx context.Context, req *backend.Request) (backend.Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := e.checkPrompt(req.Prompt, e.lim.context-1); err != nil {
		return nil, err
	}
	if err := checkSampling(&req.Sampling, e.lim.vocab); err != nil {
		return nil, err
	}
	if req.MaxTokens < 0 || req.TopLogprobs < 0 {
		return nil, fmt.Errorf("engine: max_tokens is %d and top_logprobs %d; neither may be negative", req.MaxTokens, req.TopLogprobs)
	}
	if req.Choose != nil && (req.Keep < 1 || req.Keep >= len(req.Prompt)) {
		return nil, fmt.Errorf("engine: a choice that keeps %d of %d tokens of the prompt; it must keep the first and not the last", req.Keep, len(req.Prompt))
	}
	t := newTask(newStream(ctx, e.signal), req)
	if err := e.admit(t); err != nil {
		return nil, err
	}
	return t.stream, nil
}

// maxLogitsRows bounds the memory of one call of Logits: a row has a float32
// for every token of the vocabulary.
const maxLogitsRows = 1024

// Logits implements [backend.LogitsReader]. One call returns at most 1024 rows.
func (e *Engine) Logits(ctx context.Context, ids []vocab.ID, from int) ([][]float32, error) {
	if err := e.checkPrompt(ids, e.lim.context); err != nil {
		return nil, err
	}
	if from < 0 || from >= len(ids) || len(ids)-from > maxLogitsRows {
		return nil, fmt.Errorf("engine: logits from position %d of %d; ask for the last 1 to %d positions", from, len(ids), min(len(ids), maxLogitsRows))
	}
	t := newLogitsTask(newStream(ctx, e.signal), ids, from)
	if err := e.admit(t); err != nil {
		return nil, err
	}
	defer t.stream.Close()
	if _, err := t.stream.Next(); err != io.EOF {
		return nil, err
	}
	return t.rows, nil
}

// checkPrompt checks what the native library would abort at.
func (e *Engine) checkPrompt(ids []vocab.ID, most int) error {
	if len(ids) == 0 {
		return backend.ErrEmptyPrompt
	}
	if len(ids) > most {
		return &backend.PromptTooLongError{Tokens: len(ids), ContextLength: e.lim.context}
	}
	for i, id := range ids {
		if id < 0 || int(id) >= e.lim.vocab {
			return &backend.InvalidTokenError{ID: id, Position: i, VocabSize: e.lim.vocab}
		}
	}
	return nil
}

// admit queues a task.
func (e *Engine) admit(t *task) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return backend.ErrClosed
	}
	if e.admitted >= e.lim.sequences+e.lim.queue {
		return &backend.QueueFullError{Waiting: e.admitted - e.stats.Active, RetryAfter: e.retryAfter()}
	}
	e.arrivals++
	t.arrival = e.arrivals
	e.admitted++
	e.inbox = append(e.inbox, t)
	e.signal()
	return nil
}

// retryAfter estimates when the next running request ends: the average one
// takes service, and as many run at once as there are sequences.
func (e *Engine) retryAfter() time.Duration {
	d := e.service / time.Duration(max(1, e.stats.Active))
	return min(max(d, time.Second), time.Minute).Round(time.Second)
}

func (e *Engine) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Close implements [backend.Backend].
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.signal()
	<-e.stopped
	return nil
}

// run is the scheduler's goroutine.
func (e *Engine) run() {
	defer close(e.stopped)
	s := &e.sched
	for {
		closed := e.receive()
		if closed {
			s.abandon(backend.ErrClosed)
		}
		s.dropGivenUp()
		s.admit()
		if len(s.active) > 0 {
			s.step(e.eog)
		}
		e.publish()
		if closed {
			s.dec.close()
			return
		}
		if len(s.active) == 0 && len(s.waiting) == 0 {
			<-e.wake
		}
	}
}

// receive takes the inbox over and reports whether the engine was closed,
// after which nothing comes in.
func (e *Engine) receive() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sched.waiting = append(e.sched.waiting, e.inbox...)
	clear(e.inbox)
	e.inbox = e.inbox[:0]
	return e.closed
}

// publish makes the figures visible and then tells the readers of the tasks
// that ended, so that who has seen a stream end sees it in the figures too.
func (e *Engine) publish() {
	s := &e.sched
	e.mu.Lock()
	for _, t := range s.over {
		e.admitted--
		if !t.started.IsZero() {
			took := time.Since(t.started)
			if e.service == 0 {
				e.service = took
			}
			e.service += (took - e.service) / 8
		}
	}
	st := s.totals
	st.Sequences, st.Active, st.Idle = e.lim.sequences, len(s.active), e.lim.sequences-len(s.active)
	st.Cells, st.CellsUsed, st.Evictions = e.lim.cells, s.cache.used(), s.cache.evictions
	e.stats = st
	e.mu.Unlock()
	for _, t := range s.over {
		t.finish()
	}
	clear(s.over)
	s.over = s.over[:0]
}
