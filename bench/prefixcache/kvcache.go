package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/unfray/unfray/prefixcache/replay"
	"github.com/unfray/unfray/prefixcache/trace"
)

// mooncakeBlock is the size of the blocks in Mooncake's traces, in tokens.
const mooncakeBlock = 512

// A contestant replays a trace in a process of its own.
type contestant struct {
	name string
	// command makes the process: what a user waits for, or one that times its
	// phases.
	command func(trace string, phases bool) []string
	// By round, in seconds.
	whole, cpu, read, replay []float64
}

// A sweep is what kvcache-simulator prints, and what the worker prints.
type sweep struct {
	Seconds  []float64
	Metadata struct {
		BytesPerBlock float64
		UniqueBlocks  int64
		RequestCount  int64
		EventCount    int64
	}
	Points []struct {
		CacheBlocks int
		Results     map[string]struct{ HitTokens, TotalTokens int64 }
	}
}

func printKVCache(w io.Writer, folder string) error {
	packages := os.Getenv("UNFRAY_TEST_REFERENCES")
	if packages == "" {
		return errors.New("UNFRAY_TEST_REFERENCES is not set: `go run ./internal/deps/fetch -no-engine -references bench/prefixcache -env` installs kvcache-simulator and prints it")
	}
	script := "simulator.py"
	if _, err := os.Stat(script); err != nil {
		script = filepath.Join("prefixcache", script)
	}
	env := append(os.Environ(), "PYTHONPATH="+packages, "GOMAXPROCS=1")
	if _, err := output(command(env, "python3", script, "compile")); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	phases := map[bool]string{true: "phases", false: "run"}
	simulator := func(backend string) func(string, bool) []string {
		return func(trace string, p bool) []string {
			return []string{"python3", script, phases[p], backend, trace, strconv.Itoa(mooncakeBlock)}
		}
	}
	fmt.Fprintln(w, "Replay of a trace of block hashes: FIFO, LRU and Optimal at the 15 capacities that kvcache-simulator 0.1.3 tries by default, hits counted in the second half. Process is from start to exit, CPU what it used; reading and replay are parts of it.")
	fmt.Fprint(w, "\n| trace | requests | blocks | unique | contestant | process | × | CPU | × | reading | replay | × | equal hits |\n|---|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	paths, err := filepath.Glob(filepath.Join(folder, "mooncake-*.jsonl.gz"))
	if err != nil || len(paths) == 0 {
		return errors.Join(err, fmt.Errorf("no mooncake-*.jsonl.gz in %s", folder))
	}
	for _, path := range paths {
		var capacities string // of this trace
		all := []*contestant{
			{name: "unfray", command: func(trace string, p bool) []string { return []string{self, "worker", phases[p], trace, capacities} }},
			{name: "kvcache-simulator, C++", command: simulator("cpp")},
		}
		if *python {
			all = append(all, &contestant{name: "kvcache-simulator, Python", command: simulator("python")})
		}
		if capacities, err = defaultCapacities(env, all[1], path); err != nil {
			return err
		}
		if err := compete(w, env, all, path); err != nil {
			return err
		}
	}
	return nil
}

// defaultCapacities are those of kvcache-simulator's default budgets, in blocks.
func defaultCapacities(env []string, cpp *contestant, path string) (string, error) {
	s, _, _, err := replayBy(env, cpp, path, false)
	if err != nil {
		return "", err
	}
	var list []string
	for gib := 1.0; gib <= 16384; gib *= 2 {
		list = append(list, strconv.Itoa(int(math.Floor(gib*(1<<30)/s.Metadata.BytesPerBlock))))
	}
	return strings.Join(list, ","), nil
}

// compete measures the contestants in turn and prints their rows.
func compete(w io.Writer, env []string, all []*contestant, path string) error {
	sweeps := make([]*sweep, len(all))
	for range *rounds {
		for i, c := range all {
			s, whole, cpu, err := replayBy(env, c, path, false)
			if err != nil {
				return err
			}
			sweeps[i] = s
			c.whole, c.cpu = append(c.whole, whole), append(c.cpu, cpu)
			if s, _, _, err = replayBy(env, c, path, true); err != nil {
				return err
			}
			c.read, c.replay = append(c.read, s.Seconds[0]), append(c.replay, s.Seconds[1])
		}
	}
	ours := all[0]
	m := sweeps[1].Metadata
	name := strings.TrimSuffix(filepath.Base(path), ".jsonl.gz")
	for i, c := range all {
		equal, points := compare(sweeps[0], sweeps[i])
		fmt.Fprintf(w, "| %s | %d | %d | %d | %s | %.3f s | %.1f | %.3f s | %.1f | %.3f s | %.4f s | %.1f | %d of %d |\n",
			name, m.RequestCount, m.EventCount, m.UniqueBlocks, c.name,
			median(c.whole), median(c.whole)/median(ours.whole), median(c.cpu), median(c.cpu)/median(ours.cpu),
			median(c.read), median(c.replay), median(c.replay)/median(ours.replay), equal, points)
	}
	return nil
}

// compare counts the points of b, and those where a has the same hits of the
// same tokens.
func compare(a, b *sweep) (equal, points int) {
	for _, p := range b.Points {
		for policy, r := range p.Results {
			points++
			for _, q := range a.Points {
				if q.CacheBlocks == p.CacheBlocks && q.Results[policy] == r {
					equal++
				}
			}
		}
	}
	return equal, points
}

// replayBy runs a contestant, and says how many seconds its process took, and
// how many of a CPU, those of processes that it started included.
func replayBy(env []string, c *contestant, path string, phases bool) (s *sweep, whole, cpu float64, err error) {
	cmd := command(env, c.command(path, phases)...)
	start := time.Now()
	out, err := output(cmd)
	whole = time.Since(start).Seconds()
	if err == nil {
		s = &sweep{}
		err = json.Unmarshal(out, s)
	}
	if err != nil {
		return nil, 0, 0, fmt.Errorf("%s: %w", c.name, err)
	}
	return s, whole, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}

// command makes a process that keeps to one core, where the system has taskset.
func command(env []string, args ...string) *exec.Cmd {
	if taskset, err := exec.LookPath("taskset"); err == nil {
		args = append([]string{taskset, "-c", "0"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = env
	return cmd
}

func output(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return out, nil
}

// work is unfray's contestant: arguments are run or phases, a trace, and
// capacities with commas between.
func work(w io.Writer, args []string) error {
	if len(args) != 3 {
		return errors.New("worker: want run or phases, a trace and capacities")
	}
	opt := replay.SweepOptions{Measure: replay.MeasureTail}
	for c := range strings.SplitSeq(args[2], ",") {
		n, err := strconv.Atoi(c)
		if err != nil {
			return err
		}
		opt.Capacities = append(opt.Capacities, n)
	}
	r, err := trace.Open(args[1], trace.Options{Format: "mooncake", BlockTokens: mooncakeBlock})
	if err != nil {
		return err
	}
	defer r.Close()
	var src replay.Source = r
	var seconds [2]float64
	if args[0] == "phases" {
		start := time.Now()
		held, err := hold(r)
		if err != nil {
			return err
		}
		seconds[0] = time.Since(start).Seconds()
		src = held
		runtime.GC() // what the copy left behind
	}
	start := time.Now()
	res, err := replay.Sweep(context.Background(), src, opt)
	if err != nil {
		return err
	}
	seconds[1] = time.Since(start).Seconds()
	return writeSweep(w, res, seconds)
}

// writeSweep writes a result in kvcache-simulator's form.
func writeSweep(w io.Writer, res *replay.SweepResult, seconds [2]float64) error {
	type hits struct {
		HitTokens   int64 `json:"hitTokens"`
		TotalTokens int64 `json:"totalTokens"`
	}
	type point struct {
		CacheBlocks int             `json:"cacheBlocks"`
		Results     map[string]hits `json:"results"`
	}
	var points []point
	for _, p := range res.Points {
		if len(points) == 0 || points[len(points)-1].CacheBlocks != p.Blocks {
			points = append(points, point{p.Blocks, map[string]hits{}})
		}
		points[len(points)-1].Results[p.Policy] = hits{p.HitTokens, p.PromptTokens}
	}
	return json.NewEncoder(w).Encode(map[string]any{"seconds": seconds, "points": points})
}

// A held trace lies in memory.
type held struct {
	requests []trace.Request
	next     int
}

func (h *held) Next() (*trace.Request, error) {
	if h.next == len(h.requests) {
		return nil, io.EOF
	}
	h.next++
	return &h.requests[h.next-1], nil
}

func hold(r *trace.Reader) (*held, error) {
	h := &held{}
	for {
		q, err := r.Next()
		if errors.Is(err, io.EOF) {
			return h, nil
		}
		if err != nil {
			return nil, err
		}
		h.requests = append(h.requests, *q.Clone())
	}
}
