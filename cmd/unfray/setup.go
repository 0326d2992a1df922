package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/unfray/unfray/engine"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/config"
	"github.com/unfray/unfray/internal/upstream"
)

// setup collects what a gateway serves.
type setup struct {
	cfg     gateway.Config
	pools   *poolCollector
	lines   []string // what to tell the operator
	slots   int      // of the last server that tells how many requests it works on at once
	closers []io.Closer
	tell    func(string)
	// prediction says whether it is predicted of the next model what its engine has
	// cached. Unset: it is where prompts are healed, so that all are read.
	prediction config.Toggle

	admissions map[*upstream.Pool]*admission
}

func newSetup(log *slog.Logger) *setup {
	s := &setup{pools: &poolCollector{}}
	s.cfg.Log = log
	s.cfg.Metrics = prometheus.NewRegistry()
	s.cfg.Metrics.MustRegister(s.pools, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// Close frees models and connections, the last ones first.
func (s *setup) Close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// addEngine loads a model into this process. m says how it is served.
func (s *setup) addEngine(ctx context.Context, flags *modelFlags, m gateway.Model) error {
	model, e, err := flags.open(ctx)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, e)
	m.Model = model
	if s.predicts(&m) {
		stats := e.Stats()
		m.Cache = engine.Simulate(stats.Sequences, stats.Cells)
	}
	s.cfg.Models = append(s.cfg.Models, m)
	s.lines = append(s.lines, describeAs(m.Name, model))
	return nil
}

// predicts reports whether it is predicted what the model's engine has cached.
func (s *setup) predicts(m *gateway.Model) bool { return s.prediction.Or(m.Heal != heal.Off) }

// addPool makes the connections to a server.
func (s *setup) addPool(name string, spec *upstreamSpec) (*upstream.Pool, error) {
	spec.pool.Log = s.cfg.Log
	a := &admission{alone: len(spec.pool.Endpoints) == 1}
	spec.pool.Health.Admit, spec.pool.Health.Lost = a.admit, a.lost
	pool, err := upstream.New(spec.pool)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, pool)
	s.pools.add(name, pool)
	if s.admissions == nil {
		s.admissions = map[*upstream.Pool]*admission{}
	}
	s.admissions[pool] = a
	return pool, nil
}

// addUpstream adds a model that a server runs, and the server for what is about
// no model if it is the default.
func (s *setup) addUpstream(ctx context.Context, spec *upstreamSpec, m gateway.Model, isDefault bool) error {
	pool, err := s.addPool(spec.kind, spec)
	if err != nil {
		return err
	}
	up := spec.passed(pool)
	if isDefault {
		s.cfg.Default = up
		s.cfg.Recovery = spec.recovery(m.Recovery)
	}
	return s.addServed(ctx, spec, pool, up, m)
}

// addServed adds a model of a server whose connections are made.
func (s *setup) addServed(ctx context.Context, spec *upstreamSpec, pool *upstream.Pool, up *gateway.Upstream, m gateway.Model) error {
	o, err := spec.open(ctx, pool)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, o)
	if o.inspection != nil {
		s.slots = o.inspection.Slots
	}
	at := spec.pool.Endpoints[0].Redacted()
	if n := len(spec.pool.Endpoints); n > 1 {
		at = fmt.Sprintf("%s and %d more", at, n-1)
	}
	if o.served.Name == "" { // of a kind that is passed on: nothing is known of models
		s.lines = append(s.lines, fmt.Sprintf("%s at %s: %s", spec.kind, at, o.served.NoHeal.Text))
		return nil
	}
	served := o.served
	served.Upstream, served.UpstreamName = up, o.served.Name
	served.AnyName = up == s.cfg.Default && served.Native && o.inspection != nil && len(o.inspection.Models) == 1
	served.Heal, served.AllowedHeal, served.MaxTokens, served.Aliases, served.Timeout = m.Heal, m.AllowedHeal, m.MaxTokens, m.Aliases, m.Timeout
	served.Recovery = spec.recovery(m.Recovery)
	if m.Name != "" {
		served.Name = m.Name
	}
	if served.Model != nil && s.predicts(&served) {
		if served.Cache, err = spec.cache(ctx); err != nil {
			s.cfg.Log.Info("what is cached is not predicted", "model", served.Name, "reason", err)
		}
		served.AskChats = s.prediction == config.On
	}
	s.cfg.Models = append(s.cfg.Models, served)
	if served.Model != nil {
		s.admissions[pool].add(admitted{served.Name, spec, served.Model.Tokenizer()})
	}
	if served.NoHeal != nil {
		s.lines = append(s.lines, fmt.Sprintf("%s, run by %s at %s, is not healed: %s", served.Name, spec.kind, at, served.NoHeal.Text))
		return nil
	}
	s.lines = append(s.lines, fmt.Sprintf("%s, run by %s at %s; its tokenizer was verified", describeAs(m.Name, served.Model), spec.kind, at))
	return nil
}

// runConfig serves what a configuration file says.
func (s *serveFlags) runConfig(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	cfg, err := config.Load(s.config)
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "unfray: warning:", w)
	}
	listeners, err := openListeners(ctx, cfg.Listeners, s.listen)
	defer func() {
		for _, ln := range listeners {
			ln.Close()
		}
	}()
	if err != nil {
		return err
	}
	setup := newSetup(newConfigLog(cmd.ErrOrStderr(), &cfg.Log))
	defer func() { err = errors.Join(err, setup.Close()) }()
	setup.tell = teller(cmd)
	if err := setup.addConfig(ctx, cfg); err != nil {
		return err
	}
	return setup.serve(ctx, cmd.ErrOrStderr(), listeners...)
}

func newConfigLog(w io.Writer, l *config.Log) *slog.Logger {
	o := &slog.HandlerOptions{Level: l.Level}
	if l.JSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// addConfig adds all that a configuration file names.
func (s *setup) addConfig(ctx context.Context, cfg *config.Config) error {
	s.cfg.MaxBodyBytes, s.cfg.MaxChoices = cfg.Limits.MaxBodyBytes, cfg.Limits.MaxChoices
	s.cfg.Timeout, s.cfg.ReadTimeout, s.cfg.WriteTimeout, s.cfg.DrainTimeout = cfg.Limits.Request, cfg.Limits.Read, cfg.Limits.Write, cfg.Limits.Drain
	s.cfg.LogPrompts = cfg.Log.Prompts
	s.cfg.NoMetrics = !cfg.Metrics.Or(true)
	for _, k := range cfg.Keys {
		s.cfg.Keys = append(s.cfg.Keys, gateway.Key{Name: k.Name, SHA256: k.SHA256, Models: k.Models})
	}
	type connected struct {
		pool *upstream.Pool
		up   *gateway.Upstream
	}
	open := map[*config.Upstream]connected{}
	for _, u := range cfg.Upstreams {
		spec := specOf(u)
		pool, err := s.addPool(u.Name, spec)
		if err != nil {
			return fmt.Errorf("upstream %s: %w", u.Name, err)
		}
		open[u] = connected{pool, spec.passed(pool)}
	}
	if cfg.Default != nil {
		s.cfg.Default = open[cfg.Default].up
		s.cfg.Recovery = specOf(cfg.Default).recovery(recoveryOf(&cfg.Recovery))
	}
	for i := range cfg.Models {
		c := &cfg.Models[i]
		m := gateway.Model{Name: c.Name, Aliases: c.Aliases, Heal: c.Heal, AllowedHeal: c.AllowHeal, MaxTokens: c.MaxTokens, Recovery: recoveryOf(&c.Recovery)}
		s.prediction = c.CachePrediction
		var err error
		if c.Upstream == nil {
			flags := &modelFlags{path: c.File, device: c.Device, threads: c.Threads, context: c.Context, parallel: c.Parallel, queue: c.Queue}
			err = s.addEngine(ctx, flags, m)
		} else {
			spec := specOf(c.Upstream)
			spec.model, spec.tokenizer = c.UpstreamModel, c.Tokenizer
			if spec.model == "" {
				spec.model = c.Name
			}
			spec.wait, spec.tell = waitToServe, s.tell
			m.Timeout = c.Upstream.Timeouts.Total
			err = s.addServed(ctx, spec, open[c.Upstream].pool, open[c.Upstream].up, m)
		}
		if err != nil {
			return fmt.Errorf("model %s: %w", c.Name, err)
		}
	}
	return nil
}

// recoveryOf is what a configuration file says of recovery.
func recoveryOf(c *config.Recovery) gateway.Recovery {
	r := gateway.Recovery{
		Mode: gateway.RecoverMode(c.Mode), Strategies: c.Strategies,
		Attempts: c.Attempts, MaxTokens: c.MaxTokens, ReservePercent: c.ReservePercent, Time: c.Time, MaxBytes: int(c.Bytes),
		ToolCalls: gateway.ToolCallPolicy(c.ToolCalls), OnFailure: gateway.FailurePolicy(c.OnFailure), Fallback: c.Fallback,
	}
	for _, m := range c.Allow {
		r.Allowed = append(r.Allowed, gateway.RecoverMode(m))
	}
	if c.Continue != config.ContinueAuto {
		r.Continue = gateway.ContinueWay(c.Continue)
	}
	return r
}

func specOf(u *config.Upstream) *upstreamSpec {
	return &upstreamSpec{kind: string(u.Kind), key: u.APIKey.Reveal(), pool: upstream.Config{
		Endpoints:        u.URLs,
		Health:           upstream.Health{Path: u.Health.Path, Interval: u.Health.Interval, Timeout: u.Health.Timeout, Failures: u.Health.Failures, Successes: u.Health.Successes},
		ConnectTimeout:   u.Timeouts.Connect,
		FirstByteTimeout: u.Timeouts.FirstToken,
		IdleTimeout:      u.Timeouts.Idle,
		MaxConnections:   u.MaxConnections,
		Retries:          u.Retries,
	}}
}

// tlsListener marks a listener whose connections are encrypted.
type tlsListener struct{ net.Listener }

// openListeners opens the listeners of a file, or the one that is the default.
// The caller closes them, also with an error.
func openListeners(ctx context.Context, list []config.Listener, otherwise string) (out []net.Listener, err error) {
	if len(list) == 0 {
		list = []config.Listener{{Address: otherwise}}
	}
	for _, l := range list {
		ln, err := listen(ctx, l.Address)
		if err != nil {
			return out, err
		}
		out = append(out, ln)
		if l.TLSCert == "" {
			continue
		}
		pair, err := tls.LoadX509KeyPair(l.TLSCert, l.TLSKey)
		if err != nil {
			return out, fmt.Errorf("%s: %w", l.TLSCert, err)
		}
		out[len(out)-1] = &tlsListener{tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})}
	}
	return out, nil
}

// poolCollector tells metrics of the servers' endpoints.
type poolCollector struct {
	names []string
	pools []*upstream.Pool
}

func (c *poolCollector) add(name string, p *upstream.Pool) {
	c.names, c.pools = append(c.names, name), append(c.pools, p)
}

var (
	endpointUsable = prometheus.NewDesc("unfray_upstream_endpoint_usable", "1 for endpoints that are healthy and not ejected.", []string{"upstream", "endpoint"}, nil)
	endpointActive = prometheus.NewDesc("unfray_upstream_endpoint_active_requests", "Requests at the endpoint.", []string{"upstream", "endpoint"}, nil)
)

// Describe implements [prometheus.Collector].
func (c *poolCollector) Describe(out chan<- *prometheus.Desc) {
	out <- endpointUsable
	out <- endpointActive
}

// Collect implements [prometheus.Collector].
func (c *poolCollector) Collect(out chan<- prometheus.Metric) {
	for i, p := range c.pools {
		for _, e := range p.Status() {
			usable := 0.0
			if e.Usable() {
				usable = 1
			}
			out <- prometheus.MustNewConstMetric(endpointUsable, prometheus.GaugeValue, usable, c.names[i], e.Endpoint)
			out <- prometheus.MustNewConstMetric(endpointActive, prometheus.GaugeValue, float64(e.InFlight), c.names[i], e.Endpoint)
		}
	}
}

func discardLog() *slog.Logger { return slog.New(slog.DiscardHandler) }
