package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unfray/unfray/internal/plot"
)

// page draws the hit rate by capacity where there are several, by time, and the
// losses, and says how they came about.
func (t *trial) page() *plot.Page {
	head, rows := replayTable(t.results)
	p := &plot.Page{Title: "Prefix cache: " + strings.Join(t.paths, ", "), Lead: fmt.Sprintf("Replayed by unfray %s.", buildVersion())}
	all := plot.Section{Title: "Hit rates", Head: head, Rows: rows, Left: 1}
	if chart := capacityChart(t.results); chart != nil {
		all.Figures = append(all.Figures, chart)
	}
	p.Sections = append(p.Sections, all)
	if over := timeChart(t.results); over != nil {
		s := plot.Section{Title: "Over the trace", Figures: []plot.Figure{over}}
		if n := timedResults(t.results); n > maxTimeLines {
			s.Text = fmt.Sprintf("The first %d of %d caches.", maxTimeLines, n)
		}
		p.Sections = append(p.Sections, s)
	}
	if losses := lossChart(t.results); losses != nil {
		p.Sections = append(p.Sections, plot.Section{
			Title: "Where the prompts' tokens went", Figures: []plot.Figure{losses},
			Text: "hit: found computed. capacity: thrown away to make room. routing: on another worker. rounding: parts of blocks and the last token. boundary: seen text that was made of other tokens. content: at or behind the first new byte, or seen under other keys only.",
		})
	}
	if k := t.workersTable(); k.Head != nil {
		p.Sections = append(p.Sections, k)
	}
	p.Sections = append(p.Sections, plot.Section{Title: "How it was replayed", Text: strings.Join(t.settings(), "\n"), Code: commandLine(t.cmd, t.paths)})
	if len(t.notes) > 0 {
		p.Sections = append(p.Sections, plot.Section{Title: "Notes", Text: strings.Join(t.notes, "\n")})
	}
	return p
}

// settings are those that the table does not tell.
func (t *trial) settings() (lines []string) {
	blocks := map[string]bool{}
	for i := range t.results {
		r := &t.results[i]
		if text := fmt.Sprintf("%s: blocks of %s", r.name(), counted(r.blockTokens, "token")); !blocks[text] {
			blocks[text] = true
			lines = append(lines, text)
		}
	}
	if len(t.workers) > 1 || t.workers[0] > 1 {
		lines = append(lines, "workers: "+joined(t.workers)+", each with the capacity told; routing: "+t.routing)
	}
	switch {
	case t.opt.Timing != nil:
		lines = append(lines, fmt.Sprintf("times: as the trace tells them; prompts are read at %g tokens a second, outputs generated at %g", t.prefill, t.decode))
	case t.concurrency > 1:
		lines = append(lines, fmt.Sprintf("requests at a time on a worker: %d", t.concurrency))
	default:
		lines = append(lines, "requests run one after the other")
	}
	if t.warmup > 0 {
		lines = append(lines, "not counted, to fill the cache: the first "+percent(t.warmup)+" of the requests")
	}
	switch p := t.price.prices; len(p) {
	case 1:
		lines = append(lines, fmt.Sprintf("price of a million input tokens: %g %s; cached ones are free", p[0], t.price.currency))
	case 2:
		lines = append(lines, fmt.Sprintf("price of a million input tokens: %g %s; of a million cached ones: %g", p[0], t.price.currency, p[1]))
	}
	return lines
}

func joined(numbers []int) string {
	var s []string
	for _, n := range numbers {
		s = append(s, strconv.Itoa(n))
	}
	return strings.Join(s, ", ")
}

// workersTable has a row for each worker of results with several.
func (t *trial) workersTable() plot.Section {
	s := plot.Section{Title: "Workers", Left: 1}
	for i := range t.results {
		r := &t.results[i]
		if r.failed != nil {
			continue
		}
		for n, k := range r.result.Workers {
			if len(s.Rows) == maxListed {
				s.Text = fmt.Sprintf("The first %d.", maxListed)
				return s
			}
			s.Head = []string{"cache", "capacity", "worker", "requests", "prompt tokens", "hit rate"}
			s.Rows = append(s.Rows, []string{r.label(), capacityText(r.capacity), strconv.Itoa(n + 1), grouped(k.Requests), grouped(k.PromptTokens), percent(k.HitRate)})
		}
	}
	return s
}

// commandLine writes a command with the flags that were given.
func commandLine(cmd *cobra.Command, args []string) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			items := list.GetSlice()
			for i, text := range items {
				if n, err := strconv.ParseFloat(text, 64); err == nil && f.Value.Type() == "float64Slice" {
					items[i] = strconv.FormatFloat(n, 'g', -1, 64)
				}
			}
			value = strings.Join(items, ",")
		}
		words = append(words, "--"+f.Name+"="+shellWord(value))
	})
	for _, a := range args {
		words = append(words, shellWord(a))
	}
	return strings.Join(words, " ")
}

// shellWord quotes text for a shell where it must be.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./,:=@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// capacityChart is nil where every cache has one capacity. Rates that are not of
// all requests are left out.
func capacityChart(results []replayed) plot.Figure {
	c := &plot.Lines{Title: "Hit rate by capacity", XName: "tokens of a worker's cache", LogX: true, Share: true}
	at := map[string]int{}
	several := false
	for _, r := range results {
		if r.failed != nil || r.capacity == 0 || r.result.PromptTokens == 0 || r.result.Rejected > 0 {
			continue
		}
		name := r.label()
		i, known := at[name]
		if !known {
			i = len(c.Series)
			at[name] = i
			c.Series = append(c.Series, plot.Series{Name: name})
		}
		s := &c.Series[i]
		s.X, s.Y = append(s.X, float64(r.capacity)), append(s.Y, r.result.HitRate)
		several = several || known
	}
	if !several {
		return nil
	}
	for i := range c.Series {
		c.Series[i].Sort()
	}
	return c
}

// maxTimeLines is how many lines a chart over time has.
const maxTimeLines = 8

func timedResults(results []replayed) (n int) {
	for _, r := range results {
		if r.failed == nil && len(r.result.Over) > 1 {
			n++
		}
	}
	return n
}

// timeChart is nil where a trace has one bucket only.
func timeChart(results []replayed) plot.Figure {
	c := &plot.Lines{Title: "Hit rate over the trace", XName: "requests", Share: true}
	for _, r := range results {
		if r.failed != nil || len(r.result.Over) < 2 || len(c.Series) == maxTimeLines {
			continue
		}
		timed := r.result.Over[len(r.result.Over)-1].At > 0
		s := plot.Series{Name: r.label()}
		if r.capacity > 0 {
			s.Name += ", " + capacityText(r.capacity)
		}
		if r.result.Rejected > 0 {
			s.Name += " *"
		}
		for _, b := range r.result.Over {
			x := float64(b.First + b.Requests)
			if timed {
				x = b.At / 60
				c.XName = "minutes"
			}
			s.X, s.Y = append(s.X, x), append(s.Y, b.HitRate)
		}
		c.Series = append(c.Series, s)
	}
	if len(c.Series) == 0 {
		return nil
	}
	c.Title += starred(results)
	return c
}

// starred explains the star beside some results.
func starred(results []replayed) string {
	for _, r := range results {
		if r.failed == nil && r.result.Rejected > 0 {
			return " (* without prompts larger than the cache)"
		}
	}
	return ""
}

// lossChart is nil where no losses are known.
func lossChart(results []replayed) plot.Figure {
	c := &plot.Bars{Title: "Tokens of the prompts" + starred(results), Whole: true, Unit: "tokens"}
	for _, name := range lossNames {
		c.Parts = append(c.Parts, plot.Part{Name: name})
	}
	for _, r := range results {
		if r.failed != nil || r.result.Loss == nil || r.result.PromptTokens == 0 {
			continue
		}
		label := r.name()
		if r.workers > 1 {
			label += fmt.Sprintf(" ×%d", r.workers)
		}
		if r.capacity > 0 {
			label += " " + plot.Compact(float64(r.capacity))
		}
		if r.result.Rejected > 0 {
			label += " *"
		}
		c.Labels = append(c.Labels, label)
		for i, n := range lossParts(r.result.Loss) {
			c.Parts[i].Values = append(c.Parts[i].Values, float64(n))
		}
	}
	if len(c.Labels) == 0 {
		return nil
	}
	return c
}
