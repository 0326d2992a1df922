package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/config"
	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// passedTo is a server that gives each request the same answer.
type passedTo string

func (p passedTo) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(string(p))), ContentLength: int64(len(p)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

const toyTemplate = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

// TestGatewayLogIsATrace serves a toy, with prompts logged as JSON, and replays what was written to the standard error, the
// lines before the log included: every request is read, and none is said to have other tokens.
func TestGatewayLogIsATrace(t *testing.T) {
	toyFile := backendtest.GGUF(backendtest.VocabularyOptions{ChatTemplate: toyTemplate})
	tok := tokenizertest.Open(t, toyFile)
	toy := backendtest.NewToy(backendtest.Options{Vocab: tok.Vocab(), ChatTemplate: toyTemplate})
	defer toy.Close()
	model, err := unfray.NewModel(toy, tok)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := prefixcache.NewRadix(prefixcache.RadixOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log := &watchedLog{urls: make(chan string, 1)}
	s := newSetup(newConfigLog(log, &config.Log{JSON: true}))
	s.cfg.LogPrompts = true
	s.lines = []string{"toy: a model for tests"}
	s.cfg.Models = []gateway.Model{{Name: "toy", Model: model, Cache: cache, Upstream: &gateway.Upstream{
		Transport: passedTo(`{"choices":[{"index":0,"message":{"content":"Hi."},"text":"Hi.","finish_reason":"stop"}],"usage":{"prompt_tokens_details":{"cached_tokens":0}}}`),
	}}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, log, ln) }()
	url := <-log.urls
	prompts := 0
	for _, r := range []struct {
		path, body string
		prompts    int
	}{
		{"/v1/completions", `{"prompt":"The capital of France is Pa","max_tokens":3}`, 1},                    // healed
		{"/v1/completions", `{"prompt":"The capital of France is Pa","max_tokens":3,"stream":true}`, 1},      // healed
		{"/v1/completions", `{"prompt":"The capital of France is Pa","unfray":{"heal":"off"}}`, 1},           // passed on
		{"/v1/completions", `{"prompt":["one","two"],"max_tokens":2}`, 2},                                    // several
		{"/v1/completions", `{"prompt":"a","prompt_logprobs":1}`, 1},                                         // passed on
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hello"}]}`, 1},                      // passed on
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`, 1}, // passed on
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"},{"role":"tool","content":"b"}]}`, 1},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"Pa"}],"continue_final_message":true,"add_generation_prompt":false,"max_tokens":2}`, 1},
	} {
		resp, err := http.Post(url+r.path, "application/json", strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", r.body, resp.StatusCode, answer, err)
		}
		prompts += r.prompts
	}
	for _, other := range []string{"/v1/models", "/nowhere"} {
		resp, err := http.Get(url + other)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	path, toyPath := filepath.Join(dir, "gateway.log"), filepath.Join(dir, "toy.gguf")
	for name, data := range map[string][]byte{path: []byte(log.text()), toyPath: toyFile} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasPrefix(log.text(), "unfray: toy: a model for tests\nunfray: listening on") {
		t.Errorf("the log begins with %.100q", log.text())
	}
	out, notes := runCache(t, "replay", "-t", toyPath, "--engine", "sglang", "--json", path)
	var res struct {
		Requests  int
		NoContent int `json:"no_content_requests"`
		Refused   int `json:"refused_requests"`
	}
	if err := json.Unmarshal([]byte(out), &res); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if res.Requests != prompts || res.NoContent != 0 || res.Refused != 0 {
		t.Errorf("%d prompts were sent; replayed: %s\n%s", prompts, out, notes)
	}
	if strings.Contains(notes, "another number of tokens") || strings.Contains(notes, "skipped") {
		t.Errorf("%s", notes)
	}

	// Without prompts the log tells how many requests it cannot replay.
	var bare bytes.Buffer
	for line := range strings.Lines(log.text()) {
		var record map[string]any
		if json.Unmarshal([]byte(line), &record) == nil {
			for _, name := range []string{"body", "prompt_ids", "output_ids"} {
				if record["path"] == "/v1/chat/completions" {
					delete(record, name)
				}
			}
			text, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			line = string(text) + "\n"
		}
		bare.WriteString(line)
	}
	if err := os.WriteFile(path, bare.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, notes = runCache(t, "replay", "-t", toyPath, "--engine", "sglang", path)
	if !strings.Contains(out, "4 requests left out: the prompt is not told") || !strings.Contains(notes, "left out: 4") {
		t.Errorf("%s%s", out, notes)
	}
}
