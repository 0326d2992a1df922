package replay

import (
	"fmt"
	"math"
)

// result adds the rows up.
func (p *player) result() *Result {
	warm := int(math.Floor(float64(len(p.rows)) * p.opt.Warmup))
	res := &Result{
		Policy: p.opt.Policy, Requests: int64(len(p.rows) - warm), Warmup: int64(warm),
		Rejected: p.rejected, NoContent: p.reader.noContent, Refused: p.reader.refused, Workers: make([]WorkerResult, len(p.workers)),
	}
	var loss Loss
	var rep Reported
	var wait float64
	for i := range p.rows {
		r := &p.rows[i]
		if i < warm {
			continue
		}
		w := &res.Workers[r.worker]
		w.Requests++
		w.HitTokens += int64(r.cached)
		w.PromptTokens += int64(r.tokens)
		loss.add(r.lossOf())
		wait += float64(r.wait)
		if r.reported >= 0 {
			rep.Requests++
			rep.PromptTokens += int64(r.tokens)
			rep.CachedTokens += int64(r.reported)
			rep.HitTokens += int64(r.cached)
			if r.reported == r.cached {
				rep.Equal++
			}
		}
	}
	for i, w := range p.workers {
		s := w.cache.Stats()
		r := &res.Workers[i]
		r.HitRate, r.Blocks, r.Evictions = rate(r.HitTokens, r.PromptTokens), s.Blocks, s.Evictions
		res.HitTokens += r.HitTokens
		res.PromptTokens += r.PromptTokens
		res.Blocks += s.Blocks
		res.Evictions += s.Evictions
		res.BlockTokens = s.Unit
	}
	res.HitRate = rate(res.HitTokens, res.PromptTokens)
	if len(res.Workers) == 1 {
		res.Workers = nil
	}
	if p.unlimited != nil {
		res.Loss = &loss
	}
	if rep.Requests > 0 {
		rep.HitRate = rate(rep.CachedTokens, rep.PromptTokens)
		res.Reported = &rep
	}
	if p.opt.Timing != nil && res.Requests > 0 {
		res.Wait = wait / float64(res.Requests)
		res.FirstToken = res.Wait + float64(res.PromptTokens-res.HitTokens)/p.opt.Timing.Prefill/float64(res.Requests)
	}
	res.Over = p.over()
	res.Notes = p.notes()
	return res
}

// over cuts the rows into the buckets asked for.
func (p *player) over() []Bucket {
	n := min(p.opt.Buckets, len(p.rows))
	out := make([]Bucket, 0, n)
	for i := range n {
		first, end := len(p.rows)*i/n, len(p.rows)*(i+1)/n
		b := Bucket{First: int64(first), Requests: int64(end - first), At: p.rows[first].at.Seconds()}
		var loss Loss
		for k := first; k < end; k++ {
			r := &p.rows[k]
			b.HitTokens += int64(r.cached)
			b.PromptTokens += int64(r.tokens)
			b.Evictions += r.evicted
			loss.add(r.lossOf())
		}
		b.HitRate = rate(b.HitTokens, b.PromptTokens)
		if p.unlimited != nil {
			b.Loss = &loss
		}
		out = append(out, b)
	}
	return out
}

// notes say what was assumed and what the trace could not show.
func (p *player) notes() (notes []string) {
	switch c := max(p.opt.Concurrency, 1); {
	case p.opt.Timing != nil:
		if p.reader.job.at == 0 && len(p.rows) > 1 {
			notes = append(notes, "The trace tells no times: all requests come at once.")
		}
		notes = append(notes, fmt.Sprintf("Times are modelled: prompts are read at %g tokens a second and outputs generated at %g, whatever else runs.", p.opt.Timing.Prefill, p.opt.Timing.Decode))
	case c == 1:
		notes = append(notes, "Requests run one after the other in the trace's order: none holds room while another runs.")
	default:
		notes = append(notes, fmt.Sprintf("%d requests run at a time on each worker: the next begins when the oldest ends.", c))
	}
	if len(p.workers) > 1 && p.opt.Routing == PrefixAware {
		l := p.router.limits
		notes = append(notes, fmt.Sprintf("The router knows which prefixes it sent where, without limit, and not what workers threw away. It follows more than %g %% of a prompt, as SGLang's router does, unless a worker has over %d requests more than another and over %g times as many.", 100*l.Match, l.BalanceRequests, l.BalanceRatio))
		if p.opt.Timing == nil {
			notes = append(notes, "Without times there are no running requests to balance: those that a worker was sent so far count instead.")
		}
	}
	return append(notes, p.reader.notes()...)
}

func rate(hit, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(hit) / float64(of)
}
