package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// read drains a stream.
func read(s backend.Stream) (ids []vocab.ID, err error) {
	defer s.Close()
	for {
		tok, err := s.Next()
		if errors.Is(err, io.EOF) {
			return ids, nil
		}
		if err != nil {
			return ids, err
		}
		ids = append(ids, tok.ID)
	}
}

func generate(t *testing.T, v *VLLM, req *backend.Request) ([]vocab.ID, backend.End, error) {
	t.Helper()
	s, err := v.Generate(t.Context(), req)
	if err != nil {
		return nil, backend.End{}, err
	}
	ids, err := read(s)
	return ids, s.End(), err
}

// otherTokenizer puts a token before every prompt, which the fake does not.
func otherTokenizer(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	return tokenizertest.Open(t, backendtest.GGUF(backendtest.VocabularyOptions{AddBOS: true}))
}

func TestOpenVLLM(t *testing.T) {
	var upstream *backend.UpstreamError
	var protocol *backend.ProtocolError
	var mismatch *MismatchError
	for _, tt := range []struct {
		name   string
		server func(*fakeVLLM)
		option func(*Options)
		check  func(v *VLLM, err error) bool
	}{
		{"as it is", nil, nil, func(v *VLLM, err error) bool {
			in := v.Inspection()
			return err == nil && v.info.Name == "toy" && v.info.ContextLength == 64 && in.Mask == maskLark && in.Logprobs == 20 && in.CacheReport && in.Tokenizer == "verified" &&
				v.info.Capabilities.Replay && v.info.Capabilities.Choose && v.info.Capabilities.ChoosePlain && len(in.Notes) == 0
		}},
		{"an adapter", nil, func(o *Options) { o.Model = "lora" }, func(v *VLLM, err error) bool {
			return err == nil && v.info.Name == "lora" && v.info.ContextLength == 64
		}},
		{"no such model", nil, func(o *Options) { o.Model = "other" }, func(_ *VLLM, err error) bool { return err != nil && strings.Contains(err.Error(), `no model "other"`) }},
		{"no models", func(f *fakeVLLM) { f.models = "[]" }, nil, func(_ *VLLM, err error) bool { return errors.As(err, &protocol) }},
		{"no context length", func(f *fakeVLLM) { f.models = `[{"id":"toy"}]` }, nil, func(_ *VLLM, err error) bool { return errors.As(err, &protocol) }},
		{"another server", func(f *fakeVLLM) { f.version = "" }, nil, func(_ *VLLM, err error) bool {
			return errors.As(err, &upstream) && upstream.Status == 404 && strings.Contains(string(upstream.Body), "Not Found")
		}},
		{"no grammars of token sets", func(f *fakeVLLM) { f.noLark = true }, nil, func(v *VLLM, err error) bool {
			in := v.Inspection()
			return err == nil && in.Mask == maskAllowed && in.MaskCap == 1024 && v.info.Capabilities.Replay && !v.info.Capabilities.Choose && len(in.Notes) == 2
		}},
		{"neither", func(f *fakeVLLM) { f.noLark, f.noList, f.patterns = true, true, false }, nil, func(v *VLLM, err error) bool {
			return err == nil && v.Inspection().Mask == "" && !v.info.Capabilities.Replay && !v.Inspection().IDsBack && !v.info.Capabilities.Logprobs
		}},
		{"patterns only", func(f *fakeVLLM) { f.noLark = true }, nil, func(v *VLLM, err error) bool {
			return err == nil && v.Inspection().Mask == maskAllowed && slices.Equal(v.Inspection().Grammars, []string{"regex", "json_schema"})
		}},
		{"too many requests", func(f *fakeVLLM) { f.status = 429 }, nil, func(_ *VLLM, err error) bool { return errors.As(err, &upstream) && upstream.Status == 429 }},
		{"all alternatives", func(f *fakeVLLM) { f.most = -1 }, nil, func(v *VLLM, err error) bool { return err == nil && v.Inspection().Logprobs == -1 }},
		{"no alternatives", func(f *fakeVLLM) { f.most = 0 }, nil, func(v *VLLM, err error) bool {
			return err == nil && !v.info.Capabilities.Logprobs && !v.info.Capabilities.Choose
		}},
		{"none by ID", func(f *fakeVLLM) { f.named = false }, nil, func(v *VLLM, err error) bool {
			return err == nil && !v.info.Capabilities.Choose && v.info.Capabilities.Replay
		}},
		{"another tokenizer", nil, func(o *Options) { o.Tokenizer = otherTokenizer(t) }, func(v *VLLM, err error) bool {
			_, refused := v.Generate(t.Context(), &backend.Request{Prompt: []vocab.ID{3}})
			return err == nil && errors.As(v.TokenizerError(), &mismatch) && !v.info.Capabilities.Replay && !v.info.Capabilities.Choose && errors.As(refused, &mismatch)
		}},
		{"no tokenizer", nil, func(o *Options) { o.Tokenizer = nil }, func(v *VLLM, err error) bool {
			_, refused := v.Generate(t.Context(), &backend.Request{Prompt: []vocab.ID{3}})
			return err == nil && v.Inspection().Tokenizer == "not given" && len(v.Inspection().Notes) == 1 && refused != nil
		}},
	} {
		f := newFakeVLLM(t)
		if tt.server != nil {
			tt.server(f)
		}
		v, err := f.open(tt.option)
		if !tt.check(v, err) {
			t.Errorf("%s: %v", tt.name, err)
			if v != nil {
				t.Logf("%+v", v.Inspection())
			}
		}
	}
}

// A request is what the client set, less what is set here, and then that.
func TestVLLMRequest(t *testing.T) {
	f := newFakeVLLM(t)
	f.tokens, f.finish = []vocab.ID{5}, "stop"
	v := f.mustOpen()
	seed := uint64(1<<63 + 5)
	for _, tt := range []struct {
		name string
		req  backend.Request
		want string
	}{
		{"zero settings are all said", backend.Request{}, `{"temperature":0,"top_k":0,"top_p":1,"min_p":0,"repetition_penalty":1,"frequency_penalty":0,"presence_penalty":0,"max_tokens":61}`},
		{"settings", backend.Request{MaxTokens: 4, Logprobs: true, TopLogprobs: 3, Sampling: backend.Sampling{Temperature: 0.5, TopK: 2, TopP: 0.9, MinP: 0.1, RepeatPenalty: 1.1, FrequencyPenalty: 1, PresencePenalty: -1, Seed: &seed, LogitBias: map[vocab.ID]float64{7: 1000, 8: math.Inf(-1)}}},
			`{"temperature":0.5,"top_k":2,"top_p":0.9,"min_p":0.1,"repetition_penalty":1.1,"frequency_penalty":1,"presence_penalty":-1,"seed":5,"logit_bias":{"7":100,"8":-100},"max_tokens":4,"logprobs":3}`},
		{"fields pass", backend.Request{MaxTokens: 4, Sampling: backend.Sampling{Temperature: 1, Seed: &seed}, Fields: fields(`{"temperature":0.25,"seed":3,"cache_salt":"s","priority":2,"unknown":{"b":[1]},"min_tokens":1,"response_format":{"type":"text"},
			"prompt":"x","max_tokens":99,"stream":false,"n":2,"stop":["a"],"echo":true,"logprobs":5,"request_id":"r","model":"other","messages":[],"best_of":3,"suffix":null}`)},
			`{"temperature":0.25,"seed":5,"cache_salt":"s","priority":2,"unknown":{"b":[1]},"min_tokens":1,"response_format":{"type":"text"},"max_tokens":4}`},
		{"an adapter's name passes", backend.Request{MaxTokens: 1, Fields: fields(`{"model":"lora"}`)}, `{"model":"lora","max_tokens":1}`},
		{"a grammar of the client's own", backend.Request{MaxTokens: 1, Fields: fields(`{"structured_outputs":{"regex":"a"}}`)}, `{"max_tokens":1,"structured_outputs":{"regex":"a"}}`},
		{"a grammar", backend.Request{MaxTokens: 1, Grammar: &backend.Grammar{Kind: backend.JSONSchema, Source: `{"b":1,"a":2}`}, Fields: fields(`{"response_format":{"type":"json_object"}}`)}, `{"max_tokens":1,"structured_outputs":{"json":{"b":1,"a":2}}}`},
	} {
		tt.req.Prompt = []vocab.ID{3, 4, 5}
		if _, _, err := generate(t, v, &tt.req); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		bodies := f.asked()
		var want map[string]any
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		for k, x := range map[string]any{"model": "toy", "prompt": []any{3.0, 4.0, 5.0}, "stream": true, "stream_options": map[string]any{"include_usage": true}, "return_token_ids": true, "return_tokens_as_token_ids": true} {
			if _, ok := want[k]; !ok {
				want[k] = x
			}
		}
		if got := bodies[len(bodies)-1]; !reflect.DeepEqual(got, want) {
			g, _ := json.Marshal(got)
			w, _ := json.Marshal(want)
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, g, w)
		}
	}
}

func fields(text string) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(err)
	}
	return m
}

// oneByte is a replay of one byte by two tokens.
func oneByte(v *vocab.Vocab) (*backend.Replay, vocab.ID) {
	id, _ := v.Lookup([]byte("T"))
	longer, _ := v.Lookup([]byte("The"))
	return &backend.Replay{Pending: []byte("T"), Ways: []backend.Way{{Path: []vocab.ID{id}}, {Rest: []byte("T"), Last: []vocab.ID{longer}}}}, id
}

func TestVLLMRefuses(t *testing.T) {
	f := newFakeVLLM(t)
	v := f.mustOpen()
	replay, _ := oneByte(v.vocab)
	half := &backend.Replay{Pending: []byte{0xf0}}
	json := &backend.Grammar{Kind: backend.JSONSchema, Source: "{}"}
	for _, tt := range []struct {
		param string
		req   backend.Request
	}{
		{"truncate_prompt_tokens", backend.Request{Fields: fields(`{"truncate_prompt_tokens":1}`)}},
		{"prompt_logprobs", backend.Request{Fields: fields(`{"prompt_logprobs":1}`)}},
		{"prompt_embeds", backend.Request{Fields: fields(`{"prompt_embeds":"x"}`)}},
		{"logprob_token_ids", backend.Request{Fields: fields(`{"logprob_token_ids":[1]}`)}},
		{"use_beam_search", backend.Request{Fields: fields(`{"use_beam_search":true}`)}},
		{"logprobs", backend.Request{Grammar: json, Logprobs: true}},
		{"allowed_token_ids", backend.Request{Replay: replay, Fields: fields(`{"allowed_token_ids":[1]}`)}},
		{"bad_words", backend.Request{Replay: replay, Fields: fields(`{"bad_words":["x"]}`)}},
		{"structured_outputs", backend.Request{Replay: replay, Fields: fields(`{"structured_outputs":{"regex":"x"}}`)}},
		{"response_format", backend.Request{Replay: replay, Fields: fields(`{"response_format":{"type":"json_object"}}`)}},
		{"grammar", backend.Request{Replay: half, Grammar: json}},
		{"grammar", backend.Request{Replay: replay, Grammar: &backend.Grammar{Kind: backend.GBNF, Source: "root ::= [a]"}}},
		{"grammar", backend.Request{Replay: replay, Grammar: &backend.Grammar{Kind: backend.JSONSchema, Source: "{"}}},
	} {
		tt.req.Prompt = []vocab.ID{3}
		var unsupported *backend.UnsupportedError
		if _, _, err := generate(t, v, &tt.req); !errors.As(err, &unsupported) || unsupported.Param != tt.param {
			t.Errorf("%s: %v", tt.param, err)
		}
	}
	if n := len(f.asked()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	// What says nothing passes.
	f.tokens, f.finish = []vocab.ID{3}, "length"
	req := &backend.Request{Prompt: []vocab.ID{3}, MaxTokens: 1, Fields: fields(`{"truncate_prompt_tokens":null,"use_beam_search":false,"bad_words":[],"prompt_logprobs":null}`)}
	if _, _, err := generate(t, v, req); err != nil {
		t.Error(err)
	}
}

// The text of an answer may hold the whole prompt or nothing. Tokens count.
func TestVLLMTextIsNotRead(t *testing.T) {
	f := newFakeVLLM(t)
	f.text = "the whole prompt and \ufffd"
	f.tokens, f.finish, f.cached = []vocab.ID{9, 8, 7}, "length", 2
	v := f.mustOpen()
	ids, end, err := generate(t, v, &backend.Request{Prompt: []vocab.ID{3, 4}, MaxTokens: 3})
	if err != nil || !slices.Equal(ids, []vocab.ID{9, 8, 7}) {
		t.Errorf("%v, %v", ids, err)
	}
	if end.Reason != backend.FinishLength || end.CachedTokens != 2 || end.Requests != 1 || end.EndToken != vocab.None {
		t.Errorf("end %+v", end)
	}
}

// A server that gives fewer tokens than asked for because the context is full
// says length.
func TestVLLMShortensSilently(t *testing.T) {
	f := newFakeVLLM(t)
	f.tokens, f.finish = []vocab.ID{9, 8}, "length"
	v := f.mustOpen()
	ids, end, err := generate(t, v, &backend.Request{Prompt: []vocab.ID{3}, MaxTokens: 10})
	if err != nil || len(ids) != 2 || end.Reason != backend.FinishLength || end.Requests != 1 {
		t.Errorf("%v, %+v, %v", ids, end, err)
	}
}

func TestVLLMEndTokens(t *testing.T) {
	for _, tt := range []struct {
		finish, stop string
		ids          string
		want         []vocab.ID
		end          backend.End
	}{
		{"stop", "null", "[7,2]", []vocab.ID{7}, backend.End{Reason: backend.FinishStop, EndToken: 2}},
		{"stop", "7", "[9,7]", []vocab.ID{9}, backend.End{Reason: backend.FinishStop, EndToken: 7}},
		{"stop", `"text"`, "[9,7]", []vocab.ID{9, 7}, backend.End{Reason: backend.FinishStop, EndToken: vocab.None}},
		{"stop", "null", "[]", nil, backend.End{Reason: backend.FinishStop, EndToken: vocab.None}},
		{"repetition", "null", "[9,7]", []vocab.ID{9, 7}, backend.End{Reason: backend.FinishStop, EndToken: vocab.None}},
		{"length", "null", "[9,7]", []vocab.ID{9, 7}, backend.End{Reason: backend.FinishLength, EndToken: vocab.None}},
	} {
		f := newFakeVLLM(t)
		f.stream = func(w http.ResponseWriter, _ map[string]any) {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"prompt_token_ids\":[3],\"token_ids\":%s,\"finish_reason\":%q,\"stop_reason\":%s}]}\n\ndata: [DONE]\n\n", tt.ids, tt.finish, tt.stop)
		}
		ids, end, err := generate(t, f.mustOpen(), &backend.Request{Prompt: []vocab.ID{3}})
		tt.end.Requests = 1
		if err != nil || !slices.Equal(ids, tt.want) || end != tt.end {
			t.Errorf("%s, %s, %s: %v, %+v, %v", tt.finish, tt.stop, tt.ids, ids, end, err)
		}
	}
}

const (
	firstEvent = `data: {"choices":[{"index":0,"text":"x","prompt_token_ids":[3],"token_ids":[7],"finish_reason":null}]}` + "\n\n"
	lastEvent  = `data: {"choices":[{"index":0,"text":"x","prompt_token_ids":null,"token_ids":[8],"finish_reason":"length"}]}` + "\n\n"
	doneEvent  = "data: [DONE]\n\n"
)

func TestVLLMBadStreams(t *testing.T) {
	const protocol, upstream = "protocol", "upstream"
	for _, tt := range []struct {
		name, body string
		tokens     int
		want       string // of the error; "": none
	}{
		{"a good one", firstEvent + lastEvent + doneEvent, 2, ""},
		{"without its end", firstEvent + lastEvent, 2, ""},
		{"a comment and CRLF", ": x\r\n\r\n" + strings.ReplaceAll(firstEvent+lastEvent+doneEvent, "\n", "\r\n"), 2, ""},
		{"an error in place of tokens", `data: {"error":{"message":"boom","code":500}}` + "\n\n" + doneEvent, 0, upstream},
		{"an error after tokens", firstEvent + `data: {"error":{"message":"boom","code":503}}` + "\n\n" + doneEvent, 1, upstream},
		{"no finish reason", firstEvent + doneEvent, 1, protocol},
		{"it breaks off between events", firstEvent, 1, protocol},
		{"half an event", firstEvent + lastEvent[:40], 1, protocol},
		{"nothing", "", 0, protocol},
		{"no JSON", "data: <html>\n\n", 0, protocol},
		{"two choices", `data: {"choices":[{"index":0,"prompt_token_ids":[3],"token_ids":[7]},{"index":1,"token_ids":[7]}]}` + "\n\n", 0, protocol},
		{"another choice", `data: {"choices":[{"index":1,"prompt_token_ids":[3],"token_ids":[7]}]}` + "\n\n", 0, protocol},
		{"no token IDs", `data: {"choices":[{"index":0,"text":"x","token_ids":null}]}` + "\n\n", 0, protocol},
		{"another prompt", `data: {"choices":[{"index":0,"prompt_token_ids":[4],"token_ids":[7]}]}` + "\n\n", 0, protocol},
		{"a shorter prompt", `data: {"choices":[{"index":0,"prompt_token_ids":[],"token_ids":[7]}]}` + "\n\n", 0, protocol},
		{"a token out of the vocabulary", strings.ReplaceAll(firstEvent, "[7]", "[70000]"), 0, protocol},
		{"a negative token", strings.ReplaceAll(firstEvent, "[7]", "[-1]"), 0, protocol},
		{"a token that is no number", strings.ReplaceAll(firstEvent, "[7]", `["x"]`), 0, protocol},
		{"a token beyond all numbers", strings.ReplaceAll(firstEvent, "[7]", "[99999999999]"), 0, protocol},
		{"given up", firstEvent + strings.ReplaceAll(lastEvent, "length", "abort"), 1, protocol},
		{"tokens after the end", firstEvent + lastEvent + lastEvent, 2, protocol},
		{"an endless event", firstEvent + "data: " + strings.Repeat("x", maxEvent+1), 1, protocol},
	} {
		f := newFakeVLLM(t)
		f.stream = func(w http.ResponseWriter, _ map[string]any) { io.WriteString(w, tt.body) }
		ids, _, err := generate(t, f.mustOpen(), &backend.Request{Prompt: []vocab.ID{3}})
		var p *backend.ProtocolError
		var u *backend.UpstreamError
		good := err == nil
		switch tt.want {
		case protocol:
			good = errors.As(err, &p)
		case upstream:
			good = errors.As(err, &u) && u.Status >= 500 && strings.Contains(string(u.Body), "boom")
		}
		if !good || len(ids) != tt.tokens {
			t.Errorf("%s: %d tokens, %v", tt.name, len(ids), err)
		}
	}
}

func TestVLLMDisconnect(t *testing.T) {
	f := newFakeVLLM(t)
	f.stream = func(w http.ResponseWriter, _ map[string]any) {
		io.WriteString(w, firstEvent)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	ids, _, err := generate(t, f.mustOpen(), &backend.Request{Prompt: []vocab.ID{3}})
	if err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || len(ids) != 1 {
		t.Errorf("a server that dies: %v, %v", ids, err)
	}

	left := make(chan struct{})
	blocked := newFakeVLLM(t)
	v := blocked.mustOpen()
	blocked.stream = func(w http.ResponseWriter, _ map[string]any) {
		io.WriteString(w, firstEvent)
		w.(http.Flusher).Flush()
		for {
			if _, err := io.WriteString(w, ": keep-alive\n\n"); err != nil {
				break
			}
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
		close(left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := v.Generate(ctx, &backend.Request{Prompt: []vocab.ID{3}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := s.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("Next after cancel: %v", err)
	}
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Error("the server was not left")
	}
}

func TestVLLMReplay(t *testing.T) {
	f := newFakeVLLM(t)
	v := f.mustOpen()
	replay, id := oneByte(v.vocab)
	f.tokens, f.finish, f.cached = []vocab.ID{id, 9, 8}, "length", 2
	f.row[id] = -7.5
	req := &backend.Request{Prompt: []vocab.ID{3, 4}, Replay: replay, MaxTokens: 2, Logprobs: true, TopLogprobs: 2, Steer: &uncounted{1}}
	s, err := v.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var got []backend.Token
	for {
		tok, err := s.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
		got = append(got, tok)
	}
	if len(got) != 3 || got[0].ID != id || got[0].Logprob != -7.5 || len(got[0].Top) != 2 || got[0].Top[0].ID != 0 {
		t.Errorf("%+v", got)
	}
	asked := f.asked()
	if len(asked) != 2 || s.End().Requests != 2 || s.End().Reason != backend.FinishLength || s.End().CachedTokens != 2 {
		t.Fatalf("%d requests, %+v", len(asked), s.End())
	}
	longer, _ := v.vocab.Lookup([]byte("The"))
	want := fmt.Sprintf("start: n0 <[*]>*\nn0: <[%d,%d]>\n", min(id, longer), max(id, longer))
	if so := asked[0]["structured_outputs"]; !reflect.DeepEqual(so, map[string]any{"grammar": want}) {
		t.Errorf("the grammar is %q, want %q", so, want)
	}
	if n := asked[0]["max_tokens"]; n != 3.0 {
		t.Errorf("max_tokens is %v", n)
	}
	if raw := asked[1]; raw["stream"] != nil || !reflect.DeepEqual(raw["allowed_token_ids"], []any{float64(id)}) || raw["logprobs"] != 2.0 {
		t.Errorf("asked for the true log-probability by %v", raw)
	}
}

// What was cached is told after the last token that was asked for, which the
// last one wanted may come before.
func TestVLLMCachedTokens(t *testing.T) {
	for uncounts := range 2 {
		f := newFakeVLLM(t)
		v := f.mustOpen()
		replay, id := oneByte(v.vocab)
		f.tokens, f.cached = []vocab.ID{id, 9, 8, 7, 6}, 2
		ids, end, err := generate(t, v, &backend.Request{Prompt: []vocab.ID{3, 4}, Replay: replay, MaxTokens: 2, Steer: &uncounted{uncounts}})
		if err != nil || end.CachedTokens != 2 || len(ids) != 2+uncounts {
			t.Errorf("%v, %+v, %v", ids, end, err)
		}
	}
	// One that goes on and on is left.
	f := newFakeVLLM(t)
	v := f.mustOpen()
	replay, id := oneByte(v.vocab)
	f.stream = func(w http.ResponseWriter, _ map[string]any) {
		event := fmt.Sprintf(`data: {"choices":[{"index":0,"prompt_token_ids":[3],"token_ids":[%d]}]}`+"\n\n", id)
		for {
			if _, err := io.WriteString(w, event); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
	if ids, end, err := generate(t, v, &backend.Request{Prompt: []vocab.ID{3}, MaxTokens: 2, Replay: replay}); err != nil || len(ids) != 2 || end.Reason != backend.FinishLength {
		t.Errorf("a server that does not stop: %v, %+v, %v", ids, end, err)
	}
}

func TestVLLMLogprobs(t *testing.T) {
	for _, tt := range []struct {
		logprobs string
		want     []backend.Token // nil: a protocol error
	}{
		{`{"tokens":["token_id:7"],"token_logprobs":[-0.5],"top_logprobs":[{"token_id:9":-2,"token_id:8":-0.25,"token_id:7":-0.5}]}`, []backend.Token{{ID: 7, Logprob: -0.5, Top: []backend.Logprob{{ID: 8, Logprob: -0.25}, {ID: 7, Logprob: -0.5}}}}},
		{`{"tokens":["token_id:7"],"token_logprobs":[1e-7],"top_logprobs":[{"token_id:7":1e-7}]}`, []backend.Token{{ID: 7, Top: []backend.Logprob{{ID: 7}}}}},
		{`null`, nil},
		{`{"tokens":[],"token_logprobs":[],"top_logprobs":[]}`, nil},
		{`{"tokens":["token_id:7"],"token_logprobs":[-1],"top_logprobs":null}`, nil},
		{`{"tokens":["token_id:7"],"token_logprobs":[null],"top_logprobs":[{}]}`, nil},
		{`{"tokens":["token_id:8"],"token_logprobs":[-1],"top_logprobs":[{}]}`, nil},
		{`{"tokens":[" Paris"],"token_logprobs":[-1],"top_logprobs":[{}]}`, nil},
		{`{"tokens":["token_id:7"],"token_logprobs":[-1],"top_logprobs":[{" Paris":-1}]}`, nil},
		{`{"tokens":["token_id:7"],"token_logprobs":[-1],"top_logprobs":[{"token_id:70000":-1}]}`, nil},
	} {
		var c vllmChoice
		if err := json.Unmarshal([]byte(`{"token_ids":[7],"logprobs":`+tt.logprobs+`}`), &c); err != nil {
			t.Fatal(err)
		}
		got, err := c.tokens(toyVocab(), true, 2)
		var protocol *backend.ProtocolError
		if tt.want == nil && !errors.As(err, &protocol) || tt.want != nil && !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v", tt.logprobs, got, err)
		}
	}
}

// uncounted exempts the first n tokens.
type uncounted struct{ n int }

func (u *uncounted) Mask() vocab.Mask { return nil }
func (u *uncounted) Accept(vocab.ID) backend.Verdict {
	u.n--
	return backend.Verdict{Uncounted: u.n >= 0}
}

// Where the server reads no grammars of token sets the replay goes token by
// token, by lists up to a limit.
func TestVLLMSteps(t *testing.T) {
	f := newFakeVLLM(t)
	f.noLark = true
	v, err := f.open(func(o *Options) { o.MaxMask = 2 })
	if err != nil {
		t.Fatal(err)
	}
	replay, id := oneByte(v.vocab)
	f.tokens, f.finish = []vocab.ID{9}, "length"
	f.row[id] = 0
	ids, end, err := generate(t, v, &backend.Request{Prompt: []vocab.ID{3}, Replay: replay, MaxTokens: 2})
	if err != nil || !slices.Equal(ids, []vocab.ID{id, 9}) || end.Requests != 2 {
		t.Errorf("%v, %+v, %v", ids, end, err)
	}
	for _, b := range f.asked() {
		if b["structured_outputs"] != nil {
			t.Errorf("a grammar was sent: %v", b)
		}
	}
	var unsupported *backend.UnsupportedError
	if _, _, err := generate(t, v, &backend.Request{Prompt: []vocab.ID{3}, Replay: &backend.Replay{Pending: []byte("T")}}); !errors.As(err, &unsupported) {
		t.Errorf("more tokens than a list may have: %v", err)
	}
	if _, _, err := generate(t, v, &backend.Request{Prompt: []vocab.ID{3}, Replay: replay, Grammar: &backend.Grammar{Kind: backend.JSONSchema, Source: "{}"}}); !errors.As(err, &unsupported) || unsupported.Param != "grammar" {
		t.Errorf("a grammar that cannot be composed: %v", err)
	}
}

func TestVLLMRows(t *testing.T) {
	v0 := newFakeVLLM(t).tok.Vocab()
	every := make([]vocab.ID, 0, v0.Len())
	var even []vocab.ID
	for id := range vocab.ID(v0.Len()) {
		every = append(every, id)
		if id%2 == 0 && id > 50 {
			even = append(even, id)
		}
	}
	if len(even) <= maxNamed {
		t.Fatalf("the vocabulary has %d tokens only", len(every))
	}
	for _, most := range []int{20, 5, -1} {
		for _, flat := range []bool{false, true} {
			f := newFakeVLLM(t)
			f.most = most
			for i := range f.row {
				if f.row[i] = -float64((i*7919)%len(f.row)) / 10; flat {
					f.row[i] /= 1000
				}
			}
			f.normalize()
			v := f.mustOpen()
			for _, matters := range [][]vocab.ID{nil, even[:3], even[:maxNamed], even, every} {
				for _, d := range []detail{someValues, moreValues, allValues} {
					c := &call{req: &backend.Request{}, ids: []vocab.ID{3}}
					asked := rowsAsked{path: []vocab.ID{4}, detail: d, matters: [][]vocab.ID{matters, matters}}
					if matters == nil {
						asked.matters = nil
					}
					rows, told, err := v.rows(t.Context(), c, asked)
					if err != nil || len(rows) != 2 {
						t.Fatalf("%d rows, %v", len(rows), err)
					}
					checkRow(t, fmt.Sprintf("limit %d, flat %v, %d tokens, detail %d (%d requests)", most, flat, len(matters), d, told.requests), f.row, rows[1], matters, d)
				}
			}
		}
	}
}

// checkRow compares a row with the truth.
func checkRow(t *testing.T, name string, truth []float64, r *partRow, matters []vocab.ID, d detail) {
	t.Helper()
	best, unknown, known := vocab.None, 0.0, 0.0
	for id, l := range truth {
		got, ok := r.known[vocab.ID(id)]
		if ok && math.Abs(got-l) > 1e-9 {
			t.Errorf("%s: token %d has %v, the row says %v", name, id, l, got)
		}
		if !ok && l > r.bound+1e-9 && (matters == nil || slices.Contains(matters, vocab.ID(id))) {
			t.Errorf("%s: token %d has %v, the bound is %v", name, id, l, r.bound)
			return
		}
	}
	for _, id := range matters {
		if best == vocab.None || truth[id] > truth[best] {
			best = id
		}
		if _, ok := r.known[id]; ok {
			known += math.Exp(truth[id])
		} else {
			unknown += math.Exp(truth[id])
		}
	}
	if matters == nil {
		return
	}
	if _, ok := r.known[best]; !ok && d > someValues {
		t.Errorf("%s: the likeliest token that matters is not known", name)
	}
	if d == allValues && unknown > 1e-3*known && len(r.known) < maxNamed-10 {
		t.Errorf("%s: %v of %v is not known, with %d values", name, unknown, unknown+known, len(r.known))
	}
}

// A choice from rows in part is the one from whole rows.
func TestVLLMChoose(t *testing.T) {
	f := newFakeVLLM(t)
	f.vary, f.cached, f.tokens = true, 1, []vocab.ID{9}
	f.most = 5
	for i := range f.row {
		f.row[i] = -float64((i*7919)%len(f.row)) / 40
	}
	f.normalize()
	v := f.mustOpen()
	prompts := []string{"The", "The quick", "The capital of Fr", "http", "The user", "The  ", "a {\"", "é\xe6", " Paris \xf0\x9f", "world\n", "function a", "The "}
	for _, temperature := range []float64{0, 1} {
		requests, rows := 0, 0
		for seed, text := range prompts {
			plan := heal.New(f.tok, f.tok.Encode([]vocab.ID{1}, []byte(text)), heal.Exact)
			s := uint64(seed)
			sampling := heal.Sampling{Temperature: temperature}
			whole := plan.NewChoice(sampling, nil)
			if whole == nil {
				continue
			}
			want := chooseWhole(t, whole, f, plan, &backend.Sampling{Temperature: temperature, Seed: &s})
			ids, end, err := generate(t, v, &backend.Request{
				Prompt: slices.Concat(plan.Prompt, plan.Trunk), Keep: len(plan.Prompt), Choose: plan.NewChoice(sampling, nil),
				Sampling: backend.Sampling{Temperature: temperature, Seed: &s}, MaxTokens: len(want),
			})
			if err != nil || !slices.Equal(ids, want) || end.CachedTokens != 1 {
				t.Errorf("%q at %v: %v, %+v, %v; whole rows give %v", text, temperature, ids, end, err, want)
			}
			requests, rows = requests+end.Requests, rows+1
		}
		if rows < 8 {
			t.Errorf("only %d prompts leave a choice", rows)
		}
		t.Logf("temperature %v: %d requests for %d choices", temperature, requests, rows)
	}
}

// chooseWhole makes a choice from the rows that the fake has.
func chooseWhole(t *testing.T, c *heal.Choice, f *fakeVLLM, plan *heal.Plan, s *backend.Sampling) []vocab.ID {
	t.Helper()
	give := func(path []vocab.ID) {
		row := make([]float32, len(f.row))
		for id, l := range f.after(slices.Concat(plan.Prompt, path)) {
			row[id] = float32(l)
		}
		c.Row(path, row)
	}
	for n := range plan.Trunk {
		give(plan.Trunk[:n])
	}
	rng := chooseDraw(s, 0)
	for {
		path, done, err := c.Next(rng)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return path
		}
		give(path)
	}
}

// A server may lack values that were asked for.
func TestVLLMRowsThatLack(t *testing.T) {
	f := newFakeVLLM(t)
	v := f.mustOpen()
	f.named = false
	var protocol *backend.ProtocolError
	_, told, err := v.rows(t.Context(), &call{req: &backend.Request{}, ids: []vocab.ID{3}}, rowsAsked{matters: [][]vocab.ID{{300, 301}}})
	if !errors.As(err, &protocol) || told.requests != 1 {
		t.Errorf("%+v, %v", told, err)
	}
}

func TestVLLMTokenizeChat(t *testing.T) {
	f := newFakeVLLM(t)
	v := f.mustOpen()
	ids, err := v.TokenizeChat(t.Context(), []byte(`{"model":"lora","messages":[{"role":"user","content":"The quick"}],"stream":true,"temperature":1,
		"tools":[{"a":1}],"chat_template":"x","chat_template_kwargs":{"b":2},"add_generation_prompt":false,"continue_final_message":true}`))
	if want := f.tok.Encode(nil, []byte("The quick")); err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v, %v; want %v", ids, err, want)
	}
	want := map[string]any{
		"model": "lora", "messages": []any{map[string]any{"role": "user", "content": "The quick"}}, "tools": []any{map[string]any{"a": 1.0}},
		"chat_template": "x", "chat_template_kwargs": map[string]any{"b": 2.0}, "add_generation_prompt": false, "continue_final_message": true,
	}
	if !reflect.DeepEqual(f.chat, want) {
		t.Errorf("asked with %v, want %v", f.chat, want)
	}
	var unsupported *backend.UnsupportedError
	for _, body := range []string{`{"messages":[],"documents":[{}]}`, `{"messages":[],"reasoning_effort":"low"}`, `{"messages":[],"tools":[{}],"tool_choice":"none"}`} {
		if _, err := v.TokenizeChat(t.Context(), []byte(body)); !errors.As(err, &unsupported) {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, err := v.TokenizeChat(t.Context(), []byte(`[]`)); err == nil {
		t.Error("a list was taken for a chat")
	}
}
