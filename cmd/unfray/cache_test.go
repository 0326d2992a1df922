package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// metricsServer serves the metrics that a real vLLM had before and after 200 requests.
func metricsServer(t *testing.T) string {
	t.Helper()
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		name := "vllm-metrics-after.txt"
		if asked.Add(1) == 1 {
			name = "vllm-metrics-before.txt"
		}
		http.ServeFile(w, r, filepath.Join("..", "..", "prefixcache", "live", "testdata", name))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func runCache(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if status := run(t.Context(), append([]string{"cache"}, args...), strings.NewReader(""), &out, &errs); status != exitOK {
		t.Fatalf("cache %s: status %d\n%s%s", strings.Join(args, " "), status, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// TestWatch prints what the server counted, and what the gateway's log says meanwhile.
func TestWatch(t *testing.T) {
	log := filepath.Join(t.TempDir(), "gateway.log")
	old := `{"msg":"request","prompt_tokens":9,"predicted_cached_tokens":8,"cached_tokens":8,"boundary_loss_tokens":0}` + "\n"
	if err := os.WriteFile(log, []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	time.AfterFunc(100*time.Millisecond, func() {
		fmt.Fprint(f, `{"msg":"request","prompt_tokens":20,"predicted_cached_tokens":16,"cached_tokens":16,"boundary_loss_tokens":1}`+"\n"+
			"no record\n"+`{"msg":"request","prompt_tokens":20,"predicted_cached_tokens":12,"cached_tokens":1`)
		fmt.Fprint(f, `6,"boundary_loss_tokens":2}`+"\n"+`{"msg":"request","prompt_tokens":3}`+"\n")
	})
	out, _ := runCache(t, "watch", "--upstream", "vllm="+metricsServer(t), "--interval", "400ms", "--for", "600ms", "--log", log)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || strings.Join(strings.Fields(lines[1])[1:3], " ") == "0 0" {
		t.Fatalf("%s", out)
	}
	if got := strings.Fields(lines[1]); strings.Join(got[len(got)-4:], " ") != "28 32 1/2 3" {
		t.Errorf("the log's figures are not in %q", lines[1])
	}
	if out, _ = runCache(t, "watch", "--upstream", "vllm="+metricsServer(t), "--interval", "100ms", "--for", "150ms", "--json"); !strings.Contains(out, `"hit_tokens":`) || strings.Contains(out, `"log"`) {
		t.Errorf("%s", out)
	}
}

// TestSettingsOf takes block size and capacity from a running server: 48 blocks of 32 tokens, one of which holds nothing.
func TestSettingsOf(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "ids.jsonl")
	var b strings.Builder
	for range 2 {
		fmt.Fprint(&b, `{"prompt":[1`+strings.Repeat(",7", 79)+"]}\n")
	}
	if err := os.WriteFile(trace, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UNFRAY_MODEL", filepath.Join(t.TempDir(), "none.gguf"))
	out, errs := runCache(t, "replay", "--json", "--settings-of", "vllm="+metricsServer(t), trace)
	for _, want := range []string{`"policy":"vllm block 32"`, `"hit_tokens":64,"prompt_tokens":160`, `"capacity_tokens":1504`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
	if !strings.Contains(errs, "without -t the loss at boundaries is not told") {
		t.Errorf("%s", errs)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "4096": 4096, "100k": 100_000, "1.5M": 1_500_000, "2G": 2_000_000_000} {
		if n, err := parseSize(text); err != nil || n != want {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "k", "-1", "1.5", "1e99", "NaN", "Inf", "1kk", "0.0001k"} {
		if n, err := parseSize(text); err == nil {
			t.Errorf("%q is read as %d", text, n)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
