package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// flush sends what a handler has written.
func flush(w http.ResponseWriter) { http.NewResponseController(w).Flush() }

// eachProtocol starts an HTTP/1.1 and an HTTP/2 server of a handler, and gives each to
// the test with a pool whose limits are short.
func eachProtocol(t *testing.T, handle http.HandlerFunc, limits func(*Config), test func(t *testing.T, p *Pool)) {
	t.Helper()
	for _, name := range []string{"HTTP1", "HTTP2"} {
		t.Run(name, func(t *testing.T) {
			ts := httptest.NewUnstartedServer(handle)
			cfg := quiet()
			if name == "HTTP2" {
				ts.EnableHTTP2 = true
				ts.StartTLS()
				roots := x509.NewCertPool()
				roots.AddCert(ts.Certificate())
				cfg.TLS = &tls.Config{RootCAs: roots}
			} else {
				ts.Start()
			}
			t.Cleanup(ts.Close)
			cfg.Endpoints = []*url.URL{parse(t, ts.URL)}
			limits(&cfg)
			p := open(t, cfg)
			test(t, p)
			idle(t, p)
		})
	}
}

// wantTimeout checks that a limit of the pool ended the request, and nothing
// that looks like the caller's context.
func wantTimeout(t *testing.T, err error, phase Phase) {
	t.Helper()
	e := wantPhase(t, err, phase)
	if !e.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("%v: timeout %t", err, e.Timeout())
	}
}

func TestHangsBeforeHeaders(t *testing.T) {
	eachProtocol(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		func(c *Config) { c.FirstByteTimeout = 50 * time.Millisecond },
		func(t *testing.T, p *Pool) {
			start := time.Now()
			_, err := ask(p, post(t, t.Context(), "/", "x"))
			wantTimeout(t, err, PhaseHeaders)
			if d := time.Since(start); d < 50*time.Millisecond {
				t.Errorf("after %v", d)
			}
			if s := p.Status()[0]; s.Failures != 1 || s.Requests != 1 {
				t.Errorf("%+v", s)
			}
		})
}

func TestHangsInBody(t *testing.T) {
	eachProtocol(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "data: 1\n\n")
		flush(w)
		<-r.Context().Done()
	}, func(c *Config) { c.IdleTimeout = 50 * time.Millisecond },
		func(t *testing.T, p *Pool) {
			body, err := ask(p, post(t, t.Context(), "/", "x"))
			wantTimeout(t, err, PhaseBody)
			if body != "data: 1\n\n" {
				t.Errorf("%q came before", body)
			}
		})
}

// A body that takes far longer than every limit is fine as long as bytes come.
func TestSlowBody(t *testing.T) {
	eachProtocol(t, func(w http.ResponseWriter, r *http.Request) {
		for range 20 {
			time.Sleep(20 * time.Millisecond)
			io.WriteString(w, "x")
			flush(w)
		}
	}, func(c *Config) { c.IdleTimeout, c.FirstByteTimeout = 200*time.Millisecond, 200*time.Millisecond },
		func(t *testing.T, p *Pool) {
			body, err := ask(p, post(t, t.Context(), "/", "x"))
			if body != strings.Repeat("x", 20) || err != nil {
				t.Errorf("%q, %v", body, err)
			}
		})
}

// Time in which the caller does not read, or does not give the request's body,
// is not the endpoint's.
func TestSlowCaller(t *testing.T) {
	eachProtocol(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
		flush(w)
		w.Write(body)
	}, func(c *Config) { c.IdleTimeout, c.FirstByteTimeout = 60*time.Millisecond, 60*time.Millisecond },
		func(t *testing.T, p *Pool) {
			r, w := io.Pipe()
			go func() {
				for range 5 {
					time.Sleep(40 * time.Millisecond)
					io.WriteString(w, "ab")
				}
				time.Sleep(120 * time.Millisecond)
				w.Close()
			}()
			req, _ := http.NewRequestWithContext(t.Context(), "POST", "/", r)
			resp, err := p.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var body []byte
			for buf := make([]byte, 4); ; {
				time.Sleep(80 * time.Millisecond)
				n, err := resp.Body.Read(buf)
				body = append(body, buf[:n]...)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if string(body) != strings.Repeat("ab", 10) {
				t.Errorf("%q", body)
			}
		})
}

// An endpoint that does not take the request's body is waited for no longer
// than one that does not answer.
func TestUploadStalls(t *testing.T) {
	s := raw(t, func(c net.Conn, r *http.Request) bool {
		time.Sleep(2 * time.Second)
		return false
	})
	cfg := quiet(s.URL)
	cfg.FirstByteTimeout = 50 * time.Millisecond
	p := open(t, cfg)
	_, err := ask(p, post(t, t.Context(), "/", strings.Repeat("x", 64<<20)))
	wantTimeout(t, err, PhaseHeaders)
}

// A server that accepts but says nothing ends the connect phase.
func TestConnectTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other := serve(t, text("ok"))
	cfg := quiet(&url.URL{Scheme: "https", Host: l.Addr().String()})
	cfg.ConnectTimeout = 50 * time.Millisecond
	_, err = ask(open(t, cfg), post(t, t.Context(), "/", "x"))
	wantTimeout(t, err, PhaseConnect)

	cfg.Endpoints = append(cfg.Endpoints, other.URL)
	if body, err := ask(open(t, cfg), post(t, t.Context(), "/", "x")); body != "ok" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
}

func TestUnknownName(t *testing.T) {
	p := open(t, quiet(parse(t, "http://nowhere.invalid:80")))
	_, err := ask(p, post(t, t.Context(), "/", "x"))
	wantPhase(t, err, PhaseConnect)
}

// A caller that leaves, at each stage and in each way, gets its own reason
// back; the endpoint is not blamed, and no other is asked.
func TestCallerLeaves(t *testing.T) {
	why := errors.New("the client closed the connection")
	stages := []struct {
		name   string
		phase  Phase
		handle http.HandlerFunc
	}{
		{"before headers", PhaseHeaders, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"in the body", PhaseBody, func(w http.ResponseWriter, r *http.Request) { flush(w); <-r.Context().Done() }},
	}
	ways := []struct {
		name string
		is   error
		ctx  func(context.Context) (context.Context, func())
	}{
		{"cancel", context.Canceled, func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, func() { time.AfterFunc(30*time.Millisecond, cancel) }
		}},
		{"cause", why, func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { time.AfterFunc(30*time.Millisecond, func() { cancel(why) }) }
		}},
		{"deadline", context.DeadlineExceeded, func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			return ctx, func() { context.AfterFunc(t.Context(), cancel) }
		}},
	}
	for _, stage := range stages {
		for _, way := range ways {
			t.Run(stage.name+"/"+way.name, func(t *testing.T) {
				eachProtocol(t, stage.handle, func(*Config) {}, func(t *testing.T, p *Pool) {
					ctx, leave := way.ctx(t.Context())
					leave()
					_, err := ask(p, post(t, ctx, "/", "x"))
					e := wantPhase(t, err, stage.phase)
					if !errors.Is(err, way.is) || e.Timeout() {
						t.Errorf("%v, timeout %t; want %v", err, e.Timeout(), way.is)
					}
					if s := p.Status()[0]; s.Failures != 0 || s.Requests != 1 {
						t.Errorf("the endpoint is blamed: %+v", s)
					}
				})
			})
		}
	}
}

// A caller that left before the request is sent, or while the connection is
// made or waited for.
func TestCallerLeavesEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	cfg := quiet(s.URL)
	cfg.MaxConnections = 1
	p := open(t, cfg)
	_, err := ask(p, post(t, ctx, "/", "x"))
	if !errors.Is(err, context.Canceled) || s.count() != 0 {
		t.Errorf("%v, %d requests", err, s.count())
	}

	// The only connection is taken.
	first, leave := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := ask(p, post(t, first, "/", "x"))
		done <- err
	}()
	eventually(t, "the first request runs", func() bool { return s.count() == 1 })
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = ask(p, post(t, ctx, "/", "x"))
	if e := wantPhase(t, err, PhaseConnect); !errors.Is(err, context.DeadlineExceeded) || e.Timeout() {
		t.Error(err)
	}
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if st := p.Status()[0]; st.Failures != 0 {
		t.Errorf("%+v", st)
	}
	idle(t, p)
}

// A body closed before its end ends the try without blame.
func TestBodyClosedEarly(t *testing.T) {
	eachProtocol(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, strings.Repeat("x", 1000))
			flush(w)
		}
	}, func(*Config) {}, func(t *testing.T, p *Pool) {
		resp, err := p.RoundTrip(post(t, t.Context(), "/", "x"))
		if err != nil {
			t.Fatal(err)
		}
		io.ReadFull(resp.Body, make([]byte, 10))
		read := make(chan struct{})
		go func() { // a Read that runs while Close is called
			io.Copy(io.Discard, resp.Body)
			close(read)
		}()
		time.Sleep(time.Millisecond)
		resp.Body.Close()
		<-read
		if _, err := resp.Body.Read(make([]byte, 1)); err == nil {
			t.Error("a closed body can be read")
		}
		if s := p.Status()[0]; s.Failures != 0 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}
