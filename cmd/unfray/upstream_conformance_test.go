package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/unfray/unfray/internal/servertest"
)

// front is `unfray serve` in this process, in front of a server.
type front struct {
	url    string
	server *servertest.Server
}

// startFront serves on a free port until the test ends.
func startFront(t *testing.T, s *servertest.Server, args ...string) *front {
	t.Helper()
	return &front{startLogServe(t, args...).url, s}
}

// oneThread starts a server for one test. Two threads wait for each other by
// spinning, which is slow where other programs run.
func oneThread(t *testing.T) *servertest.Server {
	return servertest.Llama(t, servertest.LlamaOptions{Threads: 1})
}

// startFlags starts the gateway by flags alone.
func startFlags(t *testing.T, s *servertest.Server) *front {
	return startFront(t, s, "--upstream", "llamacpp="+s.URL)
}

// watchedLog is a log that tells the address in it.
type watchedLog struct {
	urls chan string
	mu   sync.Mutex
	buf  bytes.Buffer
}

var listeningOn = regexp.MustCompile(`listening on (http://\S+)\n`)

func (l *watchedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(b)
	if m := listeningOn.FindSubmatch(b); m != nil {
		select {
		case l.urls <- string(m[1]):
		default: // one is enough
		}
	}
	return len(b), nil
}

func (l *watchedLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// object is a JSON object.
type object = map[string]any

// with returns o with more fields.
func with(o object, more object) object {
	o = maps.Clone(o)
	maps.Copy(o, more)
	return o
}

// reply is an answer that was read to its end.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// post sends a body, JSON unless it is a string.
func post(t *testing.T, url string, body any) reply {
	t.Helper()
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	resp, err := http.Post(url, "application/json", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v after %q", url, err, b)
	}
	return reply{resp.StatusCode, resp.Header, b}
}

// answer is what completions in all dialects have in common, and what one choice
// has.
type answer struct {
	Choices []struct {
		Index        int
		Text         string
		Message      struct{ Content string }
		Delta        struct{ Content string }
		Logprobs     *textLogprobs
		FinishReason *string `json:"finish_reason"`
	}
	Usage *usage
	// llama.cpp's own dialect
	Index           int
	Content         string
	Stop            bool
	StopType        string `json:"stop_type"`
	StoppingWord    string `json:"stopping_word"`
	TokensPredicted int    `json:"tokens_predicted"`
	TokensEvaluated int    `json:"tokens_evaluated"`

	Unfray *struct {
		Healing struct {
			Mode             string
			TokensRemoved    int `json:"tokens_removed"`
			BytesPending     int `json:"bytes_pending"`
			UpstreamRequests int `json:"upstream_requests"`
		}
	}
	Error json.RawMessage
}

type textLogprobs struct {
	Tokens        []string
	TokenLogprobs []float64            `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// outcome is what a request came to, however the answer was delivered.
type outcome struct {
	Texts    []string
	Finishes []string
	Logprobs []textLogprobs
	Usage    usage
	Healed   bool
	Mode     string
	events   int // of the stream
}

// choice returns the place of a choice, made if there is none yet.
func (o *outcome) choice(i int) (text, finish *string, l *textLogprobs) {
	for len(o.Texts) <= i {
		o.Texts, o.Finishes, o.Logprobs = append(o.Texts, ""), append(o.Finishes, ""), append(o.Logprobs, textLogprobs{})
	}
	return &o.Texts[i], &o.Finishes[i], &o.Logprobs[i]
}

func (o *outcome) add(a *answer) {
	for _, c := range a.Choices {
		text, finish, l := o.choice(c.Index)
		*text += c.Text + c.Message.Content + c.Delta.Content
		if c.FinishReason != nil {
			*finish += *c.FinishReason
		}
		if c.Logprobs != nil {
			l.Tokens = append(l.Tokens, c.Logprobs.Tokens...)
			l.TokenLogprobs = append(l.TokenLogprobs, c.Logprobs.TokenLogprobs...)
			l.TopLogprobs = append(l.TopLogprobs, c.Logprobs.TopLogprobs...)
			l.TextOffset = append(l.TextOffset, c.Logprobs.TextOffset...)
		}
	}
	if a.Choices == nil { // llama.cpp's own dialect
		text, finish, _ := o.choice(a.Index)
		*text += a.Content
		if a.Stop {
			*finish += a.StopType + " " + a.StoppingWord
			o.Usage.CompletionTokens += a.TokensPredicted
			o.Usage.PromptTokens += a.TokensEvaluated
		}
	}
	if a.Usage != nil {
		o.Usage = *a.Usage
	}
	if a.Unfray != nil {
		o.Healed = o.Healed || a.Unfray.Healing.TokensRemoved > 0
		o.Mode = a.Unfray.Healing.Mode
	}
}

// outcomeOf sends a request and reads its answer, as JSON or as a stream.
func outcomeOf(t *testing.T, url string, body object) *outcome {
	t.Helper()
	r := post(t, url, body)
	if r.status != http.StatusOK {
		t.Fatalf("%v: status %d: %s", body, r.status, r.body)
	}
	o := &outcome{}
	if stream, _ := body["stream"].(bool); !stream {
		decodeAnswer(t, r.body, func(a *answer) { o.add(a) })
		return o
	}
	if mime := r.header.Get("Content-Type"); !strings.HasPrefix(mime, "text/event-stream") {
		t.Fatalf("%v: content type %q", body, mime)
	}
	done := false
	for line := range strings.Lines(string(r.body)) {
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: ")
		switch {
		case done && ok:
			t.Fatalf("%v: %q after [DONE]", body, line)
		case data == "[DONE]":
			done = true
		case ok:
			o.events++
			decodeAnswer(t, []byte(data), o.add)
		}
	}
	if openAI := strings.Contains(url, "/v1/"); done != openAI {
		t.Errorf("%v: [DONE] came: %v, is expected: %v", body, done, openAI)
	}
	return o
}

// decodeAnswer reads an answer, or each of several in an array.
func decodeAnswer(t *testing.T, b []byte, do func(*answer)) {
	t.Helper()
	var list []*answer
	if len(b) > 0 && b[0] != '[' {
		b = append(append([]byte("["), b...), ']')
	}
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	for _, a := range list {
		if a.Error != nil {
			t.Fatalf("error %s", a.Error)
		}
		do(a)
	}
}

// streamed is a request for a stream that tells its usage.
func streamed(url string, body object) object {
	body = with(body, object{"stream": true})
	if strings.Contains(url, "/v1/") {
		body["stream_options"] = object{"include_usage": true}
	}
	return body
}

// countTokens asks the server itself how many tokens a text has.
func (f *front) countTokens(t *testing.T, text string) int {
	t.Helper()
	var out struct{ Tokens []int }
	r := post(t, f.server.URL+"/tokenize", object{"content": text, "add_special": true})
	if err := json.Unmarshal(r.body, &out); err != nil || r.status != http.StatusOK {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	return len(out.Tokens)
}

// TestConformanceUpstreamAccounting asks the same of the gateway several ways.
// Whole and streamed, all that an answer tells must be the same, and it must speak
// of the client's prompt.
func TestConformanceUpstreamAccounting(t *testing.T) {
	f := startFlags(t, oneThread(t))
	url := f.url + "/v1/completions"
	for _, prompt := range []string{"const userNa", "def fibonacci(n):\n    if n <= 1:\n        retu", "Le café ☕ est ouv"} {
		base := object{"prompt": prompt, "max_tokens": 8, "temperature": 0}
		plain := outcomeOf(t, url, base)
		if !plain.Healed || plain.Mode != "exact" {
			t.Fatalf("%q: not healed: %+v", prompt, plain)
		}
		text := plain.Texts[0]
		middle, straddling := text[1:3], prompt[len(prompt)-2:]+text[:2]
		for name, tc := range map[string]struct {
			more  object
			check func(o *outcome) error
		}{
			"plain": {nil, f.wants(text, "length")},
			"echo":  {object{"echo": true}, f.wants(prompt+text, "length")},
			"one token": {object{"max_tokens": 1}, func(o *outcome) error {
				if !strings.HasPrefix(text, o.Texts[0]) || o.Texts[0] == "" || o.Usage.CompletionTokens != 1 {
					return fmt.Errorf("the first token of %q is to be all", text)
				}
				return nil
			}},
			"stop": {object{"stop": middle}, f.wants(before(text, middle))},
			// The half of it that is the prompt's is not in the continuation.
			"stop across the prompt's end": {object{"stop": straddling}, f.wants(before(text, straddling))},
			"stop at once":                 {object{"stop": []string{text[:1]}}, f.wants("", "stop")},
			"choices":                      {object{"n": 3}, f.wants(text, "length")},
			"logprobs":                     {object{"logprobs": 2}, alignedLogprobs(prompt, text)},
			"logprobs and stop":            {object{"logprobs": 0, "stop": middle}, alignedLogprobs(prompt, text[:strings.Index(text, middle)])},
			"stable": {object{"unfray": object{"heal": "stable"}, "echo": true}, func(o *outcome) error {
				if !o.Healed || o.Mode != "stable" {
					return fmt.Errorf("it is to be healed by stable")
				}
				return nil
			}},
			"drawn": {object{"unfray": object{"heal": "stable"}, "temperature": 0.8, "seed": 5, "n": 2}, nil},
		} {
			t.Run(name, func(t *testing.T) {
				body := with(base, tc.more)
				whole := outcomeOf(t, url, body)
				parts := outcomeOf(t, url, streamed(url, body))
				for form, o := range map[string]*outcome{"whole": whole, "streamed": parts} {
					if tc.check != nil {
						if err := tc.check(o); err != nil {
							t.Errorf("%q, %s, %s: %v; got %+v", prompt, name, form, err, o)
						}
					}
					if want := f.countTokens(t, prompt); o.Usage.PromptTokens != want || o.Usage.TotalTokens != want+o.Usage.CompletionTokens {
						t.Errorf("%q, %s, %s: usage %+v for a prompt of %d tokens", prompt, name, form, o.Usage, want)
					}
				}
				parts.events = 0
				if !sameOutcome(whole, parts) {
					t.Errorf("%q, %s:\nwhole    %+v\nstreamed %+v", prompt, name, whole, parts)
				}
			})
		}
	}
}

// before returns a text up to a stop string, and the reason of its end.
func before(text, stop string) (head, finish string) {
	if head, _, found := strings.Cut(text, stop); found {
		return head, "stop"
	}
	return text, "length"
}

// wants checks texts and ends of all choices.
func (f *front) wants(text, finish string) func(*outcome) error {
	return func(o *outcome) error {
		for i := range o.Texts {
			if o.Texts[i] != text || o.Finishes[i] != finish {
				return fmt.Errorf("want %q, which ends by %s", text, finish)
			}
		}
		return nil
	}
}

// alignedLogprobs checks that log-probabilities are about the continuation, and
// about all of it.
func alignedLogprobs(prompt, text string) func(*outcome) error {
	return func(o *outcome) error {
		l := o.Logprobs[0]
		if len(l.Tokens) != len(l.TokenLogprobs) || len(l.Tokens) != len(l.TextOffset) {
			return fmt.Errorf("lists of different lengths")
		}
		if joined := strings.Join(l.Tokens, ""); joined != text || o.Texts[0] != text {
			return fmt.Errorf("tokens %q, want %q", joined, text)
		}
		at := len([]rune(prompt))
		for i, token := range l.Tokens {
			if l.TextOffset[i] != at {
				return fmt.Errorf("token %d %q is at %d, not %d", i, token, l.TextOffset[i], at)
			}
			at += len([]rune(token))
			if !(l.TokenLogprobs[i] <= 0) {
				return fmt.Errorf("token %d %q has log-probability %v", i, token, l.TokenLogprobs[i])
			}
		}
		return nil
	}
}

// sameOutcome compares answers. The server computes a position in batches of
// different sizes, so log-probabilities differ in their last digits.
func sameOutcome(a, b *outcome) bool {
	a, b = new(*a), new(*b)
	for i := range a.Logprobs {
		if i >= len(b.Logprobs) || len(a.Logprobs[i].TokenLogprobs) != len(b.Logprobs[i].TokenLogprobs) {
			return false
		}
		for k, p := range a.Logprobs[i].TokenLogprobs {
			if d := p - b.Logprobs[i].TokenLogprobs[k]; d > 0.02 || d < -0.02 {
				return false
			}
		}
	}
	for _, o := range []*outcome{a, b} {
		o.Logprobs = append([]textLogprobs(nil), o.Logprobs...)
		for i := range o.Logprobs {
			o.Logprobs[i].TokenLogprobs, o.Logprobs[i].TopLogprobs = nil, nil
		}
	}
	return reflect.DeepEqual(a, b)
}

// TestConformanceUpstreamDialects asks in the other dialects, whole and streamed.
func TestConformanceUpstreamDialects(t *testing.T) {
	f := startFlags(t, oneThread(t))
	const prompt = "def fibonacci(n):\n    if n <= 1:\n        retu"
	messages := []object{{"role": "user", "content": "Write Python."}, {"role": "assistant", "content": prompt}}
	for name, tc := range map[string]struct {
		path   string
		body   object
		finish string
	}{
		"native":      {"/completion", object{"prompt": prompt, "n_predict": 8}, "limit "},
		"native stop": {"/completion", object{"prompt": prompt, "n_predict": 8, "stop": []string{"return"}}, "word return"},
		"native, two": {"/completion", object{"prompt": []string{prompt, "const userNa"}, "n_predict": 4}, "limit "},
		"chat":        {"/v1/chat/completions", object{"messages": messages, "max_tokens": 8}, "length"},
		"chat stop":   {"/v1/chat/completions", object{"messages": messages, "max_completion_tokens": 8, "stop": "\n"}, "stop"},
		"chat, two":   {"/v1/chat/completions", object{"messages": messages, "max_tokens": 4, "n": 2}, "length"},
	} {
		t.Run(name, func(t *testing.T) {
			body := with(tc.body, object{"temperature": 0})
			outcomeOf(t, f.url+tc.path, body) // the next two find the same in the server's cache
			whole := outcomeOf(t, f.url+tc.path, body)
			parts := outcomeOf(t, f.url+tc.path, streamed(tc.path, body))
			if tc.body["messages"] != nil { // a whole message holds what was continued, a stream does not
				for i, text := range whole.Texts {
					whole.Texts[i], _ = strings.CutPrefix(text, prompt)
				}
			}
			if !whole.Healed || whole.Finishes[0] != tc.finish || !strings.HasPrefix(whole.Texts[0], "rn") || whole.Usage.CompletionTokens == 0 {
				t.Errorf("whole: %+v", whole)
			}
			parts.events = 0
			if !sameOutcome(whole, parts) {
				t.Errorf("\nwhole    %+v\nstreamed %+v", whole, parts)
			}
		})
	}
}

// TestConformanceUpstreamComplete compares the gateway with `unfray complete`,
// which asks the same server.
func TestConformanceUpstreamComplete(t *testing.T) {
	s := oneThread(t)
	f := startFlags(t, s)
	for _, mode := range []string{"off", "stable", "exact", "auto"} {
		for _, prompt := range []string{"The link is <a href=\"https:", "I read a book about ", "fmt.Prin", "Le café ☕ est ouv", "A clean end."} {
			var out, errOut bytes.Buffer
			args := []string{"complete", "--upstream", "llamacpp=" + s.URL, "--max-tokens", "12", "--heal", mode, prompt}
			if status := run(t.Context(), args, strings.NewReader(""), &out, &errOut); status != exitOK {
				t.Fatalf("%q: status %d: %s", args, status, &errOut)
			}
			for path, limit := range map[string]string{"/v1/completions": "max_tokens", "/completion": "n_predict"} {
				body := object{"prompt": prompt, limit: 12, "temperature": 0, "unfray": object{"heal": mode}}
				if got := outcomeOf(t, f.url+path, body); got.Texts[0] != out.String() {
					t.Errorf("%s, %q, %s: the gateway %q, the command %q", mode, prompt, path, got.Texts[0], &out)
				}
			}
		}
	}
}
