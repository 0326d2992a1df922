package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/unfray/unfray/internal/plot"
	"github.com/unfray/unfray/prefixcache/replay"
)

// writeReplayJSON prints one result as an object, several as an array. Both have
// the capacity beside what was found.
func writeReplayJSON(w io.Writer, results []replayed) error {
	type view struct {
		*replay.Result
		Engine   string `json:"engine"`
		Capacity int    `json:"capacity_tokens"` // 0: no limit
	}
	views := make([]view, len(results))
	for i, r := range results {
		views[i] = view{r.result, r.engine, r.capacity}
	}
	if len(views) == 1 {
		return writeJSON(w, views[0])
	}
	return writeJSON(w, views)
}

// lossNames are the parts of a prompt in the order of replay.Loss.
var lossNames = []string{"hit", "capacity", "routing", "rounding", "boundary", "content"}

func lossParts(l *replay.Loss) []int64 {
	return []int64{l.Hit, l.Capacity, l.Routing, l.Rounding, l.Boundary, l.Content}
}

// capacityText writes a capacity in tokens.
func capacityText(n int) string {
	if n == 0 {
		return "no limit"
	}
	return grouped(int64(n))
}

// printReplay prints one result at length, several as a table.
func printReplay(w io.Writer, results []replayed) error {
	if len(results) > 1 {
		head, rows := replayTable(results)
		return table(w, 1, head, rows)
	}
	r := results[0].result
	fmt.Fprintf(w, "%s, capacity %s: %s of %s prompt tokens are found, in %s\n", r.Policy, capacityText(results[0].capacity),
		percent(r.HitRate), grouped(r.PromptTokens), counted(int(r.Requests), "request"))
	if r.Loss != nil {
		var rows [][]string
		for i, n := range lossParts(r.Loss) {
			if n != 0 || i == 0 {
				rows = append(rows, []string{"  " + lossNames[i], grouped(n), percent(shareOf(n, r.PromptTokens))})
			}
		}
		if err := table(w, 1, []string{"", "tokens", "share"}, rows); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%s of %d tokens cached at the end, %s thrown away\n", grouped(r.Blocks)+" blocks", r.BlockTokens, grouped(r.Evictions))
	for _, line := range []struct {
		n    int64
		text string
	}{
		{r.Warmup, "requests filled the cache and are not counted"},
		{r.Rejected, "requests are larger than the cache and were left out"},
		{r.NoContent, "requests do not tell their prompt and were left out"},
	} {
		if line.n > 0 {
			fmt.Fprintf(w, "%s %s\n", grouped(line.n), line.text)
		}
	}
	if rep := r.Reported; rep != nil {
		fmt.Fprintf(w, "the engine reported %s of %s tokens cached, the replay %s; equal in %s of %s requests\n",
			grouped(rep.CachedTokens), grouped(rep.PromptTokens), grouped(rep.HitTokens), grouped(rep.Equal), grouped(rep.Requests))
	}
	for i, k := range r.Workers {
		fmt.Fprintf(w, "worker %d: %s of %s prompt tokens, in %s\n", i+1, percent(k.HitRate), grouped(k.PromptTokens), counted(int(k.Requests), "request"))
	}
	return nil
}

// replayTable has a row for each result.
func replayTable(results []replayed) (head []string, rows [][]string) {
	head = []string{"cache", "capacity", "hit rate", "hit tokens", "evicted blocks"}
	losses := slices.ContainsFunc(results, func(r replayed) bool { return r.result.Loss != nil })
	if losses {
		head = append(head, "to capacity", "to routing", "to rounding", "to boundary", "new")
	}
	for _, r := range results {
		rate := percent(r.result.HitRate)
		if r.result.PromptTokens == 0 {
			rate = "-"
		}
		row := []string{r.result.Policy, capacityText(r.capacity), rate, grouped(r.result.HitTokens), grouped(r.result.Evictions)}
		if losses && r.result.Loss == nil {
			row = append(row, slices.Repeat([]string{"-"}, len(lossNames)-1)...)
		} else if losses {
			for _, n := range lossParts(r.result.Loss)[1:] {
				row = append(row, percent(shareOf(n, r.result.PromptTokens)))
			}
		}
		rows = append(rows, row)
	}
	return head, rows
}

// replayPage draws the hit rate by capacity where there are several, by time, and
// the losses.
func replayPage(name string, results []replayed) *plot.Page {
	head, rows := replayTable(results)
	p := &plot.Page{Title: "Prefix cache: " + name, Lead: fmt.Sprintf("Replayed by unfray %s.", buildVersion())}
	all := plot.Section{Title: "Hit rates", Head: head, Rows: rows, Left: 1}
	if chart := capacityChart(results); chart != nil {
		all.Figures = append(all.Figures, chart)
	}
	over, losses := timeChart(results), lossChart(results)
	p.Sections = append(p.Sections, all)
	if over != nil {
		p.Sections = append(p.Sections, plot.Section{Title: "Over the trace", Figures: []plot.Figure{over}})
	}
	if losses != nil {
		p.Sections = append(p.Sections, plot.Section{
			Title: "Where the prompts' tokens went", Figures: []plot.Figure{losses},
			Text: "hit: found computed. capacity: thrown away to make room. routing: on another worker. rounding: parts of blocks and the last token. boundary: seen text that was made of other tokens. content: new text.",
		})
	}
	return p
}

// capacityChart is nil where every cache has one capacity.
func capacityChart(results []replayed) plot.Figure {
	c := &plot.Lines{Title: "Hit rate by capacity", XName: "tokens of the cache", LogX: true, Share: true}
	at := map[string]int{}
	several := false
	for _, r := range results {
		if r.capacity == 0 || r.result.PromptTokens == 0 {
			continue
		}
		i, known := at[r.result.Policy]
		if !known {
			i = len(c.Series)
			at[r.result.Policy] = i
			c.Series = append(c.Series, plot.Series{Name: r.result.Policy})
		}
		s := &c.Series[i]
		s.X, s.Y = append(s.X, float64(r.capacity)), append(s.Y, r.result.HitRate)
		several = several || known
	}
	if !several {
		return nil
	}
	return c
}

// timeChart is nil where a trace has one bucket only.
func timeChart(results []replayed) plot.Figure {
	c := &plot.Lines{Title: "Hit rate over the trace", XName: "requests", Share: true}
	for _, r := range results {
		if len(r.result.Over) < 2 {
			continue
		}
		timed := r.result.Over[len(r.result.Over)-1].At > 0
		s := plot.Series{Name: r.result.Policy}
		if r.capacity > 0 {
			s.Name += ", " + capacityText(r.capacity)
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
	return c
}

// lossChart is nil where no losses are known.
func lossChart(results []replayed) plot.Figure {
	c := &plot.Bars{Title: "Tokens of the prompts", Whole: true, Unit: "tokens"}
	for _, name := range lossNames {
		c.Parts = append(c.Parts, plot.Part{Name: name})
	}
	for _, r := range results {
		if r.result.Loss == nil {
			continue
		}
		label := r.result.Policy
		if r.capacity > 0 {
			label += " " + strconv.Itoa(r.capacity)
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
