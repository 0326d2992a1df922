package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/live"
)

// A sent is a request that was sent, in the result of --send.
type sent struct {
	Request   int `json:"request"` // of the trace, from 1
	Line      int `json:"line"`
	Prompt    int `json:"prompt_tokens"`
	Predicted int `json:"predicted_cached_tokens"`
	Reported  int `json:"cached_tokens"`
}

// A comparison sums up what was sent.
type comparison struct {
	Requests  int `json:"requests"`
	Equal     int `json:"equal_requests"`
	Skipped   int `json:"skipped_requests"` // that have no prompt, or do not tell it
	Prompt    int `json:"prompt_tokens"`
	Predicted int `json:"predicted_cached_tokens"`
	Reported  int `json:"cached_tokens"`
	// Before is how many tokens of prompts the server had worked on before; null: it
	// does not tell.
	Before *float64 `json:"query_tokens_before"`
}

func (c *comparison) add(s *sent) {
	c.Requests++
	c.Prompt += s.Prompt
	c.Predicted += s.Predicted
	c.Reported += s.Reported
	if s.Predicted == s.Reported {
		c.Equal++
	}
}

// compare sends the prompts of a trace and compares predictions with reports.
func (w *watchFlags) compare(cmd *cobra.Command, engine live.Engine, probe *live.Probe) error {
	ctx := cmd.Context()
	total := &comparison{}
	// Without metrics, which llama.cpp's server has on request, nothing is known of
	// what it did before.
	if now, err := probe.Read(ctx); err == nil {
		if err := checkEngine(engine, now.Engine, probe); err != nil {
			return err
		}
		total.warm(cmd.ErrOrStderr(), &now)
	}
	settings, err := probe.Settings(ctx, engine)
	if err != nil {
		return err
	}
	sim, err := simulationOf(settings)
	if err != nil {
		return err
	}
	if err := w.engine.override(cmd.Flags(), sim); err != nil {
		return err
	}
	if engine == live.LlamaCpp && !cmd.Flags().Changed("cache-ram") {
		fmt.Fprintln(cmd.ErrOrStderr(), "unfray: note:", w.engine.assumedRAM())
	}
	cache, err := sim.make()
	if err != nil {
		return err
	}
	model, _, closer, err := openModel(cmd, &modelFlags{}, &w.upstream)
	if err != nil {
		return err
	}
	defer closer.Close()
	render, err := w.trace.renderer(ctx, w.upstream.tokenizer, model.Tokenizer())
	if err != nil {
		return err
	}
	src := &traceFiles{cmd: cmd, flags: &w.trace, paths: []string{w.send}}
	defer src.Close()
	err = w.sendAll(cmd, total, src, model, cache, render)
	over := errors.Is(context.Cause(ctx), errWatched)
	if err != nil && !over {
		return err
	}
	src.Close()
	src.tell(cmd.ErrOrStderr())
	switch {
	case total.Requests == 0 && over:
		return errWatched
	case total.Requests == 0:
		return fmt.Errorf("%s: no request tells its prompt", w.send)
	}
	return w.sumUp(cmd.OutOrStdout(), total)
}

// warm notes what the server had worked on, and says what may come of it.
func (c *comparison) warm(w io.Writer, now *live.Counters) {
	if !now.TellHit && !now.TellComputed {
		return
	}
	tokens := max(now.Queries, now.Computed)
	if c.Before = &tokens; tokens == 0 {
		return
	}
	empty := map[live.Engine]string{
		live.VLLM:   "start it anew, or with VLLM_SERVER_DEV_MODE=1 POST /reset_prefix_cache",
		live.SGLang: "POST /flush_cache, or start it anew",
	}[now.Engine]
	if empty == "" {
		empty = "start it anew"
	}
	fmt.Fprintf(w, "unfray: note: the server has worked on %s prompt tokens before: it may find more than is predicted, or throw away earlier; to compare, %s\n", grouped(int64(tokens)), empty)
}

// sendAll sends the requests and prints what came of them.
func (w *watchFlags) sendAll(cmd *cobra.Command, total *comparison, src *traceFiles, model *unfray.Model, cache prefixcache.Cache, render renderFunc) error {
	ctx := cmd.Context()
	for n := 1; w.requests == 0 || n <= w.requests; n++ {
		q, err := src.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		ids, err := promptIDs(q, model.Tokenizer(), render)
		if err != nil && w.trace.opt.SkipBad && ctx.Err() == nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "unfray: note: %s:%d: left out: %v\n", w.send, q.Line, err)
			ids, err = nil, nil
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", w.send, q.Line, err)
		}
		if ids == nil {
			total.Skipped++
			continue
		}
		s, err := w.sendOne(ctx, model, cache, ids, q)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", w.send, q.Line, err)
		}
		if s == nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "unfray: note: %s:%d: left out: %d tokens are more than the server has room for\n", w.send, q.Line, len(ids))
			total.Skipped++
			continue
		}
		s.Request, s.Line = n, q.Line
		total.add(s)
		if w.asJSON {
			err = writeJSON(cmd.OutOrStdout(), s)
		} else if s.Predicted != s.Reported {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "request %d (line %d): %d of %d tokens predicted, %d reported\n", s.Request, s.Line, s.Predicted, s.Prompt, s.Reported)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sumUp prints the sums.
func (w *watchFlags) sumUp(out io.Writer, c *comparison) error {
	var err error
	if w.asJSON {
		err = writeJSON(out, c)
	} else {
		_, err = fmt.Fprintf(out, "%d of %s equal (%s); %s of %s prompt tokens predicted, %s reported\n", c.Equal, counted(c.Requests, "request"), percent(shareOf(int64(c.Equal), int64(c.Requests))),
			grouped(int64(c.Predicted)), grouped(int64(c.Prompt)), grouped(int64(c.Reported)))
		if err == nil && c.Skipped > 0 {
			_, err = fmt.Fprintf(out, "%s left out: no prompt, none that is told, or one that is too large\n", counted(c.Skipped, "request"))
		}
	}
	if err == nil && w.strict && c.Equal < c.Requests {
		return fmt.Errorf("--strict: %s predicted otherwise than reported", counted(c.Requests-c.Equal, "request"))
	}
	return err
}
