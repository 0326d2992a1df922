package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeFiles writes files into a new folder.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pair is a certificate and its key in PEM.
func newPair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

func TestLoad(t *testing.T) {
	cert, key := newPair(t)
	dir := writeFiles(t, map[string]string{
		"etc/file.yaml": `
listeners: [{address: "127.0.0.1:0", tls_cert: cert.pem, tls_key: cert.key}]
keys: [{name: a, key_file: ../client}]
upstreams: {u: {kind: vllm, urls: [http://h], api_key_file: key}}
models:
- {name: a, upstream: u, tokenizer: tok}
- {name: b, upstream: u, tokenizer: cl100k=tok/t.tiktoken}
- {name: c, file: m.gguf}
`,
		"etc/cert.pem": cert, "etc/cert.key": key, "client": otherKey + "\r\n", "etc/key": testKey + "\n", "etc/tok/t.tiktoken": "", "etc/m.gguf": "",
	})
	c, err := Load(filepath.Join(dir, "etc", "file.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Upstreams[0].APIKey.Reveal() != testKey || c.Keys[0].SHA256 != HashOf(otherKey) {
		t.Error("the keys are not those of the files")
	}
	if want := filepath.Join(dir, "etc", "m.gguf"); c.Models[2].File != want {
		t.Errorf("file %s, want %s", c.Models[2].File, want)
	}
	if want := "cl100k=" + filepath.Join(dir, "etc", "tok", "t.tiktoken"); c.Models[1].Tokenizer != want {
		t.Errorf("tokenizer %s, want %s", c.Models[1].Tokenizer, want)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("warnings %v", c.Warnings)
	}
}

func TestFileErrors(t *testing.T) {
	cert, key := newPair(t)
	_, other := newPair(t)
	source, places := unmark(`listeners:
- {address: "127.0.0.1:1", tls_cert: ‸nocert.pem, tls_key: cert.key}
- {address: "127.0.0.1:2", tls_cert: cert.pem, tls_key: ‸other.key}
- {address: "127.0.0.1:3", tls_cert: ‸text, tls_key: cert.key}
keys:
- {name: a, key_file: ‸none}
- {name: b, key_file: ‸empty}
- {name: c, key_file: ‸long}
- {name: d, key_file: ‸lines}
- {name: e, key_file: ‸.}
upstreams: {u: {kind: vllm, urls: [http://h], api_key_file: ‸sk-0123456789}}
models:
- {name: a, file: ‸.}
- {name: b, file: ‸none.gguf}
- {name: c, upstream: u, tokenizer: ‸none}
- {name: d, upstream: u, tokenizer: ‸o200k_base=none}
`)
	dir := writeFiles(t, map[string]string{
		"file.yaml": source, "cert.pem": cert, "cert.key": key, "other.key": other, "text": "no PEM", "empty": "\n", "long": strings.Repeat("a", 5000), "lines": testKey + "\n" + testKey,
	})
	t.Chdir(dir)
	_, err := Load("file.yaml")
	const noFile = "there is no such file; relative paths start at the folder of this file"
	checkErrors(t, "error", listOfErrors(t, err), places, []string{
		"listeners[0].tls_cert: " + noFile,
		"listeners[1].tls_key: this is not the key of tls_cert",
		"listeners[2].tls_cert: tls_cert and tls_key are not a certificate and its key in PEM",
		"keys[0].key_file: " + noFile,
		"keys[1].key_file: in the file, the key is empty",
		"keys[2].key_file: the file is too large for a key",
		"keys[3].key_file: in the file, the key has blanks, line ends or characters that are not ASCII",
		"keys[4].key_file: this is a folder; name a file",
		"upstreams.u.api_key_file: " + noFile,
		"models[0].file: this is a folder; name a file",
		"models[1].file: " + noFile,
		"models[2].tokenizer: " + noFile,
		"models[3].tokenizer: " + noFile,
	})
	if _, err := (&Reader{SkipFiles: true}).Load("file.yaml"); err != nil {
		t.Errorf("without files: %v", err)
	}
	if _, err := Parse("file.yaml", []byte(source)); err != nil {
		t.Errorf("Parse looks at files: %v", err)
	}
}

func TestLoadErrors(t *testing.T) {
	dir := writeFiles(t, map[string]string{"large": strings.Repeat("#\n", maxFileBytes/2) + "#"})
	var list Errors
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, fs.ErrNotExist) || errors.As(err, &list) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Load(dir); err == nil || errors.As(err, &list) {
		t.Errorf("a folder: %v", err)
	}
	_, err := Load(filepath.Join(dir, "large"))
	if list = listOfErrors(t, err); len(list) != 1 || list[0].Line != 1 || !strings.Contains(list[0].Text, "1048576 bytes") {
		t.Errorf("a large file: %v", err)
	}
}

func TestSkipEnv(t *testing.T) {
	source := "upstreams: {u: {kind: vllm, urls: [http://h], api_key: \"${NOT_SET}\"}}\nkeys: [{name: a, key: \"${NOT_SET_EITHER}\"}, {name: b, key: \"${NO}\"}]\nmodels: [{name: a, upstream: u}]\n"
	r := testReader()
	r.SkipEnv = true
	c, err := r.Parse("file.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if !c.Upstreams[0].APIKey.IsZero() || c.Keys[0].SHA256 != (Hash{}) {
		t.Error("there are keys without an environment")
	}
	_, err = testReader().Parse("file.yaml", []byte(source))
	if list := listOfErrors(t, err); len(list) != 3 {
		t.Errorf("with it: %v", err)
	}
}
