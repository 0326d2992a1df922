package gateway

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzPassTarget checks that targets are passed on byte for byte or not at all,
// and never with a way up.
func FuzzPassTarget(f *testing.F) {
	for _, s := range []string{
		"/", "/a/../b", "/%2e%2e/", "/%252e./x", "//host/..", "/a?x=..", "http://h/..", "*", "h:443", "/a|b", "/\xff", "/a#b", "/..;x/y", "/.\\..",
		"/%2f..%5c", "/a%", "/?", "/%00", "/%e6%97%a5", "http:/x", "/a;../b",
	} {
		f.Add("GET", s)
		f.Add("POST", s)
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")))
		if err != nil {
			return
		}
		u, err := passTarget(r)
		if err != nil {
			if e := publicError(err, ""); e.status < 400 || e.message == "" {
				t.Errorf("%q: %v", target, err)
			}
			return
		}
		if u.RequestURI() != r.RequestURI || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.RequestURI(), "/") {
			t.Errorf("%q became %q", r.RequestURI, u)
		}
		path, _, _ := strings.Cut(r.RequestURI, "?")
		for range maxDecodings {
			for _, s := range strings.Split(strings.ReplaceAll(path, "\\", "/"), "/") {
				if s == ".." || strings.HasPrefix(s, "..;") {
					t.Errorf("%q climbs", r.RequestURI)
				}
			}
			if path, err = url.PathUnescape(path); err != nil {
				break
			}
		}
	})
}

func TestRemoveHopByHop(t *testing.T) {
	h := http.Header{
		"Connection": {"close, X-A ,,\tx-b", "Content-Length", "host;x, content-type"}, "X-A": {"1"}, "X-B": {"2", "3"}, "X-C": {"4"},
		"Content-Length": {"5"}, "Content-Type": {"6"}, "Keep-Alive": {"7"}, "Upgrade": {"8"}, "Te": {"9"}, "Trailer": {"10"},
		"Proxy-Authorization": {"11"}, "Transfer-Encoding": {"12"},
	}
	removeHopByHop(h)
	if len(h) != 2 || h["X-C"] == nil || h["Content-Length"] == nil {
		t.Errorf("%v", h)
	}
}
