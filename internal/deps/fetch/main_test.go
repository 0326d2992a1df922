//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unfray/unfray/internal/deps"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "it's.gguf")
	if err := os.WriteFile(model, []byte("GGUF"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(deps.EnvCache, filepath.Join(dir, "cache"))
	t.Setenv(deps.EnvModel, model)
	t.Setenv(deps.EnvLib, filepath.Join(dir, "none"))
	server := deps.Cache(filepath.Join(dir, "cache")).LlamaServerDir()
	if err := os.MkdirAll(server, 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args   string
		status int
		stdout string
		stderr string // contained
	}{
		{"-no-engine", 0, "", "model: " + model + " (UNFRAY_MODEL)"},
		{"-no-engine -env", 0, `export UNFRAY_TEST_MODEL='` + dir + `/it'\''s.gguf'` + "\n", ""},
		{"-no-engine -env -llama-server", 0, `export UNFRAY_TEST_MODEL='` + dir + `/it'\''s.gguf'` + "\nexport UNFRAY_TEST_LLAMA_SERVER='" + server + "'\n", ""},
		{"-env", 1, "", "is no folder of llama.cpp libraries"},
		{"-no-engine -env -clients " + dir, 1, "", "run from the root of the repository"},
		{"-help", 0, "", "usage: go run ./internal/deps/fetch"},
		{"-nonsense", 2, "", "usage: go run ./internal/deps/fetch"},
		{"nonsense", 2, "", "usage: go run ./internal/deps/fetch"},
	}
	for _, tt := range tests {
		var stdout, stderr strings.Builder
		status := run(strings.Fields(tt.args), nil, &stdout, &stderr)
		if status != tt.status || stdout.String() != tt.stdout || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", tt.args, status, stdout.String(), stderr.String())
		}
	}
}

func TestAcceptGemma(t *testing.T) {
	tests := []struct {
		name     string
		accepted bool
		person   io.Reader
		want     bool
	}{
		{"beforehand", true, nil, true},
		{"nobody to ask", false, nil, false},
		{"yes", false, strings.NewReader("Yes\n"), true},
		{"y without a line's end", false, strings.NewReader("y"), true},
		{"no", false, strings.NewReader("n\nyes\n"), false},
		{"return", false, strings.NewReader("\n"), false},
		{"yes and more", false, strings.NewReader("yes if I must\n"), false},
		{"end of input", false, strings.NewReader(""), false},
	}
	for _, tt := range tests {
		var stderr strings.Builder
		err := acceptGemma(t.Context(), "/cache/terms.html", tt.accepted, tt.person, &stderr)
		if (err == nil) != tt.want {
			t.Errorf("%s: error %v", tt.name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "make gemma ACCEPT=yes") {
			t.Errorf("%s: error %q does not say what to do", tt.name, err)
		}
		if !strings.Contains(stderr.String(), "Gemma Terms of Use") || !strings.Contains(stderr.String(), "/cache/terms.html") {
			t.Errorf("%s: shown: %q", tt.name, stderr.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	silent, w := io.Pipe()
	defer w.Close()
	if err := acceptGemma(ctx, "", false, silent, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted at the question: error %v", err)
	}
}
