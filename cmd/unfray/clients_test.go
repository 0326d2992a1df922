//go:build llama && unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOpenAIClients runs the unmodified OpenAI clients for Python, JavaScript and Go against a gateway in a process of
// its own. Each program checks what it gets; all three must have got the same.
func TestOpenAIClients(t *testing.T) {
	lib, model := testSetting(t, "UNFRAY_TEST_LIB"), testSetting(t, "UNFRAY_TEST_MODEL")
	runOpenAIClients(t, startGateway(t, "--model", model, "--lib", lib)+"/v1")
}

// runOpenAIClients runs the programs against a gateway.
func runOpenAIClients(t *testing.T, baseURL string) {
	t.Helper()
	installed := testSetting(t, "UNFRAY_TEST_CLIENTS")
	sources, err := filepath.Abs("../../testdata/clients")
	if err != nil {
		t.Fatal(err)
	}
	name := firstModel(t, baseURL)

	// JavaScript modules are looked up from the program's own folder.
	js := t.TempDir()
	link(t, filepath.Join(installed, "javascript", "node_modules"), filepath.Join(js, "node_modules"))
	program := filepath.Join(js, "client.mjs")
	text, err := os.ReadFile(filepath.Join(sources, "javascript", "client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, text, 0o644); err != nil {
		t.Fatal(err)
	}
	goClient := filepath.Join(t.TempDir(), "client")
	build := exec.Command("go", "build", "-o", goClient, ".")
	build.Dir = filepath.Join(sources, "go")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build in %s: %v\n%s", build.Dir, err, out)
	}

	commands := map[string]*exec.Cmd{
		"python":     exec.CommandContext(t.Context(), "python3", filepath.Join(sources, "python", "client.py"), baseURL, name),
		"javascript": exec.CommandContext(t.Context(), "node", program, baseURL, name),
		"go":         exec.CommandContext(t.Context(), goClient, baseURL, name),
	}
	commands["python"].Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(installed, "python"), "PYTHONDONTWRITEBYTECODE=1")
	results := map[string]map[string]any{}
	for _, language := range slices.Sorted(maps.Keys(commands)) {
		t.Run(language, func(t *testing.T) { results[language] = runClient(t, commands[language]) })
	}
	for language, got := range results {
		if want := results["go"]; got != nil && want != nil && !reflect.DeepEqual(got, want) {
			t.Errorf("the clients disagree:\n%s %v\ngo %v", language, got, want)
		}
	}
}

func runClient(t *testing.T, cmd *exec.Cmd) map[string]any {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	var result map[string]any
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("output %q: %v", out, err)
	}
	t.Logf("%s", bytes.TrimSpace(out))
	return result
}

// startGateway builds the command with the embedded engine, serves on a free port and returns the gateway's URL. At
// the test's end the process gets SIGTERM and must then exit with status 0.
func startGateway(t *testing.T, args ...string) (url string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "unfray")
	build := exec.Command("go", "build", "-tags", "llama", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	// The test's own context ends before its cleanups run, which are to see an orderly end.
	ctx, kill := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, binary, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	urls := make(chan string, 1)
	var log strings.Builder
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		defer close(urls)
		listening := regexp.MustCompile(`listening on (http://\S+)`)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case urls <- m[1]:
				default: // one is enough
				}
			}
			log.WriteString(lines.Text() + "\n")
		}
	}()
	t.Cleanup(func() {
		timer := time.AfterFunc(30*time.Second, kill)
		defer timer.Stop()
		defer kill()
		// It fails only if the process has ended by itself, which Wait reports.
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-logged
		if err := cmd.Wait(); err != nil {
			t.Errorf("the gateway after SIGTERM: %v", err)
		}
		if t.Failed() {
			t.Logf("the gateway's messages:\n%s", log.String())
		}
	})
	select {
	case url, ok := <-urls:
		if !ok {
			t.Fatal("the gateway ended before it listened")
		}
		return url
	case <-time.After(60 * time.Second):
		t.Fatal("the gateway does not listen after 60 s")
		return ""
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// firstModel asks the gateway for the name of its model.
func firstModel(t *testing.T, baseURL string) string {
	t.Helper()
	resp, err := http.Get(baseURL + "/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct{ ID string } `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || len(list.Data) == 0 {
		t.Fatalf("%s/models: status %s, %d models, %v", baseURL, resp.Status, len(list.Data), err)
	}
	return list.Data[0].ID
}

// testSetting returns an environment variable that `make test` sets, and skips the test where it is not set.
func testSetting(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Skipf("%s is not set: `make test` fetches what it names and sets it", name)
	}
	return value
}
