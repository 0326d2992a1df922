package extract

// Part says which part of its segment a piece belongs to.
type Part uint8

const (
	Opening Part = iota // an opening tag or fence line
	Body
	Closing
)

var partNames = []string{"opening", "body", "closing"}

func (p Part) String() string { return partNames[p] }

// MarshalText gives the part's name.
func (p Part) MarshalText() ([]byte, error) { return []byte(partNames[p]), nil }

// A Piece is a part of an answer that is final. Put together, the pieces are what
// was written.
type Piece struct {
	Kind    Kind
	Part    Part
	Segment int // counts the segments before it
	Offset  int // bytes of all that was written
	// Text is empty for the closing part of reasoning that something else has ended.
	Text []byte
	Info string // of the opening part of a fence
}

// Hold is the most bytes that a [Scanner] holds back before it says what they are,
// beside [Options.Unopened]: what could become a tag or a fence line, and what
// decides whether a quotation mark ends a string.
const Hold = 2048

// A Scanner splits an answer while it arrives, into the segments that [Segments]
// finds. It holds at most [Hold] bytes, and Options.Unopened. The one difference
// is what it cannot see yet: a closing tag that nothing has opened, see there.
type Scanner struct {
	e   *engine
	at  int // the end of what was given, in bytes
	out []Piece
}

// NewScanner returns a scanner for one answer.
func NewScanner(o Options) *Scanner { return &Scanner{e: newEngine(o)} }

// Write takes more of the answer and returns what is final now. The pieces are
// valid until the next call.
func (s *Scanner) Write(p []byte) []Piece {
	s.drop()
	s.e.b = append(s.e.b, p...)
	s.e.run()
	return s.pieces()
}

// Close ends the answer and returns the rest of it. Nothing may be written
// afterwards.
func (s *Scanner) Close() []Piece {
	s.drop()
	s.e.eof = true
	s.e.run()
	return s.pieces()
}

// drop forgets what has been given.
func (s *Scanner) drop() {
	e := s.e
	if n := s.at - e.base; n > 0 {
		e.b = append(e.b[:0], e.b[n:]...)
		e.pos -= n
		e.base = s.at
	}
	// The last run may still grow, and is needed to know of which kind it is.
	if n := len(e.runs) - 1; n > 0 && !e.holding() {
		e.runs = append(e.runs[:0], e.runs[n])
	}
}

func (s *Scanner) pieces() []Piece {
	e := s.e
	if e.holding() {
		return nil
	}
	out := s.out[:0]
	for _, r := range e.runs {
		if r.end < s.at || r.end == s.at && (r.part != Closing || r.given) {
			continue
		}
		out = append(out, Piece{Kind: r.kind, Part: r.part, Segment: r.segment, Offset: s.at, Text: e.b[s.at-e.base : r.end-e.base], Info: r.info})
		s.at = r.end
	}
	for i := range e.runs {
		e.runs[i].given = true
	}
	s.out = out
	return out
}
