package remote

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/vocab"
)

func TestConformanceVLLM(t *testing.T) {
	o := vllmOptions(t, "suite")
	encode := func(s string) []vocab.ID { return o.Tokenizer.Encode(nil, []byte(s)) }
	backendtest.Run(t, backendtest.Suite{
		Open:    func(t *testing.T) backend.Backend { return openVLLM(t, o) },
		Vocab:   o.Tokenizer.Vocab(),
		Prompts: [][]vocab.ID{encode("The capital of France is the city of"), encode("func main() {\n\tfmt.Println(")},
		Steps:   6,
		// float32 in batches of different shapes
		Tolerance: 1e-3,
	})
}

// cuts are prompts that end where their text goes on inside a token, after
// what several tokens may go on from, inside a character, or at a safe place.
var cuts = []string{
	"The capital of France is Par",
	"The capital of France is ",
	"import numpy as np\n\ndef mean(values):\n    return np.me",
	"def filter_by_substring(strings, substring):\n    return [x for x in strings if subs",
	"for i in range(1",
	"See https://ww",
	"{\"name\": \"Ada\", \"na",
	"She said that she didn'",
	"    if x == 3:\n        return x\n    els",
	"naïve caf\xc3",
	"日本\xe8",
	"Smile 🙂 and \xf0\x9f",
	"The quick brown fox jumps over the lazy dog.\n\n",
	"print('Hello, worl",
	"SELECT * FRO",
	"a",
}

// steppedText is what stepping gives after the prompt.
func steppedText(v *VLLM, ids []vocab.ID, pending int) string {
	var text []byte
	for _, id := range ids {
		if v.vocab.IsText(id) {
			text = append(text, v.vocab.Bytes(id)...)
		}
	}
	return string(text[pending:])
}

// One request says of a replay what the masks say step by step.
func TestConformanceVLLMStable(t *testing.T) {
	o := vllmOptions(t, "stable")
	v := openVLLM(t, o)
	m, err := unfray.NewModel(v, o.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	requests, healed := 0, 0
	for _, cut := range cuts {
		want, replayed := stepped(t, v, o.Tokenizer, cut, 6)
		r, err := m.Complete(t.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: []byte(cut)}, Heal: heal.Stable, MaxTokens: 6})
		if err != nil {
			t.Errorf("%q: %v", cut, err)
			continue
		}
		n := min(len(r.Text), 15)
		if text := steppedText(v, want, r.Healing.BytesPending); !strings.HasPrefix(text, string(r.Text[:n])) || r.Healing.TokensReplayed != replayed {
			t.Errorf("%q: %q over %d tokens, stepping gives %q over %d", cut, r.Text, r.Healing.TokensReplayed, text, replayed)
		}
		if r.Healing.BytesPending > 0 {
			healed++
			requests += r.Healing.UpstreamRequests
		}
		if r.Usage.CompletionTokens > 6 {
			t.Errorf("%q: %d tokens of at most 6", cut, r.Usage.CompletionTokens)
		}
	}
	if float64(requests) > 1.2*float64(healed) {
		t.Errorf("%d requests for %d healed completions", requests, healed)
	}
}

// A choice among covers comes from rows in part, and what is said of its tokens is
// the model's own.
func TestConformanceVLLMExact(t *testing.T) {
	o := vllmOptions(t, "exact")
	v := openVLLM(t, o)
	m, err := unfray.NewModel(v, o.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	for _, cut := range cuts {
		r, err := m.Complete(t.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: []byte(cut)}, MaxTokens: 6, Logprobs: true, TopLogprobs: 2})
		if err != nil {
			t.Errorf("%q: %v", cut, err)
			continue
		}
		for i, tok := range r.Tokens {
			if tok.Logprob > 0 || len(tok.Top) != 2 && !tok.Straddles {
				t.Errorf("%q: token %d: %+v", cut, i, tok)
			}
		}
		figures = append(figures, fmt.Sprintf("%q %s: %q, %d requests", cut, r.Healing.Mode, r.Text, r.Healing.UpstreamRequests))
	}
	t.Log(strings.Join(figures, "\n"))
}

// Log-probabilities are the model's own over the replay and after it, although
// both stand under a grammar.
func TestConformanceVLLMLogprobs(t *testing.T) {
	o := vllmOptions(t, "logprobs")
	v := openVLLM(t, o)
	for _, cut := range []string{"The capital of France is Par", "    if x == 3:\n        return x\n    els"} {
		plan := heal.New(o.Tokenizer, o.Tokenizer.Encode(nil, []byte(cut)), heal.Stable)
		req := &backend.Request{Prompt: plan.Prompt, Replay: &backend.Replay{Pending: plan.Pending}, MaxTokens: 3, Logprobs: true, TopLogprobs: 3}
		s, err := v.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ids := slices.Clone(plan.Prompt)
		for {
			tok, err := s.Next()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			b := v.plain(req, ids)
			b["allowed_token_ids"], b["logprobs"] = []vocab.ID{tok.ID}, 3
			want, _, _, err := v.one(t.Context(), b, true, 3)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(want.Logprob-tok.Logprob) > 1e-3 || len(tok.Top) != 3 || tok.Top[0].ID != want.Top[0].ID {
				t.Errorf("%q, token %d: %+v; without a grammar %+v", cut, len(ids)-len(plan.Prompt), tok, want)
			}
			ids = append(ids, tok.ID)
		}
	}
}

// The server's own template makes the tokens of a chat.
func TestConformanceVLLMChat(t *testing.T) {
	o := vllmOptions(t, "chat")
	v := openVLLM(t, o)
	body := `{"model":"smollm2","messages":[{"role":"user","content":"Name a city."},{"role":"assistant","content":"The cap"}],"add_generation_prompt":false,"continue_final_message":true,"stream":true,"max_tokens":3}`
	ids, err := v.TokenizeChat(t.Context(), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, id := range ids {
		text = append(text, v.vocab.Bytes(id)...)
	}
	if !strings.HasSuffix(string(text), "<|im_start|>user\nName a city.<|im_end|>\n<|im_start|>assistant\nThe cap") {
		t.Errorf("the chat is %q", text)
	}
	if _, err := v.TokenizeChat(t.Context(), []byte(`{"messages":[{"role":"user"`)); err == nil {
		t.Error("half a body was taken")
	}
	var refused *backend.UpstreamError
	if _, err := v.TokenizeChat(t.Context(), []byte(`{"messages":7}`)); !errors.As(err, &refused) || refused.Status != 400 {
		t.Errorf("messages that are none: %v", err)
	}
}

// A grammar comes after the bytes that are produced again.
func TestConformanceVLLMGrammar(t *testing.T) {
	o := vllmOptions(t, "grammar")
	v := openVLLM(t, o)
	prompt := o.Tokenizer.Encode(nil, []byte("The capital of France is"))
	for _, g := range []struct {
		grammar backend.Grammar
		pending string
		want    string // what the text after the pending bytes begins with
	}{
		{backend.Grammar{Kind: backend.Regex, Source: "is[.!]"}, " Par", "is"},
		{backend.Grammar{Kind: backend.JSONSchema, Source: `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`}, " Par/\x00\"", "{"},
		{backend.Grammar{Kind: backend.Lark, Source: "start: middle \"!\"\nmiddle: \"is\" | \"start\""}, " Par", ""},
		{backend.Grammar{Kind: backend.Lark, Source: "start: \"x\""}, "", "x"},
	} {
		req := &backend.Request{Prompt: prompt, Grammar: &g.grammar, MaxTokens: 12}
		if g.pending != "" {
			req.Replay = &backend.Replay{Pending: []byte(g.pending)}
		}
		ids, end, err := generate(t, v, req)
		text := steppedText(v, ids, 0)
		if err != nil || !strings.HasPrefix(text, g.pending+g.want) || len(text) == len(g.pending) || end.Requests != 1 {
			t.Errorf("%s after %q: %q, %+v, %v", g.grammar.Source, g.pending, text, end, err)
		}
	}
}

// A replay by bytes alone, and one of control tokens and halves of characters
// after it: nothing is held back once the pending bytes are there.
func TestConformanceVLLMTail(t *testing.T) {
	o := vllmOptions(t, "tail")
	v := openVLLM(t, o)
	prompt := o.Tokenizer.Encode(nil, []byte("The capital of France is"))
	half, _ := v.vocab.Lookup([]byte{0x9f})
	for _, odd := range []vocab.ID{0, 1, half} {
		req := &backend.Request{
			Prompt: prompt, Replay: &backend.Replay{Pending: []byte(" \xf0")}, MaxTokens: 5,
			Sampling: backend.Sampling{LogitBias: map[vocab.ID]float64{odd: 100}},
		}
		ids, _, err := generate(t, v, req)
		if text := steppedText(v, ids, 0); err != nil || !strings.HasPrefix(text, " \xf0") || !slices.Contains(ids, odd) {
			t.Errorf("token %d: %v %q, %v", odd, ids, text, err)
		}
	}
}

// The answers to requests that the server refuses are its own.
func TestConformanceVLLMRefusals(t *testing.T) {
	v := openVLLM(t, vllmOptions(t, "refusals"))
	for field, value := range map[string]string{"temperature": "3", "allowed_token_ids": "[]", "structured_outputs": `{"grammar":"start: <[0"}`} {
		_, _, err := generate(t, v, &backend.Request{Prompt: []vocab.ID{504}, MaxTokens: 1, Fields: fields(`{"` + field + `":` + value + `}`)})
		if e, ok := err.(*backend.UpstreamError); !ok || e.Status != 400 || !strings.Contains(string(e.Body), `"error"`) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
