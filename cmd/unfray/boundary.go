package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/internal/views"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// boundaryFlags are those of the command boundary.
type boundaryFlags struct {
	tokenizer              tokenizerFlags
	special, asJSON, jsonl bool
	covers                 int
}

func newBoundary() *cobra.Command {
	var b boundaryFlags
	cmd := &cobra.Command{
		Use:   "boundary [-t TOKENIZER] [TEXT]",
		Short: "Show which tokens of a prompt may still change, and why",
		Long: `Show the end of a prompt cut into its tokens. What follows the double bar, and is
marked by ~, may still change when more text follows; what stands before it is
proved to stay. Spaces are drawn as ·, tabs as →, newlines as ↵. NO_COLOR turns
colours off, COLUMNS sets the width.`,
		Example: `  unfray boundary 'const userNa'
  unfray boundary -t o200k_base.tiktoken --json 'The link is <a href="https:'`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	b.tokenizer.add(cmd)
	f.BoolVar(&b.special, "special", false, "text that spells a control token becomes that token")
	f.BoolVar(&b.asJSON, "json", false, "print the report as JSON")
	f.BoolVar(&b.jsonl, "jsonl", false, `read {"text"} a line, print a report a line`)
	f.IntVar(&b.covers, "covers", 16, "list at most this many covers")
	cmd.MarkFlagsMutuallyExclusive("json", "jsonl")
	cmd.RunE = handler(b.run)
	return cmd
}

func (b *boundaryFlags) run(cmd *cobra.Command, args []string) error {
	if b.covers < 0 {
		return usageError("--covers must not be negative")
	}
	t, err := b.tokenizer.open(cmd)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if b.jsonl {
		return eachText(cmd, args, func(text []byte) error {
			return writeJSON(out, views.Analyze(t, text, b.special, b.covers))
		})
	}
	text, err := textArg(cmd, args)
	if err != nil {
		return err
	}
	if b.asJSON {
		return writeJSON(out, views.Analyze(t, text, b.special, b.covers))
	}
	analyze := boundary.Analyze
	if b.special {
		analyze = boundary.AnalyzeSpecial
	}
	return b.print(out, t, analyze(t, text))
}

// shownLines is how many lines of the picture are drawn: the end of the prompt.
const shownLines = 6

// print draws the end of the prompt and says what its stable part is.
func (b *boundaryFlags) print(w io.Writer, t *tokenizer.Tokenizer, r *boundary.Report) error {
	var s strings.Builder
	if len(r.IDs) > 0 {
		s.WriteString(newDisplay(w).draw(picture{cells: tokenCells(t, r.IDs, r.Stable), shown: shownLines}))
		s.WriteByte('\n')
	}
	fmt.Fprintf(&s, "stable: %d of %s, %s\n", r.Stable, counted(len(r.IDs), "token"), counted(r.StableBytes, "byte"))
	if len(r.Pending) > 0 {
		fmt.Fprintf(&s, "pending: %q\n", r.Pending)
	}
	fmt.Fprintf(&s, "why: %s\n", r.Reason)
	if total, exact := r.Count(); total > 0 {
		least := ""
		if !exact {
			least = "at least "
		}
		fmt.Fprintf(&s, "covers: %s%s can stand over the pending bytes\n", least, counted(total, "token path"))
		list, _ := r.Covers(b.covers)
		for _, c := range list {
			fmt.Fprintf(&s, "  %s\n", quoteTokens(t, c.IDs))
		}
		if total > len(list) {
			fmt.Fprintf(&s, "  … and %d more\n", total-len(list))
		}
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func quoteTokens(t *tokenizer.Tokenizer, ids []vocab.ID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = strconv.Quote(string(t.Vocab().Bytes(id)))
	}
	return strings.Join(parts, " ")
}
