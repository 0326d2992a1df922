package prefixcache

// lookup finds how much of the prompt is cached, and leaves the blocks in the
// groups. It never finds the last token.
func (p *Paged) lookup(x *pagedRun) int {
	if len(p.groups) == 1 {
		if p.groups[0].kind == FullAttention {
			return p.lookupPlain(x)
		}
		return p.lookupIn(x, &p.specs[0], x.prompt-1, p.specs[0].eagle)
	}
	return p.lookupAll(x)
}

// lookupPlain is lookupFull for the one group of an engine.
func (p *Paged) lookupPlain(x *pagedRun) int {
	g, pool := &p.groups[0], &p.pool
	n := min((x.prompt-1)/g.size, len(x.ids))
	near, warm := int32(0), 0
	k := 0
	for ; k < n; k++ {
		b := pool.beside(near, x.ids[k])
		if b == 0 {
			if k >= warm {
				warm = min(k+warmAhead, len(x.ids))
				pool.warm(x.ids[k:warm])
			}
			if b = pool.find(x.ids[k]); b == 0 {
				break
			}
		}
		g.found = append(g.found, b)
		near = b
	}
	if g.eagle && k > 0 {
		k--
	}
	g.found = g.found[:k]
	return k * g.size
}

// lookupAll finds the longest prefix that every kind of group has: each can
// make it shorter, until none does (kv_cache_coordinator.py,
// HybridKVCacheCoordinator.find_longest_cache_hit).
func (p *Paged) lookupAll(x *pagedRun) int {
	hit, longest := x.prompt-1, 0
	full := make([]int, len(p.specs)) // what full attention has; looked up once
	for i := range full {
		full[i] = -1
	}
	// With one other kind beside full attention, one round is enough.
	once := len(p.specs) == 2 && p.specs[0].kind == FullAttention
	dropped := make([]bool, len(p.specs))
	for {
		length := hit
		for i := range p.specs {
			s := &p.specs[i]
			if full[i] >= 0 {
				length = min(length, full[i])
				continue
			}
			drop := s.eagle && !dropped[i]
			most := length
			if drop && s.kind != Mamba {
				most = min(length+s.size, len(x.ids)*p.unit)
			}
			found := p.lookupIn(x, s, most, drop)
			if drop {
				dropped[i] = true
			} else if found < length {
				clear(dropped)
			}
			length = found
			if s.kind == FullAttention {
				full[i] = found
			}
			longest = max(longest, length)
		}
		if length >= hit {
			break
		}
		hit = length
		if once {
			break
		}
	}
	for i := range p.groups {
		if g := &p.groups[i]; g.kind == FullAttention {
			g.found = g.found[:min(len(g.found), blocksOf(hit, g.size))]
		}
	}
	// What some groups have and others do not was computed before, so others may
	// begin with it, too: their state there is worth keeping.
	if longest > hit {
		x.junction = longest
	}
	return hit
}

// lookupIn finds how much of the first most tokens the groups of a spec have.
func (p *Paged) lookupIn(x *pagedRun, s *pagedSpec, most int, drop bool) int {
	var blocks int
	switch s.kind {
	case SlidingWindow:
		blocks = p.lookupWindow(x, s, most, drop)
	case Mamba:
		blocks = p.lookupState(x, s, most)
	default:
		blocks = p.lookupFull(x, s, most, drop)
	}
	for _, g := range s.groups {
		p.groups[g].found = p.groups[g].found[:blocks]
	}
	return blocks * s.size
}

// aligned is the largest number of blocks up to n at whose end a hit can be.
func (p *Paged) aligned(n, size int) int {
	return n * size / p.align * p.align / size
}

// probe looks for block k in every group of a spec, and leaves what it finds in
// p.probed.
func (p *Paged) probe(x *pagedRun, s *pagedSpec, k int) bool {
	last := (k+1)*(s.size/p.unit) - 1
	p.probed = p.probed[:0]
	for _, g := range s.groups {
		b := p.pool.find(x.ids[last].ofGroup(g))
		if b == 0 {
			return false
		}
		p.probed = append(p.probed, b)
	}
	return true
}

// keep notes what probe found as block k.
func (p *Paged) keep(s *pagedSpec, k int) {
	for i, g := range s.groups {
		p.groups[g].found[k] = p.probed[i]
	}
}

// empty makes room for n blocks in every group of a spec.
func (p *Paged) empty(s *pagedSpec, n int) {
	for _, i := range s.groups {
		g := &p.groups[i]
		if cap(g.found) < n {
			g.found = make([]int32, n, n+n/4)
		}
		g.found = g.found[:n]
		clear(g.found)
	}
}

// lookupFull goes from the start to the first block that is missing
// (FullAttentionManager.find_longest_cache_hit).
func (p *Paged) lookupFull(x *pagedRun, s *pagedSpec, most int, drop bool) int {
	n := min(most/s.size, len(x.ids)*p.unit/s.size)
	for _, g := range s.groups {
		p.groups[g].found = p.groups[g].found[:0]
	}
	k := 0
	for ; k < n && p.probe(x, s, k); k++ {
		for i, g := range s.groups {
			p.groups[g].found = append(p.groups[g].found, p.probed[i])
		}
	}
	if drop && k > 0 {
		k--
	}
	return p.aligned(k, s.size)
}

// contiguous is how many blocks in a row a hit needs.
func (g *pagedGroup) contiguous(drop bool) int {
	n := blocksOf(g.window-1, g.size)
	if drop {
		n++
	}
	return n
}

// lookupWindow goes from the end to the first window that is there
// (SlidingWindowManager.find_longest_cache_hit).
func (p *Paged) lookupWindow(x *pagedRun, s *pagedSpec, most int, drop bool) int {
	need := p.groups[s.groups[0]].contiguous(drop)
	n := most / s.size
	p.empty(s, n)
	row, hit := 0, -1
	for k := n - 1; k >= 0; k-- {
		if !p.probe(x, s, k) {
			row = 0
			continue
		}
		if row == 0 {
			end := k + 1
			if drop {
				end = k
			}
			if end*s.size%p.align != 0 {
				continue
			}
		}
		p.keep(s, k)
		if row++; row >= need {
			hit = k + row
			break
		}
	}
	if hit < 0 {
		hit = p.aligned(row, s.size)
	}
	if drop && hit > 0 {
		hit = p.aligned(hit-1, s.size)
	}
	return hit
}

// lookupState goes from the end to the first state that is there
// (MambaManager.find_longest_cache_hit).
func (p *Paged) lookupState(x *pagedRun, s *pagedSpec, most int) int {
	n := most / s.size
	p.empty(s, n)
	for k := n - 1; k >= 0; k-- {
		if p.probe(x, s, k) {
			p.keep(s, k)
			return k + 1
		}
	}
	return 0
}
