package toolcall

import "errors"

// Delta is what is new of a call, as OpenAI's streams have it.
type Delta struct {
	Index int
	// ID and Name come once, with the first delta of a call.
	ID, Name string
	// Arguments is the next part of the arguments: joined, the parts of a call are its
	// arguments. Nothing is taken back.
	Arguments string
	// End is the call, without its arguments, once nothing of it will change. Who holds
	// it back until then can see whether it is complete and strict. Where a call is not, the
	// Arguments of this delta may hold brackets that close them.
	End *Call
}

// Stream finds the calls in a text that arrives in pieces: the same as Find in the
// joined text, but that Find reads ambiguous JSON with hindsight. It is for one goroutine.
type Stream struct {
	m      *machine
	closed bool
	first  int // calls before it are done
	begun  int // calls before it have been named
}

var errClosed = errors.New("toolcall: the stream was closed before")

// NewStream returns a stream without text.
func NewStream(o Options) *Stream { return &Stream{m: newMachine(o)} }

// Write takes the next piece. It returns the text that is certainly no part of a call,
// and what is new of the calls. It fails behind Close.
func (s *Stream) Write(p []byte) (text []byte, calls []Delta, err error) {
	if s.closed {
		return nil, nil, errClosed
	}
	s.m.write(p)
	text, calls = s.take()
	return text, calls, nil
}

// Close ends the text. It returns what has been held back, and what was found besides
// calls.
func (s *Stream) Close() (text []byte, calls []Delta, r *Result) {
	if !s.closed {
		s.closed = true
		s.m.eof = true
		s.m.run()
		text, calls = s.take()
	}
	return text, calls, &Result{Findings: s.m.findings}
}

// take returns what is new. Calls that may turn out to be text, and arguments that may
// be a placeholder, wait.
func (s *Stream) take() ([]byte, []Delta) {
	m := s.m
	text := m.out
	m.out = nil
	var deltas []Delta
	for i := s.first; i < len(m.calls); i++ {
		c := m.calls[i]
		if c.hidden || !c.done && c.follow && c.sent == 0 && c.blank() {
			break
		}
		d := Delta{Index: i}
		if i == s.begun {
			d.ID, d.Name = c.ID, c.Name
			s.begun++
		}
		if c.done || c.sent > 0 || !c.blank() {
			d.Arguments = string(c.args)
			c.sent += len(c.args)
			c.args = nil
		}
		if c.done {
			end := c.Call
			d.End = &end
		}
		if d.Name != "" || d.Arguments != "" || d.End != nil {
			deltas = append(deltas, d)
		}
		if c.done && i == s.first {
			s.first++
		}
	}
	return text, deltas
}

// blank reports whether the arguments so far may be those of an empty object.
func (c *call) blank() bool {
	for i, b := range c.args {
		if !isSpace(b) && (b != '{' || i > 0) && b != '}' {
			return false
		}
	}
	return true
}
