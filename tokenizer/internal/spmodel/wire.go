package spmodel

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Causes of errors, for errors.Is.
var (
	// ErrFormat: the bytes are not the protocol buffer message.
	ErrFormat = errors.New("not a SentencePiece model")
	// ErrInvalid: the message contradicts itself or lacks something.
	ErrInvalid = errors.New("not a valid SentencePiece model")
	// ErrUnsupported: the message asks for what this package does not know.
	ErrUnsupported = errors.New("not supported")
	// ErrLimit: the file is larger than this package reads.
	ErrLimit = errors.New("too large")
)

// Error is an error with its place in the file.
type Error struct {
	Path   string // such as "pieces[12].score"
	Offset int    // bytes from the start of the file
	Cause  error  // one of the above
	Detail string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (byte %d): %s: %s", e.Path, e.Offset, e.Cause, e.Detail)
}

func (e *Error) Unwrap() error { return e.Cause }

// Wire types of the protocol buffer encoding.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2 // with their length in front
	wireFixed32 = 5
)

// field is one field of a message.
type field struct {
	number int
	wire   int
	value  uint64 // varint, fixed32, fixed64
	data   []byte // bytes
	at     int    // offset in the file of the field's first byte
	dataAt int    // offset in the file of data
}

// message reads the fields of one message. A message inside another is read
// from the other's bytes; base is their offset in the file.
type message struct {
	data []byte
	pos  int
	base int
	path string
}

func (m *message) fail(at int, cause error, format string, args ...any) error {
	return &Error{m.path, at, cause, fmt.Sprintf(format, args...)}
}

// varint reads a number of up to 10 bytes.
func (m *message) varint() (uint64, error) {
	v, n := binary.Uvarint(m.data[m.pos:])
	switch {
	case n == 0:
		return 0, m.fail(m.base+len(m.data), ErrFormat, "the data ends in a number; the file is cut short or damaged")
	case n < 0:
		return 0, m.fail(m.base+m.pos, ErrFormat, "a number of more than 64 bits")
	}
	m.pos += n
	return v, nil
}

// next reads the next field; false at the end.
func (m *message) next(f *field) (bool, error) {
	if m.pos == len(m.data) {
		return false, nil
	}
	f.at = m.base + m.pos
	key, err := m.varint()
	if err != nil {
		return false, err
	}
	f.number, f.wire = int(key>>3), int(key&7)
	if key>>3 == 0 || key>>3 > 1<<29-1 {
		return false, m.fail(f.at, ErrFormat, "a field with the number %d", key>>3)
	}
	switch f.wire {
	case wireVarint:
		f.value, err = m.varint()
		return err == nil, err
	case wireFixed32, wireFixed64:
		size := 4
		if f.wire == wireFixed64 {
			size = 8
		}
		if len(m.data)-m.pos < size {
			return false, m.fail(f.at, ErrFormat, "field %d goes beyond the end; the file is cut short or damaged", f.number)
		}
		var word [8]byte
		copy(word[:], m.data[m.pos:m.pos+size])
		f.value = binary.LittleEndian.Uint64(word[:])
		m.pos += size
		return true, nil
	case wireBytes:
		n, err := m.varint()
		if err != nil {
			return false, err
		}
		if n > uint64(len(m.data)-m.pos) {
			return false, m.fail(f.at, ErrFormat, "field %d says it has %d bytes, but %d are left; the file is cut short or damaged", f.number, n, len(m.data)-m.pos)
		}
		f.dataAt = m.base + m.pos
		f.data = m.data[m.pos : m.pos+int(n) : m.pos+int(n)]
		m.pos += int(n)
		return true, nil
	}
	// Groups, the wire types 3 and 4, were never used in this format.
	return false, m.fail(f.at, ErrFormat, "field %d has the wire type %d", f.number, f.wire)
}

// inside opens the message that a field holds.
func (f *field) inside(path string) (message, error) {
	if err := f.want(wireBytes, path); err != nil {
		return message{}, err
	}
	return message{data: f.data, base: f.dataAt, path: path}, nil
}

// want checks the wire type.
func (f *field) want(wire int, path string) error {
	if f.wire != wire {
		return &Error{path, f.at, ErrFormat, fmt.Sprintf("field %d has the wire type %d, not %d", f.number, f.wire, wire)}
	}
	return nil
}
