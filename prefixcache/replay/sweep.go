package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/trace"
)

// The eviction policies of Sweep's own, as kvcache-simulator (0.1.3, policies.py)
// has them.
const (
	// FIFO throws the oldest block away, wherever in a prefix it is: those behind
	// it stay and cannot be found.
	FIFO = "fifo"
	// LRU throws away the block that was found or stored longest ago among those
	// nothing hangs on, never one of the prompt that is being stored.
	LRU = "lru"
	// Optimal throws away the leaf that is used again last, and keeps a block out
	// where that is later than of all leaves: Belady's rule on leaves. It knows
	// the whole trace, so it is a bound and no policy.
	Optimal = "optimal"
)

// A Measure is which part of a trace a hit rate is of.
type Measure string

const (
	// MeasureAll counts all requests.
	MeasureAll Measure = "all"
	// MeasureTail counts the second half of the requests, and a capacity that the
	// first half does not fill is marked underfilled and gets no rate. It is
	// kvcache-simulator's measure.
	MeasureTail Measure = "tail"
)

// SweepOptions say what a trace of block identities is replayed through.
type SweepOptions struct {
	// Policies are of FIFO, LRU and Optimal; nil means all.
	Policies []string
	// Engines are further policies: caches of engines, made for a capacity. Their
	// hits follow the engine's own rules, so the prompt's last token is computed
	// even where the others count it as found.
	Engines []Engine
	// Capacities are in blocks.
	Capacities []int
	Measure    Measure // "" means MeasureAll
}

// An Engine makes caches for Sweep.
type Engine struct {
	Name string
	// New makes a cache of the given blocks of the given tokens.
	New func(blocks, blockTokens int) (BlockCache, error)
}

// A SweepResult is what Sweep found.
type SweepResult struct {
	Requests     int64 `json:"requests"`
	Blocks       int64 `json:"blocks"`        // of all prompts
	UniqueBlocks int64 `json:"unique_blocks"` // different prefixes
	BlockTokens  int   `json:"block_tokens"`
	PromptTokens int64 `json:"prompt_tokens"` // that are measured
	// Ceiling is what a cache without limit gives.
	Ceiling Point   `json:"ceiling"`
	Points  []Point `json:"points"`
	Skipped int64   `json:"no_content_requests"` // without blocks
}

// A Point is what a policy gave at a capacity.
type Point struct {
	Policy       string  `json:"policy"`
	Blocks       int     `json:"capacity_blocks"`
	HitTokens    int64   `json:"hit_tokens"`
	PromptTokens int64   `json:"prompt_tokens"`
	HitRate      float64 `json:"hit_rate"`
	Evictions    int64   `json:"evictions"` // blocks, in the whole replay
	// Underfilled says that the cache was not full when the measured part began,
	// with MeasureTail; the point has no hits then.
	Underfilled bool `json:"underfilled,omitempty"`
}

// Sweep replays a trace of block identities through each policy at each
// capacity, in the trace's order and one request after the other. It reads the
// trace once and holds it; its time for FIFO is linear in the blocks at each
// capacity, for LRU and Optimal in the places where prompts part.
//
// Hits are the blocks at a prompt's start that are cached, counted in tokens, to
// the prompt's last: no engine finds that one computed, but traces of blocks are
// commonly measured so.
func Sweep(ctx context.Context, src Source, opt SweepOptions) (*SweepResult, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	p, skipped, err := readPlan(ctx, src)
	if err != nil {
		return nil, err
	}
	res := &SweepResult{
		Requests: int64(len(p.requests)), Blocks: int64(len(p.path)), UniqueBlocks: int64(len(p.trie.ids) - 1),
		BlockTokens: p.blockTokens, Skipped: skipped, Points: []Point{},
	}
	measured, filled := 0, math.MaxInt
	if opt.Measure == MeasureTail {
		measured, filled = len(p.requests)/2, 0
		if measured > 0 {
			filled = p.unique[measured-1]
		}
	}
	for n := measured; n < len(p.requests); n++ {
		r := &p.requests[n]
		res.PromptTokens += int64(p.tokensIn(r, p.blocks(r)))
		res.Ceiling.HitTokens += int64(p.tokensIn(r, r.seen))
	}
	res.Ceiling = Point{
		Policy: "ceiling", Blocks: len(p.trie.ids) - 1, HitTokens: res.Ceiling.HitTokens, PromptTokens: res.PromptTokens,
		HitRate: rate(res.Ceiling.HitTokens, res.PromptTokens),
	}
	policies := p.policies(ctx, &opt)
	for _, capacity := range opt.Capacities {
		for _, policy := range policies {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			pt := Point{Policy: policy.name, Blocks: capacity, PromptTokens: res.PromptTokens, Underfilled: capacity > filled}
			if capacity > 0 && !pt.Underfilled {
				t, err := policy.run(capacity, measured)
				if err != nil {
					return nil, fmt.Errorf("replay: %s with %d blocks: %w", policy.name, capacity, err)
				}
				pt.HitTokens, pt.Evictions, pt.HitRate = t.hit, t.evictions, rate(t.hit, res.PromptTokens)
			}
			res.Points = append(res.Points, pt)
		}
	}
	return res, nil
}

// A policy replays a plan with a cache of so many blocks, and counts the hits of
// requests from one on.
type policy struct {
	name string
	run  func(capacity, measured int) (tally, error)
}

func (p *plan) policies(ctx context.Context, opt *SweepOptions) (out []policy) {
	names := opt.Policies
	if names == nil {
		names = []string{FIFO, LRU, Optimal}
	}
	run := map[string]func(capacity, measured int) tally{FIFO: p.fifo, LRU: p.lru, Optimal: p.optimal}
	for _, name := range names {
		out = append(out, policy{name, func(capacity, measured int) (tally, error) { return run[name](capacity, measured), nil }})
	}
	for _, e := range opt.Engines {
		out = append(out, policy{e.Name, func(capacity, measured int) (tally, error) { return p.engine(ctx, e, capacity, measured) }})
	}
	return out
}

// engine replays p through a cache of an engine. Prompts that are larger than
// the cache find nothing.
func (p *plan) engine(ctx context.Context, e Engine, capacity, measured int) (t tally, err error) {
	c, err := e.New(capacity, p.blockTokens)
	if err != nil {
		return t, err
	}
	var blocks []uint64
	for n := range p.requests {
		if n%1024 == 0 && ctx.Err() != nil {
			return t, ctx.Err()
		}
		r := &p.requests[n]
		blocks = blocks[:0]
		for _, node := range p.path[r.first:r.end] {
			blocks = append(blocks, p.trie.ids[node])
		}
		lease, err := c.BeginBlocks(blocks, r.tokens)
		if errors.Is(err, prefixcache.ErrTooLarge) {
			continue
		}
		if err != nil {
			return t, fmt.Errorf("request %d: %w", n+1, err)
		}
		c.End(lease, nil)
		if n >= measured {
			t.hit += int64(lease.Cached)
		}
	}
	t.evictions = c.Stats().Evictions
	return t, nil
}

// readPlan reads a whole trace.
func readPlan(ctx context.Context, src Source) (p *plan, skipped int64, err error) {
	p = &plan{trie: newTrie()}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		r, err := src.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		if len(r.Blocks) == 0 {
			skipped++
			continue
		}
		if err := p.take(r); err != nil {
			return nil, 0, err
		}
	}
	if len(p.requests) == 0 {
		return nil, 0, ErrNoContent
	}
	p.finish()
	return p, skipped, nil
}

// take adds a request of a trace.
func (p *plan) take(r *trace.Request) error {
	if err := checkBlocks(r); err != nil {
		return err
	}
	if p.blockTokens == 0 {
		p.blockTokens = r.BlockTokens
	}
	switch {
	case r.BlockTokens != p.blockTokens:
		return fmt.Errorf("replay: request at line %d has blocks of %d tokens, those before it of %d; split the trace by the size of the blocks", r.Line, r.BlockTokens, p.blockTokens)
	case len(p.path)+len(r.Blocks) > maxBlocks || len(p.requests) == maxBlocks:
		return fmt.Errorf("replay: the prompts up to line %d have more than %d blocks, which is the most for a sweep", r.Line, maxBlocks)
	}
	tokens := r.PromptTokens
	if tokens <= 0 {
		tokens = len(r.Blocks) * r.BlockTokens
	}
	p.add(r.Blocks, tokens)
	return nil
}

const maxBlocks = 1<<31 - 2

func (o *SweepOptions) validate() error {
	if o.Measure != "" && o.Measure != MeasureAll && o.Measure != MeasureTail {
		return fmt.Errorf("replay: unknown measure %q: want %s or %s", o.Measure, MeasureAll, MeasureTail)
	}
	for _, name := range o.Policies {
		if !slices.Contains([]string{FIFO, LRU, Optimal}, name) {
			return fmt.Errorf("replay: unknown policy %q: want %s, %s or %s, or an engine", name, FIFO, LRU, Optimal)
		}
	}
	for _, c := range o.Capacities {
		if c < 0 || c > maxBlocks {
			return fmt.Errorf("replay: a capacity of %d blocks: there must be 0 to %d", c, maxBlocks)
		}
	}
	return nil
}
