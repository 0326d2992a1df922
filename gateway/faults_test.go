package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/remote"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/upstream"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

var faultRequests = flag.Int("faults", 0, "requests of TestFaults to each server; 0: few")

// fault is what a server does in place of an answer.
type fault int

const (
	none fault = iota
	refuse
	hangBeforeHeaders
	hangAfterHeaders
	dieMidway
	garbage
	halfEvent
	longLine
	wrongType
	busy
	htmlError
	errorFrame
	strangeToken
	noEnd
	constraintIgnored
	detail
	faults
)

func (f fault) String() string {
	return [...]string{"none", "refuse", "hang before headers", "hang after headers", "die midway", "garbage", "half an event",
		"10 MB line", "wrong type", "429", "500 with HTML", "error frame", "strange token", "no end", "constraint ignored", "an error as a detail"}[f]
}

// faultyServer is what servers that go wrong have in common: a model that knows one text
// by heart, and the faults.
type faultyServer struct {
	tok    *tokenizer.Tokenizer
	script []vocab.ID
	sound  atomic.Bool // no faults
	plan   []fault     // the next ones, before those that are drawn
	rng    *rand.Rand
	mu     sync.Mutex
	counts [faults]int
	hang   chan struct{} // closed at the end
}

const faultScript = "The capital of France is Paris, and the capital of Italy is Rome. So it goes on for a while."

// faultBackend is what the backends have in common.
type faultBackend interface {
	backend.Backend
	backend.ChatTokenizer
	TokenizerError() error
}

// faultServers are the servers that are healed, and the backend of each.
var faultServers = []struct {
	name   string
	native bool
	serve  func(*faultyServer) http.Handler
	open   func(context.Context, remote.Options) (faultBackend, error)
}{
	{
		"llamacpp", true, func(f *faultyServer) http.Handler { return &faultyLlama{f} },
		func(ctx context.Context, o remote.Options) (faultBackend, error) { return remote.OpenLlamaCpp(ctx, o) },
	},
	{
		"vllm", false, func(f *faultyServer) http.Handler { return &faultyVLLM{f} },
		func(ctx context.Context, o remote.Options) (faultBackend, error) { return remote.OpenVLLM(ctx, o) },
	},
}

func (f *faultyServer) draw() fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := none
	if len(f.plan) > 0 {
		d, f.plan = f.plan[0], f.plan[1:]
		return d
	}
	if f.sound.Load() {
		return none
	}
	if f.rng.IntN(3) > 0 {
		d = fault(f.rng.IntN(int(faults)))
	}
	f.counts[d]++
	return d
}

// replan says what goes wrong next, and returns what was still to.
func (f *faultyServer) replan(plan []fault) (left []fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left, f.plan = f.plan, plan
	return left
}

// likeliest is the token after ids by the model.
func (f *faultyServer) likeliest(ids []vocab.ID) vocab.ID {
	if len(ids) < len(f.script) && slices.Equal(ids, f.script[:len(ids)]) {
		return f.script[len(ids)]
	}
	return f.tok.Vocab().Specials().EOS
}

// instead does what a fault does in place of an answer.
func (f *faultyServer) instead(w http.ResponseWriter, r *http.Request, d fault) bool {
	switch d {
	case refuse:
		cut(w)
	case hangBeforeHeaders:
		f.wait(r)
	case hangAfterHeaders:
		w.Header().Set("Content-Type", "text/event-stream")
		http.NewResponseController(w).Flush()
		f.wait(r)
	case garbage:
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: \x00\xff{]not json\n\ndata: {}\n\n")
	case longLine:
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: ")
		w.Write(bytes.Repeat([]byte("a"), 10<<20))
	case wrongType:
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<html>welcome to the hotel</html>")
	case busy:
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(429)
		io.WriteString(w, `{"error":{"message":"busy"}}`)
	case htmlError:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(500)
		io.WriteString(w, "<html>oops</html>")
	case detail:
		w.WriteHeader(422)
		io.WriteString(w, `{"detail":[{"type":"missing","loc":["body"],"msg":"no such thing"}]}`)
	default:
		return false
	}
	return true
}

func (f *faultyServer) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-f.hang:
	}
}

// plain answers what is passed on: the text that says which request it was.
func (f *faultyServer) plain(w http.ResponseWriter, r *http.Request, data []byte) {
	d := f.draw()
	if f.instead(w, r, d) {
		return
	}
	answer := "you sent " + string(data)
	if d == dieMidway || d == halfEvent {
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		io.WriteString(w, answer[:len(answer)/2])
		cut(w)
	}
	io.WriteString(w, answer)
}

// cut ends the connection.
func cut(w http.ResponseWriter) {
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// faultRig is a gateway in front of a server that goes wrong.
type faultRig struct {
	url    string
	server *faultyServer
	stop   func() // drains the gateway and waits
}

// newFaultRig opens the i-th of the servers.
func newFaultRig(t *testing.T, i int) *faultRig {
	t.Helper()
	tok := newTokenizer(t, rigOptions{}.vocab)
	f := &faultyServer{tok: tok, script: tok.Encode(nil, []byte(faultScript)), rng: rand.New(rand.NewPCG(1, 2)), hang: make(chan struct{})}
	f.sound.Store(true)
	back := httptest.NewUnstartedServer(faultServers[i].serve(f))
	back.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	back.Start()
	at, err := url.Parse(back.URL)
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	pool, err := upstream.New(upstream.Config{
		Endpoints: []*url.URL{at}, Log: quiet, FirstByteTimeout: 300 * time.Millisecond, IdleTimeout: 300 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := faultServers[i].open(t.Context(), remote.Options{Transport: pool, Tokenizer: tok, Timeout: 2 * time.Second})
	if err == nil {
		err = b.TokenizerError()
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := unfray.NewModel(b, tok)
	if err != nil {
		t.Fatal(err)
	}
	up := &gateway.Upstream{Transport: pool}
	g, err := gateway.New(gateway.Config{
		Models:  []gateway.Model{{Name: "toy", Model: m, Upstream: up, Native: faultServers[i].native, Chat: b}},
		Default: up, Log: quiet, DrainTimeout: 2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, ln) }()
	return &faultRig{url: "http://" + ln.Addr().String(), server: f, stop: func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		close(f.hang)
		b.Close()
		pool.Close()
		back.CloseClientConnections()
		back.Close()
	}}
}

// outcome of a request: right, an error that is clear, a client that left, or
// wrong, with what was.
type outcome string

const (
	right outcome = "right"
	clear outcome = "a clear error"
	left  outcome = "the client left"
)

// A request meets a server that goes wrong, or leaves: it is answered rightly or
// by a clear error, and nothing stays behind.
func TestFaults(t *testing.T) {
	n := *faultRequests
	if n == 0 {
		n = 1000
		if testing.Short() || raceEnabled {
			n = 300
		}
	}
	for i, server := range faultServers {
		t.Run(server.name, func(t *testing.T) { testFaults(t, i, n) })
	}
}

// testFaults sends n requests to a gateway in front of the i-th of the servers.
func testFaults(t *testing.T, i, n int) {
	before := settled()
	r := newFaultRig(t, i)
	r.server.sound.Store(false)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var mu sync.Mutex
	seen := map[outcome]int{}
	var wg sync.WaitGroup
	work := make(chan int)
	for range 32 {
		wg.Go(func() {
			for i := range work {
				o := r.try(client, i)
				mu.Lock()
				seen[o]++
				mu.Unlock()
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
	for o, k := range seen {
		if o != right && o != clear && o != left {
			t.Errorf("%d times %s", k, o)
		}
	}
	// All is well again once the server is.
	r.server.sound.Store(true)
	if o := r.try(client, 0); o != right {
		t.Errorf("after the faults: %s", o)
	}
	r.drainUnderLoad(t, client)
	client.CloseIdleConnections()
	after := settled()
	for range 100 {
		if after.goroutines <= before.goroutines && after.files <= before.files {
			break
		}
		time.Sleep(50 * time.Millisecond)
		after = settled()
	}
	if after.goroutines > before.goroutines || after.files > before.files {
		stacks := make([]byte, 1<<16)
		t.Errorf("goroutines %d, then %d; files %d, then %d\n%s", before.goroutines, after.goroutines, before.files, after.files, stacks[:runtime.Stack(stacks, true)])
	}
	t.Logf("%d requests: %v; faults %v", n, seen, r.server.counts)
	if seen[right] == 0 || seen[clear] == 0 || seen[left] == 0 {
		t.Errorf("not every outcome was met: %v", seen)
	}
}

// A server that did not keep to the constraint is asked again, after the client's
// stream began: an error of any form comes as one that clients know.
func TestErrorsInsideStream(t *testing.T) {
	for i, server := range faultServers {
		r := newFaultRig(t, i)
		for _, d := range []fault{detail, htmlError, busy} {
			if left := r.server.replan([]fault{constraintIgnored, d}); len(left) > 0 {
				t.Errorf("%s: still planned: %v", server.name, left)
			}
			resp, err := http.Post(r.url+"/v1/completions", "application/json",
				strings.NewReader(`{"prompt":"The capital of France is Pa","max_tokens":8,"temperature":0,"stream":true,"unfray":{"heal":"stable"}}`))
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%s, %s: status %d, %v", server.name, d, resp.StatusCode, err)
			}
			if o := judgeStream(data); o != clear {
				t.Errorf("%s, %s: %s", server.name, d, o)
			}
		}
		if left := r.server.replan(nil); len(left) > 0 {
			t.Errorf("%s: still planned: %v", server.name, left)
		}
		r.stop()
	}
}

type resources struct{ goroutines, files int }

// settled counts what is open once what is ending has ended.
func settled() resources {
	runtime.GC()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil { // no such system
		return resources{goroutines: runtime.NumGoroutine()}
	}
	return resources{runtime.NumGoroutine(), len(files)}
}

// drainUnderLoad ends the gateway while requests are on their way: each is
// answered rightly, or refused clearly.
func (r *faultRig) drainUnderLoad(t *testing.T, client *http.Client) {
	t.Helper()
	var wg sync.WaitGroup
	outcomes := make(chan outcome, 400)
	for w := range 8 {
		wg.Go(func() {
			for i := range 50 {
				outcomes <- r.try(client, 4*(w*50+i)) // none of those that leave
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	r.stop()
	wg.Wait()
	close(outcomes)
	for o := range outcomes {
		if o != right && o != clear {
			t.Errorf("while draining: %s", o)
		}
	}
}

// try sends the i-th request and judges its answer.
func (r *faultRig) try(client *http.Client, i int) outcome {
	const prompt = "The capital of France is Pa"
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	leaves := i%4 == 3
	if leaves {
		time.AfterFunc(time.Duration(i%23)*time.Millisecond, cancel)
	}
	kinds := []struct{ path, body string }{
		{"/v1/completions", `{"prompt":"` + prompt + `","max_tokens":8,"temperature":0,"unfray":{"heal":"stable"}}`},
		{"/v1/completions", `{"prompt":"` + prompt + `","max_tokens":8,"temperature":0,"stream":true,"unfray":{"heal":"stable"}}`},
		{"/v1/completions", `{"prompt":"` + prompt + `","max_tokens":8,"temperature":0,"unfray":{"heal":"exact"}}`},
		{"/v1/completions", `{"prompt":"` + prompt + `","max_tokens":8,"temperature":0,"unfray":{"heal":"off"},"i":` + fmt.Sprint(i) + `}`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"` + fmt.Sprint(i) + `"}]}`},
	}
	k := kinds[i/4%len(kinds)]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+k.path, strings.NewReader(k.body))
	if err != nil {
		return outcome(err.Error())
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return lost(ctx, leaves, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return lost(ctx, leaves, err)
	}
	if i/4%len(kinds) >= 3 {
		return judgePassed(k.body, resp, data)
	}
	if resp.StatusCode != http.StatusOK {
		return judgeError(resp.StatusCode, data)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return judgeStream(data)
	}
	return judgeText(data)
}

// lost judges a connection that broke. That is clear enough, if the client was
// not told that it had the whole.
func lost(ctx context.Context, leaves bool, err error) outcome {
	switch {
	case leaves && ctx.Err() != nil:
		return left
	case errors.Is(err, context.DeadlineExceeded):
		return outcome("no end in sight")
	}
	return clear
}

// continuation is what the script goes on with.
const continuation = "ris, and the capital of Italy is Rome. So it goes on for a while."

func judgeText(data []byte) outcome {
	var c completion
	if err := json.Unmarshal(data, &c); err != nil || len(c.Choices) != 1 {
		return outcome("unreadable: " + string(data))
	}
	if s := c.Choices[0].Text; s == "" || !strings.HasPrefix(continuation, s) {
		return outcome("wrong text: " + s)
	}
	return right
}

func judgeError(status int, data []byte) outcome {
	switch {
	case status == 429 && strings.Contains(string(data), "busy"), status == 500 && strings.Contains(string(data), "oops"),
		status == 422 && strings.Contains(string(data), "no such thing"):
		return clear // the server's own words
	case status >= 400 && json.Valid(data) && strings.Contains(string(data), `"error"`):
		return clear
	}
	return outcome(fmt.Sprintf("an unclear error: %d %.100s", status, data))
}

func judgeStream(data []byte) outcome {
	text, done, failed := "", false, false
	for e := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		e = strings.TrimPrefix(e, "data: ")
		if e == "[DONE]" {
			done = true
			continue
		}
		var c struct {
			completion
			Error *struct{ Message string }
		}
		if err := json.Unmarshal([]byte(e), &c); err != nil {
			return outcome("an unreadable event: " + e)
		}
		if c.Error != nil {
			failed = true
		}
		for _, choice := range c.Choices {
			text += choice.Text
		}
	}
	switch {
	case !strings.HasPrefix(continuation, text):
		return outcome("wrong text in a stream: " + text)
	case done == failed:
		return outcome(fmt.Sprintf("a stream that is done %v and failed %v: %.300q", done, failed, data))
	case failed:
		return clear
	}
	return right
}

// judgePassed judges what was passed on: the server's own answer, whatever it is.
func judgePassed(sent string, resp *http.Response, data []byte) outcome {
	s := string(data)
	switch {
	case s == "you sent "+sent:
		return right
	case resp.StatusCode == 200 && (strings.Contains(s, "not json") || strings.Contains(s, "hotel") || len(s) == len("data: ")+10<<20):
		return right // as the server sent it
	case resp.StatusCode != 200:
		return judgeError(resp.StatusCode, data)
	}
	return outcome(fmt.Sprintf("passed on as %.100q", s))
}
