package loop

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// eachText calls f with the clean texts of this machine: Go's sources, manual pages and
// package documentation, and the messages of programs, until f returns false.
func eachText(f func(path string, text []byte) bool) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return
	}
	for _, root := range []string{filepath.Join(strings.TrimSpace(string(goroot)), "src"), "/usr/share/man", "/usr/share/doc", "/usr/share/locale"} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil
			}
			text := readText(path)
			if text != nil && !f(path, text) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			return
		}
	}
}

// readText returns a file's text, nil if it has none.
func readText(path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	if strings.HasSuffix(path, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil
		}
		if text, err = io.ReadAll(io.LimitReader(r, 16<<20)); err != nil {
			return nil
		}
	}
	if strings.HasSuffix(path, ".mo") {
		return bytes.ReplaceAll(text, []byte{0}, []byte{'\n'})
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	return text
}

func TestCleanCorpus(t *testing.T) {
	budget := 400 << 20
	if testing.Short() {
		budget = 2 << 20
	}
	files, size, reports := 0, 0, 0
	var spent time.Duration
	eachText(func(path string, text []byte) bool {
		begin := time.Now()
		l := Find(text, Options{})
		spent += time.Since(begin)
		files, size = files+1, size+len(text)
		switch {
		case l == nil:
		case l.Kind == Templated:
			reports++
			t.Logf("%s: templated [%d, %d)", path, l.Start, l.End)
		default:
			t.Errorf("%s: %s in %s at %d, %d × %d bytes: %.80q", path, l.Kind, l.Context, l.Start, l.Copies, l.Period, l.Unit)
		}
		return size < budget
	})
	if size > 0 {
		t.Logf("%d files, %d bytes, %d reports, %.1f ns a byte", files, size, reports, float64(spent.Nanoseconds())/float64(size))
	}
}
