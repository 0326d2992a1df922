package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fimStops are the strings that editors end a completion at.
var fimStops = []string{"<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "/src/", "#- coding: utf-8", "```"}

// TestConformanceUpstreamEditors sends what editors' extensions send. Each body
// comes twice, the second time as a stream or whole, whichever the first is not.
func TestConformanceUpstreamEditors(t *testing.T) {
	s := oneThread(t)
	f := startFlags(t, s)
	const prompt = "def add(a, b):\n    retu"
	for name, tc := range map[string]struct {
		path string
		body object
	}{
		"llama.vscode by OpenAI's dialect": {"/v1/completions", object{
			"model": "", "prompt": prompt, "max_tokens": 12, "temperature": 0.1, "stream": false,
		}},
		"Continue": {"/v1/completions", object{
			"model": s.Model, "prompt": prompt, "max_tokens": 12, "temperature": 0.01, "stream": true, "stop": fimStops,
		}},
		"Continue by llama.cpp's dialect": {"/completion", object{
			"prompt": prompt, "n_predict": 12, "temperature": 0.01, "stream": true, "stop": fimStops,
		}},
		"Tabby": {"/completion", object{
			"prompt": prompt, "n_predict": 12, "temperature": 0.1, "stream": true, "seed": 7, "penalty_last_n": 0, "presence_penalty": 0.0,
		}},
		"Tabby by OpenAI's dialect": {"/v1/completions", object{
			"model": s.Model, "prompt": prompt, "max_tokens": 12, "temperature": 0.1, "stream": true, "presence_penalty": 0.0, "seed": 7,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			// Near temperature 0 this prompt has one likely continuation.
			got := outcomeOf(t, f.url+tc.path, tc.body)
			if !got.Healed || !strings.HasPrefix(got.Texts[0], "rn") {
				t.Errorf("not healed: %+v", got)
			}
			other := outcomeOf(t, f.url+tc.path, with(tc.body, object{"stream": tc.body["stream"] == false}))
			if !other.Healed || !strings.HasPrefix(other.Texts[0], "rn") {
				t.Errorf("delivered otherwise: %+v", other)
			}
			if stream := max(got.events, other.events); stream < 6 {
				t.Errorf("the stream has %d events for 12 tokens", stream)
			}
		})
	}
}

// TestConformanceUpstreamInfill sends llama.vscode's body for a model that has no
// tokens for it. The server's own answer comes back.
func TestConformanceUpstreamInfill(t *testing.T) {
	s := oneThread(t)
	f := startFlags(t, s)
	body := object{
		"input_prefix": "def add(a, b):\n", "input_suffix": "\n\nprint(add(1, 2))\n", "prompt": "    retu",
		"input_extra": []object{{"filename": "a.py", "text": "x = 1\n"}},
		"n_predict":   128, "n_cmpl": 1, "top_k": 40, "top_p": 0.99, "stream": false, "samplers": []string{"top_k", "top_p", "infill"},
		"cache_prompt": true, "id_slot": 0, "n_indent": 4, "t_max_prompt_ms": 500, "t_max_predict_ms": 500,
	}
	for name, more := range map[string]object{"completion": nil, "warm-up": {"n_predict": 0}, "stream": {"stream": true}} {
		own, got := post(t, s.URL+"/infill", with(body, more)), post(t, f.url+"/infill", with(body, more))
		if got.status != http.StatusNotImplemented || got.status != own.status || !bytes.Equal(got.body, own.body) || got.header.Get("Server") != own.header.Get("Server") {
			t.Errorf("%s: status %d %s, the server itself %d %s", name, got.status, got.body, own.status, own.body)
		}
	}
}

// TestConformanceUpstreamAfterStream sends a request right after a streamed
// answer. llama.cpp's server then closes the connection without having said so.
func TestConformanceUpstreamAfterStream(t *testing.T) {
	f := startFlags(t, oneThread(t))
	body := object{"prompt": "const userNa", "max_tokens": 2, "temperature": 0, "unfray": object{"heal": "stable"}}
	off := with(body, object{"unfray": object{"heal": "off"}})
	for range 15 {
		outcomeOf(t, f.url+"/v1/completions", streamed("/v1/", body))
		outcomeOf(t, f.url+"/v1/completions", off)
		outcomeOf(t, f.url+"/v1/completions", streamed("/v1/", off))
		outcomeOf(t, f.url+"/v1/completions", off)
	}
}

// curl returns the output of curl, and its exit status.
func curl(t *testing.T, args ...string) (out string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "curl", append([]string{"-sS", "--max-time", "120"}, args...)...)
	b, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// needCurl skips the test where there is no curl.
func needCurl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
}

// TestConformanceUpstreamCurlStream watches a stream arrive: token by token, not
// at the end.
func TestConformanceUpstreamCurlStream(t *testing.T) {
	needCurl(t)
	f := startFlags(t, oneThread(t))
	for _, mode := range []string{"off", "stable", "exact"} {
		body, err := json.Marshal(object{"prompt": "const userNa", "max_tokens": 32, "temperature": 0, "stream": true, "unfray": object{"heal": mode}})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "curl", "-sSN", "--max-time", "120", f.url+"/v1/completions", "-d", string(body))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var at []time.Time
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data: ") {
				at = append(at, time.Now())
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		apart := 0
		for i := 1; i < len(at); i++ {
			if at[i].Sub(at[i-1]) > time.Millisecond {
				apart++
			}
		}
		// The model takes some milliseconds for a token.
		if len(at) < 24 || apart < len(at)/2 {
			t.Errorf("%s: %d events, %d of them apart from the one before", mode, len(at), apart)
		}
	}
}

// TestConformanceUpstreamCurl uses HTTP as clients rarely do.
func TestConformanceUpstreamCurl(t *testing.T) {
	needCurl(t)
	s := oneThread(t)
	f := startFlags(t, s)
	url := f.url + "/v1/completions"
	const body = `{"prompt":"const userNa","max_tokens":4,"temperature":0,"unfray":{"heal":"stable"}}`
	healed := outcomeOf(t, url, object{"prompt": "const userNa", "max_tokens": 4, "temperature": 0, "unfray": object{"heal": "stable"}}).Texts[0]

	if out, status := curl(t, "--http1.0", url, "-d", body); status != 0 || !strings.Contains(out, `"text":"`+healed) {
		t.Errorf("HTTP/1.0: status %d: %s", status, out)
	}
	stream := strings.Replace(body, "{", `{"stream":true,`, 1)
	if out, status := curl(t, "-i", "--http1.0", url, "-d", stream); status != 0 || !strings.HasSuffix(out, "data: [DONE]\n\n") || strings.Contains(strings.ToLower(out), "transfer-encoding") {
		t.Errorf("HTTP/1.0, stream: status %d: %s", status, out)
	}
	if out, status := curl(t, "--http2-prior-knowledge", url, "-d", body); status == 0 || strings.Contains(out, healed) {
		t.Errorf("HTTP/2 without TLS: status %d: %s", status, out)
	}
	if out, status := curl(t, "--http2", "-i", url, "-d", body); status != 0 || !strings.HasPrefix(out, "HTTP/1.1 200") || !strings.Contains(out, healed) {
		t.Errorf("HTTP/2 by an upgrade: status %d: %s", status, out)
	}

	big := filepath.Join(t.TempDir(), "body.json")
	for _, mode := range []string{"stable", "off"} {
		text := strings.Replace(body, "{", `{"comment":"`+strings.Repeat("x", 2<<20)+`",`, 1)
		if err := os.WriteFile(big, []byte(strings.Replace(text, "stable", mode, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, status := curl(t, "-i", "-H", "Expect: 100-continue", "-H", "Content-Type: application/json", url, "--data-binary", "@"+big)
		if status != 0 || !strings.Contains(out, "HTTP/1.1 200") || !strings.Contains(out, `"text":"`) || strings.Contains(out, `"text":"`+healed) != (mode == "stable") {
			t.Errorf("Expect: 100-continue, %s: status %d: %.600s", mode, status, out)
		}
	}

	for _, args := range [][]string{{"-I", "/health"}, {"-I", "/v1/models"}, {"-I", "/v1/completions"}, {"-i", "-X", "OPTIONS", "-H", "Origin: http://editor.test", "-H", "Access-Control-Request-Method: POST", "/v1/completions"}} {
		path := args[len(args)-1]
		ask := func(base string) map[string]bool {
			out, status := curl(t, append(args[:len(args)-1:len(args)-1], base+path)...)
			if status != 0 {
				t.Fatalf("curl %q: status %d: %s", args, status, out)
			}
			lines := map[string]bool{}
			for line := range strings.Lines(out) {
				// What is about the connection is each hop's own.
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Keep-Alive:") && !strings.HasPrefix(line, "Connection:") {
					lines[line] = true
				}
			}
			return lines
		}
		own, got := ask(s.URL), ask(f.url)
		for line := range own {
			if !got[line] {
				t.Errorf("curl %q: the server's %q is not in %v", args, line, got)
			}
		}
	}
}
