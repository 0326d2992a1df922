package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unfray/unfray/internal/plot"
)

func newCache() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "See what a prefix cache loses, and why",
		Long: `See what an engine's prefix cache finds of prompts, what it loses and why, and
what would help. Everything is computed on token IDs as the engines do it.`,
		Example: `  unfray cache replay trace.jsonl --engine vllm --capacity 100k,1M
  unfray cache audit prompts.jsonl
  unfray cache delimiters -t ./Qwen3-0.6B '\n---\n'
  unfray cache advise --pattern rag
  unfray cache watch --upstream vllm=http://127.0.0.1:8000`,
	}
	cmd.AddCommand(newCacheReplay(), newCacheAudit(), newCacheDelimiters(), newCacheAdvise(), newCacheWatch())
	return cmd
}

// drawing is where a command draws to.
type drawing struct{ svg, html string }

func (d *drawing) add(f *pflag.FlagSet, what string) {
	f.StringVar(&d.svg, "svg", "", "write a chart to this file: "+what)
	f.StringVar(&d.html, "html", "", "write a page with tables and charts to this file; it opens without a network")
}

// write draws a page, and its first figure alone.
func (d *drawing) write(p *plot.Page) error {
	if d.svg != "" {
		var first plot.Figure
		for _, s := range p.Sections {
			if first == nil && len(s.Figures) > 0 {
				first = s.Figures[0]
			}
		}
		if first == nil {
			return fmt.Errorf("--svg %s: there is nothing to draw; give several capacities, or a trace of more than one request", d.svg)
		}
		if err := writeFile(d.svg, first.SVG); err != nil {
			return err
		}
	}
	if d.html != "" {
		return writeFile(d.html, p.HTML)
	}
	return nil
}

// sizes is a flag of counts such as 4096, 100k, 1.5M.
type sizes []int

func (s *sizes) String() string {
	parts := make([]string, len(*s))
	for i, n := range *s {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ",")
}

func (s *sizes) Type() string { return "counts" }

func (s *sizes) Set(text string) error {
	*s = nil
	for part := range strings.SplitSeq(text, ",") {
		n, err := parseSize(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		*s = append(*s, n)
	}
	return nil
}

// parseSize reads a whole number, or one with the suffix k, M or G for powers of
// a thousand.
func parseSize(text string) (int, error) {
	number, unit := text, 1.0
	for suffix, size := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			number, unit = rest, size
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	if n := f * unit; err != nil || !(n >= 0 && n <= min(1<<53, float64(math.MaxInt))) || n != math.Trunc(n) {
		return 0, fmt.Errorf("%q is no count; it is like 4096, 100k or 1.5M", text)
	} else {
		return int(n), nil
	}
}

// table prints rows of columns, numbers to the right. The first left columns
// hold words.
func table(w io.Writer, left int, head []string, rows [][]string) error {
	wide := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, c := range row {
			wide[i] = max(wide[i], len([]rune(c)))
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		var line strings.Builder
		for i, c := range row {
			if i >= left {
				line.WriteString(strings.Repeat(" ", wide[i]-len([]rune(c))))
			}
			line.WriteString(c)
			if i < len(row)-1 {
				line.WriteByte('\t')
			}
		}
		fmt.Fprintln(tw, strings.TrimRight(line.String(), " "))
	}
	return tw.Flush()
}

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// percent writes a share.
func percent(f float64) string { return strconv.FormatFloat(100*f, 'f', 1, 64) + " %" }

// shareOf is n of whole, 0 of nothing.
func shareOf(n, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(n) / float64(whole)
}
