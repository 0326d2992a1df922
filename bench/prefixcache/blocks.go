package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"syscall"
	"time"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/replay"
	"github.com/unfray/unfray/prefixcache/trace"
)

// A made-up trace: conversations that grow by a few blocks with each request,
// twenty of them going on at a time, each of at most 64 blocks. About half of
// the blocks are new.
type madeUp struct {
	rng     *rand.Rand
	left    int // blocks to give
	unique  int
	running [20][]uint64
	req     trace.Request
}

func newMadeUp(blocks int) *madeUp { return &madeUp{rng: rand.New(rand.NewPCG(1, 2)), left: blocks} }

func (m *madeUp) Next() (*trace.Request, error) {
	if m.left <= 0 {
		return nil, io.EOF
	}
	c := &m.running[m.rng.IntN(len(m.running))]
	if len(*c) > 48 || len(*c) > 0 && m.rng.IntN(3) == 0 {
		*c = nil
	}
	for range 1 + m.rng.IntN(16) {
		m.unique++
		// Scattered, as hashes are.
		*c = append(*c, uint64(m.unique)*0x9e3779b97f4a7c15)
	}
	m.left -= len(*c)
	m.req = trace.Request{Blocks: *c, BlockTokens: 16, PromptTokens: len(*c) * 16}
	return &m.req, nil
}

// count reads a source to its end.
func count(src replay.Source) (requests, blocks int, err error) {
	for {
		r, err := src.Next()
		if errors.Is(err, io.EOF) {
			return requests, blocks, nil
		}
		if err != nil {
			return 0, 0, err
		}
		requests++
		blocks += len(r.Blocks)
	}
}

// A way to replay, for the table of sizes.
type way struct {
	name string
	// play replays a trace of so many different blocks; keep holds what takes
	// memory in the end.
	play func(src replay.Source, unique int) (keep any, err error)
}

func printBlocks(w io.Writer, _ string) error {
	fmt.Fprintln(w, "CPU time for each block of a made-up trace, of conversations that grow and end, by its size; in brackets bytes held at the end for each different block. Caches have room for a tenth of the different blocks, or for all.")
	fmt.Fprint(w, "\n| blocks | different |")
	for _, way := range ways {
		fmt.Fprintf(w, " %s |", way.name)
	}
	fmt.Fprint(w, "\n|---:|---:|")
	for range ways {
		fmt.Fprint(w, "---:|")
	}
	fmt.Fprintln(w)
	runtime.GOMAXPROCS(1)
	for size := 100_000; size <= *most; size *= 10 {
		m := newMadeUp(size)
		_, blocks, err := count(m)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %d | %d |", blocks, m.unique)
		making := perBlock(blocks, func() error { _, _, err := count(newMadeUp(size)); return err })
		for _, way := range ways {
			before := heap()
			var keep any
			d := perBlock(blocks, func() (err error) {
				keep, err = way.play(newMadeUp(size), m.unique)
				return err
			})
			if d.err != nil {
				return fmt.Errorf("%s: %w", way.name, d.err)
			}
			held := heap() - before
			runtime.KeepAlive(keep)
			fmt.Fprintf(w, " %.0f ns (%.0f) |", d.ns-making.ns, float64(held)/float64(m.unique))
		}
		fmt.Fprintln(w)
	}
	return nil
}

type timing struct {
	ns  float64 // a block
	err error
}

// perBlock is the median CPU time of f for each block.
func perBlock(blocks int, f func() error) (t timing) {
	var all []time.Duration
	for range *rounds {
		runtime.GC()
		start := cpuTime()
		if err := f(); err != nil {
			return timing{err: err}
		}
		all = append(all, cpuTime()-start)
	}
	return timing{ns: float64(median(all).Nanoseconds()) / float64(blocks)}
}

// cpuTime is what this process has used of CPUs.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails on a bad pointer only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

var ways = []way{
	{"sweep: read", sweepBy()},
	{"and fifo, lru, optimal", sweepBy(replay.FIFO, replay.LRU, replay.Optimal)},
	{"vllm, all", runBy(func(int) (replay.BlockCache, error) {
		return prefixcache.NewPaged(prefixcache.PagedOptions{BlockSize: 16})
	})},
	{"vllm, a tenth", runBy(func(unique int) (replay.BlockCache, error) {
		return prefixcache.NewPaged(prefixcache.PagedOptions{BlockSize: 16, Blocks: unique/10 + 1})
	})},
	{"sglang, all", runBy(func(int) (replay.BlockCache, error) {
		return prefixcache.NewRadix(prefixcache.RadixOptions{PageSize: 16})
	})},
	{"sglang, a tenth", runBy(func(unique int) (replay.BlockCache, error) {
		return prefixcache.NewRadix(prefixcache.RadixOptions{PageSize: 16, Capacity: unique / 10 * 16})
	})},
}

// sweepBy replays by policies at a tenth of the blocks. Nothing is held in the
// end.
func sweepBy(policies ...string) func(replay.Source, int) (any, error) {
	return func(src replay.Source, unique int) (any, error) {
		opt := replay.SweepOptions{Policies: policies, Capacities: []int{unique / 10}}
		if policies == nil {
			opt.Capacities = nil
		}
		return replay.Sweep(context.Background(), src, opt)
	}
}

// runBy replays by an engine's cache.
func runBy(make func(unique int) (replay.BlockCache, error)) func(replay.Source, int) (any, error) {
	return func(src replay.Source, unique int) (any, error) {
		c, err := make(unique)
		if err != nil {
			return nil, err
		}
		_, err = replay.Run(context.Background(), src, replay.Options{NewCache: func() (prefixcache.Cache, error) { return c, nil }})
		return c, err
	}
}
