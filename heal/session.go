package heal

import (
	"bytes"
	"fmt"
	"slices"

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
}

// Replay says how an accepted token relates to the pending bytes.
type Replay struct {
	// Bytes is how many of the token's bytes were pending ones.
	Bytes int
	// Straddles is true if the token began inside the pending bytes and went
	// beyond them.
	Straddles bool
}

// NewSession starts following a generation from the plan's Prompt.
func (p *Plan) NewSession() *Session { return &Session{plan: p} }

// Done reports whether all pending bytes have been produced.
func (s *Session) Done() bool { return s.at >= len(s.plan.Pending) }

// Mask returns the tokens that may come next, or nil once the session is done.
// It is valid until the next call.
func (s *Session) Mask() vocab.Mask {
	if s.Done() {
		return nil
	}
	v := s.plan.vocab
	if s.mask == nil {
		s.mask = vocab.NewMask(v.Len())
	} else {
		s.mask.Clear()
	}
	if len(s.plan.Branches) == 0 {
		s.maskBytes()
	} else {
		s.maskBranches()
	}
	s.dropEnds()
	return s.mask
}

// dropEnds takes end-of-generation tokens out of the mask: they would end the
// replay before its bytes are there. Nearly all are control tokens and not in
// it, but files name text tokens too. One that is the only way on stays.
func (s *Session) dropEnds() {
	for _, id := range s.plan.vocab.Specials().EOG {
		if !s.mask.Has(id) {
			continue
		}
		s.mask.Remove(id)
		if s.mask.Empty() {
			s.mask.Set(id)
		}
	}
}

// maskBytes allows the proper prefixes of what is pending, the pending bytes
// themselves, and every token that extends them.
func (s *Session) maskBytes() {
	v := s.plan.vocab
	rest := s.plan.Pending[s.at:]
	s.ids = v.AppendPrefixes(s.ids[:0], rest)
	s.mask.SetIDs(s.ids)
	s.mask.SetIDs(v.Sorted(v.PrefixRange(rest)))
}

// maskBranches allows the next tokens of the branches that begin as path does.
func (s *Session) maskBranches() {
	v := s.plan.vocab
	n := len(s.path)
	for _, b := range s.plan.Branches {
		if len(b.Path) < n || !slices.Equal(b.Path[:n], s.path) {
			continue
		}
		if len(b.Path) > n {
			s.mask.Set(b.Path[n])
			continue
		}
		for id := range b.Extensions(v) {
			if b.Joins(s.plan.tok, id) {
				s.mask.Set(id)
			}
		}
	}
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
