package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unfray/unfray/gateway"
)

// oneConnection lets one request at a time go to a server: the next one waits until
// the body of the answer before it is closed.
type oneConnection struct {
	up    http.RoundTripper
	place chan struct{}
}

type placeBody struct {
	io.ReadCloser
	free func()
	done atomic.Bool
}

func (b *placeBody) Close() error {
	if b.done.CompareAndSwap(false, true) {
		b.free()
	}
	return b.ReadCloser.Close()
}

func (o oneConnection) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case o.place <- struct{}{}:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	resp, err := o.up.RoundTrip(r)
	if err != nil {
		<-o.place
		return nil, err
	}
	resp.Body = &placeBody{ReadCloser: resp.Body, free: func() { <-o.place }}
	return resp, nil
}

// A server that takes one request at a time is not asked to go on while its first
// answer is still being read.
func TestRecoverAsksBehindTheAnswer(t *testing.T) {
	m := &byHeart{script: longProse, limit: 90}
	up := &gateway.Upstream{Transport: oneConnection{&scripted{answer: m.answer}, make(chan struct{}, 1)}}
	r := recoverRig(t, gateway.Recovery{Mode: gateway.RecoverFull, Continue: gateway.ContinueFields}, nil, func(c *gateway.Config) {
		c.Models[0].Upstream, c.Default = up, nil
		c.Models[0].Timeout = 3 * time.Second
	})
	for _, stream := range []string{"", `,"stream":true`} {
		a := r.send("POST", "/v1/chat/completions", chatBody(stream+`,"unfray":{"recover":"full"}`))
		if g := readRecovered(t, a, 0); g.text != longProse || g.finish != "stop" {
			t.Errorf("stream %q: %q %s\n%s", stream, g.text, g.finish, a.body)
		}
	}
	// Nor is another model of it.
	up = &gateway.Upstream{Transport: oneConnection{&scripted{answer: func(_ int, body string) (string, []string) {
		switch {
		case strings.Contains(body, `"model":"big"`):
			return asJSON, []string{wholeChat(longJSON, "", "stop")}
		case strings.Contains(body, `"stream":true`):
			return events, chatStream("stop", "sorry, ", "not in JSON")
		}
		return asJSON, []string{wholeChat("sorry, not in JSON", "", "stop")}
	}}, make(chan struct{}, 1)}}
	for _, mode := range []gateway.RecoverMode{gateway.RecoverRepair, gateway.RecoverFull} {
		for _, stream := range []string{"", `,"stream":true`} {
			r := recoverRig(t, gateway.Recovery{Mode: mode, Fallback: "big", Attempts: 1}, nil, func(c *gateway.Config) {
				c.Models[0].Upstream, c.Default = up, nil
				c.Models[0].Timeout = 3 * time.Second
				c.Models = append(c.Models, gateway.Model{Name: "big", Upstream: up})
			})
			a := r.sendAny("/v1/chat/completions", chatBody(stream+asObject))
			if g := readRecovered(t, a, 0); g.text != longJSON || g.finish != "stop" {
				t.Errorf("%s, stream %q: %q %s\n%s", mode, stream, g.text, g.finish, a.body)
			}
		}
	}
}

// What a server says of itself, or where it is, is in no receipt.
func TestRecoverHidesServers(t *testing.T) {
	front := httptest.NewServer(http.NotFoundHandler())
	front.Close() // nobody listens there
	m := &byHeart{script: longProse, limit: 90}
	first := &scripted{answer: m.answer}
	n := 0
	up := &gateway.Upstream{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if n++; n == 1 {
			return first.RoundTrip(r)
		}
		return redirect{front.Listener.Addr().String()}.RoundTrip(r)
	})}
	for _, stream := range []string{"", `,"stream":true`} {
		n = 0
		r := recoverRig(t, gateway.Recovery{Mode: gateway.RecoverFull, Continue: gateway.ContinueFields}, nil, func(c *gateway.Config) {
			c.Models[0].Upstream, c.Default = up, nil
		})
		a := r.send("POST", "/v1/chat/completions", chatBody(stream+`,"unfray":{"recover":"full"}`))
		if bytes.Contains(a.body, []byte("127.0.0.1")) || bytes.Contains(a.body, []byte("dial")) {
			t.Errorf("%s", a.body)
		}
		t.Logf("%s", a.body)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A stream that says twice why a choice ended gives what is left once.
func TestRecoverEndsOnce(t *testing.T) {
	for _, mode := range []string{"repair", "full"} {
		up := &scripted{answer: func(int, string) (string, []string) {
			s := chatStream("stop", `<tool_call>{"name": "get", "arguments": {"n": 1}}</tool_call>`)
			end := s[len(s)-3]
			return events, append(s[:len(s)-2:len(s)-2], end, chatUsage, streamEnd)
		}}
		r := recoverRig(t, gateway.Recovery{}, up)
		a := r.send("POST", "/v1/chat/completions", chatBody(`,"stream":true,"tools":[{"type":"function","function":{"name":"get"}}],"unfray":{"recover":"`+mode+`"}`))
		if n := bytes.Count(a.body, []byte(`"arguments":"{\"n\": 1}"`)); n != 1 {
			t.Errorf("%s: %d times\n%s", mode, n, a.body)
		}
		if n := bytes.Count(a.body, []byte(`"finish_reason":"tool_calls"`)); n != 2 {
			t.Errorf("%s: ends %d times\n%s", mode, n, a.body)
		}
	}
}

// discard counts what it is given.
type discard struct {
	http.ResponseWriter
	n int
}

func (d *discard) Write(b []byte) (int, error) { d.n += len(b); return len(b), nil }

// endless is a stream of one event again and again.
type endless struct {
	head, event []byte
	n           int
	rest        []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.n--; e.n < 0 {
			return 0, io.EOF
		}
		e.rest = e.event
		if e.head != nil {
			e.rest, e.head = e.head, nil
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *endless) Close() error { return nil }

// What is kept of a stream is bounded, whatever it is made of.
func TestRecoverKeepsLittle(t *testing.T) {
	word := strings.Repeat("0123456789abcdef", 250)
	for name, delta := range map[string]string{
		"text":      `{"content":"` + word + `"}`,
		"arguments": `{"tool_calls":[{"index":0,"function":{"arguments":"` + word + `"}}]}`,
		"reasoning": `{"reasoning_content":"` + word + `"}`,
		"thoughts":  `{"content":"` + word + `"}`,
	} {
		for _, policy := range []gateway.ToolCallPolicy{gateway.DropCalls, gateway.RepairCalls} {
			var kept uint64
			up := roundTrip(func(r *http.Request) (*http.Response, error) {
				e := &endless{n: 4_000, event: []byte(chatChunk(delta, ""))}
				switch name {
				case "arguments":
					e.head = []byte(chatChunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\": \""}}]}`, ""))
				case "thoughts":
					e.head = []byte(chatChunk(`{"content":"<think>"}`, ""))
				}
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {events}}, ContentLength: -1, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: &measured{e, &kept}}, nil
			})
			r := recoverRig(t, gateway.Recovery{MaxBytes: 1 << 16, ToolCalls: policy, Strategies: []string{"reasoning", "repair", "text", "loop"}}, nil, func(c *gateway.Config) {
				c.Models[0].Upstream, c.Default = &gateway.Upstream{Transport: up}, nil
			})
			w := &discard{ResponseWriter: httptest.NewRecorder()}
			begun := time.Now()
			func() {
				defer func() { _ = recover() }()
				r.gateway.ServeHTTP(w, httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(chatBody(`,"stream":true,"unfray":{"recover":"repair"}`))))
			}()
			t.Log(name, policy, "given", w.n>>20, "MB, heap at the end", kept>>20, "MB", time.Since(begun))
			if kept > 6<<20 {
				t.Errorf("%s, %s: %d MB are kept of a stream of 16", name, policy, kept>>20)
			}
		}
	}
}

// measured looks at the heap when a stream ends.
type measured struct {
	*endless
	to *uint64
}

func (m *measured) Read(p []byte) (int, error) {
	n, err := m.endless.Read(p)
	if err != nil {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		*m.to = s.HeapAlloc
	}
	return n, err
}

// A model's limit holds for an answer and its continuations together, by whatever
// name a request asks for tokens.
func TestRecoverTokensOfAllNames(t *testing.T) {
	for _, tc := range []struct {
		more        string
		first, left float64 // of the requests to the server; 0: it is not asked again
	}{
		{`"max_tokens":20`, 20, 10},
		{`"n_predict":20`, 20, 10},
		{`"max_tokens":5,"n_predict":29`, 29, 1},
		{`"n_predict":29,"max_completion_tokens":5`, 29, 1},
		{`"n_predict":30`, 30, 0},
		{`"x":1`, 30, 0},
	} {
		for _, known := range []bool{true, false} {
			m := &byHeart{script: longProse, limit: 70}
			r := recoverRig(t, gateway.Recovery{Attempts: 1, MaxTokens: 500}, &scripted{answer: m.answer}, func(c *gateway.Config) {
				c.Models[0].MaxTokens, c.Recovery = 30, c.Models[0].Recovery
			})
			name := map[bool]string{true: "m", false: "other"}[known]
			r.send("POST", "/v1/completions", `{"model":"`+name+`","prompt":"PROMPT ","unfray":{"recover":"full"},`+tc.more+`}`)
			got := func(i int) (n float64) {
				for _, field := range []string{"max_tokens", "max_completion_tokens", "n_predict"} {
					if v, ok := m.seen[i][field].(float64); ok {
						n = max(n, v)
					}
				}
				return n
			}
			if got(0) != tc.first && tc.first < 30 || len(m.seen) > 1 != (tc.left > 0) || tc.left > 0 && got(1) != tc.left {
				t.Errorf("%s, %s: %v", name, tc.more, m.seen)
			}
		}
	}
}

// Parts of calls may alternate: each goes to its own call.
func TestRecoverAlternatingCalls(t *testing.T) {
	call := func(index int, head, arguments string) string {
		if head != "" {
			head = `"id":"` + head + `","type":"function",`
		}
		return `{"index":` + string(rune('0'+index)) + `,` + head + `"function":{"name":"f","arguments":` + jsonString(arguments) + `}}`
	}
	for _, policy := range []string{"drop", "mark", "repair"} {
		for _, tc := range []struct {
			parts  []string // of tool_calls, an event each
			finish string
			want   []string // arguments
			ends   string
		}{
			{[]string{call(0, "a", "{") + "," + call(1, "b", "{"), call(0, "", `"n":1}`), call(1, "", `"n":2}`)}, "tool_calls", []string{`{"n":1}`, `{"n":2}`}, "tool_calls"},
			{[]string{call(0, "a", ""), call(1, "b", `{"n":`), call(0, "", `{"n":1}`), call(2, "c", "{}"), call(1, "", "2}")}, "tool_calls", []string{`{"n":1}`, `{"n":2}`, `{}`}, "tool_calls"},
			{[]string{call(0, "a", `{"n":`), call(1, "b", `{"n":2}`), call(0, "", `1`)}, "length", map[string][]string{"drop": {`{"n":2}`}}[policy], "length"},
		} {
			pieces := []string{chatRole}
			for _, p := range tc.parts {
				pieces = append(pieces, chatChunk(`{"tool_calls":[`+p+`]}`, ""))
			}
			pieces = append(pieces, chatChunk("{}", tc.finish), streamEnd)
			r := recoverRig(t, gateway.Recovery{}, &scripted{answer: func(int, string) (string, []string) { return events, append([]string{}, pieces...) }})
			a := r.send("POST", "/v1/chat/completions", chatBody(`,"stream":true,"unfray":{"recover":{"mode":"repair","tool_calls":"`+policy+`"}}`))
			g := readRecovered(t, a, 0)
			var got []string
			for _, c := range g.calls {
				got = append(got, c.Arguments)
			}
			if g.finish != tc.ends || tc.want != nil && !slices.Equal(got, tc.want) {
				t.Errorf("%s, %q: %q %s\n%s", policy, tc.parts, got, g.finish, a.body)
			}
		}
	}
}

// An answer that is to be refused is not given before.
func TestRecoverRefusesStreams(t *testing.T) {
	for _, mode := range []string{"repair", "full"} {
		up := &scripted{answer: func(int, string) (string, []string) { return events, chatStream("stop", "sorry, ", "not in JSON") }}
		r := recoverRig(t, gateway.Recovery{Attempts: -1}, up)
		a := r.send("POST", "/v1/chat/completions", chatBody(asObject+`,"stream":true,"unfray":{"recover":{"mode":"`+mode+`","on_failure":"error"}}`))
		if bytes.Contains(a.body, []byte("sorry, \"")) || bytes.Contains(a.body, []byte(`"stop"`)) || bytes.Count(a.body, []byte("recovery_failed")) != 1 || bytes.Contains(a.body, []byte("[DONE]")) {
			t.Errorf("%s: %s", mode, a.body)
		}
	}
}
