package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/boundary/delimiter"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// delimiterFlags are those of cache delimiters.
type delimiterFlags struct {
	tokenizer tokenizerFlags
	family    string
	parts     string
	contexts  []string
	special   bool
	raw       bool
	best      int
	details   bool
	asTable   bool
	asJSON    bool
}

func newCacheDelimiters() *cobra.Command {
	var d delimiterFlags
	cmd := &cobra.Command{
		Use:   "delimiters [-t TOKENIZER] [CANDIDATE…]",
		Short: "Which separators keep their tokens, whatever stands around them",
		Long: `Say of separators between a prompt's parts whether their tokens, and those before
them, stay whatever follows, and whether the separator's own tokens are the same
whatever precedes. What follows is proved for every text; what precedes is proved
or searched, and the verdict says which. A separator that fails comes with a text
that shows it.

Without candidates those of --family are ranked, or of all families: ` + strings.Join(delimiter.Families(), ", ") + `,
and a row is printed for each; --details tells all of them. Candidates keep their
order, with their rank among each other. Tokens by which chat templates and engines
divide turns, name roles or end answers are not offered.

In a candidate \n, \t, \\ and \xNN are read as in Go, unless --raw is given.`,
		Example: `  unfray cache delimiters
  unfray cache delimiters -t ./Qwen3-0.6B '\n---\n' '\n\n###\n\n'
  unfray cache delimiters --family rule --details
  unfray cache delimiters --parts chunks.jsonl --json '\n</doc>\n'`,
	}
	f := cmd.Flags()
	d.tokenizer.add(cmd)
	f.StringVar(&d.family, "family", "", "rank the separators of a family")
	f.StringVar(&d.parts, "parts", "", `JSON Lines of {"text"}: samples of what follows; a condition weighs by how often it bites there`)
	f.StringArrayVar(&d.contexts, "context", nil, "text before the separator that the proof is for (may be repeated; default: a word, a digit, a mark, a blank, a newline)")
	f.BoolVar(&d.special, "special", false, "control tokens spelled in candidates become those tokens")
	f.BoolVar(&d.raw, "raw", false, `candidates are taken as they are, without reading \n`)
	f.IntVarP(&d.best, "best", "n", 0, "print the best n; 0: all")
	f.BoolVar(&d.details, "details", false, "print all that is known of each separator, not a row")
	f.BoolVar(&d.asTable, "table", false, "print a Markdown table, a row for each separator")
	f.BoolVar(&d.asJSON, "json", false, "print the verdicts as one JSON array")
	_ = cmd.RegisterFlagCompletionFunc("family", cobra.FixedCompletions(delimiter.Families(), cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = handler(d.run)
	return cmd
}

func (d *delimiterFlags) run(cmd *cobra.Command, args []string) error {
	t, err := d.tokenizer.open(cmd)
	if err != nil {
		return err
	}
	candidates, err := d.candidates(cmd, t, args)
	if err != nil {
		return err
	}
	opt := delimiter.Options{}
	for _, c := range d.contexts {
		text, err := d.unquote(c)
		if err != nil {
			return err
		}
		opt.Contexts = append(opt.Contexts, text)
	}
	if d.parts != "" {
		if opt.Parts, err = readTexts(d.parts); err != nil {
			return err
		}
	}
	verdicts, err := delimiter.Rank(t, candidates, opt)
	if err != nil {
		return usageError(strings.TrimPrefix(err.Error(), "delimiter: "))
	}
	if d.best > 0 {
		verdicts = verdicts[:min(d.best, len(verdicts))]
	}
	out := cmd.OutOrStdout()
	own := len(args) > 0 && d.family == ""
	if own {
		place := map[delimiter.Candidate]int{}
		for i, c := range candidates {
			place[c] = i
		}
		slices.SortStableFunc(verdicts, func(a, b delimiter.Verdict) int { return place[a.Candidate] - place[b.Candidate] })
	}
	switch {
	case d.asJSON:
		return writeJSON(out, verdicts)
	case d.asTable:
		return delimiter.Markdown(out, verdicts)
	case own || d.details:
		return printVerdicts(out, t, verdicts)
	}
	return printRanks(out, t, verdicts)
}

func (d *delimiterFlags) candidates(cmd *cobra.Command, t *tokenizer.Tokenizer, args []string) ([]delimiter.Candidate, error) {
	if len(args) == 0 || d.family != "" {
		list, err := delimiter.Family(t, d.family)
		if err != nil {
			return nil, usageError(strings.TrimPrefix(err.Error(), "delimiter: "))
		}
		if source, err := templateSource("", d.tokenizer.path); err == nil && source != "" {
			list = slices.DeleteFunc(list, func(c delimiter.Candidate) bool {
				text := strings.TrimSpace(c.Text)
				return c.Family == "added" && text != "" && strings.Contains(source, text)
			})
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("the tokenizer has no separator of family %q that is not a mark of templates and engines", d.family)
		}
		if len(args) == 0 {
			return list, nil
		}
		more, err := d.own(cmd, t, args)
		return append(list, more...), err
	}
	return d.own(cmd, t, args)
}

// own makes candidates of arguments.
func (d *delimiterFlags) own(cmd *cobra.Command, t *tokenizer.Tokenizer, args []string) ([]delimiter.Candidate, error) {
	var list []delimiter.Candidate
	for _, a := range args {
		text, err := d.unquote(a)
		if err != nil {
			return nil, err
		}
		if !d.special && controls(t, text) {
			fmt.Fprintf(cmd.ErrOrStderr(), "unfray: note: %q is a control token of the tokenizer; without --special it is judged as text that spells it\n", text)
		}
		list = append(list, delimiter.Candidate{Text: text, Family: "own", Special: d.special})
	}
	return list, nil
}

// unquote reads escapes as in a Go string.
func (d *delimiterFlags) unquote(s string) (string, error) {
	if d.raw || !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for rest := s; rest != ""; {
		r, multibyte, tail, err := strconv.UnquoteChar(rest, 0)
		if err != nil {
			return "", usageError(fmt.Sprintf("%q: after \\ stands no escape; write \\\\ for one backslash, or give --raw", s))
		}
		if multibyte {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
		rest = tail
	}
	return b.String(), nil
}

// readTexts reads the texts of a JSON Lines file.
func readTexts(path string) (texts [][]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = eachLine(f, func(line []byte) error {
		text, err := lineText(line)
		texts = append(texts, text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return texts, nil
}

// maxStatement is how many characters of a claim the table shows.
const maxStatement = 60

// cut shortens a text to n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// printRanks prints a row for each verdict, with the first text that shows where it
// fails.
func printRanks(w io.Writer, t *tokenizer.Tokenizer, verdicts []delimiter.Verdict) error {
	rows := make([][]string, len(verdicts))
	for i := range verdicts {
		v := &verdicts[i]
		name := strconv.Quote(v.Text)
		if v.Kind != delimiter.Text {
			name += " (" + string(v.Kind) + ")"
		}
		side, example := "what follows: ", shown(t, &v.After)
		if example == "" {
			side, example = "what precedes: ", shown(t, &v.Before)
		}
		if example == "" {
			side = ""
		}
		rows[i] = []string{strconv.Itoa(v.Rank), name, strconv.Itoa(len(v.IDs)), percent(v.After.Share), percent(v.Before.Share), cut(v.After.Statement, maxStatement), side + example}
	}
	// Numbers to the right, which the table has behind the words.
	head := []string{"rank", "separator", "tokens", "bites after", "before", "keeps its tokens", "shown by"}
	for _, c := range []int{0, 2, 3, 4} {
		wide := len(head[c])
		for _, row := range rows {
			wide = max(wide, len(row[c]))
		}
		head[c] = fmt.Sprintf("%*s", wide, head[c])
		for _, row := range rows {
			row[c] = fmt.Sprintf("%*s", wide, row[c])
		}
	}
	return table(w, len(head), head, rows)
}

// shown is the first example of a side, empty if there is none.
func shown(t *tokenizer.Tokenizer, s *delimiter.Side) string {
	for i := range s.Changes {
		if c := &s.Changes[i]; c.Becomes != nil {
			return fmt.Sprintf("%q + separator + %q gives %s", c.Context, c.Next, pieces(t, c.Becomes))
		}
	}
	return ""
}

// pieces quotes the texts of tokens.
func pieces(t *tokenizer.Tokenizer, ids []vocab.ID) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = strconv.Quote(string(bytesOf(t, id)))
	}
	return strings.Join(list, " ")
}

func printVerdicts(w io.Writer, t *tokenizer.Tokenizer, verdicts []delimiter.Verdict) error {
	for i, v := range verdicts {
		if i > 0 {
			fmt.Fprintln(w)
		}
		rank := ""
		if len(verdicts) > 1 {
			rank = fmt.Sprintf(", rank %d", v.Rank)
		}
		fmt.Fprintf(w, "%q  %s, %s%s\n  %s\n", v.Text, counted(len(v.IDs), "token"), v.Kind, rank, v.Summary)
		printSide(w, t, "follow", &v.After)
		printSide(w, t, "precede", &v.Before)
		for _, r := range v.Hygiene {
			fmt.Fprintf(w, "  to make it hold always: %s\n", r.Do)
		}
		if v.Trim != nil {
			fmt.Fprintf(w, "  a template that strips messages leaves %q\n", v.Trim.Text)
		}
	}
	return nil
}

// printSide prints the counter-examples of a claim.
func printSide(w io.Writer, t *tokenizer.Tokenizer, verb string, s *delimiter.Side) {
	fmt.Fprintf(w, "  what may %s: %s (%s)\n", verb, s.Statement, s.Proof)
	for _, c := range s.Changes {
		if c.Becomes == nil {
			continue
		}
		fmt.Fprintf(w, "    %s: %q + separator + %q gives %s\n", c.Kind, c.Context, c.Next, pieces(t, c.Becomes))
	}
}

func bytesOf(t *tokenizer.Tokenizer, id vocab.ID) []byte { return t.Vocab().Bytes(id) }

// controls reports whether a text is a control token's.
func controls(t *tokenizer.Tokenizer, text string) bool {
	v := t.Vocab()
	return slices.ContainsFunc(v.Controls(), func(id vocab.ID) bool { return string(v.Bytes(id)) == text })
}
