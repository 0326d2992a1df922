// Package deps knows the files outside the Go module that unfray can run with: the prebuilt llama.cpp libraries, a
// small model, and on request a second one, whose terms of use must be accepted; and those that its tests run against,
// among them llama.cpp's own server. It fetches them with the ordinary clients of their registries, and holds that
//
//   - nothing is used whose SHA-256 is not the pinned one;
//   - a folder or file that stands at its final path is complete: downloads happen beside it and are renamed at the end;
//   - two processes may fetch at once, and a second fetch touches neither the network nor the files.
//
// Files of the user's own always win: see [EnvModel] and [EnvLib].
package deps

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// The environment variables that the package reads.
const (
	EnvCache = "UNFRAY_CACHE"     // the cache folder; default $XDG_CACHE_HOME/unfray, then $HOME/.cache/unfray
	EnvModel = "UNFRAY_MODEL"     // a GGUF file to use instead of the fetched model
	EnvLib   = "UNFRAY_LLAMA_LIB" // a folder of llama.cpp libraries to use instead of the fetched ones
)

// Version is the llama.cpp release that the fetched libraries hold and that package engine's binding fits.
const Version = "v0.5.0"

// A Cache is the absolute path of the folder that holds what was fetched. It lies outside the work tree, so that a
// fresh clone need not download again.
type Cache string

// DefaultCache returns the cache folder that the environment names. It does not create it.
func DefaultCache() (Cache, error) {
	dir := os.Getenv(EnvCache)
	if dir == "" {
		base := os.Getenv("XDG_CACHE_HOME")
		if base == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("deps: no place for the cache (%w): set %s to a folder", err, EnvCache)
			}
			base = filepath.Join(home, ".cache")
		}
		dir = filepath.Join(base, "unfray")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("deps: %s=%s: %w", EnvCache, dir, err)
	}
	return Cache(dir), nil
}

// LibDir returns the folder where the llama.cpp libraries for this machine belong, whether or not they are there.
func (c Cache) LibDir() string { return c.libDir(runtime.GOOS, runtime.GOARCH) }

func (c Cache) libDir(goos, goarch string) string {
	return filepath.Join(string(c), "llama.cpp-"+Version+"-"+goos+"-"+goarch)
}

// ModelPath returns the path where the model belongs, whether or not it is there.
func (c Cache) ModelPath() string { return filepath.Join(string(c), "models", modelPin.file) }

// FindLib returns the folder of llama.cpp libraries to load: the one that [EnvLib] names, else the fetched one. The
// error says what to do where there is none.
func (c Cache) FindLib() (string, error) {
	if dir := os.Getenv(EnvLib); dir != "" {
		return dir, checkOwnLib(dir)
	}
	if dir := c.LibDir(); libComplete(dir) {
		return dir, nil
	}
	return "", fmt.Errorf("deps: no llama.cpp libraries in %s: run `make deps`, or set %s to a folder that holds them (llama.cpp %s)", c.LibDir(), EnvLib, Version)
}

// FindModel returns the model to load: the file that [EnvModel] names, else the fetched one. The error says what to do
// where there is none.
func (c Cache) FindModel() (string, error) {
	if path := os.Getenv(EnvModel); path != "" {
		return path, checkOwnModel(path)
	}
	if path := c.ModelPath(); modelComplete(path, modelPin) {
		return path, nil
	}
	return "", fmt.Errorf("deps: no model at %s: run `make deps`, or set %s to a GGUF file", c.ModelPath(), EnvModel)
}

// libraryName returns the file name under which the binding loads a llama.cpp library.
func libraryName(goos, name string) string {
	switch goos {
	case "windows":
		return name + ".dll"
	case "darwin":
		return "lib" + name + ".dylib"
	}
	return "lib" + name + ".so"
}

func checkOwnLib(dir string) error {
	for _, name := range []string{"llama", "ggml"} {
		path := filepath.Join(dir, libraryName(runtime.GOOS, name))
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("deps: %s=%s is no folder of llama.cpp libraries (a link of that name to the versioned file will do): %w", EnvLib, dir, err)
		}
	}
	return nil
}

func checkOwnModel(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("deps: %s: %w", EnvModel, err)
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := f.ReadAt(magic, 0); err != nil || string(magic) != "GGUF" {
		return fmt.Errorf("deps: %s=%s is not a GGUF file", EnvModel, path)
	}
	return nil
}

// ErrNoLibffi says that the foreign-function library of the llama build is not on this machine.
var ErrNoLibffi = errors.New("deps: libffi.so.8 is missing, and a build with the tag llama stops at its start without it: install it (Debian, Ubuntu: apt-get install libffi8; Fedora: dnf install libffi; Arch: pacman -S libffi)")

// CheckLibffi looks for libffi.so.8 where the dynamic linker of a Linux machine finds it. Other systems need none: the
// binding brings its own.
func CheckLibffi() error {
	if runtime.GOOS != "linux" {
		return nil
	}
	dirs := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	for _, pattern := range []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*"} {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return fmt.Errorf("deps: pattern %s: %w", pattern, err)
		}
		dirs = append(dirs, matches...)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "libffi.so.8")); err == nil {
			return nil
		}
	}
	// Other places reach the linker through its configuration. Without ldconfig (musl) there are none.
	if list, err := exec.Command("ldconfig", "-p").Output(); err == nil && bytes.Contains(list, []byte("libffi.so.8")) {
		return nil
	}
	return ErrNoLibffi
}
