package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// fakeVLLM answers as vLLM 0.32 was seen to, from a fixed distribution. Its
// fields change that; they are set before it is asked.
type fakeVLLM struct {
	t   testing.TB
	tok *tokenizer.Tokenizer

	version string
	models  string // JSON of the list
	noLark  bool
	noList  bool
	// patterns are honored, but those of one token only.
	patterns bool
	status   int       // of all answers to requests for tokens, if not 0
	named    bool      // knows logprob_token_ids
	most     int       // alternatives; negative: all
	row      []float64 // log-probabilities after any prompt
	vary     bool      // they are moved on by what the tokens of the prompt add up to
	// stream, if not nil, answers streaming requests in place of the fake.
	stream func(w http.ResponseWriter, body map[string]any)
	// tokens are what a streaming request gives, text what stands beside each.
	tokens []vocab.ID
	text   string
	finish string
	cached int

	chat map[string]any // the last chat that was tokenized

	mu     sync.Mutex
	bodies []map[string]any // of /v1/completions
}

func newFakeVLLM(t testing.TB) *fakeVLLM {
	tok := tokenizertest.Open(t, backendtest.GGUF(backendtest.VocabularyOptions{}))
	f := &fakeVLLM{
		t: t, tok: tok, version: "0.32.0", named: true, patterns: true, most: 20, finish: "length",
		models: `[{"id":"toy","created":1700000000,"max_model_len":64,"parent":null},{"id":"lora","parent":"toy"}]`,
	}
	f.row = make([]float64, tok.Vocab().Len())
	for i := range f.row {
		f.row[i] = -float64(i) / 100
	}
	f.normalize()
	return f
}

func (f *fakeVLLM) normalize() {
	sum := 0.0
	for _, l := range f.row {
		sum += math.Exp(l)
	}
	for i := range f.row {
		f.row[i] -= math.Log(sum)
	}
}

func (f *fakeVLLM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	var body map[string]any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &body); err != nil {
			f.t.Errorf("request to %s: %v", r.URL.Path, err)
		}
	}
	switch r.URL.Path {
	case "/version":
		if f.version == "" {
			refuse(w, 404, `{"detail":"Not Found"}`)
			return
		}
		answerJSON(w, `{"version":"`+f.version+`"}`)
	case "/v1/models":
		answerJSON(w, `{"object":"list","data":`+f.models+`}`)
	case "/tokenize":
		f.tokenize(w, body)
	case "/v1/completions":
		f.mu.Lock()
		f.bodies = append(f.bodies, body)
		f.mu.Unlock()
		f.complete(w, body)
	default:
		refuse(w, 404, `{"detail":"Not Found"}`)
	}
}

func answerJSON(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, text)
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, text)
}

func (f *fakeVLLM) tokenize(w http.ResponseWriter, body map[string]any) {
	var ids []vocab.ID
	if list, ok := body["messages"].([]any); ok {
		f.chat = body
		for _, m := range list {
			ids = f.tok.Encode(ids, []byte(m.(map[string]any)["content"].(string)))
		}
	} else {
		ids = f.tok.EncodeSpecial([]vocab.ID{}, []byte(body["prompt"].(string)))
	}
	text, _ := json.Marshal(map[string]any{"tokens": ids, "count": len(ids)})
	answerJSON(w, string(text))
}

// after returns the row after a prompt if rows vary.
func (f *fakeVLLM) after(ids []vocab.ID) []float64 {
	sum := 0
	for i, id := range ids {
		sum += (i + 1) * int(id)
	}
	n := sum * 31 % len(f.row)
	return slices.Concat(f.row[n:], f.row[:n])
}

var fakeSet = regexp.MustCompile(`^start: n0 <\[\*\]>\*\nn0: <\[([0-9,-]+)\]>\n$`)

// drawn returns the distribution that a token is drawn from, as the server
// shows it: raw under a list, renormalized under a grammar.
func (f *fakeVLLM) drawn(body map[string]any) (shown []float64, allowed func(vocab.ID) bool) {
	allowed = func(vocab.ID) bool { return true }
	row := f.row
	if f.vary {
		var ids []vocab.ID
		for _, id := range body["prompt"].([]any) {
			ids = append(ids, vocab.ID(id.(float64)))
		}
		row = f.after(ids)
	}
	if list, ok := body["allowed_token_ids"].([]any); ok && !f.noList {
		return row, func(id vocab.ID) bool { return slices.Contains(list, any(float64(id))) }
	}
	so, _ := body["structured_outputs"].(map[string]any)
	source, _ := so["grammar"].(string)
	if pattern, ok := so["regex"].(string); ok && f.patterns {
		id, _ := f.tok.Vocab().Lookup([]byte(pattern))
		return row, func(other vocab.ID) bool { return other == id }
	}
	m := fakeSet.FindStringSubmatch(source)
	if m == nil || f.noLark {
		return row, allowed
	}
	set := map[vocab.ID]bool{}
	for span := range strings.SplitSeq(m[1], ",") {
		lo, hi, isRange := strings.Cut(span, "-")
		from, _ := strconv.Atoi(lo)
		to := from
		if isRange {
			to, _ = strconv.Atoi(hi)
		}
		for id := from; id <= to; id++ {
			set[vocab.ID(id)] = true
		}
	}
	sum := 0.0
	for id := range set {
		sum += math.Exp(row[id])
	}
	for id, l := range row {
		if set[vocab.ID(id)] {
			shown = append(shown, l-math.Log(sum))
		} else {
			shown = append(shown, -9999)
		}
	}
	return shown, func(id vocab.ID) bool { return set[id] }
}

func (f *fakeVLLM) complete(w http.ResponseWriter, body map[string]any) {
	if f.status != 0 {
		refuse(w, f.status, `{"error":{"message":"no","code":0}}`)
		return
	}
	if n, ok := body["logprobs"].(float64); ok && f.most >= 0 && int(n) > f.most {
		refuse(w, 400, fmt.Sprintf(`{"error":{"message":"Requested sample logprobs of %d, which is greater than max allowed: %d (parameter=logprobs, value=%d)","type":"BadRequestError","param":"logprobs","code":400}}`, int(n), f.most, int(n)))
		return
	}
	if named, ok := body["logprob_token_ids"].([]any); ok && len(named) > maxNamed {
		refuse(w, 400, `{"error":{"message":"too many","code":400}}`)
		return
	}
	if body["stream"] == true {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		if f.stream != nil {
			f.stream(w, body)
			return
		}
		f.events(w, body)
		return
	}
	shown, allowed := f.drawn(body)
	best := vocab.None
	for id := range vocab.ID(len(shown)) {
		if allowed(id) && (best == vocab.None || shown[id] > shown[best]) {
			best = id
		}
	}
	choice := map[string]any{"index": 0, "text": "not to be read", "token_ids": []vocab.ID{best}, "prompt_token_ids": body["prompt"], "finish_reason": "length", "stop_reason": nil}
	if n, ok := body["logprobs"].(float64); ok {
		choice["logprobs"] = f.logprobs(body, shown, best, int(n))
	}
	text, _ := json.Marshal(map[string]any{"choices": []any{choice}, "usage": map[string]any{"prompt_tokens_details": map[string]any{"cached_tokens": f.cached}}})
	answerJSON(w, string(text))
}

func (f *fakeVLLM) logprobs(body map[string]any, shown []float64, drawn vocab.ID, n int) map[string]any {
	top := map[string]float64{}
	add := func(id vocab.ID) { top["token_id:"+strconv.Itoa(int(id))] = shown[id] }
	if named, ok := body["logprob_token_ids"].([]any); ok && f.named {
		for _, id := range named {
			add(vocab.ID(id.(float64)))
		}
	} else {
		order := make([]vocab.ID, len(shown))
		for i := range order {
			order[i] = vocab.ID(i)
		}
		slices.SortStableFunc(order, func(a, b vocab.ID) int {
			switch {
			case shown[a] > shown[b]:
				return -1
			case shown[a] < shown[b]:
				return 1
			}
			return 0
		})
		for _, id := range order[:min(n, len(order))] {
			add(id)
		}
	}
	add(drawn)
	return map[string]any{
		"tokens": []string{"token_id:" + strconv.Itoa(int(drawn))}, "token_logprobs": []float64{shown[drawn]}, "top_logprobs": []any{top}, "text_offset": []int{0},
	}
}

// events streams f.tokens, no more than max_tokens.
func (f *fakeVLLM) events(w http.ResponseWriter, body map[string]any) {
	ids, finish := f.tokens, f.finish
	if n := int(body["max_tokens"].(float64)); n < len(ids) {
		ids, finish = ids[:n], "length"
	}
	for i, id := range ids {
		choice := map[string]any{"index": 0, "text": f.text, "token_ids": []vocab.ID{id}, "prompt_token_ids": nil, "finish_reason": nil, "stop_reason": nil}
		if i == 0 {
			choice["prompt_token_ids"] = body["prompt"]
		}
		if i == len(ids)-1 {
			choice["finish_reason"] = finish
		}
		if n, ok := body["logprobs"].(float64); ok {
			choice["logprobs"] = f.logprobs(map[string]any{}, f.row, id, int(n))
		}
		writeEvent(w, map[string]any{"choices": []any{choice}})
	}
	writeEvent(w, map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens_details": map[string]any{"cached_tokens": f.cached}}})
	io.WriteString(w, "data: [DONE]\n\n")
}

func writeEvent(w io.Writer, v any) {
	text, _ := json.Marshal(v)
	fmt.Fprintf(w, "data: %s\n\n", text)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// open starts the fake and opens it; the requests made until then are
// forgotten.
func (f *fakeVLLM) open(change func(*Options)) (*VLLM, error) {
	s := httptest.NewServer(f)
	f.t.Cleanup(s.Close)
	transport := &http.Transport{}
	f.t.Cleanup(transport.CloseIdleConnections)
	u, _ := http.NewRequest("GET", s.URL, nil)
	o := Options{Base: u.URL, Transport: transport, Tokenizer: f.tok}
	if change != nil {
		change(&o)
	}
	v, err := OpenVLLM(f.t.Context(), o)
	f.mu.Lock()
	f.bodies = nil
	f.mu.Unlock()
	return v, err
}

func (f *fakeVLLM) mustOpen() *VLLM {
	f.t.Helper()
	v, err := f.open(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := v.TokenizerError(); err != nil {
		f.t.Fatal(err)
	}
	return v
}

// asked returns the bodies of the requests for completions.
func (f *fakeVLLM) asked() []map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.bodies)
}
