package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// server is an endpoint of a test.
type server struct {
	*url.URL
	mu   sync.Mutex
	seen int // requests, health checks apart
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *server) add() {
	s.mu.Lock()
	s.seen++
	s.mu.Unlock()
}

// serve starts a server whose health is good.
func serve(t testing.TB, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			return
		}
		s.add()
		handle(w, r)
	}))
	t.Cleanup(ts.Close)
	s.URL = parse(t, ts.URL)
	return s
}

// raw starts a server that answers requests by what handle writes to the
// connection. A connection goes on while handle returns true.
func raw(t testing.TB, handle func(c net.Conn, r *http.Request) bool) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{URL: &url.URL{Scheme: "http", Host: l.Addr().String()}}
	var conns sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			conns.Go(func() {
				defer c.Close()
				for br := bufio.NewReader(c); ; {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					if r.URL.Path == "/health" {
						io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
						continue
					}
					s.add()
					if !handle(c, r) {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		conns.Wait()
	})
	return s
}

// reset closes a connection so that the peer gets a reset.
func reset(c net.Conn) {
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// refused returns an address where nothing listens: the local end of a
// connection, so that no other listener can get its port meanwhile.
func refused(t testing.TB) *url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &url.URL{Scheme: "http", Host: c.LocalAddr().String()}
}

// unused returns an address where nothing listens yet.
func unused(t testing.TB) *url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return &url.URL{Scheme: "http", Host: l.Addr().String()}
}

func parse(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// text answers with a body.
func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) }
}

func urls(servers ...*server) []*url.URL {
	var all []*url.URL
	for _, s := range servers {
		all = append(all, s.URL)
	}
	return all
}

// quiet is a configuration without health checks, whose log is kept out of the
// test's.
func quiet(endpoints ...*url.URL) Config {
	return Config{Endpoints: endpoints, Health: Health{Interval: -1}, Log: slog.New(slog.DiscardHandler)}
}

func open(t testing.TB, cfg Config) *Pool {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// post makes a request like the gateway's: path and query only, a body that
// can be replayed.
func post(t testing.TB, ctx context.Context, path, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// ask sends a request and reads the answer.
func ask(p *Pool, req *http.Request) (string, error) {
	resp, err := p.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// wantPhase checks an error's type and phase and returns it.
func wantPhase(t testing.TB, err error, phase Phase) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want an *Error of phase %s", err, err, phase)
	}
	if e.Phase != phase {
		t.Fatalf("phase %s of %v, want %s", e.Phase, err, phase)
	}
	return e
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after 10 s still not: %s", what)
		}
	}
}

// idle waits until no request is counted.
func idle(t testing.TB, p *Pool) {
	t.Helper()
	eventually(t, "all loads are zero", func() bool {
		for _, s := range p.Status() {
			if s.InFlight != 0 {
				return false
			}
		}
		return true
	})
}

// onceBody is a body that cannot be replayed and knows how it was used.
type onceBody struct {
	io.Reader
	mu     sync.Mutex
	closed int
}

func once(s string) *onceBody { return &onceBody{Reader: bytes.NewReader([]byte(s))} }

func (b *onceBody) Close() error {
	b.mu.Lock()
	b.closed++
	b.mu.Unlock()
	return nil
}

func (b *onceBody) closes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}
