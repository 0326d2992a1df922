package textrepair

import (
	"github.com/unfray/unfray/jsonrepair"
)

// A Stream mends text that arrives in pieces. What it commits is final; joined, it is what Repair gives for the whole. It
// commits text as it comes, up to the first byte that looks damaged; from there it waits for the end of the line, for at
// most MaxHold bytes. It is for one goroutine.
type Stream struct {
	e     *engine
	buf   []byte // from a little before the line that is being read
	base  int    // offset of buf in the text
	from  int    // in buf: a place where a segment begins, or the text
	clean int    // in buf: up to here nothing can change
	done  int    // in buf: committed
	dirty bool   // something may begin at clean
	out   []byte
}

// NewStream returns a stream without input.
func NewStream(o Options) *Stream { return &Stream{e: newEngine(o)} }

// Write takes the next piece and returns what is committed with it, valid until the next call.
func (s *Stream) Write(p []byte) []byte {
	s.out = s.out[:0]
	s.buf = append(s.buf, p...)
	s.advance(false)
	s.trim()
	return s.out
}

// Close ends the text and returns the rest of it. The stream is then as new, but that offsets go on.
func (s *Stream) Close() []byte {
	s.out = s.out[:0]
	s.advance(true)
	s.base += len(s.buf)
	s.buf, s.from, s.clean, s.done, s.dirty = s.buf[:0], 0, 0, 0, false
	s.e.raw, s.e.fence = 0, fence{}
	return s.out
}

// Held is how many bytes of the input have not been committed.
func (s *Stream) Held() int { return len(s.buf) - s.done }

// Edits returns the edits since it was called last. Offsets are those of the whole text.
func (s *Stream) Edits() []jsonrepair.Edit {
	edits := s.e.edits
	s.e.edits = nil
	return edits
}

// Findings returns the first 1,000 places that were seen and left.
func (s *Stream) Findings() []jsonrepair.Finding { return s.e.findings }

// maxWord is how many bytes of a word are waited for before it is looked at with its line.
const maxWord = 512

func (s *Stream) advance(final bool) {
	for {
		if !s.dirty {
			at, hold := s.e.scan(s.buf, s.clean, final)
			s.clean = at
			s.commit(at)
			if at == len(s.buf) || hold && (final || len(s.buf)-at <= maxWord) {
				return
			}
			s.dirty = true // or a word so long that it must not be looked at again
		}
		start, end, ok := segmentAround(s.buf, s.from, s.clean, final)
		if !ok {
			s.from = start
			return
		}
		known := len(s.e.edits)
		s.e.repairSegment(s.buf[start:end], s.base+start, s.clean-start, s.buf[:start], final && end == len(s.buf))
		for _, edit := range s.e.edits[known:] {
			s.commit(edit.Offset - s.base)
			s.out = append(s.out, edit.After...)
			s.done += len(edit.Before)
		}
		s.commit(end)
		s.from, s.clean, s.dirty = end, end, false
	}
}

// commit passes the input on as it is, up to a place in buf.
func (s *Stream) commit(at int) {
	s.out = append(s.out, s.buf[s.done:at]...)
	s.done = at
}

// trim forgets what is not needed any more.
func (s *Stream) trim() {
	if len(s.buf) < 4*contextSize {
		return
	}
	if !s.dirty {
		s.from, _, _ = segmentAround(s.buf, s.from, s.clean, false)
	}
	cut := s.from - contextSize - 1
	if cut < len(s.buf)/2 {
		return
	}
	s.buf = s.buf[:copy(s.buf, s.buf[cut:])]
	s.base += cut
	s.from -= cut
	s.clean -= cut
	s.done -= cut
}
