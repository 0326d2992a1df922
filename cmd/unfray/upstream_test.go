package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/upstream"
)

// Requests to servers that are only passed on to are passed on in every dialect.
func TestPassedKinds(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, r.URL.Path+" "+string(body))
	}))
	defer up.Close()
	at, err := url.Parse(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range passedKinds {
		s := newSetup(discardLog())
		spec := &upstreamSpec{kind: kind, model: "m", pool: upstream.Config{Endpoints: []*url.URL{at}}}
		if err := s.addUpstream(t.Context(), spec, gateway.Model{}, true); err != nil {
			t.Fatal(err)
		}
		g, err := gateway.New(s.cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/v1/completions", "/completion", "/infill", "/tokenize", "/detokenize"} {
			const body = `{"model":"m","prompt":"a"}`
			w := httptest.NewRecorder()
			g.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
			if w.Body.String() != path+" "+body {
				t.Errorf("%s %s: %d %s", kind, path, w.Code, w.Body)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
