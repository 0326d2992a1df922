package unfray

import (
	"bytes"
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
	stops   [][]byte
	maxStop int // bytes of the longest stop string

	text     []byte // the continuation so far
	stopped  bool   // a stop string was found; text ends before it
	replayed int    // tokens that began inside the pending bytes
	counted  int    // tokens of the continuation
}

func newAssembler(v *vocab.Vocab, plan *heal.Plan, stops []string) *assembler {
	a := &assembler{vocab: v, session: plan.NewSession()}
	for _, s := range stops {
		a.stops = append(a.stops, []byte(s))
		a.maxStop = max(a.maxStop, len(s))
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
	from := max(0, len(a.text)-a.maxStop+1)
	a.text = append(a.text, b...)
	a.findStop(from)
	p.length = max(0, len(a.text)-p.offset)
	return p, nil
}

// findStop cuts the text before the first stop string that begins at from or
// later.
func (a *assembler) findStop(from int) {
	cut := -1
	for _, s := range a.stops {
		if i := bytes.Index(a.text[from:], s); i >= 0 && (cut < 0 || from+i < cut) {
			cut = from + i
		}
	}
	if cut >= 0 {
		a.text = a.text[:cut]
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
	for i := max(0, n-a.maxStop+1); i < n; i++ {
		if a.beginsStop(a.text[i:]) {
			n = i
			break
		}
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

func (a *assembler) beginsStop(tail []byte) bool {
	for _, s := range a.stops {
		if bytes.HasPrefix(s, tail) {
			return true
		}
	}
	return false
}

// steer is the assembler's view for a backend.
type steer struct{ a *assembler }

func (s *steer) Mask() vocab.Mask { return s.a.session.Mask() }

func (s *steer) Accept(id vocab.ID) backend.Verdict {
	p, err := s.a.accept(id)
	// A token against the mask is reported by the stream, which sees it too.
	return backend.Verdict{Uncounted: !p.counts, Stop: err != nil || s.a.stopped}
}
