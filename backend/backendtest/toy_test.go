package backendtest_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/vocab"
)

// ids looks words up in the toy vocabulary.
func ids(t *testing.T, v *vocab.Vocab, words ...string) []vocab.ID {
	t.Helper()
	var out []vocab.ID
	for _, w := range words {
		id, ok := v.Lookup([]byte(w))
		if !ok {
			t.Fatalf("no token %q", w)
		}
		out = append(out, id)
	}
	return out
}

func TestToyConforms(t *testing.T) {
	v := backendtest.Vocabulary(backendtest.VocabularyOptions{})
	backendtest.Run(t, backendtest.Suite{
		Open: func(*testing.T) backend.Backend {
			return backendtest.NewToy(backendtest.Options{Vocab: v, ContextLength: 128})
		},
		Vocab: v,
		Prompts: [][]vocab.ID{
			ids(t, v, "The", " capital", " of", " France", " is"),
			ids(t, v, "http", "://", "www.", "example"),
		},
	})
}

func TestToyKnowsScripts(t *testing.T) {
	v := backendtest.Vocabulary(backendtest.VocabularyOptions{})
	script := ids(t, v, "The", " capital", " of", " France", " is", " Paris")
	b := backendtest.NewToy(backendtest.Options{Vocab: v, Scripts: [][]vocab.ID{script}})
	defer b.Close()
	s, err := b.Generate(t.Context(), &backend.Request{Prompt: append([]vocab.ID{backendtest.IMStart}, script[:2]...)})
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for {
		tok, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, v.Bytes(tok.ID)...)
	}
	if string(text) != " of France is Paris" {
		t.Errorf("continued with %q", text)
	}
	if e := s.End(); e.Reason != backend.FinishStop || e.EndToken != backendtest.IMEnd {
		t.Errorf("end %+v", e)
	}
}

func TestToyQueue(t *testing.T) {
	gate := make(chan struct{})
	b := backendtest.NewToy(backendtest.Options{Parallel: 1, Queue: 1, Gate: gate})
	defer b.Close()
	req := &backend.Request{Prompt: []vocab.ID{5}, MaxTokens: 1}
	var open []backend.Stream
	for range 2 {
		s, err := b.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}
	var full *backend.QueueFullError
	if _, err := b.Generate(t.Context(), req); !errors.As(err, &full) {
		t.Fatalf("third request: %v", err)
	}
	if full.RetryAfter < time.Second {
		t.Errorf("RetryAfter = %v", full.RetryAfter)
	}
	for _, s := range open {
		s.Close()
	}
	if b.Running() != 0 || b.Waiting() != 0 {
		t.Errorf("after Close: %d running, %d waiting", b.Running(), b.Waiting())
	}
}

// The GGUF file must name the tokens in the order of the vocabulary.
func TestGGUFNamesVocabulary(t *testing.T) {
	file := backendtest.GGUF(backendtest.VocabularyOptions{ChatTemplate: "{{ x }}"})
	if !bytes.HasPrefix(file, []byte("GGUF\x03\x00\x00\x00")) {
		t.Fatalf("begins %q", file[:8])
	}
	// In GPT-2's display form a space is Ġ (U+0120).
	for _, want := range []string{"\u0120Paris", "tokenizer.chat_template", "<|im_end|>", "\u0120Pari s"} {
		if !bytes.Contains(file, []byte(want)) {
			t.Errorf("the file does not contain %q", want)
		}
	}
}
