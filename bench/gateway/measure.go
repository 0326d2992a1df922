//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unfray/unfray/tokenizer"
)

// A bench is one run: its peers and what was measured.
type bench struct {
	route    string
	rounds   int
	warm     time.Duration
	slice    time.Duration
	peers    []*peer
	progress io.Writer // nil: silent

	at      place
	whole   []exercise // JSON
	streams []exercise
	mock    *process
	serials atomic.Uint64
	figures [][][]figure // by workload, peer and round
}

// A figure is one measurement.
type figure struct {
	p50, p99, first time.Duration
	perSecond       float64
	cpu             time.Duration // of the gateway, for all requests
	requests        int
	wrong           int
	why             error
}

// prepare makes the requests.
func (b *bench) prepare(kind, tokenizerPath string, texts []string) error {
	prompts, err := readPrompts(texts)
	if err != nil {
		return err
	}
	var tok *tokenizer.Tokenizer
	if tokenizerPath != "" {
		if tok, err = tokenizer.Open(tokenizerPath); err != nil {
			return err
		}
	}
	s, err := newScript(tok)
	if err != nil {
		return err
	}
	b.at = place{Kind: kind, Tokenizer: tokenizerPath, Chat: b.route == chatRoute}
	if b.whole, err = newExercises(s, prompts, b.route, false); err != nil {
		return err
	}
	b.streams, err = newExercises(s, prompts, b.route, true)
	return err
}

// start starts the mock and all peers, those at once.
func (b *bench) start(ctx context.Context, dir, gateways, own string) (err error) {
	if taskset, err := exec.LookPath("taskset"); err == nil && own != gateways {
		out, err := exec.CommandContext(ctx, taskset, "-a", "-c", "-p", own, strconv.Itoa(os.Getpid())).CombinedOutput()
		if err != nil {
			return fmt.Errorf("taskset: %w: %s", err, out)
		}
	}
	if b.mock, b.at.Upstream, err = startMock(ctx, dir, b.at.Kind, b.at.Tokenizer, own); err != nil {
		return err
	}
	errs := make([]error, len(b.peers))
	var wg sync.WaitGroup
	for i, p := range b.peers {
		wg.Go(func() { errs[i] = p.start(ctx, dir, b.at, gateways, b.load(p, workloads[0])) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, p := range b.peers {
		b.exercise(ctx, p)
	}
	return ctx.Err()
}

// Before the first round every peer answers exerciseCount requests of each workload, within exerciseLimit: LiteLLM's
// first ones take seconds.
const (
	exerciseCount = 200
	exerciseLimit = 5 * time.Second
)

func (b *bench) exercise(ctx context.Context, p *peer) {
	for _, w := range workloads {
		l := b.load(p, w)
		l.warm, l.measure = 0, exerciseLimit/20
		count := 0
		for end := time.Now().Add(exerciseLimit); count < exerciseCount && time.Now().Before(end) && ctx.Err() == nil; {
			r := l.run(ctx, &b.serials)
			count += r.all
			if p.first == nil {
				p.first = r.why
			}
		}
	}
}

func (b *bench) stop() {
	for _, p := range b.peers {
		p.stop()
	}
	if b.mock != nil {
		b.mock.stop()
	}
}

func (b *bench) load(p *peer, w workload) *load {
	l := &load{address: p.address, route: b.route, exercises: b.whole, stream: w.stream, identical: p.identical,
		conns: w.conns, warm: b.warm, measure: b.slice}
	if w.stream {
		l.exercises = b.streams
	}
	return l
}

// measure takes all figures. Peers turn: each round begins with another, so that none always comes after the same.
func (b *bench) measure(ctx context.Context) error {
	b.figures = make([][][]figure, len(workloads))
	for w := range workloads {
		b.figures[w] = make([][]figure, len(b.peers))
	}
	for round := range b.rounds {
		for w, load := range workloads {
			for i := range b.peers {
				k := (i + round) % len(b.peers)
				f := b.one(ctx, b.peers[k], load)
				if err := ctx.Err(); err != nil {
					return err
				}
				b.figures[w][k] = append(b.figures[w][k], f)
				if b.progress != nil {
					fmt.Fprintf(b.progress, "round %d, %s, %s: p50 %v, p99 %v, %.0f/s, %v CPU for %d, %d wrong\n",
						round+1, load.name, b.peers[k].name, f.p50, f.p99, f.perSecond, f.cpu, f.requests, f.wrong)
				}
			}
		}
	}
	return nil
}

// one measures one peer for the time of a slice.
func (b *bench) one(ctx context.Context, p *peer, w workload) figure {
	var before, after usage
	if p.process != nil {
		before = p.process.use()
	}
	r := b.load(p, w).run(ctx, &b.serials)
	if p.process != nil {
		after = p.process.use()
		p.loaded.processes = after.processes
		p.loaded.rss = max(p.loaded.rss, after.rss)
		p.loaded.pss = max(p.loaded.pss, after.pss)
	}
	return figure{
		p50: r.latency.quantile(0.5), p99: r.latency.quantile(0.99), first: r.first.quantile(0.5), perSecond: r.perSecond,
		cpu: after.cpu - before.cpu, requests: r.all, wrong: r.wrong, why: r.why,
	}
}

// median returns the middle of what f gives of the figures, the mean of the middle two where their number is even.
func median[T time.Duration | float64](figures []figure, f func(figure) T) T {
	var all []T
	for _, x := range figures {
		all = append(all, f(x))
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}
