package remote

import (
	"flag"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/unfray/unfray/backend/remote/wiretest"
	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/internal/servertest"
	"github.com/unfray/unfray/tokenizer"
)

// Tests whose names hold Conformance run against a recording of a real vLLM
// server; with UNFRAY_TEST_VLLM set against such a server, and with -record
// besides they make the recording anew:
//
//	UNFRAY_TEST_VLLM=folder go test -run ConformanceVLLM -record ./backend/remote
var (
	record  = flag.Bool("record", false, "write the exchanges with the real servers to testdata")
	vllmURL = flag.String("vllm", "", "address of a running vLLM server, in place of one that is started")
)

// vllmOptions leads to the real server, or to the recording of that name.
func vllmOptions(t *testing.T, name string) Options {
	t.Helper()
	o := Options{Tokenizer: smolTokenizer(t)}
	file := filepath.Join("testdata", "vllm", name+".jsonl")
	address := *vllmURL
	switch {
	case address != "":
	case os.Getenv(servertest.EnvVLLM) != "":
		address = servertest.VLLM(t).URL
	default:
		o.Base = mustParse(t, wiretest.Serve(t, file))
		return o
	}
	o.Base = mustParse(t, address)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	o.Transport = transport
	if *record {
		r := &wiretest.Recorder{Transport: transport}
		o.Transport = r
		t.Cleanup(func() {
			if t.Failed() {
				return
			}
			if err := r.Write(file); err != nil {
				t.Error(err)
			}
		})
	}
	return o
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// smolTokenizer is the tokenizer of the test model.
func smolTokenizer(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	path := os.Getenv(servertest.EnvModel)
	if path == "" {
		t.Skipf("%s is not set: make test sets it", servertest.EnvModel)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func openVLLM(t *testing.T, o Options) *VLLM {
	t.Helper()
	v, err := OpenVLLM(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}
