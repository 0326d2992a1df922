package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/wire"
)

// The toy's random tokens are mostly single bytes: text full of sequences that
// are no characters, cut by the chunks anywhere.
func TestStreamedTextIsWholeText(t *testing.T) {
	r := newRig(t, rigOptions{})
	cut := r.tok.Encode(nil, []byte("Hello, \xe6\x97"))
	ids, err := json.Marshal(cut)
	if err != nil {
		t.Fatal(err)
	}
	split := 0
	for seed := range 150 {
		for _, prompt := range []string{`"The quick"`, string(ids)} {
			body := fmt.Sprintf(`{"prompt":%s,"seed":%d,"max_tokens":%d,"temperature":1.2,"logprobs":1,"echo":%v,"stop":["\n","a"]`, prompt, seed, 4+seed%13, false)
			whole := r.complete(body + `}`).decode(t).Choices[0]
			chunks := r.complete(body + `,"stream":true}`).chunks(t)
			streamed := joined(chunks).Choices[0]
			var exact []byte
			for _, c := range chunks {
				part := c.Choices[0].Bytes
				if part == nil {
					part = []byte(c.Choices[0].Text)
				} else {
					split++
				}
				exact = append(exact, part...)
			}
			want := whole.Bytes
			if want == nil {
				want = []byte(whole.Text)
			}
			if streamed.Text != whole.Text || string(exact) != string(want) || text(streamed.FinishReason) != text(whole.FinishReason) {
				t.Errorf("%s, seed %d: streamed %q (%q, %s), whole %q (%q, %s)", prompt, seed,
					streamed.Text, exact, text(streamed.FinishReason), whole.Text, want, text(whole.FinishReason))
			}
			if whole.Logprobs != nil && streamed.Logprobs != nil && len(whole.Logprobs.Tokens) > 0 {
				a, _ := json.Marshal(whole.Logprobs)
				b, _ := json.Marshal(streamed.Logprobs)
				if string(a) != string(b) {
					t.Errorf("%s, seed %d: logprobs\nwhole    %s\nstreamed %s", prompt, seed, a, b)
				}
			}
		}
	}
	if split == 0 {
		t.Error("no stream had a part that is not UTF-8: the test proves nothing")
	}
}

func TestStreamShape(t *testing.T) {
	r := newRig(t, rigOptions{scripts: []string{code}})
	body := `{"prompt":"function us","temperature":0,"stream":true`
	a := r.complete(body + `}`)
	for h, want := range map[string]string{
		"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache", "X-Accel-Buffering": "no",
	} {
		if got := a.header.Get(h); got != want {
			t.Errorf("%s: %q, want %q", h, got, want)
		}
	}
	chunks := a.chunks(t)
	for i, c := range chunks {
		last := i == len(chunks)-1
		if len(c.Choices) != 1 || (c.Choices[0].FinishReason != nil) != last || (c.Unfray != nil) != last || c.Usage != nil {
			t.Errorf("chunk %d of %d: %+v", i, len(chunks), c)
		}
	}
	if strings.Contains(string(a.body), `"usage"`) {
		t.Errorf("usage was not asked for: %s", a.body)
	}

	a = r.complete(body + `,"stream_options":{"include_usage":true}}`)
	chunks = a.chunks(t)
	for i, c := range chunks {
		last := i == len(chunks)-1
		if (len(c.Choices) == 0) != last || (c.Usage != nil) != last || (c.Unfray != nil) != last {
			t.Errorf("with usage, chunk %d of %d: %+v", i, len(chunks), c)
		}
	}
	if n := strings.Count(string(a.body), `"usage":null`); n != len(chunks)-1 {
		t.Errorf("%d of %d chunks have a null usage", n, len(chunks))
	}
}

// Every token arrives before the next one is computed.
func TestStreamIsNotBuffered(t *testing.T) {
	gate := make(chan struct{})
	r := newRig(t, rigOptions{toy: backendtest.Options{Gate: gate}, scripts: []string{paris}})
	srv := httptest.NewServer(r.gateway)
	defer srv.Close()
	for path, body := range map[string]string{
		"/v1/completions":      `{"prompt":"The","temperature":0,"stream":true,"unfray":{"heal":"off"}}`,
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"Hello"}],"temperature":0,"stream":true,"max_tokens":4}`,
	} {
		resp, err := http.Post(srv.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err) // the header comes before the first token
		}
		events := wire.NewEventReader(bufio.NewReader(resp.Body))
		for range 3 {
			gate <- struct{}{}
			if e, err := events.Next(); err != nil || string(e.Data) == wire.Done {
				t.Fatalf("%s: %q, %v", path, e.Data, err)
			}
		}
		resp.Body.Close()
		waitFor(t, "the end of the generation", func() bool { return r.toy.Running() == 0 })
	}
}

func TestClientGone(t *testing.T) {
	gate := make(chan struct{})
	r := newRig(t, rigOptions{toy: backendtest.Options{Gate: gate}})
	srv := httptest.NewServer(r.gateway)
	defer srv.Close()
	for _, stream := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/v1/completions",
			strings.NewReader(fmt.Sprintf(`{"prompt":"The","n":3,"max_tokens":100,"stream":%v}`, stream)))
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() {
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				bufio.NewReader(resp.Body).ReadString('\n') // the first event
				cancel()
				resp.Body.Close()
			}
			gone <- err
		}()
		waitFor(t, "the start", func() bool { return r.toy.Running() == 3 })
		if !stream {
			cancel()
		}
		for left := false; !left; {
			select {
			case gate <- struct{}{}:
			case err := <-gone:
				if left = true; err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
		}
		cancel()
		// Nobody opens the gate any more: only cancellation ends the requests.
		waitFor(t, "the end of the generations", func() bool { return r.toy.Running() == 0 })
	}
	srv.Close()
	if log := r.log.String(); strings.Count(log, "status=499") != 2 {
		t.Errorf("log: %s", log)
	}
}

func TestQueueFull(t *testing.T) {
	gate := make(chan struct{})
	r := newRig(t, rigOptions{toy: backendtest.Options{Gate: gate, Parallel: 1, Queue: -1}})
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan int)
	go func() {
		req := httptest.NewRequestWithContext(ctx, "POST", "/v1/completions", strings.NewReader(`{"prompt":"The"}`))
		w := httptest.NewRecorder()
		r.gateway.ServeHTTP(w, req)
		held <- w.Code
	}()
	waitFor(t, "the start", func() bool { return r.toy.Running() == 1 })
	for _, stream := range []bool{true, false} {
		a := r.complete(fmt.Sprintf(`{"prompt":"The","n":2,"stream":%v}`, stream))
		if e := a.apiError(t); a.status != 429 || text(e.Code) != "queue_full" || a.header.Get("Retry-After") != "1" {
			t.Errorf("stream %v: %d, Retry-After %q, %+v", stream, a.status, a.header.Get("Retry-After"), e)
		}
	}
	cancel()
	<-held
	if r.toy.Running()+r.toy.Waiting() != 0 {
		t.Errorf("%d running, %d waiting", r.toy.Running(), r.toy.Waiting())
	}
}

// A request with more choices than the queue has places is served in turns.
func TestMoreChoicesThanPlaces(t *testing.T) {
	r := newRig(t, rigOptions{toy: backendtest.Options{Parallel: 1, Queue: 1}, scripts: []string{paris}})
	c := r.complete(`{"prompt":"The","n":12,"temperature":0,"unfray":{"heal":"off"}}`).decode(t)
	for _, ch := range c.Choices {
		if ch.Text != " capital of France is Paris" {
			t.Errorf("choice %d: %q", ch.Index, ch.Text)
		}
	}
}

// faulty is a backend that fails: at admission, or after some tokens.
type faulty struct {
	*backendtest.Toy
	admit func() error
	next  func(n int) error
}

func (f *faulty) Generate(ctx context.Context, req *backend.Request) (backend.Stream, error) {
	if f.admit != nil {
		if err := f.admit(); err != nil {
			return nil, err
		}
	}
	s, err := f.Toy.Generate(ctx, req)
	return &faultyStream{Stream: s, f: f}, err
}

type faultyStream struct {
	backend.Stream
	f *faulty
	n int
}

func (s *faultyStream) Next() (backend.Token, error) {
	if s.n++; s.f.next != nil {
		if err := s.f.next(s.n); err != nil {
			return backend.Token{}, err
		}
	}
	return s.Stream.Next()
}

// replaceModel puts a gateway over another backend with the same model.
func (r *rig) replaceModel(t *testing.T, b backend.Backend, cfg gateway.Config) {
	t.Helper()
	m, err := unfray.NewModel(b, r.tok)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Models = []gateway.Model{{Model: m}}
	cfg.Log = newLog(r.log)
	if r.gateway, err = gateway.New(cfg); err != nil {
		t.Fatal(err)
	}
}

func TestBackendFailures(t *testing.T) {
	broken := fmt.Errorf("%w: decode returned -3 in /opt/llama.so", backend.ErrEngine)
	for _, c := range []struct {
		name      string
		admit     func() error
		next      func(int) error
		status    int
		code      string
		midstream string // code of the event, "-" if it fails before
	}{
		{"engine at admission", func() error { return broken }, nil, 500, "null", "-"},
		{"closed", func() error { return backend.ErrClosed }, nil, 503, "draining", "-"},
		{"panic at admission", func() error { panic("boom") }, nil, 500, "null", "-"},
		{"engine later", nil, func(n int) error {
			if n > 3 {
				return broken
			}
			return nil
		}, 500, "null", "null"},
		{"panic later", nil, func(n int) error {
			if n > 3 {
				panic("boom")
			}
			return nil
		}, 500, "null", "null"},
	} {
		r := newRig(t, rigOptions{})
		r.replaceModel(t, &faulty{Toy: r.toy, admit: c.admit, next: c.next}, gateway.Config{})
		a := r.complete(`{"prompt":"The","temperature":0,"logit_bias":{"9":100}}`)
		e := a.apiError(t)
		if a.status != c.status || text(e.Code) != c.code {
			t.Errorf("%s: %d, %+v", c.name, a.status, e)
		}
		if strings.Contains(string(a.body), "llama.so") || strings.Contains(string(a.body), "boom") {
			t.Errorf("%s: the client sees the inside: %s", c.name, a.body)
		}
		if log := r.log.String(); c.status == 500 && !strings.Contains(log, "llama.so") && !strings.Contains(log, "boom") {
			t.Errorf("%s: the log does not say why: %s", c.name, log)
		}
		a = r.complete(`{"prompt":"The","temperature":0,"stream":true,"logit_bias":{"9":100}}`)
		if c.midstream == "-" {
			if a.status != c.status {
				t.Errorf("%s, streaming: %d", c.name, a.status)
			}
			continue
		}
		body := string(a.body)
		if a.status != 200 || !strings.HasSuffix(body, "}}\n\n") || !strings.Contains(body, `data: {"error":{"message":`) || strings.Contains(body, wire.Done) {
			t.Errorf("%s, streaming: %d %s", c.name, a.status, body)
		}
		waitFor(t, "the end of the generation", func() bool { return r.toy.Running() == 0 })
	}
}
