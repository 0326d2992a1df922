package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// answer is what a healthy server says to a request.
func answer(path string) string {
	return strings.Repeat("data: "+path+"\n\n", 40)
}

// odd writes an answer to a connection with a fault that depends on the
// request. It reports whether the connection goes on.
func odd(c net.Conn, r *http.Request) bool {
	io.Copy(io.Discard, r.Body)
	full := answer(r.URL.Path)
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(full))
	var n int
	fmt.Sscanf(r.URL.Path, "/%d", &n)
	switch n % 13 {
	case 0: // closed at once
		return false
	case 1:
		reset(c)
		return false
	case 2: // half the headers
		io.WriteString(c, head[:20])
		return false
	case 3: // half the body
		io.WriteString(c, head+full[:len(full)/2])
		return false
	case 4: // half a body of unknown length is told by a missing last chunk
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n")
		return false
	case 5: // hangs before headers
		time.Sleep(150 * time.Millisecond)
		return false
	case 6: // hangs in the body
		io.WriteString(c, head+full[:7])
		time.Sleep(150 * time.Millisecond)
		return false
	case 7:
		io.WriteString(c, "\x16\x03\x01 garbage\r\n\r\n")
		return false
	case 8:
		io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy")
	case 9:
		io.WriteString(c, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy")
	case 10:
		io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>")
	case 11: // slow, in small parts
		io.WriteString(c, head)
		for part := full; part != ""; {
			k := min(len(part), 50)
			io.WriteString(c, part[:k])
			part = part[k:]
			time.Sleep(time.Millisecond)
		}
	default: // a second answer that nobody asked for
		io.WriteString(c, head+full+head+"smuggled")
		return false
	}
	return true
}

// exchange sends request n the way its number says and checks that what comes
// is the right answer or a clear error. It returns which.
func exchange(t *testing.T, p *Pool, n int) string {
	path := fmt.Sprintf("/%d", n)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leaves := n%7 == 0
	if leaves {
		time.AfterFunc(time.Duration(n%20)*time.Millisecond, cancel)
	}
	req := post(t, WithKey(ctx, []byte(strings.Repeat(path, 100))), path, strings.Repeat("x", n%5000))
	if n%3 == 0 {
		req.Body, req.GetBody = once("a body that cannot be replayed"), nil
		req.ContentLength = -1
	}
	resp, err := p.RoundTrip(req)
	if err == nil {
		defer resp.Body.Close()
		if n%11 == 0 { // reads a little and goes
			io.ReadFull(resp.Body, make([]byte, 5))
			return "left"
		}
		var body []byte
		if body, err = io.ReadAll(resp.Body); err == nil {
			switch {
			case resp.StatusCode == 200 && string(body) == answer(path):
				return "answer"
			case resp.StatusCode != 200 && resp.StatusCode != 500:
				return resp.Status
			}
			t.Errorf("%s: %s, a body of %d bytes that is not the answer", path, resp.Status, len(body))
			return "wrong"
		}
	}
	var e *Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Error(), "upstream http://127.0.0.1:") {
		t.Errorf("%s: %T %v", path, err, err)
		return "wrong"
	}
	if errors.Is(err, context.Canceled) != (ctx.Err() != nil) && !leaves {
		t.Errorf("%s: %v, the caller's context: %v", path, err, ctx.Err())
	}
	return "error: " + string(e.Phase)
}

// Under every fault at once each request ends with the right answer or a clear
// error, and afterwards no goroutine and no file descriptor is left.
func TestFaults(t *testing.T) {
	requests, clients := 1500, 16
	if testing.Short() {
		requests = 400
	}
	log.SetOutput(io.Discard) // net/http tells of answers that nobody asked for
	defer log.SetOutput(os.Stderr)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	t.Run("requests", func(t *testing.T) {
		good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			io.WriteString(w, answer(r.URL.Path))
		}))
		defer good.Close()
		cfg := Config{Log: quiet().Log, FirstByteTimeout: 100 * time.Millisecond, IdleTimeout: 100 * time.Millisecond}
		cfg.Health = Health{Interval: 20 * time.Millisecond, Timeout: time.Second}
		cfg.Endpoints = urls(raw(t, odd), raw(t, odd), raw(t, odd), &server{URL: refused(t)}, &server{URL: parse(t, good.URL)})
		p := open(t, cfg)
		p.eject = ejection{after: 20, base: 5 * time.Millisecond, most: 20 * time.Millisecond}
		var mu sync.Mutex
		outcomes := map[string]int{}
		var next atomic.Int64
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for n := next.Add(1); n <= int64(requests); n = next.Add(1) {
					got := exchange(t, p, int(n))
					mu.Lock()
					outcomes[got]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		idle(t, p)
		t.Logf("%v", outcomes)
		for _, outcome := range []string{"answer", "left", "error: headers", "error: body"} {
			if outcomes[outcome] < requests/100 {
				t.Errorf("%s: only %d of %d", outcome, outcomes[outcome], requests)
			}
		}
		p.Close()
		if _, err := ask(p, post(t, t.Context(), "/", "")); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	eventually(t, "goroutines are back to the base line", func() bool { return runtime.NumGoroutine() <= goroutines })
	eventually(t, "file descriptors are back to the base line", func() bool { return openFiles(t) <= files })
}

// openFiles counts the process's file descriptors, where the system tells.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(all)
}

// Close is safe twice, before the first request and under running ones, which
// go on. It leaves nothing behind.
func TestClose(t *testing.T) {
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	t.Run("pools", func(t *testing.T) {
		more := make(chan bool)
		ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/health" {
				io.WriteString(w, "first ")
				flush(w)
				<-more
				io.WriteString(w, "second")
			}
		}))
		defer ts.Close()
		for range 20 {
			p := open(t, Config{Endpoints: []*url.URL{parse(t, ts.URL)}, Log: quiet().Log})
			p.Close()
			p.Close()
		}
		p := open(t, Config{Endpoints: []*url.URL{parse(t, ts.URL)}, Log: quiet().Log})
		resp, err := p.RoundTrip(post(t, t.Context(), "/", "x"))
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		more <- true
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "first second" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		if _, err := ask(p, post(t, t.Context(), "/", "x")); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		start := time.Now()
		eventually(t, "the connection is closed", func() bool {
			return !strings.Contains(stacks(), "persistConn")
		})
		if d := time.Since(start); d > idleConnection/2 {
			t.Errorf("after %v only", d)
		}
	})
	eventually(t, "goroutines are back", func() bool { return runtime.NumGoroutine() <= goroutines })
	eventually(t, "file descriptors are back", func() bool { return openFiles(t) <= files })
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
