package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/backend/remote"
)

func newUpstream() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "upstream",
		Short:   "Look at servers that run models",
		Example: `  unfray upstream inspect llamacpp=http://127.0.0.1:8081`,
	}
	cmd.AddCommand(newInspect())
	return cmd
}

func newInspect() *cobra.Command {
	var u upstreamFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect [KIND=]URL",
		Short: "Ask a server what it is and what can be done with it",
		Long: `Ask a server what it is and what can be done with it: its model, whether it takes
and gives token IDs, how a generation can be held to a set of tokens, how many
log-probabilities it tells, and whether it cuts text into the same tokens as the
tokenizer here. Nothing is taken for granted: each is tried, with requests for
one token. Without a KIND the server is asked for that too.`,
		Example: `  unfray upstream inspect http://127.0.0.1:8081
  unfray upstream inspect vllm=http://127.0.0.1:8000 --tokenizer ~/models/qwen --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("give the address of one server, such as http://127.0.0.1:8081")
			}
			return nil
		},
	}
	f := cmd.Flags()
	u.addModel(f)
	f.BoolVar(&asJSON, "json", false, "print what was found as JSON")
	cmd.RunE = handler(func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		u.addresses = args
		if !strings.Contains(strings.SplitN(args[0], "://", 2)[0], "=") {
			kind, err := guessKind(ctx, args[0])
			if err != nil {
				return err
			}
			u.addresses = []string{kind + "=" + args[0]}
		}
		spec, err := u.spec()
		if err != nil {
			return err
		}
		s := newSetup(discardLog())
		defer s.Close()
		pool, err := s.addPool(spec.kind, spec)
		if err != nil {
			return err
		}
		o, err := spec.open(ctx, pool)
		if err != nil {
			return err
		}
		defer o.Close()
		if o.inspection == nil {
			return fmt.Errorf("%s: %s", spec.kind, o.served.NoHeal.Text)
		}
		if asJSON {
			return writeJSON(cmd.OutOrStdout(), o.inspection)
		}
		return printInspection(cmd.OutOrStdout(), o)
	})
	return cmd
}

// printInspection writes a line for each thing that is known.
func printInspection(out io.Writer, o *openedUpstream) error {
	in := o.inspection
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("server", "%s %s", in.Kind, in.Server)
	row("model", "%s", in.Model)
	if len(in.Models) > 1 {
		row("models", "%s", strings.Join(in.Models, ", "))
	}
	row("context", "%s", known(in.ContextLength, "tokens"))
	row("vocabulary", "%s", known(in.VocabSize, "tokens"))
	row("slots", "%s", known(in.Slots, "requests at once"))
	row("prompts as token IDs", "%s", yes(in.IDPrompts))
	row("answers as token IDs", "%s", yes(in.IDsBack))
	row("mask", "%s", maskText(in))
	row("log-probabilities", "%s", logprobsText(in.Logprobs))
	row("grammars", "%s", orNone(strings.Join(in.Grammars, ", ")))
	row("tells cached tokens", "%s", yes(in.CacheReport))
	row("chat template", "%s", yes(in.ChatTemplate))
	row("fills in the middle", "%s", yes(in.FIM))
	row("tokenizer", "%s", in.Tokenizer)
	healing := "exact, stable, last"
	if no := o.served.NoHeal; no != nil && no.Text == strings.TrimPrefix(in.Tokenizer, "differs: ") {
		healing = "none"
	} else if no != nil {
		healing = "none: " + no.Text
	} else if !o.served.Model.Info().Capabilities.Choose {
		healing = "stable, last"
	}
	row("healing", "%s", healing)
	for _, n := range in.Notes {
		row("note", "%s", n)
	}
	return w.Flush()
}

func known(n int, unit string) string {
	if n <= 0 {
		return "not told"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func maskText(in *remote.Inspection) string {
	if in.Mask == "" || in.MaskCap == 0 {
		return orNone(in.Mask)
	}
	return fmt.Sprintf("%s, at most %d tokens", in.Mask, in.MaskCap)
}

func logprobsText(n int) string {
	switch {
	case n < 0:
		return "of all tokens"
	case n == 0:
		return "none"
	}
	return fmt.Sprintf("of the %d likeliest tokens", n)
}
