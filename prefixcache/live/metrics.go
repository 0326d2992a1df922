package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Engine is a kind of server.
type Engine string

// The engines whose metrics this package knows.
const (
	VLLM     Engine = "vllm"
	SGLang   Engine = "sglang"
	LlamaCpp Engine = "llamacpp"
	TGI      Engine = "tgi"
)

// Limits on what a server sends.
const (
	maxBody = 32 << 20 // bytes
	askTime = 10 * time.Second
)

// Counters are what an engine counts since it started. What it does not tell is 0,
// and where that could be read as a count a flag beside it is false.
type Counters struct {
	Engine Engine    `json:"engine"`
	At     time.Time `json:"at"`

	// Queries and Hits are tokens of prompts: those looked up, and those found.
	Queries float64 `json:"query_tokens"`
	Hits    float64 `json:"hit_tokens"`
	TellHit bool    `json:"tells_hits"` // whether the engine counts them

	// Computed are the tokens of prompts that were prefilled, which llama.cpp's
	// server counts; older ones count no hits.
	Computed     float64 `json:"computed_tokens"`
	TellComputed bool    `json:"tells_computed"`

	Usage       float64 `json:"usage"` // share of the cache in use, 0 to 1
	Evicted     float64 `json:"evicted_tokens"`
	Preemptions float64 `json:"preemptions"`
	Requests    float64 `json:"requests"` // that ended well, where it is told
}

// Since gives what was counted between two readings of one server. A server that
// counts anew gives what it counted since it started.
func (c Counters) Since(before Counters) Counters {
	d := c
	if c.Queries < before.Queries || c.Computed < before.Computed {
		return d
	}
	d.Queries -= before.Queries
	d.Hits -= before.Hits
	d.Computed -= before.Computed
	d.Evicted -= before.Evicted
	d.Preemptions -= before.Preemptions
	d.Requests -= before.Requests
	return d
}

// Settings are what a simulator of the server must know.
type Settings struct {
	Engine Engine `json:"engine"`
	// BlockTokens is the size of a block or page; 0 where it is not told.
	BlockTokens int `json:"block_tokens"`
	Blocks      int `json:"blocks"` // of the whole cache; 0: not told
	// Caching says whether prefixes are cached at all, as far as it is told.
	Caching bool `json:"caching"`
	// HashAlgorithm is vLLM's --prefix-caching-hash-algo; "": not told.
	HashAlgorithm string `json:"hash_algorithm,omitempty"`
	// SlidingWindow is in tokens; 0: none, or not told.
	SlidingWindow  int    `json:"sliding_window,omitempty"`
	Slots          int    `json:"slots,omitempty"`           // of llama.cpp's server
	SlotTokens     int    `json:"slot_tokens,omitempty"`     // context of one
	Policy         string `json:"policy,omitempty"`          // of eviction (SGLang)
	CapacityTokens int    `json:"capacity_tokens,omitempty"` // of the whole cache
}

// Probe asks a server.
type Probe struct {
	Client *http.Client // nil: one with a time limit
	URL    *url.URL     // of the server, without /v1
	Key    string       // a bearer token; "": none
}

// Read takes the counters of the server's /metrics.
func (p *Probe) Read(ctx context.Context) (Counters, error) {
	families, err := p.families(ctx)
	if err != nil {
		return Counters{}, err
	}
	c := Counters{At: time.Now()}
	switch c.Engine = engineOf(families); c.Engine {
	case VLLM:
		c.Queries, c.TellHit = sum(families, "vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries")
		c.Hits, _ = sum(families, "vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits")
		c.Usage, _ = sum(families, "vllm:kv_cache_usage_perc")
		c.Preemptions, _ = sum(families, "vllm:num_preemptions_total", "vllm:num_preemptions")
		c.Requests, _ = sum(families, "vllm:request_success_total", "vllm:request_success")
	case SGLang:
		c.Queries, c.TellHit = sum(families, "sglang:prompt_tokens_total")
		c.Hits, _ = sum(families, "sglang:cached_tokens_total")
		c.Usage, _ = sum(families, "sglang:token_usage")
		c.Evicted, _ = sum(families, "sglang:evicted_tokens_total")
		c.Requests, _ = sum(families, "sglang:num_requests_total")
	case LlamaCpp:
		c.Computed, c.TellComputed = sum(families, "llamacpp:prompt_tokens_total")
		// Servers of 2026 count what they found, too.
		c.Hits, c.TellHit = sum(families, "llamacpp:prompt_tokens_cached_total")
		if c.TellHit {
			c.Queries = c.Hits + c.Computed
		}
		c.Usage, _ = sum(families, "llamacpp:kv_cache_usage_ratio")
	case TGI:
		c.Requests, _ = sum(families, "tgi_request_success")
	default:
		return Counters{}, fmt.Errorf("live: %s has no metrics of vLLM, SGLang, llama.cpp or TGI", p.URL.JoinPath("metrics"))
	}
	return c, nil
}

// families fetches and parses /metrics.
func (p *Probe) families(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	body, err := p.get(ctx, "metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		return nil, fmt.Errorf("live: the metrics of %s: %w", p.URL, err)
	}
	return families, nil
}

// get fetches a path of at most maxBody bytes.
func (p *Probe) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	at := p.URL.JoinPath(path)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	if p.Key != "" {
		req.Header.Set("Authorization", "Bearer "+p.Key)
	}
	client := p.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("live: reading %s: %w", at, err)
	case resp.StatusCode != http.StatusOK:
		return nil, &StatusError{URL: at.String(), Status: resp.StatusCode}
	case len(body) > maxBody:
		return nil, fmt.Errorf("live: %s sends more than %d bytes", at, maxBody)
	}
	return body, nil
}

// StatusError says that a server refused to tell.
type StatusError struct {
	URL    string
	Status int
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("live: %s answers %d %s", e.URL, e.Status, http.StatusText(e.Status))
	if strings.HasSuffix(e.URL, "/metrics") && (e.Status == http.StatusNotFound || e.Status == http.StatusNotImplemented) {
		text += "; llama.cpp's server needs --metrics, SGLang --enable-metrics"
	}
	return text
}

// engineOf tells servers apart by the names of their metrics.
func engineOf(families map[string]*dto.MetricFamily) Engine {
	for name := range families {
		for prefix, engine := range map[string]Engine{"vllm:": VLLM, "sglang:": SGLang, "llamacpp:": LlamaCpp, "tgi_": TGI} {
			if strings.HasPrefix(name, prefix) {
				return engine
			}
		}
	}
	return ""
}

// sum adds up the first family that is there, over its labels: engines and models.
func sum(families map[string]*dto.MetricFamily, names ...string) (total float64, found bool) {
	for _, name := range names {
		f := families[name]
		if f == nil {
			continue
		}
		for _, m := range f.Metric {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		}
		return total, true
	}
	return 0, false
}

// Settings asks the server how its cache is made.
func (p *Probe) Settings(ctx context.Context, engine Engine) (Settings, error) {
	s := Settings{Engine: engine, Caching: true}
	var err error
	switch engine {
	case VLLM:
		err = p.vllmSettings(ctx, &s)
	case SGLang:
		err = p.sglangSettings(ctx, &s)
	case LlamaCpp:
		err = p.llamaSettings(ctx, &s)
	}
	return s, err
}

// vllmSettings reads the labels of vllm:cache_config_info.
func (p *Probe) vllmSettings(ctx context.Context, s *Settings) error {
	families, err := p.families(ctx)
	if err != nil {
		return err
	}
	f := families["vllm:cache_config_info"]
	if f == nil || len(f.Metric) == 0 {
		return fmt.Errorf("live: the metrics of %s lack vllm:cache_config_info", p.URL)
	}
	for _, label := range f.Metric[0].Label {
		v := label.GetValue()
		n, _ := strconv.Atoi(v) // "None" is 0
		switch label.GetName() {
		case "block_size":
			s.BlockTokens = n
		case "num_gpu_blocks":
			s.Blocks = n
		case "enable_prefix_caching":
			s.Caching = v != "False"
		case "prefix_caching_hash_algo":
			s.HashAlgorithm = v
		case "sliding_window":
			s.SlidingWindow = n
		}
	}
	s.CapacityTokens = s.BlockTokens * max(s.Blocks-1, 0) // one of them never holds anything
	return nil
}

func (p *Probe) sglangSettings(ctx context.Context, s *Settings) error {
	path := "server_info"
	body, err := p.get(ctx, path)
	if old := new(StatusError); errors.As(err, &old) && old.Status == http.StatusNotFound {
		path = "get_server_info" // its name before 2026
		body, err = p.get(ctx, path)
	}
	if err != nil {
		return err
	}
	var info struct {
		PageSize  int    `json:"page_size"`
		Disabled  bool   `json:"disable_radix_cache"`
		Policy    string `json:"radix_eviction_policy"`
		MaxTokens int    `json:"max_total_num_tokens"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return fmt.Errorf("live: %s: %w", p.URL.JoinPath(path), err)
	}
	s.BlockTokens, s.Caching, s.Policy = max(info.PageSize, 1), !info.Disabled, info.Policy
	s.CapacityTokens = info.MaxTokens
	s.Blocks = info.MaxTokens / s.BlockTokens
	return nil
}

func (p *Probe) llamaSettings(ctx context.Context, s *Settings) error {
	body, err := p.get(ctx, "props")
	if err != nil {
		return err
	}
	var info struct {
		Slots    int `json:"total_slots"`
		Defaults struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return fmt.Errorf("live: %s: %w", p.URL.JoinPath("props"), err)
	}
	s.BlockTokens, s.Slots, s.SlotTokens = 1, info.Slots, info.Defaults.Context
	s.CapacityTokens = s.Slots * s.SlotTokens
	return nil
}
