package heal

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/vocab"
)

// Session steers one generation over the pending bytes of a [Plan]. It is for
// one goroutine.
type Session struct {
	plan *Plan
	// path holds the tokens accepted so far and at the bytes of Pending they
	// have produced.
	path []vocab.ID
	at   int
	mask vocab.Mask
	ids  []vocab.ID // scratch

	// allow, if not nil, says which bytes may follow the prompt. open says of
	// each branch whether some token that joins it, and that allow lets pass, can
	// follow it, 0: not known yet.
	allow func(beyond []byte) bool
	open  []int8
}

// Replay says how an accepted token relates to the pending bytes.
type Replay struct {
	// Bytes is how many of the token's bytes were pending ones.
	Bytes int
	// Straddles is true if the token began inside the pending bytes and went
	// beyond them.
	Straddles bool
}

// NewSession starts following a generation from the plan's Prompt. The first
// session of a plan for Stable makes the first mask: it asks of each token
// whether it may stand there, which is better done here than between two decode
// steps.
func (p *Plan) NewSession() *Session {
	s := &Session{plan: p}
	if p.Mode == Stable && len(p.Branches) > 0 && len(p.Pending) > 0 {
		p.firstOnce.Do(func() {
			m := vocab.NewMask(p.vocab.Len())
			s.maskBranches(m)
			s.dropEnds(m)
			p.first = m
		})
	}
	return s
}

// Restrict keeps tokens out of the masks that leave the prompt with bytes
// that allow refuses, and those that lead to no others. What ends where the
// prompt does is always allowed.
func (s *Session) Restrict(allow func(beyond []byte) bool) {
	s.allow, s.open = allow, nil
}

// Done reports whether all pending bytes have been produced.
func (s *Session) Done() bool { return s.at >= len(s.plan.Pending) }

// Rest returns what is left of the pending bytes.
func (s *Session) Rest() []byte { return s.plan.Pending[min(s.at, len(s.plan.Pending)):] }

// Mask returns the tokens that may come next, or nil once the session is done.
// It is valid until the next call.
func (s *Session) Mask() vocab.Mask {
	if s.Done() {
		return nil
	}
	if s.mask == nil {
		s.mask = vocab.NewMask(s.plan.vocab.Len())
	}
	s.FillMask(s.mask)
	return s.mask
}

// FillMask makes m, which has a bit for each token of the vocabulary, the set
// of tokens that may come next, and returns true; or it returns false and
// leaves m alone, because any may. Masks of many sessions can lie side by side
// in one block: m may be any part of it, see [Rows].
func (s *Session) FillMask(m vocab.Mask) bool {
	if s.Done() {
		return false
	}
	switch {
	case s.allow == nil && len(s.path) == 0 && s.plan.first != nil:
		clear(m[copy(m, s.plan.first):])
		return true
	case len(s.plan.Branches) == 0:
		s.maskBytes(m)
	default:
		m.Clear()
		s.maskBranches(m)
	}
	s.dropEnds(m)
	return true
}

// Rows cuts a block of masks into n rows of the layout of XGrammar and
// llguidance: bit id%32 of word id/32. vocabSize is the number of token IDs,
// the block has n*((vocabSize+31)/32) words.
func Rows(block []uint32, vocabSize int) iter.Seq2[int, vocab.Mask] {
	words := (vocabSize + 31) / 32
	return func(yield func(int, vocab.Mask) bool) {
		for i := 0; (i+1)*words <= len(block); i++ {
			if !yield(i, vocab.Mask(block[i*words:(i+1)*words:(i+1)*words])) {
				return
			}
		}
	}
}

// dropEnds takes end-of-generation tokens out of the mask: they would end the
// replay before its bytes are there. Nearly all are control tokens and not in
// it, but files name text tokens too. One that is the only way on stays.
func (s *Session) dropEnds(m vocab.Mask) {
	for _, id := range s.plan.vocab.Specials().EOG {
		if !m.Has(id) {
			continue
		}
		m.Remove(id)
		if m.Empty() {
			m.Set(id)
		}
	}
}

// maskBytes allows the proper prefixes of what is pending, the pending bytes
// themselves, and every token that extends them.
func (s *Session) maskBytes(m vocab.Mask) {
	v := s.plan.vocab
	rest := s.plan.Pending[s.at:]
	v.PrefixMask(m, rest) // the longer ones, and rest itself
	s.ids = v.AppendPrefixes(s.ids[:0], rest)
	m.SetIDs(s.ids)
	if s.allow == nil {
		return
	}
	for id := range m.All() {
		if b := v.Bytes(id); len(b) > len(rest) && !s.allow(b[len(rest):]) {
			m.Remove(id)
		}
	}
}

// maskBranches allows the next tokens of the branches that begin as path does.
func (s *Session) maskBranches(m vocab.Mask) {
	v := s.plan.vocab
	n := len(s.path)
	for i := range s.plan.Branches {
		b := &s.plan.Branches[i]
		if len(b.Path) < n || !slices.Equal(b.Path[:n], s.path) {
			continue
		}
		if len(b.Path) > n {
			if s.isOpen(i) {
				m.Set(b.Path[n])
			}
			continue
		}
		for id := range b.Extensions(v) {
			if s.extends(b, id) {
				m.Set(id)
			}
		}
	}
}

// extends reports whether a token may end the replay by a branch.
func (s *Session) extends(b *boundary.Branch, id vocab.ID) bool {
	return b.Joins(s.plan.tok, id) && (s.allow == nil || s.allow(s.plan.vocab.Bytes(id)[len(b.Rest):]))
}

// isOpen reports whether a branch leads anywhere. Some lead nowhere even
// without allow: see [boundary.Report].
func (s *Session) isOpen(i int) bool {
	b := &s.plan.Branches[i]
	if len(b.Rest) == 0 {
		return true
	}
	if s.open == nil {
		s.open = make([]int8, len(s.plan.Branches))
	}
	if s.open[i] == 0 {
		s.open[i] = -1
		for id := range b.Extensions(s.plan.vocab) {
			if s.extends(b, id) {
				s.open[i] = 1
				break
			}
		}
	}
	return s.open[i] > 0
}

// Accept takes the token that was generated. It fails if the token does not
// agree with the pending bytes, which a mask that was obeyed rules out.
func (s *Session) Accept(id vocab.ID) (Replay, error) {
	if s.Done() {
		return Replay{}, nil
	}
	b := s.plan.vocab.Bytes(id)
	rest := s.plan.Pending[s.at:]
	n := min(len(b), len(rest))
	if !s.plan.vocab.IsText(id) || !bytes.Equal(b[:n], rest[:n]) {
		return Replay{}, &ReplayError{ID: id, Token: bytes.Clone(b), At: s.at, Want: bytes.Clone(rest)}
	}
	s.path = append(s.path, id)
	s.at += n
	return Replay{Bytes: n, Straddles: len(b) > len(rest)}, nil
}

// ReplayError says that a backend produced a token that the mask forbade. Its
// text does not show the prompt.
type ReplayError struct {
	ID    vocab.ID
	Token []byte // its bytes
	At    int    // bytes of the pending ones produced before it
	Want  []byte // the pending bytes from At on
}

func (e *ReplayError) Error() string {
	return fmt.Sprintf("heal: the backend produced token %d, which does not agree with the %d bytes of the prompt that are pending: it does not keep to the mask", e.ID, len(e.Want))
}
