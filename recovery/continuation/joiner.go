package continuation

// Proof says what shows that an answer goes on where the text ends.
type Proof string

// The proofs, the strongest first.
const (
	ByTokens   Proof = "exact"      // the upstream went on from the text's own end
	Reproduced Proof = "reproduced" // what was cut off was produced again, byte for byte
	Overlap    Proof = "overlap"    // the answer repeats the text's end
	Structural Proof = "structural" // nothing else would be JSON, or white space alone differs
)

// Joined is what an answer adds to a text.
type Joined struct {
	// Text is to be appended to the text. A [Joiner] leaves it nil.
	Text []byte
	// Overlap is how many bytes of the answer repeat the end of the text, Skipped how
	// many came before those, Dropped how many behind a fence that the answer put
	// around what it adds. None of these are part of Text.
	Overlap, Skipped, Dropped int
	Proof                     Proof
	// Malformed says that the text was JSON, and that the answer makes a fault in it,
	// too far behind a proven seam for that to be the reason.
	Malformed bool
}

// Join finds where an answer goes on with the text of a seam. Whatever comes to it
// goes behind the whole text: what was cut off and produced again is in the text
// already. The error is a [*SeamError], with which nothing may be joined. Time is
// linear in the answer, and in that part of the text that is held against it.
func Join(s *Seam, answer []byte) (Joined, error) {
	j := NewJoiner(s)
	text := []byte{}
	if _, err := j.Write(answer); err != nil {
		return Joined{}, err
	}
	text = append(text, j.Take()...)
	joined, err := j.Close()
	if err != nil {
		return Joined{}, err
	}
	joined.Text = append(text, j.Take()...)
	return joined, nil
}

// Joiner joins an answer that arrives in pieces to a text that has been sent and
// cannot be taken back. It holds bytes back until the seam is proven, Options.Hold of
// them at most, then passes on what is new. It comes to what [Join] does, however the
// answer is divided; but where an answer turns out wrong later, what was passed on
// before stays passed on. It is for one goroutine.
type Joiner struct {
	s     *Seam
	limit int    // bytes of head
	tail  []byte // of the text, that is looked for
	at    int    // bytes of the answer that were taken

	// Until the seam is found:
	begun  bool   // behind reasoning, or without any
	closer string // that ends the reasoning
	head   []byte // of the answer, behind that
	base   int    // offset of head in the answer
	exact  int    // bytes of Require found at the beginning; none: they differ
	loose  *loose // nil: white space counts
	again  bool   // the answer has been the text from its beginning so far

	// Behind it:
	found   bool
	fenced  bool     // the answer opened a fence, which is not part of the text
	m       *machine // reads on; nil: anything may come
	places  []int    // where the text's lines and sentences begin, from its end; nil: not looked at
	echoes  []int    // those of them that the new bytes repeat so far
	matched int      // that many of them
	breaks  int      // line breaks in the white space before the next byte
	pending []byte   // new, and not passed on yet
	passed  int      // bytes
	over    bool     // the fence has ended

	out    []byte
	joined Joined
	err    *SeamError
	closed bool
}

// NewJoiner returns a joiner without an answer.
func NewJoiner(s *Seam) *Joiner {
	hold := max(s.o.Hold, len(s.Require)+64)
	j := &Joiner{s: s, limit: hold + 2*longestIntroduction, tail: s.text[max(0, len(s.text)-hold):]}
	if s.Mode == Exact {
		j.accept(0, 0, ByTokens)
		return j
	}
	j.loose, j.again = newLoose(s), true
	if len(s.Require) == 0 {
		j.exact = none
	}
	return j
}

// Write takes the next piece of the answer. It returns the [*SeamError] once the
// answer has been refused.
func (j *Joiner) Write(p []byte) (int, error) {
	for i, c := range p {
		if j.err != nil {
			return i, j.err
		}
		j.at++
		if j.found {
			j.add(c)
		} else {
			j.search(c)
		}
	}
	if j.err != nil {
		return len(p), j.err
	}
	return len(p), nil
}

// Take returns what is new and proven since it was called last. It is valid until the
// next call of a method.
func (j *Joiner) Take() []byte {
	b := j.out
	j.out = nil
	return b
}

// Close ends the answer. Take then returns the last of what is new.
func (j *Joiner) Close() (Joined, error) {
	if j.err == nil && !j.closed {
		j.closed = true
		if !j.found {
			j.begin()
			j.resolve()
		}
		j.finish()
	}
	if j.err != nil {
		return Joined{}, j.err
	}
	return j.joined, nil
}

func (j *Joiner) fail(r Reason, at int) {
	if j.err == nil {
		j.err = &SeamError{Reason: r, Offset: at, Overlap: j.joined.Overlap}
		j.pending = nil
	}
}
