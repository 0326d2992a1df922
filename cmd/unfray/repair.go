package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/jsonrepair"
)

// repairFlags are those of the command repair.
type repairFlags struct {
	o                           jsonrepair.Options
	asJSON, diff, stream, jsonl bool
	verbose                     bool
}

func newRepair() *cobra.Command {
	var r repairFlags
	cmd := &cobra.Command{
		Use:   "repair [FILE]",
		Short: "Turn what was meant to be JSON into JSON",
		Long: `Turn what was meant to be JSON into JSON, by syntax alone. The document of a file or
of standard input is printed: byte for byte where it is valid, else with what is
wrong repaired. --json and --diff show every byte that was changed.

A document that breaks off is closed, and what was open is named. One that can be
read in several ways is read in the likeliest, and that is said; --strict refuses
both. Where no JSON can be found nothing is printed.

With --stream bytes are printed as soon as they are final. What is printed is never
taken back and is at every moment the beginning of a valid document.

Exit status: 0 for a valid, repaired or truncated document and, without --strict,
an ambiguous one; 1 if it cannot be repaired; 2 for wrong usage.`,
		Example: `  echo "{'name': 'Ann', tags: [1, 2" | unfray repair
  unfray repair --diff answer.json
  unfray repair --json answer.json | jq .edits
  curl -sN https://example.com/answer | unfray repair --stream
  unfray repair --jsonl answers.jsonl > reports.jsonl`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	f.BoolVar(&r.asJSON, "json", false, "print a report as JSON: outcome, text, value, edits, findings, what was open")
	f.BoolVar(&r.diff, "diff", false, "print what was changed, each place in its context, instead of the document")
	f.BoolVar(&r.stream, "stream", false, "repair as the input comes: any size, bounded memory")
	f.BoolVar(&r.jsonl, "jsonl", false, `bulk: {"id","text"[,"finish_reason"]} a line in, one report a line out, same order`)
	f.BoolVar(&r.o.Strict, "strict", false, "exit with 1 for a truncated or an ambiguous document; the latter has no text")
	f.BoolVar(&r.o.LaTeX, "latex", false, `valid escapes that begin a LaTeX command (\frac, \beta) are backslashes`)
	f.BoolVar(&r.o.Paths, "paths", false, `valid escapes in a Windows path (C:\new) are backslashes`)
	f.BoolVar(&r.o.Ended, "ended", false, "the text is known not to break off: a number at its end is whole")
	f.IntVar(&r.o.Window, "window", 256, "bytes to look ahead where a byte can be read in two ways")
	f.IntVar(&r.o.MaxBytes, "max-bytes", maxInput, "limit of the input, of a line with --jsonl; 0: none; --stream has none unless it is given")
	f.IntVar(&r.o.MaxDepth, "max-depth", 0, "limit of open objects and arrays; 0: none")
	f.IntVar(&r.o.MaxEdits, "max-edits", 0, "limit of edits; 0: none")
	f.DurationVar(&r.o.MaxTime, "timeout", 0, "limit of the work on a document, such as 2s; 0: none")
	f.BoolVarP(&r.verbose, "verbose", "v", false, "say on standard error what was done")
	cmd.MarkFlagsMutuallyExclusive("json", "diff", "stream", "jsonl")
	cmd.RunE = handler(func(cmd *cobra.Command, args []string) error {
		switch {
		case r.o.Window <= 0:
			return usageError("--window must be positive")
		case r.o.MaxBytes < 0 || r.o.MaxDepth < 0 || r.o.MaxEdits < 0 || r.o.MaxTime < 0:
			return usageError("a limit must not be negative")
		}
		if r.stream && !cmd.Flags().Changed("max-bytes") {
			r.o.MaxBytes = 0
		}
		err := r.run(cmd, args)
		if errors.Is(err, syscall.EPIPE) {
			return nil // nobody reads any more
		}
		return err
	})
	return cmd
}

func (r *repairFlags) run(cmd *cobra.Command, args []string) error {
	in, size, err := openInput(cmd, args)
	if err != nil {
		return err
	}
	defer in.Close()
	ctx, out, errOut := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	switch {
	case r.stream:
		return r.live(ctx, in, out, errOut)
	case r.jsonl:
		return r.bulk(ctx, in, size, out, errOut)
	}
	data, err := readWithin(interruptible(ctx, in), r.o.MaxBytes)
	if err != nil {
		return err
	}
	result := jsonrepair.Repair(data, r.o)
	switch {
	case r.asJSON:
		if err := writeJSON(out, report(result)); err != nil {
			return err
		}
	case r.diff:
		if err := newDisplay(out).diff(out, data, changesOf(result)); err != nil {
			return err
		}
	default:
		if err := writeDocument(out, result.Text); err != nil {
			return err
		}
	}
	if !r.asJSON && !r.diff {
		r.tell(errOut, result, countKinds(nil, result.Edits()))
	}
	return r.judge(errOut, result)
}

// openInput opens a command's FILE, or standard input if that is "-" or missing.
// The size is that of a plain file, else 0.
func openInput(cmd *cobra.Command, args []string) (in io.ReadCloser, size int64, err error) {
	if len(args) == 0 || args[0] == "-" {
		in = io.NopCloser(cmd.InOrStdin())
		f, ok := cmd.InOrStdin().(*os.File)
		if !ok {
			return in, 0, nil
		}
		return in, plainSize(f), nil
	}
	f, err := os.Open(args[0])
	if err != nil {
		if text := strings.TrimSpace(args[0]); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			return nil, 0, errors.New("FILE looks like a JSON text: give the name of a file, or the text on standard input")
		}
		return nil, 0, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, 0, fmt.Errorf("%s is a folder: name a file", args[0])
	}
	return f, plainSize(f), nil
}

func plainSize(f *os.File) int64 {
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

// interruptible returns a reader that ends with the error of ctx when that ends,
// also while r waits.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	pr, pw := io.Pipe()
	stop := context.AfterFunc(ctx, func() { pw.CloseWithError(ctx.Err()) })
	go func() {
		defer stop()
		_, err := io.Copy(pw, r)
		pw.CloseWithError(err)
	}()
	return pr
}

// readWithin reads all of r, but no more than one byte beyond a limit; 0: none.
func readWithin(r io.Reader, limit int) ([]byte, error) {
	if limit > 0 {
		r = io.LimitReader(r, int64(limit)+1)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	return data, nil
}

// writeDocument prints a document as it is; a terminal gets a line's end.
func writeDocument(out io.Writer, text []byte) error {
	if _, err := out.Write(text); err != nil {
		return err
	}
	return endLine(out, text)
}

func endLine(out io.Writer, text []byte) error {
	if n := len(text); n == 0 || text[n-1] == '\n' || !isTerminal(out) {
		return nil
	}
	_, err := io.WriteString(out, "\n")
	return err
}

// report is the JSON form of a result, its advice in terms of flags.
func report(r *jsonrepair.Result) *jsonrepair.Report {
	p := r.Report()
	if p.Error != nil {
		p.Error.Tried = advice(p.Error.Tried)
	}
	return p
}

// advice speaks of flags where the library speaks of options.
func advice(tried string) string {
	for option, flag := range map[string]string{
		"MaxBytes": "--max-bytes", "MaxDepth": "--max-depth", "MaxEdits": "--max-edits", "MaxTime": "--timeout",
	} {
		if tried == "raise "+option {
			return "raise " + flag
		}
	}
	return tried
}

// shownFindings is how many findings are told on standard error.
const shownFindings = 5

// tell says what was done, and what was found, where that may matter. The edits
// have been counted.
func (r *repairFlags) tell(w io.Writer, result *jsonrepair.Result, kinds map[jsonrepair.Kind]int) {
	if r.verbose {
		fmt.Fprintf(w, "unfray: %s\n", summary(result.Outcome, kinds))
	}
	shown := 0
	for _, f := range result.Findings {
		switch {
		case !r.verbose && result.Outcome == jsonrepair.Valid, doubtful(f):
			continue
		case shown == shownFindings && !r.verbose:
			fmt.Fprintln(w, "unfray: note: there are more findings: -v and --json list them all")
			return
		}
		shown++
		fmt.Fprintf(w, "unfray: note: byte %d: %s\n", f.Offset, f.Text)
	}
}

// doubtful reports whether a finding is one of those that make a document
// ambiguous.
func doubtful(f jsonrepair.Finding) bool { return strings.HasPrefix(string(f.Kind), "doubtful_") }

// judge returns the error that a result is for the exit status. What is none but
// should be known is a warning.
func (r *repairFlags) judge(w io.Writer, result *jsonrepair.Result) error {
	var what string
	switch result.Outcome {
	case jsonrepair.Valid, jsonrepair.Repaired:
		return nil
	case jsonrepair.Truncated:
		what = brokenOff(result.Open)
	case jsonrepair.Ambiguous:
		what = "the text can be read in several ways" + places(result.Findings)
		if len(result.Open) > 0 {
			what = brokenOff(result.Open) + "; and " + what
		}
	case jsonrepair.Failed:
		return unrepaired(result.Err)
	}
	if r.o.Strict {
		return fmt.Errorf("%s; --strict refuses that", what)
	}
	if result.Outcome == jsonrepair.Ambiguous {
		what += "; one was taken, --json lists them"
	}
	fmt.Fprintln(w, "unfray: warning:", what)
	return nil
}

// unrepaired is the error of a document without a repair.
func unrepaired(e *jsonrepair.Error) error {
	text := fmt.Sprintf("byte %d: %s", e.Offset, e.Cause)
	if e.Tried != "" {
		text += "; " + advice(e.Tried)
	}
	return errors.New(text)
}

// jsonKinds are the kinds of what may be open in a JSON document.
var jsonKinds = []string{"object", "array", "string", "number", "literal", "key", "value"}

// brokenOff says what was open where a document breaks off.
func brokenOff(open []jsonrepair.Open) string {
	if len(open) == 0 {
		return "the text breaks off"
	}
	const most = 6
	names := make([]string, len(open))
	for i, o := range open {
		switch {
		case o.Path != "":
			names[i] = fmt.Sprintf("%s (%s from byte %d)", o.Path, o.Kind, o.Offset)
		case slices.Contains(jsonKinds, o.Kind):
			names[i] = fmt.Sprintf("the document (%s from byte %d)", o.Kind, o.Offset)
		default:
			names[i] = fmt.Sprintf("a %s from byte %d", o.Kind, o.Offset)
		}
	}
	if len(names) > most {
		names = slices.Concat(names[:2], []string{fmt.Sprintf("… %d more …", len(names)-most)}, names[len(names)-most+2:])
	}
	return "the text breaks off; open were " + strings.Join(names, ", ")
}

// places names the doubtful places, behind a colon.
func places(findings []jsonrepair.Finding) string {
	var s strings.Builder
	sep, shown := ": ", 0
	for _, f := range findings {
		if !doubtful(f) {
			continue
		}
		if shown++; shown > shownFindings {
			s.WriteString("; …")
			break
		}
		fmt.Fprintf(&s, "%sat byte %d %s", sep, f.Offset, f.Text)
		sep = "; "
	}
	return s.String()
}

// countKinds adds edits to a count by kind, which may be nil.
func countKinds(kinds map[jsonrepair.Kind]int, edits iter.Seq[jsonrepair.Edit]) map[jsonrepair.Kind]int {
	if kinds == nil {
		kinds = map[jsonrepair.Kind]int{}
	}
	for e := range edits {
		kinds[e.Kind]++
	}
	return kinds
}

// summary says what became of a document, with the kinds of edits by number.
func summary(o jsonrepair.Outcome, kinds map[jsonrepair.Kind]int) string {
	if len(kinds) == 0 {
		return o.String() + ", no edits"
	}
	return o.String() + ", " + kindCounts(kinds)
}

// kindCounts lists kinds of edits, the most frequent first.
func kindCounts(kinds map[jsonrepair.Kind]int) string {
	total := 0
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b jsonrepair.Kind) int {
		if kinds[a] != kinds[b] {
			return kinds[b] - kinds[a]
		}
		return strings.Compare(string(a), string(b))
	})
	parts := make([]string, len(names))
	for i, k := range names {
		total += kinds[k]
		parts[i] = fmt.Sprintf("%d %s", kinds[k], k)
	}
	return counted(total, "edit") + ": " + strings.Join(parts, ", ")
}
