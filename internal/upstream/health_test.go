package upstream

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// healthServer answers health checks by a status that can be changed, and
// requests by its name.
func healthServer(t *testing.T, name string) (u *url.URL, health *atomic.Int32, served *atomic.Int32) {
	t.Helper()
	health, served = new(atomic.Int32), new(atomic.Int32)
	health.Store(200)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/health" {
			served.Add(1)
			io.WriteString(w, name)
			return
		}
		w.WriteHeader(int(health.Load()))
	}))
	t.Cleanup(ts.Close)
	return parse(t, ts.URL+"/base"), health, served
}

// fast checks often enough for a test.
func fast(cfg Config) Config {
	cfg.Health = Health{Interval: 10 * time.Millisecond, Timeout: 5 * time.Second}
	return cfg
}

func healthy(p *Pool, i int) func() bool { return func() bool { return p.Status()[i].Healthy } }

func not(f func() bool) func() bool { return func() bool { return !f() } }

// A sick endpoint gets no requests until it is well again; where all are sick,
// all are tried.
func TestHealthChecks(t *testing.T) {
	a, healthA, servedA := healthServer(t, "a")
	b, healthB, servedB := healthServer(t, "b")
	p := open(t, fast(quiet(a, b)))
	answers := func() map[string]bool {
		seen := map[string]bool{}
		for range 8 {
			body, err := ask(p, post(t, t.Context(), "/", "x"))
			if err != nil {
				t.Fatal(err)
			}
			seen[body] = true
		}
		return seen
	}
	if got := answers(); !got["a"] || !got["b"] {
		t.Errorf("both are healthy: answers of %v", got)
	}
	for _, sick := range []int32{500, 503} {
		healthA.Store(sick)
		eventually(t, "a is unhealthy", not(healthy(p, 0)))
		if got := answers(); got["a"] {
			t.Errorf("a is sick (%d): answers of %v", sick, got)
		}
		if s := p.Status()[0]; s.Usable() || !strings.Contains(s.LastError, "health check") || s.Checked.IsZero() {
			t.Errorf("%+v", s)
		}
		healthA.Store(200)
		eventually(t, "a is healthy", healthy(p, 0))
		if got := answers(); !got["a"] {
			t.Errorf("a is well: answers of %v", got)
		}
	}
	healthA.Store(500)
	healthB.Store(500)
	eventually(t, "both are unhealthy", func() bool { return !healthy(p, 0)() && !healthy(p, 1)() })
	if got := answers(); !got["a"] || !got["b"] {
		t.Errorf("both are sick: answers of %v", got)
	}
	if servedA.Load() == 0 || servedB.Load() == 0 {
		t.Error("an endpoint was never asked")
	}
}

// A check that hangs is a failed one, and checks keep their interval.
func TestHangingChecks(t *testing.T) {
	var silent atomic.Bool
	var checks atomic.Int32
	inFalseTime(t, func(w http.ResponseWriter, r *http.Request) {
		checks.Add(1)
		if silent.Load() {
			hang(r)
		}
	}, func(c *Config) { c.Health = Health{Interval: 10 * time.Second, Timeout: time.Second} },
		func(t *testing.T, p *Pool) {
			silent.Store(false)
			checks.Store(0)
			time.Sleep(10 * time.Minute)
			if n := checks.Load(); n < 55 || n > 65 {
				t.Errorf("%d checks in ten minutes", n)
			}
			for range 5 {
				silent.Store(true)
				time.Sleep(40 * time.Second)
				if s := p.Status()[0]; s.Healthy || s.LastError != "health check: no answer within 1s" {
					t.Errorf("silent: %+v", s)
				}
				silent.Store(false)
				time.Sleep(40 * time.Second)
				if s := p.Status()[0]; !s.Healthy {
					t.Errorf("well: %+v", s)
				}
			}
		})
}

// Which statuses are well: the default path may be missing, a given one not.
func TestHealthStatuses(t *testing.T) {
	for _, tt := range []struct {
		path   string
		status int32
		want   bool
	}{
		{"", 200, true}, {"", 204, true}, {"", 404, true}, {"", 401, true}, {"", 302, true}, {"", 500, false}, {"", 503, false},
		{"/health", 200, true}, {"/health", 404, false}, {"/health", 302, false}, {"/health", 503, false}, {"/health?deep=1", 200, true},
	} {
		u, health, _ := healthServer(t, "")
		health.Store(tt.status)
		cfg := fast(quiet(u))
		cfg.Health.Path = tt.path
		p := open(t, cfg)
		eventually(t, "a check is over", func() bool { return !p.Status()[0].Checked.IsZero() })
		if got := p.Status()[0].Healthy; got != tt.want {
			t.Errorf("path %q, status %d: healthy %t", tt.path, tt.status, got)
		}
		p.Close()
	}
}

// An endpoint that is down when the pool starts is left out after one check,
// and comes in when it is up.
func TestStartsDown(t *testing.T) {
	down := unused(t)
	up := serve(t, text("up"))
	p := open(t, fast(quiet(down, up.URL)))
	eventually(t, "the first check is over", func() bool { return !p.Status()[0].Checked.IsZero() })
	if healthy(p, 0)() {
		t.Error("healthy although nothing listens")
	}
	l, err := net.Listen("tcp", down.Host)
	if err != nil {
		t.Skip(err)
	}
	s := &http.Server{Handler: text("up")}
	go s.Serve(l)
	defer s.Close()
	eventually(t, "it is healthy", healthy(p, 0))
}

// Checks do not wait for the connections that requests take.
func TestChecksNeedNoFreeConnection(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { hang(r) })
	cfg := fast(quiet(s.URL))
	cfg.MaxConnections = 1
	p := open(t, cfg)
	go ask(p, post(t, t.Context(), "/", "x"))
	eventually(t, "the request runs", func() bool { return s.count() == 1 })
	from := time.Now()
	eventually(t, "checks go on", func() bool { return p.Status()[0].Checked.After(from.Add(100 * time.Millisecond)) })
	if !healthy(p, 0)() {
		t.Errorf("%+v", p.Status()[0])
	}
}

// Failures of requests take an endpoint out without any check.
func TestPassiveEjection(t *testing.T) {
	good := serve(t, text("ok"))
	for name, bad := range map[string]*url.URL{
		"refused": refused(t),
		"reset": raw(t, func(c net.Conn, r *http.Request) bool {
			io.Copy(io.Discard, r.Body)
			reset(c)
			return false
		}).URL,
		"502": serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502) }).URL,
		"503": serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }).URL,
		"dies in the body": raw(t, func(c net.Conn, r *http.Request) bool {
			io.Copy(io.Discard, r.Body)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
			return false
		}).URL,
	} {
		p := open(t, quiet(bad, good.URL))
		for range 4 * p.eject.after {
			ask(p, post(t, t.Context(), "/", "x"))
		}
		if s := p.Status(); s[0].Usable() || !s[0].Healthy || int(s[0].Failures) != p.eject.after || !s[1].Usable() {
			t.Errorf("%s: %+v", name, s)
		}
		for range 5 {
			if body, err := ask(p, post(t, t.Context(), "/", "x")); body != "ok" || err != nil {
				t.Errorf("%s: after the ejection %q, %v", name, body, err)
			}
		}
	}
	// A 500 is the application's, not the endpoint's.
	p := open(t, quiet(serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }).URL, good.URL))
	for range 4 * p.eject.after {
		ask(p, post(t, t.Context(), "/", "x"))
	}
	if s := p.Status()[0]; !s.Usable() || s.Failures != 0 {
		t.Errorf("500: %+v", s)
	}
}

// A hundred endpoints, ten of which are down and ten flap, under load: every
// request gets its answer, and the load spreads.
func TestHundredEndpoints(t *testing.T) {
	var endpoints []*url.URL
	var flapping []*atomic.Int32
	var served []*atomic.Int32
	for i := range 100 {
		if i%10 == 0 {
			endpoints = append(endpoints, refused(t))
			continue
		}
		u, health, n := healthServer(t, "ok")
		if i%10 == 1 {
			flapping = append(flapping, health)
		} else {
			served = append(served, n)
		}
		endpoints = append(endpoints, u)
	}
	cfg := fast(quiet(endpoints...))
	cfg.Health.Interval = 200 * time.Millisecond
	cfg.Health.Timeout = 5 * time.Second
	cfg.Retries = 20
	p := open(t, cfg)
	stop := make(chan struct{})
	var flaps, clients sync.WaitGroup
	flaps.Go(func() {
		for code := int32(500); ; code = 700 - code { // 500, 200, 500, …
			for _, h := range flapping {
				h.Store(code)
			}
			select {
			case <-stop:
				return
			case <-time.After(250 * time.Millisecond):
			}
		}
	})
	const requests = 2000
	for range 20 {
		clients.Go(func() {
			for range requests / 20 {
				if body, err := ask(p, post(t, t.Context(), "/", "x")); body != "ok" || err != nil {
					t.Errorf("%q, %v", body, err)
					return
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	flaps.Wait()
	idle(t, p)
	least, most := served[0].Load(), served[0].Load()
	for _, n := range served {
		least, most = min(least, n.Load()), max(most, n.Load())
	}
	if least < requests/100/3 || most > 3*requests/100 {
		t.Errorf("from %d to %d requests at one endpoint", least, most)
	}
	for i, s := range p.Status() {
		if i%10 == 0 && s.Usable() {
			t.Errorf("%s is down but usable", s.Endpoint)
		}
	}
}
