// Transcripts records what a model really answers: the outputs on which package recovery is tested. It asks a gateway, one
// request after another, for everything in plan.json, which is a part of this program.
//
//	unfray serve --listen 127.0.0.1:8080 --parallel 1 --threads 1
//	go -C bench run ./transcripts -write ../recovery/testdata/transcripts.jsonl
//	go -C bench run ./transcripts -check ../recovery/testdata/transcripts.jsonl
//
// -check asks again and counts the answers that are the same. Seeds are fixed, but the last digits of log-probabilities
// depend on the processor and on the version of llama.cpp, so another machine may choose other tokens.
package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

//go:embed plan.json
var planText []byte

// group is an entry of the plan: each of its users' questions is asked once with
// each of its runs.
type group struct {
	Kind      string          `json:"kind"`
	Form      string          `json:"form"` // that recovery is asked for: text, json, code or tool_calls
	System    string          `json:"system"`
	Shots     []message       `json:"shots"` // turns before the question
	Users     []string        `json:"users"`
	Schema    json.RawMessage `json:"schema"`
	Tools     json.RawMessage `json:"tools"`
	Constrain bool            `json:"constrain"` // Schema is given as response_format
	Runs      []struct {
		Temperature float64 `json:"temperature"`
		MaxTokens   int     `json:"max_tokens"`
	} `json:"runs"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// transcript is a line of the file.
type transcript struct {
	ID           string          `json:"id"`
	Kind         string          `json:"kind"`
	Form         string          `json:"form"`
	Schema       json.RawMessage `json:"schema,omitempty"`
	Tools        json.RawMessage `json:"tools,omitempty"`
	Constrained  bool            `json:"constrained,omitempty"`
	Messages     []message       `json:"messages"`
	Seed         int             `json:"seed"`
	Temperature  float64         `json:"temperature"`
	MaxTokens    int             `json:"max_tokens"`
	Model        string          `json:"model"`
	Tokens       int             `json:"tokens"` // of the answer
	FinishReason string          `json:"finish_reason"`
	Text         string          `json:"text"`
}

func main() {
	base := flag.String("url", "http://127.0.0.1:8080", "gateway")
	write := flag.String("write", "", "file to record in")
	check := flag.String("check", "", "recorded file to compare with")
	quiet := flag.Bool("q", false, "do not count the answers while they come")
	flag.Parse()
	if (*write == "") == (*check == "") || flag.NArg() != 0 {
		fmt.Fprintln(os.Stderr, "usage: transcripts [-url URL] [-q] -write FILE | -check FILE")
		os.Exit(2)
	}
	err := run(*base, *write, *check, *quiet)
	if err != nil {
		fmt.Fprintln(os.Stderr, "transcripts:", err)
		os.Exit(1)
	}
}

func run(base, write, check string, quiet bool) error {
	all, err := expand(planText)
	if err != nil {
		return fmt.Errorf("plan.json: %w", err)
	}
	answered := func(n int) {
		if !quiet {
			fmt.Fprintf(os.Stderr, "\r%d of %d", n, len(all))
		}
	}
	if write != "" {
		return record(base, write, all, answered)
	}
	old, err := read(check)
	if err != nil {
		return err
	}
	same, asked, err := compare(base, all, old, answered)
	if err != nil {
		return err
	}
	fmt.Printf("%d of %d answers are the same\n", same, asked)
	return nil
}

// expand makes the list of transcripts to be recorded, without answers.
func expand(plan []byte) ([]*transcript, error) {
	var groups []group
	d := json.NewDecoder(bytes.NewReader(plan))
	d.DisallowUnknownFields()
	if err := d.Decode(&groups); err != nil {
		return nil, err
	}
	var all []*transcript
	count := map[string]int{}
	for _, g := range groups {
		for _, user := range g.Users {
			var messages []message
			if g.System != "" {
				messages = append(messages, message{"system", g.System})
			}
			messages = append(append(messages, g.Shots...), message{"user", user})
			for _, r := range g.Runs {
				count[g.Kind]++
				all = append(all, &transcript{
					ID: fmt.Sprintf("%s-%02d", g.Kind, count[g.Kind]), Kind: g.Kind, Form: g.Form,
					Schema: g.Schema, Tools: g.Tools, Constrained: g.Constrain, Messages: messages,
					Seed: 1000 + len(all), Temperature: r.Temperature, MaxTokens: r.MaxTokens,
				})
			}
		}
	}
	return all, nil
}

// record asks for all and writes them to a file, which appears when it is whole.
func record(base, path string, all []*transcript, answered func(int)) error {
	f, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	defer f.Close()
	e := json.NewEncoder(f)
	e.SetEscapeHTML(false)
	for i, t := range all {
		if err := ask(base, t); err != nil {
			return fmt.Errorf("%s: %w", t.ID, err)
		}
		if err := e.Encode(t); err != nil {
			return err
		}
		answered(i + 1)
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

func read(path string) ([]*transcript, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []*transcript
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		t := new(transcript)
		switch err := d.Decode(t); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s, transcript %d: %w", path, len(all)+1, err)
		}
		all = append(all, t)
	}
}

// compare asks again for those that have been recorded.
func compare(base string, all, old []*transcript, answered func(int)) (same, asked int, err error) {
	for _, t := range all {
		i := slices.IndexFunc(old, func(o *transcript) bool { return o.ID == t.ID })
		if i < 0 {
			continue
		}
		if err := ask(base, t); err != nil {
			return same, asked, fmt.Errorf("%s: %w", t.ID, err)
		}
		asked++
		answered(asked)
		if t.Text == old[i].Text && t.FinishReason == old[i].FinishReason {
			same++
		}
	}
	return same, asked, nil
}

// ask gets the answer of a transcript.
func ask(base string, t *transcript) error {
	body := map[string]any{"messages": t.Messages, "seed": t.Seed, "temperature": t.Temperature, "max_tokens": t.MaxTokens}
	if t.Constrained {
		body["response_format"] = map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": t.Kind, "schema": t.Schema}}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if data, err = io.ReadAll(io.LimitReader(resp.Body, 16<<20)); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", resp.StatusCode, data)
	}
	var c struct {
		Model   string `json:"model"`
		Choices []struct {
			Message      message `json:"message"`
			FinishReason string  `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			Completion int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	if len(c.Choices) == 0 {
		return fmt.Errorf("an answer without a choice: %s", data)
	}
	t.Model, t.Tokens = c.Model, c.Usage.Completion
	t.Text, t.FinishReason = c.Choices[0].Message.Content, c.Choices[0].FinishReason
	return nil
}
