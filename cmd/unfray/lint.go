package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/boundary/lint"
)

// findingView is a finding in a JSON result.
type findingView struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"` // of a JSON Lines file
	Name string `json:"name,omitempty"` // of a chat template
	lint.Finding
}

// lintFlags are those of the command lint.
type lintFlags struct {
	tokenizer            tokenizerFlags
	as                   string
	info, asJSON, strict bool
}

func newLint() *cobra.Command {
	var l lintFlags
	cmd := &cobra.Command{
		Use:   "lint [-t TOKENIZER] FILE…",
		Short: "Find what is wrong with prompts and templates, by this tokenizer's verdict",
		Long: `Find what is wrong with prompts and prompt templates: ends that cut a token,
control tokens with a typo, characters that only the model sees. A rule reports a
place only if this tokenizer makes other tokens of it or may still move them.

What a file is follows from its name: .jinja is a chat template, .md and .txt are
prompts with placeholders such as {name}, {{name}}, <NAME> or %s (in Markdown not
within code), .jsonl has a finished prompt a line ({"text"} or {"prompt"}), and of
tokenizer_config.json and .gguf the chat template is read. --as says otherwise.
"-" is standard input.

  a prompt's end  trailing-whitespace, weak-boundary, prefill, mixed-indentation
  templates       placeholder-seam, doubled-bos
  control tokens  broken-special, unknown-special, special-as-text
  characters      invisible-character, odd-space, byte-order-mark, line-endings,
                  decomposed, meta-space, invalid-utf8, rewritten, no-token

A line is FILE:OFFSET: RULE: MESSAGE, with the offset in bytes; of a .jsonl file it
is FILE:LINE:OFFSET, with the offset in the decoded text. Findings do not change
the exit status unless --strict asks for it.`,
		Example: `  unfray lint prompt.txt
  unfray lint -t ./Qwen3-0.6B --strict prompts/*.jinja
  printf 'Q: 6*7?\nA: ' | unfray lint --as prompt --json -`,
	}
	f := cmd.Flags()
	l.tokenizer.add(cmd)
	f.StringVar(&l.as, "as", "", "what all files are: prompt, template, markdown or jinja")
	f.BoolVar(&l.info, "info", false, "also report what is true of many good prompts")
	f.BoolVar(&l.asJSON, "json", false, "print the findings as one JSON array")
	f.BoolVar(&l.strict, "strict", false, "exit with 1 if there are findings")
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions([]string{string(lint.Prompt), string(lint.Template), string(lint.Markdown), string(lint.Jinja)}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = handler(l.run)
	return cmd
}

func (l *lintFlags) run(cmd *cobra.Command, args []string) error {
	switch kind := lint.Kind(l.as); kind {
	case "", lint.Prompt, lint.Template, lint.Markdown, lint.Jinja:
	default:
		return usageError(fmt.Sprintf("--as %s: choose one of prompt, template, markdown, jinja", kind))
	}
	t, err := l.tokenizer.open(cmd)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"-"}
	}
	linter := lint.New(t)
	found := []findingView{}
	for _, path := range args {
		sources, err := l.read(cmd, path)
		if err != nil {
			return err
		}
		for _, s := range sources {
			for _, f := range linter.Lint(s.Text, s.Kind) {
				if f.Severity == lint.Info && !l.info {
					continue
				}
				found = append(found, findingView{File: s.File, Line: s.Line, Name: s.Name, Finding: f})
				if !l.asJSON {
					if err := printFinding(cmd.OutOrStdout(), s.String(), f); err != nil {
						return err
					}
				}
			}
		}
	}
	if l.asJSON {
		if err := writeJSON(cmd.OutOrStdout(), found); err != nil {
			return err
		}
	}
	if l.strict && len(found) > 0 {
		return fmt.Errorf("%s, and --strict allows none", counted(len(found), "finding"))
	}
	return nil
}

// read gives the texts of a file.
func (l *lintFlags) read(cmd *cobra.Command, path string) (sources []lint.Source, err error) {
	switch {
	case path == "-":
		text, err := textArg(cmd, nil)
		if err != nil {
			return nil, err
		}
		sources = []lint.Source{{File: "-", Kind: lint.Template, Text: text}}
	case strings.EqualFold(filepath.Ext(path), ".gguf"):
		if sources, err = lint.OpenGGUF(path); err != nil {
			return nil, err
		}
	default:
		text, err := readFile(path)
		if err != nil {
			return nil, err
		}
		if sources, err = lint.Read(path, text); err != nil {
			return nil, err
		}
	}
	for i := range sources {
		if l.as != "" {
			sources[i].Kind = lint.Kind(l.as)
		}
	}
	return sources, nil
}

// readFile reads a file of at most maxInput bytes.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder: name its files", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxInput+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxInput {
		return nil, fmt.Errorf("%s holds more than %d bytes", path, maxInput)
	}
	return text, nil
}

func printFinding(w io.Writer, place string, f lint.Finding) error {
	rule := string(f.Rule)
	if f.Severity == lint.Info {
		rule += " (info)"
	}
	_, err := fmt.Fprintf(w, "%s:%d: %s: %s\n    fix: %s\n", place, f.Offset, rule, f.Message, f.Fix)
	return err
}
