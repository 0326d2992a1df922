package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// boundaryView is the JSON form of a report.
type boundaryView struct {
	Bytes        int         `json:"bytes"`
	Tokens       []tokenView `json:"tokens"`
	StableTokens int         `json:"stable_tokens"`
	StableBytes  int         `json:"stable_bytes"`
	Pending      exactText   `json:"pending"`
	Covers       []coverView `json:"covers"`
	CoversTotal  int         `json:"covers_total"`
	Reason       string      `json:"reason"`
}

// coverView is a token path over the pending bytes.
type coverView struct {
	IDs []vocab.ID `json:"ids"`
	exactText
}

func newBoundary() *cobra.Command {
	var path string
	var special, asJSON, jsonl bool
	var covers int
	cmd := &cobra.Command{
		Use:   "boundary [-t TOKENIZER] [TEXT]",
		Short: "Show which tokens of a prompt may still change, and why",
		Example: `  unfray boundary 'const userNa'
  unfray boundary --json 'The link is <a href="https:'`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	addTokenizerFlag(f, &path)
	f.BoolVar(&special, "special", false, "text that spells a control token becomes that token")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	f.BoolVar(&jsonl, "jsonl", false, `read {"text"} a line, print a report a line`)
	f.IntVar(&covers, "covers", 16, "list at most this many covers")
	cmd.MarkFlagsMutuallyExclusive("json", "jsonl")
	cmd.RunE = handler(func(cmd *cobra.Command, args []string) error {
		if covers < 0 {
			return usageError("--covers must not be negative")
		}
		t, err := openTokenizer(path)
		if err != nil {
			return err
		}
		analyze := boundary.Analyze
		if special {
			analyze = boundary.AnalyzeSpecial
		}
		out := cmd.OutOrStdout()
		if jsonl {
			return eachText(cmd, args, func(text []byte) error {
				return writeJSON(out, viewBoundary(t, analyze(t, text), text, covers))
			})
		}
		text, err := textArg(cmd, args)
		if err != nil {
			return err
		}
		r := analyze(t, text)
		if asJSON {
			return writeJSON(out, viewBoundary(t, r, text, covers))
		}
		return printBoundary(out, t, r, covers)
	})
	return cmd
}

func viewBoundary(t *tokenizer.Tokenizer, r *boundary.Report, text []byte, limit int) boundaryView {
	list, total := r.Covers(limit)
	views := make([]coverView, 0, len(list))
	for _, c := range list {
		views = append(views, coverView{IDs: c.IDs, exactText: newExactText(c.Text)})
	}
	return boundaryView{
		Bytes:        len(text),
		Tokens:       tokenViews(t, text, r.IDs),
		StableTokens: r.Stable,
		StableBytes:  r.StableBytes,
		Pending:      newExactText(r.Pending),
		Covers:       views,
		CoversTotal:  total,
		Reason:       r.Reason,
	}
}

// shownTokens is how many stable tokens printBoundary shows before the moving
// ones.
const shownTokens = 12

// printBoundary draws the end of the prompt, with a bar where its stable part
// ends.
func printBoundary(w io.Writer, t *tokenizer.Tokenizer, r *boundary.Report, limit int) error {
	var b strings.Builder
	from := max(0, r.Stable-shownTokens)
	if from > 0 {
		fmt.Fprintf(&b, "… %d tokens … ", from)
	}
	b.WriteString(quoteTokens(t, r.IDs[from:r.Stable]))
	if r.Stable < len(r.IDs) {
		b.WriteString(" ‖ " + quoteTokens(t, r.IDs[r.Stable:]))
	}
	fmt.Fprintf(&b, "\nstable: %d of %d tokens, %d bytes\n", r.Stable, len(r.IDs), r.StableBytes)
	if len(r.Pending) > 0 {
		fmt.Fprintf(&b, "pending: %q\n", r.Pending)
	}
	fmt.Fprintf(&b, "why: %s\n", r.Reason)
	if list, total := r.Covers(limit); total > 0 {
		fmt.Fprintf(&b, "covers: %d token paths can stand over the pending bytes\n", total)
		for _, c := range list {
			fmt.Fprintf(&b, "  %s\n", quoteTokens(t, c.IDs))
		}
		if total > len(list) {
			fmt.Fprintf(&b, "  … and %d more\n", total-len(list))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func quoteTokens(t *tokenizer.Tokenizer, ids []vocab.ID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = strconv.Quote(string(t.Vocab().Bytes(id)))
	}
	return strings.Join(parts, " ")
}
