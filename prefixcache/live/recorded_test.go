package live

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// A frame is a message of vLLM 0.32.0's publisher, as ../testdata/vllm-server/record.py recorded it.
type frame struct {
	After  int      // requests that had been sent
	Parts  [][]byte // topic, number, payload
	Replay *int     // the number that a replay was asked from
}

// A step is a request of the same recording.
type step struct {
	Base, Keep     int
	New, Output    []vocab.ID
	Prompt, Cached int
	Salt           string
	Beside, Bypass bool

	ids []vocab.ID
}

func lines(t testing.TB, path string, each func(line []byte)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		each(sc.Bytes())
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
}

func frames(t testing.TB) (list []frame) {
	t.Helper()
	lines(t, filepath.Join("testdata", "vllm-events.jsonl"), func(line []byte) {
		var f frame
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	})
	return list
}

func steps(t *testing.T) (list []step) {
	t.Helper()
	header := true
	lines(t, filepath.Join("..", "testdata", "vllm-server", "evicting.jsonl"), func(line []byte) {
		if header {
			header = false
			return
		}
		var s step
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		if s.Base >= 0 {
			b := list[s.Base]
			s.ids = append(append(s.ids, b.ids...), b.Output...)[:s.Keep]
		}
		s.ids = append(s.ids, s.New...)
		if len(s.ids) != s.Prompt {
			t.Fatalf("a prompt of %d tokens is recorded as one of %d", len(s.ids), s.Prompt)
		}
		list = append(list, s)
	})
	return list
}

// TestMirrorOfServer follows the events of a real vLLM, and expects for each request what the server then reported.
// The first batch went out before the recorder listened: the blocks it told of follow from the first request, by the
// hashes that the server was started with (PYTHONHASHSEED=0, sha256_cbor).
func TestMirrorOfServer(t *testing.T) {
	reqs, fs := steps(t), frames(t)
	hasher, err := prefixcache.NewBlockHasher("sha256_cbor", "0")
	if err != nil {
		t.Fatal(err)
	}
	const block = 32
	keys, err := hasher.BlockKeys(reqs[0].ids, block, prefixcache.Keys{Salt: reqs[0].Salt})
	if err != nil {
		t.Fatal(err)
	}
	first := Event{Kind: Stored, BlockTokens: block, Tokens: reqs[0].ids[:len(keys)*block], Extra: make([]string, len(keys))}
	first.Extra[0] = reqs[0].Salt
	for _, k := range keys {
		first.Hashes = append(first.Hashes, HashOf(k))
	}
	m := NewMirror(0)
	m.Apply(Update{Batch: &Batch{Events: []Event{first}}})

	compared, k := 0, 0
	for i, r := range reqs[:30] {
		for ; k < len(fs) && fs[k].Replay == nil && fs[k].After <= i; k++ {
			b, err := Decode(fs[k].Parts[2])
			if err != nil {
				t.Fatal(err)
			}
			m.Apply(Update{Batch: b})
		}
		if i == 0 || r.Beside || r.Bypass || reqs[i+1].Beside {
			continue // events of a running request are not assigned to a moment
		}
		compared++
		if got := m.Cached(r.ids, prefixcache.Keys{Salt: r.Salt}); got != r.Cached {
			t.Errorf("request %d: the mirror has %d of %d tokens, the server reported %d", i, got, len(r.ids), r.Cached)
		}
		if r.Cached > 0 && r.Salt != "" && m.Cached(r.ids, prefixcache.Keys{}) != 0 {
			t.Errorf("request %d is found without its salt", i)
		}
	}
	if compared < 15 {
		t.Errorf("only %d requests were compared", compared)
	}
	if c := m.Counts(); c.Orphans > 0 || c.Blocks == 0 || m.BlockTokens() != block {
		t.Errorf("%+v", c)
	}
	for ; k < len(fs) && fs[k].Replay == nil; k++ {
		b, err := Decode(fs[k].Parts[2])
		if err != nil {
			t.Fatal(err)
		}
		m.Apply(Update{Batch: b})
	}
	if c := m.Counts(); c.Blocks != 1 || c.Cleared != 1 {
		t.Errorf("the cache is emptied at the end, then one block is stored; the mirror has %+v", c)
	}
}

// answers serves files.
func answers(t *testing.T, files map[string]string) *Probe {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Header.Get("Authorization") != "Bearer k" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.ServeFile(w, r, filepath.Join("testdata", name))
	}))
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &Probe{URL: at, Key: "k"}
}

func read(t *testing.T, file string) Counters {
	t.Helper()
	c, err := answers(t, map[string]string{"/metrics": file}).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestVLLMCounters compares what the server counted with what it reported to its clients in the same time.
func TestVLLMCounters(t *testing.T) {
	d := read(t, "vllm-metrics-after.txt").Since(read(t, "vllm-metrics-before.txt"))
	var tokens, cached float64
	for _, s := range steps(t) {
		if !s.Bypass { // it is not looked up
			tokens += float64(s.Prompt)
		}
		cached += float64(s.Cached)
	}
	if d.Engine != VLLM || !d.TellHit || d.Hits != cached || d.Queries != tokens {
		t.Errorf("counted %v of %v tokens, reported %v of %v", d.Hits, d.Queries, cached, tokens)
	}
	s, err := answers(t, map[string]string{"/metrics": "vllm-metrics-after.txt"}).Settings(t.Context(), VLLM)
	if err != nil {
		t.Fatal(err)
	}
	if s.BlockTokens != 32 || s.Blocks != 48 || !s.Caching || s.HashAlgorithm != "sha256_cbor" || s.CapacityTokens != 47*32 {
		t.Errorf("%+v", s)
	}
}

func TestLlamaCppCounters(t *testing.T) {
	d := read(t, "llamacpp-metrics-after.txt").Since(read(t, "llamacpp-metrics-before.txt"))
	if d.Engine != LlamaCpp || !d.TellHit || !d.TellComputed || d.Hits <= 0 || d.Queries != d.Hits+d.Computed {
		t.Errorf("%+v", d)
	}
}

// TestSGLangSettings reads what SGLang 0.5.23 answers (utils/common.py, build_server_info), and older servers under
// another name.
func TestSGLangSettings(t *testing.T) {
	for _, path := range []string{"/server_info", "/get_server_info"} {
		s, err := answers(t, map[string]string{path: "sglang-server-info.json"}).Settings(t.Context(), SGLang)
		if err != nil {
			t.Fatal(err)
		}
		if s.BlockTokens != 64 || s.CapacityTokens != 120_000 || s.Policy != "slru" || !s.Caching {
			t.Errorf("%+v", s)
		}
	}
}

func TestProbeErrors(t *testing.T) {
	p := answers(t, map[string]string{"/metrics": "vllm-events.jsonl"})
	if _, err := p.Read(t.Context()); err == nil {
		t.Error("what is no metrics is read")
	}
	p.Key = ""
	if _, err := p.Read(t.Context()); err == nil {
		t.Error("a refusal is taken for metrics")
	}
	if _, err := answers(t, nil).Read(t.Context()); err == nil || !strings.Contains(err.Error(), "--metrics") {
		t.Errorf("%v does not name the flag", err)
	}
}
