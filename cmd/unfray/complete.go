package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/views"
	"github.com/unfray/unfray/recovery"
)

// completeFlags are the settings of one completion.
type completeFlags struct {
	model    modelFlags
	upstream upstreamFlags
	heal     string
	special  bool
	seed     uint64
	req      unfray.Request
	asJSON   bool
	compare  bool
	prompts  string
	suffix   string
	grammar  grammarFlags
	recover  completeRecovery
}

// completionView is the JSON form of a result.
type completionView struct {
	ID json.RawMessage `json:"id,omitempty"`
	views.Exact
	FinishReason backend.FinishReason `json:"finish_reason"`
	Healing      unfray.Healing       `json:"healing"`
	Recovery     *recovery.Report     `json:"recovery,omitempty"`
	Usage        usageView            `json:"usage"`
}

type usageView struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

func viewCompletion(id json.RawMessage, r *unfray.Result) completionView {
	return completionView{
		ID:           id,
		Exact:        views.NewExact(r.Text),
		FinishReason: r.FinishReason,
		Healing:      r.Healing,
		Usage:        usageView{r.Usage.PromptTokens, r.Usage.CompletionTokens},
	}
}

func newComplete() *cobra.Command {
	var c completeFlags
	cmd := &cobra.Command{
		Use:   "complete [-m MODEL | --upstream KIND=URL] [PROMPT]",
		Short: "Heal a prompt's end and continue it",
		Long: `Heal a prompt's end and continue it. What is printed continues exactly the
prompt that was given: prompt and output joined are what the model wrote. With
--suffix the output goes between the prompt and that text.`,
		Example: `  unfray complete 'The capital of France is Par' --max-tokens 16
  unfray complete --compare 'The link is <a href="https:'
  unfray complete --json --heal off 'const userNa'
  unfray complete --prompts prompts.jsonl > results.jsonl
  unfray complete --upstream llamacpp=http://127.0.0.1:8081 'const userNa'`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	c.model.add(f)
	c.upstream.add(f)
	cmd.MarkFlagsMutuallyExclusive("model", "upstream")
	engineFlagsOnly(cmd)
	addHealFlag(cmd, &c.heal, "how to heal")
	f.IntVar(&c.req.MaxTokens, "max-tokens", 64, "tokens of the continuation; 0: as many as the context holds")
	s := &c.req.Sampling
	f.Float64Var(&s.Temperature, "temperature", 0, "0 takes the likeliest token each time")
	f.IntVar(&s.TopK, "top-k", 0, "sample among the k likeliest tokens; 0: off")
	f.Float64Var(&s.TopP, "top-p", 0, "sample among the likeliest tokens that hold this probability; 0: off")
	f.Float64Var(&s.MinP, "min-p", 0, "leave out tokens below this share of the likeliest one's probability; 0: off")
	f.Uint64Var(&c.seed, "seed", 0, "make sampling repeatable")
	f.StringArrayVar(&c.req.Stop, "stop", nil, "end before this string (may be repeated)")
	f.StringVar(&c.suffix, "suffix", "", "text after the cursor: fill in what stands before it (models with fill-in-the-middle tokens)")
	c.grammar.add(cmd)
	f.IntVar(&c.req.GrammarBytes, "grammar-bytes", 0, "bytes at the prompt's end that are the beginning of the constrained text")
	c.recover.add(cmd)
	f.BoolVar(&c.special, "special", false, "text in the prompt that spells a control token becomes that token")
	f.BoolVar(&c.asJSON, "json", false, "print the result as JSON")
	f.BoolVar(&c.compare, "compare", false, "show the unhealed continuation beside the healed one")
	f.StringVar(&c.prompts, "prompts", "", `batch: a file (or -) of {"id","prompt"[,"suffix"]} lines; one JSON result a line, in the same order`)
	cmd.MarkFlagsMutuallyExclusive("compare", "prompts")
	cmd.RunE = handler(func(cmd *cobra.Command, args []string) error {
		mode, err := heal.ParseMode(c.heal)
		if err != nil {
			return usageError(err.Error())
		}
		if c.req.Grammar, c.req.Source, err = c.grammar.load(); err != nil {
			return err
		}
		if c.req.GrammarBytes != 0 && c.req.Grammar == nil {
			return usageError("--grammar-bytes needs --grammar, --json-schema or --regex")
		}
		if c.upstream.tokenizer != "" && len(c.upstream.addresses) == 0 {
			return usageError("--tokenizer needs --upstream: a model file has its tokenizer inside")
		}
		c.req.Heal = mode
		c.req.Prompt.ParseSpecial = c.special
		if cmd.Flags().Changed("seed") {
			c.req.Sampling.Seed = &c.seed
		}
		if cmd.Flags().Changed("suffix") {
			if c.special {
				return usageError("--special with --suffix: the texts on both sides of the cursor are plain text; leave out --special")
			}
			c.req.Fill = &unfray.Fill{Suffix: []byte(c.suffix)}
		}
		if err := c.recover.check(&c.grammar, &c.req); err != nil {
			return err
		}
		if c.prompts != "" && len(args) > 0 {
			return usageError("give either a prompt or --prompts")
		}
		return c.run(cmd, args)
	})
	return cmd
}

func (c *completeFlags) run(cmd *cobra.Command, args []string) (err error) {
	ctx := cmd.Context()
	if c.prompts == "" {
		if c.req.Prompt.Text, err = textArg(cmd, args); err != nil {
			return err
		}
	}
	model, parallel, closer, err := openModel(cmd, &c.model, &c.upstream)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	out := cmd.OutOrStdout()
	switch {
	case c.prompts != "":
		return c.batch(ctx, cmd, model, parallel)
	case c.compare:
		return c.comparison(ctx, out, model)
	case c.asJSON:
		view, err := c.complete(ctx, model, &c.req, nil)
		if err != nil {
			return err
		}
		return writeJSON(out, view)
	case c.recover.mode != recoverOff:
		return c.recovered(ctx, out, cmd.ErrOrStderr(), model)
	}
	return c.stream(ctx, out, cmd.ErrOrStderr(), model)
}

// complete runs a request and recovers its text, if that is asked for.
func (c *completeFlags) complete(ctx context.Context, model *unfray.Model, req *unfray.Request, id json.RawMessage) (completionView, error) {
	r, err := model.Complete(ctx, req)
	if err != nil {
		return completionView{}, err
	}
	view := viewCompletion(id, r)
	if c.recover.mode == recoverOff {
		return view, nil
	}
	result := c.recover.run(ctx, model, req, r)
	if c.recover.mode != recoverReport && result.Text != nil {
		view.Exact = views.NewExact(result.Text)
	}
	view.Recovery = result.Receipt()
	view.Usage.CompletionTokens += c.recover.added(result)
	return view, nil
}

// stream prints the continuation as it comes, then the notes.
func (c *completeFlags) stream(ctx context.Context, out, errOut io.Writer, model *unfray.Model) error {
	s, err := model.Generate(ctx, &c.req)
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		chunk, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if _, err := out.Write(chunk.Text); err != nil {
			return err
		}
	}
	if isTerminal(out) {
		fmt.Fprintln(out)
	}
	for _, n := range s.Result().Healing.Notes {
		fmt.Fprintln(errOut, "unfray: note:", n.Text)
	}
	return nil
}

// comparison runs the prompt without healing and with it.
func (c *completeFlags) comparison(ctx context.Context, out io.Writer, model *unfray.Model) error {
	unhealed := c.req
	unhealed.Heal = heal.Off
	plain, err := model.Complete(ctx, &unhealed)
	if err != nil {
		return err
	}
	healed, err := model.Complete(ctx, &c.req)
	if err != nil {
		return err
	}
	if c.asJSON {
		return writeJSON(out, struct {
			Unhealed completionView `json:"unhealed"`
			Healed   completionView `json:"healed"`
		}{viewCompletion(nil, plain), viewCompletion(nil, healed)})
	}
	_, err = io.WriteString(out, comparisonText(c.req.Prompt.Text, plain, healed))
	return err
}

// comparisonText lays two continuations of a prompt under each other, each
// behind the prompt's last line.
func comparisonText(prompt []byte, plain, healed *unfray.Result) string {
	var b strings.Builder
	tail := lastLine(string(prompt))
	for _, row := range []struct {
		name string
		r    *unfray.Result
	}{{"unhealed", plain}, {"healed", healed}} {
		fmt.Fprintf(&b, "%-9s %s‖%s\n", row.name, tail, oneLine(string(row.r.Text)))
	}
	h := healed.Healing
	if h.BytesPending > 0 {
		fmt.Fprintf(&b, "%-9s %s: %s, produced again with %d\n",
			"", h.Mode, rolledBack(h.TokensRemoved, string(prompt[len(prompt)-h.BytesPending:])), h.TokensReplayed)
	} else {
		fmt.Fprintf(&b, "%-9s %s: the prompt's tokens are final, nothing to heal\n", "", h.Mode)
	}
	for _, n := range h.Notes {
		fmt.Fprintf(&b, "%-9s note: %s\n", "", n.Text)
	}
	return b.String()
}
