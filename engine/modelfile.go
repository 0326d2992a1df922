package engine

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/unfray/unfray/internal/gguf"
)

// checkModelFile tells a missing, foreign or truncated file by name, which the
// native loader cannot be asked about: it only says that it failed. It refuses
// what the native library would abort at, and the process with it.
func checkModelFile(path string) error {
	meta, err := gguf.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("engine: there is no model file %s; name a GGUF file, or let `make deps` fetch one", path)
	case err != nil:
		return fmt.Errorf("engine: %s cannot be used as a model: %w", path, err)
	}
	if err := errors.Join(checkHyperparameters(meta), checkTokens(meta)); err != nil {
		return fmt.Errorf("engine: %s is damaged: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	need, err := lastTensor(f, meta)
	if err != nil {
		return fmt.Errorf("engine: %s is damaged: %w", path, err)
	}
	if need > uint64(st.Size()) {
		return fmt.Errorf("engine: %s is truncated: it has %d bytes, but its tensors go beyond byte %d; fetch it again", path, st.Size(), need)
	}
	return nil
}

// defaultAlignment of tensor data in bytes, where general.alignment is absent.
// llama.cpp aborts where the data begins at no multiple of it.
const defaultAlignment = 32

// lastTensor reads the tensor table and returns the offset in bytes after the
// first byte of the tensor that lies last, or zero if there is none. How long
// that tensor is the table does not say; the native loader checks it.
func lastTensor(r io.Reader, meta *gguf.File) (uint64, error) {
	t := &tableReader{r: bufio.NewReaderSize(r, 1<<16)}
	t.skip(4 + 4) // magic, version
	tensors, pairs := t.u64(), t.u64()
	for i := uint64(0); i < pairs && t.err == nil; i++ {
		t.skip(t.u64())
		t.skipValue(gguf.Type(t.u32()))
	}
	last, found := uint64(0), false
	for i := uint64(0); i < tensors && t.err == nil; i++ {
		name := t.name()
		dims := uint64(t.u32())
		t.skip(8 * dims) // sizes
		if err := checkTensor(name, dims, t.u32()); err != nil && t.err == nil {
			t.err = err
		}
		last, found = max(last, t.u64()), true
	}
	if t.err != nil {
		return 0, fmt.Errorf("at byte %d, in the table of tensors: %w", t.off, t.err)
	}
	if !found {
		return 0, nil
	}
	align, err := meta.Uint("general.alignment")
	if err != nil || align == 0 || align > 1<<20 {
		align = defaultAlignment
	}
	start := (t.off + align - 1) / align * align
	if start%defaultAlignment != 0 {
		return 0, fmt.Errorf("general.alignment is %d: the tensors begin at byte %d, which is no multiple of %d", align, start, defaultAlignment)
	}
	end := start + last + 1
	if end < last {
		return 0, fmt.Errorf("a tensor lies at byte %d of the data", last)
	}
	return end, nil
}

// tableReader walks a GGUF file. After an error it returns zeros.
type tableReader struct {
	r   *bufio.Reader
	off uint64 // bytes
	err error
}

// maxSkip keeps lengths within what bufio.Reader.Discard takes on any platform.
const maxSkip = 1 << 30

func (t *tableReader) skip(n uint64) {
	for n > 0 && t.err == nil {
		var d int
		d, t.err = t.r.Discard(int(min(n, maxSkip)))
		t.off += uint64(d)
		n -= uint64(d)
	}
	if t.err == io.EOF {
		t.err = io.ErrUnexpectedEOF
	}
}

// maxName is more than llama.cpp takes for a tensor's name, in bytes.
const maxName = 256

// name reads a tensor's name; one that is too long reads as "".
func (t *tableReader) name() string {
	n := t.u64()
	if n > maxName {
		t.skip(n)
		return ""
	}
	b, _ := t.r.Peek(int(n)) // what is missing skip reports
	name := string(b)
	t.skip(n)
	return name
}

func (t *tableReader) u32() uint32 {
	if b, err := t.r.Peek(4); t.err == nil && err == nil {
		v := binary.LittleEndian.Uint32(b)
		t.skip(4)
		return v
	}
	t.skip(4)
	return 0
}

func (t *tableReader) u64() uint64 {
	if b, err := t.r.Peek(8); t.err == nil && err == nil {
		v := binary.LittleEndian.Uint64(b)
		t.skip(8)
		return v
	}
	t.skip(8)
	return 0
}

// errValueType is for a file that changed after package gguf had accepted it.
var errValueType = errors.New("metadata of an unknown type")

// skipValue passes over a metadata value.
func (t *tableReader) skipValue(typ gguf.Type) {
	switch {
	case typ == gguf.Text:
		t.skip(t.u64())
	case typ == gguf.List:
		t.skipArray(gguf.Type(t.u32()), t.u64())
	case scalarBytes(typ) > 0:
		t.skip(scalarBytes(typ))
	case t.err == nil:
		t.err = errValueType
	}
}

func (t *tableReader) skipArray(elem gguf.Type, n uint64) {
	switch size := scalarBytes(elem); {
	case elem == gguf.Text:
		for ; n > 0 && t.err == nil; n-- {
			t.skip(t.u64())
		}
	case size > 0 && n <= 1<<60:
		t.skip(n * size)
	case t.err == nil:
		t.err = errValueType
	}
}

// scalarBytes is the size of a fixed-size value, zero for other types.
func scalarBytes(typ gguf.Type) uint64 {
	switch typ {
	case gguf.Uint8, gguf.Int8, gguf.Bool:
		return 1
	case gguf.Uint16, gguf.Int16:
		return 2
	case gguf.Uint32, gguf.Int32, gguf.Float32:
		return 4
	case gguf.Uint64, gguf.Int64, gguf.Float64:
		return 8
	}
	return 0
}
