// Package tokenizertest opens tokenizers for the tests of other packages.
package tokenizertest

import (
	"bytes"
	"testing"

	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer"
)

// Open returns the tokenizer of a GGUF file's contents.
func Open(t testing.TB, file []byte) *tokenizer.Tokenizer {
	t.Helper()
	f, err := gguf.Read(bytes.NewReader(file), gguf.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// BPE returns the tokenizer of a made-up vocabulary, described further by the
// pairs.
func BPE(t testing.TB, b gguftest.BPE, more ...gguftest.Pair) *tokenizer.Tokenizer {
	t.Helper()
	return Open(t, gguftest.Build(append(b.Pairs(), more...)...))
}
