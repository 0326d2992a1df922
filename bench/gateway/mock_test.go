//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// toyScript has a byte-level tokenizer with a few words.
func toyScript(t testing.TB) *script {
	t.Helper()
	pieces := map[string]int{}
	add := func(s string) { pieces[s] = len(pieces) }
	for c := '!'; c <= '~'; c++ {
		add(string(c))
	}
	add("Ġ") // the space
	add("Ċ") // the newline
	var merges []string
	for _, m := range []string{"N a", "m e", "Na me", "u s", "us e", "use r", "Ġ user", "t h", "th e", "Ġ the"} {
		merges = append(merges, m)
		add(strings.ReplaceAll(m, " ", ""))
	}
	file, err := json.Marshal(map[string]any{
		"version":       "1.0",
		"added_tokens":  []any{},
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
		"decoder":       map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
		"model":         map[string]any{"type": "BPE", "vocab": pieces, "merges": merges},
	})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Read(bytes.NewReader(file), "tokenizer.json", tokenizer.ByFile)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newScript(tok)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func toyServer(t testing.TB, kind string, withTokenizer bool) (*mock, string) {
	t.Helper()
	var tok *tokenizer.Tokenizer
	if withTokenizer {
		tok = toyScript(t).tok
	}
	m, err := newMock(tok, kind)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(m.handler())
	t.Cleanup(server.Close)
	return m, server.URL
}

func post(t testing.TB, url, body string) string {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", body, res.Status, answer)
	}
	if res.Header.Get("Date") != fixedDate {
		t.Errorf("the date is %s", res.Header.Get("Date"))
	}
	return string(answer)
}

// Every prompt is answered with its own serial number, in an answer of a fixed size that is valid JSON.
func TestMockAnswers(t *testing.T) {
	for _, kind := range kinds {
		for _, withTokenizer := range []bool{false, true} {
			m, url := toyServer(t, kind, withTokenizer)
			for _, n := range []uint64{0, 1, 12345678} {
				number := newSerial(n)
				want := string(m.text(number))
				prompt := `"[[` + string(number[:]) + `]] text\n\nconst userNa"`
				answer := post(t, url+completionRoute, `{"prompt":`+prompt+`}`)
				var whole struct {
					Choices []struct {
						Text   string
						Reason string `json:"finish_reason"`
					}
				}
				if err := json.Unmarshal([]byte(answer), &whole); err != nil {
					t.Fatalf("%v: %s", err, answer)
				}
				if len(answer) != jsonBytes || len(whole.Choices) != 1 || whole.Choices[0].Text != want || whole.Choices[0].Reason != "stop" {
					t.Errorf("%d bytes, want %d: %s", len(answer), jsonBytes, answer)
				}
				if got := string(answerText(nil, []byte(answer), completionRoute)); got != want {
					t.Errorf("answerText finds %q, want %q", got, want)
				}
				messages := `[{"role":"user","content":` + prompt + `}]`
				if got := string(answerText(nil, []byte(post(t, url+chatRoute, `{"messages":`+messages+`}`)), chatRoute)); got != want {
					t.Errorf("chat: %q, want %q", got, want)
				}
			}
		}
	}
}

func TestMockStreams(t *testing.T) {
	m, url := toyServer(t, "vllm", false)
	want := string(m.text(newSerial(7)))
	for route, extra := range map[string]int{completionRoute: 1, chatRoute: 3} { // [DONE]; the role and the end
		body := `{"stream":true,"prompt":"[[00000007]]\n\nconst userNa"}`
		if route == chatRoute {
			body = `{"stream":true,"messages":[{"role":"user","content":"[[00000007]]\n\nconst userNa"}]}`
		}
		answer := post(t, url+route, body)
		events := strings.Split(strings.TrimSuffix(answer, "\n\n"), "\n\n")
		if len(events) != eventCount+extra || events[len(events)-1] != "data: [DONE]" {
			t.Errorf("%s: %d events, the last %q", route, len(events), events[len(events)-1])
		}
		for _, event := range events[:len(events)-1] {
			if data, ok := strings.CutPrefix(event, "data: "); !ok || !json.Valid([]byte(data)) {
				t.Fatalf("%s: %q", route, event)
			}
		}
		if got := string(answerText(nil, []byte(answer), route)); got != want {
			t.Errorf("%s: %q, want %q", route, got, want)
		}
	}
}

// A prompt that ends anywhere in promptEnd or in the answer is gone on with from there, in tokens whose bytes are the
// text.
func TestMockContinuesIDs(t *testing.T) {
	for _, kind := range kinds {
		m, url := toyServer(t, kind, true)
		route, fields := "/completion", `"return_tokens":true,"n_probs":2`
		if kind == "vllm" {
			route, fields = completionRoute, `"return_token_ids":true,"return_tokens_as_token_ids":true,"logprobs":2`
		}
		number := newSerial(99)
		all := "[[" + string(number[:]) + "]] 4" + promptEnd + string(m.text(number))
		start := strings.Index(all, promptEnd) + 1
		for end := start; end < start+edgeTokens/2; end += 3 {
			ids, err := json.Marshal(m.tok.Encode(nil, []byte(all[:end])))
			if err != nil {
				t.Fatal(err)
			}
			answer := post(t, url+route, `{`+fields+`,"prompt":`+string(ids)+`}`)
			text, tokens := readTokens(t, kind, answer)
			if want := all[end:]; text != want || string(m.tok.Decode(nil, tokens)) != want {
				t.Fatalf("%s: after %q: %q in the tokens of %q", kind, all[start:end], text, m.tok.Decode(nil, tokens))
			}
		}
	}
}

func readTokens(t *testing.T, kind, answer string) (string, []vocab.ID) {
	t.Helper()
	var a struct {
		Content string
		Tokens  []vocab.ID
		Probs   []struct {
			ID  vocab.ID
			Top []struct{ ID vocab.ID } `json:"top_logprobs"`
		} `json:"completion_probabilities"`
		Choices []struct {
			Text     string
			IDs      []vocab.ID `json:"token_ids"`
			Logprobs struct {
				Tokens []string
				Top    []map[string]float64 `json:"top_logprobs"`
			}
		}
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	if kind == "llamacpp" {
		if len(a.Probs) != len(a.Tokens) || len(a.Probs) > 0 && (a.Probs[0].ID != a.Tokens[0] || len(a.Probs[0].Top) != 2) {
			t.Fatalf("%d tokens with %d rows", len(a.Tokens), len(a.Probs))
		}
		return a.Content, a.Tokens
	}
	c := a.Choices[0]
	if len(c.Logprobs.Top) != len(c.IDs) || len(c.Logprobs.Tokens) != len(c.IDs) {
		t.Fatalf("%d tokens with %d rows", len(c.IDs), len(c.Logprobs.Top))
	}
	return c.Text, c.IDs
}

// What a request demands of the first tokens is kept to, and the text goes on after it.
func TestMockKeepsToConstraints(t *testing.T) {
	s := toyScript(t)
	id := func(text string) vocab.ID {
		found, ok := s.tok.Vocab().Lookup([]byte(text))
		if !ok {
			t.Fatalf("there is no token %q", text)
		}
		return found
	}
	said := len(promptEnd) - len("Na")
	for _, test := range []struct {
		name   string
		forced constraint
		want   string
		limit  int
	}{
		{"none", constraint{}, "Name 0000", 0},
		{"the trunk", constraint{path: []vocab.ID{id("Na")}}, "Name 0000", 0},
		{"a set with the token", constraint{set: []vocab.ID{id("x"), id("Name")}}, "Name 0000", 0},
		{"a set without it", constraint{set: []vocab.ID{id("x"), id("y")}}, "x", 1},
		{"one token", constraint{path: []vocab.ID{id("Na")}}, "Na", 1},
		{"two tokens", constraint{path: []vocab.ID{id("Na")}}, "Name", 2},
	} {
		pieces, whole := s.generate(&question{n: newSerial(0), said: said, forced: test.forced, maxTokens: test.limit})
		got := string(join(pieces))
		if whole != (test.limit == 0) || !strings.HasPrefix(got, test.want) || test.limit > 0 && (got != test.want || countTokens(pieces) != test.limit) {
			t.Errorf("%s: %.20q, %v, want %q", test.name, got, whole, test.want)
		}
	}
}

// Forced tokens do not change what the model holds likely.
func TestMockForcedLogprobs(t *testing.T) {
	s := toyScript(t)
	x, _ := s.tok.Vocab().Lookup([]byte("x"))
	na, _ := s.tok.Vocab().Lookup([]byte("Na"))
	name, _ := s.tok.Vocab().Lookup([]byte("Name"))
	me, _ := s.tok.Vocab().Lookup([]byte("me"))
	prompt, err := json.Marshal(s.tok.Encode(nil, []byte("[[00000001]]"+strings.TrimSuffix(promptEnd, "Na"))))
	if err != nil {
		t.Fatal(err)
	}
	_, llama := toyServer(t, "llamacpp", true)
	var rows struct {
		Tokens []vocab.ID
		Probs  []struct {
			ID      vocab.ID
			Logprob float64
			Top     []struct {
				ID      vocab.ID
				Logprob float64
			} `json:"top_logprobs"`
		} `json:"completion_probabilities"`
	}
	body := fmt.Sprintf(`{"prompt":%s,"n_predict":2,"n_probs":3,"return_tokens":true,"grammar":"root ::= <[%d]> tail\n"}`, prompt, na)
	if err := json.Unmarshal([]byte(post(t, llama+"/completion", body)), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows.Probs) != 2 || rows.Tokens[0] != na || rows.Tokens[1] != me || rows.Probs[0].ID != na || rows.Probs[0].Logprob > -20 ||
		rows.Probs[0].Top[0].ID != name || rows.Probs[0].Top[0].Logprob < -1 || rows.Probs[1].Top[0].ID != me || len(rows.Probs[1].Top) != 3 {
		t.Errorf("%+v", rows)
	}
	_, vllm := toyServer(t, "vllm", true)
	var a struct {
		Choices []struct {
			IDs      []vocab.ID `json:"token_ids"`
			Logprobs struct {
				Top []map[string]float64 `json:"top_logprobs"`
			}
		}
	}
	body = fmt.Sprintf(`{"prompt":%s,"max_tokens":1,"logprobs":1,"logprob_token_ids":[%d,%d],"return_token_ids":true,"return_tokens_as_token_ids":true,"allowed_token_ids":[%d]}`, prompt, na, name, x)
	if err := json.Unmarshal([]byte(post(t, vllm+completionRoute, body)), &a); err != nil {
		t.Fatal(err)
	}
	top := a.Choices[0].Logprobs.Top[0]
	named := func(id vocab.ID) float64 { return top[fmt.Sprintf("token_id:%d", id)] }
	if len(top) != 3 || named(name) < -1 || named(na) > -20 || named(x) > -20 || a.Choices[0].IDs[0] != x {
		t.Errorf("%+v", a)
	}
}

func TestMockRoutes(t *testing.T) {
	for kind, routes := range map[string][]string{
		"llamacpp": {"/health", "/v1/models", "/props", "/slots"},
		"vllm":     {"/health", "/v1/models", "/version"},
	} {
		m, url := toyServer(t, kind, true)
		for _, route := range routes {
			res, err := http.Get(url + route)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != http.StatusOK || !json.Valid(body) {
				t.Errorf("%s %s: %s %s %v", kind, route, res.Status, body, err)
			}
		}
		field := map[string]string{"llamacpp": "content", "vllm": "prompt"}[kind]
		var got struct {
			Tokens []vocab.ID
			Count  int
		}
		if err := json.Unmarshal([]byte(post(t, url+"/tokenize", `{"`+field+`":"the userName","add_special_tokens":false}`)), &got); err != nil {
			t.Fatal(err)
		}
		if text := m.tok.Decode(nil, got.Tokens); string(text) != "the userName" {
			t.Errorf("%s: /tokenize: %q", kind, text)
		}
	}
	if _, err := newMock(nil, "other"); err == nil {
		t.Error("a mock of another kind is made")
	}
}
