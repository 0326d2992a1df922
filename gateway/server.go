package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// closeGrace is how long the last bytes of answers may take once nothing
// generates any more.
const closeGrace = 5 * time.Second

// Serve answers requests from the listeners until ctx ends, then drains: /readyz turns
// 503, new generations are refused, running ones may finish within
// Config.DrainTimeout and are canceled after it. Health and models are served
// meanwhile. Serve closes the listeners. It returns nil after a drain, and an
// error only if a listener failed. It can be called once.
func (g *Gateway) Serve(ctx context.Context, listeners ...net.Listener) error {
	// Requests outlive ctx: canceling it must not cut them off.
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(errDraining)
	srv := &http.Server{
		Handler:           g,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: g.cfg.ReadTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(g.cfg.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, len(listeners))
	for _, ln := range listeners {
		go func() { failed <- srv.Serve(ln) }()
	}
	select {
	case err := <-failed:
		srv.Close()
		for range len(listeners) - 1 {
			<-failed
		}
		return err
	case <-ctx.Done():
	}

	g.drain(cancel)
	stop, done := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer done()
	err := srv.Shutdown(stop)
	if err != nil {
		srv.Close()
	}
	for range listeners {
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
	}
	return nil
}

// drain refuses new generations and waits for the running ones, which it
// cancels after the drain timeout.
func (g *Gateway) drain(cancel context.CancelCauseFunc) {
	g.mu.Lock()
	g.draining = true
	active := g.active
	if active == 0 {
		close(g.idle)
	}
	g.mu.Unlock()
	g.cfg.Log.Info("draining", "running", active)
	timer := time.NewTimer(max(g.cfg.DrainTimeout, 0))
	defer timer.Stop()
	select {
	case <-g.idle:
	case <-timer.C:
		cancel(errDraining)
		select {
		case <-g.idle:
		case <-time.After(closeGrace):
			g.cfg.Log.Error("a model does not stop its requests; leaving them")
		}
	}
}

// begin counts a request that generates; it fails while draining. The caller
// calls end once nothing of it runs any more.
func (g *Gateway) begin() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining {
		return errDraining
	}
	g.active++
	return nil
}

func (g *Gateway) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.active--; g.draining && g.active == 0 {
		close(g.idle)
	}
}
