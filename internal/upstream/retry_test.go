package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

// What follows the first failure: another endpoint only where the first
// provably did not handle the request.
func TestRetries(t *testing.T) {
	refuse := func(t *testing.T) *url.URL { return refused(t) }
	busy := func(t *testing.T) *url.URL {
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "9")
			w.WriteHeader(503)
			io.WriteString(w, "busy")
		}).URL
	}
	status := func(code int) func(t *testing.T) *url.URL {
		return func(t *testing.T) *url.URL {
			return serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }).URL
		}
	}
	closes := func(how func(net.Conn)) func(t *testing.T) *url.URL {
		return func(t *testing.T) *url.URL {
			return raw(t, func(c net.Conn, r *http.Request) bool {
				io.Copy(io.Discard, r.Body)
				how(c)
				return false
			}).URL
		}
	}
	tests := []struct {
		name   string
		first  func(t *testing.T) *url.URL
		method string
		body   io.Reader
		want   string // what the caller gets: the second endpoint's "ok", a status, or a phase
	}{
		{"refused, POST", refuse, "POST", strings.NewReader("body"), "ok body"},
		{"refused, GET", refuse, "GET", nil, "ok "},
		{"refused, body that cannot be replayed, unread", refuse, "POST", once("body"), "ok body"},
		{"503, POST", busy, "POST", strings.NewReader("body"), "ok body"},
		{"503, GET", busy, "GET", nil, "ok "},
		{"503, body that cannot be replayed", busy, "POST", once("body"), "503"},
		{"429", status(429), "POST", strings.NewReader("body"), "429"},
		{"502", status(502), "POST", strings.NewReader("body"), "502"},
		{"500", status(500), "GET", nil, "500"},
		{"closed before a response, POST", closes(func(c net.Conn) { c.Close() }), "POST", strings.NewReader("body"), "headers"},
		{"reset before a response, POST", closes(reset), "POST", strings.NewReader("body"), "headers"},
		{"closed within the headers", closes(func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nX-") }), "POST", strings.NewReader("body"), "headers"},
		{"garbage", closes(func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH_9\r\n\r\n") }), "POST", strings.NewReader("body"), "headers"},
		{"dies in the body", closes(func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf") }), "POST", strings.NewReader("body"), "body"},
		{"dies in a chunk", closes(func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal")
		}), "POST", strings.NewReader("body"), "body"},
		{"reset in the body", closes(func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
			reset(c)
		}), "POST", strings.NewReader("body"), ""}, // phase headers or body, as the reset overtakes the bytes or not
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			second := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				io.WriteString(w, "ok "+string(body))
			})
			p := open(t, quiet(tt.first(t), second.URL))
			req, err := http.NewRequestWithContext(t.Context(), tt.method, "/x", tt.body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := p.RoundTrip(req)
			var got string
			if err == nil {
				var body []byte
				body, err = io.ReadAll(resp.Body)
				resp.Body.Close()
				if got = string(body); err == nil && resp.StatusCode != 200 {
					got = resp.Status[:3]
				}
				if resp.StatusCode == 503 && (resp.Header.Get("Retry-After") != "9" || string(body) != "busy") {
					t.Errorf("the 503 was changed: %v, %q", resp.Header, body)
				}
			}
			var e *Error
			if errors.As(err, &e) {
				got = string(e.Phase)
				if !strings.Contains(e.Error(), p.endpoints[0].name) || e.Endpoint != p.endpoints[0].name || e.Timeout() {
					t.Errorf("error %v of endpoint %s", e, e.Endpoint)
				}
			} else if err != nil {
				t.Fatalf("%T %v", err, err)
			}
			if got != tt.want && tt.want != "" {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
			if sent := second.count() > 0; sent != strings.HasPrefix(tt.want, "ok") {
				t.Errorf("sent to the second endpoint: %t", sent)
			}
			if b, ok := tt.body.(*onceBody); ok {
				eventually(t, "the body is closed", func() bool { return b.closes() > 0 })
				if n := b.closes(); n != 1 {
					t.Errorf("closed %d times", n)
				}
			}
			idle(t, p)
		})
	}
}

// Of several refusals the last response is returned, and a refusal rather than
// an error.
func TestRefusalIsKept(t *testing.T) {
	busy := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503); io.WriteString(w, "busy") }
	p := open(t, quiet(serve(t, busy).URL, refused(t), refused(t)))
	if body, err := ask(p, post(t, t.Context(), "/", "x")); body != "busy" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
	q := open(t, quiet(serve(t, busy).URL, serve(t, busy).URL, serve(t, busy).URL))
	if body, err := ask(q, post(t, t.Context(), "/", "x")); body != "busy" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
	idle(t, p)
	idle(t, q)
}

func TestRetriesAreCounted(t *testing.T) {
	for _, tt := range []struct{ retries, tries int }{{-1, 1}, {0, 3}, {1, 2}, {4, 5}} {
		cfg := quiet(refused(t), refused(t), refused(t), refused(t), refused(t), refused(t))
		cfg.Retries = tt.retries
		p := open(t, cfg)
		_, err := ask(p, post(t, t.Context(), "/", "x"))
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
		}
		tries := 0
		for _, s := range p.Status() {
			tries += int(s.Requests)
		}
		if tries != tt.tries {
			t.Errorf("Retries %d: %d tries, want %d", tt.retries, tries, tt.tries)
		}
	}
}

// The only endpoint is tried once more: it may just be starting.
func TestOnlyEndpointIsTriedTwice(t *testing.T) {
	u := unused(t)
	p := open(t, quiet(u))
	go func() {
		time.Sleep(5 * time.Millisecond)
		l, err := net.Listen("tcp", u.Host)
		if err != nil {
			return // taken by another: then the request fails and the test skips
		}
		s := &http.Server{Handler: text("up")}
		context.AfterFunc(t.Context(), func() { s.Close() })
		s.Serve(l)
	}()
	body, err := ask(p, post(t, t.Context(), "/", "x"))
	if n := p.Status()[0].Requests; n != 2 {
		t.Errorf("%d tries, want 2", n)
	}
	if err != nil {
		t.Skip("the port was taken or the machine is slow:", err)
	}
	if body != "up" {
		t.Errorf("%q", body)
	}
}

// A kept connection that the server closes while it is idle costs nothing: the
// transport sees it before it writes. One that dies with the request on it fails
// for POST, which may have been handled, and is repeated for GET.
func TestKeptConnections(t *testing.T) {
	for _, tt := range []struct {
		method string
		while  bool // the connection dies with the second request on it, not before
		want   string
	}{
		{"POST", false, "ok"}, {"GET", false, "ok"}, {"GET", true, "ok"}, {"POST", true, "headers"},
	} {
		var requests atomic.Int32
		s := raw(t, func(c net.Conn, r *http.Request) bool {
			io.Copy(io.Discard, r.Body)
			n := requests.Add(1)
			if n == 2 && tt.while {
				return false
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			return n > 1 || tt.while
		})
		p := open(t, quiet(s.URL))
		send := func() (string, error) {
			req, _ := http.NewRequestWithContext(t.Context(), tt.method, "/", strings.NewReader("body"))
			return ask(p, req)
		}
		if _, err := send(); err != nil {
			t.Fatal(err)
		}
		if !tt.while {
			time.Sleep(20 * time.Millisecond) // the end of the connection arrives
		}
		got, err := send()
		if err != nil {
			got = string(wantPhase(t, err, PhaseHeaders).Phase)
			if !strings.Contains(err.Error(), "not sent again") {
				t.Error(err)
			}
		}
		if got != tt.want {
			t.Errorf("%s, while a request runs: %t: %q (%v), want %q", tt.method, tt.while, got, err, tt.want)
		}
	}
}

// What is wrong with the request is not the endpoint's fault.
func TestRequestErrors(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	p := open(t, quiet(parse(t, s.String()+"/base")))
	broken := errors.New("the client sent half a body")
	tests := []struct {
		name   string
		change func(*http.Request)
		is     error
	}{
		{"no URL", func(r *http.Request) { r.URL = nil }, nil},
		{"CONNECT", func(r *http.Request) { r.Method = "CONNECT" }, nil},
		{"climbing path", func(r *http.Request) { r.URL.Path = "/a/../../b" }, nil},
		{"header", func(r *http.Request) { r.Header["X"] = []string{"a\r\nb: secret"} }, nil},
		{"body", func(r *http.Request) {
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
			r.GetBody = nil
			r.ContentLength = 100
		}, broken},
	}
	for _, tt := range tests {
		req := post(t, t.Context(), "/v1/x?key=secret", "body")
		req.Header.Set("Authorization", "Bearer secret")
		body := once("x")
		if tt.is == nil {
			req.Body, req.GetBody = body, nil
		}
		tt.change(req)
		_, err := ask(p, req)
		e := wantPhase(t, err, PhaseRequest)
		if strings.Contains(e.Error(), "secret") || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.is == nil && body.closes() != 1 {
			t.Errorf("%s: the body was closed %d times", tt.name, body.closes())
		}
	}
	if st := p.Status()[0]; st.Failures != 0 || st.InFlight != 0 {
		t.Errorf("%+v", st)
	}
	p.Close()
	_, err := ask(p, post(t, t.Context(), "/", "x"))
	if wantPhase(t, err, PhaseRequest); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// Errors of package context mean the caller, and no other error passes for
// them.
func TestContextErrorsAreTheCallers(t *testing.T) {
	_, dial := (&net.Dialer{Timeout: time.Nanosecond}).Dial("tcp", "192.0.2.1:80")
	if !errors.Is(dial, context.DeadlineExceeded) {
		t.Skip("dialing gives", dial)
	}
	e := endpointError("http://h", PhaseConnect, dial)
	if errors.Is(e, context.DeadlineExceeded) || !e.Timeout() || e.Caller() || !strings.Contains(e.Error(), dial.Error()) {
		t.Errorf("%v, timeout %t", e, e.Timeout())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-ctx.Done()
	e = callerError("http://h", PhaseConnect, ctx)
	if !errors.Is(e, context.DeadlineExceeded) || e.Timeout() || !e.Caller() {
		t.Errorf("%v, timeout %t", e, e.Timeout())
	}
}

// Errors name the endpoint and what to do, and no secret.
func TestErrorText(t *testing.T) {
	at := "http://h:1/b"
	long := errors.New(strings.Repeat("é\n", 1000))
	for _, tt := range []struct {
		err  *Error
		want string
	}{
		{&Error{Endpoint: at, Phase: PhaseConnect, Err: syscall.ECONNREFUSED}, "upstream http://h:1/b: cannot connect: connection refused; check that the server runs, and the address"},
		{&Error{Endpoint: at, Phase: PhaseHeaders, Err: &timeoutError{PhaseHeaders, time.Minute}}, "upstream http://h:1/b: no response headers within 1m0s; the server hangs or its queue is long: see its log, or raise the first-byte timeout"},
		{&Error{Endpoint: at, Phase: PhaseHeaders, Err: io.EOF}, "upstream http://h:1/b: the connection failed before a response: EOF; the server may have handled the request, so it was not sent again: see its log"},
		{&Error{Endpoint: at, Phase: PhaseBody, Err: &timeoutError{PhaseBody, time.Second}}, "upstream http://h:1/b: no more of the response's body for 1s; the server hangs: see its log, or raise the idle timeout"},
		{&Error{Endpoint: at, Phase: PhaseBody, Err: io.ErrUnexpectedEOF}, "upstream http://h:1/b: the response broke off: unexpected EOF; see the server's log"},
		{&Error{Endpoint: at, Phase: PhaseHeaders, Err: context.Canceled, caller: true}, "upstream http://h:1/b: the caller ended the request (phase: headers): context canceled"},
		{&Error{Phase: PhaseRequest, Err: ErrClosed}, "upstream: the pool is closed"},
		{&Error{Phase: PhaseRequest, Err: long}, "upstream: " + strings.Repeat("é ", 100) + "…"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%q\nwant %q", got, tt.want)
		}
	}
}
