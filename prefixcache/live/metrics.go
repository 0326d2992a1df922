package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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
	maxBody = 16 << 20 // bytes
	askTime = 10 * time.Second
)

// Counters are what an engine counts since it started. What it does not tell is nil,
// or 0 with a flag beside it that is false.
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

	// nil: the engine does not tell.
	Usage       *float64 `json:"usage"` // share of the cache in use, 0 to 1
	Evicted     *float64 `json:"evicted_tokens"`
	Preemptions *float64 `json:"preemptions"`
	Requests    *float64 `json:"requests"` // that ended well
}

// Since gives what was counted between two readings of one server. A server that
// counts anew gives what it counted since it started.
func (c Counters) Since(before Counters) Counters {
	d := c
	if c.Queries < before.Queries || c.Computed < before.Computed ||
		c.Requests != nil && before.Requests != nil && *c.Requests < *before.Requests {
		return d
	}
	d.Queries -= before.Queries
	d.Hits -= before.Hits
	d.Computed -= before.Computed
	d.Evicted = minus(c.Evicted, before.Evicted)
	d.Preemptions = minus(c.Preemptions, before.Preemptions)
	d.Requests = minus(c.Requests, before.Requests)
	return d
}

// minus is the difference of two counts, the first one where the second is not told.
func minus(a, b *float64) *float64 {
	if a == nil || b == nil {
		return a
	}
	d := *a - *b
	return &d
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
	// Client; nil: one that follows no redirects, which would take the key along to
	// other ports of the host.
	Client *http.Client
	URL    *url.URL // of the server, without /v1
	Key    string   // a bearer token; "": none
}

// Read takes the counters of the server's /metrics.
func (p *Probe) Read(ctx context.Context) (Counters, error) {
	families, engine, err := p.families(ctx)
	if err != nil {
		return Counters{}, err
	}
	c := Counters{At: time.Now(), Engine: engine}
	told := func(names ...string) *float64 {
		if n, ok := sum(families, names...); ok {
			return &n
		}
		return nil
	}
	switch engine {
	case VLLM:
		c.Queries, c.TellHit = sum(families, "vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries")
		c.Hits, _ = sum(families, "vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits")
		c.Usage = told("vllm:kv_cache_usage_perc")
		c.Preemptions = told("vllm:num_preemptions_total", "vllm:num_preemptions")
		c.Requests = told("vllm:request_success_total", "vllm:request_success")
	case SGLang:
		c.Queries, c.TellHit = sum(families, "sglang:prompt_tokens_total")
		c.Hits, _ = sum(families, "sglang:cached_tokens_total")
		c.Usage = told("sglang:token_usage")
		c.Evicted = told("sglang:evicted_tokens_total")
		c.Requests = told("sglang:num_requests_total")
	case LlamaCpp:
		c.Computed, c.TellComputed = sum(families, "llamacpp:prompt_tokens_total")
		// Servers of 2026 count what they found, too.
		c.Hits, c.TellHit = sum(families, "llamacpp:prompt_tokens_cached_total")
		if c.TellHit {
			c.Queries = c.Hits + c.Computed
		}
		c.Usage = told("llamacpp:kv_cache_usage_ratio")
	case TGI:
		c.Requests = told("tgi_request_success")
	default:
		return Counters{}, fmt.Errorf("live: %s has no metrics of vLLM, SGLang, llama.cpp or TGI", p.at("metrics"))
	}
	return c, nil
}

// families fetches /metrics and parses those that are read.
func (p *Probe) families(ctx context.Context) (map[string]*dto.MetricFamily, Engine, error) {
	body, err := p.get(ctx, "metrics")
	if err != nil {
		return nil, "", err
	}
	text, engine := pick(body)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, "", fmt.Errorf("live: the metrics of %s: %w", p.URL.Redacted(), err)
	}
	return families, engine, nil
}

// prefixes begin the names of an engine's metrics.
var prefixes = map[string]Engine{"vllm:": VLLM, "sglang:": SGLang, "llamacpp:": LlamaCpp, "tgi_": TGI}

// wanted are the metrics that are read.
var wanted = map[string]bool{
	"vllm:prefix_cache_queries_total": true, "vllm:prefix_cache_queries": true,
	"vllm:prefix_cache_hits_total": true, "vllm:prefix_cache_hits": true,
	"vllm:kv_cache_usage_perc":   true,
	"vllm:num_preemptions_total": true, "vllm:num_preemptions": true,
	"vllm:request_success_total": true, "vllm:request_success": true,
	"vllm:cache_config_info":     true,
	"sglang:prompt_tokens_total": true, "sglang:cached_tokens_total": true, "sglang:token_usage": true,
	"sglang:evicted_tokens_total": true, "sglang:num_requests_total": true,
	"llamacpp:prompt_tokens_total": true, "llamacpp:prompt_tokens_cached_total": true, "llamacpp:kv_cache_usage_ratio": true,
	"tgi_request_success": true,
}

// pick returns the lines of the metrics that are read, and the engine that the
// first line of any engine names. The parser takes 50 times a line's bytes, and
// most of a page are histograms.
func pick(body []byte) (text []byte, engine Engine) {
	for line := range bytes.Lines(body) {
		name := line
		if end := bytes.IndexAny(line, "{ \t\r\n"); end >= 0 {
			name = line[:end]
		}
		if wanted[string(name)] {
			text = append(text, line...)
		}
		if engine != "" {
			continue
		}
		for prefix, e := range prefixes {
			if bytes.HasPrefix(name, []byte(prefix)) {
				engine = e
			}
		}
	}
	return text, engine
}

// at names a path of the server for errors.
func (p *Probe) at(path string) string { return p.URL.JoinPath(path).Redacted() }

var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// get fetches a path of at most maxBody bytes.
func (p *Probe) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL.JoinPath(path).String(), nil)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	if p.Key != "" {
		req.Header.Set("Authorization", "Bearer "+p.Key)
	}
	client := p.Client
	if client == nil {
		client = direct
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("live: reading %s: %w", p.at(path), err)
	case resp.StatusCode != http.StatusOK:
		return nil, &StatusError{URL: p.at(path), Status: resp.StatusCode}
	case len(body) > maxBody:
		return nil, fmt.Errorf("live: %s sends more than %d bytes", p.at(path), maxBody)
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
	if e.Status/100 == 3 {
		text += ", which points elsewhere; give the address of the server itself"
	}
	if strings.HasSuffix(e.URL, "/metrics") && (e.Status == http.StatusNotFound || e.Status == http.StatusNotImplemented) {
		text += "; llama.cpp's server needs --metrics, SGLang --enable-metrics"
	}
	return text
}

// sum adds up the first family that is there, over its labels: engines and models.
// What is negative or not finite tells nothing.
func sum(families map[string]*dto.MetricFamily, names ...string) (total float64, found bool) {
	for _, name := range names {
		f := families[name]
		if f == nil {
			continue
		}
		for _, m := range f.Metric {
			if v := m.GetUntyped().GetValue(); v >= 0 && v <= math.MaxInt64 {
				total, found = total+v, true
			}
		}
		return total, found
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
	if err == nil {
		err = s.check(p.URL.Redacted())
	}
	return s, err
}

// check refuses settings that no server has, and multiplies the others.
func (s *Settings) check(server string) error {
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"a block's tokens", s.BlockTokens, 1 << 24},
		{"blocks", s.Blocks, math.MaxInt32},
		{"slots", s.Slots, 1 << 16},
		{"a slot's tokens", s.SlotTokens, math.MaxInt32},
		{"the cache's tokens", s.CapacityTokens, math.MaxInt},
		{"a window's tokens", s.SlidingWindow, math.MaxInt32},
	} {
		if f.value < 0 || f.value > f.max {
			return fmt.Errorf("live: %s tells %d as the number of %s; it must be from 0 to %d", server, f.value, f.name, f.max)
		}
	}
	n, size := s.Slots, s.SlotTokens
	if s.Engine == VLLM {
		n, size = max(s.Blocks-1, 0), s.BlockTokens // one of them never holds anything
	}
	if s.Engine == SGLang {
		return nil // it tells the product itself
	}
	if size > 0 && n > math.MaxInt/size {
		return fmt.Errorf("live: %s tells %d times %d tokens, which is too much", server, n, size)
	}
	s.CapacityTokens = n * size
	return nil
}

// vllmSettings reads the labels of vllm:cache_config_info.
func (p *Probe) vllmSettings(ctx context.Context, s *Settings) error {
	families, _, err := p.families(ctx)
	if err != nil {
		return err
	}
	f := families["vllm:cache_config_info"]
	if f == nil || len(f.Metric) == 0 {
		return fmt.Errorf("live: the metrics of %s lack vllm:cache_config_info", p.URL.Redacted())
	}
	for _, label := range f.Metric[0].Label {
		v := label.GetValue()
		n, _ := strconv.Atoi(v) // "None" is 0, and what is too large the largest
		switch label.GetName() {
		case "block_size":
			s.BlockTokens = n
		case "num_gpu_blocks":
			s.Blocks = n
		case "enable_prefix_caching":
			s.Caching = !strings.EqualFold(v, "false") && v != "0"
		case "prefix_caching_hash_algo":
			s.HashAlgorithm = v
		case "sliding_window":
			s.SlidingWindow = n
		}
	}
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
		return fmt.Errorf("live: %s: %w", p.at(path), err)
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
		return fmt.Errorf("live: %s: %w", p.at("props"), err)
	}
	s.BlockTokens, s.Slots, s.SlotTokens = 1, info.Slots, info.Defaults.Context
	return nil
}
