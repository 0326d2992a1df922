package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/eval"
	"github.com/unfray/unfray/vocab"
)

// evalFlags are the settings of an evaluation.
type evalFlags struct {
	model       modelFlags
	modes       []string
	chars       []int
	cuts        int
	promptBytes int
	maxTokens   int
	temperature float64
	seed        uint64
	noBits      bool
	jsonPath    string
	svgPath     string
	peers       []string
}

// peerTexts are the results of another program.
type peerTexts struct {
	name  string
	texts map[string]string // by the cut's id
}

func newEval() *cobra.Command {
	var e evalFlags
	cmd := &cobra.Command{
		Use:   "eval [-m MODEL] CUTS.jsonl[.gz]…",
		Short: "Measure what healing gains and costs on real cuts",
		Long: `Measure what healing gains and costs on real cuts: texts broken off at a place of
which it is known what came next. A table is printed for each file and stratum:
dirty cuts, whose boundary falls inside a token that the truth needs, clean ones,
and all.

A line of a file is a cut: {"id","prompt","truth"}, {"id","prefix","next"}, or
{"id","prefix","middle","suffix"}, whose truth is the middle and what follows it.

  next N characters  how often the continuation begins with exactly the truth's,
                     with the 95 % interval; + and −: cuts won and lost against
                     the first mode
  unchanged          how often the first characters are those of the first mode
  bits/char          what the truth's next characters (the most compared) cost
                     under the model, at temperature 1, over all canonical tokens
  extra passes       forward passes beyond those of the first mode, on average
  first byte         time to the first new byte against the first mode's, median

Prompts run one at a time, and nothing of one is cached for the next. --peer adds
what another program wrote at the same cuts: a file of {"id","text"} lines.`,
		Example: `  unfray eval -n 50 cuts.jsonl.gz
  unfray eval --modes off,exact --chars 10 --svg eval.svg --json eval.json cuts.jsonl
  unfray eval --peer guidance=guidance.jsonl cuts.jsonl`,
		Args: cobra.MinimumNArgs(1),
	}
	f := cmd.Flags()
	e.model.add(f)
	f.StringSliceVar(&e.modes, "modes", []string{"off", "last", "stable", "exact"}, "healing modes; the first is what the others are compared with")
	f.IntVarP(&e.cuts, "cuts", "n", 200, "take the first n lines of each file; 0: all")
	f.IntSliceVar(&e.chars, "chars", []int{5, 10, 20}, "how many characters must agree")
	f.IntVar(&e.promptBytes, "prompt-bytes", 2000, "keep that much of a prompt's end; 0: all")
	f.IntVar(&e.maxTokens, "max-tokens", 24, "tokens of each continuation")
	f.Float64Var(&e.temperature, "temperature", 0, "0 takes the likeliest token each time")
	f.Uint64Var(&e.seed, "seed", 1, "seed of the sampling, the same for all modes")
	f.BoolVar(&e.noBits, "no-bits", false, "leave out bits per character, which cost as much time as the rest")
	f.StringVar(&e.jsonPath, "json", "", "write all figures and every cut's results to this file; - prints them in place of the tables")
	f.StringVar(&e.svgPath, "svg", "", "write a bar plot of the matches to this file")
	f.StringArrayVar(&e.peers, "peer", nil, "NAME=FILE: results of another program (may be repeated)")
	// They fail only for flags that do not exist.
	_ = f.MarkHidden("parallel")
	_ = f.MarkHidden("queue")
	cmd.RunE = handler(e.run)
	return cmd
}

func (e *evalFlags) run(cmd *cobra.Command, files []string) (err error) {
	modes, err := e.check()
	if err != nil {
		return err
	}
	peers, err := e.readPeers()
	if err != nil {
		return err
	}
	if err := e.checkOutputs(); err != nil {
		return err
	}
	e.model.parallel = 1
	model, engine, err := e.model.open(cmd.Context())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	v := &evaluator{flags: e, model: model, modes: modes, progress: cmd.ErrOrStderr()}
	if !e.noBits {
		v.logits = engine
	}
	report := &eval.Report{
		Version: buildVersion(), Model: model.Info().Name, Temperature: e.temperature, MaxTokens: e.maxTokens, Chars: e.chars,
	}
	for _, m := range modes {
		report.Modes = append(report.Modes, string(m))
	}
	for _, p := range peers {
		report.Modes = append(report.Modes, p.name)
	}
	for _, path := range files {
		rows, err := v.file(cmd.Context(), path, peers)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".jsonl")
		report.Sets = append(report.Sets, eval.Summarize(name, report.Modes, e.chars, rows))
	}
	for _, code := range slices.Sorted(maps.Keys(v.notes)) {
		fmt.Fprintf(cmd.ErrOrStderr(), "unfray: note: %s at %d of the runs\n", code, v.notes[code])
	}
	return e.write(cmd.OutOrStdout(), report)
}

// check looks at the flags and returns the modes.
func (e *evalFlags) check() ([]heal.Mode, error) {
	if len(e.modes) == 0 || len(e.chars) == 0 {
		return nil, usageError("give at least one mode and one number of characters")
	}
	var modes []heal.Mode
	for _, name := range e.modes {
		mode, err := heal.ParseMode(name)
		if err != nil {
			return nil, usageError(err.Error())
		}
		if slices.Contains(modes, mode) {
			return nil, usageError("--modes names " + name + " twice")
		}
		modes = append(modes, mode)
	}
	slices.Sort(e.chars)
	e.chars = slices.Compact(e.chars)
	if e.chars[0] < 1 {
		return nil, usageError("--chars " + strconv.Itoa(e.chars[0]) + ": give numbers above 0")
	}
	for _, n := range []struct {
		flag         string
		value, least int
	}{{"cuts", e.cuts, 0}, {"prompt-bytes", e.promptBytes, 0}, {"max-tokens", e.maxTokens, 1}} {
		if n.value < n.least {
			return nil, usageError(fmt.Sprintf("--%s %d: give at least %d", n.flag, n.value, n.least))
		}
	}
	return modes, nil
}

// checkOutputs makes the files that results will be written to: better to fail
// now than at the end of a long run.
func (e *evalFlags) checkOutputs() error {
	for _, path := range []string{e.jsonPath, e.svgPath} {
		if path == "" || path == "-" {
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (e *evalFlags) readPeers() ([]peerTexts, error) {
	var peers []peerTexts
	for _, arg := range e.peers {
		name, path, ok := strings.Cut(arg, "=")
		if !ok || name == "" || path == "" {
			return nil, usageError(fmt.Sprintf("--peer %s: give NAME=FILE", arg))
		}
		if slices.Contains(e.modes, name) || slices.ContainsFunc(peers, func(p peerTexts) bool { return p.name == name }) {
			return nil, usageError(fmt.Sprintf("--peer %s: another column is called %s", arg, name))
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		texts, err := eval.ReadTexts(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		peers = append(peers, peerTexts{name, texts})
	}
	return peers, nil
}

func (e *evalFlags) write(out io.Writer, r *eval.Report) error {
	if e.svgPath != "" {
		if err := writeFile(e.svgPath, r.SVG); err != nil {
			return err
		}
	}
	printJSON := func(w io.Writer) error { return writeJSON(w, r) }
	switch e.jsonPath {
	case "-":
		return printJSON(out)
	case "":
	default:
		if err := writeFile(e.jsonPath, printJSON); err != nil {
			return err
		}
	}
	return r.Markdown(out)
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// evaluator runs the modes on cuts.
type evaluator struct {
	flags    *evalFlags
	model    *unfray.Model
	logits   backend.LogitsReader // nil: no bits
	modes    []heal.Mode
	progress io.Writer
	notes    map[string]int
}

// file evaluates the cuts of a file.
func (v *evaluator) file(ctx context.Context, path string, peers []peerTexts) ([]eval.Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cuts, skipped, err := eval.Read(f, v.model.Tokenizer(), eval.Options{
		Lines: v.flags.cuts, TruthRunes: v.flags.chars[0], PromptBytes: v.flags.promptBytes,
	})
	if err != nil {
		return nil, err
	}
	if skipped > 0 {
		fmt.Fprintf(v.progress, "unfray: note: %s: %d of the cuts were left out: their prompt is empty, or their truth has fewer than %d characters\n", path, skipped, v.flags.chars[0])
	}
	if len(cuts) == 0 {
		return nil, errors.New("no cut is left to evaluate")
	}
	bar, done := progress(ctx, v.progress, len(cuts))
	defer done()
	rows := make([]eval.Row, 0, len(cuts))
	for i := range cuts {
		row, err := v.cut(ctx, cuts[i], i)
		if err != nil {
			return nil, fmt.Errorf("cut %q: %w", cuts[i].ID, err)
		}
		for _, p := range peers {
			var run *eval.Run
			if text, ok := p.texts[row.ID]; ok {
				run = &eval.Run{Text: text}
			}
			row.Runs = append(row.Runs, run)
		}
		rows = append(rows, row)
		bar()
	}
	return rows, nil
}

// cut runs every mode at one cut. Each begins with another mode: what a machine
// does meanwhile is no mode's disadvantage.
func (v *evaluator) cut(ctx context.Context, cut eval.Cut, turn int) (eval.Row, error) {
	truth, n := eval.Head(cut.Truth, v.flags.chars[len(v.flags.chars)-1])
	row := eval.Row{Cut: cut, TruthRunes: n, Runs: make([]*eval.Run, len(v.modes))}
	for k := range v.modes {
		i := (k + turn) % len(v.modes)
		if err := v.forget(ctx, cut); err != nil {
			return row, err
		}
		run, err := v.complete(ctx, v.modes[i], cut)
		if err != nil {
			return row, err
		}
		row.Runs[i] = run
	}
	if v.logits == nil {
		return row, nil
	}
	w := eval.NewWeigher(v.model.Tokenizer(), v.logits, []byte(cut.Prompt))
	for i, mode := range v.modes {
		bits, ok, err := w.Bits(ctx, mode, []byte(truth))
		if err != nil {
			return row, err
		}
		if ok {
			row.Runs[i].Bits = &bits
		}
	}
	return row, nil
}

// forget makes the engine's only sequence hold something else than the prompt.
func (v *evaluator) forget(ctx context.Context, cut eval.Cut) error {
	tok := v.model.Tokenizer()
	own := tok.Encode(nil, []byte(cut.Prompt))
	for id := range vocab.ID(tok.Vocab().Len()) {
		if tok.Vocab().IsText(id) && (len(own) == 0 || id != own[0]) {
			_, err := v.model.Complete(ctx, &unfray.Request{Prompt: unfray.Prompt{IDs: []vocab.ID{id}}, Heal: heal.Off, MaxTokens: 1})
			return err
		}
	}
	return nil
}

// complete runs one mode at one cut.
func (v *evaluator) complete(ctx context.Context, mode heal.Mode, cut eval.Cut) (*eval.Run, error) {
	seed := v.flags.seed
	begin := time.Now()
	s, err := v.model.Generate(ctx, &unfray.Request{
		Prompt:    unfray.Prompt{Text: []byte(cut.Prompt)},
		Heal:      mode,
		Sampling:  backend.Sampling{Temperature: v.flags.temperature, Seed: &seed},
		MaxTokens: v.flags.maxTokens,
	})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	run := &eval.Run{}
	for {
		c, err := s.Next()
		if len(c.Text) > 0 && run.FirstByte == nil {
			elapsed := time.Since(begin).Seconds()
			run.FirstByte = &elapsed
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	r := s.Result()
	run.Text = string(r.Text)
	tokens := r.Usage.CompletionTokens
	if r.FinishReason == backend.FinishStop {
		tokens++ // the one that ended it
	}
	extra := r.Healing.ForwardPasses - tokens
	run.Passes = &extra
	for _, n := range r.Healing.Notes {
		if v.notes == nil {
			v.notes = map[string]int{}
		}
		v.notes[n.Code]++
		run.Notes = append(run.Notes, n.Code)
	}
	return run, nil
}
