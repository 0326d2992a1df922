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
	timed    bool // times are used
	template string
}

func (t *traceFlags) add(cmd *cobra.Command, f *pflag.FlagSet) {
	f.StringVar(&t.opt.Format, "format", "", "format of the trace: "+strings.Join(trace.Formats(), ", ")+" (default: it is found)")
	f.IntVar(&t.opt.BlockTokens, "trace-block", 0, "tokens of a block, in a trace of block hashes that does not tell it")
	f.BoolVar(&t.opt.SkipBad, "skip-bad", false, "count lines that cannot be read and conversations that have no prompt, and go on")
	f.IntVar(&t.opt.MaxLine, "max-line", 0, "bytes of a line that is not bad (default 64 MiB)")
	f.DurationVar(&t.opt.TimeUnit, "time-unit", 0, "what a number for a time counts, such as 1s (default: what the format says)")
	f.DurationVar(&t.opt.Reorder, "sort", 0, "how much earlier a request may have begun than one before it in the trace: they are sorted that far, such as 10m")
	f.StringVar(&t.template, "chat-template", "", "chat template for conversations: .jinja, tokenizer_config.json or .gguf (default: that beside the tokenizer)")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(trace.Formats(), cobra.ShellCompDirectiveNoFileComp))
}

// open opens a trace; "-" is standard input. Times that run back are no fault
// unless the command uses times.
func (t *traceFlags) open(cmd *cobra.Command, path string) (*trace.Reader, error) {
	t.opt.LaxClock = !t.timed
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
	r     *trace.Reader  // the open one
	stats []trace.Stats  // of those that were read
	again *trace.Request // that was looked at, and comes next
}

// peek returns the next request, which stays the next.
func (s *traceFiles) peek() (*trace.Request, error) {
	if s.again == nil {
		q, err := s.Next()
		if err != nil {
			return nil, err
		}
		s.again = q.Clone()
	}
	return s.again, nil
}

// Next implements [replay.Source].
func (s *traceFiles) Next() (*trace.Request, error) {
	if q := s.again; q != nil {
		s.again = nil
		return q, nil
	}
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
		if bad := new(trace.Error); errors.As(err, &bad) && bad.Kind == trace.Clock {
			return nil, fmt.Errorf("%w; --sort 10m sorts requests that are at most so much out of order", err)
		}
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
	for _, n := range s.notes() {
		fmt.Fprintln(w, "unfray: note:", n)
	}
}

func (s *traceFiles) notes() (notes []string) {
	told := map[string]bool{}
	for i, st := range s.stats {
		if st.Note != "" && !told[st.Note] {
			told[st.Note] = true
			notes = append(notes, s.paths[i]+": "+st.Note)
		}
		if st.Redated > 0 {
			notes = append(notes, fmt.Sprintf("%s: the times of %s run back or are missing: requests are taken in the order of the trace; --sort 10m sorts them", s.paths[i], counted(st.Redated, "request")))
		}
		if st.Bad() == 0 {
			continue
		}
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(st.Skipped)) {
			kinds = append(kinds, fmt.Sprintf("%d %v", st.Skipped[kind], kind))
		}
		notes = append(notes, fmt.Sprintf("%s: %s skipped of %d (%s); the first: %v", s.paths[i], counted(st.Bad(), "bad line"), st.Records, strings.Join(kinds, ", "), st.Errors[0]))
	}
	return notes
}

// replayFlags are those of cache replay.
type replayFlags struct {
	tokenizer tokenizerFlags
	trace     traceFlags
	engine    engineFlags
	draw      drawing

	workers         []int
	routing         string
	thresholds      replay.Thresholds
	seed            uint64
	concurrency     int
	prefill, decode float64
	warmup          float64
	measure         string
	price           priceFlags
	asJSON          bool

	stdin *traceFiles // the traces where standard input is one; it can be read once
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
  content    are at or behind the first new byte, or were seen under other keys
             only; it may be text that stood elsewhere: "unfray cache audit" tells

A trace is a file, .gz too, or "-". Its format is found: Mooncake's and other
block hashes, ShareGPT conversations, vLLM's benchmark prompts, JSON Lines of
OpenAI requests, the log of "unfray serve", agents' trajectories, keystrokes, CSV
of lengths. Text is tokenized as the model would; block hashes hide the boundary.

One request runs at a time unless --concurrency says otherwise, or --prefill-rate
and --decode-rate, with which the trace's times count: else requests are taken in
the trace's order, whatever their times.

--capacity is that of each worker. The router prefix-aware follows a prefix as
SGLang's does: where it is more than --cache-threshold of the prompt, and no worker
has more than --balance-abs-threshold requests more than another and more than
--balance-rel-threshold times as many. Running requests count where times do, else
those that were sent so far.`,
		Example: `  unfray cache replay conversations.jsonl --capacity 100k,1M,10M --html report.html
  unfray cache replay mooncake.jsonl.gz --engine trie,vllm,sglang --capacity 1M,10M
  unfray cache replay -t ./Qwen3-0.6B log.jsonl --workers 1,2,4 --price 3,0.3
  unfray cache replay gateway.log --settings-of vllm=http://127.0.0.1:8000 --json`,
		Args: cobra.MinimumNArgs(1),
	}
	f := cmd.Flags()
	r.tokenizer.add(cmd)
	r.engine.add(cmd, f)
	r.trace.add(cmd, f)
	f.IntSliceVar(&r.workers, "workers", []int{1}, "engines behind a router; several numbers are tried one after another")
	f.StringVar(&r.routing, "routing", "prefix-aware", "how the router chooses: round-robin, random, least-loaded, prefix-aware")
	limits := replay.DefaultThresholds()
	f.Float64Var(&r.thresholds.Match, "cache-threshold", limits.Match, "prefix-aware: share of a prompt, of which more must have been sent to a worker for the prompt to follow")
	f.IntVar(&r.thresholds.BalanceRequests, "balance-abs-threshold", limits.BalanceRequests, "prefix-aware: requests that a worker may have more than another")
	f.Float64Var(&r.thresholds.BalanceRatio, "balance-rel-threshold", limits.BalanceRatio, "prefix-aware: and how many times as many")
	f.Uint64Var(&r.seed, "seed", 1, "seed of --routing random")
	f.IntVar(&r.concurrency, "concurrency", 1, "requests that run at a time on a worker")
	f.Float64Var(&r.prefill, "prefill-rate", 0, "tokens a second that a prompt is read with; with --decode-rate the trace's times count")
	f.Float64Var(&r.decode, "decode-rate", 0, "tokens a second that a request generates")
	f.Float64Var(&r.warmup, "warmup", 0, "share of the requests, from the first, that fill the cache and are not counted")
	f.StringVar(&r.measure, "measure", "all", "what --engine trie counts: all requests, or the second half (tail), as kvcache-simulator does")
	r.price.add(f)
	f.BoolVar(&r.asJSON, "json", false, "print the result as JSON: one object, or an array where several caches are tried")
	r.draw.add(f, "hit rate by capacity, or over time")
	cmd.RunE = handler(r.run)
	return cmd
}

func (r *replayFlags) run(cmd *cobra.Command, paths []string) error {
	routing, err := replay.ParseRouting(r.routing)
	if err != nil {
		return usageError("--routing: " + strings.TrimPrefix(err.Error(), "replay: "))
	}
	if err := r.check(cmd.Flags()); err != nil {
		return err
	}
	r.trace.timed = r.prefill > 0
	first, err := r.peek(cmd, paths)
	if err != nil {
		return err
	}
	t := &trial{replayFlags: r, cmd: cmd, paths: paths}
	if len(first.Blocks) > 0 {
		t.traceBlock = first.BlockTokens
	}
	list, err := r.engine.simulations(cmd.Context(), cmd.Flags(), t.traceBlock)
	if err != nil {
		return err
	}
	if r.stdin != nil && r.passes(list) > 1 {
		return usageError("standard input can be read once: give a file to try several caches")
	}
	t.opt = replay.Options{Routing: routing, Thresholds: &r.thresholds, Seed: r.seed, Warmup: r.warmup, Buckets: 60}
	if r.prefill > 0 {
		t.opt.Timing = &replay.Timing{Prefill: r.prefill, Decode: r.decode}
	} else {
		t.opt.Concurrency = r.concurrency
	}
	if t.traceBlock == 0 {
		if err := r.encoding(cmd, &t.opt, first); err != nil {
			return err
		}
	}
	t.note(r.engine.told...)
	t.note(r.idle(cmd.Flags(), t.traceBlock)...)
	if err := t.all(list); err != nil {
		return err
	}
	for _, n := range t.notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "unfray: note:", n)
	}
	if err := r.draw.write(t.page()); err != nil {
		return err
	}
	if r.asJSON {
		return writeReplayJSON(cmd.OutOrStdout(), t.results)
	}
	return printReplay(cmd.OutOrStdout(), t.results)
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
	case slices.ContainsFunc(r.workers, func(n int) bool { return n < 1 || n > replay.MaxWorkers }) || len(r.workers) == 0:
		return usageError(fmt.Sprintf("--workers: give numbers from 1 to %d", replay.MaxWorkers))
	case !(r.thresholds.Match >= 0 && r.thresholds.Match <= 1):
		return usageError("--cache-threshold: a share is from 0 to 1")
	case r.thresholds.BalanceRequests < 0 || !(r.thresholds.BalanceRatio >= 0):
		return usageError("--balance-abs-threshold and --balance-rel-threshold must not be negative")
	case measure != replay.MeasureAll && measure != replay.MeasureTail:
		return usageError(fmt.Sprintf("--measure %s: choose all or tail", r.measure))
	case measure != replay.MeasureAll && !slices.Contains(r.engine.engines, engineTrie):
		return usageError("--measure tail is for --engine trie; --warmup 0.5 leaves out the first half with others")
	}
	if err := r.price.check(); err != nil {
		return err
	}
	return r.engine.checkPolicies()
}

// peek gives the first request of the traces.
func (r *replayFlags) peek(cmd *cobra.Command, paths []string) (*trace.Request, error) {
	src := &traceFiles{cmd: cmd, flags: &r.trace, paths: paths}
	q, err := src.peek()
	if slices.Contains(paths, "-") {
		r.stdin = src
	} else {
		err = errors.Join(err, src.Close())
	}
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there is no request in it", strings.Join(paths, ", "))
	}
	return q, err
}

// passes is how often the traces are read: once for all tries.
func (r *replayFlags) passes(list []simulation) int {
	n, tries := 0, 0
	for _, s := range list {
		if s.engine == engineTrie {
			tries = 1
		} else {
			n += len(r.workers)
		}
	}
	return n + tries
}

// source reads the traces from their start.
func (r *replayFlags) source(cmd *cobra.Command, paths []string) *traceFiles {
	if r.stdin != nil {
		return r.stdin
	}
	return &traceFiles{cmd: cmd, flags: &r.trace, paths: paths}
}

// encoding opens what makes tokens of text. A trace of token IDs alone does
// without where none was asked for.
func (r *replayFlags) encoding(cmd *cobra.Command, opt *replay.Options, first *trace.Request) error {
	asked := cmd.Flags().Changed("tokenizer")
	t, err := r.tokenizer.open(cmd)
	if err != nil {
		if !asked && first.IDs != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "unfray: note: without -t the loss at boundaries is not told\n")
			return nil
		}
		return err
	}
	opt.Tokenizer = t
	opt.Render, err = r.trace.renderer(cmd.Context(), r.tokenizer.path, t)
	opt.SkipRefused = r.trace.opt.SkipBad
	return err
}
