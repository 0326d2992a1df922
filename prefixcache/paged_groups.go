package prefixcache

import (
	"fmt"
	"math"
	"slices"
)

// A pagedGroup is a [LayerGroup] with its defaults filled in.
type pagedGroup struct {
	kind   LayerKind
	size   int // tokens in a block
	window int
	eagle  bool
	most   int // blocks that one request is counted with at most; see claim

	found []int32 // by the last lookup
}

// A pagedSpec is what groups have in common that are looked up together: a block is
// found if it is cached for each of them.
type pagedSpec struct {
	kind         LayerKind
	size, window int
	eagle        bool
	groups       []int
}

// setGroups fills in groups, specs, unit and align (vLLM 0.32.0,
// v1/core/kv_cache_utils.py, resolve_kv_cache_block_sizes;
// kv_cache_coordinator.py, verify_and_split_kv_cache_groups).
func (p *Paged) setGroups() error {
	o := &p.opts
	groups := o.Groups
	if len(groups) == 0 {
		groups = []LayerGroup{{}}
	}
	if len(groups) > 1<<16 {
		return fmt.Errorf("prefixcache: PagedOptions.Groups has %d groups; the most is %d", len(groups), 1<<16)
	}
	p.align, p.unit = 1, 0
	p.eagle = slices.ContainsFunc(groups, func(g LayerGroup) bool { return g.Eagle })
	all := o.Eagle && !p.eagle
	for i, g := range groups {
		if g.BlockSize == 0 {
			g.BlockSize = o.BlockSize
		}
		if err := o.checkGroup(i, g); err != nil {
			return err
		}
		if g.Kind == FullAttention {
			g.BlockSize *= o.ContextParallel
		}
		p.unit = pagedGCD(p.unit, g.BlockSize)
		align := int64(p.align/pagedGCD(p.align, g.BlockSize)) * int64(g.BlockSize)
		if p.align = int(align); align > math.MaxInt32 {
			return fmt.Errorf("prefixcache: PagedOptions.Groups: the block sizes have no common multiple below 2^31")
		}
		h := pagedGroup{kind: g.Kind, size: g.BlockSize, window: g.Window, eagle: g.Eagle || all, most: math.MaxInt}
		if g.Kind == SlidingWindow && o.BatchTokens < math.MaxInt32 {
			h.most = (g.Window-1+o.BatchTokens+g.BlockSize-1)/g.BlockSize + 1
		}
		p.groups = append(p.groups, h)
	}
	p.eagle = p.eagle || all
	p.setSpecs()
	return p.checkSizes()
}

func (o *PagedOptions) checkGroup(i int, g LayerGroup) error {
	switch {
	case g.Kind > Mamba:
		return fmt.Errorf("prefixcache: PagedOptions.Groups[%d].Kind is %d, which is none", i, g.Kind)
	case g.BlockSize < 1 || g.BlockSize > 1<<24:
		return fmt.Errorf("prefixcache: PagedOptions.Groups[%d].BlockSize is %d; it must be from 1 to %d", i, g.BlockSize, 1<<24)
	case g.Kind == SlidingWindow && (g.Window < 1 || g.Window > math.MaxInt32):
		return fmt.Errorf("prefixcache: PagedOptions.Groups[%d].Window is %d; it must be the model's sliding_window, at least 1", i, g.Window)
	case g.Kind != FullAttention && o.ContextParallel > 1:
		return fmt.Errorf("prefixcache: PagedOptions.Groups[%d]: context parallelism is simulated for full attention only", i)
	}
	return nil
}

func (p *Paged) setSpecs() {
	for i := range p.groups {
		g := &p.groups[i]
		at := slices.IndexFunc(p.specs, func(s pagedSpec) bool {
			return s.kind == g.kind && s.size == g.size && s.window == g.window
		})
		if at < 0 {
			at = len(p.specs)
			p.specs = append(p.specs, pagedSpec{kind: g.kind, size: g.size, window: g.window})
		}
		s := &p.specs[at]
		s.groups = append(s.groups, i)
		s.eagle = s.eagle || g.eagle
	}
	slices.SortStableFunc(p.specs, func(a, b pagedSpec) int {
		return min(int(a.kind), 1) - min(int(b.kind), 1)
	})
	for _, s := range p.specs {
		for _, i := range s.groups {
			p.groups[i].eagle = s.eagle
		}
	}
}

func (p *Paged) checkSizes() error {
	retention := p.opts.Retention
	sparse := false
	for i, g := range p.groups {
		sparse = sparse || g.kind != FullAttention
		p.states = p.states || g.kind == Mamba
		if g.kind == Mamba && (g.size != p.align || p.unit != p.align) {
			return fmt.Errorf("prefixcache: PagedOptions.Groups[%d]: a Mamba group is simulated "+
				"where all groups have blocks of one size; give the size that the engine raised them to", i)
		}
	}
	if retention > 0 && (!sparse || retention%p.align != 0) {
		return fmt.Errorf("prefixcache: PagedOptions.Retention is %d; it must be 0, Dense, or, "+
			"with a sliding window or Mamba group, a multiple of %d", retention, p.align)
	}
	return nil
}

func pagedGCD(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func blocksOf(tokens, size int) int { return (tokens + size - 1) / size }

// passed is how many of the tokens before the one that is computed next the
// group does not need any more (get_num_skipped_tokens).
func (g *pagedGroup) passed(computed int) int {
	switch g.kind {
	case SlidingWindow:
		return max(0, computed-g.window+1)
	case Mamba:
		return max(0, computed-1)
	default:
		return 0
	}
}

// prefill looks the prompt up, takes blocks for it, computes it, and returns
// how many tokens were found.
func (p *Paged) prefill(x *pagedRun, bypass bool) (int, error) {
	for g := range p.groups {
		p.groups[g].found = p.groups[g].found[:0]
	}
	hit := 0
	if !bypass && x.prompt > 0 {
		hit = p.lookup(x)
	}
	// The whole prompt must fit before its first part is admitted
	// (--scheduler-reserve-full-isl).
	if p.claim(x, x.prompt, 0, hit, true) > p.pool.free {
		return 0, p.refusal(x)
	}
	for start, first := hit, true; start < x.prompt || first; first = false {
		end := start + min(p.opts.BatchTokens, x.prompt-start)
		if p.states {
			end = p.stop(x, start, end)
		}
		if !p.allocate(x, start, end, first) {
			p.drop(x)
			return 0, p.refusal(x)
		}
		start = end
	}
	return hit, nil
}

// refusal says why a prompt does not fit.
func (p *Paged) refusal(x *pagedRun) error {
	blocks := 0
	for g := range p.groups {
		n := blocksOf(x.prompt+p.opts.Lookahead, p.groups[g].size)
		if p.groups[g].kind == Mamba {
			n = min(n, 1)
		}
		blocks += min(n, p.groups[g].most)
	}
	if blocks > p.pool.total-1 || p.pool.free == p.pool.total-1 {
		return ErrTooLarge
	}
	return ErrNoRoom
}

// stop is where a part of a prompt ends that goes from start to end at most:
// Mamba layers keep the state at the end of a part only, so parts end where it
// shall be kept (v1/core/sched/scheduler.py, _mamba_block_aligned_split).
func (p *Paged) stop(x *pagedRun, start, end int) int {
	size := p.align
	keep := x.prompt - 1
	if p.eagle {
		keep = x.prompt - size
	}
	keep = max(keep/size*size, 0)
	if end < x.prompt {
		if aligned := end / size * size; aligned > start {
			end = aligned
		}
	}
	stops := [3]int{0, keep, 0}
	if start%size != 0 {
		stops[0] = (start/size + 1) * size
	}
	if start < x.junction && x.junction < end {
		stops[2] = start + (x.junction-start)/size*size
	}
	for _, s := range stops {
		if start < s && s < end {
			end = s
		}
	}
	return max(end, start+1)
}

// decode computes tokens of the output, one after the other.
func (p *Paged) decode(x *pagedRun, tokens int) {
	if tokens <= 0 {
		return
	}
	if len(p.groups) == 1 && p.groups[0].kind == FullAttention {
		p.decodeAll(x, tokens)
		return
	}
	for range tokens {
		x.tokens++
		if !p.allocate(x, x.computed, x.computed+1, false) {
			return
		}
	}
}

// decodeAll is decode where only full attention keeps blocks, in one step.
func (p *Paged) decodeAll(x *pagedRun, tokens int) {
	size, h := p.groups[0].size, &x.held[0]
	room := int64(len(h.blocks)+p.pool.free)*int64(size) - int64(p.opts.Lookahead+x.computed)
	tokens = int(min(int64(tokens), room))
	if tokens <= 0 {
		return
	}
	x.tokens += tokens
	x.computed += tokens
	p.take(h, blocksOf(x.computed+p.opts.Lookahead, size))
	p.cacheBlocks(x)
}

// warmAhead is how many blocks are read ahead: enough reads for memory to be
// busy, so few that the processor's cache still has them when they are used.
const warmAhead = 64

// take lets a run hold n blocks.
func (p *Paged) take(h *pagedHold, n int) {
	for len(h.blocks) < n {
		if more := n - len(h.blocks); more > 1 && p.pool.fresh == p.pool.total {
			p.pool.warmEvictions(min(more, warmAhead))
		}
		for range min(n-len(h.blocks), warmAhead) {
			h.blocks = append(h.blocks, p.pool.take())
		}
	}
}

// claim is how many free blocks a run needs to compute up to end tokens, and
// to have room for some ahead, start of them being there (coordinator's
// get_num_blocks_to_allocate). Blocks that were found count if no other request
// holds them. admission bounds what a sliding window counts for, because it
// gives blocks back while it moves.
func (p *Paged) claim(x *pagedRun, end, ahead, start int, admission bool) int {
	n := 0
	for i := range p.groups {
		g, h := &p.groups[i], &x.held[i]
		need := blocksOf(end+ahead, g.size)
		skip := g.passed(start) / g.size
		if g.kind == Mamba {
			n += min(max(blocksOf(end, g.size)-len(g.found)-len(h.blocks), 0), 1)
			skip = 0
		} else {
			if admission {
				need = min(need, g.most)
			}
			n += max(need-max(skip, len(g.found)+len(h.blocks)), 0)
			skip = max(0, skip-len(h.blocks))
		}
		for _, b := range g.found[min(skip, len(g.found)):] {
			if b != 0 && p.pool.at(b).refs == 0 {
				n++
			}
		}
	}
	return n
}

// allocate makes room for the tokens from start to end and caches the blocks
// that they fill (kv_cache_manager.py, allocate_slots). It reports whether
// there was room.
func (p *Paged) allocate(x *pagedRun, start, end int, first bool) bool {
	if !first {
		for i := range p.groups {
			p.groups[i].found = p.groups[i].found[:0]
			p.pass(x, i, start-x.flying)
		}
	}
	if p.claim(x, end, p.opts.Lookahead, start, false) > p.pool.free {
		return false
	}
	if first {
		for i := range p.groups {
			p.adopt(x, i, start)
		}
	}
	for i := range p.groups {
		if p.groups[i].kind == Mamba {
			p.takeState(&x.held[i], blocksOf(end, p.groups[i].size))
		} else {
			p.take(&x.held[i], blocksOf(end+p.opts.Lookahead, p.groups[i].size))
		}
	}
	if p.opts.Async {
		x.flying = end - start
	}
	x.computed = end
	p.cacheBlocks(x)
	return true
}

// adopt holds the blocks that were found (add_local_computed_blocks).
func (p *Paged) adopt(x *pagedRun, i, hit int) {
	g, h := &p.groups[i], &x.held[i]
	skip := g.passed(hit) / g.size
	for k := range skip {
		if k < len(g.found) {
			g.found[k] = 0
		}
	}
	for _, b := range g.found {
		if b != 0 {
			p.pool.hold(b)
		}
		h.blocks = append(h.blocks, b)
	}
	for len(h.blocks) < skip {
		h.blocks = append(h.blocks, 0)
	}
	h.cached = len(h.blocks)
}

// pass gives back the blocks that the group does not need any more
// (remove_skipped_blocks).
func (p *Paged) pass(x *pagedRun, i, computed int) {
	g, h := &p.groups[i], &x.held[i]
	if g.kind == FullAttention {
		return
	}
	n := min(g.passed(computed)/g.size, len(h.blocks))
	if n <= h.passed {
		return
	}
	p.pool.release(h.blocks[h.passed:n])
	clear(h.blocks[h.passed:n])
	h.passed = n
}

// cacheBlocks enters the blocks that are full and computed (coordinator's
// cache_blocks).
func (p *Paged) cacheBlocks(x *pagedRun) {
	tokens := min(x.computed, x.tokens)
	for i := range p.groups {
		g, h := &p.groups[i], &x.held[i]
		full := p.cacheable(g, tokens) / g.size
		// What EndBlocks will tell is not known before.
		if full = min(full, len(x.ids)*p.unit/g.size); full > h.cached {
			p.cacheFull(x, i, full)
			h.cached = full
		}
		if g.kind == FullAttention && g.size > p.unit {
			p.cacheTail(x, i)
		}
	}
}

// cacheFull enters those of a group's first full blocks that are kept and not
// yet cached.
func (p *Paged) cacheFull(x *pagedRun, i, full int) {
	g, h := &p.groups[i], &x.held[i]
	per := g.size / p.unit
	keep := p.keeps(x, g)
	for k := h.cached; k < full; k++ {
		if len(p.groups) == 1 && (k-h.cached)%warmAhead == 0 && full-k > 1 {
			p.pool.warm(x.ids[k:min(k+warmAhead, full)])
		}
		if h.blocks[k] != 0 && (keep == nil || keep(k)) {
			p.pool.cache(h.blocks[k], x.ids[(k+1)*per-1].ofGroup(i))
		}
	}
}

// cacheTail enters the prompt's end in a block that is not full, where other
// groups have smaller blocks (FullAttentionManager._cache_partial_tail_block).
// No lookup of these groups finds it, but the block is used again later for it.
func (p *Paged) cacheTail(x *pagedRun, i int) {
	g, h := &p.groups[i], &x.held[i]
	end := x.prompt - 1
	if g.eagle {
		end = x.prompt
	}
	n := end / p.unit
	k := n * p.unit / g.size
	if n <= 0 || n*p.unit > p.cacheable(g, min(x.computed, x.tokens)) || n*p.unit%g.size == 0 ||
		n > len(x.ids) || k >= len(h.blocks) {
		return
	}
	if b := h.blocks[k]; b != 0 && p.pool.at(b).newer == 0 {
		p.pool.cache(b, x.ids[n-1].ofGroup(i))
	}
}

// cacheable is how many of the computed tokens can be part of a hit
// (get_num_cacheable_tokens).
func (p *Paged) cacheable(g *pagedGroup, computed int) int {
	if len(p.groups) == 1 {
		return computed
	}
	n := computed - computed%p.align
	if g.eagle && n > 0 {
		return min(computed, n+g.size)
	}
	return n
}

// takeState takes the block for the state after end tokens. The states between
// the last one and that are never written.
func (p *Paged) takeState(h *pagedHold, blocks int) {
	for len(h.blocks) < blocks-1 {
		h.blocks = append(h.blocks, 0)
	}
	p.take(h, blocks)
}

// keeps returns which blocks of a group are kept, nil for all
// (reachable_block_mask).
func (p *Paged) keeps(x *pagedRun, g *pagedGroup) func(k int) bool {
	retention := p.opts.Retention
	if g.kind == FullAttention || g.kind == Mamba && retention == Dense {
		return nil
	}
	// need blocks in a row make a hit, the last of them shift behind its end.
	need, shift := 1, 0
	if g.kind == SlidingWindow {
		need = g.contiguous(g.eagle)
		if g.eagle {
			shift = 1
		}
	}
	per := 0 // blocks from one place that is kept to the next
	switch {
	case retention == Dense:
		per = p.align / g.size
	case retention > 0:
		per = retention / g.size
	}
	if per > 0 && need >= per {
		return nil
	}
	var ends []int
	if retention != Dense {
		ends = p.boundaries(x)
	}
	return func(k int) bool {
		if per > 0 && k >= shift && (k-shift)%per >= per-need {
			return true
		}
		for _, tokens := range ends {
			end := tokens/p.align*p.align/g.size + shift
			if end-need <= k && k < end {
				return true
			}
		}
		return false
	}
}

// boundaries are the tokens after which a later prompt can go on
// (kv_cache_coordinator.py, replay_boundaries).
func (p *Paged) boundaries(x *pagedRun) []int {
	ends := p.ends[:0]
	if p.eagle {
		ends = append(ends,
			max((x.prompt-1)/p.align*p.align-p.align, 0),
			max(x.prompt/p.align*p.align-p.align, 0))
	} else {
		ends = append(ends, x.prompt-1)
	}
	if x.junction > 0 {
		ends = append(ends, x.junction)
	}
	p.ends = ends
	return ends
}
