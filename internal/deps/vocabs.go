package deps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unfray/unfray/internal/deps/corpus"
)

// VocabDir returns the folder where the vocabularies and the corpora that tokenizers are tested with belong, whether or
// not they are there: NAME/tokenizer.json, NAME_base.tiktoken, gemma2/tokenizer.model, templates/NAME.jinja,
// corpora/NAME.txt.
func (c Cache) VocabDir() string { return filepath.Join(string(c), "vocabs") }

// Vocabs makes sure that the vocabularies and corpora are there and returns their folder.
func (f *Fetcher) Vocabs(ctx context.Context) (string, error) {
	dir := f.Cache.VocabDir()
	for _, pin := range vocabPins {
		done := func() bool { return vocabComplete(dir, pin) }
		err := f.once(ctx, "vocabulary "+pin.name, filepath.Join(dir, pin.mark()), done, func(tmp string) error {
			return f.fetchVocab(ctx, tmp, dir, pin)
		})
		if err != nil {
			return "", err
		}
	}
	corpora := filepath.Join(dir, "corpora")
	done := func() bool { return corporaComplete(corpora) }
	return dir, f.once(ctx, "corpora", corpora, done, func(tmp string) error {
		return f.fetchCorpora(ctx, tmp, corpora)
	})
}

// mark is the path below the vocabulary folder of the file that is written once a package's files are in place. Its name
// holds the package's version and sum, so that a new pin is fetched.
func (p vocabPin) mark() string {
	name := strings.NewReplacer("@", "", "/", "-").Replace(p.name)
	sum := strings.NewReplacer("h1:", "", "/", "_", "+", "-").Replace(p.sum)
	return filepath.Join(".fetched", name+"-"+p.version+"-"+sum[:12])
}

// vocabComplete compares sizes, not contents: files reach the folder only from an archive whose sum was checked.
func vocabComplete(dir string, pin vocabPin) bool {
	mark, err := os.ReadFile(filepath.Join(dir, pin.mark()))
	if err != nil {
		return false
	}
	var sizes []byte
	for _, to := range slices.Sorted(maps.Values(pin.files)) {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(to)))
		if err != nil {
			return false
		}
		sizes = fmt.Appendf(sizes, "%d %s\n", info.Size(), to)
	}
	return bytes.Equal(mark, sizes)
}

func (f *Fetcher) fetchVocab(ctx context.Context, tmp, dir string, pin vocabPin) error {
	f.logf("vocabulary %s: fetching %s by %s (about %d MB)", pin.name, pin.version, pin.client, pin.megabytes)
	archive, err := f.download(ctx, tmp, pin.source)
	if err != nil {
		return err
	}
	files, err := readArchive(archive, pin.source, func(path string) bool { return pin.files[path] != "" })
	if err != nil {
		return err
	}
	var sizes []byte
	for _, from := range slices.SortedFunc(maps.Keys(pin.files), func(a, b string) int { return strings.Compare(pin.files[a], pin.files[b]) }) {
		text, ok := files[from]
		if !ok {
			return fmt.Errorf("%s %s does not hold %s", pin.name, pin.version, from)
		}
		to := pin.files[from]
		if err := place(tmp, filepath.Join(dir, filepath.FromSlash(to)), text); err != nil {
			return err
		}
		sizes = fmt.Appendf(sizes, "%d %s\n", len(text), to)
	}
	return place(tmp, filepath.Join(dir, pin.mark()), sizes)
}

// place writes a file beside the cache's others, in tmp, and then moves it to its path.
func place(tmp, path string, text []byte) error {
	from := filepath.Join(tmp, "place")
	if err := os.WriteFile(from, text, 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return replace(from, path)
}

// corporaComplete compares sizes and the sums that the corpora were checked against.
func corporaComplete(dir string) bool {
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil || string(sums) != corpusSums() {
		return false
	}
	for _, c := range corpus.All {
		if info, err := os.Stat(filepath.Join(dir, c.Name+".txt")); err != nil || info.Size() != int64(c.Bytes) {
			return false
		}
	}
	return true
}

// corpusSums lists the corpora as sha256sum does.
func corpusSums() string {
	var b strings.Builder
	for _, c := range corpus.All {
		fmt.Fprintf(&b, "%s  %s.txt\n", c.SHA256, c.Name)
	}
	return b.String()
}

func (f *Fetcher) fetchCorpora(ctx context.Context, tmp, dir string) error {
	texts := map[string]func() ([]byte, error){
		"go": func() ([]byte, error) {
			p, err := f.texts(ctx, tmp, textPin{goSource, "", ".go"})
			return corpus.GoText(p), err
		},
		"multi": func() ([]byte, error) {
			var packages []corpus.Package
			for _, pin := range textPins {
				p, err := f.texts(ctx, tmp, pin)
				if err != nil {
					return nil, err
				}
				packages = append(packages, p)
			}
			return corpus.MultiText(packages...), nil
		},
		"fuzz": func() ([]byte, error) { return corpus.FuzzText(), nil },
	}
	made := filepath.Join(tmp, "corpora")
	if err := os.Mkdir(made, 0o755); err != nil {
		return err
	}
	for _, c := range corpus.All {
		text, err := texts[c.Name]()
		if err == nil {
			err = c.Check(text)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(made, c.Name+".txt"), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(made, "SHA256SUMS"), []byte(corpusSums()), 0o644); err != nil {
		return err
	}
	return replace(made, dir)
}

// texts fetches a package and returns the files that a corpus is made of.
func (f *Fetcher) texts(ctx context.Context, tmp string, pin textPin) (corpus.Package, error) {
	f.logf("corpora: fetching %s %s by %s", pin.name, pin.version, pin.client)
	dir, err := os.MkdirTemp(tmp, "text-")
	if err != nil {
		return nil, err
	}
	archive, err := f.download(ctx, dir, pin.source)
	if err != nil {
		return nil, err
	}
	files, err := readArchive(archive, pin.source, func(path string) bool {
		return strings.HasPrefix(path, pin.prefix) && strings.HasSuffix(path, pin.suffix)
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s %s holds no %s*%s", pin.name, pin.version, pin.prefix, pin.suffix)
	}
	return files, errors.Join(err, os.RemoveAll(dir))
}
