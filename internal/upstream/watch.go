package upstream

import (
	"sync"
	"time"
)

// A watch limits the waits of one try: first for the response's headers, then
// for each next part of its body. Its timer is set again only when it fires,
// so that a wait costs no more than a lock and a look at the clock.
type watch struct {
	firstByte, idle time.Duration
	expire          func(error) // called once, when a wait has passed its limit

	mu       sync.Mutex
	phase    Phase
	waiting  bool
	deadline time.Time // of the wait
	timer    *time.Timer
	wake     time.Time // when the timer fires; zero: it is not set
	expired  error     // what expire was called with
	ended    bool
}

// enter begins a phase. Waiting for headers begins with it.
func (w *watch) enter(phase Phase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = phase
	w.waiting = false
	if phase == PhaseHeaders {
		w.begin()
	}
}

// wait begins a wait, if the try is still in this phase.
func (w *watch) wait(phase Phase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase == phase {
		w.begin()
	}
}

// rest ends a wait.
func (w *watch) rest(phase Phase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase == phase {
		w.waiting = false
	}
}

func (w *watch) begin() {
	limit := w.limit()
	if limit <= 0 || w.ended || w.expired != nil {
		return
	}
	w.waiting = true
	w.deadline = time.Now().Add(limit)
	if w.wake.IsZero() || w.deadline.Before(w.wake) {
		w.set(w.deadline, limit)
	}
}

func (w *watch) limit() time.Duration {
	if w.phase == PhaseHeaders {
		return w.firstByte
	}
	return w.idle
}

func (w *watch) set(at time.Time, in time.Duration) {
	w.wake = at
	if w.timer == nil {
		w.timer = time.AfterFunc(in, w.fire)
	} else {
		w.timer.Reset(in)
	}
}

func (w *watch) fire() {
	w.mu.Lock()
	w.wake = time.Time{}
	if w.ended || !w.waiting {
		w.mu.Unlock()
		return
	}
	if left := time.Until(w.deadline); left > 0 {
		w.set(w.deadline, left)
		w.mu.Unlock()
		return
	}
	w.waiting = false
	w.expired = &timeoutError{w.phase, w.limit()}
	err := w.expired
	w.mu.Unlock()
	w.expire(err)
}

// state returns the phase and, once a limit has passed, the error.
func (w *watch) state() (Phase, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.phase, w.expired
}

// end stops the timer for good.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.waiting = false
	if w.timer != nil {
		w.timer.Stop()
	}
}
