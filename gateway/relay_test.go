package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/vocab"
)

// serverToy stands for a server: it takes a replay, but no masks of a grammar.
type serverToy struct {
	*backendtest.Toy
	last *backend.Request
	err  error // of Generate
	chat []vocab.ID
	most int // tokens, if the request does not say
}

func (s *serverToy) Info() backend.Info {
	info := s.Toy.Info()
	info.Capabilities = backend.Capabilities{Replay: true, Logprobs: true, Grammars: []backend.GrammarKind{backend.GBNF}}
	if s.most > 0 {
		info.Defaults = &backend.Defaults{MaxTokens: s.most, Sampling: backend.Sampling{TopP: 1}}
	}
	return info
}

func (s *serverToy) Generate(ctx context.Context, req *backend.Request) (backend.Stream, error) {
	if s.last = req; s.err != nil {
		return nil, s.err
	}
	return s.Toy.Generate(ctx, req)
}

func (s *serverToy) TokenizeChat(context.Context, []byte) ([]vocab.ID, error) { return s.chat, nil }

// recorder answers as an upstream and keeps what it was sent.
type recorder struct{ paths, bodies []string }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.paths, r.bodies = append(r.paths, req.URL.Path), append(r.bodies, string(body))
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"text/x-upstream"}},
		Body: io.NopCloser(strings.NewReader("as it is")), ContentLength: 8, Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

type relayRig struct {
	*rig
	server *serverToy
	up     *recorder
}

func newRelayRig(t *testing.T, change func(*gateway.Model)) *relayRig {
	t.Helper()
	r := &relayRig{rig: newRig(t, rigOptions{scripts: []string{"The capital of France is Paris."}}), up: &recorder{}}
	r.server = &serverToy{Toy: r.toy, chat: r.tok.Encode(nil, []byte("The capital of France is Pa"))}
	m, err := unfray.NewModel(r.server, r.tok)
	if err != nil {
		t.Fatal(err)
	}
	up := &gateway.Upstream{Transport: r.up}
	served := gateway.Model{Name: "toy", Model: m, Upstream: up, Native: true, Chat: r.server}
	if change != nil {
		change(&served)
	}
	cfg := gateway.Config{Models: []gateway.Model{served}, Default: up, Log: newLog(r.log)}
	if r.gateway, err = gateway.New(cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

// What is healed, what is passed on, and what is said about it.
func TestRelay(t *testing.T) {
	const dirty = `"prompt":"The capital of France is Pa","temperature":0,"max_tokens":4`
	for _, tc := range []struct {
		name, path, body string
		header           string // X-Unfray-Heal
		healed           bool
		note             string // X-Unfray-Note of what is passed on
		change           func(*gateway.Model)
		generate         error
	}{
		{name: "dirty", path: "/v1/completions", body: `{` + dirty + `}`, healed: true},
		{name: "dirty stream", path: "/v1/completions", body: `{` + dirty + `,"stream":true}`, healed: true},
		{name: "native", path: "/completion", body: `{"prompt":"The capital of France is Pa","temperature":0,"n_predict":4}`, healed: true},
		{name: "clean", path: "/v1/completions", body: `{"prompt":[65],"max_tokens":1}`, header: "off"},
		{name: "off in the body", path: "/v1/completions", body: `{` + dirty + `,"unfray":{"heal":"off"}}`},
		{name: "off in a header", path: "/v1/completions", body: `{` + dirty + `}`, header: "off"},
		{name: "off for the model", path: "/v1/completions", body: `{` + dirty + `}`, change: func(m *gateway.Model) { m.Heal = heal.Off }},
		{name: "no JSON", path: "/v1/completions", body: `{"prompt":`, note: "request_not_read"},
		{name: "a shape of its own", path: "/v1/completions", body: `{"prompt":{"a":1}}`, note: "request_not_read"},
		{name: "upstream's own answer", path: "/v1/completions", body: `{` + dirty + `,"prompt_logprobs":1}`, note: "field_needs_upstream"},
		{name: "echo with logprobs", path: "/v1/completions", body: `{` + dirty + `,"echo":true,"logprobs":1}`, note: "request_not_read"},
		{name: "another model", path: "/v1/completions", body: `{"model":"x",` + dirty + `}`},
		{name: "any name", path: "/v1/completions", body: `{"model":"gpt-3.5-turbo",` + dirty + `}`, healed: true, change: func(m *gateway.Model) { m.AnyName = true }},
		{name: "any name, off", path: "/v1/completions", body: `{"model":"gpt-3.5-turbo",` + dirty + `,"unfray":{"heal":"off"}}`, change: func(m *gateway.Model) { m.AnyName = true }},
		{name: "no tokenizer", path: "/v1/completions", body: `{` + dirty + `}`, note: "tokenizer_mismatch", change: func(m *gateway.Model) {
			m.NoHeal, m.Model, m.Chat = &heal.Note{Code: "tokenizer_mismatch", Text: "x"}, nil, nil
		}},
		{name: "cannot be done", path: "/v1/completions", body: `{` + dirty + `}`, note: "not_supported", generate: &backend.UnsupportedError{Param: "grammar", Text: "x"}},
		{name: "regex", path: "/v1/completions", body: `{` + dirty + `,"structured_outputs":{"regex":"a"}}`, note: "not_supported"},
		{name: "chat", path: "/v1/chat/completions", body: `{"messages":[{"role":"user","content":"a"}]}`},
		{name: "chat to continue", path: "/v1/chat/completions", body: `{"temperature":0,"max_tokens":4,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"Pa"}]}`, healed: true},
		{name: "tools", path: "/v1/chat/completions", body: `{"tools":[{}],"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"Pa"}]}`, note: "request_not_read"},
		{name: "tokenize", path: "/tokenize", body: `{"content":"a"}`},
		{name: "unknown path", path: "/v1/embeddings", body: `{"input":"a"}`},
		{name: "infill without tokens for it", path: "/infill", body: `{"input_prefix":"a","input_suffix":"b"}`, note: "not_supported"},
		{name: "suffix without tokens for it", path: "/v1/completions", body: `{` + dirty + `,"suffix":"b"}`, note: "not_supported"},
		{name: "a value of the server's own", path: "/v1/completions", body: `{"prompt":"The capital of France is Pa","temperature":-1}`, note: "request_not_read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRelayRig(t, tc.change)
			r.server.err = tc.generate
			var header []string
			if tc.header != "" {
				header = []string{"X-Unfray-Heal", tc.header}
			}
			a := r.send("POST", tc.path, tc.body, header...)
			if tc.healed {
				if len(r.up.bodies) > 0 || a.status != 200 || !strings.Contains(string(a.body), `"tokens_removed"`) {
					t.Errorf("not healed: %d %s, upstream saw %q", a.status, a.body, r.up.bodies)
				}
				return
			}
			if string(a.body) != "as it is" || a.header.Get("Content-Type") != "text/x-upstream" || !slices.Equal(r.up.bodies, []string{tc.body}) || r.up.paths[0] != tc.path {
				t.Errorf("not passed on: %d %s; upstream saw %q", a.status, a.body, r.up.bodies)
			}
			if got := a.header.Get("X-Unfray-Note"); got != tc.note {
				t.Errorf("note %q, want %q", got, tc.note)
			}
		})
	}
}

// Settings that unfray does not know reach the server, and those that it sets
// itself do not.
func TestRelayFields(t *testing.T) {
	r := newRelayRig(t, nil)
	a := r.complete(`{"model":"toy","prompt":"The capital of France is Pa","temperature":0.5,"cache_salt":"x","priority":3,"stop":["z"],"n":2,"seed":7,"lora":[1],"stream":false}`)
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	got := slices.Sorted(maps.Keys(r.server.last.Fields))
	if want := []string{"cache_salt", "lora", "priority", "seed", "temperature"}; !slices.Equal(got, want) {
		t.Errorf("fields %q, want %q", got, want)
	}
	if s := r.server.last.Sampling.Seed; s == nil || *s != 8 && *s != 7 {
		t.Errorf("seed %v", s)
	}
	if p := r.server.last.Replay; p == nil || len(p.Pending) == 0 {
		t.Errorf("replay %+v", p)
	}
}

// A question about healing gets an answer, also where there is nothing to heal.
func TestRelayAnswersWhoAsks(t *testing.T) {
	r := newRelayRig(t, nil)
	a := r.complete(`{"prompt":"The capital of France is Pa","temperature":0,"max_tokens":2,"unfray":{"heal":"stable"}}`)
	var c struct {
		Unfray struct{ Healing *unfray.Healing }
	}
	if err := json.Unmarshal(a.body, &c); err != nil || c.Unfray.Healing == nil || c.Unfray.Healing.Mode != heal.Stable {
		t.Errorf("%s", a.body)
	}
	a = r.complete(`{"prompt":"a","unfray":{"heal":"best"}}`)
	if a.status != 400 || len(r.up.bodies) > 0 {
		t.Errorf("a mode that there is not: %d %s", a.status, a.body)
	}
}

// The upstream's own errors keep their status and text.
func TestRelayErrors(t *testing.T) {
	for _, tc := range []struct {
		err    error
		status int
		body   string
	}{
		{&backend.UpstreamError{Status: 429, Header: map[string][]string{"Retry-After": {"7"}, "Content-Type": {"text/html"}}, Body: []byte("<html>busy")}, 429, "<html>busy"},
		{&backend.UpstreamError{Status: 400, Body: []byte(`{"error":{"message":"no"}}`)}, 400, `{"error":{"message":"no"}}`},
		{&backend.ProtocolError{Text: "half an event"}, 502, ""},
		{errors.New("x"), 500, ""},
	} {
		r := newRelayRig(t, nil)
		r.server.err = tc.err
		a := r.complete(`{"prompt":"The capital of France is Pa"}`)
		if a.status != tc.status || tc.body != "" && string(a.body) != tc.body {
			t.Errorf("%v: %d %s", tc.err, a.status, a.body)
		}
		if tc.status == 429 && (a.header.Get("Retry-After") != "7" || a.header.Get("Content-Type") != "text/html") {
			t.Errorf("headers %v", a.header)
		}
	}
}

func TestRelayRenames(t *testing.T) {
	r := newRelayRig(t, func(m *gateway.Model) { m.UpstreamName = "org/model" })
	r.complete(`{ "model" : "toy", "prompt":"a b", "unfray":{"heal":"off"} }`)
	if len(r.up.bodies) != 1 || r.up.bodies[0] != `{ "model" : "org/model", "prompt":"a b", "unfray":{"heal":"off"} }` {
		t.Errorf("%q", r.up.bodies)
	}
}

func TestMetrics(t *testing.T) {
	r := newRelayRig(t, nil)
	r.complete(`{"prompt":"The capital of France is Pa","temperature":0,"max_tokens":4}`)
	r.complete(`{"prompt":"The capital of France is Pa","unfray":{"heal":"off"}}`)
	r.server.err = &backend.UpstreamError{Status: 500}
	r.complete(`{"prompt":"The capital of France is Pa"}`)
	r.send("GET", "/nothing/here", "")
	a := r.send("GET", "/metrics", "")
	for _, line := range []string{
		`unfray_healing_total{mode="stable",model="toy",result="healed"} 1`,
		`unfray_healing_total{mode="off",model="toy",result="passed_on"} 1`,
		`unfray_healing_removed_tokens_total{model="toy"} 1`,
		`unfray_upstream_errors_total{kind="status",model="toy"} 1`,
		`unfray_http_requests_total{code="200",route="/v1/completions"} 2`,
		`unfray_http_requests_total{code="500",route="/v1/completions"} 1`,
		`unfray_http_requests_total{code="200",route="other"} 1`,
	} {
		if !strings.Contains(string(a.body), line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}

// Healing stops and goes on while requests are served.
func TestSetNoHeal(t *testing.T) {
	r := newRelayRig(t, nil)
	const body = `{"prompt":"The capital of France is Pa","temperature":0,"max_tokens":4}`
	r.gateway.SetNoHeal("toy", &heal.Note{Code: "tokenizer_mismatch", Text: "x"})
	if a := r.complete(body); string(a.body) != "as it is" || a.header.Get("X-Unfray-Note") != "tokenizer_mismatch" {
		t.Errorf("%v %s", a.header, a.body)
	}
	if a := r.send("GET", "/metrics", ""); !strings.Contains(string(a.body), `unfray_healing_disabled{model="toy",reason="tokenizer_mismatch"} 1`) {
		t.Error("no metric")
	}
	r.gateway.SetNoHeal("toy", nil)
	if a := r.complete(body); !strings.Contains(string(a.body), `"tokens_removed"`) {
		t.Errorf("%s", a.body)
	}
	if a := r.send("GET", "/metrics", ""); strings.Contains(string(a.body), "unfray_healing_disabled{") {
		t.Error("the metric stays")
	}
}
