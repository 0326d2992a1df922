package gateway

import (
	"io"
	"net/http"
)

// ReadFirst is a handler that passes all requests on to the default upstream
// after it has read their bodies.
func (g *Gateway) ReadFirst() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = g.proxy(&exchange{w: w, r: r, ctx: r.Context()}, g.cfg.Default, body)
		}
		if err != nil {
			g.cfg.Log.Error("request", "error", err)
			panic(http.ErrAbortHandler)
		}
	})
}
