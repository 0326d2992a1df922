package replay

import (
	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// Seen tells of prompts, as they come, how many of their tokens stand for text
// that was seen before and was made of other tokens then: what Loss calls
// Boundary. Its memory is bounded: of what came, the older part is forgotten. It
// is not safe for use by several goroutines.
type Seen struct {
	vocab       *vocab.Vocab
	most        int64 // bytes of one account
	now, before *account
}

// NewSeen returns one that takes about maxBytes of memory at most.
func NewSeen(v *vocab.Vocab, maxBytes int64) *Seen {
	return &Seen{vocab: v, most: maxBytes / 2, now: newAccount(v)}
}

// Add enters a prompt with its output, if there is one, and gives how many of the
// prompt's tokens lie inside the longest common prefix in bytes with anything that
// was entered before with equal keys, and beyond the longest one in tokens.
func (s *Seen) Add(keys prefixcache.Keys, prompt, output []vocab.ID) int {
	if s.now.bytes() > s.most {
		s.before, s.now = s.now, newAccount(s.vocab)
	}
	tokens, inside := s.now.add(&keys, prompt, output)
	if s.before != nil {
		t, i := s.before.find(&keys, prompt, output)
		tokens, inside = max(tokens, t), max(inside, i)
	}
	return min(inside, len(prompt)) - min(tokens, len(prompt))
}
