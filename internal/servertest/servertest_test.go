package servertest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// get returns the body of a GET request, which must succeed.
func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v\n%s", url, resp.Status, err, body)
	}
	return string(body)
}

// listens reports whether anybody answers at the address.
func listens(url string) bool {
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(url + "/health")
	if err == nil {
		resp.Body.Close()
	}
	return err == nil
}

func TestConformanceLlama(t *testing.T) {
	var url string
	t.Run("running", func(t *testing.T) {
		s := Llama(t, LlamaOptions{Slots: 3, Context: 512, Settings: map[string]any{"model_alias": []string{"small"}}})
		url = s.URL
		var slots []struct {
			Context int `json:"n_ctx"`
		}
		if err := json.Unmarshal([]byte(get(t, url+"/slots")), &slots); err != nil {
			t.Fatal(err)
		}
		if len(slots) != 3 || slots[0].Context != 512 {
			t.Errorf("slots %+v, want 3 of 512 tokens", slots)
		}
		if models := get(t, url+"/v1/models"); !strings.Contains(models, `"small"`) {
			t.Errorf("models: %s", models)
		}
		get(t, url+"/props")
		get(t, url+"/metrics")
		if u := s.Endpoint(t); u.String() != url {
			t.Errorf("endpoint %s, want %s", u, url)
		}
		if !strings.Contains(s.Log(), "listening on "+url) {
			t.Errorf("the log lacks the address %s:\n%s", url, s.Log())
		}
	})
	if url != "" && listens(url) {
		t.Errorf("%s still answers after its test", url)
	}
}

func TestConformanceShared(t *testing.T) {
	first := Shared(t)
	if again := Shared(t); again != first {
		t.Errorf("a second server at %s beside %s", again.URL, first.URL)
	}
	first.Stop()
	first.Stop()
	if listens(first.URL) {
		t.Error("it answers after Stop")
	}
	if after := Shared(t); after == first || !listens(after.URL) {
		t.Error("no new server after the end of the first")
	}
}

// A server ends with the test binary, also if that has no time to end it.
func TestConformanceEndsWithBinary(t *testing.T) {
	const inside = "UNFRAY_SERVERTEST_INSIDE"
	if os.Getenv(inside) == "1" {
		fmt.Printf("\nurl %s\n", Llama(t, LlamaOptions{}).URL)
		time.Sleep(time.Minute)
		return
	}
	findLlama(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestConformanceEndsWithBinary$")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := ""
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		url, _ = strings.CutPrefix(lines.Text(), "url ")
		if !strings.HasPrefix(url, "http") {
			url = ""
		}
	}
	alive := url != "" && listens(url)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed
	if !alive {
		t.Fatalf("no server at %q", url)
	}
	for deadline := time.Now().Add(10 * time.Second); listens(url); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server outlives the test binary")
		}
	}
}

func TestConformanceStartFails(t *testing.T) {
	python, dir, model := findLlama(t)
	tests := []struct {
		name     string
		settings map[string]any
		want     string
	}{
		{"unknown setting", map[string]any{"no.such": 1}, "no attribute 'no'"},
		{"unknown last part", map[string]any{"sampling.such": 1}, "there is no setting sampling.such"},
		{"no model", map[string]any{"model.path": "/nowhere.gguf"}, "/nowhere.gguf"},
	}
	for _, tt := range tests {
		settings, err := LlamaOptions{Settings: tt.settings}.settings(model)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python, "-B", "-c", llamaScript, settings)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
		_, err = start("llama.cpp", cmd, loadTime, (*process).announced)
		if err == nil || !strings.Contains(err.Error(), "ended before it was ready") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

// The guard's children end with its input, and a command that ends is a start that failed.
func TestGuard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it looks for processes in /proc")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	guard := func(script string) *exec.Cmd {
		return exec.Command(python, "-c", guardScript, "/bin/sh", "-c", script)
	}
	_, err = start("guarded", guard("echo no port; exit 7"), loadTime, func(*process, context.Context) (string, error) {
		return "http://127.0.0.1:1", nil
	})
	for _, want := range []string{"ended before it was ready", "no port", "status 7"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	p, err := launch("guarded", guard("sleep 60 & echo child $!; wait"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	var child int
	for deadline := time.Now().Add(loadTime); child == 0; time.Sleep(10 * time.Millisecond) {
		if _, err := fmt.Sscanf(p.logFrom(0), "child %d\n", &child); err != nil && time.Now().After(deadline) {
			t.Fatalf("no child: %v\n%s", err, p.logFrom(0))
		}
	}
	p.input.Close()
	<-p.done
	for deadline := time.Now().Add(10 * time.Second); running(child); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d outlives the guard", child)
		}
	}
}

// running reports whether a process exists and is no zombie that waits for its parent.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestStartTimesOut(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	begin := time.Now()
	_, err = start("sleeper", exec.Command(sleep, "60"), 100*time.Millisecond, (*process).announced)
	if err == nil || !strings.Contains(err.Error(), "not ready in 100ms") {
		t.Errorf("error %v", err)
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
}

func TestConformanceVLLM(t *testing.T) {
	s := VLLM(t)
	if models := get(t, s.URL+"/v1/models"); !strings.Contains(models, `"`+s.Model+`"`) {
		t.Errorf("models: %s", models)
	}
	if again := VLLM(t); again != s {
		t.Errorf("a second server at %s beside %s", again.URL, s.URL)
	}
}

// A fakeTest records how a test ended.
type fakeTest struct {
	testing.TB
	name, ended, text string
}

func (f *fakeTest) Helper()      {}
func (f *fakeTest) Name() string { return f.name }
func (f *fakeTest) Fatalf(format string, args ...any) {
	f.ended, f.text = "failed", fmt.Sprintf(format, args...)
	runtime.Goexit()
}
func (f *fakeTest) Skipf(format string, args ...any) {
	f.ended, f.text = "skipped", fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (f *fakeTest) run(test func(t testing.TB)) *fakeTest {
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(f)
	}()
	<-done
	return f
}

func TestUnavailable(t *testing.T) {
	t.Setenv("UNFRAY_CACHE", t.TempDir())
	t.Setenv("UNFRAY_MODEL", "")
	t.Setenv("UNFRAY_LLAMA_LIB", "")
	tests := []struct {
		server, require, name, ended, text string
	}{
		{"", "", "TestConformance", "skipped", "make test-deps"},
		{"", "1", "TestConformance", "failed", "make test-deps"},
		{"none", "", "TestOneConformance/part", "skipped", "make test-servers"},
		{"/some/folder", "", "TestConformance", "skipped", "no model"},
		{"/some/folder", "", "TestOther/Conformance", "failed", "name TestOther"},
		{"", "", "BenchmarkOther", "skipped", "make test-deps"},
	}
	for _, tt := range tests {
		t.Setenv(EnvLlamaServer, tt.server)
		t.Setenv(EnvRequire, tt.require)
		t.Setenv(EnvModel, "")
		got := (&fakeTest{name: tt.name}).run(func(t testing.TB) { Llama(t, LlamaOptions{}) })
		if got.ended != tt.ended || !strings.Contains(got.text, tt.text) {
			t.Errorf("%+v: %s: %s", tt, got.ended, got.text)
		}
	}
	t.Setenv(EnvVLLM, "")
	t.Setenv(EnvRequire, "1")
	if got := (&fakeTest{name: "TestConformance"}).run(func(t testing.TB) { VLLM(t) }); got.ended != "skipped" {
		t.Errorf("vLLM: %s: %s", got.ended, got.text)
	}
}

func TestTail(t *testing.T) {
	long := strings.Repeat("a line\n", logTail)
	tests := []struct{ log, want string }{
		{"", ""},
		{"one\ntwo", "one\ntwo"},
		{long, strings.Repeat("a line\n", logTail/len("a line\n"))},
		{strings.Repeat("x", logTail+5), strings.Repeat("x", logTail)},
	}
	for _, tt := range tests {
		if got := tail(tt.log); got != tt.want {
			t.Errorf("tail of %d bytes: %d, want %d", len(tt.log), len(got), len(tt.want))
		}
	}
}
