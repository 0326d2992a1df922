package gateway

import "net/http"

type health struct {
	Status string `json:"status"`
}

// healthz says that the process works, also while it drains.
func (g *Gateway) healthz(x *exchange) error {
	return g.answer(x, health{"ok"})
}

// readyz says whether new requests are welcome.
func (g *Gateway) readyz(x *exchange) error {
	g.mu.Lock()
	draining := g.draining
	g.mu.Unlock()
	g.limitWrite(x)
	if draining {
		return writeJSON(x, http.StatusServiceUnavailable, health{"draining"})
	}
	return writeJSON(x, http.StatusOK, health{"ready"})
}
