package main

import (
	"bytes"
	"net"
	"strings"
	"testing"
)

// TestPortInUse asks for a port that something listens on. It is found out
// before a model is loaded.
func TestPortInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, command := range []string{"serve", "demo"} {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), []string{command, "--listen", ln.Addr().String(), "--model", "no such file"}, strings.NewReader(""), &stdout, &stderr)
		if status != exitFailed || !strings.Contains(stderr.String(), ln.Addr().String()+" is in use") || !strings.Contains(stderr.String(), "--listen") {
			t.Errorf("%s: exit status %d, %q", command, status, stderr.String())
		}
	}
}
