package deps

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// manifestName is the file, written last, that lists a library folder's files with their sizes in bytes.
const manifestName = "manifest"

// unpackLib unpacks the libraries and the licence of an npm package into dir and adds the links and the manifest. The
// caller has checked the archive's hash.
func unpackLib(archive, dir string, pin npmPin) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var manifest bytes.Buffer
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(archive), err)
		}
		// Flat on purpose: a base name cannot leave dir.
		name := path.Base(h.Name)
		wanted := path.Dir(h.Name) == pin.bins && strings.HasSuffix(name, ".so") || h.Name == "package/LICENSE"
		if h.Typeflag != tar.TypeReg || !wanted {
			continue
		}
		if err := writeFile(filepath.Join(dir, name), tr); err != nil {
			return err
		}
		fmt.Fprintf(&manifest, "%d %s\n", h.Size, name)
	}
	for link, target := range libLinks {
		if _, err := os.Stat(filepath.Join(dir, target)); err != nil {
			return fmt.Errorf("%s@%s does not hold %s: %w", pin.name, pin.version, target, err)
		}
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, manifestName), manifest.Bytes(), 0o644)
}

// libComplete reports whether a library folder still holds what its manifest lists. It compares sizes, not contents:
// it runs at every start.
func libComplete(dir string) bool {
	manifest, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(manifest)) {
		var size int64
		var name string
		if _, err := fmt.Sscanf(line, "%d %s", &size, &name); err != nil {
			return false
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != size {
			return false
		}
	}
	for link := range libLinks {
		if _, err := os.Stat(filepath.Join(dir, link)); err != nil {
			return false
		}
	}
	return true
}

// modelComplete reports whether the model is there.
func modelComplete(path string, pin wheelPin) bool { return sizedFile(path, pin.fileBytes) }

// sizedFile reports whether a file is there, by its size: one reaches its path only after its hash was checked.
func sizedFile(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

// unzipMember writes one file of a zip archive to path.
func unzipMember(archive, member, path string) error {
	w, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(copyMember(w, archive, member), w.Close())
}

// copyMember copies one file of a zip archive to w.
func copyMember(w io.Writer, archive, member string) error {
	zr, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	defer zr.Close()
	r, err := zr.Open(member)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	defer r.Close()
	_, err = io.Copy(w, r)
	return err
}

func writeFile(path string, r io.Reader) error {
	w, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
