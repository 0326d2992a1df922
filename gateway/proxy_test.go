package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unfray/unfray/gateway"
)

func newDebugLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// errorOf decodes an error object.
func errorOf(t *testing.T, m *message) (code, text string) {
	t.Helper()
	var body struct {
		Error struct{ Message, Type, Code string }
	}
	if err := json.Unmarshal(m.body, &body); err != nil || body.Error.Message == "" || body.Error.Type == "" {
		t.Fatalf("no error object: %v in %s", err, m)
	}
	return body.Error.Code, body.Error.Message
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 5 s: %s", what)
		}
	}
}

func TestProxyAddsNothing(t *testing.T) {
	up := newRawServer(t, say("HTTP/1.1 201 Made\r\nX-A: 1\r\nx-a: 2\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc"))
	f := newFront(t, up.addr, gateway.Config{})
	m := mustExchange(t, f.addr, "POST /v1/embeddings?x=%zz&y HTTP/1.1\r\nHost: me\r\nX-B: 1\r\nX-b: \r\nContent-Length: 2\r\n"+
		"Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 3\r\nTE: trailers, deflate\r\nProxy-Authorization: p\r\nUpgrade: h2c\r\n\r\nhi")
	got, wrong := up.take()
	if len(got) != 1 || len(wrong) != 0 {
		t.Fatalf("%v, %v", got, wrong)
	}
	want := &message{start: "POST /v1/embeddings?x=%zz&y HTTP/1.1", framing: "length", body: []byte("hi"), fields: map[string][]string{
		"host": {up.addr}, "x-b": {"1", ""}, "content-length": {"2"}, "te": {"trailers"},
	}}
	if got[0].String() != want.String() {
		t.Errorf("the upstream got\n%s\nwant\n%s", got[0], want)
	}
	want = &message{start: "HTTP/1.1 201 Created", framing: "length", body: []byte("abc"), fields: map[string][]string{
		"x-a": {"1", "2"}, "server": {"s"}, "content-length": {"3"}, "connection": {"close"},
	}}
	if m.String() != want.String() {
		t.Errorf("the client got\n%s\nwant\n%s", m, want)
	}
}

func TestProxyTargets(t *testing.T) {
	for _, base := range []string{"", "/base/path"} {
		up := newRawServer(t, nil)
		f := newFront(t, up.addr+base, gateway.Config{})
		for _, target := range []string{
			"/", "/x", "//", "//evil.example/x", "/a//b/", "/%41%2f%2F%7e", "/a%00b", "/a?", "/a??b?", "/?q=a|b\"<>\xff\x80#f", "/a;b=c:@!$&'()*+,=",
			"/a%20b%25", "/...", "/a..b/..c/d..", "/%e6%97%a5", "/http://evil.example/", "/a%0d%0aX-Injected:%201", "/?x=/../..",
		} {
			m := mustExchange(t, f.addr, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n")
			got, _ := up.take()
			if m.status() != 200 || len(got) != 1 || got[0].target() != base+target || len(got[0].fields) != 1 {
				t.Errorf("%q below %q: %v, upstream %v", target, base, m, got)
			}
		}
		// A known path goes to the upstream where the gateway has no use for it.
		if m := mustExchange(t, f.addr, "DELETE /v1/models/a HTTP/1.1\r\nHost: a\r\n\r\n"); m.status() != 200 {
			t.Errorf("DELETE of a model: %s", m)
		}
		up.take()
		for _, own := range []string{"POST /healthz", "PUT /readyz", "GET /unfray/v1/repair"} {
			m := mustExchange(t, f.addr, own+" HTTP/1.1\r\nHost: a\r\n\r\n")
			if got, _ := up.take(); m.status() != 405 || len(got) != 0 {
				t.Errorf("%s: %v, %v", own, m, got)
			}
		}
	}
}

func TestProxyRefusals(t *testing.T) {
	up := newRawServer(t, nil)
	f := newFront(t, up.addr, gateway.Config{})
	for _, row := range []struct {
		line   string
		fields string
		status int
	}{
		{"GET /v1/../admin", "", 400},
		{"GET /..", "", 400},
		{"GET /.", "", 400},
		{"GET /v1/./x", "", 400},
		{"GET /%2e%2e/x", "", 400},
		{"GET /x/.%2E/y", "", 400},
		{"GET /x%2f..%2fy", "", 400},
		{"GET /x/%252e%252e/y", "", 400},
		{"GET /x/%25252e%25252e/y", "", 400},
		{"GET /x/..%5cy", "", 400},
		{"GET /x/..;a=b/y", "", 400},
		{"GET /a|b", "", 400},
		{"GET /a\"b", "", 400},
		{"GET /a#b", "", 400},
		{"GET /\xe6\x97\xa5", "", 400},
		{"GET *", "", 400},
		{"GET http://evil.example/v1/embeddings", "", 421},
		{"GET https://user:pw@evil.example", "", 421},
		{"GET HTTP://evil.example/%2e%2e/", "", 421},
		{"GET ftp://evil.example/", "", 421},
		{"CONNECT evil.example:443", "", 501},
		{"TRACE /", "", 501},
		{"GET /chat", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAA\r\n", 501},
		{"GET /chat", "Connection: keep-alive, upgrade\r\nUpgrade: h2c, WebSocket\r\n", 501},
	} {
		m, err := exchange(t, f.addr, row.line+" HTTP/1.1\r\nHost: evil.example\r\n"+row.fields+"\r\n")
		got, wrong := up.take()
		if err != nil || m.status() != row.status || len(got)+len(wrong) > 0 {
			t.Errorf("%s: %v, %v, upstream %v %v", row.line, m, err, got, wrong)
			continue
		}
		errorOf(t, m)
	}
}

// What the upstream fails to do has a clear error or no end, and never its address.
func TestProxyUpstreamFails(t *testing.T) {
	cut := func(text string) func(*message, net.Conn) bool {
		return func(_ *message, c net.Conn) bool { io.WriteString(c, text); return false }
	}
	for _, row := range []struct {
		name   string
		reply  func(*message, net.Conn) bool
		status int // 0: the answer has begun and is cut
	}{
		{"closes at once", cut(""), 502},
		{"garbage", cut("garbage\r\n\r\n"), 502},
		{"status 99", cut("HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n"), 502},
		{"switches protocols unasked", cut("HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), 502},
		{"half a header", cut("HTTP/1.1 200 OK\r\nContent-Le"), 502},
		{"two lengths", cut("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), 502},
		{"bad field name", cut("HTTP/1.1 200 OK\r\nA(B: 1\r\nContent-Length: 1\r\n\r\na"), 502},
		{"no content where announced", cut("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), 502},
		{"too many 1xx", cut(strings.Repeat("HTTP/1.1 103 Early\r\nA: b\r\n\r\n", 40) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 502},
		{"ends amid a length", cut("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"), 0},
		{"ends before a chunk", cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), 0},
		{"ends amid a chunk", cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), 0},
		{"ends after a chunk", cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"), 0},
		{"ends in the trailers", cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nA: "), 0},
		{"bad chunk size", cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n"), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			up := newRawServer(t, row.reply)
			f := newFront(t, up.addr, gateway.Config{})
			for _, version := range []string{"1.1", "1.0"} {
				m, err := exchange(t, f.addr, "GET /x HTTP/"+version+"\r\nHost: a\r\n\r\n")
				if row.status == 0 {
					if err == nil {
						t.Errorf("%s: the answer seems to be whole: %s", version, m)
					}
					continue
				}
				if err != nil || m.status() != row.status {
					t.Fatalf("%s: %v, %v", version, m, err)
				}
				_, text := errorOf(t, m)
				if strings.Contains(text, "127.0.0.1") || len(m.fields["x-request-id"]) != 1 {
					t.Errorf("%s: %s", version, m)
				}
			}
			if !strings.Contains(f.log.String(), "status=502") {
				t.Errorf("log: %s", f.log)
			}
		})
	}
}

func TestProxyUnreachable(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	f := newFront(t, addr, gateway.Config{})
	m := mustExchange(t, f.addr, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na")
	code, text := errorOf(t, m)
	if m.status() != 502 || code != "upstream_failed" || strings.Contains(text, addr) || !strings.Contains(f.log.String(), addr) {
		t.Errorf("%s, log %s", m, f.log)
	}
}

func TestProxyTimeout(t *testing.T) {
	release := make(chan bool)
	up := newRawServer(t, func(m *message, c net.Conn) bool {
		if m.target() == "/stream" {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
		}
		<-release
		return false
	})
	defer close(release)
	f := newFront(t, up.addr, gateway.Config{Timeout: 300 * time.Millisecond})
	m := mustExchange(t, f.addr, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
	if code, _ := errorOf(t, m); m.status() != 504 || code != "timeout" {
		t.Errorf("%s", m)
	}
	if m, err := exchange(t, f.addr, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"); err == nil {
		t.Errorf("%s", m)
	}
}

// A client that leaves ends the request to the upstream, at every stage.
func TestProxyClientLeaves(t *testing.T) {
	for _, row := range []struct{ name, request, reply string }{
		{"before the answer", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n", ""},
		{"amid its body", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc", ""},
		{"amid its chunks", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", ""},
		{"after the body", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", ""},
		{"amid a stream", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"},
		{"amid a length", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"},
	} {
		t.Run(row.name, func(t *testing.T) {
			reached, left := make(chan bool, 1), make(chan error, 1)
			up := newRawServer(t, nil)
			up.early = func(_ *message, c net.Conn) {
				reached <- true
				io.WriteString(c, row.reply)
				c.SetReadDeadline(time.Now().Add(5 * time.Second))
				_, err := io.Copy(io.Discard, c)
				left <- err
			}
			f := newFront(t, up.addr, gateway.Config{})
			c := dial(t, f.addr)
			io.WriteString(c, row.request)
			if row.reply != "" {
				var seen []byte
				for !bytes.HasSuffix(seen, []byte("abc")) {
					b, err := c.r.ReadByte()
					if err != nil {
						t.Fatalf("%v after %q", err, seen)
					}
					seen = append(seen, b)
				}
			}
			<-reached
			c.Close()
			if err := <-left; errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the upstream's connection was left open: %v", err)
			}
			eventually(t, "the log says so", func() bool {
				return strings.Contains(f.log.String(), "status=499") || strings.Contains(f.log.String(), "status=400")
			})
		})
	}
}

func TestProxyExpect(t *testing.T) {
	const request = "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
	t.Run("continue", func(t *testing.T) {
		up := newRawServer(t, nil)
		up.early = func(_ *message, c net.Conn) {
			io.WriteString(c, "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n")
		}
		f := newFront(t, up.addr, gateway.Config{})
		c := dial(t, f.addr)
		io.WriteString(c, request)
		var head []string
		for len(head) == 0 || head[len(head)-1] != "HTTP/1.1 100 Continue" {
			line, err := readLine(c.r)
			if err != nil {
				t.Fatal(err, head)
			}
			head = append(head, line)
		}
		if strings.Contains(f.log.String(), "request") {
			t.Errorf("answered before the body was there")
		}
		io.WriteString(c, "abc")
		readLine(c.r)
		m, err := readAnswer(c.r, "POST")
		if err != nil || m.status() != 200 {
			t.Errorf("%v, %v", m, err)
		}
		if got, _ := up.take(); len(got) != 1 || string(got[0].body) != "abc" || got[0].fields["expect"][0] != "100-continue" {
			t.Errorf("%v", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		up := newRawServer(t, nil)
		up.early = func(_ *message, c net.Conn) {
			io.WriteString(c, "HTTP/1.1 401 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
			c.Close()
		}
		f := newFront(t, up.addr, gateway.Config{})
		m := mustExchange(t, f.addr, request)
		if m.status() != 401 || len(m.informational) != 0 || string(m.body) != "no" || m.fields["connection"][0] != "close" {
			t.Errorf("%s", m)
		}
	})
	t.Run("silent upstream", func(t *testing.T) {
		up := newRawServer(t, nil)
		f := newFront(t, up.addr, gateway.Config{})
		c := dial(t, f.addr)
		io.WriteString(c, request)
		if line, err := readLine(c.r); err != nil || line != "HTTP/1.1 100 Continue" {
			t.Fatalf("%q, %v", line, err)
		}
		readLine(c.r)
		io.WriteString(c, "abc")
		if m, err := readAnswer(c.r, "POST"); err != nil || m.status() != 200 {
			t.Errorf("%v, %v", m, err)
		}
	})
}

func TestProxyBodyLimit(t *testing.T) {
	up := newRawServer(t, nil)
	f := newFront(t, up.addr, gateway.Config{MaxBodyBytes: 1000})
	chunk := func(n int) string { return fmt.Sprintf("%x\r\n%s\r\n", n, strings.Repeat("a", n)) }
	const head = "POST /x HTTP/1.1\r\nHost: a\r\n"
	for _, row := range []struct {
		request string
		status  int
	}{
		{head + "Content-Length: 1000\r\n\r\n" + strings.Repeat("a", 1000), 200},
		{head + "Content-Length: 1001\r\n\r\n" + strings.Repeat("a", 1001), 413},
		{head + "Content-Length: 9999999999\r\n\r\n", 413},
		{head + "Content-Length: 9999999999\r\nExpect: 100-continue\r\n\r\n", 413},
		{head + "Transfer-Encoding: chunked\r\n\r\n" + chunk(500) + chunk(500) + "0\r\n\r\n", 200},
		{head + "Transfer-Encoding: chunked\r\n\r\n" + chunk(500) + chunk(501) + "0\r\n\r\n", 413},
		{head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat(chunk(1), 1001) + "0\r\n\r\n", 413},
	} {
		m := mustExchange(t, f.addr, row.request)
		if m.status() != row.status {
			t.Errorf("%.90q: %s", row.request, m)
		}
		eventually(t, "the upstream has seen the end", func() bool { return up.connections() == 0 || row.status == 200 })
		got, _ := up.take()
		if whole := len(got) == 1; whole != (row.status == 200) {
			t.Errorf("%.90q: the upstream got %v", row.request, got)
		}
		if row.status == 413 {
			if code, _ := errorOf(t, m); code != "request_too_large" {
				t.Errorf("%s", m)
			}
		}
	}
}

// The upstream may answer before the request has ended. What comes after the
// answer is not taken for a request.
func TestProxyEarlyAnswer(t *testing.T) {
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, padding := range []int{0, 10, 99_999, 3_000_000} {
		for _, chunked := range []bool{false, true} {
			up := newRawServer(t, func(_ *message, c net.Conn) bool { return false })
			up.early = func(_ *message, c net.Conn) {
				io.WriteString(c, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno")
			}
			f := newFront(t, up.addr, gateway.Config{})
			c := dial(t, f.addr)
			length, first, last := fmt.Sprintf("Content-Length: %d", padding+len(smuggled)), strings.Repeat("a", padding), smuggled
			if chunked {
				length = "Transfer-Encoding: chunked"
				if padding > 0 {
					first = fmt.Sprintf("%x\r\n%s\r\n", padding, first)
				}
				last = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)
			}
			fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n", length)
			go io.WriteString(c, first)
			m, err := readAnswer(c.r, "POST")
			if err != nil || m.status() != 403 || string(m.body) != "no" || len(m.fields["connection"]) == 0 {
				t.Fatalf("%d, %v: %v, %v", padding, chunked, m, err)
			}
			io.WriteString(c, last)
			if rest, err := io.ReadAll(c.r); len(rest) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%d, %v: %q, %v", padding, chunked, rest, err)
			}
			eventually(t, "the upstream has seen the end", func() bool { return up.connections() == 0 })
			got, _ := up.take()
			for _, m := range got {
				if m.target() != "/x" {
					t.Errorf("%d, %v: the upstream got %s", padding, chunked, m)
				}
			}
		}
	}
}

// Both sides may talk at once.
func TestProxyBothWays(t *testing.T) {
	up := newRawServer(t, nil)
	up.early = func(_ *message, c net.Conn) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	}
	up.reply = func(m *message, c net.Conn) bool {
		fmt.Fprintf(c, "%x\r\n%s\r\n0\r\n\r\n", len(m.body), m.body)
		return true
	}
	f := newFront(t, up.addr, gateway.Config{})
	c := dial(t, f.addr)
	io.WriteString(c, "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
	if line, err := readLine(c.r); err != nil || line != "HTTP/1.1 200 OK" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := readFields(c.r); err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "2\r\nbc\r\n0\r\n\r\n")
	m := &message{}
	if err := m.readChunks(c.r); err != nil || string(m.body) != "abc" {
		t.Errorf("%q, %v", m.body, err)
	}
}

// Each piece of an answer is there as soon as the upstream has sent it.
func TestProxyFlushes(t *testing.T) {
	for _, framing := range []string{"Transfer-Encoding: chunked\r\nContent-Type: text/event-stream", "Content-Length: 30", "X: until the end"} {
		step := make(chan bool)
		chunked := strings.HasPrefix(framing, "T")
		up := newRawServer(t, func(_ *message, c net.Conn) bool {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n"+framing+"\r\n\r\n")
			for i := range 10 {
				<-step
				piece := fmt.Sprintf("%02d\n", i)
				if chunked {
					piece = "3\r\n" + piece + "\r\n"
				}
				io.WriteString(c, piece)
			}
			if chunked {
				<-step
				io.WriteString(c, "0\r\n\r\n")
			}
			return false
		})
		f := newFront(t, up.addr, gateway.Config{})
		resp := make(chan *http.Response, 1)
		go func() {
			r, err := http.Get("http://" + f.addr + "/x")
			if err != nil {
				t.Error(err)
			}
			resp <- r
		}()
		step <- true
		r := <-resp
		for i := range 10 {
			var b [3]byte
			if _, err := io.ReadFull(r.Body, b[:]); err != nil || string(b[:]) != fmt.Sprintf("%02d\n", i) {
				t.Fatalf("%s: %q, %v", framing, b, err)
			}
			if i < 9 || chunked {
				step <- true
			}
		}
		if rest, err := io.ReadAll(r.Body); len(rest) > 0 || err != nil {
			t.Errorf("%s: %q, %v", framing, rest, err)
		}
		r.Body.Close()
	}
}

func TestProxyDrain(t *testing.T) {
	finish := make(chan bool)
	up := newRawServer(t, func(_ *message, c net.Conn) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
		<-finish
		_, err := io.WriteString(c, "2\r\ncd\r\n0\r\n\r\n")
		return err == nil
	})
	f := newFront(t, up.addr, gateway.Config{})
	c, late := dial(t, f.addr), dial(t, f.addr)
	io.WriteString(c, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
	if line, err := readLine(c.r); err != nil || line != "HTTP/1.1 200 OK" {
		t.Fatalf("%q, %v", line, err)
	}
	f.stop()
	eventually(t, "the drain has begun", func() bool { return strings.Contains(f.log.String(), "draining") })
	io.WriteString(late, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
	if m, err := readAnswer(late.r, "GET"); err != nil || m.status() != 503 {
		t.Errorf("%v, %v", m, err)
	}
	close(finish)
	m := &message{}
	var err error
	if m.fields, err = readFields(c.r); err != nil {
		t.Fatal(err)
	}
	if err := m.readBody(c.r, "close"); err != nil || string(m.body) != "abcd" {
		t.Errorf("%q, %v", m.body, err)
	}
}

func TestProxyDrainTimeout(t *testing.T) {
	up := newRawServer(t, nil)
	up.early = func(_ *message, c net.Conn) { io.Copy(io.Discard, c) }
	f := newFront(t, up.addr, gateway.Config{DrainTimeout: 20 * time.Millisecond})
	c := dial(t, f.addr)
	io.WriteString(c, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
	eventually(t, "the upstream is reached", func() bool { return up.connections() == 1 })
	f.stop()
	m, err := readAnswer(c.r, "GET")
	if err != nil || m.status() != 503 {
		t.Fatalf("%v, %v", m, err)
	}
	if code, _ := errorOf(t, m); code != "draining" {
		t.Errorf("%s", m)
	}
}
