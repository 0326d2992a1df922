package servertest

import (
	_ "embed"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/unfray/unfray/internal/deps"
)

//go:embed llama.py
var llamaScript string

// loadTime bounds how long llama.cpp's server may take to load the model: half a second on an idle machine.
const loadTime = 2 * time.Minute

// LlamaOptions configure llama.cpp's server. The zero value works.
type LlamaOptions struct {
	Slots   int // requests that run at once; default 4
	Context int // tokens of one slot; default 2048
	Threads int // default 2

	// Settings are further attributes of xllamacpp.CommonParams by their dotted paths, for example "api_keys" or
	// "sampling.temp". They win over the fields above.
	Settings map[string]any
}

// Llama starts llama.cpp's server with the test model. Its /slots, /props and /metrics are on. The server ends with the
// test.
func Llama(t testing.TB, o LlamaOptions) *Server {
	t.Helper()
	checkName(t)
	return ownedBy(t, llama(t, o))
}

// shared is the server of [Shared], nil until the first test asks.
var shared struct {
	sync.Mutex
	server *Server
}

// Shared returns the one llama.cpp server of the test binary, started with the zero options at the first call. It ends
// with the binary. Tests that count its slots, cached tokens or requests start their own by [Llama].
func Shared(t testing.TB) *Server {
	t.Helper()
	checkName(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil || shared.server.process.ended() {
		shared.server = llama(t, LlamaOptions{})
	}
	showLog(t, shared.server)
	return shared.server
}

// llama starts a server that nobody owns yet.
func llama(t testing.TB, o LlamaOptions) *Server {
	t.Helper()
	python, dir, model := findLlama(t)
	settings, err := o.settings(model)
	if err != nil {
		t.Fatalf("servertest: settings: %v", err)
	}
	cmd := exec.Command(python, "-B", "-c", llamaScript, settings)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	s, err := start("llama.cpp", cmd, loadTime, (*process).announced)
	if err != nil {
		t.Fatal(err)
	}
	s.Model = model
	return s
}

// findLlama returns the Python interpreter, the folder of the server and the model, or skips the test.
func findLlama(t testing.TB) (python, dir, model string) {
	t.Helper()
	cache, err := deps.DefaultCache()
	if err != nil {
		unavailable(t, "%v", err)
	}
	switch dir = os.Getenv(EnvLlamaServer); dir {
	case "none":
		unavailable(t, "%s=none: `make test-servers` runs this test", EnvLlamaServer)
	case "":
		if dir, err = cache.FindLlamaServer(); err != nil {
			unavailable(t, "%v", err)
		}
	}
	if model = os.Getenv(EnvModel); model == "" {
		if model, err = cache.FindModel(); err != nil {
			unavailable(t, "%v", err)
		}
	}
	if python, err = exec.LookPath("python3"); err != nil {
		unavailable(t, "llama.cpp's server needs python3 (CPython 3.10 or newer): %v", err)
	}
	return python, dir, model
}

// settings returns the options as the script takes them.
func (o LlamaOptions) settings(model string) (string, error) {
	slots := or(o.Slots, 4)
	settings := map[string]any{
		"model.path":          model,
		"port":                0, // a free one
		"n_parallel":          slots,
		"n_ctx":               slots * or(o.Context, 2048), // divided among the slots
		"cpuparams.n_threads": or(o.Threads, 2),
		"cpuparams.poll":      0, // idle threads sleep instead of taking the cores from the test
		"endpoint_slots":      true,
		"endpoint_props":      true,
		"endpoint_metrics":    true,
	}
	maps.Copy(settings, o.Settings)
	text, err := json.Marshal(settings)
	return string(text), err
}

// or returns n, or the default for 0.
func or(n, byDefault int) int {
	if n == 0 {
		return byDefault
	}
	return n
}
