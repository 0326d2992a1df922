//go:build llama

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/engine"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/vocab"
)

// served is a gateway in this process with the real model inside.
type served struct {
	url    string
	model  *unfray.Model
	engine *engine.Engine
}

// serveModel starts a gateway. One native thread: more of them spin for each
// other and are slow where other tests run.
func serveModel(t *testing.T, parallel, queue int) *served {
	t.Helper()
	flags := modelFlags{
		path: testSetting(t, "UNFRAY_TEST_MODEL"), lib: testSetting(t, "UNFRAY_TEST_LIB"),
		threads: 1, context: 512, parallel: parallel, queue: queue,
	}
	m, e, err := flags.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{
		Models:       []gateway.Model{{Model: m}},
		Log:          slog.New(slog.DiscardHandler),
		DrainTimeout: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &served{"http://" + ln.Addr().String(), m, e}
}

// choice is a choice of an answer or of a stream's event.
type choice struct {
	Text         string
	Bytes        string  // base64 of what Text cannot say
	FinishReason *string `json:"finish_reason"`
}

// exact is the choice's text to the byte.
func (c choice) exact(t *testing.T) []byte {
	t.Helper()
	if c.Bytes == "" {
		return []byte(c.Text)
	}
	b, err := base64.StdEncoding.DecodeString(c.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (s *served) post(ctx context.Context, body map[string]any) (*http.Response, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/completions", bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// whole returns the first choice of an unstreamed completion.
func (s *served) whole(t *testing.T, body map[string]any) choice {
	t.Helper()
	resp, err := s.post(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Choices []choice
		Error   json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v: %s %s %v", body, resp.Status, answer.Error, err)
	}
	return answer.Choices[0]
}

// streamed joins the deltas of a streamed completion.
func (s *served) streamed(t *testing.T, body map[string]any) (text string, exact []byte) {
	t.Helper()
	body["stream"] = true
	defer delete(body, "stream")
	resp, err := s.post(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var event struct {
			Choices []choice
			Error   json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil || event.Error != nil {
			t.Fatalf("event %s: %v", data, err)
		}
		for _, c := range event.Choices {
			text += c.Text
			exact = append(exact, c.exact(t)...)
		}
	}
	return text, exact
}

// TestStreamedIsWhole asks for the same continuation twice in a row, streamed
// and whole. Some prompts are IDs that end inside a character.
func TestStreamedIsWhole(t *testing.T) {
	s := serveModel(t, 2, 4)
	tok := s.model.Tokenizer()
	half := func(text string, n int) []int {
		var ids []int
		for _, id := range tok.Encode(nil, []byte(text)[:len(text)-n]) {
			ids = append(ids, int(id))
		}
		return ids
	}
	for name, prompt := range map[string]any{
		"code":               "def fibonacci(n):\n    if n <= 1:\n        retu",
		"trailing blank":     "I read a book about ",
		"inside a character": half("A smile: 🙂", 1),
		"inside two bytes":   half("Le caf\u00e9", 1),
		"half a Kanji":       half("こんにちは世", 2),
		"control token":      []int{int(tok.Vocab().Specials().BOS)},
	} {
		for _, mode := range []heal.Mode{heal.Off, heal.Last, heal.Stable} {
			body := map[string]any{"prompt": prompt, "max_tokens": 10, "temperature": 0, "unfray": map[string]any{"heal": mode}}
			s.whole(t, body) // leaves the prompt's prefix, so that the next two start alike
			want := s.whole(t, body)
			text, exact := s.streamed(t, body)
			if text != want.Text || !bytes.Equal(exact, want.exact(t)) {
				t.Errorf("%s, %s: streamed %q (%q), whole %q (%q)", name, mode, text, exact, want.Text, want.exact(t))
			}
		}
	}
}

// TestHealedCharacter ends a prompt inside a character: healed, its bytes are
// completed into one.
func TestHealedCharacter(t *testing.T) {
	s := serveModel(t, 1, 4)
	text := []byte("A smile: 🙂")
	for cut := 1; cut <= 3; cut++ {
		prompt := text[:len(text)-cut]
		var ids []int
		for _, id := range s.model.Tokenizer().Encode(nil, prompt) {
			ids = append(ids, int(id))
		}
		c := s.whole(t, map[string]any{"prompt": ids, "max_tokens": 4, "temperature": 0, "unfray": map[string]any{"heal": "stable"}})
		joined := string(append(slices.Clone(prompt), c.exact(t)...))
		if !strings.HasPrefix(joined, "A smile: ") || strings.ContainsRune(strings.ToValidUTF8(joined[:len("A smile: ")+4], "\uFFFD"), '\uFFFD') {
			t.Errorf("%d bytes short: %q", cut, joined)
		}
	}
}

// clearPrompts are prompts with the answers they get alone, those of a list in
// which the likeliest token is well ahead each time: batching changes logits in
// their last bits, which decides near ties.
func (s *served) clearPrompts(t *testing.T) (prompts, answers []string) {
	t.Helper()
	for _, prompt := range []string{
		"import numpy as np\nimport matplotli", "def fibonacci(n):\n    if n <= 1:\n        retu", "The capital of Fran",
		"Once upon a time there was a litt", "function getUserNa", "public static void mai", "SELECT * FROM users WHE",
		"for i in range(10):\n    pri", "The president of the United Sta", "if __name__ == '__mai", "An apple a day keeps the doc",
		"class Person:\n    def __init__(self, na", "E = mc^2 was discovered by Albert Ein", "Paris is the capital of Fra",
		"The quick brown fox jumps over the la", "docker run -it ubun", "Visit our website at https:", "print('Hello, worl",
		"1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1", "a b c d e f g h i j k l m n",
	} {
		r, err := s.model.Complete(t.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: []byte(prompt)}, MaxTokens: 2, Logprobs: true, TopLogprobs: 2})
		if err != nil {
			t.Fatal(err)
		}
		clear := true
		for _, token := range r.Tokens {
			clear = clear && token.Top[0].ID == token.ID && token.Top[0].Logprob-token.Top[1].Logprob > 1
		}
		if clear {
			prompts, answers = append(prompts, prompt), append(answers, string(r.Text))
		}
	}
	if len(prompts) < 4 {
		t.Fatalf("only %d prompts are clear enough: %q", len(prompts), prompts)
	}
	return prompts, answers
}

// TestManyAtOnce sends 32 requests at once, each with a mask of its own, and
// compares with the answers that they get alone.
func TestManyAtOnce(t *testing.T) {
	s := serveModel(t, 8, 32)
	prompts, want := s.clearPrompts(t)
	body := func(i int) map[string]any {
		return map[string]any{"prompt": prompts[i%len(prompts)], "max_tokens": 2, "temperature": 0, "stream": i%2 == 1}
	}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			b := body(i)
			var got string
			if b["stream"] == true {
				got, _ = s.streamed(t, b)
			} else {
				got = s.whole(t, b).Text
			}
			if got != want[i%len(prompts)] {
				t.Errorf("%q: %q, alone %q", b["prompt"], got, want[i%len(prompts)])
			}
		})
	}
	wg.Wait()
	if st := s.engine.Stats(); st.Active != 0 || st.Waiting != 0 {
		t.Errorf("left over: %+v", st)
	}
}

// TestQueueOverflow holds the only place and the only waiting place; a third
// request is refused with the time after which to try again.
func TestQueueOverflow(t *testing.T) {
	s := serveModel(t, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		resp, err := s.post(ctx, map[string]any{"prompt": "Once upon a time", "max_tokens": 400, "temperature": 1, "logit_bias": map[string]int{"0": -100, "2": -100}, "stream": true})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for s.engine.Stats().Active == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	for s.engine.Stats().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	resp, err := s.post(t.Context(), map[string]any{"prompt": "x", "max_tokens": 1})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%s, Retry-After %q: %s", resp.Status, resp.Header.Get("Retry-After"), b)
	}
}

// TestClientGoesAway closes the connection in the middle of a stream. The
// sequence must be free one decode step after the gateway has noticed.
func TestClientGoesAway(t *testing.T) {
	s := serveModel(t, 1, 4)
	ctx, leave := context.WithCancel(t.Context())
	resp, err := s.post(ctx, map[string]any{"prompt": "Once upon a time", "max_tokens": 400, "temperature": 1, "stream": true, "logit_bias": map[string]int{"0": -100, "2": -100}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	leave()
	deadline := time.Now().Add(20 * time.Second)
	for s.engine.Stats().Active > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("still running: %+v", s.engine.Stats())
		}
		time.Sleep(time.Millisecond)
	}
	if n := s.engine.Stats().GeneratedTokens; n > 200 {
		t.Errorf("%d tokens were generated for a client that read one", n)
	}
	if c := s.whole(t, map[string]any{"prompt": "The capital of Fran", "max_tokens": 1, "temperature": 0}); c.Text != "ce" {
		t.Errorf("the next request was answered %q", c.Text)
	}
}

// TestLogitsOfOnePrefill is what exact healing will rest on: the logits at the
// last positions of one prefill are the distributions that separate prompts
// give.
func TestLogitsOfOnePrefill(t *testing.T) {
	s := serveModel(t, 1, 4)
	var reader backend.LogitsReader = s.engine
	ids := s.model.Tokenizer().Encode(nil, []byte("The capital of France is Par"))
	rows, err := reader.Logits(t.Context(), ids, len(ids)-3)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		alone, err := reader.Logits(t.Context(), ids[:len(ids)-2+i], len(ids)-3+i)
		if err != nil {
			t.Fatal(err)
		}
		for id := range row {
			if d := row[id] - alone[0][id]; d > 0.5 || d < -0.5 {
				t.Fatalf("row %d, token %d: %g in one prefill, %g alone", i, id, row[id], alone[0][id])
			}
		}
	}
	// After "… is", before the prompt's own last token.
	if best := slices.Index(rows[1], slices.Max(rows[1])); string(s.model.Tokenizer().Vocab().Bytes(vocab.ID(best))) != " Paris" {
		t.Errorf("the likeliest token after \"is\" is %d", best)
	}
}
