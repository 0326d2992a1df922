package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// flush sends what a handler has written.
func flush(w http.ResponseWriter) { http.NewResponseController(w).Flush() }

// hang waits for the end of the connection. A server notices it only once the
// request's body is read.
func hang(r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// eachProtocol starts an HTTP/1.1 and an HTTP/2 server of a handler, and gives each to
// the test with a pool whose limits are short.
func eachProtocol(t *testing.T, handle http.HandlerFunc, limits func(*Config), test func(t *testing.T, p *Pool)) {
	t.Helper()
	for _, name := range []string{"HTTP1", "HTTP2"} {
		t.Run(name, func(t *testing.T) {
			ts := httptest.NewUnstartedServer(handle)
			ts.Config.ErrorLog = log.New(io.Discard, "", 0)
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

// memory is a listener whose connections are pipes in memory, for tests in
// false time.
type memory chan net.Conn

func (m memory) Accept() (net.Conn, error) {
	if c, ok := <-m; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (m memory) Close() error   { return nil }
func (m memory) Addr() net.Addr { return &net.TCPAddr{} }

func (m memory) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	m <- there
	return here, nil
}

// inFalseTime is eachProtocol with connections in memory and a clock that
// moves only when everything waits.
func inFalseTime(t *testing.T, handle http.HandlerFunc, limits func(*Config), test func(t *testing.T, p *Pool)) {
	t.Helper()
	ts := httptest.NewUnstartedServer(nil)
	ts.EnableHTTP2 = true
	ts.StartTLS()
	serverTLS := ts.TLS
	roots := x509.NewCertPool()
	roots.AddCert(ts.Certificate())
	ts.Close()
	for _, name := range []string{"HTTP1", "HTTP2"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := make(memory)
				s := &http.Server{Handler: handle, TLSConfig: serverTLS.Clone(), ErrorLog: log.New(io.Discard, "", 0)}
				cfg := quiet(&url.URL{Scheme: "http", Host: "example.com"}) // the certificate's name
				if name == "HTTP2" {
					cfg.Endpoints[0].Scheme = "https"
					cfg.TLS = &tls.Config{RootCAs: roots}
					go s.ServeTLS(l, "", "")
				} else {
					go s.Serve(l)
				}
				cfg.dial = l.dial
				limits(&cfg)
				p := open(t, cfg)
				test(t, p)
				synctest.Wait()
				if n := p.Status()[0].InFlight; n != 0 {
					t.Errorf("%d requests are counted", n)
				}
				p.Close()
				close(l)
				s.Close()
			})
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
	eachProtocol(t, func(w http.ResponseWriter, r *http.Request) { hang(r) },
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
		hang(r)
	}, func(c *Config) { c.IdleTimeout = 200 * time.Millisecond },
		func(t *testing.T, p *Pool) {
			body, err := ask(p, post(t, t.Context(), "/", "x"))
			wantTimeout(t, err, PhaseBody)
			if body != "data: 1\n\n" {
				t.Errorf("%q came before", body)
			}
		})
}

// The limits hold to the nanosecond, and each wait for the body begins anew.
func TestLimitsAreExact(t *testing.T) {
	const first, idle, gap = 30 * time.Second, 20 * time.Second, 15 * time.Second
	inFalseTime(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/headers" {
			hang(r)
			return
		}
		for range 3 {
			time.Sleep(gap)
			io.WriteString(w, "x")
			flush(w)
		}
		hang(r)
	}, func(c *Config) { c.FirstByteTimeout, c.IdleTimeout = first, idle },
		func(t *testing.T, p *Pool) {
			for _, tt := range []struct {
				path, body string
				phase      Phase
				after      time.Duration
			}{{"/headers", "", PhaseHeaders, first}, {"/body", "xxx", PhaseBody, 3*gap + idle}} {
				start := time.Now()
				body, err := ask(p, post(t, t.Context(), tt.path, "x"))
				wantTimeout(t, err, tt.phase)
				if d := time.Since(start); body != tt.body || d != tt.after {
					t.Errorf("%s: %q, after %v, want %q, %v", tt.path, body, d, tt.body, tt.after)
				}
			}
		})
}

// A body that takes far longer than every limit is fine as long as bytes come.
func TestSlowBody(t *testing.T) {
	inFalseTime(t, func(w http.ResponseWriter, r *http.Request) {
		for range 20 {
			time.Sleep(19 * time.Second)
			io.WriteString(w, "x")
			flush(w)
		}
	}, func(c *Config) { c.IdleTimeout, c.FirstByteTimeout = 20*time.Second, 20*time.Second },
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
	inFalseTime(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
		flush(w)
		w.Write(body)
	}, func(c *Config) { c.IdleTimeout, c.FirstByteTimeout = 20*time.Second, 20*time.Second },
		func(t *testing.T, p *Pool) {
			r, w := io.Pipe()
			go func() {
				for range 3 {
					time.Sleep(19 * time.Second)
					io.WriteString(w, "ab")
				}
				time.Sleep(time.Minute)
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
				time.Sleep(time.Minute)
				n, err := resp.Body.Read(buf)
				body = append(body, buf[:n]...)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if string(body) != strings.Repeat("ab", 6) {
				t.Errorf("%q", body)
			}
		})
}

// An endpoint that does not take the request's body is waited for no longer
// than one that does not answer.
func TestUploadStalls(t *testing.T) {
	over := make(chan bool)
	s := raw(t, func(c net.Conn, r *http.Request) bool { <-over; return false })
	defer close(over)
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
		{"before headers", PhaseHeaders, func(w http.ResponseWriter, r *http.Request) { hang(r) }},
		{"in the body", PhaseBody, func(w http.ResponseWriter, r *http.Request) { flush(w); hang(r) }},
	}
	ways := []struct {
		name string
		is   error
		ctx  func(context.Context) (context.Context, func())
	}{
		{"cancel", context.Canceled, func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		}},
		{"cause", why, func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(why) }
		}},
		{"deadline", context.DeadlineExceeded, func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			return ctx, func() { context.AfterFunc(ctx, cancel) }
		}},
	}
	for _, stage := range stages {
		for _, way := range ways {
			t.Run(stage.name+"/"+way.name, func(t *testing.T) {
				inFalseTime(t, stage.handle, func(*Config) {}, func(t *testing.T, p *Pool) {
					ctx, leave := way.ctx(t.Context())
					time.AfterFunc(time.Second, leave)
					_, err := ask(p, post(t, ctx, "/", "x"))
					e := wantPhase(t, err, stage.phase)
					if !errors.Is(err, way.is) || e.Timeout() || !e.Caller() {
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
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { hang(r) })
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
