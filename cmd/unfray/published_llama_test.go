//go:build llama

package main

import (
	"bytes"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/grammar"
	"github.com/unfray/unfray/heal"
)

// TestPublishedContinuations runs prompts of docs/published.md on a real model
// and checks what should be so with any: the prompt stays as it is to the byte,
// and where the model, asked before the prompt's end could go wrong, goes on
// with what the prompt has there, the healed prompt has the same continuation.
func TestPublishedContinuations(t *testing.T) {
	flags := modelFlags{path: testSetting(t, "UNFRAY_TEST_MODEL"), lib: testSetting(t, "UNFRAY_TEST_LIB"), threads: 1, context: 512, parallel: 1}
	m, e, err := flags.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	tests := []struct {
		source, prompt string
		grammar        string // regular expression
		begins         string // what even a small model writes
	}{
		{source: "Transformers url", prompt: `The link is <a href="http:`, begins: "//"},
		{source: "Transformers aggressive_healing", prompt: `The link is <a href="http`},
		{source: "Transformers trailing_whitespace", prompt: "I read a book about "},
		{source: "Transformers nothing_to_heal", prompt: "I read a book about"},
		{source: "Transformers square_bracket", prompt: `An example ["like this"] and another example [`},
		{source: "llguidance stop_heal", prompt: "Hello, text: "},
		{source: "llguidance llparser", prompt: "2 + 2 ="},
		{source: "llguidance llparser", prompt: "Power frequency is ", grammar: `[0-9]{1,3}Hz; voltage is [0-9]{1,3}V`},
		{source: "llguidance llparser", prompt: "Q: Are dolphins fish?\nA: ", grammar: `(Yes|No)`},
		{source: "guidance token_healing", prompt: "This is a story of 10 or 5 or ", grammar: `[0-9]{1,3}`},
		{source: "guidance notebook", prompt: "This is a "},
		{source: "llama.cpp issue 5765", prompt: "Five, Four, Thre", begins: "e"},
		{source: "llama.cpp pull request 24247", prompt: "The capital of Fran", begins: "ce"},
		{source: "llama.cpp pull request 7187", prompt: "print('Hello, worl", begins: "d"},
		{source: "llama2.c issue 180", prompt: "Shoggoth "},
	}
	same := 0
	for _, tt := range tests {
		t.Run(tt.source+" "+tt.prompt, func(t *testing.T) {
			ids := m.Tokenizer().Encode(nil, []byte(tt.prompt))
			plan := heal.New(m.Tokenizer(), ids, heal.Stable)
			req := &unfray.Request{Prompt: unfray.Prompt{IDs: ids}, MaxTokens: 24}
			if tt.grammar != "" {
				if req.Grammar, err = grammar.ParseRegex(tt.grammar); err != nil {
					t.Fatal(err)
				}
			}
			healed := complete(t, m, req)
			if h := healed.Healing; h.Mode != heal.Exact || h.TokensRemoved != plan.Removed || h.BytesPending != len(plan.Pending) || len(h.Notes) > 0 {
				t.Errorf("healing %+v, want %d tokens and %q pending", h, plan.Removed, plan.Pending)
			}
			first := healed.Tokens[0]
			whole := m.Tokenizer().Vocab().Bytes(first.ID)
			if again, ok := bytes.CutSuffix(whole, first.Bytes); !ok || !bytes.HasSuffix([]byte(tt.prompt), again) {
				t.Errorf("the first token is %q and gives %q: the rest of it is not the prompt's end", whole, first.Bytes)
			}
			if !bytes.HasPrefix(healed.Text, []byte(tt.begins)) {
				t.Errorf("continuation %q, want %q…", healed.Text, tt.begins)
			}
			if req.Grammar != nil {
				if !req.Grammar.Match(healed.Text) {
					t.Errorf("continuation %q does not match %s", healed.Text, tt.grammar)
				}
				return
			}
			unbroken := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{IDs: plan.Prompt}, Heal: heal.Off, MaxTokens: 24})
			if !bytes.HasPrefix(unbroken.Tokens[0].Bytes, plan.Pending) {
				return // the model would have written something else
			}
			same++
			want := unbroken.Text[len(plan.Pending):]
			if n := min(len(want), len(healed.Text)); n == 0 || !bytes.Equal(want[:n], healed.Text[:n]) {
				t.Errorf("continuation %q, of the unbroken prompt %q", healed.Text, want)
			}
		})
	}
	if same == 0 {
		t.Error("the model goes on with the prompt's end in no case: nothing was compared")
	}
	t.Logf("%d continuations are those of the unbroken prompt", same)
}

func complete(t *testing.T, m *unfray.Model, req *unfray.Request) *unfray.Result {
	t.Helper()
	r, err := m.Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tokens) == 0 {
		t.Fatal("no tokens")
	}
	return r
}
