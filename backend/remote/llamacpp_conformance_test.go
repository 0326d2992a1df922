package remote

import (
	"encoding/json"
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

// llamaServer starts a server for one test. One thread does not spin, so tests
// stay quick beside other work.
func llamaServer(t testing.TB) *servertest.Server {
	return servertest.Llama(t, servertest.LlamaOptions{Threads: 1})
}
