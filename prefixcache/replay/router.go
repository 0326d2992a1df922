package replay

import (
	"hash/maphash"
	"math"
	"math/rand/v2"
)

// A router chooses a worker for each request.
type router struct {
	routing Routing
	workers int
	next    int // of RoundRobin
	rand    *rand.Rand
	limits  Thresholds
	timed   bool // requests take time, so that running ones are a load

	// What PrefixAware knows: for each prefix of whole blocks that was sent, the
	// set of workers it was sent to, in words of 64.
	sent  *index
	sets  []uint64
	words int
	seed  uint64
	set   []uint64 // scratch
	chain []uint64 // scratch
}

// routerBlock is the size in tokens of the blocks that PrefixAware compares
// where the trace has tokens.
const routerBlock = 16

func newRouter(o *Options) *router {
	r := &router{routing: o.Routing, workers: max(o.Workers, 1), rand: rand.New(rand.NewPCG(o.Seed, 0)), limits: DefaultThresholds(), timed: o.Timing != nil}
	if o.Thresholds != nil {
		r.limits = *o.Thresholds
	}
	if r.routing == PrefixAware && r.workers > 1 {
		r.words = (r.workers + 63) / 64
		r.sent, r.set, r.seed = newIndex(), make([]uint64, r.words), maphash.Comparable(maphash.MakeSeed(), 0)
	}
	return r
}

// choose gives the number of the worker that the job is sent to.
func (r *router) choose(j *job, workers []*worker) int {
	if r.workers == 1 {
		return 0
	}
	switch r.routing {
	case Random:
		return r.rand.IntN(r.workers)
	case LeastLoaded:
		return leastLoaded(workers, nil)
	case PrefixAware:
		n := r.prefixAware(j, workers)
		r.remember(n)
		return n
	}
	n := r.next
	r.next = (n + 1) % r.workers
	return n
}

// prefixAware chooses by what was sent where, and by load.
func (r *router) prefixAware(j *job, workers []*worker) int {
	set, matched := r.longest(j)
	low, high, idlest := math.MaxInt, 0, 0
	for i, w := range workers {
		load := r.load(w)
		if low > load || low == load && w.sent < workers[idlest].sent {
			low, idlest = load, i
		}
		high = max(high, load)
	}
	switch {
	case high-low > r.limits.BalanceRequests && float64(high) > r.limits.BalanceRatio*float64(low):
		return idlest
	case float64(matched) > r.limits.Match*float64(j.tokens):
		return leastLoaded(workers, set)
	}
	return leastLoaded(workers, nil)
}

// load is what [Thresholds] compares.
func (r *router) load(w *worker) int {
	if r.timed {
		return w.running.len()
	}
	return w.requests
}

// longest gives the set of workers that were sent the longest prefix of the
// prompt, all if none was sent any, and how many tokens that prefix has.
func (r *router) longest(j *job) (set []uint64, matched int) {
	size := routerBlock
	r.chain = r.chain[:0]
	if j.blocks != nil {
		r.chain = append(r.chain, j.blocks...)
		size = j.blockTokens
	} else {
		h := r.seed
		for _, s := range []string{j.Keys.Salt, j.Keys.LoRA, j.Keys.Extra} {
			h = mix(h, maphash.String(stringSeed, s))
		}
		for i := routerBlock; i <= len(j.Prompt); i += routerBlock {
			for _, id := range j.Prompt[i-routerBlock : i] {
				h = mix(h, uint64(id)+r.seed)
			}
			r.chain = append(r.chain, h)
		}
	}
	for i := range r.set {
		r.set[i] = ^uint64(0)
	}
	for k, key := range r.chain {
		n := r.sent.find(key)
		if n < 0 {
			break
		}
		any := uint64(0)
		for i, w := range r.sets[n*r.words : (n+1)*r.words] {
			any |= w & r.set[i]
		}
		if any == 0 {
			break
		}
		for i, w := range r.sets[n*r.words : (n+1)*r.words] {
			r.set[i] &= w
		}
		matched = min((k+1)*size, j.tokens)
	}
	return r.set, matched
}

var stringSeed = maphash.MakeSeed()

// remember notes that the prompt longest looked at last was sent to a worker.
func (r *router) remember(worker int) {
	for _, key := range r.chain {
		n, isNew := r.sent.add(key)
		if isNew {
			r.sets = append(r.sets, make([]uint64, r.words)...)
		}
		r.sets[n*r.words+worker/64] |= 1 << (worker % 64)
	}
}

// leastLoaded gives the worker of the set, or of all if it is nil, with the
// fewest requests, of equal ones the one that was sent the fewest tokens, of
// equal ones the first.
func leastLoaded(workers []*worker, set []uint64) int {
	best := -1
	for i, w := range workers {
		if set != nil && set[i/64]>>(i%64)&1 == 0 {
			continue
		}
		if best < 0 || w.running.len() < workers[best].running.len() ||
			w.running.len() == workers[best].running.len() && w.sent < workers[best].sent {
			best = i
		}
	}
	return best
}
