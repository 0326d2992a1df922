package upstream

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// A try is one exchange with one endpoint.
type try struct {
	pool   *Pool
	e      *endpoint
	caller context.Context
	cancel context.CancelCauseFunc
	watch  watch
	body   *upload // nil: the request has none
	over   atomic.Bool
}

// send makes a try at an endpoint that acquire returned. It ends the try
// unless it returns a response; then the end of the response's body does.
func (p *Pool) send(req *http.Request, e *endpoint, body *upload) (*http.Response, *Error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	t := &try{pool: p, e: e, caller: req.Context(), cancel: cancel, body: body}
	t.watch.firstByte, t.watch.idle = p.cfg.FirstByteTimeout, p.cfg.IdleTimeout
	t.watch.expire = func(err error) { cancel(err) }
	t.watch.phase = PhaseRequest

	out, err := t.request(ctx, req)
	if err != nil {
		return nil, t.fail(PhaseRequest, err)
	}
	resp, err := p.transport.RoundTrip(out)
	if err != nil {
		phase, _ := t.watch.state()
		return nil, t.fail(phase, err)
	}
	t.watch.enter(PhaseBody)
	if _, expired := t.watch.state(); expired != nil {
		resp.Body.Close()
		return nil, t.fail(PhaseHeaders, expired)
	}
	resp.Request = req
	t.attach(resp)
	return resp, nil
}

// request returns what goes to the transport: the caller's request, addressed
// to the endpoint, its waits watched.
func (t *try) request(ctx context.Context, req *http.Request) (*http.Request, error) {
	// Requests are sent again inside the transport too, where a connection
	// was found closed before a byte of them was written; the phases follow.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.watch.enter(PhaseConnect) },
		GotConn: func(httptrace.GotConnInfo) { t.watch.enter(PhaseHeaders) },
		// Maybe late, when the response is there already.
		WroteRequest: func(httptrace.WroteRequestInfo) { t.watch.wait(PhaseHeaders) },
	})
	out := req.WithContext(ctx)
	to, err := t.e.resolve(req.URL)
	if err != nil {
		return nil, err
	}
	out.URL = to
	out.Host = ""
	if _, ok := req.Header["User-Agent"]; !ok {
		// A key without values keeps net/http from writing its own.
		out.Header = maps.Clone(req.Header)
		if out.Header == nil {
			out.Header = http.Header{}
		}
		out.Header["User-Agent"] = nil
	}
	if t.body == nil {
		return out, nil
	}
	if out.Body, err = t.body.open(t); err != nil {
		return nil, err
	}
	return out, nil
}

// fail ends the try and says whose failure it was.
func (t *try) fail(phase Phase, err error) *Error {
	failure := t.blame(phase, err)
	t.end()
	if why := failure.fault(); why != "" {
		t.pool.failure(t.e, why)
	}
	return failure
}

// blame makes the error for a failure in a phase: of a limit that passed, of
// the caller that left, of the body that the caller gave, or of the endpoint.
func (t *try) blame(phase Phase, err error) *Error {
	if _, expired := t.watch.state(); expired != nil {
		return &Error{Endpoint: t.e.name, Phase: phase, Err: expired}
	}
	if t.caller.Err() != nil {
		return callerError(t.e.name, phase, t.caller)
	}
	if t.body != nil {
		if cause := t.body.failure(); cause != nil && phase != PhaseBody {
			return &Error{Endpoint: t.e.name, Phase: PhaseRequest, Err: cause}
		}
	}
	return endpointError(t.e.name, phase, err)
}

// end releases what the try holds. Only the first call counts.
func (t *try) end() {
	if t.over.Swap(true) {
		return
	}
	t.watch.end()
	t.cancel(nil)
	t.pool.release(t.e)
}

// attach makes the response's body end the try, and takes its status into the
// endpoint's state.
func (t *try) attach(resp *http.Response) {
	good := true
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		good = false
		t.pool.failure(t.e, "answered "+clip(resp.Status))
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		t.end()
		if good {
			t.pool.success(t.e)
		}
		return
	}
	d := &download{t: t, src: resp.Body, good: good}
	if w, ok := resp.Body.(io.Writer); ok { // 101 Switching Protocols
		resp.Body = &tunnel{d, w}
		return
	}
	resp.Body = d
}

// download is the body of a response.
type download struct {
	t      *try
	src    io.ReadCloser
	good   bool // the response speaks for the endpoint
	closed atomic.Bool
}

func (d *download) Read(p []byte) (int, error) {
	t := d.t
	t.watch.wait(PhaseBody)
	n, err := d.src.Read(p)
	t.watch.rest(PhaseBody)
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF:
		if !t.over.Load() {
			t.end()
			if d.good {
				t.pool.success(t.e)
			}
		}
		return n, io.EOF
	case d.closed.Load():
		return n, err
	}
	failure := t.blame(PhaseBody, err)
	if why := failure.fault(); why != "" && !t.over.Load() {
		t.pool.failure(t.e, why)
	}
	t.end()
	return n, failure
}

// Close ends the try. What is unread is lost, and with it the connection.
func (d *download) Close() error {
	d.closed.Store(true)
	err := d.src.Close()
	d.t.end()
	return err
}

// tunnel is the body of a response that switched protocols: a connection,
// whose silence has no limit here.
type tunnel struct {
	d *download
	w io.Writer
}

func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.d.src.Read(p)
	if err != nil {
		t.d.t.end()
	}
	return n, err
}

func (t *tunnel) Write(p []byte) (int, error) { return t.w.Write(p) }

func (t *tunnel) Close() error { return t.d.Close() }

var errNoReplay = errors.New("the request's body cannot be sent twice")
