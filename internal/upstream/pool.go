package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Config configures a [Pool]. Only Endpoints must be set.
type Config struct {
	// Endpoints are the servers of the model: http or https, a host, and
	// maybe a base path that is put before each request's own.
	Endpoints []*url.URL
	Health    Health

	// ConnectTimeout limits each of dialing, names included, and the TLS
	// handshake. 0: 5 seconds.
	ConnectTimeout time.Duration
	// FirstByteTimeout limits the wait for the response's headers once the
	// request is written, and before that for the endpoint to take it. Servers
	// send headers only when a whole answer is ready, where it is not
	// streamed. 0: 10 minutes; negative: no limit.
	FirstByteTimeout time.Duration
	// IdleTimeout limits the wait for the next bytes of a response's body.
	// Time in which nobody reads does not count. 0: 5 minutes; negative: no
	// limit.
	IdleTimeout time.Duration

	// MaxConnections limits the connections to a host; requests over it wait
	// for one to become free, as long as their callers let them. 0: no limit.
	MaxConnections int
	// Retries is how many more times a request may be sent, each time to
	// another endpoint; to the only endpoint once. 0: 2; negative: none.
	Retries int

	TLS *tls.Config  // for https; nil: the system's certificate authorities
	Log *slog.Logger // takes changes of endpoints' states; nil: slog.Default()

	dial func(ctx context.Context, network, addr string) (net.Conn, error) // instead of the network's, for tests
}

// Connections that a server closes while a request is on its way lose the
// request, so they are given up before: uvicorn (vLLM) and llama.cpp's server
// both close idle connections after 5 s.
const idleConnection = 4 * time.Second

const (
	maxIdleConnections = 256       // per host, where MaxConnections sets no limit
	maxResponseHeader  = 256 << 10 // bytes
)

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&c.ConnectTimeout, 5 * time.Second},
		{&c.FirstByteTimeout, 10 * time.Minute},
		{&c.IdleTimeout, 5 * time.Minute},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if c.Retries == 0 {
		c.Retries = 2
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Health = c.Health.withDefaults()
	return c
}

// Pool sends requests to the endpoints of one model. It is an
// [http.RoundTripper], safe for concurrent use.
type Pool struct {
	cfg       Config
	transport *http.Transport
	prober    *http.Transport // health checks never wait for requests
	affinity  *affinity       // nil: one endpoint, nothing to choose
	eject     ejection
	stop      context.CancelFunc
	checks    sync.WaitGroup

	mu        sync.Mutex // guards closed, next, and the state of endpoints
	closed    bool
	next      int // where the search for the least load starts, so that ties take turns
	endpoints []*endpoint
}

// New checks the configuration and starts the health checks. Endpoints count
// as healthy until their first check is over.
func New(cfg Config) (*Pool, error) {
	p := &Pool{cfg: cfg.withDefaults(), eject: defaultEjection}
	if len(cfg.Endpoints) == 0 {
		return nil, errors.New("upstream: no endpoint: give at least one URL")
	}
	if cfg.ConnectTimeout < 0 {
		return nil, errors.New("upstream: the connect timeout is negative: give a positive one, or 0 for 5 s")
	}
	if !strings.HasPrefix(p.cfg.Health.Path, "/") {
		return nil, fmt.Errorf("upstream: health path %q: must start with /", clip(p.cfg.Health.Path))
	}
	seen := map[string]bool{}
	for i, u := range cfg.Endpoints {
		e, err := newEndpoint(u)
		if err != nil {
			return nil, fmt.Errorf("upstream: endpoint %d: %w", i+1, err)
		}
		if seen[e.name] {
			return nil, fmt.Errorf("upstream: endpoint %d: %s is given twice", i+1, e.name)
		}
		seen[e.name] = true
		e.index = i
		p.endpoints = append(p.endpoints, e)
	}
	if len(p.endpoints) > 1 {
		p.affinity = newAffinity(affinityEntries)
	}
	p.transport = newTransport(p.cfg)
	p.prober = newTransport(p.cfg)
	p.prober.DisableKeepAlives = true
	p.prober.MaxConnsPerHost = 0
	p.startChecks()
	return p, nil
}

func newTransport(c Config) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: c.ConnectTimeout}).DialContext,
		TLSHandshakeTimeout:    c.ConnectTimeout,
		DisableCompression:     true,
		MaxConnsPerHost:        max(0, c.MaxConnections),
		MaxIdleConnsPerHost:    maxIdleConnections,
		IdleConnTimeout:        idleConnection,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxResponseHeader,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
	if c.dial != nil {
		t.DialContext = c.dial
	}
	if c.MaxConnections > 0 {
		t.MaxIdleConnsPerHost = c.MaxConnections
	}
	if c.TLS != nil {
		t.TLSClientConfig = c.TLS.Clone()
	}
	return t
}

// Close ends the health checks and the idle connections. Running requests go
// on, and take their connections with them at their end; new ones fail with
// [ErrClosed]. It always returns nil.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.checks.Wait()
	p.transport.CloseIdleConnections()
	p.prober.CloseIdleConnections()
	return nil
}

// EndpointStatus is the state of an endpoint.
type EndpointStatus struct {
	Endpoint string // scheme, host and base path
	Healthy  bool   // by the health checks; true before the first
	// EjectedUntil is when the endpoint is used again after repeated failures;
	// zero: it is in use.
	EjectedUntil time.Time
	InFlight     int    // requests from the choice of the endpoint to the end of the body
	Requests     uint64 // tries so far
	Failures     uint64 // tries that failed at the endpoint, 502 and 503 included
	Checked      time.Time
	LastError    string // of the last failed check or request; stays after a recovery
}

// Usable reports whether the endpoint takes requests for other reasons than
// that there is no better one.
func (s EndpointStatus) Usable() bool { return s.Healthy && s.EjectedUntil.IsZero() }

// Status returns the state of every endpoint, in the order of the
// configuration.
func (p *Pool) Status() []EndpointStatus {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]EndpointStatus, len(p.endpoints))
	for i, e := range p.endpoints {
		all[i] = EndpointStatus{
			Endpoint: e.name, Healthy: e.healthy, InFlight: e.inFlight,
			Requests: e.requests, Failures: e.failures, Checked: e.checked, LastError: e.lastError,
		}
		if now.Before(e.ejectedUntil) {
			all[i].EjectedUntil = e.ejectedUntil
		}
	}
	return all
}
