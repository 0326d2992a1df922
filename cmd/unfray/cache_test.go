package main

import (
	"bytes"
	"context"
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

// TestSettingsOfSGLang takes the policy, too, and refuses a server whose cache is off, or whose policy is not simulated.
func TestSettingsOfSGLang(t *testing.T) {
	answer := `{"page_size":4,"max_total_num_tokens":400,"radix_eviction_policy":"lfu"}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
	defer s.Close()
	trace := filepath.Join(t.TempDir(), "ids.jsonl")
	if err := os.WriteFile(trace, []byte(`{"prompt":[1,2,3]}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UNFRAY_MODEL", filepath.Join(t.TempDir(), "none.gguf"))
	args := []string{"replay", "--json", "--settings-of", "sglang=" + s.URL, trace}
	if out, _ := runCache(t, args...); !strings.Contains(out, `"policy":"sglang lfu block 4"`) || !strings.Contains(out, `"capacity_tokens":400`) {
		t.Errorf("%s", out)
	}
	for _, answer = range []string{
		`{"page_size":4,"max_total_num_tokens":400,"disable_radix_cache":true}`,
		`{"page_size":4,"max_total_num_tokens":400,"radix_eviction_policy":"dice"}`,
	} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), append([]string{"cache"}, args...), strings.NewReader(""), &out, &errs); status == exitOK {
			t.Errorf("%s: %s", answer, out.String())
		}
	}
}

// TestReplayRefuses names the flag at fault where flags cannot mean what they say.
func TestReplayRefuses(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "ids.jsonl")
	if err := os.WriteFile(trace, []byte(`{"prompt":[1,2,3]}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UNFRAY_MODEL", filepath.Join(t.TempDir(), "none.gguf"))
	for flags, want := range map[string]string{
		"--prefill-rate 5":                                   "together",
		"--prefill-rate -5 --decode-rate -5":                 "above 0",
		"--prefill-rate nan --decode-rate 5":                 "above 0",
		"--prefill-rate inf --decode-rate 5":                 "above 0",
		"--prefill-rate 5 --decode-rate 5 --concurrency 2":   "--concurrency",
		"--measure half":                                     "--measure half",
		"--measure tail":                                     "--warmup",
		"--engine trie":                                      "block hashes",
		"--engine vllm --capacity 5":                         "--capacity 5",
		"--engine sglang --block-size 8 --capacity 5":        "--capacity 5",
		"--engine llamacpp --slots 4 --capacity 3":           "--slots",
		"--engine llamacpp --slots 4 --cache-ram -2":         "--cache-ram -2",
		"--engine vllm --capacity 9007199254740993000000000": "no count",
	} {
		var out, errs bytes.Buffer
		args := append([]string{"cache", "replay", trace}, strings.Fields(flags)...)
		if status := run(t.Context(), args, strings.NewReader(""), &out, &errs); status != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: status %d, %s", flags, status, errs.String())
		}
	}
	for _, flags := range []string{"--engine llamacpp --capacity 100 --cache-ram -1", "--prefill-rate 5 --decode-rate 5", "--engine llamacpp --slots 3 --capacity 3"} {
		runCache(t, append([]string{"replay", trace}, strings.Fields(flags)...)...)
	}
}

// TestReplayStandardInput reads what is piped in once, in every format.
func TestReplayStandardInput(t *testing.T) {
	t.Setenv("UNFRAY_MODEL", filepath.Join(t.TempDir(), "none.gguf"))
	blocks := strings.Repeat(`{"timestamp":1,"input_length":1024,"output_length":1,"hash_ids":[7,8]}`+"\n", 3)
	for _, c := range []struct {
		flags, in, want string
		status          int
	}{
		{"--engine vllm", blocks, `"prompt_tokens":3072`, exitOK},
		{"--engine trie", blocks, `"prompt_tokens":3072`, exitOK},
		{"--engine vllm", strings.Repeat(`{"prompt":[1,2,3]}`+"\n", 4), `"prompt_tokens":12`, exitOK},
		{"--engine vllm --capacity 10k,20k", blocks, "read once", exitUsage},
		{"--engine vllm,trie", blocks, "read once", exitUsage},
		{"--engine vllm", "", "empty", exitFailed},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"cache", "replay", "--json", "-"}, strings.Fields(c.flags)...)
		if status := run(t.Context(), args, strings.NewReader(c.in), &out, &errs); status != c.status || !strings.Contains(out.String()+errs.String(), c.want) {
			t.Errorf("%s: status %d, %s%s", c.flags, status, out.String(), errs.String())
		}
	}
}

// TestReplayInterrupted ends at once where the command was interrupted.
func TestReplayInterrupted(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "ids.jsonl")
	if err := os.WriteFile(trace, []byte(`{"prompt":[1,2,3]}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if status := run(ctx, []string{"cache", "replay", trace}, strings.NewReader(""), &out, &errs); status != exitFailed || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("status %d, %s", status, errs.String())
	}
}

// TestLogTail follows a log that is cut short and written anew.
func TestLogTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.log")
	line := `{"msg":"request","prompt_tokens":9,"predicted_cached_tokens":8,"cached_tokens":8,"boundary_loss_tokens":0}` + "\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 5)), 0o644); err != nil {
		t.Fatal(err)
	}
	tail, err := openLogTail(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tail.f.Close()
	for _, step := range []struct {
		text string
		want int
	}{{line + line[:20], 1}, {line[20:], 1}, {"", 0}} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(f, step.text)
		f.Close()
		if sum, err := tail.read(); err != nil || sum.Requests != step.want {
			t.Errorf("%q: %+v, %v", step.text, sum, err)
		}
	}
	if err := os.WriteFile(path, []byte(line+line), 0o644); err != nil {
		t.Fatal(err)
	}
	if sum, err := tail.read(); err != nil || sum.Requests != 2 {
		t.Errorf("after the log was cut: %+v, %v", sum, err)
	}
	long := append(bytes.Repeat([]byte("x"), maxLogLine+1000), "\n"+line...)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(long); err != nil {
		t.Fatal(err)
	}
	if sum, err := tail.read(); err != nil || sum.Requests != 1 || len(tail.rest) != 0 {
		t.Errorf("behind a line that is too long: %+v, %v", sum, err)
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
