package tokenizer_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// recordings are the vocabularies whose ids were recorded, by the names in testdata/reference/record.py. A file stands
// for one below the vocabulary folder, or if it begins with "models/" below testdata/reference.
var recordings = []struct{ name, file string }{
	{"o200k_base", "o200k_base.tiktoken"},
	{"cl100k_base", "cl100k_base.tiktoken"},
	{"p50k_base", "p50k_base.tiktoken"},
	{"r50k_base", "r50k_base.tiktoken"},
	{"llama3", "llama3/tokenizer.json"},
	{"qwen3", "qwen3/tokenizer.json"},
	{"qwen2_5", "qwen2_5/tokenizer.json"},
	{"deepseek_v3", "deepseek_v3/tokenizer.json"},
	{"gptoss", "gptoss/tokenizer.json"},
	{"gpt4o", "gpt4o/tokenizer.json"},
	{"gemma3", "gemma3/tokenizer.json"},
	{"mistral", "mistral/tokenizer.json"},
	{"mistral_nemo", "mistral_nemo/tokenizer.json"},
	{"claude", "claude/tokenizer.json"},
	{"gpt2", "gpt2/tokenizer.json"},
	{"smollm2", ""},
	{"gemma2", "gemma2/tokenizer.model"},
	{"sp_unigram", "models/unigram.model"},
	{"sp_bpe", "models/bpe.model"},
	{"hf_unigram", "models/unigram.json.gz"},
	{"hf_wordpiece", "models/wordpiece.json.gz"},
}

// raced are the vocabularies that the race detector sees: one of each kind of model.
var raced = []string{"o200k_base", "llama3", "mistral", "sp_unigram", "sp_bpe", "hf_wordpiece"}

// TestReferenceIDs compares every id with those of tiktoken, Hugging Face tokenizers and SentencePiece on 44 MB.
func TestReferenceIDs(t *testing.T) {
	for _, r := range recordings {
		t.Run(r.name, func(t *testing.T) {
			if tokenizertest.Race && !slices.Contains(raced, r.name) {
				t.Skip("compared without the race detector")
			}
			tok, err := tokenizer.Open(recordedFile(t, r.name, r.file))
			if err != nil {
				t.Fatal(err)
			}
			tokenizertest.Compare(t, tok, r.name)
		})
	}
}

// recordedFile returns the path of a vocabulary's file. It skips the test where that is not the recorded one.
func recordedFile(t *testing.T, name, file string) string {
	t.Helper()
	var path string
	switch {
	case file == "":
		if path = os.Getenv("UNFRAY_TEST_MODEL"); path == "" {
			t.Skip("UNFRAY_TEST_MODEL is not set: `make test-default` sets it")
		}
	case strings.HasPrefix(file, "models/"):
		path = filepath.Join(tokenizertest.Reference(t), file)
	default:
		path = tokenizertest.Path(t, file)
	}
	if strings.HasSuffix(path, ".gz") {
		path = unpacked(t, path)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	want := tokenizertest.Record(t, name).SHA256
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		if file == "" { // the model may be the user's own
			t.Skipf("%s has SHA-256 %s, and ids were recorded for %s", path, got, want)
		}
		t.Fatalf("%s has SHA-256 %s, and ids were recorded for %s: record them again", path, got, want)
	}
	return path
}

// unpacked returns the path of a gzip file's contents, under the name tokenizer.json.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(to, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return to
}
