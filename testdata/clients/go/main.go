// Command client drives an OpenAI-compatible server with the unmodified Go client.
//
//	client BASE_URL MODEL
//
// It prints one JSON object of results on standard output and exits non-zero on the first failed expectation.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const prompt = "const userNa"

// results are what the tests compare between the clients of the three languages.
type results struct {
	Models        []string `json:"models"`
	Text          string   `json:"text"`
	FinishReason  string   `json:"finish_reason"`
	Usage         usage    `json:"usage"`
	N             int      `json:"n"`
	Stopped       string   `json:"stopped"`
	LogprobTokens int      `json:"logprob_tokens"`
	Chat          string   `json:"chat"`
	UnknownModel  int      `json:"unknown_model"`
	TooLong       int      `json:"too_long"`
}

type usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
}

// A run is one pass over everything the client is tried with.
type run struct {
	client openai.Client
	model  string
	results
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: client BASE_URL MODEL")
		os.Exit(2)
	}
	r := run{
		client: openai.NewClient(option.WithBaseURL(os.Args[1]), option.WithAPIKey("unused"), option.WithMaxRetries(0), option.WithRequestTimeout(2*time.Minute)),
		model:  os.Args[2],
	}
	ctx := context.Background()
	for _, step := range []func(context.Context) error{r.models, r.whole, r.streamed, r.several, r.stop, r.logprobs, r.chat, r.errors} {
		if err := step(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "client:", err)
			os.Exit(1)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(r.results); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func (r *run) greedy() openai.CompletionNewParams {
	return openai.CompletionNewParams{
		Model:       openai.CompletionNewParamsModel(r.model),
		Prompt:      openai.CompletionNewParamsPromptUnion{OfString: openai.String(prompt)},
		Temperature: openai.Float(0),
		MaxTokens:   openai.Int(8),
	}
}

func (r *run) models(ctx context.Context) error {
	pages := r.client.Models.ListAutoPaging(ctx)
	for pages.Next() {
		r.Models = append(r.Models, pages.Current().ID)
	}
	if err := pages.Err(); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	if !slices.Contains(r.Models, r.model) {
		return fmt.Errorf("%s is not among the models %q", r.model, r.Models)
	}
	return nil
}

func (r *run) whole(ctx context.Context) error {
	c, err := r.client.Completions.New(ctx, r.greedy())
	if err != nil {
		return fmt.Errorf("completion: %w", err)
	}
	choice := c.Choices[0]
	r.Text, r.FinishReason = choice.Text, string(choice.FinishReason)
	r.Usage = usage{c.Usage.PromptTokens, c.Usage.CompletionTokens}
	switch {
	case r.Text == "":
		return errors.New("the completion is empty")
	case r.FinishReason != "length" && r.FinishReason != "stop":
		return fmt.Errorf("finish reason %q", r.FinishReason)
	case c.Usage.TotalTokens != r.Usage.PromptTokens+r.Usage.CompletionTokens:
		return fmt.Errorf("usage does not add up: %s", c.Usage.RawJSON())
	}
	return nil
}

func (r *run) streamed(ctx context.Context) error {
	req := r.greedy()
	req.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := r.client.Completions.NewStreaming(ctx, req)
	var text, finish string
	var total int64
	for stream.Next() {
		chunk := stream.Current()
		for _, choice := range chunk.Choices {
			text += choice.Text
			if choice.FinishReason != "" {
				finish = string(choice.FinishReason)
			}
		}
		total += chunk.Usage.TotalTokens
	}
	if err := stream.Err(); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	if text != r.Text || finish != r.FinishReason {
		return fmt.Errorf("streamed %q (%s), not streamed %q (%s)", text, finish, r.Text, r.FinishReason)
	}
	if want := r.Usage.PromptTokens + r.Usage.CompletionTokens; total != want {
		return fmt.Errorf("streamed usage: %d tokens, not streamed %d", total, want)
	}
	return nil
}

func (r *run) several(ctx context.Context) error {
	req := r.greedy()
	req.Temperature, req.N, req.Seed = openai.Float(0.8), openai.Int(2), openai.Int(7)
	var texts [2][]string
	for i := range texts {
		c, err := r.client.Completions.New(ctx, req)
		if err != nil {
			return fmt.Errorf("n=2: %w", err)
		}
		for _, choice := range c.Choices {
			texts[i] = append(texts[i], choice.Text)
		}
	}
	if r.N = len(texts[0]); r.N != 2 {
		return fmt.Errorf("n=2 gave %d choices", r.N)
	}
	if !slices.Equal(texts[0], texts[1]) {
		return fmt.Errorf("one seed, two answers: %q", texts)
	}
	return nil
}

func (r *run) stop(ctx context.Context) error {
	runes := []rune(r.Text)
	stop := string(runes[max(0, len(runes)-2):])
	req := r.greedy()
	req.Stop = openai.CompletionNewParamsStopUnion{OfStringArray: []string{stop}}
	c, err := r.client.Completions.New(ctx, req)
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	r.Stopped = c.Choices[0].Text
	if want, _, _ := strings.Cut(r.Text, stop); r.Stopped != want || c.Choices[0].FinishReason != "stop" {
		return fmt.Errorf("stop %q gave %q (%s), want %q (stop)", stop, r.Stopped, c.Choices[0].FinishReason, want)
	}
	return nil
}

func (r *run) logprobs(ctx context.Context) error {
	req := r.greedy()
	req.Logprobs = openai.Int(2)
	c, err := r.client.Completions.New(ctx, req)
	if err != nil {
		return fmt.Errorf("logprobs: %w", err)
	}
	l := c.Choices[0].Logprobs
	r.LogprobTokens = len(l.Tokens)
	if n := r.LogprobTokens; n == 0 || len(l.TokenLogprobs) != n || len(l.TopLogprobs) != n || len(l.TextOffset) != n {
		return fmt.Errorf("logprobs lists of different lengths: %s", l.RawJSON())
	}
	if slices.Max(l.TokenLogprobs) > 0 {
		return fmt.Errorf("logprobs %v", l.TokenLogprobs)
	}
	return nil
}

func (r *run) chat(ctx context.Context) error {
	req := openai.ChatCompletionNewParams{
		Model:       r.model,
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say hello.")},
		Temperature: openai.Float(0),
		MaxTokens:   openai.Int(8),
	}
	c, err := r.client.Chat.Completions.New(ctx, req)
	if err != nil {
		return fmt.Errorf("chat: %w", err)
	}
	r.Chat = c.Choices[0].Message.Content
	if r.Chat == "" || c.Choices[0].Message.Role != "assistant" {
		return fmt.Errorf("chat answer %s", c.RawJSON())
	}
	var text string
	stream := r.client.Chat.Completions.NewStreaming(ctx, req)
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			text += choice.Delta.Content
		}
	}
	if err := stream.Err(); err != nil {
		return fmt.Errorf("chat stream: %w", err)
	}
	if text != r.Chat {
		return fmt.Errorf("streamed %q, not streamed %q", text, r.Chat)
	}
	return nil
}

func (r *run) errors(ctx context.Context) error {
	req := r.greedy()
	req.Model = "no-such-model"
	_, err := r.client.Completions.New(ctx, req)
	if r.UnknownModel, err = status(err, http.StatusNotFound); err != nil {
		return fmt.Errorf("unknown model: %w", err)
	}
	req = r.greedy()
	req.Prompt.OfString = openai.String(strings.Repeat("word ", 40_000))
	_, err = r.client.Completions.New(ctx, req)
	if r.TooLong, err = status(err, http.StatusBadRequest); err != nil {
		return fmt.Errorf("prompt too long: %w", err)
	}
	return nil
}

// status takes the HTTP status, which must be want, out of the client's own error type.
func status(err error, want int) (int, error) {
	if err == nil {
		return 0, errors.New("no error")
	}
	apiErr, ok := errors.AsType[*openai.Error](err)
	switch {
	case !ok:
		return 0, fmt.Errorf("not the client's own error type: %w", err)
	case apiErr.StatusCode != want:
		return 0, fmt.Errorf("status %d, want %d: %w", apiErr.StatusCode, want, err)
	case apiErr.Message == "":
		return 0, fmt.Errorf("the error object has no message: %w", err)
	}
	return apiErr.StatusCode, nil
}
