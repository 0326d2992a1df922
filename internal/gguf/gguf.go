// Package gguf reads the metadata of GGUF model files.
//
//   - Only the key-value section is read, never tensor data: opening a model of
//     many gigabytes costs as much as its vocabulary.
//   - Input is not trusted. Memory grows with the bytes that really arrive, not
//     with the counts a file claims, and never beyond [Limits]; what is wrong
//     comes back as a [*FormatError] with its place.
//
// Versions 2 and 3 are read, little-endian.
package gguf

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Limits bounds what a file may make the reader hold. The zero value means the
// defaults.
type Limits struct {
	// Metadata is the most bytes that the header and all key-value pairs may
	// take; zero means 256 MiB. More than 4 GiB - 1 is taken as that.
	Metadata int64
}

// DefaultMetadataLimit is the bytes of metadata read unless [Limits] says
// otherwise. The largest vocabularies in use take about 20 MB.
const DefaultMetadataLimit = 256 << 20

// File is the metadata of one model.
type File struct {
	// Version is the GGUF version, 2 or 3.
	Version int
	// NTensors is how many tensors the header announces.
	NTensors uint64

	keys   []string
	values map[string]value
}

// FormatError says where metadata is damaged and how.
type FormatError struct {
	Offset int64 // bytes from the start of the file
	Cause  error
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("gguf: at byte %d: %v", e.Offset, e.Cause)
}

func (e *FormatError) Unwrap() error { return e.Cause }

// ErrNotGGUF is the cause of a [FormatError] for what is another kind of file.
var ErrNotGGUF = errors.New("not a GGUF file")

// ErrLimit is the cause of a [FormatError] for metadata beyond the limit.
var ErrLimit = errors.New("metadata is larger than the limit")

// Open reads the metadata of the file at path within the default limits.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return nil, fmt.Errorf("gguf: %s is a folder; name the .gguf file inside it", path)
	}
	file, err := Read(f, Limits{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// Read reads metadata from the start of a model. It may read beyond the end of
// the metadata.
func Read(r io.Reader, limits Limits) (*File, error) {
	d := newDecoder(r, limits)
	return d.file()
}

// Architecture is the model's architecture, such as "llama", or "" if the file
// does not say.
func (f *File) Architecture() string {
	s, _ := f.String("general.architecture")
	return s
}

// Keys lists the keys in the order of the file. It must not be modified.
func (f *File) Keys() []string { return f.keys }

// Has reports whether the file holds a key.
func (f *File) Has(key string) bool {
	_, ok := f.values[key]
	return ok
}
