package upstream

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
)

// record starts a server that keeps the bytes of the first request and answers
// with the given ones.
func record(t *testing.T, answer string) (addr string, request <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		var raw bytes.Buffer
		r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &raw)))
		if err == nil {
			io.Copy(io.Discard, r.Body)
		}
		got <- raw.String()
		io.WriteString(c, answer)
	}()
	return l.Addr().String(), got
}

// The bytes on the wire: what the caller gave and what HTTP needs, nothing
// else.
func TestRequestOnTheWire(t *testing.T) {
	tests := []struct {
		name, base, method, path string
		header                   http.Header
		body                     io.Reader
		want                     string // HOST stands for the endpoint's host
	}{
		{"bare", "", "GET", "/v1/models", nil, nil, "GET /v1/models HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"query", "", "GET", "/a?b=c&d=%zz;e", nil, nil, "GET /a?b=c&d=%zz;e HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"empty query", "", "GET", "/a?", nil, nil, "GET /a? HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"base path", "/engine/", "POST", "/v1/completions", nil, strings.NewReader("{}"),
			"POST /engine/v1/completions HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\n\r\n{}"},
		{"encoded slash", "/a%2Fb", "GET", "/v1/models/org%2Fname", nil, nil, "GET /a%2Fb/v1/models/org%2Fname HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"encoded path, no base", "", "GET", "/v1/models/org%2Fname%20x", nil, nil, "GET /v1/models/org%2Fname%20x HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"no path", "", "GET", "", nil, nil, "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"no path below a base", "/x", "GET", "", nil, nil, "GET /x/ HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"two slashes", "", "GET", "//v1//models", nil, nil, "GET //v1//models HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"user agent and encoding pass", "", "GET", "/a",
			http.Header{"User-Agent": {"curl/8"}, "Accept-Encoding": {"br, gzip"}, "X-Odd": {"", "two"}}, nil,
			"GET /a HTTP/1.1\r\nHost: HOST\r\nUser-Agent: curl/8\r\nAccept-Encoding: br, gzip\r\nX-Odd: \r\nX-Odd: two\r\n\r\n"},
		{"stream", "", "POST", "/a", http.Header{"Content-Type": {"application/json"}}, once("abc"),
			"POST /a HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
		{"delete with a body", "", "DELETE", "/a", nil, strings.NewReader("x"), "DELETE /a HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\n\r\nx"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr, got := record(t, "HTTP/1.1 204 No Content\r\n\r\n")
			p := open(t, quiet(parse(t, "http://"+addr+tt.base)))
			req, err := http.NewRequestWithContext(t.Context(), tt.method, "/", tt.body)
			if err != nil {
				t.Fatal(err)
			}
			req.URL = &url.URL{}
			if tt.path != "" { // as a server reads it
				if req.URL, err = url.ParseRequestURI(tt.path); err != nil {
					t.Fatal(err)
				}
			}
			if _, ok := tt.body.(*onceBody); ok {
				req.ContentLength = -1
			}
			req.Header = tt.header
			req.Host = "other.example" // as a proxy that copies its client's request has it
			if _, err := ask(p, req); err != nil {
				t.Fatal(err)
			}
			if got, want := <-got, strings.ReplaceAll(tt.want, "HOST", addr); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if _, ok := req.Header["User-Agent"]; ok && tt.header["User-Agent"] == nil {
				t.Error("the caller's header was changed")
			}
		})
	}
}

// Responses come as they are: redirects, encodings, trailers, odd statuses,
// informational responses.
func TestResponseOnTheWire(t *testing.T) {
	tests := []struct{ name, answer, body string }{
		{"redirect", "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere.example/\r\nContent-Length: 2\r\n\r\nhi", "hi"},
		{"gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot\x1fgzip!", "not\x1fgzip!"},
		{"rate limit", "HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}", "{}"},
		{"loading", "HTTP/1.1 503 Service Unavailable\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\nContent-Length: 2\r\n\r\n{}", "{}"},
		{"html", "HTTP/1.1 500 Oh\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p>\n", "<p>\n"},
		{"until closed", "HTTP/1.1 200 OK\r\n\r\ntail", "tail"},
		{"trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n", "abc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr, _ := record(t, tt.answer)
			p := open(t, quiet(parse(t, "http://"+addr)))
			req := post(t, t.Context(), "/v1/completions", "{}")
			resp, err := p.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || string(body) != tt.body {
				t.Fatalf("body %q, %v; want %q", body, err, tt.body)
			}
			want, err := http.ReadResponse(bufio.NewReader(strings.NewReader(tt.answer)), req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, want.Body)
			resp.Body, want.Body = http.NoBody, http.NoBody
			a, _ := httputil.DumpResponse(resp, false)
			b, _ := httputil.DumpResponse(want, false)
			if !bytes.Equal(a, b) {
				t.Errorf("got  %q\nwant %q", a, b)
			}
			if resp.Request != req || resp.Uncompressed || resp.Trailer.Get("X-Sum") != want.Trailer.Get("X-Sum") {
				t.Errorf("request %v, uncompressed %t, trailer %v", resp.Request, resp.Uncompressed, resp.Trailer)
			}
		})
	}
}

func TestBigHeadersAreRefused(t *testing.T) {
	addr, _ := record(t, "HTTP/1.1 200 OK\r\nX-Big: "+strings.Repeat("a", maxResponseHeader+5000)+"\r\n\r\n")
	p := open(t, quiet(parse(t, "http://"+addr)))
	_, err := ask(p, post(t, t.Context(), "/", ""))
	e := wantPhase(t, err, PhaseHeaders)
	if len(e.Error()) > 600 {
		t.Errorf("an error of %d bytes", len(e.Error()))
	}
}

func TestGarbageIsNamed(t *testing.T) {
	addr, _ := record(t, strings.Repeat("\x00garbage\x1b[31m", 5000)+"\r\n\r\n")
	p := open(t, quiet(parse(t, "http://"+addr)))
	_, err := ask(p, post(t, t.Context(), "/", ""))
	e := wantPhase(t, err, PhaseHeaders)
	if len(e.Error()) > 700 || strings.ContainsFunc(e.Error(), func(r rune) bool { return r < ' ' }) {
		t.Errorf("%d bytes: %q", len(e.Error()), e.Error())
	}
}

// A switch of protocols gives a body that can be written.
func TestSwitchingProtocols(t *testing.T) {
	s := raw(t, func(c net.Conn, r *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(c, c)
		return false
	})
	p := open(t, quiet(s.URL))
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
	req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"echo"}}
	resp, err := p.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	rw, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || resp.StatusCode != 101 {
		t.Fatalf("%s, body %T", resp.Status, resp.Body)
	}
	io.WriteString(rw, "ping\n")
	if line, err := textproto.NewReader(bufio.NewReader(rw)).ReadLine(); line != "ping" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	rw.Close()
	idle(t, p)
}

// Over TLS, HTTP/2 is spoken where the endpoint does, with the same care.
func TestTLS(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		var got *http.Request
		ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Trailer", "X-Sum")
			w.Write(body)
			w.Header().Set("X-Sum", "9")
		}))
		ts.EnableHTTP2 = h2
		ts.Config.ErrorLog = log.New(io.Discard, "", 0)
		ts.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(ts.Certificate())
		cfg := quiet(parse(t, ts.URL))
		cfg.TLS = &tls.Config{RootCAs: roots}
		p := open(t, cfg)
		resp, err := p.RoundTrip(post(t, t.Context(), "/v1/completions", "hello"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		major := map[bool]int{false: 1, true: 2}[h2]
		if err != nil || string(body) != "hello" || resp.ProtoMajor != major || resp.Trailer.Get("X-Sum") != "9" {
			t.Errorf("h2 %t: %q, %v, HTTP/%d, trailer %v", h2, body, err, resp.ProtoMajor, resp.Trailer)
		}
		if len(got.Header) != 1 || got.Header.Get("Content-Length") != "5" {
			t.Errorf("h2 %t: headers that nobody gave: %v", h2, got.Header)
		}

		// An unknown authority fails before anything is sent.
		p2 := open(t, quiet(parse(t, ts.URL)))
		_, err = ask(p2, post(t, t.Context(), "/", ""))
		wantPhase(t, err, PhaseConnect)
		p.Close()
		ts.Close()
	}
}
