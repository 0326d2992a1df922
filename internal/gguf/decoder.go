package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Type is GGUF's number for the type of a value.
type Type uint32

// Types of values.
const (
	Uint8   Type = 0
	Int8    Type = 1
	Uint16  Type = 2
	Int16   Type = 3
	Uint32  Type = 4
	Int32   Type = 5
	Float32 Type = 6
	Bool    Type = 7
	Text    Type = 8
	List    Type = 9
	Uint64  Type = 10
	Int64   Type = 11
	Float64 Type = 12
)

var typeNames = [...]string{
	"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32",
	"bool", "string", "array", "uint64", "int64", "float64",
}

// typeSizes holds the bytes of a value; zero where values differ.
var typeSizes = [...]uint64{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint32(t))
}

const (
	// maxKeyBytes is what the GGUF specification allows.
	maxKeyBytes = 1<<16 - 1
	// maxPairs is far above the some dozens of real files. A pair takes many
	// times the memory that it takes in the file.
	maxPairs = 1 << 16
	// growStep is how much is allocated at once before the bytes are there.
	growStep = 64 << 10
)

// decoder reads front to back. After the first error all further reads give
// zero values.
type decoder struct {
	r     *bufio.Reader
	off   int64 // bytes consumed
	limit int64
	err   error
	word  [8]byte
}

func newDecoder(r io.Reader, limits Limits) *decoder {
	limit := limits.Metadata
	if limit <= 0 {
		limit = DefaultMetadataLimit
	}
	// Ends of strings are kept as uint32.
	return &decoder{r: bufio.NewReaderSize(r, growStep), limit: min(limit, math.MaxUint32)}
}

func (d *decoder) fail(off int64, cause error) {
	if d.err == nil {
		d.err = &FormatError{Offset: off, Cause: cause}
	}
}

func (d *decoder) failf(off int64, format string, args ...any) {
	d.fail(off, fmt.Errorf(format, args...))
}

// file reads the header and all key-value pairs.
func (d *decoder) file() (*File, error) {
	f := &File{values: map[string]value{}}
	d.header(f)
	at := d.off
	pairs := d.uint64()
	if d.err == nil && pairs > maxPairs {
		d.failf(at, "%d key-value pairs: %w of %d", pairs, ErrLimit, maxPairs)
	}
	for i := uint64(0); i < pairs && d.err == nil; i++ {
		d.pair(f)
	}
	if d.err != nil {
		return nil, d.err
	}
	return f, nil
}

func (d *decoder) header(f *File) {
	magic, err := d.r.Peek(4)
	if string(magic) != "GGUF" {
		switch {
		case len(magic) == 0 && errors.Is(err, io.EOF):
			d.failf(0, "%w: it is empty", ErrNotGGUF)
		case err != nil && !errors.Is(err, io.EOF):
			d.fail(0, err)
		default:
			d.failf(0, "%w: begins with %q, not \"GGUF\"", ErrNotGGUF, magic)
		}
		return
	}
	d.full(d.word[:4])
	version := d.uint32()
	switch {
	case d.err != nil:
	case version == 2 || version == 3:
	case version != 0 && version&0xffff == 0:
		d.failf(4, "a big-endian GGUF file; only little-endian ones are supported: convert the model anew on a little-endian machine")
	default:
		d.failf(4, "GGUF version %d; only 2 and 3 are supported", version)
	}
	f.Version = int(version)
	f.NTensors = d.uint64()
}

func (d *decoder) pair(f *File) {
	at := d.off
	n := d.uint64()
	if d.err == nil && n > maxKeyBytes {
		d.failf(at, "a key of %d bytes; at most %d are supported", n, maxKeyBytes)
	}
	key := string(d.bytes(nil, n))
	typ := Type(d.uint32())
	v := d.value(key, typ)
	if d.err != nil {
		return
	}
	if _, dup := f.values[key]; dup {
		d.failf(at, "key %q is there twice", key)
		return
	}
	f.keys = append(f.keys, key)
	f.values[key] = v
}

func (d *decoder) value(key string, typ Type) value {
	at := d.off - 4
	v := value{typ: typ}
	switch {
	case d.err != nil:
	case typ == Text:
		v.n = 1
		v.data = d.bytes(nil, d.uint64())
	case typ == List:
		d.array(key, &v)
	case int(typ) < len(typeSizes):
		v.n = 1
		v.data = d.bytes(nil, typeSizes[typ])
		d.checkBools(at+4, typ, v.data)
	default:
		d.failf(at, "key %q has unknown %v", key, typ)
	}
	return v
}

func (d *decoder) array(key string, v *value) {
	at := d.off
	v.elem = Type(d.uint32())
	n := d.uint64()
	switch {
	case d.err != nil:
	case v.elem == List:
		d.failf(at, "key %q is an array of arrays, which is not supported", key)
	case v.elem == Text:
		d.strings(n, v)
	case int(v.elem) >= len(typeSizes):
		d.failf(at, "key %q is an array of unknown %v", key, v.elem)
	case n > uint64(d.limit)/typeSizes[v.elem]:
		d.failf(at, "key %q is an array of %d %v: %w of %d bytes", key, n, v.elem, ErrLimit, d.limit)
	default:
		dataAt := d.off
		v.data = d.bytes(nil, n*typeSizes[v.elem])
		v.n = int(n)
		d.checkBools(dataAt, v.elem, v.data)
	}
}

// strings reads n strings into one block of bytes. Each costs 4 bytes beyond
// its own and has cost at least 8 in the file.
func (d *decoder) strings(n uint64, v *value) {
	if n > uint64(d.limit)/8 {
		d.failf(d.off-8, "an array of %d strings: %w of %d bytes", n, ErrLimit, d.limit)
		return
	}
	v.ends = make([]uint32, 0, min(n, growStep/4))
	for i := uint64(0); i < n && d.err == nil; i++ {
		v.data = d.bytes(v.data, d.uint64())
		v.ends = append(v.ends, uint32(len(v.data)))
	}
	v.n = len(v.ends)
}

func (d *decoder) checkBools(at int64, typ Type, data []byte) {
	if typ != Bool {
		return
	}
	for i, b := range data {
		if b > 1 {
			d.failf(at+int64(i), "a bool is %d, neither 0 nor 1", b)
			return
		}
	}
}

// bytes appends the next n bytes to dst, which grows as they arrive.
func (d *decoder) bytes(dst []byte, n uint64) []byte {
	if d.err != nil {
		return dst
	}
	if n > uint64(d.limit-d.off) {
		d.failf(d.off, "%d bytes more: %w of %d bytes", n, ErrLimit, d.limit)
		return dst
	}
	for n > 0 && d.err == nil {
		// What append may double is at most what has arrived.
		step := min(n, uint64(max(growStep, len(dst))))
		start := len(dst)
		dst = append(dst, make([]byte, step)...)
		d.full(dst[start:])
		n -= step
	}
	return dst
}

// full reads len(b) bytes.
func (d *decoder) full(b []byte) {
	if d.err == nil && int64(len(b)) > d.limit-d.off {
		d.failf(d.off, "%w of %d bytes", ErrLimit, d.limit)
	}
	if d.err != nil {
		return
	}
	n, err := io.ReadFull(d.r, b)
	d.off += int64(n)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		d.failf(d.off, "the file ends inside its metadata: %w", io.ErrUnexpectedEOF)
	case err != nil:
		d.fail(d.off, err)
	}
}

func (d *decoder) uint32() uint32 {
	d.full(d.word[:4])
	if d.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint32(d.word[:4])
}

func (d *decoder) uint64() uint64 {
	d.full(d.word[:8])
	if d.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(d.word[:8])
}
