package unfray_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// exampleModel stands for a real one: a toy that knows one sentence by heart,
// in the tokens that the tokenizer gives it. With the build tag llama,
// engine.Open and tokenizer.OpenGGUF take its place.
func exampleModel() *unfray.Model {
	f, err := gguf.Read(bytes.NewReader(backendtest.GGUF(backendtest.VocabularyOptions{})), gguf.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		log.Fatal(err)
	}
	sentence := tok.Encode(nil, []byte("The capital of France is Paris"))
	toy := backendtest.NewToy(backendtest.Options{Vocab: tok.Vocab(), Scripts: [][]vocab.ID{sentence}})
	m, err := unfray.NewModel(toy, tok)
	if err != nil {
		log.Fatal(err)
	}
	return m
}

// A prompt that ends inside the token " France" is continued as if it did not.
func ExampleModel_Complete() {
	m := exampleModel()
	r, err := m.Complete(context.Background(), &unfray.Request{
		Prompt:    unfray.Prompt{Text: []byte("The capital of Fr")},
		MaxTokens: 3,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", r.Text)
	fmt.Println("rolled back:", r.Healing.TokensRemoved, "token,", r.Healing.BytesPending, "bytes")
	// Output:
	// ance is Paris
	// rolled back: 1 token, 3 bytes
}

// Chunks arrive as the model writes; joined they are the whole continuation.
func ExampleModel_Generate() {
	m := exampleModel()
	s, err := m.Generate(context.Background(), &unfray.Request{
		Prompt: unfray.Prompt{Text: []byte("The capital of Fr")},
		Heal:   heal.Stable,
		Stop:   []string{"Paris"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for {
		chunk, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q ", chunk.Text)
	}
	fmt.Println(s.Result().FinishReason)
	// Output: "ance" " is" " " stop
}

// The boundary of a prompt needs no model.
func Example_boundary() {
	tok := exampleModel().Tokenizer()
	r := boundary.Analyze(tok, []byte("The capital of Fr"))
	fmt.Printf("%d of %d tokens are final, %q is pending\n", r.Stable, len(r.IDs), r.Pending)
	// Output: 3 of 4 tokens are final, " Fr" is pending
}
