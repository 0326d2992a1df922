package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unfray/unfray/prefixcache/replay"
	"github.com/unfray/unfray/prefixcache/trace"
)

// traceFlags say how a trace is read.
type traceFlags struct {
	opt      trace.Options
	template string
}

func (t *traceFlags) add(cmd *cobra.Command, f *pflag.FlagSet) {
	f.StringVar(&t.opt.Format, "format", "", "format of the trace: "+strings.Join(trace.Formats(), ", ")+" (default: it is found)")
	f.IntVar(&t.opt.BlockTokens, "trace-block", 0, "tokens of a block, in a trace of block hashes that does not tell it")
	f.BoolVar(&t.opt.SkipBad, "skip-bad", false, "count lines that cannot be read, and go on")
	f.IntVar(&t.opt.MaxLine, "max-line", 0, "bytes of a line that is not bad (default 64 MiB)")
	f.DurationVar(&t.opt.TimeUnit, "time-unit", 0, "what a number for a time counts, such as 1s (default: what the format says)")
	f.StringVar(&t.template, "chat-template", "", "chat template for conversations: .jinja, tokenizer_config.json or .gguf (default: that beside the tokenizer)")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(trace.Formats(), cobra.ShellCompDirectiveNoFileComp))
}

// open opens a trace; "-" is standard input.
func (t *traceFlags) open(cmd *cobra.Command, path string) (*trace.Reader, error) {
	if path == "-" {
		return trace.NewReader(cmd.InOrStdin(), "-", t.opt)
	}
	return trace.Open(path, t.opt)
}

// traceFiles is a source that reads files one after another.
type traceFiles struct {
	cmd   *cobra.Command
	flags *traceFlags
	paths []string
	r     *trace.Reader // the open one
	stats []trace.Stats // of those that were read
}

// Next implements [replay.Source].
func (s *traceFiles) Next() (*trace.Request, error) {
	for {
		if err := s.cmd.Context().Err(); err != nil {
			return nil, err
		}
		if s.r == nil {
			if len(s.stats) == len(s.paths) {
				return nil, io.EOF
			}
			r, err := s.flags.open(s.cmd, s.paths[len(s.stats)])
			if err != nil {
				return nil, err
			}
			s.r = r
		}
		q, err := s.r.Next()
		if !errors.Is(err, io.EOF) {
			return q, err
		}
		if err := s.Close(); err != nil {
			return nil, err
		}
	}
}

// Close ends the file that is open.
func (s *traceFiles) Close() error {
	if s.r == nil {
		return nil
	}
	s.stats = append(s.stats, s.r.Stats())
	err := s.r.Close()
	s.r = nil
	return err
}

// tell says what was skipped, and what the formats leave out.
func (s *traceFiles) tell(w io.Writer) {
	told := map[string]bool{}
	for i, st := range s.stats {
		if st.Note != "" && !told[st.Note] {
			told[st.Note] = true
			fmt.Fprintf(w, "unfray: note: %s: %s\n", s.paths[i], st.Note)
		}
		if st.Bad() == 0 {
			continue
		}
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(st.Skipped)) {
			kinds = append(kinds, fmt.Sprintf("%d %v", st.Skipped[kind], kind))
		}
		fmt.Fprintf(w, "unfray: note: %s: %s skipped of %d (%s); the first: %v\n", s.paths[i], counted(st.Bad(), "bad line"), st.Records, strings.Join(kinds, ", "), st.Errors[0])
	}
}

// replayFlags are those of cache replay.
type replayFlags struct {
	tokenizer tokenizerFlags
	trace     traceFlags
	engine    engineFlags
	draw      drawing

	workers         int
	routing         string
	seed            uint64
	concurrency     int
	prefill, decode float64
	warmup          float64
	measure         string
	asJSON          bool
}

func newCacheReplay() *cobra.Command {
	var r replayFlags
	cmd := &cobra.Command{
		Use:   "replay [-t TOKENIZER] [--engine E] [--capacity N,…] TRACE…",
		Short: "What a log of requests finds in a prefix cache, and what it loses to what",
		Long: `Replay a log of requests through an engine's prefix cache and say what share of
the prompts' tokens it finds computed. Several engines, block sizes, policies and
capacities are tried in all combinations.

The tokens that are not found are told apart, and add up:

  capacity   were thrown away to make room
  routing    are on another worker (--workers)
  rounding   parts of blocks, and the last token, which is always computed
  boundary   stand for text that was seen, and was made of other tokens then
  content    stand for new text

A trace is a file, .gz too, or "-". Its format is found: Mooncake's and other
block hashes, ShareGPT conversations, vLLM's benchmark prompts, JSON Lines of
OpenAI requests, the log of "unfray serve", agents' trajectories, keystrokes, CSV
of lengths. Text is tokenized as the model would; block hashes hide the boundary.

One request runs at a time unless --concurrency says otherwise, or --prefill-rate
and --decode-rate, with which the trace's times count.`,
		Example: `  unfray cache replay conversations.jsonl --capacity 100k,1M,10M --html report.html
  unfray cache replay mooncake.jsonl.gz --engine trie,vllm,sglang --capacity 1M,10M
  unfray cache replay -t ./Qwen3-0.6B log.jsonl --workers 4 --routing prefix-aware
  unfray cache replay gateway.log --settings-of vllm=http://127.0.0.1:8000 --json`,
		Args: cobra.MinimumNArgs(1),
	}
	f := cmd.Flags()
	r.tokenizer.add(cmd)
	r.engine.add(cmd, f)
	r.trace.add(cmd, f)
	f.IntVar(&r.workers, "workers", 1, "engines behind a router")
	f.StringVar(&r.routing, "routing", "prefix-aware", "how the router chooses: round-robin, random, least-loaded, prefix-aware")
	f.Uint64Var(&r.seed, "seed", 1, "seed of --routing random")
	f.IntVar(&r.concurrency, "concurrency", 1, "requests that run at a time on a worker")
	f.Float64Var(&r.prefill, "prefill-rate", 0, "tokens a second that a prompt is read with; with --decode-rate the trace's times count")
	f.Float64Var(&r.decode, "decode-rate", 0, "tokens a second that a request generates")
	f.Float64Var(&r.warmup, "warmup", 0, "share of the requests, from the first, that fill the cache and are not counted")
	f.StringVar(&r.measure, "measure", "all", "what --engine trie counts: all requests, or the second half (tail), as kvcache-simulator does")
	f.BoolVar(&r.asJSON, "json", false, "print the result as JSON: one object, or an array where several caches are tried")
	r.draw.add(f, "hit rate by capacity, or over time")
	cmd.RunE = handler(r.run)
	return cmd
}

// A replayed is a simulation with what it gave.
type replayed struct {
	simulation
	result *replay.Result
}

func (r *replayFlags) run(cmd *cobra.Command, paths []string) error {
	routing, err := replay.ParseRouting(r.routing)
	if err != nil {
		return usageError("--routing: " + strings.TrimPrefix(err.Error(), "replay: "))
	}
	if err := r.check(cmd.Flags()); err != nil {
		return err
	}
	first, err := r.peek(cmd, paths)
	if err != nil {
		return err
	}
	traceBlock := 0
	if first != nil && len(first.Blocks) > 0 {
		traceBlock = first.BlockTokens
	}
	list, err := r.engine.simulations(cmd.Context(), cmd.Flags(), traceBlock)
	if err != nil {
		return err
	}
	if first != nil && traceBlock == 0 && slices.Contains(r.engine.engines, engineTrie) {
		return usageError("--engine trie takes traces of block hashes, and this one has none: choose one of " + strings.Join(cacheEngines[:len(cacheEngines)-1], ", "))
	}
	if slices.Contains(paths, "-") && len(list) > 1 {
		return usageError("standard input can be read once: give a file to try several caches")
	}
	opt := replay.Options{Routing: routing, Workers: r.workers, Seed: r.seed, Warmup: r.warmup, Buckets: 60}
	if r.prefill > 0 {
		opt.Timing = &replay.Timing{Prefill: r.prefill, Decode: r.decode}
	} else {
		opt.Concurrency = r.concurrency
	}
	if traceBlock == 0 {
		if err := r.encoding(cmd, &opt, first); err != nil {
			return err
		}
	}
	results, err := r.all(cmd, paths, list, opt)
	if err != nil {
		return err
	}
	if err := r.draw.write(replayPage(strings.Join(paths, ", "), results)); err != nil {
		return err
	}
	if r.asJSON {
		return writeReplayJSON(cmd.OutOrStdout(), results)
	}
	return printReplay(cmd.OutOrStdout(), results)
}

// check refuses flags that contradict each other.
func (r *replayFlags) check(f *pflag.FlagSet) error {
	measure := replay.Measure(r.measure)
	switch {
	case f.Changed("prefill-rate") != f.Changed("decode-rate"):
		return usageError("give --prefill-rate and --decode-rate together")
	case f.Changed("prefill-rate") && !(r.prefill > 0 && r.decode > 0 && r.prefill <= math.MaxFloat64 && r.decode <= math.MaxFloat64):
		return usageError("--prefill-rate and --decode-rate: a rate is in tokens a second, and above 0")
	case f.Changed("prefill-rate") && f.Changed("concurrency"):
		return usageError("--concurrency: with --prefill-rate the trace's times say what runs at a time; leave it out")
	case measure != replay.MeasureAll && measure != replay.MeasureTail:
		return usageError(fmt.Sprintf("--measure %s: choose all or tail", r.measure))
	case measure != replay.MeasureAll && !slices.Contains(r.engine.engines, engineTrie):
		return usageError("--measure tail is for --engine trie; --warmup 0.5 leaves out the first half with others")
	}
	return r.engine.checkPolicies()
}

// peek gives the first request of the traces, nil if it cannot be looked at twice.
func (r *replayFlags) peek(cmd *cobra.Command, paths []string) (*trace.Request, error) {
	if paths[0] == "-" {
		return nil, nil
	}
	src := &traceFiles{cmd: cmd, flags: &r.trace, paths: paths}
	defer src.Close()
	q, err := src.Next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there is no request in it", strings.Join(paths, ", "))
	} else if err != nil {
		return nil, err
	}
	return q.Clone(), nil
}

// encoding opens what makes tokens of text. A trace of token IDs alone does
// without where none was asked for.
func (r *replayFlags) encoding(cmd *cobra.Command, opt *replay.Options, first *trace.Request) error {
	asked := cmd.Flags().Changed("tokenizer")
	t, err := r.tokenizer.open(cmd)
	if err != nil {
		if !asked && first != nil && first.IDs != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "unfray: note: without -t the loss at boundaries is not told\n")
			return nil
		}
		return err
	}
	opt.Tokenizer = t
	opt.Render, err = openRenderer(cmd.Context(), r.trace.template, r.tokenizer.path, t)
	return err
}

// all replays the trace through each cache.
func (r *replayFlags) all(cmd *cobra.Command, paths []string, list []simulation, opt replay.Options) ([]replayed, error) {
	var results []replayed
	var tries []simulation
	for _, s := range list {
		if s.engine == engineTrie {
			tries = append(tries, s)
			continue
		}
		src := &traceFiles{cmd: cmd, flags: &r.trace, paths: paths}
		o := opt
		o.Policy, o.NewCache, o.NewUnlimited = s.name(), s.make, s.unlimited
		res, err := replay.Run(cmd.Context(), src, o)
		if err := errors.Join(err, src.Close()); err != nil {
			return nil, err
		}
		if len(results) == 0 {
			src.tell(cmd.ErrOrStderr())
			for _, n := range res.Notes {
				fmt.Fprintln(cmd.ErrOrStderr(), "unfray: note:", n)
			}
		}
		results = append(results, replayed{s, res})
	}
	if len(tries) > 0 {
		more, err := r.sweep(cmd, paths, tries, len(results) == 0)
		if err != nil {
			return nil, err
		}
		results = append(results, more...)
	}
	return results, nil
}

// sweep replays a trace of block hashes through tries of all capacities at once.
func (r *replayFlags) sweep(cmd *cobra.Command, paths []string, list []simulation, tell bool) ([]replayed, error) {
	block := list[0].blockTokens
	o := replay.SweepOptions{Measure: replay.Measure(r.measure), Policies: r.engine.policiesOf(engineTrie)}
	for _, s := range list {
		blocks := s.capacity / block
		if s.capacity == 0 {
			continue // the ceiling
		}
		if blocks == 0 {
			return nil, usageError(fmt.Sprintf("--capacity %d: a block of the trace has %d tokens", s.capacity, block))
		}
		if s.policy == o.Policies[0] {
			o.Capacities = append(o.Capacities, blocks)
		}
	}
	src := &traceFiles{cmd: cmd, flags: &r.trace, paths: paths}
	res, err := replay.Sweep(cmd.Context(), src, o)
	if err := errors.Join(err, src.Close()); err != nil {
		return nil, err
	}
	if tell {
		src.tell(cmd.ErrOrStderr())
	}
	points := append(res.Points, res.Ceiling)
	var results []replayed
	for _, p := range points {
		s := simulation{engine: engineTrie, policy: p.Policy, blockTokens: res.BlockTokens, capacity: p.Blocks * res.BlockTokens}
		out := &replay.Result{
			Policy: s.name(), HitTokens: p.HitTokens, PromptTokens: p.PromptTokens, HitRate: p.HitRate,
			BlockTokens: res.BlockTokens, Blocks: min(int64(p.Blocks), res.UniqueBlocks), Evictions: p.Evictions, Requests: res.Requests,
		}
		if p.Blocks == 0 {
			out.Blocks = res.UniqueBlocks
		}
		if p.Underfilled {
			out.Notes = []string{"the first half of the trace does not fill the cache: --measure tail gives it no rate"}
		}
		results = append(results, replayed{s, out})
	}
	return results, nil
}
