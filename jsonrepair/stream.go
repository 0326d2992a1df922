package jsonrepair

import (
	"errors"
	"slices"
)

// Stream repairs a document that arrives in pieces. What it commits is final and
// at every moment the beginning of a JSON text; joined, it is what [Repair] would
// give, unless the document is ambiguous. Several documents are committed one
// after another, a newline between them. It is for one goroutine.
type Stream struct {
	e      *engine
	read   int // bytes written so far
	result *Result
}

var errClosed = errors.New("jsonrepair: the stream was closed before")

// NewStream returns a stream without input.
func NewStream(o Options) *Stream {
	s := &Stream{e: newEngine(o)}
	s.e.log.full = true
	return s
}

// Write takes the next piece of the input. It returns an [*Error] once a limit
// has been reached, and an error behind Close.
func (s *Stream) Write(p []byte) (int, error) {
	e := s.e
	if s.result != nil {
		return 0, errClosed
	}
	if s.read += len(p); e.o.MaxBytes > 0 && s.read > e.o.MaxBytes {
		e.fail(e.o.MaxBytes, "the document is longer than allowed", "raise MaxBytes")
	}
	if e.err != nil {
		return 0, e.err
	}
	e.in = append(e.in, p...)
	e.run()
	e.compact()
	if e.err != nil {
		return len(p), e.err
	}
	return len(p), nil
}

// compact forgets the input that has been dealt with.
func (e *engine) compact() {
	n := min(e.done, e.pos) - kept - e.base
	if n < len(e.in)/2 || n <= 0 {
		return
	}
	e.in = e.in[:copy(e.in, e.in[n:])]
	e.base += n
}

// Committed returns what has been committed since it was called last. It is valid
// until the next call of a method.
func (s *Stream) Committed() []byte {
	e := s.e
	out := e.out
	e.taken += len(out)
	e.out = e.out[len(e.out):]
	if cap(e.out) < 512 {
		e.out = make([]byte, 0, 4096)
	}
	return out
}

// Edits returns the edits made since it was called last.
func (s *Stream) Edits() []Edit {
	l := &s.e.log
	edits := slices.AppendSeq(make([]Edit, 0, l.n), l.all(nil))
	l.drain()
	return edits
}

// Close ends the input. The result is that of [Repair] for the whole input, but
// without text and edits: [Stream.Committed] and [Stream.Edits] give what has not
// been taken of them. Several documents stay as they are. Of an ambiguous document
// there are no readings: the one is committed that takes each place by itself.
func (s *Stream) Close() *Result {
	if s.result == nil {
		s.e.eof = true
		s.e.run()
		s.result = s.e.result()
		s.result.log = editLog{}
		if s.e.doubted > 0 && s.result.Outcome != Failed {
			s.result.Outcome = Ambiguous
		}
	}
	return s.result
}
