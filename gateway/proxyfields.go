package gateway

import (
	"net/http"
	"net/url"
	"strings"
)

// credentialFields are where clients put API keys.
var credentialFields = []string{"Authorization", "X-Api-Key"}

// hopByHop lists the fields that concern one connection, and Trailer, which
// net/http writes by itself.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// removeHopByHop removes them and those that Connection names.
func removeHopByHop(h http.Header) {
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			// Content-Length is how the end is found; net/http has seen to it.
			if name = http.CanonicalHeaderKey(trimOWS(name)); name != "Content-Length" {
				delete(h, name)
			}
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// mayTrail says whether a field may be passed on as a trailer: not those that
// frame, route or authorize (RFC 9110, 6.5.1).
func mayTrail(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Host", "Authorization", "X-Api-Key", "Cookie", "Set-Cookie":
		return false
	}
	return true
}

func trimOWS(s string) string { return strings.Trim(s, " \t") }

// hasToken reports whether a list has an element of that name, whatever its
// parameters.
func hasToken(values []string, token string) bool {
	for _, v := range values {
		for e := range strings.SplitSeq(v, ",") {
			e, _, _ = strings.Cut(e, ";")
			if strings.EqualFold(trimOWS(e), token) {
				return true
			}
		}
	}
	return false
}

// passTarget returns the path and query to ask the upstream for: those of r,
// byte for byte. It refuses what is no request for a path below the upstream's.
func passTarget(r *http.Request) (*url.URL, error) {
	refuse := func(status int, code, message string) (*url.URL, error) {
		return nil, &apiError{status: status, kind: kindInvalid, code: code, message: message}
	}
	switch {
	case r.Method == http.MethodConnect, r.Method == http.MethodTrace:
		// A TRACE would show the upstream's key.
		return refuse(http.StatusNotImplemented, "method_not_implemented", "the method "+r.Method+" is not passed on here")
	case hasToken(r.Header["Connection"], "upgrade") && hasToken(r.Header["Upgrade"], "websocket"):
		return refuse(http.StatusNotImplemented, "upgrade_not_implemented", "WebSocket connections are not passed on: use HTTP requests, and event streams for answers in parts")
	case r.URL.IsAbs():
		return refuse(http.StatusMisdirectedRequest, "no_forward_proxy", "this server is no proxy for other hosts: send the path alone, and check the client's proxy settings")
	}
	u := &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}
	switch {
	case !strings.HasPrefix(r.RequestURI, "/") || u.RequestURI() != r.RequestURI:
		return refuse(http.StatusBadRequest, "invalid_target", "the path must begin with a slash and have all characters percent-encoded that RFC 3986 does not allow in it")
	case hasDots(u.Path):
		return refuse(http.StatusBadRequest, "invalid_target", "the path must not have segments \".\" or \"..\", percent-encoded or not")
	}
	return u, nil
}

// maxDecodings is how often a path is percent-decoded in search of dots.
const maxDecodings = 4

// hasDots reports whether a path, already decoded once, has a segment "." or ".."
// for anyone on the way: for servers that decode again, that take backslashes for
// slashes, or that strip parameters from segments.
func hasDots(path string) bool {
	for range maxDecodings {
		for s := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			s, _, _ = strings.Cut(s, ";")
			if s == "." || s == ".." {
				return true
			}
		}
		decoded, err := url.PathUnescape(path)
		if err != nil || decoded == path {
			return false
		}
		path = decoded
	}
	return false
}
