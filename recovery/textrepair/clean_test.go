package textrepair

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

// cleanFolders are where texts lie that people wrote and nobody damaged: Go's own source, and manual pages and
// documentation in the machine's languages. UNFRAY_TEST_CLEAN names more.
func cleanFolders() []string {
	folders := append(filepath.SplitList(os.Getenv("UNFRAY_TEST_CLEAN")), filepath.Join(runtime.GOROOT(), "src"))
	if !testing.Short() {
		folders = append(folders, "/usr/share/man", "/usr/share/doc")
	}
	return folders
}

// walkTexts calls f for every text file below the folders that is UTF-8, unpacked where it is compressed.
func walkTexts(t *testing.T, folders []string, f func(path string, text []byte)) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
					return nil
				}
				return err
			}
			if strings.HasPrefix(folder, runtime.GOROOT()) && filepath.Ext(path) != ".go" {
				return nil
			}
			text, err := readText(path)
			if err == nil && utf8.Valid(text) && bytes.IndexByte(text, 0) < 0 {
				f(path, text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func readText(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil || filepath.Ext(path) != ".gz" {
		return text, err
	}
	zr, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, nil // not what its name says
	}
	return io.ReadAll(zr)
}

func TestCleanTextStays(t *testing.T) {
	files, size, edits := 0, 0, 0
	walkTexts(t, cleanFolders(), func(path string, text []byte) {
		files++
		size += len(text)
		r := Repair(text, Options{})
		edits += len(r.Edits)
		for i, e := range r.Edits {
			if i == 3 {
				break
			}
			lo, hi := max(0, e.Offset-30), min(len(text), e.Offset+len(e.Before)+30)
			t.Errorf("%s: %s at %d: %q for %q in %q", path, e.Kind, e.Offset, e.After, e.Before, text[lo:hi])
		}
	})
	t.Logf("%d files, %.1f MB, %d edits", files, float64(size)/1e6, edits)
}
