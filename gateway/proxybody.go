package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// clientBody is the body of a request that is passed on while it comes. A
// client has Config.ReadTimeout to send it, not counting the time in which the
// upstream takes none of it.
type clientBody struct {
	p       *passage
	src     io.ReadCloser
	trailer http.Header // of the request that goes out; nil if it has none
	asks    bool        // the client waits to be told to continue

	ended    atomic.Bool           // all of it was read
	failure  atomic.Pointer[error] // why the client's side failed
	stopping atomic.Bool

	mu      sync.Mutex // held while reading
	left    time.Duration
	stopped bool
}

func newClientBody(p *passage, trailer http.Header) *clientBody {
	r := p.x.r
	return &clientBody{
		p: p, src: http.MaxBytesReader(p.x.w, r.Body, p.g.cfg.MaxBodyBytes), trailer: trailer,
		asks: r.ProtoAtLeast(1, 1) && hasToken(r.Header["Expect"], "100-continue"),
		left: p.g.cfg.ReadTimeout,
	}
}

var errBodyStopped = errors.New("gateway: the answer came before the end of the request")

// Read implements [io.Reader].
func (b *clientBody) Read(buf []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped || b.asks && !b.proceed() {
		return 0, errBodyStopped
	}
	b.asks = false
	start := time.Now()
	http.NewResponseController(b.p.x.w).SetReadDeadline(start.Add(b.left))
	if b.stopping.Load() { // stop's deadline may have been before this one
		return 0, errBodyStopped
	}
	n, err := b.src.Read(buf)
	b.left -= time.Since(start)
	switch {
	case err == io.EOF:
		if b.trailer != nil {
			for name, values := range b.p.x.r.Trailer {
				if mayTrail(name) {
					b.trailer[name] = values
				}
			}
		}
		b.ended.Store(true)
	case err != nil && !b.stopping.Load():
		b.failure.Store(&err)
	}
	return n, err
}

// proceed tells the client to send its body, unless the answer is known. Left
// to itself net/http would write this at any time, also amid other 1xx.
func (b *clientBody) proceed() bool {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	if b.p.answered {
		return false
	}
	b.p.g.limitWrite(b.p.x)
	b.p.x.w.WriteHeader(http.StatusContinue)
	return true
}

// Close implements [io.Closer]. The server closes what it reads from.
func (b *clientBody) Close() error { return nil }

// stop makes sure that nothing reads from the client any more.
func (b *clientBody) stop() {
	control := http.NewResponseController(b.p.x.w)
	b.stopping.Store(true)
	if !b.mu.TryLock() {
		if !b.ended.Load() {
			control.SetReadDeadline(time.Unix(1, 0))
		}
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	b.stopped = true
	if !b.ended.Load() {
		// The server reads a little more, so that the client reads the answer.
		control.SetReadDeadline(time.Now().Add(max(b.left, 0)))
	}
}

// clientBodyError is the error for a request that did not arrive whole.
func clientBodyError(err error) error {
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &apiError{
			status: http.StatusRequestTimeout, kind: kindInvalid, code: "request_timeout", cause: err,
			message: "the request body did not arrive in time",
		}
	}
	return &apiError{
		status: http.StatusBadRequest, kind: kindInvalid, cause: err,
		message: "the request body could not be read to its end",
	}
}
