package upstream

import (
	"slices"
	"time"
)

// reach is which endpoints a try may go to.
type reach int

const (
	// reachUsable allows usable endpoints only.
	reachUsable reach = iota
	// reachAny allows the others too, where no usable one is left.
	reachAny
)

// acquire chooses an endpoint that was not tried and counts a try there. It
// returns nil if there is none.
func (p *Pool) acquire(prefixes []uint64, tried []*endpoint, allowed reach) (*endpoint, error) {
	preferred := -1
	if len(prefixes) > 0 {
		preferred = p.affinity.find(prefixes)
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	e := p.choose(preferred, tried, allowed)
	if e != nil {
		e.inFlight++
		e.requests++
		p.next = (e.index + 1) % len(p.endpoints)
	}
	p.mu.Unlock()
	if e != nil && len(prefixes) > 0 {
		p.affinity.put(prefixes, e.index)
	}
	return e, nil
}

// choose returns the preferred endpoint if it may be chosen and is not
// overloaded, else the one with the least load. The caller holds p.mu.
func (p *Pool) choose(preferred int, tried []*endpoint, allowed reach) *endpoint {
	now := time.Now()
	var least, leastUnusable *endpoint
	count, total := 0, 0
	for i := range p.endpoints {
		e := p.endpoints[(p.next+i)%len(p.endpoints)]
		switch {
		case slices.Contains(tried, e):
		case e.usable(now):
			count++
			total += e.inFlight
			if least == nil || e.inFlight < least.inFlight {
				least = e
			}
		case leastUnusable == nil || e.inFlight < leastUnusable.inFlight:
			leastUnusable = e
		}
	}
	if least == nil {
		if allowed == reachAny {
			return leastUnusable
		}
		return nil
	}
	if preferred >= 0 {
		e := p.endpoints[preferred]
		if e.usable(now) && !slices.Contains(tried, e) && !overloaded(e.inFlight, total, count) {
			return e
		}
	}
	return least
}

// overloaded reports whether one more request would put an endpoint with this
// load over 1.25 times the average and 2: consistent hashing with bounded
// loads (Mirrokni, Thorup, Zadimoghaddam, arXiv:1608.01350), with two requests
// of slack so that small loads do not scatter.
func overloaded(load, total, endpoints int) bool {
	return 4*endpoints*(load+1) > 5*(total+1)+8*endpoints
}

// release ends a try that was counted by acquire. After Close it takes the
// try's connection along.
func (p *Pool) release(e *endpoint) {
	p.mu.Lock()
	e.inFlight--
	closed := p.closed
	p.mu.Unlock()
	if closed {
		p.transport.CloseIdleConnections()
	}
}
