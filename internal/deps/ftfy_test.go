//go:build unix

package deps

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMojibakeCases(t *testing.T) {
	r := newRegistry(t)
	old := ftfyPin
	t.Cleanup(func() { ftfyPin = old })
	dir := t.TempDir()
	archive := tarball(t, [][2]string{
		{"ftfy-1/LICENSE.txt", "a licence"}, {"ftfy-1/tests/test_cases.json", "[]"}, {"ftfy-1/tests/face.txt", "not wanted"},
	})
	write(t, filepath.Join(dir, "ftfy.tar.gz"), archive)
	r.client(t, "python3", "/bin/cp "+dir+"/ftfy.tar.gz ./ftfy-1.tar.gz")
	ftfyPin = source{sdist, "ftfy", "1", digest(archive)}
	f := &Fetcher{Cache: Cache(filepath.Join(dir, "cache"))}
	for range 2 {
		got, err := f.MojibakeCases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(got, "test_cases.json")); string(text) != "[]" {
			t.Errorf("test_cases.json holds %q, %v", text, err)
		}
		if entries, err := os.ReadDir(got); len(entries) != 2 {
			t.Errorf("the folder holds %v, %v", entries, err)
		}
	}
	if n := r.calls("python3"); n != 1 {
		t.Errorf("pip ran %d times, want once", n)
	}

	ftfyPin.sum = digest([]byte("another"))
	if _, err := f.MojibakeCases(t.Context()); err == nil || !strings.Contains(err.Error(), "is not used") {
		t.Errorf("an archive that is not the pinned one: error %v", err)
	}
}
