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

// fewer divides what takes long in tests.
var fewer = 1

// eachText calls f with the clean texts of this machine: Go's sources, manual pages,
// package documentation and the messages of programs, up to budget bytes of each.
func eachText(budget int, f func(path string, text []byte)) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return
	}
	for _, root := range []string{filepath.Join(strings.TrimSpace(string(goroot)), "src"), "/usr/share/man", "/usr/share/doc", "/usr/share/locale"} {
		left := budget
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil
			}
			text := readText(path)
			if text == nil {
				return nil
			}
			f(path, text)
			if left -= len(text); left < 0 {
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
	if bytes.IndexByte(text, 0) >= 0 && !strings.HasSuffix(path, ".mo") {
		return nil
	}
	return text
}

// TestCleanCorpus wants no cuts. No two machines have the same documentation, so outside of
// Go's sources one file in a thousand may hold a loop indeed.
func TestCleanCorpus(t *testing.T) {
	budget := 12 << 20
	if testing.Short() {
		budget = 1 << 20
	}
	files, size, reports, others := 0, 0, 0, 0
	var spent time.Duration
	eachText(budget/fewer, func(path string, text []byte) {
		begin := time.Now()
		l := Find(text, Options{})
		spent += time.Since(begin)
		files, size = files+1, size+len(text)
		switch {
		case l == nil:
		case l.Kind == Templated:
			reports++
			t.Logf("%s: templated [%d, %d)", path, l.Start, l.End)
		case strings.HasPrefix(path, "/usr/share/"):
			others++
			t.Logf("%s: %s in %s at %d, %d × %d bytes: %.80q", path, l.Kind, l.Context, l.Start, l.Copies, l.Period, l.Unit)
		default:
			t.Errorf("%s: %s in %s at %d, %d × %d bytes: %.80q", path, l.Kind, l.Context, l.Start, l.Copies, l.Period, l.Unit)
		}
	})
	if others > files/1000 {
		t.Errorf("%d of %d files would be cut", others, files)
	}
	if size > 0 {
		t.Logf("%d files, %d bytes, %d reports, %.1f ns a byte", files, size, reports, float64(spent.Nanoseconds())/float64(size))
	}
}
