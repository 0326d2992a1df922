//go:build llama && unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/unfray/unfray/internal/servertest"
)

// TestConformanceUpstreamOpenAIClients runs the programs of [TestOpenAIClients]
// against a gateway in front of llama.cpp's server.
func TestConformanceUpstreamOpenAIClients(t *testing.T) {
	s := oneThread(t)
	f := startFront(t, s, "--config", writeConfig(t, s))
	runOpenAIClients(t, f.url+"/v1")
}

// writeConfig returns the path of a configuration file for one server, whose
// model clients call smollm2. Nothing goes to the server by default.
func writeConfig(t *testing.T, s *servertest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "unfray.yaml")
	text := fmt.Sprintf("upstreams:\n  cpu:\n    kind: llamacpp\n    urls: [%s]\nmodels:\n  - name: smollm2\n    upstream: cpu\n", s.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
