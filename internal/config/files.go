package config

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"strings"
)

type fileKind uint8

const (
	regular       fileKind = iota
	tokenizerFile          // or a folder
	secretContent          // read as a key
)

// fileCheck is a file that the configuration names.
type fileCheck struct {
	at   place
	path string // of the value
	name string
	kind fileKind
}

// checkFiles reports the files that are not there and reads keys. It repeats no
// file name: a key may stand there by mistake.
func (d *decoder) checkFiles() {
	for _, f := range d.files {
		if f.kind == secretContent {
			d.readSecret(f)
			continue
		}
		info, err := os.Stat(f.name)
		switch {
		case err != nil:
			d.fail(f.at, f.path, "%s", fileFault(err))
		case f.kind == regular && info.IsDir():
			d.fail(f.at, f.path, "this is a folder; name a file")
		}
	}
}

func (d *decoder) readSecret(f fileCheck) {
	content, err := readBounded(f.name, maxSecretBytes+2)
	if err != nil {
		d.fail(f.at, f.path, "%s", fileFault(err))
		return
	}
	key := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	if why := checkSecret(key); why != "" {
		d.fail(f.at, f.path, "in the file, %s", why)
		return
	}
	d.secrets[f.path] = key
}

func fileFault(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file; relative paths start at the folder of this file"
	case errors.Is(err, fs.ErrPermission):
		return "the file may not be read; change its mode or owner"
	case errors.Is(err, errTooLarge):
		return "the file is too large for a key"
	case errors.Is(err, errIsFolder):
		return "this is a folder; name a file"
	}
	return "the file cannot be read"
}

// checkTLS reports a certificate that is none, or has another key.
func (d *decoder) checkTLS(l Listener, path string) {
	cert, err := os.ReadFile(l.TLSCert)
	if err != nil {
		return // reported as a file
	}
	key, err := os.ReadFile(l.TLSKey)
	if err != nil {
		return
	}
	// The error may quote what is in the files.
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		if strings.Contains(err.Error(), "does not match") {
			d.failAt(path+".tls_key", "this is not the key of tls_cert")
			return
		}
		d.failAt(path+".tls_cert", "tls_cert and tls_key are not a certificate and its key in PEM")
	}
}
