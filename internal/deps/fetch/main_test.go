//go:build unix

package main

import (
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
	tests := []struct {
		args   string
		status int
		stdout string
		stderr string // contained
	}{
		{"-no-engine", 0, "", "model: " + model + " (UNFRAY_MODEL)"},
		{"-no-engine -env", 0, `export UNFRAY_TEST_MODEL='` + dir + `/it'\''s.gguf'` + "\n", ""},
		{"-env", 1, "", "is no folder of llama.cpp libraries"},
		{"-no-engine -env -clients " + dir, 1, "", "run from the root of the repository"},
		{"-help", 0, "", "usage: go run ./internal/deps/fetch"},
		{"-nonsense", 2, "", "usage: go run ./internal/deps/fetch"},
		{"nonsense", 2, "", "usage: go run ./internal/deps/fetch"},
	}
	for _, tt := range tests {
		var stdout, stderr strings.Builder
		status := run(strings.Fields(tt.args), &stdout, &stderr)
		if status != tt.status || stdout.String() != tt.stdout || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", tt.args, status, stdout.String(), stderr.String())
		}
	}
}
