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
	"github.com/unfray/unfray/backend/remote"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/upstream"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

var faultRequests = flag.Int("faults", 0, "requests of TestFaults; 0: few")

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
	faults
)

func (f fault) String() string {
	return [...]string{"none", "refuse", "hang before headers", "hang after headers", "die midway", "garbage", "half an event",
		"10 MB line", "wrong type", "429", "500 with HTML", "error frame", "strange token", "no end", "constraint ignored"}[f]
}

// faultyLlama speaks enough of llama.cpp's API to be healed by, knows one text by
// heart, and goes wrong in every way.
type faultyLlama struct {
	tok    *tokenizer.Tokenizer
	script []vocab.ID
	sound  atomic.Bool // no faults
	rng    *rand.Rand
	mu     sync.Mutex
	counts [faults]int
	hang   chan struct{} // closed at the end
}

const faultScript = "The capital of France is Paris, and the capital of Italy is Rome. So it goes on for a while."

func (f *faultyLlama) draw() fault {
	if f.sound.Load() {
		return none
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d := none
	if f.rng.IntN(3) > 0 {
		d = fault(f.rng.IntN(int(faults)))
	}
	f.counts[d]++
	return d
}

func (f *faultyLlama) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]json.RawMessage
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_ = json.Unmarshal(data, &body) // what is no object has no fields
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/health":
		fmt.Fprint(w, `{"status":"ok"}`)
	case "/v1/models":
		fmt.Fprintf(w, `{"data":[{"id":"toy","meta":{"n_vocab":%d,"n_ctx_train":4096}}]}`, f.tok.Vocab().Len())
	case "/props":
		fmt.Fprint(w, `{"total_slots":4,"build_info":"toy","default_generation_settings":{"n_ctx":4096,"params":{"temperature":0.8,"top_k":40,"top_p":0.95,"min_p":0.05,"repeat_penalty":1,"n_predict":-1}}}`)
	case "/tokenize":
		f.tokenize(w, body)
	case "/infill":
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusNotImplemented)
	case "/completion":
		f.complete(w, r, body, data)
	default:
		f.plain(w, r, data)
	}
}

func (f *faultyLlama) tokenize(w http.ResponseWriter, body map[string]json.RawMessage) {
	var in struct {
		Content              string
		AddSpecial, ParseAll bool
	}
	json.Unmarshal(body["content"], &in.Content)
	json.Unmarshal(body["parse_special"], &in.ParseAll)
	json.Unmarshal(body["add_special"], &in.AddSpecial)
	ids := []vocab.ID{}
	if sp := f.tok.Vocab().Specials(); in.AddSpecial && sp.AddBOS && sp.BOS != vocab.None {
		ids = append(ids, sp.BOS)
	}
	if in.ParseAll {
		ids = f.tok.EncodeSpecial(ids, []byte(in.Content))
	} else {
		ids = f.tok.Encode(ids, []byte(in.Content))
	}
	json.NewEncoder(w).Encode(map[string]any{"tokens": ids})
}

// likeliest is the token after ids by the model.
func (f *faultyLlama) likeliest(ids []vocab.ID) vocab.ID {
	if len(ids) < len(f.script) && slices.Equal(ids, f.script[:len(ids)]) {
		return f.script[len(ids)]
	}
	return f.tok.Vocab().Specials().EOS
}

// forced is the token that a bias or a probe's grammar demands, if they do.
func (f *faultyLlama) forced(ids []vocab.ID, body map[string]json.RawMessage) (vocab.ID, bool) {
	var pairs [][2]json.Number
	if json.Unmarshal(body["logit_bias"], &pairs) == nil && len(pairs) == 1 {
		n, err := pairs[0][0].Int64()
		return vocab.ID(n), err == nil
	}
	var grammar string
	var id vocab.ID
	json.Unmarshal(body["grammar"], &grammar)
	n, _ := fmt.Sscanf(grammar, "root ::= <[%d]> tail", &id)
	return id, n == 1 && len(ids) == 1
}

func (f *faultyLlama) complete(w http.ResponseWriter, r *http.Request, body map[string]json.RawMessage, raw []byte) {
	var ids []vocab.ID
	if json.Unmarshal(body["prompt"], &ids) != nil {
		f.plain(w, r, raw)
		return
	}
	var n int
	json.Unmarshal(body["n_predict"], &n)
	d := f.draw()
	stream := string(body["stream"]) == "true"
	if f.instead(w, r, d) {
		return
	}
	var parts []string
	for k := range n {
		best := f.likeliest(ids)
		id, forced := f.forced(ids, body)
		if !forced {
			id = best
		}
		switch {
		case d == strangeToken && k == n/2:
			id = 1 << 29
		case d == constraintIgnored && k == 0 && len(body["grammar"]) > 0:
			id = f.tok.Encode(nil, []byte("z"))[0]
		}
		if id == f.tok.Vocab().Specials().EOS {
			break
		}
		ids = append(ids, id)
		parts = append(parts, fmt.Sprintf(`{"content":"x","tokens":[%d],"stop":false,"tokens_predicted":%d,"id_slot":1,`+
			`"completion_probabilities":[{"id":%d,"logprob":-9,"top_logprobs":[{"id":%d,"logprob":-0.1},{"id":1,"logprob":-3}]}]}`, id, k+1, id, best))
	}
	if stream {
		f.stream(w, r, d, parts)
		return
	}
	var tokens []string
	for _, p := range parts {
		_, list, _ := strings.Cut(p, `"tokens":[`)
		id, _, _ := strings.Cut(list, "]")
		tokens = append(tokens, id)
	}
	answer := fmt.Sprintf(`{"tokens":[%s],"completion_probabilities":[%s],"stop_type":"limit","tokens_predicted":%d,"timings":{"cache_n":1},"id_slot":1}`,
		strings.Join(tokens, ","), topOf(parts), len(parts))
	w.Header().Set("Content-Type", "application/json")
	if d == dieMidway || d == halfEvent {
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		io.WriteString(w, answer[:len(answer)/2])
		cut(w)
	}
	io.WriteString(w, answer)
}

func topOf(parts []string) string {
	var out []string
	for _, p := range parts {
		_, list, _ := strings.Cut(p, `"completion_probabilities":[`)
		out = append(out, strings.TrimSuffix(list, "]}"))
	}
	return strings.Join(out, ",")
}

func (f *faultyLlama) stream(w http.ResponseWriter, r *http.Request, d fault, parts []string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i, p := range parts {
		if i == len(parts)/2 {
			switch d {
			case dieMidway:
				cut(w)
			case halfEvent:
				fmt.Fprintf(w, "data: %s", p[:len(p)/2])
				return
			case errorFrame:
				io.WriteString(w, "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n")
				return
			case noEnd:
				return
			}
		}
		fmt.Fprintf(w, "data: %s\n\n", p)
		http.NewResponseController(w).Flush()
	}
	io.WriteString(w, `data: {"content":"","tokens":[],"stop":true,"stop_type":"limit","id_slot":1,"tokens_predicted":`+fmt.Sprint(len(parts))+`,"timings":{"cache_n":2}}`+"\n\n")
}

// instead does what a fault does in place of an answer.
func (f *faultyLlama) instead(w http.ResponseWriter, r *http.Request, d fault) bool {
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
	default:
		return false
	}
	return true
}

func (f *faultyLlama) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-f.hang:
	}
}

// plain answers what is passed on: the text that says which request it was.
func (f *faultyLlama) plain(w http.ResponseWriter, r *http.Request, data []byte) {
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
	server *faultyLlama
	stop   func() // drains the gateway and waits
}

func newFaultRig(t *testing.T) *faultRig {
	t.Helper()
	tok := newTokenizer(t, rigOptions{}.vocab)
	f := &faultyLlama{tok: tok, script: tok.Encode(nil, []byte(faultScript)), rng: rand.New(rand.NewPCG(1, 2)), hang: make(chan struct{})}
	f.sound.Store(true)
	back := httptest.NewUnstartedServer(f)
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
	b, err := remote.OpenLlamaCpp(t.Context(), remote.Options{Transport: pool, Tokenizer: tok, Timeout: 2 * time.Second})
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
		Models:  []gateway.Model{{Name: "toy", Model: m, Upstream: up, Native: true, Chat: b}},
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
		n = 1500
		if testing.Short() || raceEnabled {
			n = 300
		}
	}
	before := settled()
	r := newFaultRig(t)
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
	case status == 429 && strings.Contains(string(data), "busy"), status == 500 && strings.Contains(string(data), "oops"):
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
		return outcome(fmt.Sprintf("a stream that is done %v and failed %v", done, failed))
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
