package unfray

import (
	"slices"
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
	fill    *fillMatcher // nil: nothing stands after the continuation

	text       []byte // the continuation so far
	stopString string
	stopped    bool // a stop string, or the suffix, was found; text ends before it
	replayed   int  // tokens that began inside the pending bytes
	counted    int  // tokens of the continuation
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
	} else if a.fill != nil && slices.Contains(a.fill.ends, id) {
		a.stopped = true
		a.end()
		return p, nil
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
		a.matchSuffix(b[i : i+1])
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
			if len(m.stop) > longest {
				longest, a.stopString = len(m.stop), m.stop
			}
		}
	}
	if longest > 0 {
		a.text = a.text[:len(a.text)-longest]
		a.stopped = true
	}
}

// matchSuffix takes the text's last byte. The text ends where the suffix begins
// again.
func (a *assembler) matchSuffix(b []byte) {
	if a.fill == nil || a.stopped {
		return
	}
	var repeated bool
	if a.fill.out, repeated = a.fill.join.Next(a.fill.out[:0], b); repeated {
		a.text = a.text[:a.fill.join.Given()]
		a.stopped = true
	}
}

// end is called where the generation ends without a stop string. It takes off
// the text's end what repeats the suffix.
func (a *assembler) end() {
	if a.fill == nil {
		return
	}
	a.fill.join.End(nil)
	if n := a.fill.join.Given(); n < len(a.text) {
		a.text = a.text[:n]
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
	if a.fill != nil {
		n = min(n, a.fill.join.Given())
	}
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
type steer struct {
	a *assembler
	c *constraint // nil: any text may follow
}

func (s *steer) Mask() vocab.Mask {
	if mask := s.a.session.Mask(); mask != nil || s.c == nil {
		return mask
	}
	return s.c.next()
}

func (s *steer) Accept(id vocab.ID) backend.Verdict {
	rest := len(s.a.session.Rest())
	p, err := s.a.accept(id)
	if b := s.a.vocab.Bytes(id); s.c != nil && len(b) > rest && s.a.vocab.IsText(id) {
		s.c.accept(b[rest:])
	}
	// A token against the mask is reported by the stream, which sees it too.
	return backend.Verdict{Uncounted: !p.counts, Stop: err != nil || s.a.stopped}
}
