package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/vocab"
)

// batchPrompt is a line of a batch's input.
type batchPrompt struct {
	ID        json.RawMessage `json:"id"`
	Prompt    *string         `json:"prompt"`
	PromptIDs []vocab.ID      `json:"prompt_ids"` // instead of prompt
	Suffix    *string         `json:"suffix"`     // nil or empty: that of --suffix, if any
}

// batchFailure stands in the output for a prompt that could not be completed.
type batchFailure struct {
	ID    json.RawMessage `json:"id,omitempty"`
	Error string          `json:"error"`
}

// batch completes every prompt of a file, parallel ones at a time, and prints
// the results in the order of the input. A prompt that fails has its error in
// its place; the batch goes on and fails at the end.
func (c *completeFlags) batch(ctx context.Context, cmd *cobra.Command, model *unfray.Model, parallel int) error {
	prompts, err := c.readPrompts(cmd.InOrStdin())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	results := make([]chan any, len(prompts))
	for i := range results {
		results[i] = make(chan any, 1)
	}
	// A place in slots is held from the start of a request to its end, so no
	// more than the engine can take are under way.
	slots := make(chan struct{}, max(1, parallel))
	go func() {
		for i := range prompts {
			slots <- struct{}{}
			go func() {
				results[i] <- c.completeOne(ctx, model, &prompts[i])
				<-slots
			}()
		}
	}()

	bar, done := progress(ctx, cmd.ErrOrStderr(), len(prompts))
	defer done()
	failed := 0
	for _, result := range results {
		r := <-result
		if _, ok := r.(batchFailure); ok {
			failed++
		}
		if err := writeJSON(cmd.OutOrStdout(), r); err != nil {
			return err
		}
		bar()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d prompts failed: see \"error\" in their results", failed, len(prompts))
	}
	return nil
}

func (c *completeFlags) readPrompts(stdin io.Reader) ([]batchPrompt, error) {
	in := stdin
	if c.prompts != "-" {
		f, err := os.Open(c.prompts)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	var prompts []batchPrompt
	err := eachLine(in, func(line []byte) error {
		var p batchPrompt
		if err := decodeLine(line, &p); err != nil {
			return err
		}
		switch {
		case p.Prompt == nil && p.PromptIDs == nil:
			return errors.New(`neither "prompt" nor "prompt_ids" is there`)
		case p.Prompt != nil && p.PromptIDs != nil:
			return errors.New(`both "prompt" and "prompt_ids" are there: give one`)
		}
		prompts = append(prompts, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.prompts, err)
	}
	return prompts, nil
}

// completeOne returns a completionView or a batchFailure.
func (c *completeFlags) completeOne(ctx context.Context, model *unfray.Model, p *batchPrompt) any {
	req := c.req
	if p.PromptIDs != nil {
		req.Prompt.IDs = p.PromptIDs
	} else {
		req.Prompt.Text = []byte(*p.Prompt)
	}
	if p.Suffix != nil && *p.Suffix != "" {
		req.Fill = &unfray.Fill{Suffix: []byte(*p.Suffix)}
	}
	view, err := c.complete(ctx, model, &req, p.ID)
	if err != nil {
		return batchFailure{ID: p.ID, Error: message(err)}
	}
	return view
}

// progress shows a bar on a terminal. It returns a function that advances the
// bar by one and one that ends it.
func progress(ctx context.Context, w io.Writer, total int) (advance, done func()) {
	by, done := progressBar(ctx, w, int64(total), decor.CountersNoUnit("%d of %d prompts "))
	return func() { by(1) }, done
}

// progressBar is progress with counters of any unit.
func progressBar(ctx context.Context, w io.Writer, total int64, counters decor.Decorator) (advance func(n int), done func()) {
	if !isTerminal(w) {
		return func(int) {}, func() {}
	}
	p := mpb.NewWithContext(ctx, mpb.WithOutput(w))
	bar := p.AddBar(total,
		mpb.PrependDecorators(counters),
		mpb.AppendDecorators(decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO), "done")))
	return bar.IncrBy, func() {
		bar.Abort(false)
		p.Wait()
	}
}
