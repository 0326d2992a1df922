package deps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Clients installs the OpenAI client libraries that the tests run against the gateway, from the lock files in
// src (testdata/clients), and returns their folder: python/ for PYTHONPATH and javascript/node_modules.
func (f *Fetcher) Clients(ctx context.Context, src string) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("deps: clients: python3 is missing: install Python 3.10 or newer with pip (Debian, Ubuntu: apt-get install python3-pip)")
	}
	name, err := lockDigest(ctx, python, src, "python/requirements.txt", "javascript/package-lock.json")
	if err != nil {
		return "", fmt.Errorf("deps: clients: %w", err)
	}
	dir := filepath.Join(string(f.Cache), "clients", name)
	return dir, f.once(ctx, "clients", dir, func() bool { return isDir(dir) }, func(tmp string) error {
		return f.fetchClients(ctx, python, src, tmp, dir)
	})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lockDigest returns a digest of lock files in src and of the Python version, whose wheels differ. It names the folder
// of what they list, so that a folder is never changed in place.
func lockDigest(ctx context.Context, python, src string, names ...string) (string, error) {
	h := sha256.New()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(src, filepath.FromSlash(name)))
		if err != nil {
			return "", fmt.Errorf("%w (run from the root of the repository)", err)
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	version, err := exec.CommandContext(ctx, python, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", python, err)
	}
	h.Write(version)
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

func (f *Fetcher) fetchClients(ctx context.Context, python, src, tmp, dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("npm is missing: install Node.js 20 or newer with npm (Debian, Ubuntu: apt-get install npm)")
	}
	root := filepath.Join(tmp, "clients")
	js := filepath.Join(root, "javascript")
	if err := os.MkdirAll(js, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(src, "javascript", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(js, name), text, 0o644); err != nil {
			return err
		}
	}
	f.logf("clients: installing the JavaScript client by npm")
	if err := f.run(ctx, js, "npm ci", npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return err
	}
	f.logf("clients: installing the Python client by pip")
	if err := f.pipInstall(ctx, python, tmp, filepath.Join(src, "python", "requirements.txt"), filepath.Join(root, "python")); err != nil {
		return err
	}
	return replace(root, dir)
}

// pipInstall installs what a lock file lists. A target folder instead of a virtual environment: it needs no ensurepip
// and is allowed on machines whose Python is managed by the distribution (PEP 668).
func (f *Fetcher) pipInstall(ctx context.Context, python, tmp, requirements, target string) error {
	wants, err := filepath.Abs(requirements)
	if err != nil {
		return err
	}
	return f.run(ctx, tmp, "pip install", python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps",
		"--only-binary=:all:", "--require-hashes", "--target", target, "--requirement", wants)
}

// References installs the reference tokenizers, from the lock file in src (testdata/reference), and returns the folder
// for PYTHONPATH.
func (f *Fetcher) References(ctx context.Context, src string) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("deps: references: python3 is missing: install Python 3.10 or newer with pip (Debian, Ubuntu: apt-get install python3-pip)")
	}
	name, err := lockDigest(ctx, python, src, "requirements.txt")
	if err != nil {
		return "", fmt.Errorf("deps: references: %w", err)
	}
	dir := filepath.Join(string(f.Cache), "references", name)
	return dir, f.once(ctx, "references", dir, func() bool { return isDir(dir) }, func(tmp string) error {
		f.logf("references: installing tiktoken, tokenizers and sentencepiece by pip")
		target := filepath.Join(tmp, "python")
		if err := f.pipInstall(ctx, python, tmp, filepath.Join(src, "requirements.txt"), target); err != nil {
			return err
		}
		return replace(target, dir)
	})
}
