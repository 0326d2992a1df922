package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Key is an API key that clients may use.
type Key struct {
	// Name is what the log calls it.
	Name string
	// SHA256 is the hash of the key. Keys must be random, with 128 bits or
	// more: the hash of a password would not protect it.
	SHA256 [sha256.Size]byte
	// Models are the names of those that it may use; nil: all. A key with a
	// list cannot be used at paths whose model the gateway does not choose.
	Models []string
}

// checkKeys refuses keys that cannot be meant.
func checkKeys(keys []Key) error {
	for i, k := range keys {
		switch {
		case k.SHA256 == [sha256.Size]byte{}:
			return fmt.Errorf("gateway: API key %d (%q) has no hash", i, k.Name)
		case k.SHA256 == sha256.Sum256(nil):
			return fmt.Errorf("gateway: API key %d (%q) is the hash of an empty key", i, k.Name)
		}
		for _, other := range keys[:i] {
			if k.SHA256 == other.SHA256 {
				return fmt.Errorf("gateway: the API keys %q and %q are the same", other.Name, k.Name)
			}
		}
	}
	return nil
}

var errNoKey = errors.New("gateway: no API key")

// presentedKey returns the key that a request brings.
func presentedKey(h http.Header) (string, error) {
	for _, name := range credentialFields {
		if len(h[name]) > 1 {
			return "", fmt.Errorf("gateway: %d fields %s", len(h[name]), name)
		}
	}
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimLeft(token, " "), nil
	}
	if key := h.Get("X-Api-Key"); key != "" {
		return key, nil
	}
	return "", errNoKey
}

// authorize finds the key of a request, where there are any.
func (g *Gateway) authorize(x *exchange) error {
	if len(g.cfg.Keys) == 0 || isProbe(x.r) {
		return nil
	}
	e := &apiError{status: http.StatusUnauthorized, kind: kindInvalid}
	token, err := presentedKey(x.r.Header)
	switch {
	case errors.Is(err, errNoKey):
		e.message = "this server needs an API key: send it as \"Authorization: Bearer KEY\" or \"x-api-key: KEY\""
		x.Header().Set("WWW-Authenticate", `Bearer realm="unfray"`)
		return e
	case err == nil:
		// Which key matches, or how much of it, must not show in the time.
		sum, match := sha256.Sum256([]byte(token)), -1
		for i := range g.cfg.Keys {
			match = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], g.cfg.Keys[i].SHA256[:]), i, match)
		}
		if match >= 0 {
			x.key = &g.cfg.Keys[match]
			x.note(slog.String("key", x.key.Name))
			return nil
		}
	}
	e.code, e.message = "invalid_api_key", "this server does not know the API key, or the request has several"
	x.Header().Set("WWW-Authenticate", `Bearer realm="unfray", error="invalid_token"`)
	return e
}

// isProbe reports whether a request asks for the state of the process only.
func isProbe(r *http.Request) bool {
	return (r.URL.Path == "/healthz" || r.URL.Path == "/readyz") && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// mayUse returns an error if the request's key is not for that model.
func (g *Gateway) mayUse(x *exchange, model string) error {
	if x.key == nil || x.key.Models == nil || slices.Contains(x.key.Models, model) {
		return nil
	}
	return &apiError{
		status: http.StatusForbidden, kind: kindInvalid, param: "model", code: "model_not_allowed",
		message: fmt.Sprintf("this API key is not for the model %s", strconv.QuoteToGraphic(model)),
	}
}

// mayUseAll reports whether the request's key is for every model.
func mayUseAll(x *exchange) bool { return x.key == nil || x.key.Models == nil }

// passOn sends a request that the gateway does not serve to the default
// upstream.
func (g *Gateway) passOn(x *exchange) error {
	if !mayUseAll(x) {
		return &apiError{
			status: http.StatusForbidden, kind: kindInvalid, code: "path_not_allowed",
			message: "this API key is for certain models, and the gateway cannot tell which one this path uses",
		}
	}
	return g.proxy(x, g.cfg.Default, nil)
}
