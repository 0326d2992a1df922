package textrepair

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// fewer keeps tests over much text short.
var fewer = false

// cleanFolders are where texts lie that people wrote and nobody damaged: Go's own source, and manual pages and
// documentation in the machine's languages. UNFRAY_TEST_CLEAN names more.
func cleanFolders() []string {
	folders := append(filepath.SplitList(os.Getenv("UNFRAY_TEST_CLEAN")), goSource())
	if !testing.Short() && !fewer {
		folders = append(folders, "/usr/share/man", "/usr/share/doc")
	}
	return folders
}

// goSource returns the folder of Go's source.
var goSource = sync.OnceValue(func() string {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		panic(err) // the go command runs this test
	}
	return filepath.Join(strings.TrimSpace(string(root)), "src")
})

// walkTexts calls f for every text file below the folders that is UTF-8, unpacked where it is compressed.
func walkTexts(t *testing.T, folders []string, f func(name string, text []byte)) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
					return nil
				}
				return err
			}
			if folder == goSource() && filepath.Ext(name) != ".go" {
				return nil
			}
			text, err := readText(name)
			if err == nil && utf8.Valid(text) && bytes.IndexByte(text, 0) < 0 {
				f(name, text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func readText(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil || filepath.Ext(name) != ".gz" {
		return text, err
	}
	zr, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, nil // not what its name says
	}
	return io.ReadAll(zr)
}

// TestCleanTextStays wants no edits. Files that are damaged indeed are in testdata/damaged.txt; because no two machines
// have the same, one in a thousand outside of Go's source may be so unlisted.
func TestCleanTextStays(t *testing.T) {
	damaged := damagedFiles(t)
	files, size, edits, unlisted := 0, 0, 0, 0
	walkTexts(t, cleanFolders(), func(name string, text []byte) {
		files++
		size += len(text)
		r := Repair(text, Options{})
		if len(r.Edits) == 0 {
			return
		}
		if reason := damaged.reason(name); reason != "" {
			t.Logf("%s: %d edits: %s", name, len(r.Edits), reason)
			edits += len(r.Edits)
			return
		}
		e := r.Edits[0]
		lo, hi := max(0, e.Offset-30), min(len(text), e.Offset+len(e.Before)+30)
		t.Logf("%s: %d edits, the first %s at %d: %q for %q in %q", name, len(r.Edits), e.Kind, e.Offset, e.After, e.Before, text[lo:hi])
		unlisted++
		if strings.HasPrefix(name, goSource()) {
			t.Errorf("%s: edits in clean text", name)
		}
	})
	t.Logf("%d files, %.1f MB, %d edits in damaged files, %d other files with edits", files, float64(size)/1e6, edits, unlisted)
	if unlisted > files/1000 {
		t.Errorf("%d of %d files have edits and are not in testdata/damaged.txt", unlisted, files)
	}
}

// damagedList holds the patterns of testdata/damaged.txt and their reasons.
type damagedList [][2]string

func damagedFiles(t *testing.T) (list damagedList) {
	t.Helper()
	text, err := os.ReadFile("testdata/damaged.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if pattern, reason, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			list = append(list, [2]string{pattern, reason})
		}
	}
	return list
}

func (l damagedList) reason(name string) string {
	parts := strings.Split(filepath.ToSlash(name), "/")
	for _, d := range l {
		n := min(len(parts), 1+strings.Count(d[0], "/"))
		if ok, err := path.Match(d[0], strings.Join(parts[len(parts)-n:], "/")); ok && err == nil {
			return d[1]
		}
	}
	return ""
}
