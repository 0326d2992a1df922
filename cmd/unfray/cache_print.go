package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/unfray/unfray/prefixcache/replay"
)

// writeReplayJSON prints one result as an object, several as an array. Both have
// the capacity beside what was found.
func writeReplayJSON(w io.Writer, results []replayed) error {
	type where struct {
		Engine   string `json:"engine"`
		Capacity int    `json:"capacity_tokens"` // of a worker; 0: no limit
		Workers  int    `json:"worker_count"`
	}
	type view struct {
		*replay.Result
		*spent
		where
	}
	type failure struct {
		Policy string `json:"policy"`
		Error  string `json:"error"` // why there is no result
		where
	}
	views := make([]any, len(results))
	for i, r := range results {
		at := where{r.engine, r.capacity, r.workers}
		if r.failed != nil {
			views[i] = failure{r.name(), r.failed.Error(), at}
		} else {
			views[i] = view{r.result, r.cost, at}
		}
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
		rateText(r), grouped(r.PromptTokens), counted(int(r.Requests), "request"))
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
	fmt.Fprintf(w, "%s of %s cached at the end, %s thrown away\n", counted64(r.Blocks, "block"), counted(r.BlockTokens, "token"), grouped(r.Evictions))
	for _, line := range []struct {
		n    int64
		text string
	}{
		{r.Warmup, "to fill the cache, not counted"},
		{r.Rejected, "left out: larger than the cache"},
		{r.NoContent, "left out: the prompt is not told"},
		{r.Refused, "left out: the chat template makes no prompt of it"},
		{r.Refused, "left out: the conversation has no prompt"},
	} {
		if line.n > 0 {
			fmt.Fprintf(w, "%s %s\n", counted(int(line.n), "request"), line.text)
		}
	}
	if c := results[0].cost; c != nil {
		fmt.Fprintf(w, "the prompts cost %s; with nothing cached %s\n", c.text(), c.amount(c.Uncached))
	}
	if r.FirstToken > 0 {
		fmt.Fprintf(w, "requests wait %s for room and have their prompt read after %s, on average\n", seconds(r.Wait), seconds(r.FirstToken))
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

// rateText is a hit rate; there is none without prompts.
func rateText(r *replay.Result) string {
	if r.PromptTokens == 0 {
		return "-"
	}
	return percent(r.HitRate)
}

// seconds writes a time with three digits.
func seconds(s float64) string {
	switch {
	case s == 0:
		return "0 s"
	case s < 1:
		return strconv.FormatFloat(1000*s, 'g', 3, 64) + " ms"
	case s < 1000:
		return strconv.FormatFloat(s, 'g', 3, 64) + " s"
	}
	return grouped(int64(s)) + " s"
}

// counted64 writes a number of things, with commas.
func counted64(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(n) + " " + thing + "s"
}

// A column of the table of results. Columns that say nothing of any result are
// left out.
type column struct {
	head string
	says func(r *replayed) bool // nil: always
	cell func(r *replayed) string
}

func replayColumns() []column {
	columns := []column{
		{"workers", func(r *replayed) bool { return r.workers > 1 }, func(r *replayed) string { return strconv.Itoa(r.workers) }},
		{"capacity", nil, func(r *replayed) string { return capacityText(r.capacity) }},
		{"hit rate", nil, func(r *replayed) string { return rateText(r.result) }},
		{"hit tokens", nil, func(r *replayed) string { return grouped(r.result.HitTokens) }},
		{"evicted blocks", nil, func(r *replayed) string { return grouped(r.result.Evictions) }},
		{"left out", func(r *replayed) bool { return r.leftOut() > 0 }, func(r *replayed) string { return grouped(r.leftOut()) }},
		{"wait", func(r *replayed) bool { return r.result.FirstToken > 0 }, func(r *replayed) string { return seconds(r.result.Wait) }},
		{"first token", func(r *replayed) bool { return r.result.FirstToken > 0 }, func(r *replayed) string { return seconds(r.result.FirstToken) }},
		{"cost", func(r *replayed) bool { return r.cost != nil }, func(r *replayed) string {
			if r.leftOut() > 0 {
				return "-" // that of the others compares with nothing
			}
			return r.cost.text()
		}},
	}
	for i, head := range []string{"to capacity", "to routing", "to rounding", "to boundary", "content"} {
		columns = append(columns, column{head, func(r *replayed) bool { return r.result.Loss != nil }, func(r *replayed) string {
			if r.result.Loss == nil || r.result.PromptTokens == 0 {
				return "-"
			}
			return percent(shareOf(lossParts(r.result.Loss)[i+1], r.result.PromptTokens))
		}})
	}
	return columns
}

// replayTable has a row for each result. The first column has the caches' names.
func replayTable(results []replayed) (head []string, rows [][]string) {
	head = []string{"cache"}
	rows = make([][]string, len(results))
	for i := range results {
		rows[i] = []string{results[i].name()}
	}
	for _, c := range replayColumns() {
		if c.says != nil && !slices.ContainsFunc(results, func(r replayed) bool { return r.failed == nil && c.says(&r) }) {
			continue
		}
		head = append(head, c.head)
		for i := range results {
			cell := "-"
			if r := &results[i]; r.failed == nil || !r.never && (c.head == "capacity" || c.head == "workers") {
				cell = c.cell(r)
			}
			rows[i] = append(rows[i], cell)
		}
	}
	return head, rows
}
