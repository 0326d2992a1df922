package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/internal/plot"
	"github.com/unfray/unfray/prefixcache/audit"
	"github.com/unfray/unfray/tokenizer"
)

// auditFlags are those of cache audit.
type auditFlags struct {
	tokenizer tokenizerFlags
	trace     traceFlags
	draw      drawing
	opt       audit.Options
	blocks    sizes
	price     []float64
	currency  string
	values    string
	turns     string
	separator string
	raw       bool
	asJSON    bool
	messages  int // answers that are known as the text of a message
}

func newCacheAudit() *cobra.Command {
	var a auditFlags
	cmd := &cobra.Command{
		Use:   "audit [-t TOKENIZER] FILE… | --values VALUES.jsonl TEMPLATE | --turns CONVERSATION.json",
		Short: "Where prompts part, why, what it costs, and what would help",
		Long: `Find the first token at which prompts that share a beginning part, the byte, and
the cause: tokens of the same text that changed, a date, a counter, white space,
a chat template that renders an earlier turn in another way, tools in another
order. What is lost is told in tokens, in blocks, and with --price in money.
A suggestion is listed only if the prompts, tokenized again with the change,
lose less.

  FILE…      prompts: text files, or logs in the formats of "unfray cache replay"
             (JSON Lines of {"prompt"}, of requests, conversations, …)
  --values   the file is a template with {name}, {{name}}, ${name}, <NAME> or
             %(name)s, and a line of VALUES is an object with their values
  --turns    a conversation {"messages","tools"}, rendered by the model's chat
             template as it is sent at each turn; "probe" is one of five turns
             with reasoning and tool calls`,
		Example: `  unfray cache audit prompts.jsonl --block-size 16,528
  unfray cache audit system.txt system-and-question.txt
  unfray cache audit prompt.md --values runs.jsonl --price 3,0.3
  unfray cache audit -t ./Qwen3-0.6B --turns probe`,
	}
	f := cmd.Flags()
	a.tokenizer.add(cmd)
	a.trace.add(cmd, f)
	f.Var(&a.blocks, "block-size", "block sizes to count lost blocks for; the first is that of the summary (default 16)")
	f.Float64SliceVar(&a.price, "price", nil, "price of a million input tokens, and of a million cached ones: 3,0.3")
	f.StringVar(&a.currency, "currency", "", "what prices are in, such as USD")
	f.StringVar(&a.values, "values", "", "JSON Lines of values for a template")
	f.StringVar(&a.turns, "turns", "", `a conversation to render turn by turn, or "probe"`)
	f.StringVar(&a.separator, "separator", "", `what a chunk cache looks for between parts (LMCache's blend_special_str); \n is read as in Go`)
	f.BoolVar(&a.opt.Special, "special", true, "control tokens spelled in prompts are those tokens, as in what a chat template wrote")
	f.BoolVar(&a.opt.Template, "bos", true, "put the tokens before text that the tokenizer puts there (BOS)")
	f.BoolVar(&a.opt.NoOutputs, "no-outputs", false, "the cache keeps prompts only, as TGI's")
	f.BoolVar(&a.opt.NoSuggestions, "no-suggestions", false, "leave out what would help: it runs the audit several times")
	f.BoolVar(&a.raw, "raw", false, `--separator is taken as it is`)
	f.BoolVar(&a.asJSON, "json", false, "print the report as JSON")
	a.draw.add(f, "lost tokens by cause")
	cmd.RunE = handler(a.run)
	return cmd
}

func (a *auditFlags) run(cmd *cobra.Command, args []string) error {
	if err := a.check(args); err != nil {
		return err
	}
	if a.turns != "" {
		for _, name := range []string{"separator", "raw", "special", "bos", "no-outputs", "no-suggestions", "format", "skip-bad"} {
			if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
				return usageError("--" + name + " has no effect with --turns: the template writes the prompts, and the model's answers are kept")
			}
		}
	}
	t, err := a.tokenizer.open(cmd)
	if err != nil {
		return err
	}
	a.opt.Tokenizer, a.opt.BlockSizes = t, a.blocks
	if a.turns != "" {
		return a.runTurns(cmd, t)
	}
	var prompts []audit.Prompt
	if a.values != "" {
		prompts, err = a.filled(args[0])
	} else {
		prompts, err = a.read(cmd, t, args)
	}
	if err != nil {
		return err
	}
	rep, err := audit.Audit(prompts, a.opt)
	if err != nil {
		return err
	}
	if note := a.unlogged(); note != "" {
		rep.Notes = append(rep.Notes, note)
	}
	if err := a.draw.write(auditPage(strings.Join(args, ", "), rep, a.opt.Price)); err != nil {
		return err
	}
	if a.asJSON {
		return writeJSON(cmd.OutOrStdout(), rep)
	}
	return rep.Explain(cmd.OutOrStdout())
}

// check reads the flags that need no tokenizer.
func (a *auditFlags) check(args []string) error {
	switch {
	case a.turns != "" && (a.values != "" || len(args) > 0):
		return usageError("--turns takes no files and no --values")
	case a.turns != "" && len(a.blocks) > 1:
		return usageError("--turns counts blocks of one size: give one --block-size")
	case a.turns == "" && len(args) == 0:
		return usageError("give the prompts to compare: files, a template with --values, or --turns")
	case a.values != "" && len(args) != 1:
		return usageError("--values fills one template: give one file")
	}
	switch len(a.price) {
	case 0:
	case 1, 2:
		a.opt.Price = &audit.Price{PerMillion: a.price[0], Currency: a.currency}
		if len(a.price) == 2 {
			a.opt.Price.PerMillionCached = a.price[1]
		}
		for _, p := range a.price {
			if !(p >= 0 && p <= math.MaxFloat64) {
				return usageError("--price: a price is a number that is not negative")
			}
		}
	default:
		return usageError("--price: give the price of a million input tokens and, after a comma, of a million cached ones")
	}
	if a.separator != "" {
		d := delimiterFlags{raw: a.raw}
		text, err := d.unquote(a.separator)
		if err != nil {
			return err
		}
		a.opt.Separator = []byte(text)
	}
	return nil
}

// filled fills the template with each line of values.
func (a *auditFlags) filled(path string) ([]audit.Prompt, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(a.values)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := audit.ReadValues(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.values, err)
	}
	tmpl := audit.NewTemplate(text)
	if len(tmpl.Names()) == 0 {
		return nil, fmt.Errorf("%s: there is no placeholder in it, such as {name}", path)
	}
	var prompts []audit.Prompt
	for i, values := range lines {
		p, err := tmpl.Fill(values)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", a.values, i+1, err)
		}
		p.Name = fmt.Sprintf("%s:%d", filepath.Base(a.values), i+1)
		prompts = append(prompts, p)
	}
	return prompts, nil
}

// read reads prompts from files.
func (a *auditFlags) read(cmd *cobra.Command, t *tokenizer.Tokenizer, paths []string) ([]audit.Prompt, error) {
	render, err := a.trace.renderer(cmd.Context(), a.tokenizer.path, t)
	if err != nil {
		return nil, err
	}
	var prompts []audit.Prompt
	var out leftOut
	start := time.Unix(0, 0)
	for _, path := range paths {
		if isText(path) {
			text, err := readFile(path)
			if err != nil {
				return nil, err
			}
			prompts = append(prompts, audit.Prompt{Name: path, Text: text})
			continue
		}
		src := &traceFiles{cmd: cmd, flags: &a.trace, paths: []string{path}}
		for n := 0; ; {
			q, err := src.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			q = q.Clone()
			n++
			p := audit.Prompt{
				Name: fmt.Sprintf("%s:%d", filepath.Base(path), q.Line), Text: q.Text, IDs: q.IDs,
				Conversation: q.Conversation, Output: q.Output, OutputIDs: q.OutputIDs, Keys: q.Keys,
			}
			if q.At > 0 {
				p.At = start.Add(q.At)
			}
			if q.Messages != nil && q.Text == nil && q.IDs == nil {
				if render == nil {
					return nil, fmt.Errorf("%s:%d: it is a conversation, and there is no chat template beside the tokenizer: give --chat-template", path, q.Line)
				}
				p.IDs, err = render(q.Messages, q.Tools)
				if err != nil && cmd.Context().Err() == nil && a.trace.opt.SkipBad {
					out.refused(fmt.Errorf("%s:%d: %w", path, q.Line, err))
					continue
				}
				if err != nil {
					return nil, fmt.Errorf("%s:%d: %w", path, q.Line, err)
				}
			}
			if q.Messages != nil && len(q.Output) > 0 && q.OutputIDs == nil {
				a.messages++
			}
			if p.Text == nil && p.IDs == nil {
				out.untold(fmt.Errorf("%s:%d: it does not tell its prompt: hashes and lengths cannot be audited", path, q.Line))
				continue
			}
			prompts = append(prompts, p)
		}
		src.tell(cmd.ErrOrStderr())
	}
	if len(prompts) == 0 && out.first() != nil {
		return nil, out.first()
	}
	out.tell(cmd.ErrOrStderr())
	return prompts, nil
}

// unlogged says that a log of messages does not tell all that the model wrote,
// where the template is one for models that reason; empty if it is not.
func (a *auditFlags) unlogged() string {
	if a.messages == 0 {
		return ""
	}
	source, err := templateSource(a.trace.template, a.tokenizer.path)
	if err != nil || !strings.Contains(source, "think") && !strings.Contains(source, "reasoning") && !strings.Contains(source, "analysis") {
		return ""
	}
	return fmt.Sprintf("%s known only as the text of a message: the reasoning block that the model wrote before it is not in the log, "+
		"so that a template that drops it later loses more than is told here; --turns shows what the template does", are(a.messages, "answer"))
}

func are(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return counted(n, noun) + " are"
}

// leftOut counts requests without a prompt, of each kind with the first one.
type leftOut struct {
	noPrompt, notTold          int
	firstRefused, firstNotTold error
}

func (l *leftOut) refused(err error) {
	if l.noPrompt++; l.firstRefused == nil {
		l.firstRefused = err
	}
}

func (l *leftOut) untold(err error) {
	if l.notTold++; l.firstNotTold == nil {
		l.firstNotTold = err
	}
}

// first is an error for a trace that has nothing else, nil if nothing was left out.
func (l *leftOut) first() error {
	if l.firstRefused != nil {
		return l.firstRefused
	}
	return l.firstNotTold
}

func (l *leftOut) tell(w io.Writer) {
	if l.noPrompt > 0 {
		fmt.Fprintf(w, "unfray: note: %s left out; the first: %v\n", counted(l.noPrompt, "conversation"), l.firstRefused)
	}
	if l.notTold > 0 {
		fmt.Fprintf(w, "unfray: note: %s left out that do not tell their prompt; the first: %v\n", counted(l.notTold, "request"), l.firstNotTold)
	}
}

// isText reports whether a file is one prompt.
func isText(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".txt", ".md", ".prompt", "":
		return path != "-"
	}
	return false
}

// auditPage draws what is lost by cause, and lists the requests.
func auditPage(name string, rep *audit.Report, price *audit.Price) *plot.Page {
	var lead strings.Builder
	fmt.Fprintf(&lead, "%s: %s of %s prompt tokens are lost%s.", counted(len(rep.Requests), "prompt"),
		grouped(int64(rep.LostTokens)), grouped(int64(rep.PromptTokens)), lossCost(rep.Cost, rep.Currency))
	for _, b := range rep.Blocks {
		fmt.Fprintf(&lead, "\nIn blocks of %d: %s, %s.", b.Size, counted(b.Blocks, "block"), counted(b.Tokens, "token"))
	}
	if price != nil {
		fmt.Fprintf(&lead, "\nA million input tokens costs %s, a million cached ones %s.",
			strings.TrimSpace(fmt.Sprintf("%g %s", price.PerMillion, price.Currency)), strings.TrimSpace(fmt.Sprintf("%g %s", price.PerMillionCached, price.Currency)))
	}
	for _, n := range rep.Notes {
		fmt.Fprintf(&lead, "\nNote: %s.", n)
	}
	fmt.Fprintf(&lead, "\nBy unfray %s.", buildVersion())
	return &plot.Page{
		Title: "Cache audit: " + name, Lead: lead.String(),
		Sections: []plot.Section{causesSection(rep), helpSection(rep), promptsSection(rep)},
	}
}

// causesSection has a bar and a row for each cause.
func causesSection(rep *audit.Report) plot.Section {
	s := plot.Section{Title: "Causes"}
	if len(rep.Causes) == 0 {
		s.Text = "Nothing is lost: no prompt repeats what an earlier one had behind the place where it begins to differ."
		return s
	}
	s.Head, s.Left = []string{"cause", "why", "prompts", "tokens lost", fmt.Sprintf("blocks of %d lost", rep.Blocks[0].Size)}, 2
	chart := &plot.Bars{Title: "Lost tokens by cause", Unit: "tokens", Parts: []plot.Part{{Name: "text byte for byte the same"}, {Name: "other"}}}
	for _, c := range rep.Causes {
		s.Rows = append(s.Rows, []string{string(c.Cause), c.Why, grouped(int64(c.Requests)), grouped(int64(c.LostTokens)), grouped(int64(c.LostBlocks))})
		chart.Labels = append(chart.Labels, string(c.Cause))
		chart.Parts[0].Values = append(chart.Parts[0].Values, float64(c.LostEqualText))
		chart.Parts[1].Values = append(chart.Parts[1].Values, float64(c.LostTokens-c.LostEqualText))
	}
	s.Figures = []plot.Figure{chart}
	return s
}

// helpSection lists the suggestions.
func helpSection(rep *audit.Report) plot.Section {
	s := plot.Section{Title: "What would help"}
	if len(rep.Suggestions) == 0 {
		s.Text = "Nothing that was tried."
		return s
	}
	in := fmt.Sprintf("in full blocks of %d", rep.Blocks[0].Size)
	s.Head, s.Left = []string{"change", "what it costs", "tokens computed before", "after", in + ", before", "after"}, 2
	for _, h := range rep.Suggestions {
		s.Rows = append(s.Rows, []string{h.Text, h.Price, grouped(int64(h.Before.ComputedTokens)), grouped(int64(h.After.ComputedTokens)),
			grouped(int64(h.Before.ComputedInBlocks)), grouped(int64(h.After.ComputedInBlocks))})
	}
	return s
}

// promptsSection lists the prompts.
func promptsSection(rep *audit.Report) plot.Section {
	s := plot.Section{Title: "Prompts", Head: []string{"prompt", "compared with", "parts because", "tokens", "reused", "lost", "at byte"}, Left: 3}
	priced := rep.Cost != nil
	if priced {
		s.Head = append(s.Head, strings.TrimSpace("cost "+rep.Currency))
	}
	for i, r := range rep.Requests {
		if i == maxListed {
			s.Text = fmt.Sprintf("The first %d of %s.", maxListed, grouped(int64(len(rep.Requests))))
			break
		}
		why, at := "", ""
		if d := r.FirstDivergence; d != nil {
			why, at = d.Why, grouped(int64(d.Byte))
		}
		row := []string{r.Name, r.AgainstName, why, grouped(int64(r.Tokens)), grouped(int64(r.ReusedTokens)), grouped(int64(r.LostTokens)), at}
		if priced {
			cost := ""
			if r.Cost != nil {
				cost = amount(*r.Cost)
			}
			row = append(row, cost)
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// maxListed is how many prompts a page lists.
const maxListed = 500
