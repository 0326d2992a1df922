package unfray

import (
	"unicode/utf8"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/vocab"
)

// assembler turns a generation's tokens into the continuation's text: it cuts
// off the replay, finds stop strings and decides what may be shown already.
// What it does depends on the tokens alone. So the steer, which runs beside the
// model, and the stream, which runs beside the caller, each have their own and
// come to the same result without sharing anything.
type assembler struct {
	vocab   *vocab.Vocab
	session *heal.Session
	stops   []stopMatcher

	text     []byte // the continuation so far
	stopped  bool   // a stop string was found; text ends before it
	replayed int    // tokens that began inside the pending bytes
	counted  int    // tokens of the continuation
}

func newAssembler(v *vocab.Vocab, plan *heal.Plan, stops []string) *assembler {
	a := &assembler{vocab: v, session: plan.NewSession()}
	for _, s := range stops {
		a.stops = append(a.stops, newStopMatcher(s))
	}
	return a
}

// piece is one token's share in the continuation.
type piece struct {
	offset    int // bytes from the start of the continuation
	length    int // bytes, none for a replayed or a control token
	straddles bool
	counts    bool
}

// accept takes the next token.
func (a *assembler) accept(id vocab.ID) (piece, error) {
	p := piece{offset: len(a.text)}
	b := a.vocab.Bytes(id)
	if !a.session.Done() {
		r, err := a.session.Accept(id)
		if err != nil {
			return p, err
		}
		a.replayed++
		b = b[r.Bytes:]
		p.straddles = r.Straddles
		p.counts = r.Straddles
	} else {
		p.counts = true
		if !a.vocab.IsText(id) {
			b = nil // control tokens are not part of the text
		}
	}
	if p.counts {
		a.counted++
	}
	for i := 0; i < len(b) && !a.stopped; i++ {
		a.text = append(a.text, b[i])
		a.matchStops(b[i])
	}
	p.length = max(0, len(a.text)-p.offset)
	return p, nil
}

// matchStops takes the text's last byte. The stop string completed first ends
// the text; of several that end there, the longest.
func (a *assembler) matchStops(b byte) {
	longest := 0
	for i := range a.stops {
		if m := &a.stops[i]; m.next(b) {
			longest = max(longest, len(m.stop))
		}
	}
	if longest > 0 {
		a.text = a.text[:len(a.text)-longest]
		a.stopped = true
	}
}

// ready is how many bytes of the text nothing that follows can take back: what
// is left may be the beginning of a stop string or of a character.
func (a *assembler) ready() int {
	n := len(a.text)
	if a.stopped {
		return n
	}
	begun := 0
	for i := range a.stops {
		begun = max(begun, a.stops[i].matched)
	}
	n -= begun
	for k := 1; k < utf8.UTFMax && k <= n; k++ {
		if tail := a.text[n-k : n]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				n -= k
			}
			break
		}
	}
	return n
}

// steer is the assembler's view for a backend.
type steer struct{ a *assembler }

func (s *steer) Mask() vocab.Mask { return s.a.session.Mask() }

func (s *steer) Accept(id vocab.ID) backend.Verdict {
	p, err := s.a.accept(id)
	// A token against the mask is reported by the stream, which sees it too.
	return backend.Verdict{Uncounted: !p.counts, Stop: err != nil || s.a.stopped}
}
