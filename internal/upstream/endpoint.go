package upstream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"
)

// endpoint is a server. The fields after index are guarded by Pool.mu.
type endpoint struct {
	name  string   // scheme, host and base path: safe to show
	url   *url.URL // scheme, host and base path
	index int

	inFlight int
	requests uint64
	failures uint64

	healthy bool
	checked time.Time
	streak  int // checks in a row that spoke against healthy

	failed       int // tries in a row that failed
	ejections    int // in a row: each is longer than the one before
	ejectedUntil time.Time

	lastError string
}

func newEndpoint(u *url.URL) (*endpoint, error) {
	if u == nil {
		return nil, errors.New("no URL")
	}
	// Not u.String(): the URL may hold credentials.
	name := u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/")
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q: must be http or https", u.Scheme)
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("no host: give a URL such as http://127.0.0.1:8000")
	case u.User != nil:
		return nil, fmt.Errorf("%s: holds a user name or a password: give the key in the model's configuration instead", name)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s: holds a query or a fragment: only a base path is put before requests' paths", name)
	case climbs(u.Path):
		return nil, fmt.Errorf("%s: the path holds . or ..: give it without them", name)
	}
	base := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return &endpoint{name: name, url: base, healthy: true}, nil
}

// copyURL returns scheme, host and base path.
func (e *endpoint) copyURL() *url.URL {
	u := *e.url
	return &u
}

// climbs reports whether a decoded path holds a segment "." or "..", also one
// behind an encoded slash or a backslash, which some servers take for a slash.
func climbs(path string) bool {
	for seg := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if seg == "." || seg == ".." {
			return true
		}
	}
	return false
}

// resolve returns where a request for u goes: the endpoint's scheme and host,
// its base path before u's path, u's query.
func (e *endpoint) resolve(u *url.URL) (*url.URL, error) {
	to := &url.URL{
		Scheme: e.url.Scheme, Host: e.url.Host,
		Path: u.Path, RawPath: u.RawPath,
		RawQuery: u.RawQuery, ForceQuery: u.ForceQuery,
	}
	base := strings.TrimSuffix(e.url.Path, "/")
	if base != "" && climbs(u.Path) {
		return nil, errors.New("the path holds . or .., which could leave the endpoint's base path")
	}
	slash := ""
	if !strings.HasPrefix(u.Path, "/") {
		slash = "/"
	}
	if base == "" && slash == "" {
		return to, nil
	}
	if u.RawPath != "" || e.url.RawPath != "" {
		to.RawPath = strings.TrimSuffix(e.url.EscapedPath(), "/") + slash + u.EscapedPath()
	}
	to.Path = base + slash + u.Path
	return to, nil
}

// usable reports whether the endpoint may be chosen.
func (e *endpoint) usable(now time.Time) bool {
	return e.healthy && !now.Before(e.ejectedUntil)
}

// ejection says when an endpoint is left out and for how long.
type ejection struct {
	after int           // failures in a row
	base  time.Duration // of the first ejection; each further one is twice as long
	most  time.Duration // also how long an endpoint must stay in to begin anew
}

var defaultEjection = ejection{after: 5, base: 5 * time.Second, most: 2 * time.Minute}

// duration returns the length of the nth ejection in a row, from 0: between
// once and one and a quarter times the nominal one, so that endpoints that
// fell together do not return together.
func (x ejection) duration(n int) time.Duration {
	d := x.base
	for ; n > 0 && d < x.most; n-- {
		d *= 2
	}
	d = min(d, x.most)
	return d + rand.N(d/4+1)
}

// success notes that an endpoint handled a request.
func (p *Pool) success(e *endpoint) {
	p.mu.Lock()
	e.failed = 0
	p.mu.Unlock()
}

// failure notes that a try failed at an endpoint, and ejects it after too
// many in a row, unless no other is left.
func (p *Pool) failure(e *endpoint, why string) {
	now := time.Now()
	p.mu.Lock()
	e.failures++
	e.lastError = why
	var until time.Time
	if !now.Before(e.ejectedUntil) { // failures of tries from before the ejection change nothing
		e.failed++
		if e.failed >= p.eject.after && p.othersUsable(e, now) {
			if now.Sub(e.ejectedUntil) > p.eject.most {
				e.ejections = 0
			}
			until = now.Add(p.eject.duration(e.ejections))
			e.ejectedUntil = until
			e.ejections++
			e.failed = p.eject.after - 1 // after its return one more failure is enough
		}
	}
	p.mu.Unlock()
	if !until.IsZero() {
		p.cfg.Log.Warn("upstream endpoint ejected", "endpoint", e.name, "for", until.Sub(now).Round(time.Millisecond), "reason", why)
	}
}

// othersUsable reports whether an endpoint other than e is usable. The caller
// holds p.mu.
func (p *Pool) othersUsable(e *endpoint, now time.Time) bool {
	for _, other := range p.endpoints {
		if other != e && other.usable(now) {
			return true
		}
	}
	return false
}
