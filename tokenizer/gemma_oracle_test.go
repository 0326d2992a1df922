//go:build llama

package tokenizer

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/unfray/unfray/vocab"
)

// TestOracleGemma compares the tokenizer of Gemma's model file with llama.cpp's
// own: the whole vocabulary, and the IDs of text of many kinds.
func TestOracleGemma(t *testing.T) {
	path := os.Getenv("UNFRAY_TEST_GEMMA")
	if path == "" {
		t.Skip("UNFRAY_TEST_GEMMA does not name Gemma 3 270M: `make gemma` fetches it, `make test-gemma` sets it")
	}
	lv := openLlama(t, path)
	tok, err := OpenGGUF(path)
	if err != nil {
		t.Fatal(err)
	}
	compareVocab(t, tok.Vocab(), lv)
	// llama.cpp goes through a text once for each of 6,400 added tokens: not too
	// much of it.
	code, prose := realText(t, 1<<17)
	prose = strings.ToValidUTF8(prose[:min(len(prose), 1<<17)], "")
	t.Logf("%d bytes of code, %d of prose", len(code), len(prose))
	texts := append(referenceTexts(), code, prose, string(languages(t)))
	texts = append(texts, codePointTexts(" X", unicode.IsGraphic)...)
	// Many tokens' own texts, alone or between a space and its mark.
	var b strings.Builder
	for id := range vocab.ID(tok.Vocab().Len()) {
		text := string(tok.Vocab().Bytes(id))
		switch {
		case !comparable(text):
		case id%64 == 0:
			texts = append(texts, text)
		case id%4 == 0:
			b.WriteString(" " + text + metaSpace)
		}
		if b.Len() > 1<<16 {
			texts = append(texts, b.String())
			b.Reset()
		}
	}
	for _, text := range append(texts, b.String()) {
		compare(t, tok, lv, text)
	}
	blanks := []string{" ", "  ", "\n", "\t", metaSpace, "<0x20>", "<unused1>", "<start_of_turn>", "[multimodal]", "<bos>"}
	rng := rand.New(rand.NewPCG(27, 28))
	for range 3000 {
		if text := randomText(rng, append(blanks, hard...), 20); comparable(text) {
			compare(t, tok, lv, text)
		}
	}
}
