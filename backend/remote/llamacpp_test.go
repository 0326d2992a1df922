package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/vocab"
)

// llamaFake is a llama.cpp server that answers each /completion with the next
// of a script, and notes what it was asked.
type llamaFake struct {
	mu     sync.Mutex
	script []http.HandlerFunc
	asked  []map[string]json.RawMessage
}

func (f *llamaFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]json.RawMessage
	json.NewDecoder(r.Body).Decode(&body)
	f.mu.Lock()
	f.asked = append(f.asked, body)
	var next http.HandlerFunc
	if len(f.script) > 0 {
		next, f.script = f.script[0], f.script[1:]
	}
	f.mu.Unlock()
	if next == nil {
		http.Error(w, "the script is over", http.StatusTeapot)
		return
	}
	next(w, r)
}

// scripted returns a backend of the toy vocabulary on such a server.
func scripted(t testing.TB, script ...http.HandlerFunc) (*LlamaCpp, *llamaFake) {
	t.Helper()
	f := &llamaFake{script: script}
	c := testClient(t, f.ServeHTTP)
	b := &LlamaCpp{server{client: c, vocab: backendtest.Vocabulary(backendtest.VocabularyOptions{})}}
	b.engine = &llamaEngine{s: &b.server, model: quote("toy"), literals: true, letter: letterOf(b.vocab)}
	b.info = backend.Info{Name: "toy", ContextLength: 100, VocabSize: b.vocab.Len()}
	b.info.Capabilities = backend.Capabilities{Replay: true, Logprobs: true, Choose: true, ChoosePlain: true}
	b.inspection.IDPrompts, b.inspection.IDsBack = true, true
	return b, f
}

func (b *LlamaCpp) id(t testing.TB, text string) vocab.ID {
	id, ok := b.vocab.Lookup([]byte(text))
	if !ok {
		t.Fatalf("no token %q", text)
	}
	return id
}

// part is a message of a stream.
func part(predicted int, content string, ids ...vocab.ID) string {
	m, _ := json.Marshal(map[string]any{"content": content, "tokens": ids, "stop": false, "tokens_predicted": predicted, "timings": map[string]int{"cache_n": 3}})
	return "data: " + string(m) + "\n\n"
}

func final(predicted int, stop string) string {
	return fmt.Sprintf("data: {\"content\":\"\",\"tokens\":[],\"stop\":true,\"stop_type\":%q,\"tokens_predicted\":%d,\"id_slot\":2}\n\n", stop, predicted)
}

func stream(parts ...string) http.HandlerFunc {
	return answer(200, eventType, strings.Join(parts, ""))
}

func whole(ids ...vocab.ID) http.HandlerFunc {
	m, _ := json.Marshal(map[string]any{"tokens": ids, "stop_type": "limit", "id_slot": 2})
	return answer(200, jsonType, string(m))
}

func run(t *testing.T, b *LlamaCpp, req *backend.Request) (ids []vocab.ID, end backend.End, err error) {
	t.Helper()
	s, err := b.Generate(t.Context(), req)
	if err != nil {
		return nil, end, err
	}
	defer s.Close()
	for {
		tok, err := s.Next()
		if err == io.EOF {
			return ids, s.End(), nil
		}
		if err != nil {
			return ids, s.End(), err
		}
		ids = append(ids, tok.ID)
	}
}

// The server leaves out the IDs of tokens that end inside a character. They are
// found again.
func TestLlamaLostTokens(t *testing.T) {
	b, _ := scripted(t)
	a, f0, f09f, f09f99 := b.id(t, "a"), b.id(t, "\xf0"), b.id(t, "\xf0\x9f"), b.id(t, "\xf0\x9f\x99")
	b82, b9f, b99, e6 := b.id(t, "\x82"), b.id(t, "\x9f"), b.id(t, "\x99"), b.id(t, "\xe6")
	for _, tt := range []struct {
		name   string
		script []http.HandlerFunc
		want   []vocab.ID // nil: a ProtocolError
	}{
		{"one way", []http.HandlerFunc{stream(part(1, "a", a), part(3, "🙂", b82), part(4, "a", a), final(4, "limit"))}, []vocab.ID{a, f09f99, b82, a}},
		{"three, one way", []http.HandlerFunc{stream(part(4, "🙂", b82), final(4, "limit"))}, []vocab.ID{f0, b9f, b99, b82}},
		{"two, one way", []http.HandlerFunc{stream(part(3, "🙂", b82), part(4, "a", a), final(4, "limit"))}, []vocab.ID{f09f, b99, b82, a}},
		{"no way", []http.HandlerFunc{stream(part(7, "🙂", b82), final(7, "limit")), whole(f0, b9f, b99)}, []vocab.ID{f0, b9f, b99, b82}},
		{"no character, told another text", []http.HandlerFunc{stream(part(2, "\ufffda", a), final(2, "limit")), whole(a)}, nil},
		{"no character", []http.HandlerFunc{stream(part(2, "\ufffda", a), part(4, "aa", a, a), final(4, "limit")), whole(e6)}, []vocab.ID{e6, a, a, a}},
		{"counted ahead", []http.HandlerFunc{stream(part(2, "a", a), part(2, "a", a), part(4, "a", a), part(4, "a", a), final(4, "limit"))}, []vocab.ID{a, a, a, a}},
		{"at the end", []http.HandlerFunc{stream(part(1, "a", a), final(3, "limit")), whole(f0, b9f)}, []vocab.ID{a, f0, b9f}},
		{"far too many", []http.HandlerFunc{stream(part(1000, "🙂", b82), final(1000, "limit"))}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, f := scripted(t, tt.script...)
			ids, end, err := run(t, b, &backend.Request{Prompt: []vocab.ID{5, 6}, MaxTokens: 4})
			if tt.want == nil {
				if kind(err) != "protocol" {
					t.Errorf("%v, %v", ids, err)
				}
				return
			}
			if n := min(len(tt.want), 4); err != nil || !slices.Equal(ids, tt.want[:n]) {
				t.Errorf("%v, %v; want %v", ids, err, tt.want)
			}
			if end.Requests != len(f.asked) {
				t.Errorf("End counts %d requests, %d were sent", end.Requests, len(f.asked))
			}
		})
	}
}

func TestLlamaBadAnswers(t *testing.T) {
	b, _ := scripted(t)
	a := b.id(t, "a")
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		want string
	}{
		{"token out of the vocabulary", stream(part(1, "a", vocab.ID(b.vocab.Len()))), "protocol"},
		{"negative token", stream(part(1, "a", -7)), "protocol"},
		{"ends without a word", stream(part(1, "a", a)), "protocol"},
		{"ends for no reason", stream(part(1, "a", a), final(1, "none")), "protocol"},
		{"no JSON", stream("data: {\"content\"\n\n"), "protocol"},
		{"another shape", stream("data: {\"tokens\": \"x\"}\n\n"), "protocol"},
		{"an array", stream("data: [1]\n\n"), "protocol"},
		{"dies", die(eventType, part(1, "a", a)+"data: {"), "protocol"},
		{"error frame", stream(part(1, "a", a), "data: {\"error\":{\"code\":500,\"message\":\"x\"}}\n\n"), "upstream 500"},
		{"refusal", answer(400, jsonType, `{"error":{"code":400}}`), "upstream 400"},
		{"busy", answer(503, jsonType, `{"error":{"code":503}}`), "upstream 503"},
		{"plain JSON", whole(a), "protocol"},
	} {
		b, _ := scripted(t, tt.h)
		if ids, _, err := run(t, b, &backend.Request{Prompt: []vocab.ID{5}, MaxTokens: 5}); kind(err) != tt.want {
			t.Errorf("%s: %v, %s: %v; want %s", tt.name, ids, kind(err), err, tt.want)
		}
		if len(b.running) != 0 {
			t.Errorf("%s: a generation is still known", tt.name)
		}
	}
}

// hang answers nothing, or a beginning, until it is given up.
func hang(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if len(parts) > 0 {
			w.Header().Set("Content-Type", eventType)
			io.WriteString(w, strings.Join(parts, ""))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

// Whatever a generation waits for, canceling it and closing the backend end it at
// once, and leave nothing behind.
func TestLlamaCancel(t *testing.T) {
	b, _ := scripted(t)
	a := b.id(t, "a")
	choice := func() backend.Request {
		return backend.Request{Keep: 1, Choose: &pairlessChooser{ids: []vocab.ID{a, 60}}}
	}
	replay := func() backend.Request { return backend.Request{Replay: &backend.Replay{Pending: []byte("\x99\x82")}} }
	for _, tt := range []struct {
		name   string
		req    func() backend.Request
		script []http.HandlerFunc
	}{
		{"before headers", func() backend.Request { return backend.Request{} }, []http.HandlerFunc{hang()}},
		{"before the first event", func() backend.Request { return backend.Request{} }, []http.HandlerFunc{hang(": x\n\n")}},
		{"between events", func() backend.Request { return backend.Request{} }, []http.HandlerFunc{hang(part(1, "a", a))}},
		{"inside an event", func() backend.Request { return backend.Request{} }, []http.HandlerFunc{hang(part(1, "a", a), "data: {")}},
		{"at the first row", choice, []http.HandlerFunc{hang()}},
		{"at a row in detail", choice, []http.HandlerFunc{rowOf(70, 71), hang()}},
		{"after a choice", choice, []http.HandlerFunc{rowOf(a, 60), hang()}},
		{"at the first step", replay, []http.HandlerFunc{hang()}},
		{"at a later step", replay, []http.HandlerFunc{whole(b.id(t, "\x99")), hang()}},
		{"at lost tokens", func() backend.Request { return backend.Request{} }, []http.HandlerFunc{stream(part(2, "\ufffda", a)), hang()}},
	} {
		for _, closing := range []bool{false, true} {
			b, _ := scripted(t, tt.script...)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Millisecond, func() {
				if closing {
					b.Close()
				} else {
					cancel()
				}
			})
			req := tt.req()
			req.Prompt, req.MaxTokens = []vocab.ID{5, 6}, 20
			s, err := b.Generate(ctx, &req)
			for err == nil {
				_, err = s.Next()
			}
			if s != nil {
				s.Close()
			}
			if want := map[bool]error{false: context.Canceled, true: backend.ErrClosed}[closing]; !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", tt.name, err, want)
			}
			if len(b.running) != 0 {
				t.Errorf("%s: a generation is still known", tt.name)
			}
			cancel()
			b.client.transport.(*http.Transport).CloseIdleConnections()
		}
	}
	// What is left are the test servers' own.
	until(t, "no goroutine waits for an answer", func() bool {
		stacks := make([]byte, 4<<20)
		text := string(stacks[:runtime.Stack(stacks, true)])
		return !strings.Contains(text, "http.(*persistConn)") && !strings.Contains(text, "remote.(*generation)")
	})
}

func TestLlamaEnd(t *testing.T) {
	b, _ := scripted(t)
	a := b.id(t, "a")
	for _, tt := range []struct {
		name   string
		h      http.HandlerFunc
		max    int
		reason backend.FinishReason
		token  vocab.ID
		n      int
	}{
		{"end token", stream(part(1, "a", a), part(2, "", backendtest.IMEnd), final(2, "eos")), 9, backend.FinishStop, backendtest.IMEnd, 1},
		{"first of all", stream(part(1, "", backendtest.EndOfText), final(1, "eos")), 9, backend.FinishStop, backendtest.EndOfText, 0},
		{"limit", stream(part(1, "a", a), part(2, "a", a), final(2, "limit")), 2, backend.FinishLength, vocab.None, 2},
		{"silently shortened", stream(part(1, "a", a), final(1, "limit")), 9, backend.FinishLength, vocab.None, 1},
	} {
		b, f := scripted(t, tt.h)
		ids, end, err := run(t, b, &backend.Request{Prompt: []vocab.ID{5}, MaxTokens: tt.max})
		if err != nil || len(ids) != tt.n || end.Reason != tt.reason || end.EndToken != tt.token {
			t.Errorf("%s: %v, %+v, %v", tt.name, ids, end, err)
		}
		if len(ids) > 0 && end.CachedTokens != 3 {
			t.Errorf("%s: %d tokens cached, the server said 3", tt.name, end.CachedTokens)
		}
		if len(f.asked) != 1 || end.Requests != 1 {
			t.Errorf("%s: %d requests", tt.name, len(f.asked))
		}
	}
}

// What a client says in the server's own words goes there as it is, but for what
// is not its to say.
func TestLlamaFields(t *testing.T) {
	b, f := scripted(t, stream(final(0, "limit")))
	seed := uint64(1<<32 + 5)
	_, _, err := run(t, b, &backend.Request{
		Prompt: []vocab.ID{5, 7}, MaxTokens: 6, Sampling: backend.Sampling{Temperature: 9, Seed: &seed},
		Fields: map[string]json.RawMessage{
			"temperature": json.RawMessage("0.25"), "dry_multiplier": json.RawMessage("0.5"), "made_up": json.RawMessage(`{"x":[1]}`),
			"stop": json.RawMessage(`["x"]`), "n": json.RawMessage("3"), "stream": json.RawMessage("false"), "seed": json.RawMessage("9"),
			"prompt": json.RawMessage(`"other"`), "n_predict": json.RawMessage("1"), "cache_prompt": json.RawMessage("false"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"temperature": "0.25", "dry_multiplier": "0.5", "made_up": `{"x":[1]}`, "seed": "5", "prompt": "[5,7]", "n_predict": "6",
		"stream": "true", "cache_prompt": "false", "model": `"toy"`, "return_tokens": "true",
	}
	for name, value := range want {
		if got := string(f.asked[0][name]); got != value {
			t.Errorf("%s is %s, want %s", name, got, value)
		}
	}
	for _, name := range []string{"stop", "n", "top_k", "samplers"} {
		if got, there := f.asked[0][name]; there {
			t.Errorf("%s was sent: %s", name, got)
		}
	}
}

func TestLlamaBias(t *testing.T) {
	field := func(s string) *backend.Request {
		return &backend.Request{Fields: map[string]json.RawMessage{"logit_bias": json.RawMessage(s)}}
	}
	for _, tt := range []struct {
		req  *backend.Request
		want string
	}{
		{&backend.Request{Sampling: backend.Sampling{LogitBias: map[vocab.ID]float64{7: 1.5, 3: -100}}}, `[[3,-100],[7,1.5]]`},
		{field(`[[5,false],["x",2]]`), `[[5,false],["x",2]]`},
		{field(`{"9": -1, "text": 2}`), `[[9,-1],["text",2]]`},
		{field(`3`), `[]`},
		{field(``), `[]`},
	} {
		if got := string(rawList(llamaBias(tt.req))); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

// A step favors what is allowed, or bans the rest where a setting looks at how
// large logits are.
func TestLlamaStep(t *testing.T) {
	pending := []byte("\x99\x82") // begins inside a character: no grammar can say it
	for _, s := range []backend.Sampling{{}, {RepeatPenalty: 1.3}} {
		b, f := scripted(t)
		b99, b82, a := b.id(t, "\x99"), b.id(t, "\x82"), b.id(t, "a")
		f.script = []http.HandlerFunc{whole(b99), whole(b82), stream(part(1, "a", a), final(1, "limit"))}
		ids, end, err := run(t, b, &backend.Request{Prompt: []vocab.ID{5}, MaxTokens: 3, Sampling: s, Replay: &backend.Replay{Pending: pending}})
		if err != nil || !slices.Equal(ids, []vocab.ID{b99, b82, a}) || end.Requests != 3 {
			t.Fatalf("%v, %+v, %v", ids, end, err)
		}
		var pairs [][2]any
		json.Unmarshal(f.asked[0]["logit_bias"], &pairs)
		if banned := s.RepeatPenalty != 0; banned && len(pairs) != b.vocab.Len()-1 || !banned && len(pairs) != 1 {
			t.Errorf("%+v: %d biases", s, len(pairs))
		}
		if _, there := f.asked[2]["logit_bias"]; there || f.asked[2]["grammar"] != nil {
			t.Errorf("%+v: what follows the replay is constrained: %s", s, f.asked[2])
		}
	}
	b, f := scripted(t)
	f.script = []http.HandlerFunc{whole(b.id(t, "a"))}
	if _, _, err := run(t, b, &backend.Request{Prompt: []vocab.ID{5}, Replay: &backend.Replay{Pending: pending}}); kind(err) != "protocol" {
		t.Errorf("a token outside the mask: %v", err)
	}
}

// rowOf answers with the log-probabilities of tokens, the likeliest first.
func rowOf(ids ...vocab.ID) http.HandlerFunc {
	var top []map[string]any
	for i, id := range ids {
		top = append(top, map[string]any{"id": id, "logprob": -0.5 - float64(i)})
	}
	probs := []any{map[string]any{"id": ids[0], "logprob": -0.5, "top_logprobs": top}}
	m, _ := json.Marshal(map[string]any{"tokens": ids[:1], "completion_probabilities": probs, "id_slot": 2, "timings": map[string]int{"cache_n": 7}})
	return answer(200, jsonType, string(m))
}

// What follows a choice goes to the slot that has its beginning.
func TestLlamaChoice(t *testing.T) {
	b, f := scripted(t)
	a := b.id(t, "a")
	f.script = []http.HandlerFunc{rowOf(a, 70), stream(part(1, "a", a), final(1, "limit"))}
	ch := &pairlessChooser{ids: []vocab.ID{60, 70}}
	ids, end, err := run(t, b, &backend.Request{Prompt: []vocab.ID{5, 6}, Keep: 1, Choose: ch, MaxTokens: 2})
	if err != nil || !slices.Equal(ids, []vocab.ID{70, a}) || end.Requests != 2 || end.CachedTokens != 7 {
		t.Fatalf("%v, %+v, %v", ids, end, err)
	}
	if string(f.asked[0]["prompt"]) != "[5]" || f.asked[0]["id_slot"] != nil {
		t.Errorf("first %s", f.asked[0])
	}
	if string(f.asked[1]["prompt"]) != "[5,70]" || string(f.asked[1]["id_slot"]) != "2" {
		t.Errorf("then %s", f.asked[1])
	}
	// 60 is not among the values that came: nothing says that it is less likely
	// than 70 until more of the row is known.
	b, f = scripted(t, rowOf(a, 80), rowOf(a, 80, 70, 60), stream(part(1, "a", a), final(1, "limit")))
	ids, end, err = run(t, b, &backend.Request{Prompt: []vocab.ID{5, 6}, Keep: 1, Choose: ch, MaxTokens: 2})
	if err != nil || !slices.Equal(ids, []vocab.ID{70, a}) || end.Requests != 3 {
		t.Fatalf("%v, %+v, %v", ids, end, err)
	}
	var n [2]int
	json.Unmarshal(f.asked[0]["n_probs"], &n[0])
	json.Unmarshal(f.asked[1]["n_probs"], &n[1])
	if n[1] < n[0] {
		t.Errorf("asked for %d values, then for %d", n[0], n[1])
	}
}

// pairlessChooser takes the likeliest of a few tokens.
type pairlessChooser struct {
	ids  []vocab.ID
	best vocab.ID
}

func (c *pairlessChooser) Reset()                          {}
func (c *pairlessChooser) Matters([]vocab.ID) []vocab.ID   { return slices.Clone(c.ids) }
func (c *pairlessChooser) Row(p []vocab.ID, row []float32) { c.Part(p, row) }
func (c *pairlessChooser) Part(_ []vocab.ID, row []float32) {
	c.best = c.ids[0]
	for _, id := range c.ids {
		if row[id] > row[c.best] {
			c.best = id
		}
	}
}
func (c *pairlessChooser) Next(*rand.Rand) ([]vocab.ID, bool, error) {
	return []vocab.ID{c.best}, true, nil
}

func TestLlamaRefuses(t *testing.T) {
	b, f := scripted(t)
	replay := &backend.Replay{Pending: []byte("x")}
	half := &backend.Replay{Pending: []byte("x\xc3")}
	gbnf := &backend.Grammar{Kind: backend.GBNF, Source: `root ::= "x"`}
	for name, req := range map[string]*backend.Request{
		"regex":                          {Grammar: &backend.Grammar{Kind: backend.Regex, Source: "x"}},
		"schema after a replay":          {Grammar: &backend.Grammar{Kind: backend.JSONSchema, Source: "{}"}, Replay: replay},
		"schema field after a replay":    {Fields: map[string]json.RawMessage{"json_schema": json.RawMessage("{}")}, Replay: replay},
		"grammar after half a character": {Grammar: gbnf, Replay: half},
		"grammar without root":           {Grammar: &backend.Grammar{Kind: backend.GBNF, Source: `r ::= "x"`}, Replay: replay},
		"grammar and choice":             {Grammar: gbnf, Choose: &fixedChooser{}, Keep: 1},
		"grammar field and choice":       {Fields: map[string]json.RawMessage{"grammar": quote(`root ::= "x"`)}, Choose: &fixedChooser{}, Keep: 1},
		"penalty and choice":             {Sampling: backend.Sampling{RepeatPenalty: 1.1}, Choose: &fixedChooser{}, Keep: 1},
		"penalty field and choice":       {Fields: map[string]json.RawMessage{"presence_penalty": json.RawMessage("1")}, Choose: &fixedChooser{}, Keep: 1},
		"response_format":                {Fields: map[string]json.RawMessage{"response_format": json.RawMessage(`{"type":"json_object"}`)}},
	} {
		req.Prompt = []vocab.ID{5, 6}
		_, err := b.Generate(t.Context(), req)
		var unsupported *backend.UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.Param == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("%d requests were sent", len(f.asked))
	}
}
