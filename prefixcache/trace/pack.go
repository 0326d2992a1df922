package trace

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// A packError is damage of compressed data.
type packError struct {
	text string
	err  error
}

func (e *packError) Error() string { return e.text }
func (e *packError) Unwrap() error { return e.err }

// otherPacks are the beginnings of files in packings that are not read.
var otherPacks = []struct{ magic, name string }{
	{"\x28\xb5\x2f\xfd", "zstd"}, {"BZh", "bzip2"}, {"\xfd7zXZ\x00", "xz"}, {"PK\x03\x04", "zip"}, {"PAR1", "Parquet"},
}

// unpack reads r, through gzip if it begins as gzip's files do. What it unpacks
// to is at most limit bytes.
func unpack(r io.Reader, limit int64) io.Reader {
	b := bufio.NewReaderSize(r, 64<<10)
	head, _ := b.Peek(6) // fewer in a short file, which the reader below tells
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		return &gunzip{src: b, left: limit, limit: limit}
	}
	for _, p := range otherPacks {
		if bytes.HasPrefix(head, []byte(p.magic)) {
			return &gunzip{err: &packError{text: "the file is " + p.name + " data, which is not read: unpack it, or pack it with gzip"}}
		}
	}
	return b
}

// A gunzip unpacks gzip data, of as many members as there are.
type gunzip struct {
	src         *bufio.Reader
	z           *gzip.Reader
	left, limit int64
	err         error
}

func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.err != nil {
		return 0, g.err
	}
	if g.z == nil {
		if g.z, g.err = gzip.NewReader(g.src); g.err != nil {
			g.err = damaged(g.err, true)
			return 0, g.err
		}
	}
	if g.left == 0 {
		p = p[:min(len(p), 1)]
	}
	n, err = g.z.Read(p)
	if int64(n) > g.left {
		g.err = &packError{text: fmt.Sprintf("unpacks to more than %d bytes: allow more if you trust the file", g.limit)}
		return int(g.left), g.err
	}
	g.left -= int64(n)
	if err != nil && err != io.EOF {
		err = damaged(err, false)
	}
	g.err = err
	return n, err
}

// damaged tells what is wrong with gzip data. Errors of the reader below come
// back as they are.
func damaged(err error, first bool) error {
	var text string
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		text = "the gzip data is cut: fetch the file again"
	case errors.Is(err, gzip.ErrHeader) && first:
		text = "begins as gzip data but is none"
	case errors.Is(err, gzip.ErrHeader):
		text = "something that is no gzip data follows the gzip data"
	case errors.Is(err, gzip.ErrChecksum):
		text = "the gzip data is damaged, its checksum is another: fetch the file again"
	default:
		if !isCorrupt(err) {
			return err
		}
		text = "the gzip data is damaged: fetch the file again"
	}
	return &packError{text: text, err: err}
}

func isCorrupt(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.As(err, &corrupt)
}
