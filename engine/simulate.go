package engine

import (
	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// simulation is the engine's own bookkeeping of cells without a model behind it.
type simulation struct {
	cache            *cache
	sequences, cells int
	running          map[uint64]*sequence
	last             uint64
	stats            prefixcache.Stats
}

// Simulate returns a cache that finds of prompts what an engine finds that has the
// given sequences and cells (see [Stats]), where requests do not wait for one
// another's prefill. Keys are not heeded: the engine has none.
func Simulate(sequences, cells int) prefixcache.Cache {
	s := &simulation{sequences: max(sequences, 1), cells: max(cells, 1)}
	s.Reset()
	return s
}

// Reset implements [prefixcache.Cache].
func (s *simulation) Reset() {
	s.cache = newCache(noDecoder{}, s.sequences, s.cells)
	s.running = map[uint64]*sequence{}
	s.stats = prefixcache.Stats{Unit: 1}
}

// Begin implements [prefixcache.Cache].
func (s *simulation) Begin(r *prefixcache.Request) (prefixcache.Lease, error) {
	switch {
	case len(r.Prompt) > s.cells:
		return prefixcache.Lease{}, prefixcache.ErrTooLarge
	case len(s.running) == s.sequences:
		return prefixcache.Lease{}, prefixcache.ErrNoRoom
	}
	ids := r.Prompt
	if r.Bypass {
		ids = nil
	}
	// As [task.reusable]: not the last token, whose logits are wanted, nor the one
	// before it.
	p := s.cache.place(ids, max(0, len(ids)-2))
	if s.cache.busyCells(p.src, p.reused)+len(r.Prompt)-p.reused > s.cells {
		return prefixcache.Lease{}, prefixcache.ErrNoRoom
	}
	cached := s.cache.occupy(p)
	s.last++
	p.dst.task, p.dst.prompt = &task{}, len(r.Prompt)
	s.running[s.last] = p.dst
	s.extend(p.dst, r.Prompt[cached:])
	s.stats.Requests++
	s.stats.PromptTokens += int64(len(r.Prompt))
	s.stats.HitTokens += int64(cached)
	return prefixcache.NewLease(s.last, cached), nil
}

// extend appends tokens, for which idle sequences are emptied where need be. What
// does not fit is left out: the engine would have sent the request back.
func (s *simulation) extend(q *sequence, ids []vocab.ID) {
	for len(ids) > len(s.cache.free) && s.cache.evict() {
	}
	s.cache.extend(q, ids[:min(len(ids), len(s.cache.free))])
}

// End implements [prefixcache.Cache].
func (s *simulation) End(l prefixcache.Lease, output []vocab.ID) {
	q := s.running[l.ID()]
	if q == nil {
		return
	}
	delete(s.running, l.ID())
	if len(output) > 0 {
		s.extend(q, output[:len(output)-1]) // the last one was drawn and not evaluated
	}
	q.task, q.used = nil, s.cache.tick()
}

// Stats implements [prefixcache.Cache].
func (s *simulation) Stats() prefixcache.Stats {
	st := s.stats
	st.Blocks, st.Evictions = int64(s.cache.used()), int64(s.cache.evictions)
	return st
}

// noDecoder has no model.
type noDecoder struct{}

func (noDecoder) decode([]entry) error       { return nil }
func (noDecoder) row(int) ([]float32, error) { return nil, nil }
func (noDecoder) truncate(int, int) bool     { return true }
func (noDecoder) copy(int, int)              {}
func (noDecoder) close()                     {}
