package remote

import (
	"encoding/json"
	"io"
	"slices"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/internal/servertest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// openLlama returns a backend of a running server, with the tokenizer of its
// model's file.
func openLlama(t testing.TB, s *servertest.Server) *LlamaCpp {
	t.Helper()
	tok, err := tokenizer.Open(s.Model)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenLlamaCpp(t.Context(), Options{Base: s.Endpoint(t), Tokenizer: tok})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.TokenizerError(); err != nil {
		t.Fatal(err)
	}
	return b
}

func encode(b *LlamaCpp, text string) []vocab.ID {
	return b.options.Tokenizer.Encode(nil, []byte(text))
}

func TestConformanceLlamaCpp(t *testing.T) {
	s := llamaServer(t)
	b := openLlama(t, s)
	in, _ := json.MarshalIndent(b.Inspection(), "", "  ")
	t.Logf("%s", in)
	backendtest.Run(t, backendtest.Suite{
		Open:  func(t *testing.T) backend.Backend { return openLlama(t, s) },
		Vocab: b.vocab,
		Prompts: [][]vocab.ID{
			encode(b, "The capital of France is the city of"),
			encode(b, "func main() {\n\tfmt.Println("),
		},
		Steps:     8,
		Tolerance: 0.05,
	})
}

// A stream leaves out the IDs of tokens that end inside a character. What is put
// in their place is what the same request gives without a stream.
func TestConformanceLlamaCppLostTokens(t *testing.T) {
	b := openLlama(t, servertest.Llama(t, servertest.LlamaOptions{Threads: 1, Slots: 1}))
	defer b.Close()
	e := b.engine.(*llamaEngine)
	prompt := encode(b, "Emoji: 🙂 🎉 🚀 日本語")
	for _, pending := range []string{" 🙂🎉🚀", "語テキスト", " naïve café", "한국어 문장", "🏳️‍🌈\xf0", "x"} {
		for _, logprobs := range []bool{false, true} {
			req := &backend.Request{Prompt: prompt, Replay: &backend.Replay{Pending: []byte(pending)}, Logprobs: logprobs, TopLogprobs: 2}
			c := &call{req: req, ids: prompt, max: len(pending) + 6, replay: newReplay(b.vocab, req.Replay), slot: -1}
			body := e.body(c)
			source, _ := e.stated(c)
			body["grammar"] = quote(source)
			var out llamaAnswer
			if _, err := e.ask(t.Context(), c, body, &out); err != nil {
				t.Fatal(err)
			}
			src, err := e.open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			var got []vocab.ID
			for {
				tok, err := src.next()
				if err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%q: %v", pending, err)
				}
				got = append(got, tok.ID)
				if logprobs && (tok.Logprob >= 0 || len(tok.Top) != 2) {
					t.Errorf("%q: %+v", pending, tok)
				}
			}
			src.close()
			if !slices.Equal(got, out.Tokens) {
				t.Errorf("%q: the stream has %v, the whole answer %v", pending, got, out.Tokens)
			}
			t.Logf("%q, logprobs %v: %d tokens, %d requests", pending, logprobs, len(got), src.answered().requests)
		}
	}
}

// llamaServer starts a server for one test. One thread does not spin, so tests
// stay quick beside other work.
func llamaServer(t testing.TB) *servertest.Server {
	return servertest.Llama(t, servertest.LlamaOptions{Threads: 1})
}
