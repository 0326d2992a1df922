//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func toyPrompts() []string {
	return []string{serialOpen + serialZeros + serialClose + " one \"quoted\" <text>" + promptEnd, serialOpen + serialZeros + serialClose + " two\\" + promptEnd}
}

func TestLoad(t *testing.T) {
	m, url := toyServer(t, "llamacpp", false)
	for _, route := range []string{completionRoute, chatRoute} {
		for _, w := range workloads {
			exercises, err := newExercises(m.script, toyPrompts(), route, w.stream)
			if err != nil {
				t.Fatal(err)
			}
			l := &load{address: strings.TrimPrefix(url, "http://"), route: route, exercises: exercises, stream: w.stream,
				identical: true, conns: w.conns, warm: 10 * time.Millisecond, measure: 30 * time.Millisecond}
			var serials atomic.Uint64
			r := l.run(t.Context(), &serials)
			if r.wrong != 0 || r.latency.n < uint64(w.conns) || r.first.n != r.latency.n || r.dials != w.conns || r.perSecond <= 0 {
				t.Errorf("%s, %s: %d wrong (%v), %d measured over %d connections, %.1f/s", route, w.name, r.wrong, r.why, r.latency.n, r.dials, r.perSecond)
			}
			if r.first.quantile(0.5) > r.latency.quantile(0.5) {
				t.Errorf("%s, %s: the first byte comes after the last", route, w.name)
			}
		}
	}
}

// Every way in which an answer may be wrong is counted.
func TestLoadFindsWrongAnswers(t *testing.T) {
	m, _ := toyServer(t, "llamacpp", false)
	exercises, err := newExercises(m.script, toyPrompts()[:1], completionRoute, false)
	if err != nil {
		t.Fatal(err)
	}
	right := func(n serial) string { return string(exercises[0].bytes.fill(nil, n)) }
	for _, test := range []struct {
		name      string
		answer    func(n serial) string // the body, of status 200
		identical bool
		wrong     string
	}{
		{"right", right, true, ""},
		{"of another request", func(serial) string { return right(newSerial(77)) }, false, "the text differs"},
		{"another form", func(n serial) string { return strings.Replace(right(n), `"object":`, `"object": `, 1) }, true, "the answer differs"},
		{"another form, which may be", func(n serial) string { return strings.Replace(right(n), `"text":`, `"text": `, 1) }, false, ""},
		{"cut", func(n serial) string { return right(n)[:300] }, false, "the text differs"},
		{"empty", func(serial) string { return "{}" }, false, "the text differs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := rawServer(t, func(request string) string {
				at := strings.Index(request, serialOpen) + len(serialOpen)
				body := test.answer(serial([]byte(request[at : at+serialDigits])))
				return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			})
			l := &load{address: address, route: completionRoute, exercises: exercises, identical: test.identical, conns: 1, measure: 5 * time.Millisecond}
			var serials atomic.Uint64
			r := l.run(t.Context(), &serials)
			if (r.wrong > 0) != (test.wrong != "") || r.wrong > 0 && !strings.Contains(r.why.Error(), test.wrong) {
				t.Errorf("%d wrong: %v", r.wrong, r.why)
			}
		})
	}
}

// rawServer answers every request with what answer returns, and closes the connection where that says so.
func rawServer(t *testing.T, answer func(request string) string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					var request strings.Builder
					length := 0
					for {
						line, err := in.ReadString('\n')
						if err != nil {
							return
						}
						request.WriteString(line)
						if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
							fmt.Sscan(n, &length)
						}
						if line == "\r\n" {
							break
						}
					}
					body := make([]byte, length)
					for n := 0; n < length; {
						k, err := in.Read(body[n:])
						if err != nil {
							return
						}
						n += k
					}
					text := answer(request.String() + string(body))
					conn.Write([]byte(text))
					if strings.Contains(text, "Connection: close") || strings.HasSuffix(text, "cut") {
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

func TestClientReadsAnswers(t *testing.T) {
	for _, test := range []struct {
		name, answer string
		status       int
		body, wrong  string
	}{
		{"length", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, "hello", ""},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n", 200, "hello", ""},
		{"trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n", 200, "hello", ""},
		{"an error", "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", 503, "busy", ""},
		{"closed", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", ""},
		{"no length", "HTTP/1.1 200 OK\r\n\r\nhello", 200, "", "neither"},
		{"a bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 200, "", "chunk's length"},
		{"a long chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n", 200, "", "longer than it says"},
		{"huge", "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nhello", 200, "", "more than"},
		{"another protocol", "SSH-2.0-OpenSSH_9.2\r\n\r\n", 0, "", "no answer of HTTP"},
		{"cut off", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\ncut", 200, "", "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &client{address: rawServer(t, func(string) string { return test.answer })}
			defer c.close()
			for range 3 {
				status, _, err := c.exchange(t.Context(), appendRequest(nil, "x", completionRoute, []byte("{}")))
				if test.wrong == "" && (err != nil || status != test.status || string(c.body) != test.body) {
					t.Fatalf("%d %q: %v", status, c.body, err)
				}
				if test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
					t.Fatalf("error %v, want one with %q", err, test.wrong)
				}
			}
		})
	}
}

// A server that is not there is an error, not a wait.
func TestLoadWithoutServer(t *testing.T) {
	m, _ := toyServer(t, "llamacpp", false)
	exercises, err := newExercises(m.script, toyPrompts(), completionRoute, false)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(nil)
	s.Close()
	l := &load{address: strings.TrimPrefix(s.URL, "http://"), route: completionRoute, exercises: exercises, conns: 2, measure: time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var serials atomic.Uint64
	if r := l.run(ctx, &serials); r.wrong != 20 || r.latency.n != 0 || r.perSecond != 0 {
		t.Errorf("%d wrong, %d measured", r.wrong, r.latency.n)
	}
}

func FuzzAnswerText(f *testing.F) {
	f.Add([]byte(`{"text":"a","text": "b","text":null}`))
	f.Add([]byte(`"text":"`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if got := answerText(nil, answer, completionRoute); len(got) > len(answer) {
			t.Errorf("%d bytes of %d", len(got), len(answer))
		}
	})
}
