package gateway

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/internal/upstream"
	"github.com/unfray/unfray/recovery"
)

// metrics count what the gateway does. Labels have few values, none of which a
// client can choose.
type metrics struct {
	handler http.Handler

	requests *prometheus.CounterVec   // route, code
	duration *prometheus.HistogramVec // route
	inFlight prometheus.Gauge

	healing  *prometheus.CounterVec // model, mode, result
	removed  *prometheus.CounterVec // model
	replayed *prometheus.CounterVec // model
	asked    *prometheus.CounterVec // model
	tokens   *prometheus.CounterVec // model, kind
	errors   *prometheus.CounterVec // model, kind
	disabled *prometheus.GaugeVec   // model, reason

	outcomes   *prometheus.CounterVec // model, mode, outcome
	strategies *prometheus.CounterVec // model, strategy, verdict
	loopBytes  *prometheus.CounterVec // model
	stopped    *prometheus.CounterVec // model
	continued  *prometheus.CounterVec // model, result
	continuing *prometheus.CounterVec // model
	reserves   *prometheus.CounterVec // model, result
	calls      *prometheus.CounterVec // model, status
}

// The results of a request for a model, in metrics.
const (
	resultHealed   = "healed"    // tokens were rolled back and produced again
	resultClean    = "clean"     // there was nothing to heal
	resultPassedOn = "passed_on" // the upstream got the request as it came
)

func newMetrics(r *prometheus.Registry) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	m := &metrics{
		handler:  promhttp.HandlerFor(r, promhttp.HandlerOpts{}),
		requests: counter("unfray_http_requests_total", "Requests answered, by route and status code.", "route", "code"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "unfray_http_request_duration_seconds", Help: "Time from the request's header to the end of its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
		}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "unfray_http_requests_in_flight", Help: "Requests that are being answered."}),
		healing:  counter("unfray_healing_total", "Continuations by what was done to the prompt's end: healed, clean (nothing to heal) or passed_on (to the upstream, as it came).", "model", "mode", "result"),
		removed:  counter("unfray_healing_removed_tokens_total", "Tokens rolled back from the ends of prompts.", "model"),
		replayed: counter("unfray_healing_replayed_tokens_total", "Tokens generated to produce the prompts' own bytes again.", "model"),
		asked:    counter("unfray_upstream_requests_total", "Requests sent to the servers that run models for continuations that the gateway wrote.", "model"),
		tokens:   counter("unfray_tokens_total", "Tokens of prompts, those of them found in a cache, and of continuations.", "model", "kind"),
		errors:   counter("unfray_upstream_errors_total", "Failures of servers that run models: status (an error of their own), protocol (an answer that cannot be read), connection (none, or one that broke off).", "model", "kind"),
		disabled: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "unfray_healing_disabled", Help: "1 for models whose prompts are not healed, with the reason, such as tokenizer_mismatch.",
		}, []string{"model", "reason"}),
	}
	m.outcomes = counter("unfray_recovery_total", "Answers looked at, by what became of them: valid, repaired, truncated, ambiguous or failed.", "model", "mode", "outcome")
	m.strategies = counter("unfray_recovery_strategies_total", "Strategies that were tried on answers, by what they came to.", "model", "strategy", "verdict")
	m.loopBytes = counter("unfray_recovery_loop_bytes_total", "Bytes of repetition cut off the ends of answers.", "model")
	m.stopped = counter("unfray_recovery_loops_stopped_total", "Requests to servers that were ended because the answer repeated itself.", "model")
	m.continued = counter("unfray_recovery_continuations_total", "Times that a model was asked to go on with an answer: joined, or why not.", "model", "result")
	m.continuing = counter("unfray_recovery_continuation_tokens_total", "Tokens of continuations.", "model")
	m.reserves = counter("unfray_recovery_reserves_total", "Answers for which tokens were kept back: used or unused.", "model", "result")
	m.calls = counter("unfray_recovery_tool_calls_total", "Tool calls looked at: valid, repaired, truncated, ambiguous or malformed.", "model", "status")
	r.MustRegister(m.duration, m.inFlight, m.disabled)
	return m
}

// observe counts a request that has been answered.
func (m *metrics) observe(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(route).Observe(took.Seconds())
}

// account counts a continuation.
func (m *metrics) account(model string, r *unfray.Result) {
	h := &r.Healing
	result := resultClean
	if h.BytesPending > 0 {
		result = resultHealed
	}
	m.healing.WithLabelValues(model, string(h.Mode), result).Inc()
	m.removed.WithLabelValues(model).Add(float64(h.TokensRemoved))
	m.replayed.WithLabelValues(model).Add(float64(h.TokensReplayed))
	m.asked.WithLabelValues(model).Add(float64(h.UpstreamRequests))
	m.tokens.WithLabelValues(model, "prompt").Add(float64(r.Usage.PromptTokens))
	m.tokens.WithLabelValues(model, "cached").Add(float64(r.Usage.CachedTokens))
	m.tokens.WithLabelValues(model, "completion").Add(float64(r.Usage.CompletionTokens))
}

// passedOn counts a request that went to a model's upstream as it came.
func (m *metrics) passedOn(model string) {
	m.healing.WithLabelValues(model, "off", resultPassedOn).Inc()
}

// recovered counts what became of an answer.
func (m *metrics) recovered(model string, rec *recovering, p *choiceReport) {
	res := p.result
	m.outcomes.WithLabelValues(model, string(rec.Mode), res.Outcome.String()).Inc()
	for _, s := range res.Trace {
		m.strategies.WithLabelValues(model, s.Strategy, string(s.Verdict)).Inc()
	}
	for _, e := range res.Edits {
		if e.Kind == recovery.RepeatedTail {
			m.loopBytes.WithLabelValues(model).Add(float64(len(e.Before)))
		}
	}
	if c := res.Continuation; c != nil {
		for _, t := range c.Attempts {
			result := "joined"
			if t.Reason != "" {
				result = string(t.Reason)
			}
			m.continued.WithLabelValues(model, result).Inc()
		}
	}
	m.continuing.WithLabelValues(model).Add(float64(p.tokens))
	if rec.reserves() {
		result := "unused"
		if res.Continuation != nil {
			result = "used"
		}
		m.reserves.WithLabelValues(model, result).Inc()
	}
	for _, c := range p.calls {
		m.calls.WithLabelValues(model, c.status).Inc()
	}
}

// failed counts a server's failure; other errors are not its.
func (m *metrics) failed(model string, err error) {
	var trouble *upstream.Error
	switch {
	case errors.As(err, &trouble) && !trouble.Caller():
		m.errors.WithLabelValues(model, "connection").Inc()
	case errors.As(err, new(*backend.UpstreamError)):
		m.errors.WithLabelValues(model, "status").Inc()
	case errors.As(err, new(*backend.ProtocolError)):
		m.errors.WithLabelValues(model, "protocol").Inc()
	}
}

func (g *Gateway) serveMetrics(x *exchange) error {
	g.limitWrite(x)
	g.metrics.handler.ServeHTTP(x, x.r)
	return nil
}
