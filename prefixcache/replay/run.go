package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/trace"
)

// A player is a replay in progress.
type player struct {
	opt       *Options
	reader    *reader
	router    *router
	workers   []*worker
	unlimited prefixcache.Cache // of all workers; nil: loss is not told apart
	account   *account
	rows      []row
	rejected  int64
}

// A row is what the result needs of a request that ran: 56 bytes.
type row struct {
	at       time.Duration
	wait     float32 // seconds
	tokens   int32
	cached   int32
	reported int32 // -1: not told
	evicted  int64
	loss     [5]int32 // capacity, routing, rounding, boundary, content
	worker   int32
}

// Run replays a trace. It holds what the caches hold, what tells losses apart
// (each distinct prefix once, in tokens and in bytes) and 56 bytes for each
// request.
//
// A prompt for which running requests leave no room begins when enough of them
// have ended: without Timing the oldest end, with it those that end first. An
// error of the source or of ctx ends the replay; a prompt larger than the cache
// is counted and left out.
func Run(ctx context.Context, src Source, opt Options) (*Result, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	p := &player{opt: &opt, reader: newReader(&opt), router: newRouter(&opt)}
	if err := p.makeCaches(); err != nil {
		return nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := src.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		j, err := p.reader.read(r)
		if err != nil {
			return nil, err
		}
		if j != nil {
			if err := p.play(j, r); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range p.workers {
		for w.running.len() > 0 {
			p.end(w, w.running.pop())
		}
	}
	if err := p.reader.firstRefused; len(p.rows) == 0 && p.rejected == 0 && err != nil {
		return nil, err
	}
	if len(p.rows) == 0 && p.rejected == 0 && p.reader.noContent > 0 {
		return nil, ErrNoContent
	}
	return p.result(), nil
}

func (p *player) makeCaches() error {
	n := max(p.opt.Workers, 1)
	for range n {
		c, err := p.opt.NewCache()
		if err != nil {
			return err
		}
		w := &worker{cache: c}
		if p.opt.NewUnlimited != nil && n > 1 {
			if w.unlimited, err = p.opt.NewUnlimited(); err != nil {
				return err
			}
		}
		p.workers = append(p.workers, w)
	}
	if p.opt.NewUnlimited == nil {
		return nil
	}
	p.account = newAccount(p.opt.vocab())
	var err error
	p.unlimited, err = p.opt.NewUnlimited()
	return err
}

// play runs one request.
func (p *player) play(j *job, r *trace.Request) error {
	if j.tokens > math.MaxInt32 {
		return fmt.Errorf("replay: the prompt at line %d has %d tokens", r.Line, j.tokens)
	}
	if p.opt.Timing != nil {
		for _, w := range p.workers {
			p.endUntil(w, j.at)
		}
	}
	n := p.router.choose(j, p.workers)
	w := p.workers[n]
	rec := Record{Request: r, Index: len(p.rows) + int(p.rejected), Worker: n, PromptTokens: j.tokens, Begin: j.at}
	lease, begin, err := p.admit(w, j, j.at)
	if errors.Is(err, prefixcache.ErrTooLarge) {
		p.rejected++
		rec.Rejected = true
		return p.tell(&rec)
	}
	if err != nil {
		return fmt.Errorf("replay: request at line %d: %w", r.Line, err)
	}
	w.sent += int64(j.tokens)
	w.requests++
	rec.Cached = lease.Cached
	run := running{job: j, lease: lease}
	if p.unlimited != nil {
		if err := p.explain(&rec, w, &run); err != nil {
			return fmt.Errorf("replay: request at line %d, in the cache without limit: %w", r.Line, err)
		}
	}
	if p.opt.Timing != nil {
		rec.Begin, rec.Wait = begin, begin-j.at
		w.free = begin
		run.end = p.opt.Timing.ends(begin, j, lease.Cached)
	}
	p.note(&rec, w)
	if err := p.tell(&rec); err != nil {
		return err
	}
	if p.opt.Timing == nil && p.opt.Concurrency <= 1 {
		p.end(w, run)
		return nil
	}
	run.job = j.clone()
	w.running.push(run)
	return nil
}

func (p *player) tell(rec *Record) error {
	if p.opt.OnRecord == nil {
		return nil
	}
	return p.opt.OnRecord(rec)
}

// explain divides the prompt's tokens by what became of them.
func (p *player) explain(rec *Record, w *worker, run *running) error {
	j := run.job
	var err error
	if run.all, err = j.begin(p.unlimited); err != nil {
		return err
	}
	all := run.all.Cached
	of := all
	if w.unlimited != nil {
		if run.worker, err = j.begin(w.unlimited); err != nil {
			return err
		}
		of = run.worker.Cached
	}
	var tokens, inside int
	if j.blocks != nil {
		tokens = p.account.addBlocks(j.blocks, j.blockTokens, j.tokens)
		inside = tokens
	} else {
		tokens, inside = p.account.add(&j.Keys, j.Prompt, nil)
	}
	rec.Loss = lossOf(rec.Cached, of, all, tokens, inside, j.tokens)
	return nil
}

// note keeps what the result needs.
func (p *player) note(rec *Record, w *worker) {
	l := rec.Loss
	r := row{
		at: rec.Request.At, wait: float32(rec.Wait.Seconds()), tokens: int32(rec.PromptTokens), cached: int32(rec.Cached),
		reported: int32(min(rec.Request.Cached, math.MaxInt32)), worker: int32(rec.Worker),
		loss: [5]int32{int32(l.Capacity), int32(l.Routing), int32(l.Rounding), int32(l.Boundary), int32(l.Content)},
	}
	if p.opt.Buckets > 0 {
		evictions := w.cache.Stats().Evictions
		r.evicted, w.evictions = evictions-w.evictions, evictions
	}
	p.rows = append(p.rows, r)
}

// lossOf gives the row's Loss.
func (r *row) lossOf() Loss {
	return Loss{int64(r.cached), int64(r.loss[0]), int64(r.loss[1]), int64(r.loss[2]), int64(r.loss[3]), int64(r.loss[4])}
}
