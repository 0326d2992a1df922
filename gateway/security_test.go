package gateway_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unfray/unfray/gateway"
)

// quiet is how long nothing more must come.
const quiet = 100 * time.Millisecond

// everything sends what may be no request and reads until nothing more comes
// for a while.
func everything(t *testing.T, addr, raw string, within time.Duration) string {
	t.Helper()
	c := dial(t, addr)
	defer c.Close()
	go io.WriteString(c, raw)
	var all []byte
	for {
		wait := 5 * time.Second
		if len(all) > 0 {
			wait = within // for a second answer
		}
		c.SetReadDeadline(time.Now().Add(wait))
		buf := make([]byte, 4096)
		n, err := c.r.Read(buf)
		all = append(all, buf[:n]...)
		if err == nil {
			continue
		}
		ended := err == io.EOF || errors.Is(err, syscall.ECONNRESET) || len(all) > 0 && errors.Is(err, os.ErrDeadlineExceeded)
		if !ended {
			t.Errorf("%.200q: %v after %q", raw, err, all)
		}
		return string(all)
	}
}

const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

// A request whose bounds are in doubt is one request upstream, framed anew, or
// none at all.
func TestSmuggling(t *testing.T) {
	const post = "POST /x HTTP/1.1\r\nHost: a\r\n"
	both := fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", len(smuggled)+5)
	for _, row := range []struct {
		name, raw string
		body      string // what the upstream may get
		status    string // "": any but 2xx, and nothing upstream
	}{
		{"length and chunks", post + both + smuggled, "", "200"},
		{"chunks and length", post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + smuggled, "abc", "200"},
		{"length 0 and chunks", post + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled), smuggled, "200"},
		{"two equal lengths", post + "Content-Length: 3\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc" + smuggled, "abc", "200"},
		{"two lengths", post + "Content-Length: 3\r\nContent-Length: 0\r\n\r\nabc" + smuggled, "", ""},
		{"list of lengths", post + "Content-Length: 3, 3\r\n\r\nabc" + smuggled, "", ""},
		{"signed length", post + "Content-Length: +3\r\n\r\nabc" + smuggled, "", ""},
		{"negative length", post + "Content-Length: -3\r\n\r\nabc" + smuggled, "", ""},
		{"hexadecimal length", post + "Content-Length: 0x3\r\n\r\nabc" + smuggled, "", ""},
		{"empty length", post + "Content-Length: \r\n\r\n" + smuggled, "", ""},
		{"length of 20 digits", post + "Content-Length: 99999999999999999999\r\n\r\n" + smuggled, "", ""},
		{"length with a vertical tab", post + "Content-Length: \x0b3\r\n\r\nabc" + smuggled, "", ""},
		{"length with space before the colon", post + "Content-Length : 3\r\n\r\nabc" + smuggled, "", ""},
		{"folded length", post + "Connection: close\r\nContent-Length:\r\n 3\r\n\r\nabc" + smuggled, "abc", "200"},
		{"coding with space before the colon", post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled, "", ""},
		{"folded coding", post + "Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + smuggled, "", "200"},
		{"coding after a tab", post + "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n" + smuggled, "", "200"},
		{"unknown coding", post + "Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\nabc" + smuggled, "", ""},
		{"two codings", post + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + smuggled, "", ""},
		{"chunked twice", post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + smuggled, "", ""},
		{"two fields of codings", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled, "", ""},
		{"coding with a vertical tab", post + "Transfer-Encoding: \x0bchunked\r\nContent-Length: 3\r\n\r\nabc" + smuggled, "", ""},
		{"coding with NUL", post + "Transfer-Encoding: chunked\x00\r\nContent-Length: 3\r\n\r\nabc" + smuggled, "", ""},
		{"coding with underscore", post + "Transfer_Encoding: chunked\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc" + smuggled, "abc", "200"},
		{"empty coding", post + "Transfer-Encoding: \r\nContent-Length: 3\r\n\r\nabc" + smuggled, "", ""},
		{"length named by Connection", post + "Connection: close, Content-Length, Host\r\nContent-Length: 3\r\n\r\nabc" + smuggled, "abc", "200"},
		{"coding in HTTP/1.0", "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc" + smuggled, "abc", "200"},
		{"lines end in LF", "POST /x HTTP/1.1\nHost: a\nConnection: close\nContent-Length: 3\n\nabc" + smuggled, "abc", "200"},
		{"field line ends in CR", post + "X: a\rContent-Length: 3\r\n\r\nabc" + smuggled, "", ""},
		{"NUL in a field", post + "X: a\x00b\r\n\r\n" + smuggled, "", ""},
		{"NUL in a name", post + "X\x00: b\r\n\r\n" + smuggled, "", ""},
		{"first field folded", "GET /x HTTP/1.1\r\n X: y\r\nHost: a\r\n\r\n" + smuggled, "", ""},
		{"line without a colon", post + "X\r\n\r\n" + smuggled, "", ""},
		{"empty name", post + ": x\r\n\r\n" + smuggled, "", ""},
		{"two hosts", post + "Host: b\r\n\r\n" + smuggled, "", ""},
		{"host with a space", "GET /x HTTP/1.1\r\nHost: a b\r\n\r\n" + smuggled, "", ""},
		{"no host", "GET /x HTTP/1.1\r\n\r\n" + smuggled, "", ""},
		{"space in the target", "GET /x y HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled, "", ""},
		{"tab in the target", "GET /x\ty HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled, "", ""},
		{"CR in the target", "GET /x\ry HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled, "", ""},
		{"NUL in the target", "GET /x\x00 HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled, "", ""},
		{"NUL in the query", "GET /x?\x00 HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled, "", ""},
		{"bad method", "GE(T /x HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled, "", ""},
		{"HTTP/0.9", "GET /x\r\n\r\n" + smuggled, "", ""},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + smuggled, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) { checkSmuggling(t, row.raw, row.body, row.status) })
	}
}

func TestSmugglingChunks(t *testing.T) {
	const head = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, row := range []struct{ name, chunks, body, status string }{
		{"extension", "3;a=b;c=\"\\\"\"\r\nabc\r\n0;x\r\n\r\n", "abc", "200"},
		{"leading zeros", "0003\r\nabc\r\n000\r\n\r\n", "abc", "200"},
		{"space after the size", "3 \r\nabc\r\n0\r\n\r\n", "abc", "200"},
		{"prefix 0x", "0x3\r\nabc\r\n0\r\n\r\n", "", ""},
		{"plus", "+3\r\nabc\r\n0\r\n\r\n", "", ""},
		{"minus", "-3\r\nabc\r\n0\r\n\r\n", "", ""},
		{"underscore", "1_0\r\nabcdefghijklmnop\r\n0\r\n\r\n", "", ""},
		{"no size", "\r\nabc\r\n0\r\n\r\n", "", ""},
		{"no digit", "g\r\nabc\r\n0\r\n\r\n", "", ""},
		{"17 digits", "10000000000000003\r\nabc\r\n0\r\n\r\n", "", ""},
		{"size ends in LF", "3\nabc\r\n0\r\n\r\n", "", ""},
		{"size ends in CR", "3\rabc\r\n0\r\n\r\n", "", ""},
		{"LF in an extension", "3;a\nb\r\nabc\r\n0\r\n\r\n", "", ""},
		{"CR in an extension", "3;a\rb\r\nabc\r\n0\r\n\r\n", "", ""},
		{"chunk too long", "3\r\nabcdef\r\n0\r\n\r\n", "", ""},
		{"chunk ends in LF", "3\r\nabc\n0\r\n\r\n", "", ""},
		{"chunk without an end", "3\r\nabc0\r\n\r\n", "", ""},
		{"trailer of 5 kB", "0\r\nX: " + strings.Repeat("a", 5000) + "\r\n\r\n", "", ""},
		{"trailer announces a length", "0\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\nHost: evil\r\nAuthorization: x\r\nX: y\r\n\r\n", "", "200"},
		{"half of it", "3\r\nab", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) { checkSmuggling(t, head+row.chunks+smuggled, row.body, row.status) })
	}
}

func checkSmuggling(t *testing.T, raw, body, status string) {
	up := newRawServer(t, nil)
	f := newFront(t, up.addr, gateway.Config{ReadTimeout: time.Second})
	answers := everything(t, f.addr, raw, quiet)
	if n := strings.Count(answers, "HTTP/1."); n > 1 {
		t.Errorf("%d answers: %.1000q", n, answers)
	}
	eventually(t, "the upstream has seen the end", func() bool {
		return up.connections() == 0 || status != ""
	})
	got, wrong := up.take()
	if status == "" {
		if len(got) > 0 || strings.HasPrefix(answers, "HTTP/1.1 2") {
			t.Errorf("the upstream got %v, the client %q", got, answers)
		}
		for _, err := range wrong { // a request may have begun, but never ended
			if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the upstream got %v", err)
			}
		}
		return
	}
	if len(got) != 1 || len(wrong) > 0 || got[0].target() != "/x" || string(got[0].body) != body || len(got[0].fields["host"]) != 1 || got[0].fields["host"][0] != up.addr {
		t.Fatalf("the upstream got %v, %v", got, wrong)
	}
	if !strings.HasPrefix(answers, "HTTP/1.") || !strings.HasPrefix(answers[9:], status) {
		t.Errorf("%q", answers)
	}
	for name := range got[0].trailers {
		if name != "x" {
			t.Errorf("trailer %s", name)
		}
	}
}

// FuzzRawRequests checks that the upstream gets requests, whatever the client
// sends: whole and strict ones, or the beginning of one that never ends.
func FuzzRawRequests(f *testing.F) {
	for _, s := range []string{
		smuggled, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" + smuggled,
		"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3;a\r\nabc\r\n0\r\nX: y\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"GET /x HTTP/1.1\nHost: a\nConnection: a,b, content-length\nA: \xff\n b\n\n",
	} {
		f.Add([]byte(s))
	}
	up := newRawServer(f, nil)
	front := newFront(f, up.addr, gateway.Config{ReadTimeout: 50 * time.Millisecond})
	f.Fuzz(func(t *testing.T, raw []byte) {
		answers := everything(t, front.addr, string(raw), 20*time.Millisecond)
		if len(answers) > 0 && !strings.HasPrefix(answers, "HTTP/1.") {
			t.Errorf("%q", answers)
		}
		_, wrong := up.take()
		for _, err := range wrong {
			if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the upstream got %v", err)
			}
		}
	})
}

// Requests after each other stay apart.
func TestPipelining(t *testing.T) {
	up := newRawServer(t, func(m *message, c net.Conn) bool {
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(m.target()), m.target())
		return err == nil
	})
	f := newFront(t, up.addr, gateway.Config{})
	c := dial(t, f.addr)
	io.WriteString(c, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nxGET /b HTTP/1.1\r\nHost: a\r\n\r\nGET /c HTTP/1.1\r\nHost: a\r\n\r\n")
	for _, want := range []string{"/a", "/b", "/c"} {
		if m, err := readAnswer(c.r, "GET"); err != nil || string(m.body) != want {
			t.Fatalf("%v, %v", m, err)
		}
	}
}

// What an upstream writes into fields cannot split an answer.
func TestAnswerSplitting(t *testing.T) {
	for _, reply := range []string{
		"HTTP/1.1 200 OK\r\nX: a\rHTTP/1.1 200 OK\rContent-Length: 0\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\nX: a\nContent-Length: 2\n\nok",
		"HTTP/1.1 200 OK\r\nX: a\r\n Y: b\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nX(: a\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 O\rK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: Content-Length\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 103 E\rX: y\r\nA: b\rc\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: ab\r\nContent-Length: 5\r\nSet-Cookie: a\r\n\r\n",
	} {
		up := newRawServer(t, func(_ *message, c net.Conn) bool { io.WriteString(c, reply); return false })
		f := newFront(t, up.addr, gateway.Config{})
		m, err := exchange(t, f.addr, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
		if m != nil && errors.Is(err, io.EOF) {
			err = nil
		}
		if err != nil && strings.Contains(err.Error(), "\\x00") {
			continue // a NUL is passed on where it stands; it ends nothing
		}
		if err != nil || m.status() != 502 && string(m.body) != "ok" {
			t.Errorf("%q: %v, %v", reply, m, err)
		}
		if m != nil && (m.trailers["set-cookie"] != nil || m.trailers["content-length"] != nil) {
			t.Errorf("%q: %s", reply, m)
		}
	}
}

func TestHostIsTheUpstreams(t *testing.T) {
	up := newRawServer(t, nil)
	f := newFront(t, up.addr, gateway.Config{})
	for _, host := range []string{"", "evil.example", "evil.example:99999", "127.0.0.1:22", "[::1]:80", "a@evil.example", "evil.example/path?x", "*"} {
		m := mustExchange(t, f.addr, "GET /x HTTP/1.1\r\nHost: "+host+"\r\nX-Forwarded-Host: evil.example\r\n\r\n")
		got, _ := up.take()
		if m.status() == 400 && len(got) == 0 {
			continue
		}
		if m.status() != 200 || len(got) != 1 || got[0].fields["host"][0] != up.addr || len(got[0].fields["x-forwarded-host"]) != 1 {
			t.Errorf("%q: %v, %v", host, m, got)
		}
	}
}

func TestOversize(t *testing.T) {
	up := newRawServer(t, nil)
	f := newFront(t, up.addr, gateway.Config{})
	many := strings.Repeat("X: y\r\n", 40_000)
	for _, row := range []struct{ name, raw, status string }{
		{"target", "GET /" + strings.Repeat("a", 300_000) + " HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 431"},
		{"field", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 300_000) + "\r\n\r\n", "HTTP/1.1 431"},
		{"fields", "GET / HTTP/1.1\r\nHost: a\r\n" + many + "\r\n", "HTTP/1.1 431"},
		{"percent signs", "GET /" + strings.Repeat("%25", 20_000) + "25 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200"},
		{"names in Connection", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close" + strings.Repeat(",a", 30_000) + "\r\n\r\n", "HTTP/1.1 200"},
	} {
		start := time.Now()
		if got := everything(t, f.addr, row.raw, quiet); !strings.HasPrefix(got, row.status) {
			t.Errorf("%s: %.300q", row.name, got)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: %v", row.name, took)
		}
	}
}

// Nesting costs an upstream what it costs; the gateway does not follow it.
func TestDeepNesting(t *testing.T) {
	up := newRawServer(t, nil)
	f := newFront(t, up.addr, gateway.Config{})
	for _, path := range []string{"/v1/embeddings", "/v1/completions", "/v1/chat/completions", "/infill"} {
		for _, body := range []string{
			strings.Repeat("[", 1_000_000), strings.Repeat(`{"a":`, 200_000), `{"model":"m","prompt":` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + "}",
			`{"model":"m","messages":` + strings.Repeat(`[{"content":`, 50_000) + "1" + strings.Repeat("}]", 50_000) + "}",
		} {
			start := time.Now()
			m := mustExchange(t, f.addr, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body))
			if m.status() != 200 && m.status() != 400 && m.status() != 404 {
				t.Errorf("%s %.20s: %s", path, body, m)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%s %.20s: %v", path, body, took)
			}
		}
	}
}

func TestSlowClients(t *testing.T) {
	const limit = 400 * time.Millisecond
	for _, row := range []struct {
		name, first, drip string
		keys              bool
		status            string
	}{
		{name: "request line", drip: "GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
		{name: "fields", first: "GET / HTTP/1.1\r\nHost: a\r\n", drip: strings.Repeat("X: y\r\n", 100)},
		{name: "body", first: "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", drip: strings.Repeat("a", 999), status: "HTTP/1.1 408"},
		{name: "chunks", first: "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", drip: strings.Repeat("1\r\na\r\n", 1000), status: "HTTP/1.1 408"},
		{name: "body that is not read", first: "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", drip: strings.Repeat("a", 999), keys: true, status: "HTTP/1.1 401"},
		{name: "chunks that are not read", first: "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", drip: strings.Repeat("1\r\na\r\n", 1000), keys: true, status: "HTTP/1.1 401"},
		{name: "nothing after Expect", first: "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n", status: "HTTP/1.1 100"},
	} {
		t.Run(row.name, func(t *testing.T) {
			up := newRawServer(t, nil)
			cfg := gateway.Config{ReadTimeout: limit}
			if row.keys {
				cfg.Keys = []gateway.Key{{SHA256: [32]byte{1}}}
			}
			f := newFront(t, up.addr, cfg)
			c := dial(t, f.addr)
			done := make(chan bool)
			go func() {
				io.WriteString(c, row.first)
				for _, b := range []byte(row.drip) {
					select {
					case <-done:
						return
					case <-time.After(limit / 10):
					}
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
				}
			}()
			start := time.Now()
			all, err := io.ReadAll(c.r)
			close(done)
			if errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) > 5*time.Second || !strings.HasPrefix(string(all), row.status) {
				t.Errorf("after %v: %v, %q", time.Since(start), err, all)
			}
			eventually(t, "the upstream is left", func() bool { return up.connections() == 0 })
			if got, _ := up.take(); len(got) > 0 {
				t.Errorf("the upstream got %v", got)
			}
		})
	}
}

func TestSlowReaders(t *testing.T) {
	for _, head := range []string{"Transfer-Encoding: chunked", "Content-Length: 1000000000", "X: y"} {
		ended := make(chan error, 1)
		up := newRawServer(t, func(_ *message, c net.Conn) bool {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n"+head+"\r\n\r\n")
			piece := []byte("8000\r\n" + strings.Repeat("a", 0x8000) + "\r\n")
			for {
				c.SetWriteDeadline(time.Now().Add(5 * time.Second))
				if _, err := c.Write(piece); err != nil {
					ended <- err
					return false
				}
			}
		})
		f := newFront(t, up.addr, gateway.Config{WriteTimeout: 150 * time.Millisecond})
		c := dial(t, f.addr)
		io.WriteString(c, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
		if err := <-ended; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the upstream waits for a client that does not read", head)
		}
		eventually(t, "the log says so", func() bool { return strings.Contains(f.log.String(), "status=499") })
	}
}

// Keys of clients and upstreams are nowhere but where they belong.
func TestKeysAreNotShown(t *testing.T) {
	const clientKey, upstreamKey, wrongKey = "sk-client-0123456789", "sk-upstream-0123456789", "sk-wrong-0123456789"
	up := newRawServer(t, func(m *message, c net.Conn) bool {
		if strings.HasPrefix(m.target(), "/cut") {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
			return false
		}
		return strings.HasPrefix(m.target(), "/ok") && say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(m, c)
	})
	f := newFront(t, up.addr, gateway.Config{
		Keys:    []gateway.Key{{Name: "ops", SHA256: hash("another")}, {Name: "team", SHA256: hash(clientKey)}},
		Default: &gateway.Upstream{Key: upstreamKey, Transport: newPool(t, up.addr)},
	})
	var answers strings.Builder
	for _, target := range []string{"/ok", "/ok?key=" + clientKey, "/fail", "/cut", "/v1/models", "/../x", "/healthz", "http://evil.example/"} {
		for _, method := range []string{"GET", "POST", "TRACE", "OPTIONS"} {
			for _, field := range []string{
				"Authorization: Bearer " + clientKey, "x-api-key: " + clientKey, "Authorization: Bearer " + wrongKey,
				"Authorization: Basic " + wrongKey, "Authorization: Bearer " + clientKey + "\r\nTransfer-Encoding: " + wrongKey,
				"Authorization: Bearer " + clientKey + "\r\nX: \x01" + wrongKey,
			} {
				answers.WriteString(everything(t, f.addr, method+" "+target+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+field+"\r\n\r\n", quiet))
			}
		}
	}
	for _, key := range []string{clientKey, upstreamKey, wrongKey} {
		if strings.Contains(answers.String(), key) {
			t.Errorf("an answer shows %s", key)
		}
		if strings.Contains(f.log.String(), key) {
			t.Errorf("the log shows %s", key)
		}
	}
	if !strings.Contains(f.log.String(), "key=team") || strings.Contains(f.log.String(), "key=ops") {
		t.Error("the log does not name the key")
	}
	got, _ := up.take()
	for _, m := range got {
		if a := m.fields["authorization"]; len(a) != 1 || a[0] != "Bearer "+upstreamKey || m.fields["x-api-key"] != nil {
			t.Errorf("the upstream got %s", m)
		}
	}
	if !slices.ContainsFunc(got, func(m *message) bool { return m.target() == "/ok" }) {
		t.Error("nothing got through")
	}
}
