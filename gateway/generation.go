package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
)

// maxParallelChoices is how many continuations of one request run at once, so
// that a request with many does not fill the queue on its own.
const maxParallelChoices = 8

// progress is news of one continuation: a chunk or, at its end, the result.
type progress struct {
	choice int
	chunk  unfray.Chunk
	result *unfray.Result
	err    error
}

// generation runs the continuations of one request.
type generation struct {
	ctx    context.Context
	cancel context.CancelFunc
	job    *job

	next   atomic.Int64 // index of the next choice to start
	news   chan progress
	wg     sync.WaitGroup
	undone int
}

// generate admits the first continuations. An error means that nothing runs.
func generate(ctx context.Context, j *job) (*generation, error) {
	g := &generation{job: j, news: make(chan progress), undone: j.choices()}
	g.ctx, g.cancel = context.WithCancel(ctx)
	var first []*unfray.Stream
	for i := range min(j.choices(), maxParallelChoices) {
		s, err := j.generate(g.ctx, i)
		var full *backend.QueueFullError
		if errors.As(err, &full) && len(first) > 0 {
			break // the workers of those admitted do the rest
		}
		if err != nil {
			g.cancel()
			for _, s := range first {
				s.Close()
			}
			return nil, err
		}
		first = append(first, s)
	}
	g.next.Store(int64(len(first)))
	for i, s := range first {
		g.wg.Go(func() { g.work(i, s) })
	}
	return g, nil
}

// close ends what still runs and waits for it.
func (g *generation) close() {
	g.cancel()
	g.wg.Wait()
}

// wait returns the next news. It returns io.EOF when every continuation has
// ended, and the first error otherwise.
func (g *generation) wait() (progress, error) {
	if g.undone == 0 {
		return progress{}, io.EOF
	}
	select {
	case p := <-g.news:
		if p.result != nil {
			g.undone--
		}
		return p, p.err
	case <-g.ctx.Done():
		return progress{}, g.ctx.Err()
	}
}

// work runs one continuation, then takes over those not yet started.
func (g *generation) work(choice int, s *unfray.Stream) {
	defer func() {
		if p := recover(); p != nil {
			g.tell(progress{err: fmt.Errorf("gateway: panic: %v\n%s", p, debug.Stack())})
		}
	}()
	for {
		if !g.pump(choice, s) {
			return
		}
		choice = int(g.next.Add(1)) - 1
		if choice >= g.job.choices() {
			return
		}
		var err error
		if s, err = g.admit(choice); err != nil {
			g.tell(progress{err: err})
			return
		}
	}
}

// tell hands out news. It is false if the generation is being given up.
func (g *generation) tell(p progress) bool {
	select {
	case g.news <- p:
		return p.err == nil
	case <-g.ctx.Done():
		return false
	}
}

// pump passes a stream on to its end.
func (g *generation) pump(choice int, s *unfray.Stream) bool {
	defer s.Close()
	for {
		chunk, err := s.Next()
		switch {
		case errors.Is(err, io.EOF):
			return g.tell(progress{choice: choice, result: s.Result()})
		case err != nil:
			return g.tell(progress{err: err})
		}
		if !g.tell(progress{choice: choice, chunk: chunk}) {
			return false
		}
	}
}

// admit starts a further continuation, waiting while the queue is full: the
// answer has begun and can no longer be refused.
func (g *generation) admit(choice int) (*unfray.Stream, error) {
	for {
		s, err := g.job.generate(g.ctx, choice)
		var full *backend.QueueFullError
		if !errors.As(err, &full) {
			return s, err
		}
		timer := time.NewTimer(max(full.RetryAfter, 50*time.Millisecond))
		select {
		case <-timer.C:
		case <-g.ctx.Done():
			timer.Stop()
			return nil, g.ctx.Err()
		}
	}
}
