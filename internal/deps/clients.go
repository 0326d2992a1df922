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
// src (testdata/clients), and returns their folder: python/ for PYTHONPATH and javascript/node_modules. The folder's
// name is a digest of the lock files and of the Python version, whose wheels differ, so it is never changed in place.
func (f *Fetcher) Clients(ctx context.Context, src string) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("deps: clients: python3 is missing: install Python 3.10 or newer with pip (Debian, Ubuntu: apt-get install python3-pip)")
	}
	dir, err := f.clientsDir(ctx, python, src)
	if err != nil {
		return "", err
	}
	done := func() bool {
		info, err := os.Stat(dir)
		return err == nil && info.IsDir()
	}
	return dir, f.once(ctx, "clients", dir, done, func(tmp string) error {
		return f.fetchClients(ctx, python, src, tmp, dir)
	})
}

func (f *Fetcher) clientsDir(ctx context.Context, python, src string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"python/requirements.txt", "javascript/package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(src, filepath.FromSlash(name)))
		if err != nil {
			return "", fmt.Errorf("deps: clients: %w (run from the root of the repository)", err)
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	version, err := exec.CommandContext(ctx, python, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))").Output()
	if err != nil {
		return "", fmt.Errorf("deps: clients: %s: %w", python, err)
	}
	h.Write(version)
	return filepath.Join(string(f.Cache), "clients", hex.EncodeToString(h.Sum(nil)[:8])), nil
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
	wants, err := filepath.Abs(filepath.Join(src, "python", "requirements.txt"))
	if err != nil {
		return err
	}
	f.logf("clients: installing the Python client by pip")
	// A target folder instead of a virtual environment: it needs no ensurepip and is allowed on machines whose Python is
	// managed by the distribution (PEP 668).
	args := []string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps",
		"--only-binary=:all:", "--require-hashes", "--target", filepath.Join(root, "python"), "--requirement", wants}
	if err := f.run(ctx, tmp, "pip install", python, args...); err != nil {
		return err
	}
	return replace(root, dir)
}
