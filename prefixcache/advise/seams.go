package advise

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/unfray/unfray/internal/wire"
)

// maxLine bounds a line of a file of seams, in bytes.
const maxLine = 16 << 20

// A LineError says which line of a file is wrong.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("advise: line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

var errNotSeam = errors.New(`not a seam: give "prefix" and "next", "prompt" and "truth", or "prefix" and "middle"`)

// ReadSeams calls f for each seam of JSON Lines, compressed by gzip or not, until
// it reports false. A line has "prefix" and "next", "prompt" and "truth", or
// "prefix", "middle" and "suffix". A line that is wrong is a [*LineError].
func ReadSeams(r io.Reader, f func(Seam) bool) error {
	br := bufio.NewReader(r)
	r = br
	if magic, _ := br.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(br)
		if err != nil {
			return &LineError{Line: 1, Err: err}
		}
		r = z
	}
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), maxLine)
	n := 0
	for sc.Scan() {
		n++
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		s, err := parseSeam(line)
		if err != nil {
			return &LineError{Line: n, Err: err}
		}
		if !f(s) {
			return nil
		}
	}
	if err := sc.Err(); err != nil {
		return &LineError{Line: n + 1, Err: err}
	}
	return nil
}

func parseSeam(line []byte) (Seam, error) {
	var in struct {
		Prefix, Next, Prompt, Truth, Middle *string
		Suffix                              string
	}
	if err := wire.Check(line); err != nil {
		return Seam{}, err
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return Seam{}, err
	}
	switch {
	case in.Prompt != nil && in.Truth != nil:
		return Seam{Prefix: []byte(*in.Prompt), Next: []byte(*in.Truth)}, nil
	case in.Prefix != nil && in.Middle != nil:
		return Seam{Prefix: []byte(*in.Prefix), Next: []byte(*in.Middle + in.Suffix)}, nil
	case in.Prefix != nil && in.Next != nil:
		return Seam{Prefix: []byte(*in.Prefix), Next: []byte(*in.Next)}, nil
	}
	return Seam{}, errNotSeam
}
