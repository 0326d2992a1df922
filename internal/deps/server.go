package deps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// LlamaServerDir returns the folder where llama.cpp's server for this machine belongs, a Python package that PYTHONPATH
// can name, whether or not it is there.
func (c Cache) LlamaServerDir() string {
	return filepath.Join(string(c), "llama-server-"+llamaServerPin.version+"-"+runtime.GOOS+"-"+runtime.GOARCH)
}

// FindLlamaServer returns the folder of llama.cpp's server. The error says what to do where there is none.
func (c Cache) FindLlamaServer() (string, error) {
	if dir := c.LlamaServerDir(); isDir(dir) {
		return dir, nil
	}
	return "", fmt.Errorf("deps: no llama.cpp server in %s: run `make test-deps`", c.LlamaServerDir())
}

// LlamaServer makes sure that llama.cpp's own server is there, as the Python package xllamacpp, and returns its folder
// for PYTHONPATH.
func (f *Fetcher) LlamaServer(ctx context.Context) (string, error) {
	dir := f.Cache.LlamaServerDir()
	return dir, f.once(ctx, "llama.cpp server", dir, func() bool { return isDir(dir) }, func(tmp string) error {
		return f.fetchLlamaServer(ctx, tmp, dir)
	})
}

func (f *Fetcher) fetchLlamaServer(ctx context.Context, tmp, dir string) error {
	pin := llamaServerPin
	sum, ok := pin.sums[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no wheel of %s %s is pinned for %s/%s: without -llama-server the rest is fetched, and the tests that start the server skip", pin.name, pin.version, runtime.GOOS, runtime.GOARCH)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return errors.New("python3 is missing: install CPython 3.10 or newer with pip (Debian, Ubuntu: apt-get install python3-pip)")
	}
	if err := checkPython(ctx, python); err != nil {
		return err
	}
	f.logf("llama.cpp server: installing %s==%s by pip (about 34 MB)", pin.name, pin.version)
	wants := filepath.Join(tmp, "requirements.txt")
	if err := os.WriteFile(wants, fmt.Appendf(nil, "%s==%s --hash=sha256:%s\n", pin.name, pin.version, sum), 0o644); err != nil {
		return err
	}
	target := filepath.Join(tmp, "python")
	if err := f.pipInstall(ctx, python, tmp, wants, target); err != nil {
		return err
	}
	// A wheel may install and not load, where the system's libraries are older than it.
	cmd := exec.CommandContext(ctx, python, "-B", "-c", "import "+pin.name)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+target)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s does not load: %w\n%s", pin.name, pin.version, err, out)
	}
	return replace(target, dir)
}

// checkPython returns an error unless the wheel fits the interpreter: its stable ABI (abi3) begins with CPython 3.10,
// and builds without the global interpreter lock do not have it.
func checkPython(ctx context.Context, python string) error {
	const script = `import sys, sysconfig
print(sys.implementation.name, *sys.version_info[:2], sysconfig.get_config_var("Py_GIL_DISABLED") or 0)`
	out, err := exec.CommandContext(ctx, python, "-c", script).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", python, err)
	}
	var name string
	var major, minor, free int
	if _, err := fmt.Sscan(string(out), &name, &major, &minor, &free); err != nil {
		return fmt.Errorf("%s answers %q when asked for its version: %w", python, bytes.TrimSpace(out), err)
	}
	if name != "cpython" || major != 3 || minor < 10 || free != 0 {
		kind := ""
		if free != 0 {
			kind = " (free-threaded)"
		}
		return fmt.Errorf("%s is %s %d.%d%s, and the wheel needs CPython 3.10 or newer with the global interpreter lock: put such a python3 first in PATH", python, name, major, minor, kind)
	}
	return nil
}
