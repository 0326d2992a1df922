package prefixcache

import "github.com/unfray/unfray/vocab"

// savedPrompts are the prompts in RAM, the oldest first.
type savedPrompts struct {
	list   []savedPrompt
	bytes  int64
	tokens int
}

// A savedPrompt is a copy of what a slot held.
type savedPrompt struct {
	slotState
	bytes int64
}

// remove takes entry i out.
func (s *savedPrompts) remove(i int) {
	s.bytes -= s.list[i].bytes
	s.tokens -= len(s.list[i].tokens)
	last := len(s.list) - 1
	copy(s.list[i:], s.list[i+1:])
	s.list[last] = savedPrompt{}
	s.list = s.list[:last]
}

// stateBytes is the size of a state of so many tokens, checkpointBytes what of it a checkpoint has.
func (o *SlotsOptions) stateBytes(tokens int) int64 {
	return int64(tokens)*o.TokenBytes + o.checkpointBytes(tokens)
}

func (o *SlotsOptions) checkpointBytes(tokens int) int64 {
	return int64(min(tokens, o.Window))*o.WindowTokenBytes + o.StateBytes
}

// save copies a slot into RAM, unless some prompt there has all of it, and drops the prompts there that it has all of.
// It reports whether RAM now has what the slot holds.
func (s *Slots) save(number int) bool {
	slot := &s.slots[number]
	if len(slot.tokens) == 0 {
		return false
	}
	for i := range s.saved.list {
		if sharedPrefix(s.saved.list[i].tokens, slot.tokens) == len(slot.tokens) {
			return true
		}
	}
	bytes := s.o.stateBytes(len(slot.tokens))
	for i := range slot.checkpoints {
		bytes += s.o.checkpointBytes(slot.checkpoints[i].tokens)
	}
	limited := s.o.CacheRAM > 0
	if limited && bytes > s.o.CacheRAM {
		return false
	}
	for i := len(s.saved.list) - 1; i >= 0; i-- {
		if saved := s.saved.list[i].tokens; sharedPrefix(saved, slot.tokens) == len(saved) {
			s.saved.remove(i)
		}
	}
	for limited && len(s.saved.list) > 0 && s.saved.bytes+bytes > s.o.CacheRAM {
		s.dropOldest()
	}
	s.saved.list = append(s.saved.list, savedPrompt{
		slotState: slotState{
			tokens:      append([]vocab.ID(nil), slot.tokens...),
			checkpoints: append([]checkpoint(nil), slot.checkpoints...),
		},
		bytes: bytes,
	})
	s.saved.bytes += bytes
	s.saved.tokens += len(slot.tokens)
	return true
}

// load moves the prompt from RAM into the slot that has a larger share of this prompt than the slot, and of which a
// larger share would stay, if there is one; at least a quarter of it must. It reports whether it did. copied says that
// RAM has what the slot holds.
func (s *Slots) load(number int, prompt []vocab.ID, copied bool) bool {
	slot := &s.slots[number]
	n := sharedPrefix(slot.tokens, prompt)
	keep, similarity := float32(-1), portion(n, len(prompt))
	if len(slot.tokens) > 0 {
		keep = portion(n, len(slot.tokens))
	}
	best := -1
	for i := range s.saved.list {
		saved := s.saved.list[i].tokens
		n := sharedPrefix(saved, prompt)
		k, f := portion(n, len(saved)), portion(n, len(prompt))
		if k < 0.25 {
			continue
		}
		if keep < k && similarity < f {
			keep, similarity, best = k, f, i
		}
	}
	if best < 0 {
		return false
	}
	s.evicted(&slot.slotState, 0, copied)
	slot.slotState = s.saved.list[best].slotState
	s.saved.remove(best)
	if slot.memory != nil {
		slot.memory.restore(number, len(slot.tokens), s.o.Window)
	}
	return true
}

// trimSaved keeps RAM inside its limit. Without a limit of bytes it is the tokens of the whole context.
func (s *Slots) trimSaved() {
	switch {
	case s.o.CacheRAM > 0:
		for len(s.saved.list) > 0 && s.saved.bytes > s.o.CacheRAM {
			s.dropOldest()
		}
	case s.o.CacheRAM == CacheRAMUnlimited && s.o.Context > 0:
		limit := s.o.Context
		if !s.o.Unified {
			limit *= len(s.slots)
		}
		for len(s.saved.list) > 0 && s.saved.tokens > limit {
			s.dropOldest()
		}
	}
}

func (s *Slots) dropOldest() {
	s.stats.Evictions += int64(len(s.saved.list[0].tokens))
	s.saved.remove(0)
}
