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
	if err := a.draw.write(auditPage(strings.Join(args, ", "), rep)); err != nil {
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
	render, err := openRenderer(cmd.Context(), a.trace.template, a.tokenizer.path, t)
	if err != nil {
		return nil, err
	}
	var prompts []audit.Prompt
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
				if p.IDs, err = render(q.Messages, q.Tools); err != nil {
					return nil, fmt.Errorf("%s:%d: %w", path, q.Line, err)
				}
			}
			if p.Text == nil && p.IDs == nil {
				return nil, fmt.Errorf("%s:%d: it does not tell its prompt: hashes and lengths cannot be audited", path, q.Line)
			}
			prompts = append(prompts, p)
		}
		src.tell(cmd.ErrOrStderr())
	}
	return prompts, nil
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
func auditPage(name string, rep *audit.Report) *plot.Page {
	p := &plot.Page{
		Title: "Cache audit: " + name,
		Lead: fmt.Sprintf("%s: %s of %s prompt tokens were held in vain, %s. By unfray %s.", counted(len(rep.Requests), "prompt"),
			grouped(int64(rep.LostTokens)), grouped(int64(rep.PromptTokens)), counted(rep.LostBlocks, "block"), buildVersion()),
	}
	causes := plot.Section{Title: "Causes", Head: []string{"cause", "why", "prompts", "tokens lost", "blocks lost"}, Left: 2}
	chart := &plot.Bars{Title: "Lost tokens by cause", Unit: "tokens", Parts: []plot.Part{{Name: "text byte for byte the same"}, {Name: "other"}}}
	for _, c := range rep.Causes {
		causes.Rows = append(causes.Rows, []string{string(c.Cause), c.Why, grouped(int64(c.Requests)), grouped(int64(c.LostTokens)), grouped(int64(c.LostBlocks))})
		chart.Labels = append(chart.Labels, string(c.Cause))
		chart.Parts[0].Values = append(chart.Parts[0].Values, float64(c.LostEqualText))
		chart.Parts[1].Values = append(chart.Parts[1].Values, float64(c.LostTokens-c.LostEqualText))
	}
	if len(chart.Labels) > 0 {
		causes.Figures = []plot.Figure{chart}
	} else {
		causes.Text = "No prompt loses anything that an earlier one had left."
	}
	help := plot.Section{Title: "What would help", Head: []string{"change", "what it costs", "computed before", "after"}, Left: 2}
	for _, s := range rep.Suggestions {
		help.Rows = append(help.Rows, []string{s.Text, s.Price, grouped(int64(s.Before.ComputedTokens)), grouped(int64(s.After.ComputedTokens))})
	}
	if len(help.Rows) == 0 {
		help.Head, help.Text = nil, "Nothing that was tried."
	}
	all := plot.Section{Title: "Prompts", Head: []string{"prompt", "compared with", "parts because", "tokens", "reused", "lost", "at byte"}, Left: 3}
	for i, r := range rep.Requests {
		if i == maxListed {
			all.Text = fmt.Sprintf("The first %d of %s.", maxListed, grouped(int64(len(rep.Requests))))
			break
		}
		why, at := "", ""
		if d := r.FirstDivergence; d != nil {
			why, at = d.Why, grouped(int64(d.Byte))
		}
		all.Rows = append(all.Rows, []string{r.Name, r.AgainstName, why, grouped(int64(r.Tokens)), grouped(int64(r.ReusedTokens)), grouped(int64(r.LostTokens)), at})
	}
	p.Sections = []plot.Section{causes, help, all}
	return p
}

// maxListed is how many prompts a page lists.
const maxListed = 500
