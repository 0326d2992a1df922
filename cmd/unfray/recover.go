package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery"
	"github.com/unfray/unfray/recovery/schema"
	"github.com/unfray/unfray/recovery/textrepair"
	"github.com/unfray/unfray/recovery/toolcall"
)

// recoverFlags are those of the command recover.
type recoverFlags struct {
	o                               recovery.Options
	form, schemaFile, toolsFile     string
	entities                        bool
	asJSON, diff, explain, jsonl    bool
	stream, strict                  bool
	strategies                      []string
	maxBytes, maxDepth, maxEditions int
}

func newRecover() *cobra.Command {
	var r recoverFlags
	cmd := &cobra.Command{
		Use:   "recover [FILE]",
		Short: "Turn what a model said into what was meant",
		Long: `Turn what a model said into what was meant. The answer in a file or on standard input is
taken through strategies in order of cost: JSON is found in fences and prose and
repaired, reasoning and tool calls are kept apart, values are fitted to a schema,
broken characters are mended, a loop at the end is cut, and what breaks off is closed.

What is good for its form comes back byte for byte. --explain tells what was done, --diff
shows every byte that was changed, --json prints the whole report.

Without --form an answer that is JSON, or wraps it in little else, is JSON; any other is
text. Then nothing is taken out but reasoning and calls of tools. With --schema it is JSON.

Exit status: 0 for a valid or repaired answer and, without --strict, a truncated one and
an ambiguous one of which a reading was taken; 1 if it cannot be recovered; 2 for wrong
usage.`,
		Example: `  unfray recover answer.txt
  unfray recover --explain --schema person.json answer.txt
  unfray recover --json --tools tools.json answer.txt | jq .calls
  unfray recover --form code --language go --finish-reason length answer.txt
  unfray recover --jsonl answers.jsonl > reports.jsonl`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	f.StringVar(&r.form, "form", "auto", "what the answer is to be: auto, text, json, code")
	f.StringVar(&r.schemaFile, "schema", "", "JSON Schema that the JSON is to fit: a file; also as OpenAI's response_format")
	f.StringVar(&r.toolsFile, "tools", "", "tools that the model was offered: a file with OpenAI's list of tools")
	f.StringVar(&r.o.Language, "language", "", "language of a code answer (default: as its fence says)")
	f.StringVar(&r.o.FinishReason, "finish-reason", "", "why the model ended: stop, length, …")
	f.StringSliceVar(&r.strategies, "strategies", nil, "use these only: "+strings.Join(recovery.Strategies(), ", "))
	f.BoolVar(&r.o.Strings, "strings", false, "mend the strings of valid JSON too")
	f.BoolVar(&r.entities, "entities", false, "decode HTML entities (&amp;&amp;) wherever they stand, one level")
	f.BoolVar(&r.o.JSON.LaTeX, "latex", false, `valid escapes that begin a LaTeX command (\frac, \beta) are backslashes`)
	f.BoolVar(&r.o.JSON.Paths, "paths", false, `valid escapes in a Windows path (C:\new) are backslashes`)
	f.BoolVar(&r.asJSON, "json", false, "print a report as JSON: outcome, text, value, edits, calls, reasoning, trace")
	f.BoolVar(&r.diff, "diff", false, "print what was changed, each place in its context, instead of the answer")
	f.BoolVar(&r.explain, "explain", false, "print what was tried, as a person would tell it, instead of the answer")
	f.BoolVar(&r.jsonl, "jsonl", false, `bulk: {"id","text"[,"finish_reason"]} a line in, one report a line out, same order`)
	f.BoolVar(&r.stream, "stream", false, "print as the input comes what will not be taken back")
	f.BoolVar(&r.strict, "strict", false, "exit with 1 for a truncated or an ambiguous answer too")
	f.IntVar(&r.maxBytes, "max-bytes", maxInput, "limit of the input, of a line with --jsonl; 0: none")
	f.IntVar(&r.maxDepth, "max-depth", 0, "limit of open objects and arrays; 0: 10,000")
	f.IntVar(&r.maxEditions, "max-edits", 0, "limit of edits; 0: 100,000")
	f.DurationVar(&r.o.Budget.Time, "timeout", 0, "limit of the work on an answer, such as 2s; 0: 10s")
	cmd.MarkFlagsMutuallyExclusive("json", "diff", "explain", "jsonl", "stream")
	cmd.RunE = handler(func(cmd *cobra.Command, args []string) error {
		if err := r.check(cmd); err != nil {
			return err
		}
		err := r.run(cmd, args)
		if errors.Is(err, syscall.EPIPE) {
			return nil // nobody reads any more
		}
		return err
	})
	return cmd
}

// check reads the flags into options.
func (r *recoverFlags) check(cmd *cobra.Command) error {
	switch r.form {
	case "auto":
	case "text", "json", "code":
		r.o.Form = recovery.Form(r.form)
	default:
		return usageError(fmt.Sprintf("--form: %q is none of auto, text, json, code", r.form))
	}
	if r.maxBytes < 0 || r.maxDepth < 0 || r.maxEditions < 0 || r.o.Budget.Time < 0 {
		return usageError("a limit must not be negative")
	}
	if cmd.Flags().Changed("strategies") {
		if err := recovery.CheckStrategies(r.strategies); err != nil {
			return usageError("--strategies: " + strings.TrimPrefix(err.Error(), "recovery: "))
		}
		r.o.Strategies = append([]string{}, r.strategies...)
	}
	b := &r.o.Budget
	b.Bytes, b.Depth, b.Edits = r.maxBytes, r.maxDepth, r.maxEditions
	if r.maxBytes == 0 {
		b.Bytes = -1
	}
	if r.entities {
		r.o.Text.Entities, r.o.Strings = textrepair.Always, true
	}
	if r.schemaFile != "" {
		if r.o.Form == recovery.Text || r.o.Form == recovery.Code {
			return usageError("--schema is for --form json")
		}
		r.o.Form = recovery.JSON
		data, err := os.ReadFile(r.schemaFile)
		if err != nil {
			return err
		}
		if r.o.Schema, err = schema.Parse(data, schema.Options{}); err != nil {
			return fmt.Errorf("%s: %w", r.schemaFile, err)
		}
	}
	r.o.AnyTool = r.o.Form == recovery.Auto
	if r.toolsFile == "" {
		return nil
	}
	data, err := os.ReadFile(r.toolsFile)
	if err != nil {
		return err
	}
	if r.o.Tools, err = toolcall.ParseTools(data); err != nil {
		return fmt.Errorf("%s: %w", r.toolsFile, err)
	}
	return nil
}

func (r *recoverFlags) run(cmd *cobra.Command, args []string) error {
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
		k := bulk{maxLine: r.maxBytes, line: func(out *bytes.Buffer, line []byte, number int, t *tally) error {
			return r.line(ctx, out, line, number, t)
		}}
		total, err := k.run(ctx, in, size, out, errOut)
		if err != nil {
			return err
		}
		return total.judge(r.strict)
	}
	data, err := readWithin(interruptible(ctx, in), r.maxBytes)
	if err != nil {
		return err
	}
	result := recovery.Recover(ctx, data, r.o)
	if r.maxBytes > 0 && len(data) > r.maxBytes { // no more of it was read
		result.Text = nil
		result.Err = &recovery.Error{Offset: r.maxBytes, Cause: fmt.Sprintf("the answer has more than the %d allowed bytes", r.maxBytes), Tried: "raise --max-bytes"}
	}
	switch {
	case r.asJSON:
		err = writeJSON(out, recoverReportOf(result))
	case r.diff:
		err = newDisplay(out).diff(out, data, recoveredChanges(result))
	case r.explain:
		_, err = io.WriteString(out, result.Explain())
	default:
		err = writeDocument(out, result.Text)
	}
	if err != nil {
		return err
	}
	return r.judge(errOut, result)
}

// recoveredChanges is what a diff shows of a result.
func recoveredChanges(r *recovery.Result) changes {
	c := changes{outcome: r.Outcome, findings: r.Findings, readings: r.Readings}
	for _, e := range r.Edits {
		c.edits = append(c.edits, e.Edit)
	}
	return c
}

// line recovers the answer of one line.
func (r *recoverFlags) line(ctx context.Context, out *bytes.Buffer, line []byte, number int, t *tally) error {
	var report *recovery.Report
	q, err := wire.DecodeRepair(line)
	switch {
	case r.maxBytes > 0 && len(line) > r.maxBytes:
		report = failedLine(number, r.maxBytes, "the line is longer than allowed", "raise --max-bytes")
	case err != nil:
		report = failedLine(number, lineOffset(err), strings.Replace(err.Error(), "the request body", "it", 1), `a line is an object such as {"id": 1, "text": "…"}`)
	default:
		o := r.o
		if q.FinishReason != "" {
			o.FinishReason = q.FinishReason
		}
		result := recovery.Recover(ctx, q.Text, o)
		t.outcomes[result.Outcome]++
		for _, e := range result.Edits {
			t.kinds[e.Kind]++
		}
		report = recoverReportOf(result)
	}
	if report.Error != nil && err != nil {
		t.outcomes[recovery.Failed]++
	}
	report.ID = jsonrepair.Raw(q.ID)
	return writeJSON(out, report)
}

// recoverReportOf is the JSON form of a result, its advice in terms of flags.
func recoverReportOf(r *recovery.Result) *recovery.Report {
	p := r.Report()
	if p.Error != nil {
		p.Error.Tried = advice(p.Error.Tried)
	}
	return p
}

// failedLine is the report of a line that is no request.
func failedLine(number, offset int, cause, tried string) *recovery.Report {
	return &recovery.Report{
		Outcome: recovery.Failed.String(), Edits: []recovery.ReportEdit{},
		Error: &jsonrepair.ReportError{Offset: offset, Cause: fmt.Sprintf("line %d: %s", number, cause), Tried: tried},
	}
}

// live prints what is final while the input comes.
func (r *recoverFlags) live(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
	s := recovery.NewStream(r.o)
	src := interruptible(ctx, in)
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			d := s.Write(buf[:n])
			if _, err := out.Write(d.Text); err != nil {
				return err
			}
			if d.Stop {
				break
			}
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	d, result := s.Close(ctx, r.o.FinishReason)
	if _, err := out.Write(d.Text); err != nil {
		return err
	}
	if err := endLine(out, d.Text); err != nil {
		return err
	}
	return r.judge(errOut, result)
}

// judge returns the error that a result is for the exit status. What is none but
// should be known is a warning.
func (r *recoverFlags) judge(w io.Writer, result *recovery.Result) error {
	var what string
	switch result.Outcome {
	case recovery.Valid, recovery.Repaired:
		return nil
	case recovery.Truncated:
		what = brokenOff(result.Open)
		if result.Form != recovery.JSON {
			what = brokenOffText(result.Open)
		}
		if result.Loop != nil && len(result.Open) == 0 {
			what = "the answer ran into a loop, which was cut"
		}
	case recovery.Ambiguous:
		what = "the answer can be read in several ways" + places(result.Findings)
		if result.Text == nil {
			return errors.New(what + ", none of which is likelier; --json lists them")
		}
	case recovery.Failed:
		e := *result.Err
		e.Tried = advice(e.Tried)
		return fmt.Errorf("byte %d: %w", e.Offset, &e)
	}
	if r.strict {
		return fmt.Errorf("%s; --strict refuses that", what)
	}
	if result.Outcome == recovery.Ambiguous {
		what += "; one was taken, --json lists them"
	}
	fmt.Fprintln(w, "unfray: warning:", what)
	return nil
}

// brokenOffText says what was open where text or code breaks off.
func brokenOffText(open []jsonrepair.Open) string {
	if len(open) == 0 {
		return "the text breaks off"
	}
	const most = 6
	var names []string
	for i, o := range open {
		if len(open) > most && i == most/2 {
			names = append(names, fmt.Sprintf("… %d more …", len(open)-most))
		}
		if len(open) > most && i >= most/2 && i < len(open)-most/2 {
			continue
		}
		kind := strings.ReplaceAll(o.Kind, "_", " ")
		switch {
		case kind == "reasoning":
		case strings.ContainsRune("aeiou", rune(kind[0])):
			kind = "an " + kind
		default:
			kind = "a " + kind
		}
		names = append(names, fmt.Sprintf("%s from byte %d", kind, o.Offset))
	}
	return "the text breaks off; open were " + strings.Join(names, ", ")
}
