//go:build unix

package deps

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// fakePython answers as an interpreter that says it is version and whose pip installs a package.
func fakePython(version string) string {
	return `case "$*" in
*sysconfig*) echo "` + version + `" ;;
*"pip install"*)
	for last; do test "$previous" = --target && target=$last; previous=$last; done
	/bin/cp "$last" "$0.wants"
	/bin/mkdir -p "$target/xllamacpp" ;;
*"import xllamacpp"*) test -d "$PYTHONPATH/xllamacpp" ;;
*) exit 9 ;;
esac`
}

func TestLlamaServer(t *testing.T) {
	const sum = "00ff"
	here := map[string]string{runtime.GOOS + "/" + runtime.GOARCH: sum}
	tests := []struct {
		name   string
		python string // the interpreter's script; "": there is none
		sums   map[string]string
		want   string // in the error; "": none
	}{
		{"oldest", fakePython("cpython 3 10 0"), here, ""},
		{"newer", fakePython("cpython 3 14 0"), here, ""},
		{"too old", fakePython("cpython 3 9 0"), here, "is cpython 3.9, and the wheel needs CPython 3.10"},
		{"free-threaded", fakePython("cpython 3 14 1"), here, "is cpython 3.14 (free-threaded), and"},
		{"PyPy", fakePython("pypy 3 11 0"), here, "is pypy 3.11, and"},
		{"no version", fakePython("hello"), here, `answers "hello" when asked for its version`},
		{"fails", "exit 3", here, "exit status 3"},
		{"none", "", here, "python3 is missing: install CPython 3.10"},
		{"pip fails", strings.Replace(fakePython("cpython 3 11 0"), "for last", "exit 1; for last", 1), here, "pip install: exit status 1"},
		{"does not load", strings.Replace(fakePython("cpython 3 11 0"), "test -d", "echo GLIBC; false; test -f", 1), here, "does not load: exit status 1\nGLIBC"},
		{"other machine", fakePython("cpython 3 11 0"), nil, "without -llama-server"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRegistry(t)
			old := llamaServerPin.sums
			t.Cleanup(func() { llamaServerPin.sums = old })
			llamaServerPin.sums = tt.sums
			if tt.python == "" {
				remove(t, r.bin, "python3")
			} else {
				r.client(t, "python3", tt.python)
			}
			cache := Cache(filepath.Join(t.TempDir(), "cache"))
			f := &Fetcher{Cache: cache}
			dir, err := f.LlamaServer(context.Background())
			checkNoLeftovers(t, cache)
			found, findErr := cache.FindLlamaServer()
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want one with %q", err, tt.want)
				}
				if findErr == nil || !strings.Contains(findErr.Error(), "make test-deps") {
					t.Errorf("found %s, %v", found, findErr)
				}
				return
			}
			if err != nil || findErr != nil || found != dir || !isDir(filepath.Join(dir, "xllamacpp")) {
				t.Fatalf("fetched %s, %v; found %s, %v", dir, err, found, findErr)
			}
			wants, err := os.ReadFile(filepath.Join(r.bin, "python3.wants"))
			if want := llamaServerPin.name + "==" + llamaServerPin.version + " --hash=sha256:" + sum + "\n"; err != nil || string(wants) != want {
				t.Errorf("pip was given %q, %v, want %q", wants, err, want)
			}
			calls := r.calls("python3")
			if _, err := f.LlamaServer(context.Background()); err != nil || r.calls("python3") != calls {
				t.Errorf("a second fetch: %v, and %d more calls", err, r.calls("python3")-calls)
			}
		})
	}
}
