package jsonrepair

import (
	"errors"
	"io"
)

// IOError is a failure of what is read from or written to, not of the document.
type IOError struct {
	Op     string // read or write
	Offset int    // bytes read from the source or written to the destination before
	Err    error
}

func (e *IOError) Error() string { return "jsonrepair: " + e.Op + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *IOError) Unwrap() error { return e.Err }

// Writer repairs the document that is written to it and passes on what is
// committed, at once.
type Writer struct {
	// OnEdit is called with each edit, before the text that it is part of is passed
	// on. nil: edits are dropped.
	OnEdit func(Edit)

	dst     io.Writer
	s       *Stream
	written int
	result  *Result
	err     error
}

// NewWriter returns a writer whose output goes to dst.
func NewWriter(dst io.Writer, o Options) *Writer { return &Writer{dst: dst, s: NewStream(o)} }

// Write takes the next piece of the document. It returns an [*IOError] where dst
// fails, and an [*Error] where a limit is reached; either ends the document.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.s.Write(p)
	if w.pass(); w.err == nil {
		w.err = err
	}
	if w.err != nil {
		return n, w.err
	}
	return n, nil
}

// pass passes on what has been committed.
func (w *Writer) pass() {
	tell(w.s, w.OnEdit)
	text := w.s.Committed()
	if len(text) == 0 || w.err != nil {
		return
	}
	n, err := w.dst.Write(text)
	w.written += n
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = &IOError{"write", w.written, err}
	}
}

// tell takes the edits of a stream.
func tell(s *Stream, f func(Edit)) {
	for _, e := range s.Edits() {
		if f != nil {
			f(e)
		}
	}
}

// Close ends the document: what is open is closed, and passed on. It does not
// close dst. It returns the first error that there was, or [Result.Err] where no
// JSON was found.
func (w *Writer) Close() error {
	if w.result == nil {
		w.result = closeStream(w.s)
		w.pass()
	}
	if w.err == nil && w.result.Err != nil {
		w.err = w.result.Err
	}
	return w.err
}

// Result returns what became of the document, without its text and edits, once
// Close was called; before, nil.
func (w *Writer) Result() *Result { return w.result }

func closeStream(s *Stream) *Result {
	r := *s.Close()
	r.Text, r.log = nil, editLog{}
	return &r
}

// pieceSize is how many bytes are read at once.
const pieceSize = 32 << 10

// Reader reads a document from a source and gives its repaired text.
type Reader struct {
	// OnEdit is called with each edit, before the text that it is part of is given.
	// nil: edits are dropped.
	OnEdit func(Edit)

	src    io.Reader
	s      *Stream
	piece  []byte
	text   []byte // committed and not given yet
	read   int
	result *Result
	err    error // of src; comes when the text has been given
}

// NewReader returns a reader that gives the repaired text of what src holds.
// Several documents are separated by newlines.
func NewReader(src io.Reader, o Options) *Reader { return &Reader{src: src, s: NewStream(o)} }

// Read gives more of the text, as soon as it is committed. At the end it returns
// io.EOF, an [*Error] where a limit was reached or no JSON was found, or an
// [*IOError] where src failed: the text until there is closed and given first, as
// that of a document that breaks off.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for idle := 0; len(r.text) == 0; idle++ {
		if r.err != nil {
			return 0, r.err
		}
		if idle > 100 {
			return 0, &IOError{"read", r.read, io.ErrNoProgress}
		}
		if r.fill() {
			idle = 0
		}
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

// fill reads from the source and reports whether anything came.
func (r *Reader) fill() bool {
	if r.piece == nil {
		r.piece = make([]byte, pieceSize)
	}
	n, err := r.src.Read(r.piece)
	r.read += n
	_, limit := r.s.Write(r.piece[:n])
	switch {
	case limit != nil:
		r.result, r.err = closeStream(r.s), limit
	case errors.Is(err, io.EOF):
		r.result, r.err = closeStream(r.s), io.EOF
		if r.result.Err != nil {
			r.err = r.result.Err
		}
	case err != nil:
		r.s.breakOff()
		r.result, r.err = closeStream(r.s), &IOError{"read", r.read, err}
	}
	tell(r.s, r.OnEdit)
	r.text = r.s.Committed()
	return n > 0
}

// Result returns what became of the document, without its text and edits, once
// Read has returned an error, io.EOF among them; before, nil.
func (r *Reader) Result() *Result {
	if len(r.text) > 0 {
		return nil
	}
	return r.result
}

// breakOff says that the input ends where it was not meant to.
func (s *Stream) breakOff() { s.e.o.Ended = false }

// Copy repairs the document that src holds and writes its text to dst as it is
// committed. Memory grows with the findings alone. The result has no text and no
// edits; a [Writer] gives these as they come.
//
// The error is an [*IOError] that says whether reading or writing failed, or the
// [*Error] of a result that is Failed. Where reading fails, what was read is
// completed and written as a document that breaks off.
func Copy(dst io.Writer, src io.Reader, o Options) (*Result, error) {
	w := NewWriter(dst, o)
	piece := make([]byte, pieceSize)
	for idle := 0; ; {
		n, err := src.Read(piece)
		if _, werr := w.Write(piece[:n]); werr != nil {
			break
		}
		if idle++; n > 0 {
			idle = 0
		}
		if idle > 100 {
			err = io.ErrNoProgress
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			w.s.breakOff()
			err = &IOError{"read", w.s.read, err}
			// Where writing fails too, that is behind the reason.
			_ = w.Close()
			return w.Result(), err
		}
	}
	err := w.Close()
	return w.Result(), err
}
