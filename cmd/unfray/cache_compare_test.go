package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/prefixcache/live"
)

// TestWatchOfAnotherEngine names the wrong one, with requests to send and without.
func TestWatchOfAnotherEngine(t *testing.T) {
	at := metricsServer(t)
	for _, args := range [][]string{{"llamacpp"}, {"sglang"}, {"tgi"}, {"sglang", "--send", "trace.jsonl"}} {
		var out, errs bytes.Buffer
		status := run(t.Context(), append([]string{"cache", "watch", "--for", "1s", "--upstream", args[0] + "=" + at}, args[1:]...), strings.NewReader(""), &out, &errs)
		if status != exitFailed || out.String() != "" || !strings.Contains(errs.String(), "are vLLM's") || !strings.Contains(errs.String(), "--upstream vllm="+at) {
			t.Errorf("%v: status %d\n%s%s", args, status, out.String(), errs.String())
		}
	}
}

// TestWatchUntold shows nothing where a server tells nothing.
func TestWatchUntold(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("tgi_request_success 4\n"))
	}))
	defer s.Close()
	out, _ := runCache(t, "watch", "--upstream", "tgi="+s.URL, "--interval", "50ms", "--for", "120ms")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) < 2 || strings.Join(strings.Fields(lines[1])[1:], " ") != "- - - -" {
		t.Errorf("%s", out)
	}
	out, _ = runCache(t, "watch", "--upstream", "tgi="+s.URL, "--interval", "50ms", "--for", "120ms", "--json")
	line, _, _ := strings.Cut(out, "\n")
	var got map[string]any
	if err := json.Unmarshal([]byte(line), &got); err != nil || got["usage"] != nil || got["evicted_tokens"] != nil || got["requests"] != 0.0 {
		t.Errorf("%s, %v", line, err)
	}
}

// TestWatchHangs says so where a server does not answer within --for.
func TestWatchHangs(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"cache", "watch", "--for", "100ms", "--upstream", "vllm=" + s.URL}, strings.NewReader(""), &out, &errs); status != exitFailed || errs.String() == "" {
		t.Errorf("status %d: %s", status, errs.String())
	}
}

func TestComparison(t *testing.T) {
	var note bytes.Buffer
	c := &comparison{}
	if c.warm(&note, &live.Counters{Engine: live.TGI}); c.Before != nil || note.Len() > 0 {
		t.Errorf("a server that tells nothing: %v, %s", c.Before, note.String())
	}
	if c.warm(&note, &live.Counters{Engine: live.LlamaCpp, TellComputed: true}); c.Before == nil || *c.Before != 0 || note.Len() > 0 {
		t.Errorf("a new server: %v, %s", c.Before, note.String())
	}
	c.warm(&note, &live.Counters{Engine: live.VLLM, TellHit: true, Queries: 12345})
	if *c.Before != 12345 || !strings.Contains(note.String(), "12,345 prompt tokens before") || !strings.Contains(note.String(), "/reset_prefix_cache") {
		t.Errorf("%v, %s", *c.Before, note.String())
	}
	c.add(&sent{Prompt: 10, Predicted: 4, Reported: 4})
	c.add(&sent{Prompt: 20, Predicted: 16, Reported: 0})
	c.Skipped = 1
	var out bytes.Buffer
	if err := (&watchFlags{}).sumUp(&out, c); err != nil || out.String() != "1 of 2 requests equal (50.0 %); 20 of 30 prompt tokens predicted, 4 reported\n1 request left out: no prompt, none that is told, or one that is too large\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	err := (&watchFlags{asJSON: true, strict: true}).sumUp(&out, c)
	const want = `{"requests":2,"equal_requests":1,"skipped_requests":1,"prompt_tokens":30,"predicted_cached_tokens":20,"cached_tokens":4,"query_tokens_before":12345}` + "\n"
	if out.String() != want || err == nil || !strings.Contains(err.Error(), "1 request ") {
		t.Errorf("%s, %v", out.String(), err)
	}
	c.Equal = 2
	if err := (&watchFlags{strict: true}).sumUp(&out, c); err != nil {
		t.Error(err)
	}
}

// TestConversationsWithoutPrompt leaves out what a template refuses, if it is told to, and says so.
func TestConversationsWithoutPrompt(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	model := write("toy.gguf", backendtest.GGUF(backendtest.VocabularyOptions{ChatTemplate: toyTemplate}))
	const image = `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}` + "\n"
	const text = `{"messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}]}` + "\n" + `{"messages":[{"role":"user","content":"Hello"}]}` + "\n"
	mixed, images := write("mixed.jsonl", []byte(image+text)), write("images.jsonl", []byte(image))
	for _, command := range []string{"replay", "audit"} {
		for _, args := range [][]string{{mixed}, {"--skip-bad", images}} {
			var out, errs bytes.Buffer
			status := run(t.Context(), append([]string{"cache", command, "-t", model}, args...), strings.NewReader(""), &out, &errs)
			if status != exitFailed || !strings.Contains(errs.String(), `messages[0].content[0] is of type "image_url"`) || !strings.Contains(strings.Join(args, " ")+errs.String(), "--skip-bad") {
				t.Errorf("%s %v: status %d\n%s", command, args, status, errs.String())
			}
		}
		out, notes := runCache(t, command, "-t", model, "--skip-bad", "--json", mixed)
		var got struct {
			Requests any
			Refused  int `json:"refused_requests"`
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		n, _ := got.Requests.(float64)
		if list, ok := got.Requests.([]any); ok {
			n = float64(len(list))
		}
		if n != 2 || command == "replay" && got.Refused != 1 || !strings.Contains(notes, "image_url") {
			t.Errorf("%s: %s%s", command, out, notes)
		}
	}
}
