package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/internal/eval"
	"github.com/unfray/unfray/prefixcache/advise"
	"github.com/unfray/unfray/prefixcache/replay"
	"github.com/unfray/unfray/prefixcache/trace"
)

// adviseFlags are those of cache advise.
type adviseFlags struct {
	tokenizer  tokenizerFlags
	trace      traceFlags
	pattern    string
	workload   string
	set        []string
	seams      string
	keystrokes bool
	eval       string
	chars      int
	asTable    bool
	asJSON     bool
}

func newCacheAdvise() *cobra.Command {
	var a adviseFlags
	cmd := &cobra.Command{
		Use:   "advise [--pattern NAME | --workload FILE] [--set NAME=VALUE]… [TRACE]",
		Short: "Whether healing pays for a workload, in quality and in cache",
		Long: `Compute for a workload whether healing pays, and in which currency: continuations
that are right more often, or tokens that the prefix cache finds. The answer may
be no. The points at which it turns are printed, and what else would help.

A workload is a pattern to begin with, or a JSON file, in which --set changes
single figures by their names in the JSON. What is measured replaces them:

  TRACE    a log, as "unfray cache replay" reads it: lengths of prompts and
           outputs, what prompts share
  --seams  JSON Lines of {"prefix","next"} or {"prompt","truth"}: how many prompts
           end inside a token, and how many tokens change; with --keystrokes at
           each character that was typed. The table of figures is printed too.

  --eval   what "unfray eval --json" wrote: what healing does to continuations

Patterns: ` + strings.Join(patternKeys(), ", ") + `.`,
		Example: `  unfray cache advise --table
  unfray cache advise --pattern code --set prompt_tokens=6000 --set block_tokens=528
  unfray cache advise --seams cuts.jsonl.gz --keystrokes
  unfray cache advise --pattern chat log.jsonl --set weights.match_ms=50`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	a.tokenizer.add(cmd)
	a.trace.add(cmd, f)
	f.StringVar(&a.pattern, "pattern", "code", "the workload to begin with")
	f.StringVar(&a.workload, "workload", "", "JSON file with figures of the workload; the pattern's stand for those that are not there")
	f.StringArrayVar(&a.set, "set", nil, "NAME=VALUE: a figure of the workload (may be repeated)")
	f.StringVar(&a.seams, "seams", "", "measure the ends of prompts: JSON Lines of texts and what followed")
	f.BoolVar(&a.keystrokes, "keystrokes", false, "with --seams: at each character that followed")
	f.StringVar(&a.eval, "eval", "", "JSON of an evaluation of the model's healing")
	f.IntVar(&a.chars, "eval-chars", 10, "with --eval: how many characters must agree for a continuation to be right")
	f.BoolVar(&a.asTable, "table", false, "print the decision for every pattern as a Markdown table")
	_ = cmd.RegisterFlagCompletionFunc("pattern", cobra.FixedCompletions(patternKeys(), cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&a.asJSON, "json", false, "print the decision as JSON")
	cmd.RunE = handler(a.run)
	return cmd
}

func (a *adviseFlags) run(cmd *cobra.Command, args []string) error {
	if a.asTable {
		return advise.PatternTable(cmd.OutOrStdout())
	}
	w, err := a.base()
	if err != nil {
		return err
	}
	src := figureSources{Pattern: a.pattern, File: a.workload, Measured: []string{}, Set: []string{}}
	if len(args) == 1 {
		if a.workload == "" && !cmd.Flags().Changed("pattern") {
			return usageError("a log does not tell how its prompts end: give --pattern chat where a chat template ends them, or another of " + strings.Join(patternKeys(), ", "))
		}
		src.measured("prompt_tokens", "shared_tokens", "reuse", "output_tokens")
		if err := a.measureTrace(cmd, args[0], w); err != nil {
			return err
		}
	}
	var measured *advise.Measured
	if a.seams != "" {
		if measured, err = a.measureSeams(cmd, w); err != nil {
			return err
		}
		src.measured("dirty_share", "unstable_tokens", "pending_tokens", "prompt_tokens")
	}
	if a.eval != "" {
		if err := a.useEval(w); err != nil {
			return err
		}
		src.measured("dirty_share", "quality_stable", "quality_exact", "forced_steps_stable", "forced_steps_exact")
	}
	for _, s := range a.set {
		name, _, _ := strings.Cut(s, "=")
		src.Set = append(src.Set, name)
	}
	if err := a.change(w); err != nil {
		return err
	}
	advice, err := advise.Advise(*w)
	if err != nil {
		return usageError(strings.TrimPrefix(err.Error(), "advise: "))
	}
	out := cmd.OutOrStdout()
	if a.asJSON {
		return writeJSON(out, struct {
			*advise.Advice
			Workload *advise.Workload `json:"workload"`
			Sources  *figureSources   `json:"sources"`
			Measured *advise.Measured `json:"measured,omitempty"`
		}{&advice, w, &src, measured})
	}
	if measured != nil {
		if err := advise.Markdown(out, []string{a.seams}, []advise.Measured{*measured}); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if err := advice.Markdown(out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%s\n", src.String())
	return err
}

// figureSources says where the figures of a workload come from.
type figureSources struct {
	Measured []string `json:"measured"`
	Set      []string `json:"set"`
	File     string   `json:"file,omitempty"`
	Pattern  string   `json:"pattern"` // that of the rest, which is assumed
}

func (f *figureSources) measured(names ...string) {
	for _, n := range names {
		if !slices.Contains(f.Measured, n) {
			f.Measured = append(f.Measured, n)
		}
	}
}

// String says it in a sentence.
func (f *figureSources) String() string {
	var parts []string
	if len(f.Measured) > 0 {
		parts = append(parts, "measured: "+strings.Join(f.Measured, ", "))
	}
	if len(f.Set) > 0 {
		parts = append(parts, "set: "+strings.Join(f.Set, ", "))
	}
	if f.File != "" {
		parts = append(parts, "from "+f.File+": what it has")
	}
	return strings.Join(append(parts, "the rest is assumed, by pattern "+f.Pattern), "; ") + "."
}

// base is the workload to begin with.
func (a *adviseFlags) base() (*advise.Workload, error) {
	p, err := advise.FindPattern(a.pattern)
	if err != nil {
		return nil, usageError("--pattern: " + strings.TrimPrefix(err.Error(), "advise: "))
	}
	if a.workload == "" {
		return &p.Workload, nil
	}
	f, err := os.Open(a.workload)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w, err := advise.ReadWorkload(f, p.Workload)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", a.workload, strings.TrimPrefix(err.Error(), "advise: "))
	}
	return &w, nil
}

func patternKeys() (keys []string) {
	for _, p := range advise.Patterns() {
		keys = append(keys, p.Key)
	}
	return keys
}

// useEval takes the figures of an evaluation.
func (a *adviseFlags) useEval(w *advise.Workload) error {
	f, err := os.Open(a.eval)
	if err != nil {
		return err
	}
	defer f.Close()
	e, err := advise.ReadEval(f, a.chars)
	if err != nil {
		return fmt.Errorf("%s: %w", a.eval, err)
	}
	w.UseEval(e)
	return nil
}

// change applies --set.
func (a *adviseFlags) change(w *advise.Workload) error {
	for _, s := range a.set {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return usageError(fmt.Sprintf("--set %s: give NAME=VALUE", s))
		}
		if !json.Valid([]byte(value)) {
			value = strconv.Quote(value) // a word, such as tail
		}
		for _, part := range slices.Backward(strings.Split(name, ".")) { // weights.match_ms
			value = fmt.Sprintf("{%q:%s}", part, value)
		}
		changed, err := advise.ReadWorkload(strings.NewReader(value), *w)
		if err != nil {
			return usageError(fmt.Sprintf("--set %s: %s", s, strings.TrimPrefix(err.Error(), "advise: ")))
		}
		*w = changed
	}
	return nil
}

// measureSeams takes the figures of prompts' ends.
func (a *adviseFlags) measureSeams(cmd *cobra.Command, w *advise.Workload) (*advise.Measured, error) {
	t, err := a.tokenizer.open(cmd)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(a.seams)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := advise.NewMeasurer(t)
	if err != nil {
		return nil, err
	}
	err = eval.Each(f, func(prompt, truth string) error {
		s := advise.Seam{Prefix: []byte(prompt), Next: []byte(truth)}
		if a.keystrokes {
			m.AddKeystrokes(s)
		} else {
			m.Add(s)
		}
		return cmd.Context().Err()
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.seams, err)
	}
	r := m.Result()
	if r.Seams == 0 {
		return nil, fmt.Errorf("%s: there is no text in it", a.seams)
	}
	w.UseMeasured(&r)
	return &r, nil
}

// measureTrace takes lengths, and what prompts share, from a log.
func (a *adviseFlags) measureTrace(cmd *cobra.Command, path string, w *advise.Workload) error {
	sim := simulation{engine: engineSGLang, policy: "lru", blockTokens: 1}
	src := &traceFiles{cmd: cmd, flags: &a.trace, paths: []string{path}}
	defer src.Close()
	first, err := src.peek()
	if err != nil {
		return fmt.Errorf("%s: there is no request in it: %w", path, err)
	}
	opt := replay.Options{Policy: engineSGLang}
	if len(first.Blocks) > 0 {
		sim.blockTokens = first.BlockTokens
	} else if opt.Tokenizer, err = a.tokenizer.open(cmd); err != nil {
		return err
	} else if opt.Render, err = openRenderer(cmd.Context(), a.trace.template, a.tokenizer.path, opt.Tokenizer); err != nil {
		return err
	}
	opt.NewCache, opt.NewUnlimited = sim.unlimited, sim.unlimited
	var fresh, outputs, known, shared int64 // requests that share nothing; tokens
	opt.OnRecord = func(r *replay.Record) error {
		seen := r.Loss.Tokens() - r.Loss.Content
		if seen < minShared {
			fresh++
		}
		shared += seen
		if n := outputTokens(r.Request); n >= 0 {
			outputs += int64(n)
			known++
		}
		return nil
	}
	res, err := replay.Run(cmd.Context(), src, opt)
	if errors.Is(err, replay.ErrNoContent) && opt.Render == nil {
		return errNoPrompt
	} else if err != nil {
		return err
	}
	src.Close()
	src.tell(cmd.ErrOrStderr())
	n := float64(res.Requests)
	w.Name = path
	w.PromptTokens = float64(res.PromptTokens) / n
	w.Reuse = n / float64(max(fresh, 1))
	w.SharedTokens = 0
	if sharing := res.Requests - fresh; sharing > 0 {
		w.SharedTokens = min(float64(shared)/float64(sharing), w.PromptTokens)
	}
	if known > 0 {
		w.OutputTokens = float64(outputs) / float64(known)
	}
	// What a pattern assumes beyond what was measured cannot be.
	w.OutputReused = min(w.OutputReused, w.OutputTokens)
	w.Diverges, w.SeamUnstable = min(w.Diverges, w.SharedTokens), min(w.SeamUnstable, w.SharedTokens)
	return nil
}

// minShared is how many tokens a prompt must share with earlier ones to count as
// one that reuses something: less is a BOS and chance.
const minShared = 16

// outputTokens is what a request generated; -1 if the trace does not tell.
func outputTokens(q *trace.Request) int {
	if q.OutputIDs != nil {
		return len(q.OutputIDs)
	}
	return q.OutputTokens
}
