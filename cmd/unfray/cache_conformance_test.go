package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unfray/unfray/internal/servertest"
)

// logServe is `unfray serve` in this process with its log.
type logServe struct {
	url string
	log *watchedLog
}

// startLogServe serves on a free port until the test ends.
func startLogServe(t *testing.T, args ...string) *logServe {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	log := &watchedLog{urls: make(chan string, 1)}
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), strings.NewReader(""), io.Discard, log)
	}()
	t.Cleanup(func() {
		stop()
		if status := <-done; status != exitOK {
			t.Errorf("unfray serve ended with status %d", status)
		}
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", log.text())
		}
	})
	select {
	case url := <-log.urls:
		return &logServe{url, log}
	case status := <-done:
		done <- status
		t.Fatalf("unfray serve ended with status %d:\n%s", status, log.text())
	case <-time.After(2 * time.Minute):
		t.Fatal("the gateway does not listen after 2 minutes")
	}
	return nil
}

// logRecord is what the log tells of a request.
type logRecord struct {
	Path      string
	Cached    *int `json:"cached_tokens"`
	Predicted *int `json:"predicted_cached_tokens"`
	Boundary  *int `json:"boundary_loss_tokens"`
}

// jsonConfig is a configuration file for a server.
func jsonConfig(t *testing.T, kind, url, model, more string) string {
	return jsonLogConfig(t, fmt.Sprintf("upstreams:\n  s: {kind: %s, urls: [%q]}\nmodels:\n- {name: m, upstream: s, upstream_model: %q%s}\ndefault_upstream: s\n", kind, url, model, more))
}

// jsonLogConfig writes a configuration file. The log is JSON, with prompts.
func jsonLogConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "unfray.yaml")
	if err := os.WriteFile(path, []byte(text+"log: {format: json, prompts: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// records waits for n records of requests.
func (l *logServe) records(t *testing.T, n int) []logRecord {
	t.Helper()
	var list []logRecord
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		list = list[:0]
		for line := range strings.Lines(l.log.text()) {
			var r logRecord
			if json.Unmarshal([]byte(line), &r) == nil && r.Path != "" {
				list = append(list, r)
			}
		}
		if len(list) >= n {
			return list
		}
	}
	t.Fatalf("%d records of %d requests", len(list), n)
	return nil
}

// A talk is a conversation that grows, branches and repeats. Its prompts end
// anywhere, inside words too.
type talk struct {
	rng  *rand.Rand
	head string // of all prompts
	// exact says that none is healed with stable: llama.cpp's server then goes on for
	// some tokens, how many is not known, before it notices that it is to stop. They
	// stay in its slot, and by how full slots are it chooses among them.
	exact bool
	mu    sync.Mutex
	past  []string // prompts with their answers
}

var sentences = []string{
	" The river runs through the old town and", " In 1984 the harbour had 37 cranes.", "\n\ndef fibonacci(n):\n    if n <= 1:\n        retu",
	" Paris is the capital of Fra", "\n- first item\n- second it", " {\"name\": \"Ada\", \"age\": 36, \"lang", " Le café est ouvert jusqu'à min", " It costs 12", " https://example.com/inde",
	" and he said: \"", " tomorrow.\n", " Question: what is a prefix cache?\nAnswer:",
}

const talkHead = "You are a careful assistant. Answer briefly, in plain words, and say when you do not know. Today we talk about travel, programs and numbers.\n\n"

// next is the prompt of the next request.
func (k *talk) next() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	more := sentences[k.rng.IntN(len(sentences))]
	switch n := len(k.past); {
	case n == 0 || k.rng.IntN(12) == 0:
		return k.head[:len(k.head)-k.rng.IntN(40)] + more
	case k.rng.IntN(3) > 0:
		if last := k.past[n-1]; len(last) < len(k.head)+2000 {
			return last + more
		}
		fallthrough
	default:
		old := []rune(k.past[k.rng.IntN(n)])
		return string(old[:len(old)/3+k.rng.IntN(len(old)*2/3)]) + more
	}
}

// ask sends a prompt in one of several ways, and makes it and its answer part of
// the past.
func (k *talk) ask(t *testing.T, base, prompt string, way int) {
	path, limit := "/v1/completions", "max_tokens"
	if way%4 == 3 {
		path, limit = "/completion", "n_predict"
	}
	body := object{"model": "m", "prompt": prompt, limit: 3 + way%7, "temperature": 0}
	switch way % 5 {
	case 1:
		body["unfray"] = object{"heal": "off"}
	case 2:
		if !k.exact {
			body["unfray"] = object{"heal": "stable"}
		}
	}
	if way%2 == 0 {
		body = streamed(path, body)
	}
	o := outcomeOf(t, base+path, body)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.past = append(k.past, prompt+o.Texts[0])
}

// difference is a request of which another number of tokens was cached than was
// predicted.
type difference struct {
	request, predicted, cached int
}

// differences compares records. Requests of which nothing was predicted are
// failures.
func differences(t *testing.T, records []logRecord) (list []difference) {
	t.Helper()
	for i, r := range records {
		switch {
		case r.Predicted == nil || r.Cached == nil || r.Boundary == nil:
			t.Errorf("request %d: the log does not tell what was predicted, or what was cached: %+v", i, r)
		case *r.Predicted != *r.Cached:
			list = append(list, difference{i, *r.Predicted, *r.Cached})
		}
	}
	return list
}

// serially sends n requests one after the other and compares what the log says of
// them. idle waits until the engine is done with the last one.
func serially(t *testing.T, l *logServe, k *talk, n int, idle func()) []difference {
	t.Helper()
	before := len(k.past)
	for i := range n {
		k.ask(t, l.url, k.next(), i)
		l.records(t, before+i+1)
		idle()
	}
	records := l.records(t, before+n)[before:]
	list := differences(t, records)
	hits := 0
	for _, r := range records {
		if r.Cached != nil && *r.Cached > 0 {
			hits++
		}
	}
	t.Logf("%d requests, %d with tokens cached, one at a time: %d differ: %v", n, hits, len(list), list)
	if hits < n/3 {
		t.Errorf("only %d of %d requests found tokens cached", hits, n)
	}
	return list
}

// converse sends n requests one after the other, then some two at a time.
func converse(t *testing.T, l *logServe, k *talk, n int, idle func()) {
	t.Helper()
	if list := serially(t, l, k, n, idle); len(list)*100 > n {
		t.Errorf("%d of %d requests differ", len(list), n)
	}
	k.exact = false
	before := len(k.past)
	for i := range n / 4 {
		var both sync.WaitGroup
		for j := range 2 {
			both.Go(func() { k.ask(t, l.url, k.next(), 2*i+j) })
		}
		both.Wait()
		l.records(t, before+2*i+2)
		idle()
	}
	list := differences(t, l.records(t, before+n/4*2)[before:])
	t.Logf("two at a time: %d of %d differ: %v", len(list), n/4*2, list)
	// In which order an engine admits what two requests send it is not known here.
	if len(list) > n/3 {
		t.Errorf("two at a time, %d of %d differ", len(list), n/4*2)
	}
}

// awaitIdle waits until llama.cpp's server works on nothing. It notices that a
// client is gone some tokens later, and the slot is busy until then.
func awaitIdle(t *testing.T, s *servertest.Server) {
	t.Helper()
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(2 * time.Millisecond) {
		resp, err := http.Get(s.URL + "/slots")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK && !bytes.Contains(body, []byte(`"is_processing":true`)) {
			return
		}
	}
	t.Fatal("the server works on after 30 seconds")
}

// TestConformanceCachePredictionLlama compares what is predicted of the real
// server's cache with what it reports.
func TestConformanceCachePredictionLlama(t *testing.T) {
	s := oneThread(t)
	l := startLogServe(t, "--config", jsonConfig(t, "llamacpp", s.URL, filepath.Base(s.Model), ""))
	k := &talk{rng: rand.New(rand.NewPCG(9, 9)), head: talkHead, exact: true}
	converse(t, l, k, 60, func() { awaitIdle(t, s) })
	if list := serially(t, l, k, 40, func() { awaitIdle(t, s) }); len(list) > 8 {
		t.Errorf("healed with stable too, %d of 40 requests differ", len(list))
	}
}

// TestConformanceCachePredictionVLLM is that for vLLM, whose blocks have 128 tokens
// on CPUs.
func TestConformanceCachePredictionVLLM(t *testing.T) {
	s := servertest.VLLM(t)
	l := startLogServe(t, "--config", jsonConfig(t, "vllm", s.URL, s.Model, ""))
	converse(t, l, &talk{rng: rand.New(rand.NewPCG(9, 9)), head: strings.Repeat(talkHead, 14)}, 40, func() {})
}

// TestConformanceCacheReplay replays the log that the gateway wrote: the
// simulation of its requests finds what the server reported.
func TestConformanceCacheReplay(t *testing.T) {
	s := oneThread(t)
	l := startLogServe(t, "--config", jsonConfig(t, "llamacpp", s.URL, filepath.Base(s.Model), ""))
	k := &talk{rng: rand.New(rand.NewPCG(3, 4)), head: talkHead, exact: true}
	const n = 40
	for i := range n {
		k.ask(t, l.url, k.next(), i)
		l.records(t, i+1)
		awaitIdle(t, s)
	}
	path := filepath.Join(t.TempDir(), "gateway.log")
	if err := os.WriteFile(path, []byte(l.log.text()), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	args := []string{"cache", "replay", "--engine", "llamacpp", "--settings-of", "llamacpp=" + s.URL, "-t", s.Model, "--json", path}
	if status := run(t.Context(), args, strings.NewReader(""), &out, &errOut); status != exitOK {
		t.Fatalf("status %d: %s", status, &errOut)
	}
	var res struct {
		Requests int
		Reported struct {
			Requests int
			Equal    int `json:"equal_requests"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &res); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	if res.Requests != n || res.Reported.Requests != n || res.Reported.Equal != n {
		t.Errorf("%d requests sent; replayed: %s\n%s", n, &out, &errOut)
	}
}

// TestConformanceCachePredictionOff leaves it out where the configuration or the
// flag says so.
func TestConformanceCachePredictionOff(t *testing.T) {
	s := servertest.Shared(t)
	for more, want := range map[string]bool{
		"": true, ", cache_prediction: off": false, `, heal: "off"`: false, `, heal: "off", cache_prediction: on`: true,
	} {
		l := startLogServe(t, "--config", jsonConfig(t, "llamacpp", s.URL, filepath.Base(s.Model), more))
		r := post(t, l.url+"/v1/completions", object{"model": "m", "prompt": "const userNa", "max_tokens": 2})
		if got := l.records(t, 1)[0].Predicted; r.status != http.StatusOK || (got != nil) != want {
			t.Errorf("%s: status %d, prediction %v", more, r.status, got)
		}
	}
	for flag, want := range map[string]bool{"--log-prompts=false": true, "--no-cache-prediction": false} {
		l := startLogServe(t, "--upstream", "llamacpp="+s.URL, flag)
		post(t, l.url+"/v1/completions", object{"prompt": "const userNa", "max_tokens": 2})
		for start := time.Now(); !strings.Contains(l.log.text(), "msg=request") && time.Since(start) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
		}
		if log := l.log.text(); !strings.Contains(log, "cached_tokens=") || strings.Contains(log, "predicted_cached_tokens=") != want {
			t.Errorf("%s: the log is\n%s", flag, log)
		}
	}
}
