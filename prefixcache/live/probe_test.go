package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// page serves a page of metrics, and as settings.
func page(t *testing.T, text string) *Probe {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword("me", "secret")
	return &Probe{URL: at}
}

// TestRedirect holds the key back from another server, at another port of the same host too.
func TestRedirect(t *testing.T) {
	var key string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		key = r.Header.Get("Authorization")
	}))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	defer s.Close()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &Probe{URL: at, Key: "k"}
	if _, err := p.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "points elsewhere") {
		t.Errorf("a redirect: %v", err)
	}
	if key != "" {
		t.Errorf("another server was sent %q", key)
	}
}

// TestOddCounts reads values that count nothing, and what follows them.
func TestOddCounts(t *testing.T) {
	for value, told := range map[string]bool{"NaN": false, "+Inf": false, "-Inf": false, "-1": false, "1e300": false, "0": true, "12": true, "1e3": true} {
		c, err := page(t, "# TYPE vllm:prefix_cache_queries_total counter\nvllm:prefix_cache_queries_total{engine=\"0\"} "+value+"\nvllm:kv_cache_usage_perc NaN\n").Read(t.Context())
		if err != nil {
			t.Errorf("%s: %v", value, err)
		}
		if c.TellHit != told || c.Usage != nil {
			t.Errorf("%s: %+v", value, c)
		}
	}
}

// TestUntold tells counts that a server does not have from those that are 0.
func TestUntold(t *testing.T) {
	c, err := page(t, "llamacpp:prompt_tokens_total 5\nllamacpp:prompt_tokens_cached_total 3\n").Read(t.Context())
	if err != nil || c.Usage != nil || c.Evicted != nil || c.Preemptions != nil || c.Requests != nil {
		t.Errorf("%+v, %v", c, err)
	}
	text, err := json.Marshal(c)
	if err != nil || !strings.Contains(string(text), `"usage":null,"evicted_tokens":null`) {
		t.Errorf("%s, %v", text, err)
	}
	read := func(n int) Counters {
		c, err := page(t, fmt.Sprintf("vllm:prefix_cache_queries_total %d\nvllm:kv_cache_usage_perc 0\nvllm:num_preemptions_total %d\n", n, n)).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	d := read(9).Since(read(4))
	if d.Queries != 5 || d.Usage == nil || *d.Usage != 0 || d.Preemptions == nil || *d.Preemptions != 5 || d.Evicted != nil {
		t.Errorf("%+v", d)
	}
	if d := read(2).Since(read(4)); d.Queries != 2 || *d.Preemptions != 2 {
		t.Errorf("of a server that counts anew: %+v", d)
	}
}

// TestUnreadMetrics reads a page most of which is nothing to be read, and not well formed either.
func TestUnreadMetrics(t *testing.T) {
	c, err := page(t, strings.Repeat("vllm:other{ 1\n\x1b[31m", 1000)+"\nvllm:prefix_cache_queries_total 7\nsglang:prompt_tokens_total 9\n").Read(t.Context())
	if err != nil || c.Engine != VLLM || c.Queries != 7 {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = page(t, "vllm:prefix_cache_queries_total{ 7\n").Read(t.Context())
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a metric that is read and not well formed: %v", err)
	}
	if _, err := page(t, "python_info 1\n").Read(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("metrics of something else: %v", err)
	}
}

// TestOddSettings refuses settings that would overflow a simulator's.
func TestOddSettings(t *testing.T) {
	for _, c := range []struct {
		engine Engine
		text   string
	}{
		{VLLM, `vllm:cache_config_info{block_size="-16",num_gpu_blocks="10"} 1`},
		{VLLM, `vllm:cache_config_info{block_size="16",num_gpu_blocks="9999999999999999999"} 1`},
		{VLLM, `vllm:cache_config_info{block_size="4611686018427387904",num_gpu_blocks="4"} 1`},
		{SGLang, `{"page_size": 100000000}`},
		{SGLang, `{"page_size": 1, "max_total_num_tokens": -1}`},
		{LlamaCpp, `{"total_slots": 2000000000}`},
		{LlamaCpp, `{"total_slots": 2, "default_generation_settings": {"n_ctx": 9000000000000000000}}`},
	} {
		_, err := page(t, c.text+"\n").Settings(t.Context(), c.engine)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}
