package tokenizertest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/unfray/unfray/internal/deps/corpus"
)

// Path returns the path of a file below the vocabulary folder, such as "llama3/tokenizer.json". It skips the test where
// the folder is not there.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("UNFRAY_TEST_VOCABS")
	if dir == "" {
		t.Skip("UNFRAY_TEST_VOCABS is not set: `go run ./internal/deps/fetch -no-engine -vocabs -env` fetches the vocabularies once and prints it")
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}

var corpora struct {
	sync.Mutex
	texts map[string][]byte
}

// Corpus returns the corpus of that name: "go", "multi" or "fuzz". Its bytes are checked, and must not be modified. It
// skips the test where the corpora are not there.
func Corpus(t testing.TB, name string) []byte {
	t.Helper()
	path := Path(t, "corpora/"+name+".txt")
	corpora.Lock()
	defer corpora.Unlock()
	if text := corpora.texts[name]; text != nil {
		return text
	}
	c, ok := corpus.Find(name)
	if !ok {
		t.Fatalf("no corpus is named %q", name)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = c.Check(text)
	}
	if err != nil {
		t.Fatalf("%v: `go run ./internal/deps/fetch -no-engine -vocabs` makes the corpora", err)
	}
	if corpora.texts == nil {
		corpora.texts = map[string][]byte{}
	}
	corpora.texts[name] = text
	return text
}
