package upstream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Health says how endpoints are checked. Its zero value checks.
type Health struct {
	// Path is asked by GET, below the endpoint's base path; an endpoint is
	// well if it answers 2xx. "": /health, where any status below 500 will do:
	// hosted services have no such path, and yet they answer.
	Path     string
	Interval time.Duration // 0: 5 seconds; negative: no checks
	Timeout  time.Duration // of one check; 0: 2 seconds
	// Failures in a row make an endpoint unhealthy, Successes in a row healthy
	// again; 0: 2. The first check decides alone.
	Failures, Successes int

	// Admit, if not nil, is asked of an endpoint that answers its checks again,
	// before it is used again; an error keeps it out until the next check. Lost,
	// if not nil, is told of one that does not answer them any more. Both run
	// beside requests, and hold up the checks of that endpoint only.
	Admit func(ctx context.Context, endpoint *url.URL) error
	Lost  func(endpoint *url.URL)

	lenient bool
}

func (h Health) withDefaults() Health {
	if h.Path == "" {
		h.Path, h.lenient = "/health", true
	}
	if h.Interval == 0 {
		h.Interval = 5 * time.Second
	}
	if h.Timeout <= 0 {
		h.Timeout = 2 * time.Second
	}
	if h.Failures <= 0 {
		h.Failures = 2
	}
	if h.Successes <= 0 {
		h.Successes = 2
	}
	return h
}

// startChecks starts a goroutine for each endpoint. Close ends them.
func (p *Pool) startChecks() {
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	if p.cfg.Health.Interval < 0 {
		return
	}
	for _, e := range p.endpoints {
		p.checks.Go(func() { p.keepChecking(ctx, e) })
	}
}

// keepChecking checks an endpoint at once and then at every interval, each
// shifted by up to a tenth so that the checks of many endpoints spread.
func (p *Pool) keepChecking(ctx context.Context, e *endpoint) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := p.check(ctx, e)
		if err == nil {
			err = p.admit(ctx, e)
		}
		if ctx.Err() != nil {
			return
		}
		p.noteCheck(e, err)
		interval := p.cfg.Health.Interval
		timer.Reset(interval - interval/10 + rand.N(interval/5+1))
	}
}

// admit asks whether an endpoint that is well again may be used again.
func (p *Pool) admit(ctx context.Context, e *endpoint) error {
	p.mu.Lock()
	out := !e.healthy
	p.mu.Unlock()
	if !out || p.cfg.Health.Admit == nil {
		return nil
	}
	return p.cfg.Health.Admit(ctx, e.copyURL())
}

// check asks an endpoint for its health.
func (p *Pool) check(ctx context.Context, e *endpoint) error {
	h := p.cfg.Health
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	path, query, _ := strings.Cut(h.Path, "?")
	to, err := e.resolve(&url.URL{Path: path, RawQuery: query})
	if err != nil {
		return err
	}
	req := (&http.Request{Method: http.MethodGet, URL: to, Header: http.Header{"User-Agent": {"unfray"}}}).WithContext(ctx)
	resp, err := p.prober.RoundTrip(req)
	if err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			return fmt.Errorf("no answer within %v", h.Timeout)
		}
		return err
	}
	resp.Body.Close()
	if resp.StatusCode/100 == 2 || h.lenient && resp.StatusCode < 500 {
		return nil
	}
	return fmt.Errorf("status %d", resp.StatusCode)
}

// noteCheck takes the result of a check into the endpoint's state.
func (p *Pool) noteCheck(e *endpoint, err error) {
	p.mu.Lock()
	first := e.checked.IsZero()
	e.checked = time.Now()
	if err != nil {
		e.lastError = "health check: " + clip(err.Error())
	}
	well := err == nil
	changed := false
	if well == e.healthy {
		e.streak = 0
	} else {
		e.streak++
		needed := p.cfg.Health.Failures
		if well {
			needed = p.cfg.Health.Successes
		}
		if changed = first || e.streak >= needed; changed {
			e.healthy, e.streak = well, 0
		}
	}
	p.mu.Unlock()
	switch {
	case changed && well:
		p.cfg.Log.Info("upstream endpoint is healthy", "endpoint", e.name)
	case changed:
		if lost := p.cfg.Health.Lost; lost != nil {
			lost(e.copyURL())
		}
		p.cfg.Log.Warn("upstream endpoint is unhealthy", "endpoint", e.name, "reason", clip(err.Error()))
	}
}
