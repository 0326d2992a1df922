// Package gateway serves models over HTTP in OpenAI's dialect, each prompt
// healed by package unfray before it is continued.
//
//   - The text of an answer continues exactly the prompt that was sent. What
//     healing did is reported beside it, in the field "unfray".
//   - A streamed answer is the whole answer in parts: same text, same tokens.
//   - An answer that is no valid UTF-8, as when the token limit cuts a
//     character, shows U+FFFD and carries the exact bytes beside it.
//   - Bad requests get an OpenAI error object that names the field. Nothing a
//     client sends ends the process.
//   - Everything is bounded: body, choices, time, writes to a client that does
//     not read. A client that goes away ends its generation.
//   - Prompts and answers are never logged unless the operator asks for it.
package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/chattemplate"
	"github.com/unfray/unfray/prefixcache"
)

// Config configures a [Gateway]. The zero value of every field but Models is
// a sensible choice.
type Config struct {
	Models []Model
	// Default is where requests go that the gateway does not serve itself; nil:
	// nowhere.
	Default *Upstream
	// Recovery is that of answers to requests that only Default knows the model of.
	Recovery Recovery

	// Keys are those that clients need, for all but /healthz and /readyz; nil:
	// none is asked for. With keys, credentials of clients stay here.
	Keys []Key

	// Log takes one record for each request; nil: slog.Default().
	Log *slog.Logger
	// LogPrompts adds request bodies to the log.
	LogPrompts bool
	// Metrics is where /metrics has what it shows from, and where the gateway puts
	// its own; nil: one for the gateway alone.
	Metrics *prometheus.Registry
	// NoMetrics leaves out /metrics.
	NoMetrics bool

	MaxBodyBytes int64 // of a request; 0: 8 MiB
	MaxChoices   int   // continuations of one request, prompts × n; 0: 128

	// Timeout limits a whole request, waiting in the queue included.
	Timeout time.Duration // 0: 10 minutes; negative: no limit
	// ReadTimeout limits reading a request, header and body.
	ReadTimeout time.Duration // 0: 30 seconds
	// WriteTimeout limits writing one event or answer to a client.
	WriteTimeout time.Duration // 0: 30 seconds
	// DrainTimeout is how long running requests may go on once Serve is told
	// to end.
	DrainTimeout time.Duration // 0: 30 seconds; negative: they end at once
}

// Model is a model to serve.
type Model struct {
	// Name is what clients call it; "": the name that the model reports.
	Name    string
	Aliases []string // other names for it
	Model   *unfray.Model
	// MaxTokens is the most that one continuation may have; 0: no limit.
	MaxTokens int
	// Timeout limits requests for this model further; 0 or less: Config.Timeout
	// alone.
	Timeout time.Duration
	// Heal is what is done where a request does not say; "": heal.Auto.
	Heal heal.Mode
	// AllowedHeal is what a request may ask for; nil: every mode.
	AllowedHeal []heal.Mode

	// Recovery says what is done to answers.
	Recovery Recovery

	// Upstream is the server that runs the model, nil for one in this process.
	// What is not healed goes there as it came, and so does everything if Model
	// is nil; Name must then be given.
	Upstream *Upstream
	// UpstreamName is what the upstream calls the model; "": Name too.
	UpstreamName string
	// AnyName says that the upstream runs this model whatever a request calls it.
	AnyName bool
	// Native says that the upstream speaks llama.cpp's own dialect too. There a
	// last message of the assistant is continued unless a request says otherwise.
	Native bool
	// Chat tokenizes conversations; nil: the model's template does.
	Chat backend.ChatTokenizer
	// Cache simulates the prefix cache of the engine that runs the model: the log
	// tells of requests whose tokens are known how many it expects to be cached.
	// nil: nothing is expected. The gateway alone uses it.
	Cache prefixcache.Cache
	// AskChats says that Chat may be asked for the tokens of conversations that are
	// passed on, for the sake of Cache alone: a request to the server beside each.
	AskChats bool
	// NoHeal, if not nil, says why nothing is healed. Answers carry its code.
	// [Gateway.SetNoHeal] changes it.
	NoHeal *heal.Note
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = 8 << 20
	}
	if c.MaxChoices == 0 {
		c.MaxChoices = 128
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Minute
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = 30 * time.Second
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = 30 * time.Second
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 30 * time.Second
	}
	return c
}

// Gateway is an [http.Handler] that serves models.
type Gateway struct {
	cfg     Config
	models  []*model
	routes  map[string]route
	metrics *metrics
	// plain, off and allNative are what isPlain says.
	plain, off, allNative bool

	mu       sync.Mutex
	draining bool
	active   int           // requests that generate
	idle     chan struct{} // closed when draining and active is 0
}

// model is a model with what the gateway knows of it.
type model struct {
	Model
	template *chattemplate.Chat
	// templateErr says why there is no template to chat with.
	templateErr error

	noHeal atomic.Pointer[heal.Note] // that of NoHeal, as it is now
	watch  *cacheWatch               // of Cache; nil: there is none
}

// setNoHeal changes why nothing is healed, nil if all is well.
func (m *model) setNoHeal(to *metrics, why *heal.Note) {
	if old := m.noHeal.Swap(why); old != nil {
		to.disabled.DeleteLabelValues(m.Name, old.Code)
	}
	if why != nil {
		to.disabled.WithLabelValues(m.Name, why.Code).Set(1)
	}
}

// SetNoHeal stops the healing of a model's prompts from now on, as when its server
// turns out to run another one, or with nil lets it go on. It may be called while
// requests are served. A model that has none to heal with stays as it is.
func (g *Gateway) SetNoHeal(name string, why *heal.Note) {
	if m := g.lookup(name); m != nil && m.Model.Model != nil {
		m.setNoHeal(g.metrics, why)
	}
}

// New checks the configuration and prepares the models' chat templates. A
// template that cannot be used is logged; the model then serves completions.
func New(cfg Config) (*Gateway, error) {
	if len(cfg.Models) == 0 && cfg.Default == nil {
		return nil, errors.New("gateway: no model to serve")
	}
	if err := checkKeys(cfg.Keys); err != nil {
		return nil, err
	}
	if cfg.Default != nil && cfg.Default.Transport == nil {
		return nil, errors.New("gateway: the default upstream has no transport")
	}
	g := &Gateway{cfg: cfg.withDefaults(), idle: make(chan struct{})}
	g.metrics = newMetrics(g.cfg.Metrics)
	if err := cfg.Recovery.check(); err != nil {
		return nil, fmt.Errorf("gateway: the default upstream: %w", err)
	}
	for i, m := range cfg.Models {
		switch {
		case m.Model == nil && (m.Upstream == nil || m.Name == ""):
			return nil, fmt.Errorf("gateway: model %d (%q) has no model, or no name", i, m.Name)
		case m.Name == "":
			m.Name = m.Model.Info().Name
		}
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			if g.lookup(name) != nil {
				return nil, fmt.Errorf("gateway: two models are named %q", name)
			}
		}
		for _, mode := range append(slices.Clone(m.AllowedHeal), m.Heal) {
			if _, err := heal.ParseMode(string(mode)); err != nil {
				return nil, fmt.Errorf("gateway: model %q: %w", m.Name, err)
			}
		}
		if err := m.Recovery.check(); err != nil {
			return nil, fmt.Errorf("gateway: model %q: %w", m.Name, err)
		}
		g.models = append(g.models, g.newModel(m))
	}
	for _, m := range g.models {
		if to := m.Recovery.Fallback; to != "" && g.lookup(to) == nil {
			return nil, fmt.Errorf("gateway: model %q falls back to %q, which is not served", m.Name, to)
		}
	}
	g.routes = g.table()
	g.plain, g.off, g.allNative = g.isPlain()
	if g.cfg.NoMetrics {
		delete(g.routes, "/metrics")
	}
	return g, nil
}

func (g *Gateway) newModel(m Model) *model {
	served := &model{Model: m}
	served.setNoHeal(g.metrics, m.NoHeal)
	if m.Cache != nil && m.Model != nil {
		served.watch = newCacheWatch(m.Cache, m.Model.Tokenizer().Vocab())
	}
	if m.Model == nil || m.Chat != nil {
		return served
	}
	served.template, served.templateErr = chattemplate.New(m.Model.Info().ChatTemplate, m.Model.Tokenizer())
	if served.templateErr != nil && m.Upstream == nil {
		g.cfg.Log.Warn("no chat with this model", "model", m.Name, "reason", served.templateErr)
	}
	return served
}

// lookup returns the model of that name, or nil.
func (g *Gateway) lookup(name string) *model {
	for _, m := range g.models {
		if m.Name == name || slices.Contains(m.Aliases, name) {
			return m
		}
	}
	return nil
}

// choose returns the model a request names. With only one model a request may
// leave the name out.
func (g *Gateway) choose(name string) (*model, error) {
	if m := g.lookup(name); m != nil {
		return m, nil
	}
	if name == "" {
		if len(g.models) == 1 {
			return g.models[0], nil
		}
		return nil, badRequest("model", "model is missing: name one of those that /v1/models lists")
	}
	if len(g.models) == 1 && g.models[0].AnyName {
		return g.models[0], nil
	}
	return nil, noModel(name)
}

var _ http.Handler = (*Gateway)(nil)
