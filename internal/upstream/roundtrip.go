package upstream

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// retryPause is waited, give or take a half, before the only endpoint is tried
// again.
const retryPause = 100 * time.Millisecond

// RoundTrip sends a request to an endpoint. Of the request's URL only path and
// query count, and its Host does not. The response is the endpoint's, as it
// is, whatever its status; its body must be closed. Errors are of type
// [*Error].
func (p *Pool) RoundTrip(req *http.Request) (*http.Response, error) {
	body := newUpload(req)
	defer body.settle()
	if err := checkRequest(req); err != nil {
		return nil, &Error{Phase: PhaseRequest, Err: err}
	}
	var room [64]uint64
	var prefixes []uint64
	if p.affinity != nil {
		if key, ok := req.Context().Value(keyContext{}).([]byte); ok {
			prefixes = p.affinity.prefixes(room[:0], key)
		}
	}
	e, err := p.acquire(prefixes, nil, reachAny)
	if err != nil {
		return nil, &Error{Phase: PhaseRequest, Err: err}
	}
	return p.run(req, e, body, prefixes)
}

// run makes the first try at e and those that may follow.
func (p *Pool) run(req *http.Request, e *endpoint, body *upload, prefixes []uint64) (*http.Response, error) {
	var tried []*endpoint
	var refusal *http.Response // a 503, returned unless a better response comes
	for {
		resp, failure := p.send(req, e, body)
		var next *endpoint
		if len(tried) < p.cfg.Retries && body.replayable() && req.Context().Err() == nil {
			tried = append(tried, e)
			next = p.another(req.Context(), prefixes, tried, resp, failure)
		}
		if refusal != nil && resp != nil {
			refusal.Body.Close()
			refusal = nil
		}
		if next == nil {
			switch {
			case failure == nil:
				return resp, nil
			case refusal != nil && !failure.caller:
				return refusal, nil
			case refusal != nil:
				refusal.Body.Close()
			}
			return nil, failure
		}
		p.cfg.Log.Debug("upstream request is sent again", "from", e.name, "to", next.name, "attempt", len(tried)+1)
		refusal = cmp.Or(resp, refusal)
		e = next
	}
}

// another returns the endpoint for the next try, nil for none. It waits before
// it returns one that failed already.
func (p *Pool) another(ctx context.Context, prefixes []uint64, tried []*endpoint, resp *http.Response, failure *Error) *endpoint {
	var next *endpoint
	switch {
	case resp != nil && resp.StatusCode == http.StatusServiceUnavailable:
		next, _ = p.acquire(prefixes, tried, reachUsable)
	case failure != nil && failure.Phase == PhaseConnect && !failure.caller:
		next, _ = p.acquire(prefixes, tried, reachAny)
		if next == nil && len(p.endpoints) == 1 && len(tried) == 1 && pause(ctx, retryPause) {
			next, _ = p.acquire(prefixes, nil, reachAny)
		}
	}
	return next
}

// pause waits for about d. It reports false if the context ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// checkRequest refuses what cannot be sent to any endpoint.
func checkRequest(req *http.Request) error {
	switch {
	case req.URL == nil:
		return errors.New("the request has no URL")
	case req.Method == http.MethodConnect:
		return errors.New("method CONNECT: an upstream is no proxy")
	}
	return nil
}
