package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
)

const secret = "key-that-nobody-may-see"

// testClient is a client of a handler's server, with connections of its own.
func testClient(t testing.TB, h http.HandlerFunc) *client {
	t.Helper()
	s := httptest.NewServer(h)
	tr := &http.Transport{}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		s.CloseClientConnections()
		s.Close()
	})
	base, _ := url.Parse(s.URL)
	o := Options{Base: base, Transport: tr, Key: secret, Timeout: 10 * time.Second}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	return newClient(&o)
}

// answer writes an answer with a content type.
func answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// die writes the beginning of an answer and breaks the connection.
func die(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)+100))
		io.WriteString(w, body)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// kind names what sort of error it is.
func kind(err error) string {
	var up *backend.UpstreamError
	var protocol *backend.ProtocolError
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &up):
		return fmt.Sprintf("upstream %d", up.Status)
	case errors.As(err, &protocol):
		return "protocol"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	}
	return "transport"
}

const (
	jsonType  = "application/json; charset=utf-8"
	eventType = "text/event-stream"
)

func TestDo(t *testing.T) {
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		want string
		says string // what the error says
	}{
		{"good", answer(200, jsonType, `{"n": 7, "error": null}`), "none", ""},
		{"garbage", answer(200, jsonType, "\x00\xff<html>"), "protocol", "no such JSON"},
		{"empty", answer(200, jsonType, ""), "protocol", ""},
		{"half", answer(200, jsonType, `{"n": 7`), "protocol", ""},
		{"two values", answer(200, jsonType, `{"n": 7} {"n": 8}`), "protocol", ""},
		{"another shape", answer(200, jsonType, `{"n": "seven"}`), "protocol", ""},
		{"nested too deep", answer(200, jsonType, strings.Repeat(`{"n":`, 20000)), "protocol", ""},
		{"wrong content type", answer(200, "text/html", `{"n": 7}`), "protocol", "content type"},
		{"no content type", answer(200, "", `{"n": 7}`), "protocol", "content type"},
		{"error in 200", answer(200, jsonType, `{"error": {"code": 503, "message": "loading"}}`), "upstream 503", ""},
		{"error without code", answer(200, jsonType, `{"error": "no"}`), "upstream 502", ""},
		{"500 with HTML", answer(500, "text/html", "<h1>oops</h1>"), "upstream 500", ""},
		{"404", answer(404, jsonType, `{"detail": "Not Found"}`), "upstream 404", ""},
		{"redirect", answer(302, "text/html", ""), "upstream 302", ""},
		{"no content", answer(204, jsonType, ""), "upstream 204", ""},
		{"dies", die(jsonType, `{"n":`), "transport", "POST /x"},
		{"announces too much", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", jsonType)
			w.Header().Set("Content-Length", "99999999999")
			w.(http.Flusher).Flush()
		}, "protocol", "67108864 bytes"},
		{"sends too much", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", jsonType)
			chunk := bytes.Repeat([]byte(" "), 1<<20)
			for range 65 {
				w.Write(chunk)
			}
		}, "protocol", "67108864 bytes"},
		{"compressed", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(200, jsonType, "\x1f\x8b")(w, r)
		}, "protocol", "compressed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := testClient(t, tt.h)
			var out struct{ N int }
			err := c.do(t.Context(), "POST", "/x", map[string]int{"a": 1}, &out)
			if kind(err) != tt.want || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: %v; want %s, %q", kind(err), err, tt.want, tt.says)
			}
			if err == nil && out.N != 7 {
				t.Errorf("read %d", out.N)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

func TestDoTimeout(t *testing.T) {
	release := make(chan struct{})
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	c.timeout = 30 * time.Millisecond
	if err := c.do(t.Context(), "GET", "/slow", nil, nil); kind(err) != "deadline" || !strings.Contains(err.Error(), "GET /slow") {
		t.Errorf("a server that hangs: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	c.timeout = time.Minute
	if err := c.do(ctx, "GET", "/slow", nil, nil); err != context.Canceled {
		t.Errorf("canceled: %v", err)
	}
}

func TestRefusalIsKept(t *testing.T) {
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		answer(429, jsonType, `{"error": "busy"}`+strings.Repeat(" ", 1<<20))(w, r)
	})
	err := c.do(t.Context(), "POST", "/x", nil, nil)
	var up *backend.UpstreamError
	if !errors.As(err, &up) || up.Status != 429 || up.Header["Retry-After"][0] != "7" {
		t.Fatalf("%v", err)
	}
	if len(up.Body) != maxError || !bytes.HasPrefix(up.Body, []byte(`{"error": "busy"}`)) {
		t.Errorf("%d bytes are kept: %.40q", len(up.Body), up.Body)
	}
	if strings.Contains(err.Error(), "busy") {
		t.Errorf("the error's text shows the body: %v", err)
	}
}

func TestRequestsSay(t *testing.T) {
	var got *http.Request
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		answer(200, jsonType, `{}`)(w, r)
	})
	c.base.Path = "/base/"
	if err := c.do(t.Context(), "GET", "/props?model=a%2Fb", nil, nil); err != nil {
		t.Fatal(err)
	}
	if got.URL.Path != "/base/props" || got.URL.RawQuery != "model=a%2Fb" || got.Header.Get("Authorization") != "Bearer "+secret {
		t.Errorf("asked for %s with %v", got.URL, got.Header)
	}
	if got.Header.Get("Accept-Encoding") != "identity" || got.Header["Idempotency-Key"] != nil {
		t.Errorf("headers %v", got.Header)
	}
	// Without a base the transport chooses the server.
	c = newClient(&Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.String() != "/v1/x" || r.Host != "" || r.GetBody == nil {
			t.Errorf("%s, host %q", r.URL, r.Host)
		}
		return nil, errors.New("no server")
	}), Timeout: time.Second})
	if err := c.do(t.Context(), "POST", "/v1/x", 1, nil); kind(err) != "transport" {
		t.Errorf("%v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// readEvents returns the data of all events, and the error at the end.
func readEvents(c *client, ctx context.Context) (data []string, done bool, err error) {
	ev, err := c.stream(ctx, "/stream", []byte(`{}`))
	if err != nil {
		return nil, false, err
	}
	defer ev.close()
	for {
		d, err := ev.next()
		if err != nil {
			if _, again := ev.next(); again != err {
				return data, ev.done, fmt.Errorf("first %v, then %v", err, again)
			}
			return data, ev.done, err
		}
		data = append(data, string(d))
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 10<<20)
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		want string // the data, joined by |
		kind string // of the error; "end" for io.EOF, "done" after [DONE]
	}{
		{"good", answer(200, eventType, "data: 1\n\ndata: 2\n\ndata: [DONE]\n\n"), "1|2", "done"},
		{"no DONE", answer(200, eventType, "data: 1\n\n"), "1", "end"},
		{"nothing", answer(200, eventType, ""), "", "end"},
		{"CRLF, comments, types", answer(200, eventType+"; charset=utf-8", ": hi\r\nevent: x\r\ndata: 1\r\n\r\n: ping\r\n\r\ndata:2\r\ndata: 3\r\n\r\n"), "1|2\n3", "end"},
		{"CR", answer(200, eventType, "data: 1\r\rdata: 2\r\r"), "1|2", "end"},
		{"half an event", answer(200, eventType, "data: 1\n\ndata: 2\n"), "1", "protocol"},
		{"half a line", answer(200, eventType, "data: 1\n\ndat"), "1", "protocol"},
		{"a line of 10 MB", answer(200, eventType, "data: 1\n\ndata: "+long+"\n\n"), "1", "protocol"},
		{"comments without end", answer(200, eventType, strings.Repeat(": x\n", 3<<20)), "", "protocol"},
		{"garbage", answer(200, eventType, "\x00\xff\xfe\n\n\x01"), "", "protocol"},
		{"wrong content type", answer(200, "text/plain", "data: 1\n\n"), "", "protocol"},
		{"JSON in place of events", answer(200, jsonType, `{"content": "x"}`), "", "protocol"},
		{"an error in place of events", answer(200, jsonType, `{"error": {"code": 500}}`), "", "upstream 500"},
		{"error frame", answer(200, eventType, "data: 1\n\ndata: {\"error\": {\"code\": 400, \"message\": \"no\"}}\n\ndata: [DONE]\n\n"), "1", "upstream 400"},
		{"error frame without code", answer(200, eventType, "data: {\"error\": {\"message\": \"no\", \"code\": 7}}\n\n"), "", "upstream 502"},
		{"text that speaks of errors", answer(200, eventType, "data: {\"content\": \"\\\"error\\\"\", \"error\": 1}\n\n"), "{\"content\": \"\\\"error\\\"\", \"error\": 1}", "end"},
		{"429", answer(429, jsonType, "{}"), "", "upstream 429"},
		{"500 with HTML", answer(500, "text/html", "<p>"), "", "upstream 500"},
		{"dies between events", die(eventType, "data: 1\n\n"), "1", "protocol"},
		{"dies inside an event", die(eventType, "data: 1\n\ndata: 2"), "1", "protocol"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data, done, err := readEvents(testClient(t, tt.h), t.Context())
			got := kind(err)
			if err == io.EOF {
				if got = "end"; done {
					got = "done"
				}
			}
			if strings.Join(data, "|") != tt.want || got != tt.kind {
				t.Errorf("%.100q and %s (%v); want %q and %s", data, got, err, tt.want, tt.kind)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

// Canceling at any step closes the connection, and nothing is left running.
func TestCancelAtEveryStep(t *testing.T) {
	var open atomic.Int32
	before := runtime.NumGoroutine()
	func() {
		gate := make(chan string)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			open.Add(1)
			defer open.Add(-1)
			io.Copy(io.Discard, r.Body)
			for {
				select {
				case text := <-gate:
					w.Header().Set("Content-Type", eventType)
					io.WriteString(w, text)
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		}))
		defer s.Close()
		base, _ := url.Parse(s.URL)
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		c := newClient(&Options{Base: base, Transport: tr, Timeout: time.Minute})
		for _, texts := range [][]string{nil, {": up\n\n"}, {"data: 1\n\n"}, {"data: 1\n\n", "data: "}} {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				for _, text := range texts {
					gate <- text
				}
				time.Sleep(5 * time.Millisecond)
				cancel()
			}()
			_, _, err := readEvents(c, ctx)
			if err != context.Canceled {
				t.Errorf("after %q: %v", texts, err)
			}
			until(t, "the handler is over", func() bool { return open.Load() == 0 }) // or it would take the next text
		}
		// Given up without canceling.
		go func() { gate <- "data: 1\n\n" }()
		ev, err := c.stream(t.Context(), "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		ev.next()
		ev.close()
		ev.close()
		if _, err := ev.next(); err == nil {
			t.Error("an event came after close")
		}
		until(t, "all handlers are over", func() bool { return open.Load() == 0 })
	}()
	until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for range 500 {
		if f() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("not so after 5 s: %s", what)
}

// A stream that came to its end leaves its connection to the next.
func TestConnectionIsKept(t *testing.T) {
	var conns atomic.Int32
	s := httptest.NewUnstartedServer(answer(200, eventType, "data: 1\n\ndata: [DONE]\n\n"))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	base, _ := url.Parse(s.URL)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	c := newClient(&Options{Base: base, Transport: tr, Timeout: time.Minute})
	for range 5 {
		if data, done, err := readEvents(c, t.Context()); err != io.EOF || !done || len(data) != 1 {
			t.Fatalf("%q, %v", data, err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("five streams took %d connections", n)
	}
}

func TestOptionsRefuse(t *testing.T) {
	parse := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	for name, o := range map[string]Options{
		"nothing":            {},
		"no scheme":          {Base: parse("localhost:8080")},
		"no host":            {Base: parse("http:///x")},
		"a file":             {Base: parse("file:///x")},
		"a user name":        {Base: parse("http://me:" + secret + "@host")},
		"a key of two lines": {Base: parse("http://host"), Key: secret + "\r\nX: y"},
	} {
		if err := o.check(); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := Options{Base: parse("https://host/base")}
	if err := o.check(); err != nil || o.Transport == nil || o.MaxMask != 1024 || o.Timeout != time.Minute {
		t.Errorf("%+v, %v", o, err)
	}
}
