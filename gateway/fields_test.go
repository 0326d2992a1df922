package gateway_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/upstream"
	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/vocab"
)

func asVLLM(m *gateway.Model) { m.Native = false }

// Fields that a healed request could not do justice to send the request to the
// server as it came; those that say nothing do not.
func TestRelayFieldsNeedUpstream(t *testing.T) {
	const (
		completions = "/v1/completions"
		chat        = "/v1/chat/completions"
		native      = "/completion"
	)
	bodies := map[string]string{
		completions: `{"prompt":"The capital of France is Pa","temperature":0,"max_tokens":4,%s}`,
		chat:        `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"Pa"}],"continue_final_message":true,"add_generation_prompt":false,"temperature":0,"max_tokens":4,%s}`,
		native:      `{"prompt":"The capital of France is Pa","temperature":0,"n_predict":4,%s}`,
	}
	for _, tc := range []struct {
		path, field string
		passed      bool
	}{
		{completions, `"min_tokens":3`, true},
		{completions, `"min_tokens":0`, false},
		{completions, `"skip_special_tokens":false`, true},
		{completions, `"skip_special_tokens":true`, false},
		{completions, `"add_special_tokens":false`, true},
		{completions, `"add_special_tokens":true`, false},
		{completions, `"prompt_logprobs":0`, true},
		{completions, `"prompt_logprobs":-1`, true},
		{completions, `"prompt_logprobs":null`, false},
		{completions, `"return_token_offsets":true`, true},
		{completions, `"truncate_prompt_tokens":10`, true},
		{completions, `"stream":true,"stream_options":{"continuous_usage_stats":true}`, true},
		{completions, `"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}`, false},
		{completions, `"response_format":{"type":"text","strict":true}`, true},
		{completions, `"n_predict":2`, true}, // llama.cpp's server knows it here too
		{completions, `"n_cmpl":2`, true},
		{completions, `"max_completion_tokens":2`, true},
		{completions, `"top_logprobs":2`, true},
		{completions, `"verbose":true`, true},
		{completions, `"user":"me"`, false},
		{completions, `"min_p":0.1,"stop_token_ids":[1],"ignore_eos":true,"bad_words":[],"priority":1,"cache_salt":"x"`, false},
		{chat, `"echo":true`, true},
		{chat, `"echo":false`, false},
		{chat, `"add_special_tokens":false`, false},
		{chat, `"n_predict":2`, true},
		{chat, `"chat_template":"x"`, false}, // the server's tokenizer gets the whole request
		{native, `"max_tokens":2`, true},
		{native, `"n":2`, true},
		{native, `"max_completion_tokens":2`, true},
		{native, `"grammar_lazy":true`, true},
		{native, `"grammar_triggers":[{"type":0,"value":"x"}]`, true},
		{native, `"preserved_tokens":["<|im_start|>"]`, true},
		{native, `"grammar_lazy":false,"grammar_triggers":[],"verbose":false,"n":1`, true},
		{native, `"grammar_lazy":false,"grammar_triggers":[],"verbose":false,"n":null`, false},
		{native, `"samplers":["top_k"],"dry_multiplier":0,"t_max_predict_ms":500,"lora":[],"id_slot":0,"n_keep":0`, false},
	} {
		r := newRelayRig(t, func(m *gateway.Model) { m.Native = tc.path == native })
		body := fmt.Sprintf(bodies[tc.path], tc.field)
		a := r.send("POST", tc.path, body)
		if passed := slices.Equal(r.up.bodies, []string{body}); passed != tc.passed {
			t.Errorf("%s with %s: passed on: %v; %d %s", tc.path, tc.field, passed, a.status, a.body)
		}
		if note := a.header.Get("X-Unfray-Note"); tc.passed && note != "field_needs_upstream" {
			t.Errorf("%s with %s: note %q", tc.path, tc.field, note)
		}
	}
}

// What means "not said" or "as the server likes" on a server means it here.
func TestRelayServerDefaults(t *testing.T) {
	t.Run("a seed of -1 is none", func(t *testing.T) {
		r := newRelayRig(t, asVLLM)
		r.complete(`{"prompt":"The capital of France is Pa","seed":-1,"max_tokens":2}`)
		if r.server.last == nil || r.server.last.Sampling.Seed != nil {
			t.Errorf("%+v", r.server.last)
		}
	})
	t.Run("max_tokens null", func(t *testing.T) {
		r := newRelayRig(t, asVLLM)
		r.complete(`{"prompt":"The capital of France is Pa","max_tokens":null}`)
		if r.server.last == nil || r.server.last.MaxTokens != 0 {
			t.Errorf("%+v", r.server.last)
		}
	})
	t.Run("no max_tokens", func(t *testing.T) {
		r := newRelayRig(t, asVLLM)
		r.complete(`{"prompt":"The capital of France is Pa"}`)
		if r.server.last == nil || r.server.last.MaxTokens != 16 {
			t.Errorf("%+v", r.server.last)
		}
	})
	for _, tc := range []struct{ path, body string }{
		{"/completion", `{"prompt":"The capital of France is Pa"}`},
		{"/completion", `{"prompt":"The capital of France is Pa","n_predict":-1}`},
		{"/v1/completions", `{"prompt":"The capital of France is Pa"}`},
		{"/v1/chat/completions", `{"messages":[{"role":"assistant","content":"Pa"}]}`},
	} {
		r := newRelayRig(t, nil)
		r.server.most = 7
		r.send("POST", tc.path, tc.body)
		if r.server.last == nil || r.server.last.MaxTokens != 7 {
			t.Errorf("the server's own n_predict is lost at %s: %+v", tc.path, r.server.last)
		}
	}
}

// A model's limit holds for whatever reaches its server at a path that the
// gateway knows.
func TestRelayMaxTokens(t *testing.T) {
	const unread = `"logit_bias":[[1,false]],` // llama.cpp's form, which is passed on
	limited := func(native bool) func(*gateway.Model) {
		return func(m *gateway.Model) {
			m.MaxTokens, m.Native, m.UpstreamName = 100, native, "org/toy"
		}
	}
	for _, tc := range []struct {
		native     bool
		path, body string
		sent       string // what the upstream gets; "": the request is refused
	}{
		{true, "/v1/completions", `{"max_tokens":101,"prompt":"a b","unfray":{"heal":"off"}}`, ""},
		{true, "/v1/completions", `{"max_tokens":101,"MAX_TOKENS":1,"prompt":{}}`, ""},
		{true, "/v1/completions", `{"max_tokens":101,` + unread + `"prompt":"a b"}`, ""},
		{true, "/v1/completions", `{"max_tokens":1,"max_tokens":101,"prompt":"a b"}`, ""},
		{true, "/v1/completions", `{"ma\u0078_tokens":101,"prompt":{}}`, ""},
		{true, "/v1/completions", `{"max_tokens":101,"x":NaN,"prompt":"a b"}`, ""},
		{true, "/v1/completions", `{"max_tokens":"101","prompt":"a b"}`, ""}, // vLLM reads numbers in strings
		{true, "/v1/completions", `{"max_tokens":1e300,"prompt":{}}`, ""},
		{true, "/v1/completions", `{"n_predict":-1,"max_tokens":5,"prompt":"a b"}`, ""},
		{true, "/v1/completions", `{"model":"org/toy","max_tokens":101,"prompt":"a b"}`, ""}, // the upstream's name for it
		{true, "/v1/completions", `{"model":"whatever","max_tokens":101,"prompt":"a b"}`, ""},
		{true, "/v1/completions", `{"max_tokens":100,"prompt":{}}`, `{"max_tokens":100,"prompt":{}}`},
		{true, "/v1/completions", `{"model":"whatever","max_tokens":100,"prompt":"a"}`, `{"model":"whatever","max_tokens":100,"prompt":"a"}`},
		{true, "/v1/completions", `{"prompt":{}}`, `{"max_tokens":100,"prompt":{}}`},
		{true, "/v1/completions", `{"model":"whatever"}`, `{"max_tokens":100,"model":"whatever"}`},
		{true, "/v1/completions", `{"prompt":{}, "max_tokens" : null }`, `{"prompt":{}, "max_tokens" : 100 }`},
		{true, "/completion", `{"prompt":{}}`, `{"n_predict":100,"prompt":{}}`},
		{true, "/completion", `{"prompt":{},"n_predict":-1}`, `{"prompt":{},"n_predict":100}`},
		{true, "/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}]}`, `{"max_tokens":100,"messages":[{"role":"user","content":"a"}]}`},
		{false, "/v1/chat/completions", `{"max_completion_tokens":7,"messages":[{"role":"user","content":"a"}]}`, `{"max_completion_tokens":7,"messages":[{"role":"user","content":"a"}]}`},
		{false, "/v1/completions", `{"prompt":{}}`, `{"prompt":{}}`}, // 16 by itself
		{false, "/v1/completions", `{"prompt":{},"max_tokens":null}`, `{"prompt":{},"max_tokens":100}`},
	} {
		r := newRelayRig(t, limited(tc.native))
		a := r.send("POST", tc.path, tc.body)
		switch {
		case tc.sent == "" && (len(r.up.bodies) > 0 || a.status != 400 || r.server.last != nil):
			t.Errorf("%s %s: %d %s; the upstream got %q", tc.path, tc.body, a.status, a.body, r.up.bodies)
		case tc.sent != "" && !slices.Equal(r.up.bodies, []string{tc.sent}):
			t.Errorf("%s %s: %d %s; the upstream got %q", tc.path, tc.body, a.status, a.body, r.up.bodies)
		}
	}
}

// A message without text to continue has no frayed end: the template's own end
// is left alone.
func TestRelayEmptyPrefill(t *testing.T) {
	r := newRelayRig(t, nil)
	body := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":""}]}`
	r.chat(body)
	if !slices.Equal(r.up.bodies, []string{body}) {
		t.Errorf("the upstream got %q", r.up.bodies)
	}
	local := newRig(t, rigOptions{})
	a := local.chat(`{"max_tokens":1,"continue_final_message":true,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":""}],"add_generation_prompt":false}`)
	if a.status != 200 || strings.Contains(string(a.body), "tokens_removed") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A vLLM server has a /tokenize of its own.
func TestRelayTokenizeOfServer(t *testing.T) {
	for path, body := range map[string]string{
		"/tokenize":   `{"model":"toy","prompt":"Hello"}`,
		"/detokenize": `{"model":"toy","tokens":[1]}`,
	} {
		r := newRelayRig(t, asVLLM)
		if a := r.send("POST", path, body); !slices.Equal(r.up.bodies, []string{body}) {
			t.Errorf("%s: %s; the upstream got %q", path, a.body, r.up.bodies)
		}
	}
	r := newRelayRig(t, asVLLM)
	if a := r.send("POST", "/tokenize", `{"content":"a"}`); len(r.up.bodies) > 0 || !strings.Contains(string(a.body), "tokens") {
		t.Errorf("llama.cpp's dialect: %s; the upstream got %q", a.body, r.up.bodies)
	}
}

// Settings of llama.cpp's dialect that no server gets are named.
func TestRelayNamesIgnored(t *testing.T) {
	r := newRelayRig(t, asVLLM)
	a := r.send("POST", "/completion", `{"prompt":"The capital of France is Pa","temperature":0,"n_predict":4,"mirostat":2}`)
	if got := a.header.Get("X-Unfray-Ignored"); a.status != 200 || got != "mirostat" {
		t.Errorf("%d %q %s", a.status, got, a.body)
	}
	r = newRelayRig(t, nil)
	a = r.send("POST", "/completion", `{"prompt":"The capital of France is Pa","temperature":0,"n_predict":4,"mirostat":2}`)
	if got := a.header.Get("X-Unfray-Ignored"); a.status != 200 || got != "" {
		t.Errorf("%d %q %s", a.status, got, a.body)
	}
}

// A setting of unfray's that cannot be honored is no reason to pass a request on
// to a server that does not know it.
func TestRelayGrammarBytes(t *testing.T) {
	for _, grammar := range []string{`"grammar":"root ::= \"Paris\"",`, ``} {
		r := newRelayRig(t, nil)
		a := r.complete(`{"prompt":"The capital of France is Pa",` + grammar + `"unfray":{"grammar_bytes":2}}`)
		if a.status != 400 || len(r.up.bodies) > 0 || !strings.Contains(string(a.body), "unfray.grammar_bytes") {
			t.Errorf("%d %s; the upstream got %q", a.status, a.body, r.up.bodies)
		}
	}
}

// A server that is only passed on to, without a reason, has no tokenizer to
// speak another dialect with.
func TestRelayNativeWithoutTokenizer(t *testing.T) {
	for _, path := range []string{"/completion", "/infill"} {
		r := newRelayRig(t, func(m *gateway.Model) { m.Model, m.Chat, m.Native = nil, nil, false })
		a := r.send("POST", path, `{"prompt":"a","input_prefix":"a","input_suffix":"b"}`)
		if a.status != 400 || strings.Contains(r.log.String(), "panic") {
			t.Errorf("%d %s: %s", a.status, a.body, r.log)
		}
	}
}

// What the gateway cannot read gets to the server under the name that the server
// knows, for whoever may use that model.
func TestRelayUnreadIsNamed(t *testing.T) {
	const body = `{"model":"toy","MODEL":"x","logit_bias":[[1,false]],"prompt":"a b"}`
	r := newRelayRig(t, func(m *gateway.Model) { m.UpstreamName = "org/toy" })
	r.send("POST", "/completion", body)
	if want := strings.Replace(body, "toy", "org/toy", 1); !slices.Equal(r.up.bodies, []string{want}) {
		t.Errorf("the upstream got %q", r.up.bodies)
	}
	for _, tc := range []struct {
		model, body string
		status      int
	}{
		{"toy", body, 200},
		{"other", body, 403},
		{"toy", `{"model":"toy","x":NaN,"prompt":"a b"}`, 400},
		{"toy", `{"model":"toy","model":"other","prompt":"a b"}`, 400},
		{"toy", `{"model":"other","logit_bias":[[1,false]]}`, 403},
	} {
		r := newRelayRig(t, nil)
		key := gateway.Key{Name: "k", SHA256: sha256.Sum256([]byte("secret")), Models: []string{tc.model}}
		up := &gateway.Upstream{Transport: r.up}
		var err error
		r.gateway, err = gateway.New(gateway.Config{Models: []gateway.Model{{Name: "toy", Upstream: up}}, Default: up, Keys: []gateway.Key{key}, Log: newLog(r.log)})
		if err != nil {
			t.Fatal(err)
		}
		a := r.send("POST", "/completion", tc.body, "Authorization", "Bearer secret")
		if a.status != tc.status || (len(r.up.bodies) > 0) != (tc.status == 200) {
			t.Errorf("key for %s, %s: %d %s; the upstream got %q", tc.model, tc.body, a.status, a.body, r.up.bodies)
		}
	}
}

// A compressed request is the server's to read.
func TestRelayCompressed(t *testing.T) {
	const body = "\x1f\x8b compressed"
	for _, path := range []string{"/v1/completions", "/v1/chat/completions", "/completion", "/infill", "/tokenize", "/detokenize"} {
		r := newRelayRig(t, nil)
		a := r.send("POST", path, body, "Content-Encoding", "gzip")
		if !slices.Equal(r.up.bodies, []string{body}) || a.header.Get("X-Unfray-Note") != "request_not_read" {
			t.Errorf("%s: %d %s; the upstream got %q", path, a.status, a.body, r.up.bodies)
		}
		r = newRelayRig(t, func(m *gateway.Model) { m.MaxTokens = 5 })
		a = r.send("POST", path, body, "Content-Encoding", "gzip")
		if generates := !strings.HasSuffix(path, "tokenize"); generates && (a.status != 415 || len(r.up.bodies) > 0) {
			t.Errorf("%s around a limit: %d %s; the upstream got %q", path, a.status, a.body, r.up.bodies)
		}
	}
	r := newRig(t, rigOptions{})
	if a := r.complete(body, "Content-Encoding", "gzip"); a.status != 415 {
		t.Errorf("without a server: %d %s", a.status, a.body)
	}
}

// No answer but an error may come of a server's failure, and each is counted.
func TestRelayOddFailures(t *testing.T) {
	for _, tc := range []struct {
		err    error
		status int
		kind   string
	}{
		{&backend.UpstreamError{Status: 204}, 502, "status"},
		{&backend.UpstreamError{Status: 307, Header: map[string][]string{"Content-Type": {"text/html"}}, Body: []byte("<html>")}, 502, "status"},
		{&upstream.Error{Phase: upstream.PhaseConnect, Err: errors.New("refused")}, 502, "connection"},
	} {
		r := newRelayRig(t, nil)
		r.server.err = tc.err
		a := r.complete(`{"prompt":"The capital of France is Pa"}`)
		if a.status != tc.status || !strings.Contains(string(a.body), `"upstream_failed"`) {
			t.Errorf("%v: %d %s", tc.err, a.status, a.body)
		}
		line := `unfray_upstream_errors_total{kind="` + tc.kind + `",model="toy"} 1`
		if got := string(r.send("GET", "/metrics", "").body); !strings.Contains(got, line) {
			t.Errorf("%v: no line %s", tc.err, line)
		}
	}
}

// A line that llama.cpp's server cuts off for its indentation is cut off here.
func TestRelayIndentation(t *testing.T) {
	const prompt = "def f():\n    retu"
	for _, tc := range []struct{ rest, fields, want string }{
		{"rn 1\n    x\n  yz", `"n_indent":4,"n_predict":100`, "rn 1\n    x\n  "},
		{"rn 1\n    x\n  ", `"n_indent":4,"n_predict":100`, "rn 1\n    x\n  "},
		{"rn 1\n    x\n  yz", `"n_predict":100`, "rn 1\n    x\n  yz"},
		{"rn 1\n    x\n\tyz", `"n_indent":1,"n_predict":100`, "rn 1\n    x\n\tyz"},
	} {
		r := newRelayRig(t, nil)
		r.server.Toy = backendtest.NewToy(backendtest.Options{
			Vocab: r.tok.Vocab(), Scripts: [][]vocab.ID{r.tok.Encode(nil, []byte(prompt+tc.rest))}, ContextLength: len(r.tok.Encode(nil, []byte(prompt+tc.rest))),
		})
		defer r.server.Toy.Close()
		a := r.send("POST", "/completion", `{"prompt":`+quoted(prompt)+`,"temperature":0,`+tc.fields+`}`)
		var got wire.Infill
		if err := json.Unmarshal(a.body, &got); err != nil || got.Content != tc.want || got.StopType != "limit" {
			t.Errorf("%q with %s: %s", tc.rest, tc.fields, a.body)
		}
	}
}

// slowServer answers nothing.
type slowServer struct{}

func (slowServer) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

// A model's time limit holds for whatever reaches its server.
func TestRelayModelTimeout(t *testing.T) {
	for _, tc := range []struct{ path, body string }{
		{"/v1/completions", `{"prompt":"a","unfray":{"heal":"off"}}`},
		{"/v1/completions", `{"prompt":{}}`},
		{"/v1/completions", `{"prompt":`},
		{"/tokenize", `{"content":"a"}`},
		{"/detokenize", `{"tokens":"a"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRelayRig(t, nil)
			up := &gateway.Upstream{Transport: slowServer{}}
			var err error
			r.gateway, err = gateway.New(gateway.Config{Models: []gateway.Model{{Name: "toy", Upstream: up, Native: true, Timeout: time.Second}}, Log: newLog(r.log)})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if a := r.send("POST", tc.path, tc.body); a.status != 504 || time.Since(start) != time.Second {
				t.Errorf("%s %s: %d %s after %s", tc.path, tc.body, a.status, a.body, time.Since(start))
			}
		})
	}
}

// Many settings inside one field are looked at once each.
func TestRelayManyUnread(t *testing.T) {
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, `"a%d":0,`, i)
	}
	r := newRelayRig(t, nil)
	start := time.Now()
	a := r.complete(`{"prompt":"The capital of France is Pa","temperature":0,"max_tokens":4,"stream":true,"stream_options":{` + b.String() + `"include_usage":true}}`)
	if took := time.Since(start); a.status != 200 || len(r.up.bodies) > 0 || took > 20*time.Second {
		t.Errorf("%d after %s", a.status, took)
	}
}

// Passing requests on without a look at them changes nothing for those that ask
// for healing, however they spell it, and opens no mode that is not allowed.
func TestRelayOffIsLookedInto(t *testing.T) {
	off := func(m *gateway.Model) { m.Heal = heal.Off }
	r := newRelayRig(t, off)
	a := r.complete(`{"prompt":"The capital of France is Pa","temperature":0,"max_tokens":4,"\u0075nfra\u0079":{"heal":"stable"}}`)
	if len(r.up.bodies) > 0 || !strings.Contains(string(a.body), "tokens_removed") {
		t.Errorf("an escaped name: %d %s", a.status, a.body)
	}
	r = newRelayRig(t, func(m *gateway.Model) { m.AllowedHeal = []heal.Mode{heal.Stable} })
	for range 2 {
		if a := r.complete(`{"prompt":"a b"}`, "X-Unfray-Heal", "off"); a.status != 400 || len(r.up.bodies) > 0 {
			t.Errorf("a mode that is not allowed: %d %s", a.status, a.body)
		}
	}
}

func TestRelayOtherModels(t *testing.T) {
	for _, path := range []string{"/tokenize", "/detokenize", "/v1/completions"} {
		r := newRelayRig(t, nil)
		const body = `{"model":"other","content":"a","tokens":[1],"prompt":"a"}`
		a := r.send("POST", path, body)
		if note := a.header.Get("X-Unfray-Note"); !slices.Equal(r.up.bodies, []string{body}) || note != "" {
			t.Errorf("%s: %q; the upstream got %q", path, note, r.up.bodies)
		}
	}
	// What is not known of a model is left out.
	r := newRelayRig(t, func(m *gateway.Model) { m.Model, m.Chat, m.UpstreamName = nil, nil, "org/toy" })
	if a := r.send("GET", "/v1/models", ""); !strings.Contains(string(a.body), `"id":"toy"`) || strings.Contains(string(a.body), "max_model_len") {
		t.Errorf("%s", a.body)
	}
}

// llama.cpp's server answers a message to continue with all of it, except in a
// stream; vLLM with what it has added.
func TestRelayContinuedMessage(t *testing.T) {
	for _, tc := range []struct {
		native bool
		more   string
		want   string
	}{
		{true, ``, `"content":"Paris`},
		{true, `,"stream":true`, `"content":"ris`},
		{false, ``, `"content":"ris`},
	} {
		r := newRelayRig(t, func(m *gateway.Model) { m.Native = tc.native })
		a := r.chat(`{"temperature":0,"max_tokens":4,"continue_final_message":true,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"Pa"}]` + tc.more + `}`)
		if !strings.Contains(string(a.body), tc.want) || len(r.up.bodies) > 0 {
			t.Errorf("native: %v%s: %s", tc.native, tc.more, a.body)
		}
	}
}
