package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Reader reads configuration files. Its zero value reads them whole, as a
// server has to.
type Reader struct {
	// LookupEnv finds the variables of ${NAME}; nil: [os.LookupEnv].
	LookupEnv func(name string) (value string, ok bool)
	// SkipEnv leaves ${NAME} alone: those keys stay empty.
	SkipEnv bool
	// SkipFiles touches no other file: they may be missing, and keys in files
	// stay empty.
	SkipFiles bool
}

func (r *Reader) lookup(name string) (string, bool) {
	if r.LookupEnv != nil {
		return r.LookupEnv(name)
	}
	return os.LookupEnv(name)
}

// Load reads a file and everything that it names but models: keys and
// certificates are read, the rest has to exist. What is wrong with the file is
// [Errors]; other errors are of the file system.
func Load(path string) (*Config, error) { return (&Reader{}).Load(path) }

// Parse reads the text of a file without touching the file system. The name is
// shown in errors, and relative paths start at its folder. Errors are [Errors].
// Keys in files stay empty.
func Parse(name string, text []byte) (*Config, error) {
	return (&Reader{SkipFiles: true}).Parse(name, text)
}

// Load reads a file, as the function [Load] does.
func (r *Reader) Load(path string) (*Config, error) {
	text, err := readBounded(path, maxFileBytes)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, Errors{{File: path, Line: 1, Column: 1, Text: fmt.Sprintf("the file has more than the %d bytes that are read", maxFileBytes)}}
	case err != nil:
		return nil, fmt.Errorf("config: %w", err)
	}
	return r.Parse(path, text)
}

// Parse reads the text of a file, as the function [Parse] does, and unless
// SkipFiles is set the files that it names.
func (r *Reader) Parse(name string, text []byte) (*Config, error) {
	d := &decoder{
		reader:   r,
		file:     name,
		dir:      filepath.Dir(name),
		places:   map[string]place{},
		secrets:  map[string]string{},
		hashes:   map[string]bool{},
		mappings: map[string]bool{},
	}
	root, fault := parse(string(text))
	if fault != nil {
		d.fail(fault.place, "", "%s", fault.text)
		return nil, d.errors.err()
	}
	if root == nil {
		d.fail(place{1, 1}, "", "the file is empty; it needs models at least")
		return nil, d.errors.err()
	}
	c := &Config{File: name}
	schema.decode(d, root, "", c)
	if d.tooMuch != nil {
		return nil, Errors{d.tooMuch}
	}
	if !r.SkipFiles {
		d.checkFiles()
	}
	d.check(c)
	if err := d.errors.err(); err != nil {
		return nil, err
	}
	c.Warnings = d.warnings.sorted()
	return c, nil
}

var errTooLarge = errors.New("too large")

// readBounded reads a regular file or a pipe of at most that many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errIsFolder}
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = errTooLarge
	}
	return text, err
}

var errIsFolder = errors.New("is a folder")
