package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// TestMain fails if anything that a request started outlives all tests.
func TestMain(m *testing.M) {
	code := m.Run()
	deadline := time.Now().Add(5 * time.Second)
	for {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		leaked := ""
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(stack, "(*generation).work") || strings.Contains(stack, "(*toyStream).run") ||
				strings.Contains(stack, "(*Gateway).ServeHTTP") {
				leaked += stack + "\n\n"
			}
		}
		if leaked == "" {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s", leaked)
			code = 1
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	os.Exit(code)
}

// chatML is the template of SmolLM2 without its default system message.
const chatML = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}" +
	"{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

// rig is a gateway over a toy model.
type rig struct {
	toy     *backendtest.Toy
	tok     *tokenizer.Tokenizer
	gateway *gateway.Gateway
	log     *bytes.Buffer
}

// rigOptions configure a rig. Scripts are texts that the model knows by heart,
// in their own tokenization.
type rigOptions struct {
	toy     backendtest.Options
	vocab   backendtest.VocabularyOptions
	scripts []string
	cfg     gateway.Config
}

func newTokenizer(t testing.TB, o backendtest.VocabularyOptions) *tokenizer.Tokenizer {
	t.Helper()
	return tokenizertest.Open(t, backendtest.GGUF(o))
}

func newRig(t testing.TB, o rigOptions) *rig {
	t.Helper()
	r := &rig{tok: newTokenizer(t, o.vocab), log: &bytes.Buffer{}}
	o.toy.Vocab = r.tok.Vocab()
	if o.toy.ChatTemplate == "" {
		o.toy.ChatTemplate = chatML
	}
	for _, s := range o.scripts {
		o.toy.Scripts = append(o.toy.Scripts, r.tok.EncodeSpecial([]vocab.ID{}, []byte(s)))
	}
	r.toy = backendtest.NewToy(o.toy)
	t.Cleanup(func() { r.toy.Close() })
	m, err := unfray.NewModel(r.toy, r.tok)
	if err != nil {
		t.Fatal(err)
	}
	if o.cfg.Models == nil {
		o.cfg.Models = []gateway.Model{{}}
	}
	for i := range o.cfg.Models {
		o.cfg.Models[i].Model = m
	}
	o.cfg.Log = newLog(r.log)
	if r.gateway, err = gateway.New(o.cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send passes a request to the gateway without a network.
func (r *rig) send(method, path, body string, headers ...string) *answer {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	r.gateway.ServeHTTP(w, req)
	return &answer{w.Code, w.Header(), w.Body.Bytes()}
}

func (r *rig) complete(body string, headers ...string) *answer {
	return r.send("POST", "/v1/completions", body, headers...)
}

func (r *rig) chat(body string, headers ...string) *answer {
	return r.send("POST", "/v1/chat/completions", body, headers...)
}

// completion is a decoded answer or chunk of either endpoint.
type completion struct {
	ID      string
	Object  string
	Model   string
	Choices []choice
	Usage   *wire.Usage
	Unfray  *report
}

type choice struct {
	Text     string
	Index    int
	Bytes    []byte
	Message  *struct{ Role, Content string }
	Delta    *struct{ Role, Content string }
	Logprobs *struct {
		Tokens        []string             `json:"tokens"`
		TokenLogprobs []float64            `json:"token_logprobs"`
		TopLogprobs   []map[string]float64 `json:"top_logprobs"`
		TextOffset    []int                `json:"text_offset"`
		Content       []chatToken
	}
	FinishReason *string `json:"finish_reason"`
	Unfray       *report
}

type chatToken struct {
	Token       string
	Logprob     float64
	Bytes       []int
	TopLogprobs []chatToken `json:"top_logprobs"`
}

type report struct {
	Healing *unfray.Healing
}

func (a *answer) decode(t *testing.T) *completion {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	var c completion
	if err := json.Unmarshal(a.body, &c); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return &c
}

// chunks decodes an event stream, which must end in [DONE].
func (a *answer) chunks(t *testing.T) []*completion {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	var out []*completion
	events := wire.NewEventReader(bytes.NewReader(a.body))
	done := false
	for {
		e, err := events.Next()
		if err == io.EOF {
			break
		}
		if err != nil || done {
			t.Fatalf("%v, or an event after [DONE], in %s", err, a.body)
		}
		if string(e.Data) == wire.Done {
			done = true
			continue
		}
		var c completion
		if err := json.Unmarshal(e.Data, &c); err != nil {
			t.Fatalf("%v in %s", err, e.Data)
		}
		out = append(out, &c)
	}
	if !done {
		t.Fatalf("no [DONE] in %s", a.body)
	}
	return out
}

// joined puts the chunks of a stream together as one answer.
func joined(chunks []*completion) *completion {
	all := &completion{}
	at := map[int]int{}
	for _, c := range chunks {
		for _, ch := range c.Choices {
			i, known := at[ch.Index]
			if !known {
				i = len(all.Choices)
				at[ch.Index] = i
				all.Choices = append(all.Choices, ch)
				continue
			}
			to := &all.Choices[i]
			to.Text += ch.Text
			if ch.Delta != nil {
				to.Delta.Content += ch.Delta.Content
			}
			if ch.FinishReason != nil {
				to.FinishReason = ch.FinishReason
			}
			if ch.Unfray != nil {
				to.Unfray = ch.Unfray
			}
			if l := ch.Logprobs; l != nil {
				if to.Logprobs == nil {
					to.Logprobs = l
					continue
				}
				to.Logprobs.Tokens = append(to.Logprobs.Tokens, l.Tokens...)
				to.Logprobs.TokenLogprobs = append(to.Logprobs.TokenLogprobs, l.TokenLogprobs...)
				to.Logprobs.TopLogprobs = append(to.Logprobs.TopLogprobs, l.TopLogprobs...)
				to.Logprobs.TextOffset = append(to.Logprobs.TextOffset, l.TextOffset...)
				to.Logprobs.Content = append(to.Logprobs.Content, l.Content...)
			}
		}
		if c.Usage != nil {
			all.Usage = c.Usage
		}
		if c.Unfray != nil {
			all.Unfray = c.Unfray
		}
	}
	return all
}

// apiError decodes an error object.
func (a *answer) apiError(t *testing.T) wire.Error {
	t.Helper()
	var e wire.ErrorBody
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
		t.Fatalf("status %d, no error object (%v): %s", a.status, err, a.body)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	return e.Error
}

func text(p *string) string {
	if p == nil {
		return "null"
	}
	return *p
}

// quote writes s as a JSON string.
func quote(s string) string {
	b, err := wire.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// waitFor polls until ok, for what other goroutines do.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s did not happen", what)
}

func TestNewRefuses(t *testing.T) {
	r := newRig(t, rigOptions{})
	m, err := unfray.NewModel(r.toy, r.tok)
	if err != nil {
		t.Fatal(err)
	}
	for name, models := range map[string][]gateway.Model{
		"no model":       nil,
		"empty model":    {{Name: "x"}},
		"same name":      {{Name: "x", Model: m}, {Name: "x", Model: m}},
		"unknown mode":   {{Model: m, Heal: "sometimes"}},
		"unknown allow":  {{Model: m, AllowedHeal: []heal.Mode{"sometimes"}}},
		"same as itself": {{Model: m}, {Name: "toy", Model: m}},
	} {
		if _, err := gateway.New(gateway.Config{Models: models}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestModels(t *testing.T) {
	r := newRig(t, rigOptions{cfg: gateway.Config{Models: []gateway.Model{{Name: "org/one"}, {Name: "two"}}}})
	var list wire.ModelList
	if err := json.Unmarshal(r.send("GET", "/v1/models", "").body, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Data) != 2 || list.Object != "list" || list.Data[0].ID != "org/one" || list.Data[1].ID != "two" {
		t.Errorf("%+v", list)
	}
	var one wire.Model
	if err := json.Unmarshal(r.send("GET", "/v1/models/org/one", "").body, &one); err != nil {
		t.Fatal(err)
	}
	if want := (wire.Model{ID: "org/one", Object: "model", Created: 1700000000, OwnedBy: "unfray", MaxModelLen: 2048, Description: "toy model for tests"}); one != want {
		t.Errorf("got %+v, want %+v", one, want)
	}
	if a := r.send("GET", "/v1/models/three", ""); a.status != 404 || text(a.apiError(t).Code) != "model_not_found" {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	// Several models: which one must be said.
	for _, c := range []struct {
		model  string
		status int
	}{{`"two"`, 200}, {`"org/one"`, 200}, {`"three"`, 404}, {`""`, 400}, {`null`, 400}} {
		if a := r.complete(`{"prompt":"Hello","model":` + c.model + `}`); a.status != c.status {
			t.Errorf("model %s: status %d, want %d", c.model, a.status, c.status)
		} else if c.status != 200 && text(a.apiError(t).Param) != "model" {
			t.Errorf("model %s: %s", c.model, a.body)
		}
	}
}

func TestRoutes(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/healthz", 200, ""},
		{"HEAD", "/healthz", 200, ""},
		{"GET", "/readyz", 200, ""},
		{"POST", "/healthz", 405, "GET, HEAD, OPTIONS"},
		{"GET", "/v1/completions", 405, "POST, OPTIONS"},
		{"DELETE", "/v1/chat/completions", 405, "POST, OPTIONS"},
		{"PUT", "/v1/models", 405, "GET, HEAD, OPTIONS"},
		{"OPTIONS", "/v1/completions", 204, "POST, OPTIONS"},
		{"OPTIONS", "/v1/models", 204, "GET, HEAD, OPTIONS"},
		{"GET", "/", 404, ""},
		{"POST", "/v1/completion", 404, ""},
		{"GET", "/v1/models/", 404, ""},
		{"OPTIONS", "/nowhere", 404, ""},
	} {
		a := r.send(c.method, c.path, "")
		if a.status != c.status || a.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: status %d, Allow %q; want %d, %q", c.method, c.path, a.status, a.header.Get("Allow"), c.status, c.allow)
		}
		if c.status >= 400 {
			a.apiError(t)
		}
		if a.header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: no X-Request-Id", c.method, c.path)
		}
	}
}

func TestLogHoldsNoPrompt(t *testing.T) {
	const secret = "Hello secret-of-the-client"
	r := newRig(t, rigOptions{})
	r.complete(`{"prompt":` + quote(secret) + `,"max_tokens":2}`)
	r.complete(`{"prompt":` + quote(secret) + `,"max_tokens":0}`)
	r.complete(`{"prompt":[` + quote(secret) + `,1]}`)
	r.chat(`{"messages":[{"role":"user","content":` + quote(secret) + `}],"max_tokens":2}`)
	r.chat(`{"messages":[{"role":"user","content":` + quote(secret))
	if log := r.log.String(); strings.Contains(log, "secret") || strings.Count(log, "msg=request") != 5 {
		t.Errorf("log: %s", log)
	}
	r = newRig(t, rigOptions{cfg: gateway.Config{LogPrompts: true}})
	r.complete(`{"prompt":` + quote(secret) + `,"max_tokens":2}`)
	if !strings.Contains(r.log.String(), secret) {
		t.Errorf("LogPrompts is on; log: %s", r.log)
	}
}
