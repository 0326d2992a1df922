package servertest

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

//go:embed guard.py
var guardScript string

// vllmTime bounds how long vLLM may take until it answers: 40 seconds on an idle machine with two cores.
const vllmTime = 10 * time.Minute

// vllmModel is the name that requests to vLLM give for the model.
const vllmModel = "smollm2"

// vllmShared is the server of [VLLM], nil until the first test asks.
var vllmShared struct {
	sync.Mutex
	server *Server
}

// VLLM returns the one vLLM server of the test binary, started at the first call with the test model in float32: it
// takes half a minute and 5 GB. It ends with the binary. The test skips where [EnvVLLM] is not set.
func VLLM(t testing.TB) *Server {
	t.Helper()
	checkName(t)
	dir := os.Getenv(EnvVLLM)
	if dir == "" {
		t.Skipf("servertest: %s is not set: `make conformance VLLM=1` installs vLLM and sets it", EnvVLLM)
	}
	vllmShared.Lock()
	defer vllmShared.Unlock()
	if vllmShared.server == nil || vllmShared.server.process.ended() {
		s, err := startVLLM(dir)
		if err != nil {
			t.Fatal(err)
		}
		vllmShared.server = s
	}
	showLog(t, vllmShared.server)
	return vllmShared.server
}

// startVLLM starts the server of an installation by scripts/vllm-install.sh.
func startVLLM(dir string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("servertest: vLLM: %w", err)
	}
	cmd := exec.Command(filepath.Join(dir, "bin", "python"), "-B", "-c", guardScript,
		filepath.Join(dir, "bin", "vllm"), "serve", filepath.Join(dir, "model"), "--served-model-name", vllmModel,
		"--host", "127.0.0.1", "--port", fmt.Sprint(port), "--dtype", "float32", "--max-model-len", "2048",
		"--max-num-seqs", "16", "--enforce-eager", "--enable-prefix-caching", "--enable-prompt-tokens-details")
	cmd.Env = append(os.Environ(),
		"VLLM_CPU_KVCACHE_SPACE=1", // GiB
		"VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=2",
		"HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1")
	s, err := start("vLLM", cmd, vllmTime, func(*process, context.Context) (string, error) {
		return fmt.Sprintf("http://127.0.0.1:%d", port), nil
	})
	if err != nil {
		return nil, err
	}
	s.Model = vllmModel
	return s, nil
}

// freePort returns a port of the loopback interface that nobody listens on. vLLM does not say which one the system chose
// for it, so it cannot be left to choose.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
