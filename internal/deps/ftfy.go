package deps

import (
	"context"
	"fmt"
	"path/filepath"
)

// MojibakeCases makes sure that ftfy's test cases are there, as damaged texts and what they were, and returns their
// folder: test_cases.json and LICENSE.txt. They are facts to compare package recovery/textrepair with.
func (f *Fetcher) MojibakeCases(ctx context.Context) (string, error) {
	dir := filepath.Join(string(f.Cache), "ftfy-"+ftfyPin.version+"-"+ftfyPin.sum[:12])
	return dir, f.once(ctx, "ftfy", dir, func() bool { return isDir(dir) }, func(tmp string) error {
		f.logf("ftfy: fetching its test cases (%s %s) by pip", ftfyPin.name, ftfyPin.version)
		archive, err := f.download(ctx, tmp, ftfyPin)
		if err != nil {
			return err
		}
		root := ftfyPin.name + "-" + ftfyPin.version + "/"
		wanted := map[string]string{root + "tests/test_cases.json": "test_cases.json", root + "LICENSE.txt": "LICENSE.txt"}
		files, err := readArchive(archive, ftfyPin, func(path string) bool { return wanted[path] != "" })
		if err != nil {
			return err
		}
		made := filepath.Join(tmp, "ftfy")
		for from, name := range wanted {
			text, ok := files[from]
			if !ok {
				return fmt.Errorf("%s does not hold %s", filepath.Base(archive), from)
			}
			if err := place(tmp, filepath.Join(made, name), text); err != nil {
				return err
			}
		}
		return replace(made, dir)
	})
}
