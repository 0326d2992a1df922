package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/recovery"
	"github.com/unfray/unfray/recovery/continuation"
	"github.com/unfray/unfray/recovery/schema"
)

// What is done to a continuation.
const (
	recoverOff    = "off"
	recoverReport = "report" // the text stays; what would be done is told
	recoverRepair = "repair" // all that needs no more of the model
	recoverFull   = "full"   // also: the model goes on where the text breaks off
)

// completeRecovery says how a continuation is recovered.
type completeRecovery struct {
	mode string
	o    recovery.Options
}

func (c *completeRecovery) add(cmd *cobra.Command) {
	modes := []string{recoverOff, recoverReport, recoverRepair, recoverFull}
	cmd.Flags().StringVar(&c.mode, "recover", recoverOff, "recover the continuation: "+strings.Join(modes, ", "))
	cmd.RegisterFlagCompletionFunc("recover", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
}

// check reads the flags: under a schema the continuation is JSON.
func (c *completeRecovery) check(g *grammarFlags, req *unfray.Request) error {
	switch c.mode {
	case recoverOff:
		return nil
	case recoverReport, recoverRepair, recoverFull:
	default:
		return usageError(fmt.Sprintf("--recover: %q is none of off, report, repair, full", c.mode))
	}
	c.o = recovery.Options{Form: recovery.Text}
	if g.schema == "" || req.GrammarBytes > 0 {
		return nil
	}
	b, err := os.ReadFile(g.schema)
	if err != nil {
		return err
	}
	c.o.Form = recovery.JSON
	if c.o.Schema, err = schema.Parse(b, schema.Options{}); err != nil {
		return fmt.Errorf("%s: %w", g.schema, err)
	}
	return nil
}

// run recovers a continuation.
func (c *completeRecovery) run(ctx context.Context, model *unfray.Model, req *unfray.Request, r *unfray.Result) *recovery.Result {
	o := c.o
	o.FinishReason = string(r.FinishReason)
	o.Tokens, o.MaxTokens = r.Usage.CompletionTokens, req.MaxTokens
	if r.StopString != "" {
		o.FinishReason, o.MaxTokens = "stop", 0
	}
	if c.mode == recoverFull && req.Fill == nil {
		o.Ask, o.Seam.Modes = goOn(model, req, r), []continuation.Mode{continuation.Exact}
	}
	return recovery.Recover(ctx, r.Text, o)
}

// goOn has the model go on by the tokens it has produced.
func goOn(model *unfray.Model, req *unfray.Request, r *unfray.Result) continuation.Ask {
	prior := *r
	return func(ctx context.Context, q continuation.Request) (continuation.Answer, error) {
		next := *req
		next.MaxTokens = req.MaxTokens
		if q.MaxTokens > 0 {
			next.MaxTokens = q.MaxTokens
		}
		s, err := model.Resume(ctx, &next, &prior)
		if err != nil {
			return continuation.Answer{}, err
		}
		defer s.Close()
		for {
			if _, err := s.Next(); err == io.EOF {
				break
			} else if err != nil {
				return continuation.Answer{}, err
			}
		}
		more := s.Result()
		for _, t := range more.Tokens {
			t.Offset += len(prior.Text)
			prior.Tokens = append(prior.Tokens[:len(prior.Tokens):len(prior.Tokens)], t)
		}
		prior.Text = append(prior.Text[:len(prior.Text):len(prior.Text)], more.Text...)
		prior.Usage.CompletionTokens += more.Usage.CompletionTokens
		prior.FinishReason, prior.StopString = more.FinishReason, more.StopString
		return continuation.Answer{
			Text: more.Text, FinishReason: string(more.FinishReason), Tokens: more.Usage.CompletionTokens, Exact: true,
		}, nil
	}
}

// added is how many tokens continuations had.
func (c *completeRecovery) added(r *recovery.Result) int {
	if r.Continuation == nil {
		return 0
	}
	return r.Continuation.Tokens
}

// recovered prints a continuation that was recovered, and what is to be known of it.
func (c *completeFlags) recovered(ctx context.Context, out, errOut io.Writer, model *unfray.Model) error {
	r, err := model.Complete(ctx, &c.req)
	if err != nil {
		return err
	}
	result := c.recover.run(ctx, model, &c.req, r)
	text := result.Text
	if c.recover.mode == recoverReport || text == nil {
		text = r.Text
	}
	if err := writeDocument(out, text); err != nil {
		return err
	}
	for _, n := range r.Healing.Notes {
		fmt.Fprintln(errOut, "unfray: note:", n.Text)
	}
	if c.recover.mode == recoverReport {
		fmt.Fprint(errOut, result.Explain())
		return nil
	}
	return (&recoverFlags{}).judge(errOut, result)
}
