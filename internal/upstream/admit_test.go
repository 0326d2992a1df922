package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// An endpoint that was lost is used again only once it is admitted.
func TestAdmit(t *testing.T) {
	var sick, refused atomic.Bool
	var lost, asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if sick.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Endpoints: []*url.URL{at}, Health: Health{
		Interval: 5 * time.Millisecond, Failures: 1, Successes: 1,
		Admit: func(_ context.Context, u *url.URL) error {
			asked.Add(1)
			if u.Host != at.Host {
				t.Errorf("asked about %v", u)
			}
			if refused.Load() {
				return errors.New("it is another one now")
			}
			return nil
		},
		Lost: func(*url.URL) { lost.Add(1) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	until := func(what string, done func() bool) {
		t.Helper()
		for range 1000 {
			if done() {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Fatal("never ", what)
	}
	healthy := func() bool { return p.Status()[0].Healthy }
	until("checked", func() bool { return !p.Status()[0].Checked.IsZero() })
	if asked.Load() != 0 {
		t.Error("an endpoint that was never lost is asked about")
	}
	sick.Store(true)
	until("lost", func() bool { return lost.Load() == 1 && !healthy() })
	refused.Store(true)
	sick.Store(false)
	until("asked about twice", func() bool { return asked.Load() >= 2 })
	if healthy() {
		t.Error("used although it was refused")
	}
	refused.Store(false)
	until("used again", healthy)
	if lost.Load() != 1 {
		t.Errorf("lost %d times", lost.Load())
	}
}
